"""Comparing results with saved outputs and with the post's published figures, each number by its kind.

A script declares the kinds of its numbers in KINDS, and they are saved with them: patterns of paths such as
``runs.*.digits_right``, the last matching one decides, each with a kind and, where the post prints the number, how.

exact    the same digits anywhere. Words, whole numbers: equal. Real numbers: to a relative 1e-9, since the last bits of
         tanh and of a sum differ between processors.
corpus   as exact, but only on the same text.
setting  what was asked of a training. As exact; trainings that differ in nothing else but the seed are of one group.
trained  chaotic: the same bits on the same processor, elsewhere within the spread over seeds, which is taken from the
         runs that one is compared with: those of the same group, and how far seeds are apart in all groups.
timing   never compared.
rounding what is left when two nearly equal numbers are subtracted: within a factor of ten, or something is wrong.
"""

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from statistics import median

IMPLIED = {"*seconds": "timing", "*.seed": "exact"}  # kinds that no script need declare
RERUN = "rerun_on_rtx_3090"  # the post's second machine: more seeds of some settings
NO_FIGURES = (
    "source",
    "kind",
    "settings",
    "in_prose",
    RERUN,
)  # what a published entry holds beside the figures of its experiment
PUBLISHED_NAMES = {"decay": "scalar_gradient"}
SAME, WITHIN, DIFFERS, NOT_COMPARED = "the same", "within tolerance", "differ", "not compared"
OUTSIDE = "outside the seeds' range"
VERDICTS = (SAME, WITHIN, OUTSIDE, DIFFERS, NOT_COMPARED)
OTHER_TEXT = "the post read another text"
RELATIVE_TOLERANCE = 1e-9
RANGES = 3  # that a chaotic number may lie outside the range of a few seeds, in units of such ranges


@dataclass(frozen=True)
class Comparison:
    """One number of ours beside the one it is compared with. ``why`` says more where the verdict alone doesn't.

    ``printed`` is ours to the digits that the post prints, where it prints that one.
    """

    path: str
    ours: object
    theirs: object
    verdict: str
    why: str = ""
    printed: str = ""

    def __str__(self):
        return f"{self.path}: {self.ours} here, {self.theirs} there" + (f" ({self.why})" if self.why else "")


def with_saved(record: dict, saved: dict) -> list[Comparison]:
    """Every number of a run beside the saved one. A number that only one of them has differs."""
    ours, theirs = dict(_leaves(record["results"])), dict(_leaves(saved["results"]))
    hindrance = "" if record["corpus"] == saved["corpus"] else "another text"
    # What is new in a script doesn't change what the saved numbers are.
    kinds = {path: kind for path, kind in record["kinds"].items() if path not in saved["kinds"]} | saved["kinds"]
    within = partial(_within_seeds, kinds, saved["results"], theirs, beyond=RANGES, else_=DIFFERS)
    return [_compare(kinds, path, ours, theirs, hindrance, _equal, within) for path in ours | theirs]


def with_published(record: dict, published: dict, *, posts_own_text: bool) -> list[Comparison]:
    """Every figure of the post beside ours, to the digits that the post prints.

    ``posts_own_text``: whether the run read the text that the post's figures were made on.
    """
    name, kinds = record["experiment"], record["kinds"]
    entry = published.get(PUBLISHED_NAMES.get(name, name), {})
    theirs = dict(_leaves({key: entry[key] for key in entry if key not in NO_FIGURES}))
    ours = {path: _rounded(kinds, path, value) for path, value in _leaves(record["results"]) if path in theirs}
    hindrance = OTHER_TEXT if record["corpus"] and not posts_own_text else ""
    within = partial(_within_seeds, kinds, entry, theirs, beyond=0, else_=OUTSIDE)
    return [_compare(kinds, path, ours, theirs, hindrance, operator.eq, within) for path in theirs]


def _compare(kinds, path: str, ours: dict, theirs: dict, hindrance: str, equal, within_seeds) -> Comparison:
    kind, form = _declared(kinds, path)
    a, b, why = ours.get(path), theirs.get(path), ""
    if kind == "timing":
        verdict, why = NOT_COMPARED, "a timing"
    elif hindrance:
        verdict, why = NOT_COMPARED, hindrance
    elif path not in ours or path not in theirs:
        verdict, why = DIFFERS, "only one of them has it"
    elif equal(a, b):
        verdict = SAME
    elif kind == "rounding":
        verdict, why = WITHIN if b / 10 < a < b * 10 else DIFFERS, "rounding errors"
    elif kind == "trained":
        verdict, why = within_seeds(path, a)
    else:
        verdict = DIFFERS
    return Comparison(path, a, b, verdict, why, format(a, form) if form and type(a) in (int, float) else str(a))


def kind_of(kinds: dict[str, str], path: str) -> str:
    """The kind of the number at a path of the results, such as ``gradient_size.RNN.0``."""
    return _declared(kinds, path)[0]


def _rounded(kinds: dict[str, str], path: str, value):
    """A number to the digits that the post prints."""
    form = _declared(kinds, path)[1]
    return float(format(value, form)) if form and isinstance(value, float) else value


def _declared(kinds: dict[str, str], path: str) -> tuple[str, str]:
    """The kind of a number and how it is printed."""
    for pattern, declared in reversed([*kinds.items(), *IMPLIED.items()]):
        if fnmatchcase(path, pattern):
            kind, _, form = declared.partition(" ")
            return kind, form
    raise KeyError(f"no kind is declared for {path}: add its pattern to KINDS")


def _leaves(value, path: str = "") -> Iterator[tuple[str, object]]:
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(item, f"{path}.{key}" if path else str(key))
    else:
        yield path, value


def _equal(a, b) -> bool:
    if isinstance(a, float) or isinstance(b, float):
        return type(a) in (int, float) and type(b) in (int, float) and abs(a - b) <= RELATIVE_TOLERANCE * abs(b)
    return type(a) is type(b) and a == b


def _within_seeds(kinds, results: dict, theirs: dict, path: str, ours, *, beyond: float, else_: str) -> tuple[str, str]:
    """A trained number against the runs that differ in nothing but the seed.

    One more run of the same chaotic thing lies outside the range of n others with probability 2 / (n + 1), which for
    two or three seeds is often: ``beyond`` says how many ranges outside is still within tolerance. Two seeds can also
    be close by luck, so a range is at least the median one of all settings.
    """
    if not path.startswith("runs.") or isinstance(ours, str) or ours is None:
        return NOT_COMPARED, "one trained model's own"
    _, index, rest = path.split(".", 2)
    groups = {}
    for i, run in enumerate(results["runs"]):
        groups.setdefault(_setting(kinds, run), []).append(theirs.get(f"runs.{i}.{rest}"))
    run = results["runs"][int(index)]
    values = groups[_setting(kinds, run)] + of_the_second_machine(results.get(RERUN, {}), run, rest)
    if len(values) < 2 or None in values:
        return NOT_COMPARED, "one seed, so no spread to compare with"
    low, high = min(values), max(values)
    width = max(high - low, median(max(group) - min(group) for group in groups.values() if None not in group))
    verdict = WITHIN if low - beyond * width <= ours <= high + beyond * width else else_
    return verdict, f"{len(values)} seeds from {low} to {high}"


def _setting(kinds: dict[str, str], run: dict) -> str:
    return str({name: value for name, value in run.items() if kind_of(kinds, f"runs.0.{name}") == "setting"})


def of_the_second_machine(rerun: dict, run: dict, name: str) -> list[float]:
    """What the post's rerun on another machine gave for the same setting."""
    length, how = run.get("length"), "attention" if run.get("attention") else "no attention"
    values = rerun.get(f"length {length}, {how}, two seeds", {}).get(name, [])
    if name == "sequences_right":
        return rerun.get(f"whole sequences right, {how}", {}).get(str(length), []) + values
    return values
