"""The pages in outputs/: an index with a verdict on each claim, and a page for each chapter with all that was printed.

They are made from what is saved, so they can be made again without rerunning anything, and a test does.
"""

import ast
import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from lab import results, sources
from reruns import catalogue, comparing
from reruns.catalogue import CHAPTERS, Entry, benchmarks
from reruns.claims.base import waiting
from reruns.comparing import NOT_COMPARED, SAME, Comparison
from reruns.telling import compared_in_words, in_words

BENCHMARKS = "Benchmarks"
FILES = {
    title: f"{number}-{'-'.join(re.findall('[a-z]+', title.lower()))}.md"
    for number, title in enumerate([*CHAPTERS, BENCHMARKS], 1)
}
SECOND = "published, RTX 3090"  # the post's second machine


def pages(entries: list[Entry], published: dict, claims: list, folder: Path) -> dict[str, str]:
    """Each page's file and its Markdown, for experiments that have saved outputs in ``folder``."""
    machines = sorted(path.name for path in folder.iterdir() if path.is_dir() and any(path.glob("*.json")))
    parts = {title: [entry for entry in entries if entry.module in modules] for title, modules in CHAPTERS.items()}
    parts[BENCHMARKS] = [entry for entry in benchmarks() if (folder / f"{entry.name}.json").exists()]
    parts = {title: held for title, held in parts.items() if held}
    made = {FILES[title]: _chapter(title, held, published, folder, machines) for title, held in parts.items()}
    return made | {"README.md": _index(parts, entries, claims, folder, machines)}


@cache
def places() -> dict[str, str]:
    """Where each experiment stands: its page and the heading there."""
    entries = {title: map(Entry, modules) for title, modules in CHAPTERS.items()} | {BENCHMARKS: benchmarks()}
    return {entry.name: f"{FILES[title]}#{entry.name}" for title, held in entries.items() for entry in held}


def scripts(names: Iterable[str]) -> str:
    """The scripts of these experiments, each once and with a link to what it printed, if the catalogue has it."""
    held = catalogue.entries()
    return ", ".join(
        f"[`{held[name].module.replace('.', '/')}.py`]({places()[name]})" if name in held else f"`{name}`"
        for name in dict.fromkeys(names)
    )


def _index(parts: dict[str, list[Entry]], entries: list[Entry], claims: list, folder: Path, machines: list) -> str:
    at = places()
    lines = [
        "# What the experiments printed",
        "Each script has saved here what it printed (`NAME.txt`), the same numbers unrounded, with the machine and the"
        " versions that they come from (`NAME.json`), and its figure (`NAME.png`). `python rerun.py --report` makes"
        " these pages from them:",
        "\n".join(
            f"- [{title}]({FILES[title]}): {', '.join(f'[{entry.name}]({at[entry.name]})' for entry in held)}"
            for title, held in parts.items()
        )
        + "\n- [The post, line by line](POST.md): its conclusions, figures and settings, each with ours"
        + "\n- [The course and the lesson, sentence by sentence](COURSE.md)",
        *_side_by_side(entries, folder, machines),
        "## What the post concludes, and what is claimed beyond it",
        "Each claim is code (`reruns/claims/`) that judges the saved figures; a verdict leads to the first of the"
        " experiments that it rests on. Spans are from the lowest to the highest of the seeds.",
        _table(
            ["claim", "whose", "verdict", "figures"],
            [_judged(claim, folder) for claim in claims if not claim.waits_for(folder)],
        ),
    ]
    if line := waiting(claims, folder):
        lines.append(f"{line}.")
    return "\n\n".join(lines) + "\n"


def _judged(claim, folder: Path) -> list[str]:
    verdict, figures = claim.verdict(folder)
    return [claim.sentence, claim.source, linked(verdict, claim), figures]


def linked(verdict: str, claim, before: str = "") -> str:
    """A verdict that leads to the first experiment that it rests on, if the catalogue has it."""
    place = places().get(claim.experiments[0])
    return f"[**{verdict}**]({before}{place})" if place else f"**{verdict}**"


def _chapter(title: str, held: list[Entry], published: dict, folder: Path, machines: list[str]) -> str:
    sections, reasons = [], {}
    for entry in held:
        there = _those_with(entry, folder, machines)
        with results.understood(*(place / f"{entry.name}.json" for place in (folder, *map(folder.joinpath, there)))):
            record = results.load(entry.name, folder)
            found = comparing.with_published(record, published, posts_own_text=False)
            for one in found:
                if one.verdict == NOT_COMPARED:
                    reasons.setdefault(one.why, {})[entry.name] = None
            others = {machine: results.load(entry.name, folder / machine) for machine in there}
            sections += _experiment(entry, record, others, folder) + _beside(record, found, others, published)
    parts = [f"# {title}", "\n".join(f"- [{entry.name}](#{entry.name}): {_claim(entry)}" for entry in held)]
    if reasons:
        told = "; ".join(f"{why} ({', '.join(names)})" for why, names in reasons.items())
        parts.append(f"Published figures that can't be compared: {told}. [POST.md](POST.md) has them beside ours.")
    return "\n\n".join(parts + sections) + "\n"


def _claim(entry: Entry) -> str:
    """The first paragraph of a script's docstring, as one line."""
    docstring = ast.get_docstring(ast.parse(sources.path_of(entry.module).read_text(encoding="utf-8")))
    return " ".join(docstring.split("\n\n")[0].split())


def _experiment(entry: Entry, record: dict, others: dict[str, dict], folder: Path) -> list[str]:
    name = entry.name
    text = results.read(folder / f"{name}.txt").decode(errors="replace").rstrip("\n")
    parts = [f"## {name}", _claim(entry), _environment(record), f"```text\n{text}\n```"]
    if others:
        parts.append("Printed " + ", ".join(f"[on {machine}]({machine}/{name}.txt)" for machine in others) + ".")
    alt = _claim(entry).replace("[", "(").replace("]", ")")
    pictures = [("here", f"{name}.png"), *((machine, f"{machine}/{name}.png") for machine in others)]
    drawn = [(place, f"![{alt}]({path})") for place, path in pictures if (folder / path).exists()]
    head, row = zip(*drawn, strict=True) if drawn else ((), ())
    return parts + ([_table(head, [row])] if others and drawn else [*row])


def _those_with(entry: Entry, folder: Path, machines: list[str]) -> list[str]:
    return [machine for machine in machines if (folder / machine / f"{entry.name}.json").exists()]


def _side_by_side(entries: list[Entry], folder: Path, machines: list[str]) -> list[str]:
    """What other machines are, and how many of their numbers are those of the reference machine: a column for each."""
    if not machines:
        return []
    environments, rows, at = {}, [], places()
    for entry in entries:
        cells = dict.fromkeys(machines, "")
        for machine in _those_with(entry, folder, machines):
            other = results.load(entry.name, folder / machine)
            environments.setdefault(machine, {})[_environment(other)] = None
            found = comparing.with_saved(other, results.load(entry.name, folder))
            cells[machine] = in_words(each.verdict for each in found)
        rows.append([f"[{entry.name}]({at[entry.name]})", *cells.values()])
    told = "\n".join(f"- {machine}: {' '.join(environments.get(machine, ()))}" for machine in machines)
    return ["## Other machines", told, _table(["numbers beside those saved here", *machines], rows)]


def _table(head: Sequence[str], rows: list[Sequence]) -> str:
    """A table without the columns in which there is nothing."""
    held = [i for i in range(len(head)) if not rows or any(row[i] != "" for row in rows)]
    head, *rows = ([row[i] for i in held] for row in (head, *rows))
    cells = ["".join(f" {cell} |" if cell != "" else " |" for cell in row) for row in (head, *rows)]
    return "\n".join("|" + row for row in (cells[0], "---|" * len(head), *cells[1:]))


def _environment(record: dict) -> str:
    versions = record["environment"]
    libraries = ", ".join(f"{name} {versions[name]}" for name in ("numpy", "torch") if name in versions)
    device = " ".join(versions[name] for name in ("device", "device_name", "driver") if name in versions)
    return f"{versions['processor']}, {versions['cores']} cores, {device}{'; ' * bool(libraries)}{libraries}."


def _beside(record: dict, found: list[Comparison], others: dict[str, dict], published: dict) -> list[str]:
    """How many of the published figures agree, and a table of those that aren't simply the same on every machine."""
    told = compared_in_words(found)
    parts = [f"Published figures: {told}."] if told else []
    columns = [comparing.with_published(other, published, posts_own_text=False) for other in others.values()]
    rows = {}
    for row in zip(found, *columns, strict=True):
        rows.setdefault(_called(row[0].path, record, published), []).append(row)
    shown = []
    for (name, again), row in rows.items():
        ours, *_ = columns = list(zip(*row, strict=True))
        printed = [", ".join(one.printed for one in column) for column in columns]
        if {one.verdict for one in ours} - {SAME, NOT_COMPARED} or len({*printed}) > 1:
            theirs = ", ".join(str(one.theirs) for one in ours)
            shown.append([name, theirs, again, *printed, compared_in_words(ours)])
    return parts + [_table(["figure", "published", SECOND, "here", *others, ""], shown)] * bool(shown)


def _called(path: str, record: dict, published: dict) -> tuple[str, str]:
    """What a published figure is called, and what the post's second machine gave for it.

    Trainings are called by what was asked of one and not of all, but for the seed: so seeds stand in one row.
    """
    if not path.startswith("runs."):
        return path, ""
    entry, (_, index, name) = published[record["experiment"]], path.split(".", 2)
    run = entry["runs"][int(index)]
    asked = [
        f"{'' if value else 'no '}{key}" if isinstance(value, bool) else f"{key} {value}"
        for key, value in run.items()
        if comparing.kind_of(record["kinds"], f"runs.0.{key}") == "setting"
        and any(other.get(key) != value for other in entry["runs"])
    ]
    again = comparing.of_the_second_machine(entry.get(comparing.RERUN, {}), run, name)
    return ", ".join([*asked, name]).replace("_", " "), ", ".join(map(str, again))
