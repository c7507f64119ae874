"""What the post concludes from its figures, and what is claimed beyond it, as code that judges the saved outputs.

    python rerun.py --claims

Each claim names the outputs it needs and returns a verdict with the figures it rests on (base.py says how); the modules
follow the chapters. The same code judges the figures that the post printed: where the two verdicts differ and the claim
is about models of text, it is the text that differs.
"""

from pathlib import Path

from reruns.claims import base, bottleneck, character_models, counting, forty_digits, gradients, transformers
from reruns.claims.base import FAILS, HOLDS, UNDECIDED, Claim

IN_ORDER = [gradients, counting, character_models, bottleneck, forty_digits, transformers]
CLAIMS = [claim for module in IN_ORDER for claim in base.DECLARED if claim.judge.__module__ == module.__name__]


def tell(folder: Path, published: dict):
    """Print each claim with its verdict and the figures behind it, ours and the post's."""
    for claim in CLAIMS:
        verdict, figures = claim.verdict(folder)
        print(f"{claim.sentence}\n    {verdict}: {figures}")
        if posts := claim.on_published(published):
            own = "the post, on its own text" if claim.reads_the_text(published) else "the post"
            print(f"    {own}: {posts[0]}: {posts[1]}")


__all__ = ["CLAIMS", "FAILS", "HOLDS", "UNDECIDED", "Claim", "tell"]
