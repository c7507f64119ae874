"""Comparing results with saved outputs and with the post's published figures, each number by its kind.

A number's kind says what may be expected of a rerun, and is said here, once:

exact    the same digits anywhere. Words, whole numbers: equal. Real numbers: to a relative 1e-9, since the last bits of
         tanh and of a sum differ between processors.
corpus   as exact, but only on the same text.
trained  chaotic: the same bits on the same processor, elsewhere within the spread over seeds, which is taken from the
         runs that one is compared with: those of the same setting, and how far seeds are apart in all settings.
timing   never compared.
rounding what is left when two nearly equal numbers are subtracted: within a factor of ten, or something is wrong.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from statistics import median

# Path patterns; the last one that matches a number's path decides.
KINDS = {
    "bptt.*": "exact",
    "decay.*": "exact",
    "vanishing.*": "exact",
    "gates.*": "exact",
    "corpus.*": "corpus",
    "ngram.*": "corpus",
    "kneser_ney.*": "corpus",
    "char_models.*": "trained",
    "char_models_long.*": "trained",
    "char_models*.scored_characters": "corpus",
    "cells_table.*": "exact",
    "recall.*": "trained",
    "bidirectional.*": "trained",
    "bidirectional.ceiling.*": "exact",
    "gates_trained.*": "trained",
    "hmm.*": "trained",
    "hmm.add_one.*": "corpus",
    "ctc.*": "exact",
    "ctc_digits.*": "trained",
    "ctc_digits.chance": "exact",
    "reverse*": "trained",
    "parallel.*": "exact",
    "parallel.*.ms": "timing",
    "parallel.*.every_run_ms.*": "timing",
    "parallel.*.GFLOP_per_s": "timing",
    "parallel_lengths.*": "timing",  # memory too: kernels differ between machines
    "parallel_lengths.lengths.*": "exact",
    "parallel_lengths.width": "exact",
    "parallel_lengths.*.GFLOPs": "exact",
    "scan.*": "exact",
    "scan.gaps.*": "rounding",
    "scan.trained_both_ways.weights": "rounding",
    "scan_lengths.*": "timing",
    "scan_lengths.lengths.*": "exact",
    "scan_lengths.width": "exact",
    "scan_lengths.parameters.*": "exact",
    "scan_models.*": "trained",
    "scan_models.*scored_characters": "corpus",
    "generation.*": "exact",
    "generation.*.ms": "timing",
    "generation.*.every_token_ms.*": "timing",
    "generation.*.slopes.*": "timing",
    "generation.largest_gap": "rounding",
    "path_length.*": "exact",
    "path_length.largest_gap": "rounding",
    "bptt.largest_gap_to_finite_differences": "rounding",
    "bptt.gaps_to_finite_differences.*": "rounding",
}
# What was asked of a training, apart from its seed. These are exact in every run.
SETTINGS = ("cell", "task", "length", "attention", "bahdanau", "states", "steps", "learning_rate", "clip", "hidden")
SETTINGS += ("gap", "training", "reader", "distance", "model", "order", "epochs")
KINDS |= {f"*.runs.*.{name}": "exact" for name in (*SETTINGS, "seed", "parameters", "seen_in_training")}
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
    "char_models*.runs.*_bits_per_char": ".3f",
    "reverse*.runs.*_right": ".3f",
    "parallel.*": ".2f",
}
RERUN = "rerun_on_rtx_3090"  # the post's second machine: more seeds of some settings
PUBLISHED_NAMES = {"decay": "scalar_gradient"}
TEXT_EXPERIMENTS = {"corpus", "ngram", "kneser_ney", "char_models", "char_models_long"}
SAME, WITHIN, DIFFERS, NOT_COMPARED = "the same", "within tolerance", "differ", "not compared"
OUTSIDE = "outside the seeds' range"
OTHER_TEXT = "the post read another text"
RELATIVE_TOLERANCE = 1e-9
RANGES = 3  # that a chaotic number may lie outside the range of a few seeds, in units of such ranges


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
            verdict, why = _within_seeds(path, a, saved["results"], beyond=RANGES, else_=DIFFERS)
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
    for path, theirs in _leaves({key: entry[key] for key in entry if key not in ("kind", RERUN)}, name):
        kind, a, why = kind_of(path), ours.get(path), ""
        if kind == "timing":
            verdict, why = NOT_COMPARED, "a timing"
        elif name in TEXT_EXPERIMENTS and not posts_own_text:
            verdict, why = NOT_COMPARED, OTHER_TEXT
        elif path not in ours:
            verdict, why = DIFFERS, "not among our results"
        elif as_printed(path, a) == as_printed(path, theirs):
            verdict = SAME
        elif kind == "rounding":
            verdict, why = _same_size(a, theirs), "rounding errors"
        elif kind == "trained":
            printed = float(as_printed(path, a)) if isinstance(a, float) else a
            verdict, why = _within_seeds(path, printed, entry, beyond=0, else_=OUTSIDE)
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


def as_printed(path: str, value) -> str:
    """A number of ours to the digits that the post prints, where it prints that one."""
    form = _last_match(PRINTED, path)
    return (
        format(value, form) if form and isinstance(value, int | float) and not isinstance(value, bool) else str(value)
    )


def _within_seeds(path: str, ours, theirs: dict, *, beyond: float, else_: str) -> tuple[str, str]:
    """A trained number against the runs that differ in nothing but the seed.

    One more run of the same chaotic thing lies outside the range of n others with probability 2 / (n + 1), which for
    two or three seeds is often: ``beyond`` says how many ranges outside is still within tolerance. Two seeds can also
    be close by luck, so a range is at least the median one of all settings.
    """
    _, runs, *place = path.split(".")
    if runs != "runs" or isinstance(ours, str) or ours is None:
        return NOT_COMPARED, "one trained model's own"
    index, *rest = place
    groups = {}
    for run in theirs[runs]:
        groups.setdefault(str(_setting(run)), []).append(_at(run, rest))
    values = groups[str(_setting(theirs[runs][int(index)]))] + _of_the_second_machine(theirs, int(index), rest)
    if len(values) < 2 or None in values:
        return NOT_COMPARED, "one seed, so no spread to compare with"
    low, high = min(values), max(values)
    width = max(high - low, median(max(group) - min(group) for group in groups.values() if None not in group))
    verdict = WITHIN if low - beyond * width <= ours <= high + beyond * width else else_
    return verdict, f"{len(values)} seeds from {low} to {high}"


def _of_the_second_machine(published: dict, index: int, rest: list[str]) -> list[float]:
    """What the post's rerun on another machine gave for the same setting."""
    run, rerun = published["runs"][index], published.get(RERUN, {})
    with_or_without = "attention" if run.get("attention") else "no attention"
    values = []
    if rest == ["sequences_right"]:
        values += rerun.get(f"whole sequences right, {with_or_without}", {}).get(str(run.get("length")), [])
    return values + rerun.get(f"length {run.get('length')}, {with_or_without}, two seeds", {}).get(rest[-1], [])


def _setting(run: dict) -> dict:
    return {name: run[name] for name in SETTINGS if name in run}


def _at(value, keys: list[str]):
    try:
        for key in keys:
            value = value[int(key) if isinstance(value, list) else key]
    except (KeyError, IndexError):
        return None
    return value
