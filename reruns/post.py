"""outputs/POST.md: every conclusion, figure and setting of the post, where it is in the code, ours, and a verdict.

The page is made from what is saved, from data/published.json and from the claims. Its places are those of
reruns/claims/outline.py. A test holds it to the post's figures: none may be missing.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path

from lab import results
from reruns import comparing, prose
from reruns.catalogue import Entry, runs
from reruns.claims import outline
from reruns.claims.base import POST, Claim
from reruns.page import scripts
from reruns.telling import compared_in_words

TITLE = "# The post, line by line"
ABOUT = (
    "Made by `python rerun.py --report`: every conclusion, figure and setting of the post, with the script that has it,"
    " what the post says and what came out here. The post read another text on another machine, so figures"
    " of models of text, and times, stand beside ours without a verdict; what it concludes from them is judged all the"
    " same. Its sentences are told in other words."
)
ABOUT_PROSE = (
    "A figure is the same if ours is, rounded as the post prints its own, or if its words (about, almost, at most) are"
    " true of ours. Of trained models the spans over seeds are compared, from the lowest to the highest: they are the"
    " same, overlap, or lie outside of each other. Figures of the post's second machine stand beside the same seeds of"
    " ours. The verdict is on the figure alone; the claim that it belongs to has one on the sentence, above."
)


def page(entries: list[Entry], published: dict, claims: list[Claim], folder: Path) -> str:
    """The page in Markdown, for experiments that have saved outputs in ``folder``."""
    own = [claim for claim in claims if claim.source == POST]
    judged = {claim.name: (claim, claim.verdict(folder), claim.on_published(published)) for claim in own}
    held = {entry.name for entry in entries} | {"whole_post"}
    posts = {name: entry for name, entry in published.items() if entry.get("source") == "post" and name in held}
    parts = [TITLE, ABOUT, "## What it concludes, place by place", *conclusions(judged)]
    parts += ["## The claims", *told_claims(judged, published), "## Figures that its sentences name"]
    parts += [ABOUT_PROSE, *in_prose(posts, folder), "## Figures that its scripts print"]
    for entry in entries:
        if entry.name in posts:
            with results.understood(folder / f"{entry.name}.json"):
                parts += printed(entry, published, folder)
    parts += [*whole_post(posts, entries), "## Settings", *settings(posts), "## What isn't judged"]
    rows = [[place, what, why] for place, (what, why) in outline.NOT_JUDGED.items()]
    parts += table(["place", "what the post says", "why not"], rows)
    return "\n\n".join(parts) + "\n"


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return ["\n".join(lines + [f"| {' | '.join(map(str, row))} |" for row in rows])]


def conclusions(judged: dict) -> list[str]:
    """Each place of the post with the verdicts of the claims that name it."""
    rows = []
    for place, what in outline.CONCLUSIONS.items():
        own = {name: (claim, verdict) for name, (claim, (verdict, _), _) in judged.items() if place in claim.where}
        verdicts = [f"{name}: **{verdict}**" for name, (_, verdict) in own.items()]
        where = scripts(experiment for claim, _ in own.values() for experiment in claim.experiments)
        rows.append([place, what, "; ".join(verdicts), where])
    head = ["place", "what the post concludes there", "the claims that judge it", "where"]
    return [f"{len(rows)} places, {counted(verdict for _, (verdict, _), _ in judged.values())}", *table(head, rows)]


def counted(verdicts: Iterable[str], what: str = "claims") -> str:
    """How many claims, or figures, there are of each verdict."""
    count = Counter(verdicts)
    told = ", ".join(f"{number} {verdict}" for verdict, number in count.most_common())
    return f"{count.total()} {what}: {told}."


def told_claims(judged: dict, published: dict) -> list[str]:
    rows = []
    for name, (claim, (verdict, figures), posts) in judged.items():
        text = " (its own text)" if posts and claim.reads_the_text(published) else ""
        theirs = f"{posts[0]}{text}: {posts[1]}" if posts else "it printed too little"
        rows.append([name, claim.sentence, ", ".join(claim.needs), f"**{verdict}**: {figures}", theirs])
    return table(["claim", "sentence", "outputs", "here", "on the post's figures"], rows)


def in_prose(posts: dict, folder: Path) -> list[str]:
    """Each figure that a sentence names beside ours, with a verdict on it or the reason why there is none."""
    rows, verdicts = [], []
    for name, entry in posts.items():
        for row in entry.get("in_prose", []):
            found = prose.compared(name, row, folder)
            verdicts.append(found.verdict)
            verdict = found.why if found.verdict == comparing.NOT_COMPARED else f"**{found.verdict}**"
            where = scripts(prose.needs(name, row["what"]))
            rows.append([row["what"], found.theirs, found.ours, verdict, row["claim"], where])
    head = ["figure", "the post's", "ours", "verdict", "the claim it belongs to", "where"]
    return [counted(verdicts, "figures"), *table(head, rows)]


def listed(figure) -> str:
    return ", ".join(map(str, figure)) if isinstance(figure, list) else str(figure)


def printed(entry: Entry, published: dict, folder: Path) -> list[str]:
    """The figures of one script, the numbers of a list or of a training in one row."""
    record = results.load(entry.name, folder)
    rows = {}
    for compared in comparing.with_published(record, published, posts_own_text=False):
        rows.setdefault(row_of(compared.path), []).append(compared)
    shown = []
    for row, found in rows.items():
        asked = [one for one in found if is_asked(record, one.path)]
        own = [one for one in found if one not in asked] or found
        names = ", ".join([row, *(f"{last(one)} {one.theirs}" for one in asked if own is not found)])
        theirs, ours = (" / ".join(named(one, is_ours) for one in own) for is_ours in (False, True))
        shown.append([names, theirs, ours, compared_in_words(own)])
    return [f"### {scripts([entry.name])}", *table(["figure", "the post's", "ours", "verdict"], shown)]


def row_of(path: str) -> str:
    """Numbers of a list go together, and those of a training or of a case."""
    *parts, name = path.split(".")
    numbered = [i for i, part in enumerate(parts) if part.isdecimal()]
    if numbered:
        return ".".join(parts[: numbered[0] + 1])
    return ".".join(parts) if name.isdecimal() else path


def last(compared: comparing.Comparison) -> str:
    return compared.path.rpartition(".")[2]


def is_asked(record: dict, path: str) -> bool:
    """Whether it is what was asked of a training or of a case, not what came out."""
    name = path.rpartition(".")[2]
    return name in ("radius", "activation", "inputs", "seed") or comparing.kind_of(record["kinds"], path) == "setting"


def named(compared: comparing.Comparison, is_ours: bool) -> str:
    """A number, with its name where numbers of several names stand in a row."""
    value, name = compared.ours if is_ours else compared.theirs, last(compared)
    if value is None:
        told = "–"
    elif isinstance(value, float):
        told = compared.printed if is_ours and compared.printed != str(value) else f"{value:.4g}"
    else:
        told = f"{value:,}" if type(value) is int else str(value)
    return told if name.isdecimal() or not compared.path.startswith("runs.") else f"{name} {told}"


def whole_post(posts: dict, entries: list[Entry]) -> list[str]:
    """How long all of it takes, which belongs to the machine."""
    trained = [sum(run.get("seconds", 0) for run in runs(entry.record)) for entry in entries if entry.name in posts]
    theirs = posts["whole_post"]["minutes_on_an_M4_CPU"]
    row = [
        "minutes that all scripts train",
        f"{theirs} on an M4",
        f"{sum(trained) / 60:.0f} of one core",
        "",
    ]
    return ["### all of them", *table(["figure", "the post's", "ours", "verdict"], [row])]


def settings(posts: dict) -> list[str]:
    rows = []
    for name, value, ours in compared_settings(posts):
        rows.append([f"`{name}`", listed(value), listed(ours), "the same" if value == ours else "**another**"])
    return table(["setting", "the post's", "ours", ""], rows)


def compared_settings(posts: dict) -> Iterator[tuple[str, object, object]]:
    """Each constant that the post fixes: its name, the post's value and ours."""
    for entry in posts.values():
        for name, value in entry.get("settings", {}).items():
            module, _, constant = name.rpartition(".")
            ours = getattr(import_module(module), constant)
            ours = ours.tolist() if hasattr(ours, "tolist") else list(ours) if isinstance(ours, range | tuple) else ours
            yield name, value, ours
