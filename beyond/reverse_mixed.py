"""Lengths that training never showed: models trained on 5 to 20 digits, scored from 5 to 30.

One model learns all lengths here, where reverse.py trains one for each. Every batch holds sequences of 5 to 20 digits,
each length as often as any other, the shorter ones padded. Beyond 20 neither model has practice: does it know how to
reverse, or only how to reverse what it has seen?

    python -m beyond.reverse_mixed          5 min

Prints, at the end:

        26     0.369      0.000     0.860      0.665
        27     0.341      0.000     0.842      0.635
        28     0.324      0.000     0.836      0.617
        29     0.307      0.000     0.813      0.565
        30     0.293      0.000     0.814      0.565

Attention goes on reversing where it has no practice, a little worse with each digit. Through one state whole sequences
are lost well before 20 digits; beyond 20, soon most digits are too.

Sources: as seq2seq.py, whose --lengths trains on other ranges.
"""

import math
from dataclasses import replace
from statistics import mean

import reverse
from lab import plots, script, trainings
from reverse import SEEDS
from seq2seq import Config, finished, line, train

LENGTHS = (5, 20)  # digits, the shortest and the longest in training
MODELS = {"no attention": False, "attention": True}
CONFIGS = [Config(LENGTHS, attends, seed) for attends in MODELS.values() for seed in SEEDS]

options, KINDS = reverse.options, reverse.KINDS


def measure(arguments):
    configs = [replace(config, device=arguments.device) for config in CONFIGS]
    return {"seeds": SEEDS, "runs": trainings.run(train, configs, arguments)}


def tell(found):
    """Both models on each length: the means of the seeds."""
    yield from (line(run) for run in found["runs"] if "diverged_at_step" in run)
    yield f"trained on {LENGTHS[0]} to {LENGTHS[1]} digits; mean of {len(SEEDS)} seeds"
    yield "            no attention           attention"
    yield "length    digits  sequences     digits  sequences right"
    of_model = [by_length(found, attends) for attends in MODELS.values()]
    for length in sorted(set().union(*of_model)):
        right = [lengths.get(length, [math.nan] * 2) for lengths in of_model]
        shown = "     ".join(f"{digits:.3f}      {sequences:.3f}" for digits, sequences in right)
        yield f"{length:6}     {shown}"


def by_length(found, attends):
    """The mean over seeds of the digits and of the whole sequences right, for each length."""
    same = [run["by_length"] for run in finished(found["runs"]) if run["attention"] == attends]
    names = ("digits_right", "sequences_right")
    return {
        seeds[0]["length"]: [mean(one[name] for one in seeds) for name in names] for seeds in zip(*same, strict=True)
    }


def draw(found):
    """Both kinds of accuracy against length; the lengths of training are shaded."""
    figure, panels = plots.subplots(1, 2, size=(11, 4.4), sharey=True)
    for name, attends in MODELS.items():
        mean_of = by_length(found, attends)
        for kind, axes in enumerate(panels):
            axes.plot(list(mean_of), [shares[kind] for shares in mean_of.values()], label=name)
    for axes, title in zip(panels, ("Digits right", "Whole sequences right"), strict=True):
        axes.axvspan(*LENGTHS, color="0.92", zorder=0)
        axes.set(title=title, xlabel="length (digits; shaded: as in training)", ylim=(-0.02, 1.03))
    panels[0].set_ylabel(f"share of 1,000, mean of {len(SEEDS)} seeds")
    panels[0].legend()
    return figure


if __name__ == "__main__":
    script.run(measure, tell, draw, options)
