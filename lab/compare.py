"""Comparing results with saved outputs and with the post's published figures, each number by its kind.

A number's kind says what may be expected of a rerun, and is said here, once:

exact    the same digits anywhere. Words, whole numbers: equal. Real numbers: to a relative 1e-9, since the last bits of
         tanh and of a sum differ between processors.
corpus   as exact, but only on the same text.
trained  chaotic: the same bits on the same processor, elsewhere within the spread over seeds.
timing   never compared.
rounding what is left when two nearly equal numbers are subtracted: within a factor of ten, or something is wrong.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

# Path patterns; the last one that matches a number's path decides.
KINDS = {
    "bptt.*": "exact",
    "decay.*": "exact",
    "vanishing.*": "exact",
    "gates.*": "exact",
    "corpus.*": "corpus",
    "ngram.*": "corpus",
    "kneser_ney.*": "corpus",
    "parallel.*": "exact",
    "parallel.*.ms": "timing",
    "parallel.*.every_run_ms.*": "timing",
    "parallel.*.GFLOP_per_s": "timing",
    "bptt.largest_gap_to_finite_differences": "rounding",
    "bptt.gaps_to_finite_differences.*": "rounding",
}
# What was asked of a training, apart from its seed. These are exact in every run.
SETTINGS = ("cell", "length", "attention", "steps", "learning_rate")
KINDS |= {f"*.runs.*.{name}": "exact" for name in (*SETTINGS, "seed", "parameters")}
KINDS |= {"*.seconds": "timing"}
# How the post prints its figures: a published number has no more digits than that.
PRINTED = {
    "bptt.*": ".4f",
    "bptt.largest_gap_to_finite_differences": ".1e",
    "decay.*": ".14g",
    "decay.weight_1.5_after_20_steps": ".0f",
    "vanishing.*": ".1e",
    "vanishing.steps_back.*": "d",
    "vanishing.*.radius": ".1f",
    "gates.*": ".1e",
    "gates.steps_back.*": "d",
    "ngram.*": ".3f",
    "kneser_ney.*": ".3f",
    "kneser_ney.discount": ".2f",
    "parallel.*": ".2f",
}
PUBLISHED_NAMES = {"decay": "scalar_gradient"}
TEXT_EXPERIMENTS = {"corpus", "ngram", "kneser_ney"}
SAME, WITHIN, DIFFERS, NOT_COMPARED = "the same", "within tolerance", "differ", "not compared"
RELATIVE_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Comparison:
    """One number of ours beside the one it is compared with. ``why`` says more where the verdict alone doesn't."""

    path: str
    ours: object
    theirs: object
    verdict: str
    why: str = ""

    def __str__(self):
        return f"{self.path}: {self.ours} here, {self.theirs} there" + (f" ({self.why})" if self.why else "")


def with_saved(record: dict, saved: dict) -> list[Comparison]:
    """Every number of a run beside the saved one. A number that only one of them has differs."""
    name = record["experiment"]
    ours = dict(_leaves(record["results"], name))
    theirs = dict(_leaves(saved["results"], name))
    same_text = record["corpus"] == saved["corpus"]
    comparisons = []
    for path in [*ours, *(path for path in theirs if path not in ours)]:
        a, b = ours.get(path), theirs.get(path)
        kind = kind_of(path)
        if kind == "timing":
            verdict, why = NOT_COMPARED, "a timing"
        elif not same_text:
            verdict, why = NOT_COMPARED, "another text"
        elif path not in ours or path not in theirs:
            verdict, why = DIFFERS, "only one of them has it"
        elif _equal(a, b):
            verdict, why = SAME, ""
        elif kind == "trained":
            verdict, why = _within_seeds(path, a, saved["results"])
        elif kind == "rounding":
            verdict, why = _same_size(a, b), "rounding errors"
        else:
            verdict, why = DIFFERS, ""
        comparisons.append(Comparison(path, a, b, verdict, why))
    return comparisons


def with_published(record: dict, published: dict, *, posts_own_text: bool) -> list[Comparison]:
    """Every figure of the post beside ours, to the digits that the post prints.

    ``posts_own_text``: whether the run read the text that the post's figures were made on.
    """
    name = record["experiment"]
    entry = published.get(PUBLISHED_NAMES.get(name, name), {})
    ours = dict(_leaves(record["results"], name))
    comparisons = []
    for path, theirs in _leaves({key: value for key, value in entry.items() if key != "kind"}, name):
        kind, a, why = kind_of(path), ours.get(path), ""
        if kind == "timing":
            verdict, why = NOT_COMPARED, "a timing"
        elif name in TEXT_EXPERIMENTS and not posts_own_text:
            verdict, why = NOT_COMPARED, "the post's own text is needed"
        elif path not in ours:
            verdict, why = DIFFERS, "not among our results"
        elif _as_printed(path, a) == _as_printed(path, theirs):
            verdict = SAME
        elif kind == "rounding":
            verdict, why = _same_size(a, theirs), "rounding errors"
        else:
            verdict = DIFFERS
        comparisons.append(Comparison(path, a, theirs, verdict, why))
    return comparisons


def kind_of(path: str) -> str:
    """The kind of the number at a path such as ``gates.gradient_size.RNN.0``."""
    kind = _last_match(KINDS, path)
    if kind is None:
        raise KeyError(f"no kind is declared for {path}: add its pattern to lab/compare.py")
    return kind


def _last_match(patterns: dict[str, str], path: str) -> str | None:
    matches = [value for pattern, value in patterns.items() if fnmatchcase(path, pattern)]
    return matches[-1] if matches else None


def _leaves(value, path: str) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(item, f"{path}.{key}")
    else:
        yield path, value


def _equal(a, b) -> bool:
    if isinstance(a, float) or isinstance(b, float):
        return type(a) in (int, float) and type(b) in (int, float) and abs(a - b) <= RELATIVE_TOLERANCE * abs(b)
    return type(a) is type(b) and a == b


def _same_size(a: float, b: float) -> str:
    return WITHIN if b / 10 < a < b * 10 else DIFFERS


def _as_printed(path: str, value) -> str:
    form = _last_match(PRINTED, path)
    return (
        format(value, form) if form and isinstance(value, int | float) and not isinstance(value, bool) else str(value)
    )


def _within_seeds(path: str, ours, saved: dict) -> tuple[str, str]:
    """A trained number against the saved runs that differ in nothing but the seed.

    The spread is the seeds' range, and a rerun may lie outside it by as much again: one more run of the same chaotic
    thing lies outside the range of n others with probability 2 / (n + 1), which for two or three seeds is often.
    """
    _, runs, index, *rest = path.split(".")
    if runs != "runs" or not isinstance(ours, int | float):
        return NOT_COMPARED, "one trained model's own"
    setting = _setting(saved[runs][int(index)])
    values = [_at(run, rest) for run in saved[runs] if _setting(run) == setting]
    if len(values) < 2 or None in values:
        return NOT_COMPARED, "one seed, so no spread to compare with"
    low, high = min(values), max(values)
    verdict = WITHIN if low - (high - low) <= ours <= high + (high - low) else DIFFERS
    return verdict, f"{len(values)} seeds from {low} to {high}"


def _setting(run: dict) -> dict:
    return {name: run[name] for name in SETTINGS if name in run}


def _at(value, keys: list[str]):
    try:
        for key in keys:
            value = value[int(key) if isinstance(value, list) else key]
    except (KeyError, IndexError):
        return None
    return value
