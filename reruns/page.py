"""outputs/README.md: every saved result and figure on one page, the published figures beside ours.

The page is made from what is saved, so it can be made again without rerunning anything, and a test does.
"""

import ast
from pathlib import Path

from lab import results, sources
from reruns import comparing
from reruns.catalogue import Entry
from reruns.claims.base import waiting
from reruns.telling import in_words

SHOWN_VERDICTS = (comparing.WITHIN, comparing.OUTSIDE, comparing.DIFFERS)


def page(entries: list[Entry], published: dict, claims: list, folder: Path) -> str:
    """The page in Markdown, for experiments that have saved outputs in ``folder``."""
    machines = sorted(path.name for path in folder.iterdir() if path.is_dir() and any(path.glob("*.json")))
    parts = [
        "# What the experiments printed",
        "Made by `python rerun.py --report` from the files in this folder: what each script printed on the reference"
        " machine, its figure, and the figures that the post published beside ours. The numbers are in the `.json`"
        " files, unrounded, with the machine and the versions that they come from.",
        "\n".join(f"- [{entry.name}](#{entry.name}): {_claim(entry)}" for entry in entries),
        *_side_by_side(entries, folder, machines),
        "## What the post concludes, and what is claimed beyond it",
        "Each claim is code (`reruns/claims/`) that judges our saved figures, and the post's own where it printed"
        " enough of them. Spans are from the lowest to the highest of the seeds.",
        "\n".join(
            ["| claim | whose | verdict | figures | on the post's figures |", "|---|---|---|---|---|"]
            + [_verdict(claim, published, folder) for claim in claims if not claim.waits_for(folder)]
        ),
    ]
    if line := waiting(claims, folder):
        parts.append(f"{line}.")
    for entry in entries:
        parts += _experiment(entry, published, folder, machines)
    return "\n\n".join(parts) + "\n"


def _claim(entry: Entry) -> str:
    """The first paragraph of a script's docstring, as one line."""
    docstring = ast.get_docstring(ast.parse(sources.path_of(entry.module).read_text(encoding="utf-8")))
    return " ".join(docstring.split("\n\n")[0].split())


def _verdict(claim, published: dict, folder: Path) -> str:
    verdict, figures = claim.verdict(folder)
    posts = claim.on_published(published)
    told = f"{posts[0]}: {posts[1]}" if posts else ""
    if posts and posts[0] != verdict and claim.reads_the_text(published):
        told += " (another text)"
    return f"| {claim.sentence} | {claim.source} | **{verdict}** | {figures} | {told} |"


def _experiment(entry: Entry, published: dict, folder: Path, machines: list[str]) -> list[str]:
    name, record = entry.name, results.load(entry.name, folder)
    text = (folder / f"{name}.txt").read_text(encoding="utf-8").rstrip("\n")
    parts = [f"## {name}", _claim(entry), _environment(record), f"```text\n{text}\n```"]
    if (folder / f"{name}.png").exists():
        parts.append(f"![{_claim(entry).replace('[', '(').replace(']', ')')}]({name}.png)")
    there = {machine: results.load(name, folder / machine) for machine in _those_with(entry, folder, machines)}
    if there:
        parts.append("Printed " + ", ".join(f"[on {machine}]({machine}/{name}.txt)" for machine in there) + ".")
    return parts + _beside(record, there, published)


def _those_with(entry: Entry, folder: Path, machines: list[str]) -> list[str]:
    return [machine for machine in machines if (folder / machine / f"{entry.name}.json").exists()]


def _side_by_side(entries: list[Entry], folder: Path, machines: list[str]) -> list[str]:
    """What other machines are, and how many of their numbers are those of the reference machine: a column for each."""
    if not machines:
        return []
    environments, rows = {}, []
    for entry in entries:
        cells = dict.fromkeys(machines, "")
        for machine in _those_with(entry, folder, machines):
            other = results.load(entry.name, folder / machine)
            environments.setdefault(machine, {})[_environment(other)] = None
            found = comparing.with_saved(other, results.load(entry.name, folder))
            cells[machine] = in_words(each.verdict for each in found)
        rows.append([f"[{entry.name}](#{entry.name})", *cells.values()])
    told = "\n".join(f"- {machine}: {' '.join(environments.get(machine, ()))}" for machine in machines)
    return ["## Other machines", told, _table(["numbers beside those saved here", *machines], rows)]


def _table(head: list[str], rows: list[list]) -> str:
    cells = ["".join(f" {cell} |" if cell != "" else " |" for cell in row) for row in (head, *rows)]
    return "\n".join("|" + row for row in (cells[0], "---|" * len(head), *cells[1:]))


def _environment(record: dict) -> str:
    versions = record["environment"]
    libraries = ", ".join(f"{name} {versions[name]}" for name in ("numpy", "torch") if name in versions)
    device = " ".join(versions[name] for name in ("device", "device_name", "driver") if name in versions)
    return f"{versions['processor']}, {versions['cores']} cores, {device}; {libraries}."


def _beside(record: dict, there: dict[str, dict], published: dict) -> list[str]:
    """How many of the post's figures agree, and a table of those that aren't simply the same on every machine."""
    comparisons = comparing.with_published(record, published, posts_own_text=False)
    if not comparisons:
        return []
    reasons = sorted({c.why for c in comparisons if c.verdict == comparing.NOT_COMPARED and c.why})
    told = in_words(c.verdict for c in comparisons)
    parts = [f"Figures published: {told}" + (f" ({'; '.join(reasons)})" if reasons else "") + "."]
    columns = [comparing.with_published(other, published, posts_own_text=False) for other in there.values()]
    rows = [
        [c.path, c.theirs, c.printed, *(other.printed for other in others), _why(c)]
        for c, *others in zip(comparisons, *columns, strict=True)
        if c.verdict in SHOWN_VERDICTS
        or (c.why == comparing.OTHER_TEXT and _number(c))
        or any(other.printed != c.printed for other in others)
    ]
    return [*parts, _table(["figure", "published", "ours", *there, ""], rows)] if rows else parts


def _number(comparison: comparing.Comparison) -> bool:
    return isinstance(comparison.ours, int | float) and isinstance(comparison.theirs, int | float)


def _why(comparison: comparing.Comparison) -> str:
    return f"{comparison.verdict}: {comparison.why}" if comparison.why else comparison.verdict
