"""What the post concludes from its figures, and what is claimed beyond it, as code that judges the saved outputs.

    python rerun.py --claims

Each claim names the outputs it needs and returns a verdict with the figures it rests on (base.py says how); the modules
follow the chapters, then come models after attention and the course. The same code judges the figures that the post
printed: where the two verdicts differ and the claim is about models of text, it is the text that differs.
"""

from pathlib import Path

from reruns.claims import (
    after_attention,
    base,
    bottleneck,
    character_models,
    counting,
    course,
    course_memory,
    course_sequences,
    forty_digits,
    gradients,
    transformers,
)
from reruns.claims.base import FAILS, HOLDS, UNDECIDED, Claim

IN_ORDER = [
    *(gradients, counting, character_models, bottleneck, forty_digits, transformers),  # the post's
    after_attention,
    *(course, course_memory, course_sequences),
]
CLAIMS = [claim for module in IN_ORDER for claim in base.DECLARED if claim.judge.__module__ == module.__name__]


def tell(folder: Path, published: dict):
    """Print each claim with its verdict and the figures behind it, ours and the post's; last, how many wait."""
    for claim in CLAIMS:
        if claim.waits_for(folder):
            continue
        verdict, figures = claim.verdict(folder)
        print(f"{claim.source}: {claim.sentence}\n    {verdict}: {figures}")
        if posts := claim.on_published(published):
            own = "the post, on its own text" if claim.reads_the_text(published) else "the post"
            print(f"    {own}: {posts[0]}: {posts[1]}")
    if line := base.waiting(CLAIMS, folder):
        print(line)


__all__ = ["CLAIMS", "FAILS", "HOLDS", "UNDECIDED", "Claim", "tell"]
