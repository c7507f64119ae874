"""The figures that the post's sentences name, each beside the same one of our results.

One line for each row of data/published.json's in_prose lists; a test holds the two to each other. The claim that a
figure belongs to judges the whole sentence by a rule of its own, so the figure has a verdict of its own here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import floor, log10
from pathlib import Path

from lab import results
from reruns.claims.base import span
from reruns.claims.bottleneck import digits, right
from reruns.claims.character_models import BATCH_CHARACTERS, every, gaps, of_cells
from reruns.claims.gradients import at_50, ends
from reruns.comparing import DIFFERS, NOT_COMPARED, OTHER_TEXT, OUTSIDE, SAME, Comparison

OVERLAP = "within the seeds' range"
SWEEPS = ("char_models", "char_models_long", "reverse", "reverse_40_longer", "reverse_40_lr", "reverse_40_6000")


@dataclass(frozen=True)
class Figure:
    """``printed``: the number's kind, as in comparing.py, and how the post prints it. ``ours`` makes it of the results
    of ``needs``, by default of the experiment that the row is of. ``allowed``: from where to where the post is right if
    it names no number ("almost half"), a rough one ("about"), the largest ("at most") or one of two.
    """

    printed: str
    ours: Callable[..., float | list[float]]
    needs: tuple[str, ...] = ()
    allowed: tuple[float, float] | None = None


def reaching_the_last(bptt: dict) -> list[float]:
    """The gradient at h_3: what is left of dy/dW_h without step 2's share is step 3's, h_2 times it through tanh."""
    (h_1, h_2, h_3), dh_2 = bptt["h"], bptt["gradient_reaching_h"]["2"]
    shares_of_2 = [h_1[0] * dh_2[j] * (1 - h_2[j] ** 2) for j in range(2)]
    return [(bptt["dy_dW_h"][0][j] - shares_of_2[j]) / h_2[0] / (1 - h_3[j] ** 2) for j in range(2)]


def power_of_ten(size: float) -> float:
    return 10.0 ** floor(log10(size))


def best_context(found: dict) -> int:
    return min(zip(found["bits_per_char"], found["context"], strict=True))[1]


def bits(models: dict, *cells: str, of: str = "validation") -> list[float]:
    return [value for cell in cells for value in of_cells(models, f"{of}_bits_per_char")[cell]]


def parameters(models: dict, cell: str) -> float:
    return of_cells(models, "parameters")[cell][0]


FIGURES = {
    "bptt": {
        "gradient that reaches h_3": Figure("exact .0f", reaching_the_last),
        "gradient that reaches h_0": Figure("exact .2f", lambda bptt: bptt["gradient_reaching_h"]["0"]),
    },
    "vanishing": {
        "0.9^50": Figure("exact .3f", lambda found: ends(found, "linear")[0.9]),
        "linear, radius 1.1, after 50 steps": Figure("exact .0f", lambda found: round(ends(found, "linear")[1.1], -1)),
        "tanh, radius 1, after 50 steps, to the power of ten": Figure(
            "exact .0e", lambda found: power_of_ten(ends(found, "tanh")[1.0])
        ),
        "left of the gradient at radius 1.1 without inputs": Figure(
            "exact .2f", lambda found: ends(found, "tanh", inputs=False)[1.1]
        ),
        "times as large at radius 2 after 50 steps": Figure(
            "exact .0f", lambda found: round(ends(found, "tanh")[2.0], -2)
        ),
    },
    "gates": {
        "plain cell, 50 steps back": Figure("exact .1e", lambda gates: at_50(gates)["RNN"]),
        "plain cell, 50 steps back, among the takeaways": Figure(
            "exact .0e", lambda gates: power_of_ten(at_50(gates)["RNN"])
        ),
        "LSTM, forget bias 1, 50 steps back": Figure("exact .0e", lambda gates: at_50(gates)["LSTM, forget bias 1"]),
        "LSTM, forget bias 3, 50 steps back": Figure(
            "exact .2f", lambda gates: at_50(gates)["LSTM, forget bias 3"], allowed=(0.4, 0.49)
        ),
        "GRU, update bias 1, 50 steps back": Figure("exact .1e", lambda gates: at_50(gates)["GRU, update bias +1"]),
    },
    "corpus": {
        "characters of the training text, about": Figure("corpus ,", lambda found: round(found["train_characters"], -5))
    },
    "ngram": {
        "best context": Figure("corpus d", best_context),
        "bits per character there": Figure("corpus .2f", lambda ngram: min(ngram["bits_per_char"])),
    },
    "kneser_ney": {
        "best context": Figure("corpus d", best_context, allowed=(5, 6)),
        "bits per character there": Figure("corpus .2f", lambda kneser_ney: min(kneser_ney["bits_per_char"])),
    },
    "char_models": {
        "RNN and GRU, bits per character": Figure("trained .2f", lambda models: bits(models, "RNN", "GRU")),
        "bits below added ones' best": Figure(
            "trained .1f",
            lambda models, ngram: [min(ngram["bits_per_char"]) - b for b in bits(models, "RNN", "GRU")],
            needs=("char_models", "ngram"),
        ),
        "bits above Kneser–Ney": Figure(
            "trained .1f",
            lambda models, kneser_ney: [b - min(kneser_ney["bits_per_char"]) for b in bits(models, "RNN", "GRU")],
            needs=("char_models", "kneser_ney"),
        ),
        "LSTM, bits per character": Figure("trained .2f", lambda models: bits(models, "LSTM")),
        "parameters of LSTM and RNN": Figure(
            "corpus ,", lambda models: [round(parameters(models, cell), -3) for cell in ("LSTM", "RNN")]
        ),
        "bits lower on training text": Figure("trained .1f", lambda models: every(gaps(models))),
        "times that each character is read in 3,000 steps": Figure(
            "corpus .0f",
            lambda models, corpus: models["runs"][0]["steps"] * BATCH_CHARACTERS / corpus["train_characters"],
            needs=("char_models", "corpus"),
        ),
    },
    "char_models_long": {
        "LSTM, bits per character": Figure("trained .2f", lambda models: bits(models, "LSTM")),
        "LSTM on its training text": Figure("trained .2f", lambda models: bits(models, "LSTM", of="train")),
        "LSTM's best step, near": Figure(
            "trained ,.0f",
            lambda *sweeps: [step for models in sweeps for step in of_cells(models, "best_step")["LSTM"]],
            needs=("char_models", "char_models_long"),
            allowed=(1500, 2499),
        ),
    },
    "reverse": {
        "whole sequences right at 10 digits, no attention": Figure(
            "trained .2f", lambda found: right(found, False, 10)
        ),
        "at 20 digits": Figure("trained .2f", lambda found: right(found, False, 20)),
        "at 40 digits": Figure("trained .2f", lambda found: right(found, False, 40)),
        "at 10 digits on the second machine": Figure("trained .2f", lambda found: right(found, False, 10)),
        "at 20 digits on the second machine": Figure("trained .2f", lambda found: right(found, False, 20)),
        "at 40 digits on the second machine": Figure("trained .2f", lambda found: right(found, False, 40)),
        "with attention at 10 digits, both machines": Figure("trained .2f", lambda found: right(found, True, 10)),
        "with attention at 20 digits, both machines": Figure("trained .2f", lambda found: right(found, True, 20)),
        "digits right with attention at 40 digits on the second machine, each seed": Figure(
            "trained .2f", lambda found: digits(found, True)
        ),
        "whole sequences there": Figure("trained .2f", lambda found: right(found, True, 40)),
    },
    "reverse_40_longer": {
        "digits right with attention, both machines": Figure("trained .2f", lambda found: digits(found, True)),
        "and without": Figure("trained .2f", lambda found: digits(found, False)),
    },
    "reverse_40_lr": {
        "digits right without attention": Figure("trained .2f", lambda found: digits(found, False)),
        "whole sequences right with attention": Figure("trained .2f", lambda found: right(found, True, 40)),
    },
    "reverse_40_6000": {
        "whole sequences right without attention, at most": Figure(
            "trained .2f", lambda found: right(found, False, 40), allowed=(0, 0.02)
        ),
        "digits right after 3,000 steps": Figure(
            "trained .2f", lambda found: digits(found, False), needs=("reverse_40_longer",)
        ),
        "digits right after 6,000 steps": Figure("trained .2f", lambda found: digits(found, False)),
    },
    "parallel": {
        "GFLOPs of GRU and attention": Figure(
            "exact .2f", lambda parallel: [parallel[name]["GFLOPs"] for name in ("GRU", "attention")]
        ),
        "times as long": Figure("timing .0f", lambda parallel: parallel["times_as_long"]),
        # Measured between the first and the last token of a longer sequence, a step a token.
        "sequential steps from token 1 to token 1,000": Figure(
            "exact .0f",
            lambda found: 1000 - (found["length"] - found["steps"]["recurrence, step by step"]["operations"]),
            needs=("path_length",),
        ),
    },
    "whole_post": {
        "models that all scripts train, about": Figure(
            "exact .0f", lambda *sweeps: sum(len(found["runs"]) for found in sweeps), needs=SWEEPS, allowed=(25, 34)
        )
    },
}


def needs(name: str, what: str) -> tuple[str, ...]:
    """The experiments that a figure is computed from."""
    return FIGURES[name][what].needs or (name,)


def compared(name: str, row: dict, folder: Path) -> Comparison:
    """A row of an experiment's in_prose list beside ours, which is made of what ``folder`` holds; as both are told."""
    what, theirs = row["what"], listed(row["figure"])
    figure, experiments = FIGURES[name][what], needs(name, what)
    paths = [folder / f"{each}.json" for each in experiments]
    if missing := [path.stem for path in paths if not path.exists()]:
        return Comparison(what, "–", told(figure, theirs), NOT_COMPARED, f"not run yet: {', '.join(missing)}")
    with results.understood(*paths):
        records = [results.load(each, folder) for each in experiments]
        ours = listed(figure.ours(*(record["results"] for record in records)))
        why = hindrance(figure, any(record["corpus"] for record in records)) or "no figures" * (not ours)
        verdict = NOT_COMPARED if why else judged(figure, ours, theirs)
        return Comparison(what, told(figure, ours), told(figure, theirs), verdict, why)


def listed(figure) -> list:
    return figure if isinstance(figure, list) else [figure]


def told(figure: Figure, values: list) -> str:
    """As the post prints them: the span of those of trained models. Words stay what they are."""
    kind, form = figure.printed.split()
    if any(isinstance(value, str) for value in values):
        return ", ".join(values)
    return span(values, form) if kind == "trained" else ", ".join(format(value, form) for value in values)


def hindrance(figure: Figure, reads_the_text: bool) -> str:
    """Why it can't be compared, if it can't."""
    kind = figure.printed.split()[0]
    if kind == "timing":
        return "a timing"
    return OTHER_TEXT if kind == "corpus" or (kind == "trained" and reads_the_text) else ""


def judged(figure: Figure, ours: list[float], theirs: list) -> str:
    """The verdict on what can be compared: the same as the post prints it, or else where the spans over seeds lie."""
    kind, form = figure.printed.split()
    ours = rounded(ours, form)
    if figure.allowed:
        low, high = figure.allowed
        same = low <= min(ours) and max(ours) <= high
    else:
        theirs = rounded(theirs, form)
        low, high = min(theirs), max(theirs)
        same = (min(ours), max(ours)) == (low, high) if kind == "trained" else ours == theirs
    if same:
        return SAME
    if kind != "trained":
        return DIFFERS
    return OVERLAP if min(ours) <= high and low <= max(ours) else OUTSIDE


def rounded(values: list[float], form: str) -> list[float]:
    return [float(format(value, form).replace(",", "")) for value in values]
