"""outputs/COURSE.md: every sentence of the course and of the lesson that can be tested, and a verdict on it.

Its places are those of reruns/claims/outline.py. A claim whose outputs aren't saved yet says what it waits for.
"""

from pathlib import Path

from reruns.claims import outline
from reruns.claims.base import Claim
from reruns.post import counted, table

TITLE = "# The course and the lesson, sentence by sentence"
ABOUT = (
    "Made by `python rerun.py --report`: what KnowML's course page “Sequence Modeling Pre-Transformer” and the lesson"
    " “RNNs and LSTMs, the pre-transformer world” say of these models and a script here measures. Their sentences are"
    " told in other words, in their order; what the post says too is judged by the post's claim."
)


def page(claims: list[Claim], folder: Path) -> str:
    """The page in Markdown, from what is saved in ``folder``."""
    parts = [TITLE, ABOUT, "## The course", *places(outline.COURSE_SAYS, claims, folder)]
    parts += ["## The lesson", *places(outline.LESSON_SAYS, claims, folder), "## What isn't judged"]
    rows = [[place, what, why] for place, (what, why) in outline.COURSE_NOT_JUDGED.items()]
    return "\n\n".join([*parts, *table(["place", "what the course says", "why not"], rows)]) + "\n"


def places(says: dict[str, str], claims: list[Claim], folder: Path) -> list[str]:
    """Each place with the claims that judge it: the sentence judged, the verdict, and the figures behind it."""
    rows, judged = [], {claim.name: claim for claim in claims if set(claim.where) & says.keys()}
    verdicts = {name: claim.verdict(folder) for name, claim in judged.items()}
    for place, what in says.items():
        own = [claim for claim in judged.values() if place in claim.where]
        for number, claim in enumerate(own):
            verdict, figures = verdicts[claim.name]
            rows.append(["", ""] if number else [place, what])
            rows[-1] += [f"**{verdict}** ({', '.join(claim.experiments)})", f"{claim.sentence} {figures}"]
    head = ["place", "what is said there", "here", "as judged, and the figures"]
    return [f"{len(says)} places, {counted(verdict for verdict, _ in verdicts.values())}", *table(head, rows)]
