"""Five seeds for the lengths 10 and 20: where among them are the two that the post printed?

The settings of reverse.py; its seeds 0 and 1 are two of the five, with the same bits on the same machine.

    python -m beyond.reverse_seeds          8 min

Prints, at the end:

    over 5 seeds: mean, and lowest to highest
    length 10, no attention: digits right 0.972 (0.952 to 0.982), whole sequences right 0.873 (0.789 to 0.915)
    length 10, attention   : digits right 0.988 (0.982 to 0.992), whole sequences right 0.965 (0.952 to 0.974)
    length 20, no attention: digits right 0.816 (0.802 to 0.828), whole sequences right 0.197 (0.171 to 0.232)
    length 20, attention   : digits right 0.931 (0.917 to 0.952), whole sequences right 0.829 (0.797 to 0.864)

Of the post's eight shares of whole sequences six lie in these ranges, one is 0.023 below and one 0.005 above.

Sources: as seq2seq.py.
"""

from functools import partial
from statistics import mean

import reverse
from lab import plots, results, script
from reverse import with_details
from seq2seq import Config, describe

LENGTHS = [10, 20]
SEEDS = range(5)
SETTINGS = [(length, attends) for length in LENGTHS for attends in (False, True)]
CONFIGS = [Config(*setting, seed) for setting in SETTINGS for seed in SEEDS]

measure = partial(reverse.sweep, CONFIGS)
options, KINDS = reverse.options, reverse.KINDS


def tell(found):
    """A line for each setting after those of each training: mean, lowest and highest of its seeds."""
    yield from reverse.tell(found)
    yield ""
    yield f"over {len(SEEDS)} seeds: mean, and lowest to highest"
    for own in by_setting(with_details(found)):
        digits, sequences = span(own, "digits_right"), span(own, "sequences_right")
        yield f"{setting(own)}: digits right {digits}, whole sequences right {sequences}"


def by_setting(runs):
    """The runs of each setting, all seeds together."""
    groups = [[run for run in runs if (run["length"], run["attention"]) == setting] for setting in SETTINGS]
    return [own for own in groups if own]


def setting(own):
    return describe(own[0]).partition(", seed")[0]


def span(own, name):
    values = [run[name] for run in own]
    return f"{mean(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def draw(found):
    """Whole sequences right, a dot for each seed, and the two that the post printed."""
    published = results.published()["reverse"]["runs"]
    figure, axes = plots.subplots(size=(8, 3.2))
    groups = by_setting(with_details(found))
    for row, own in enumerate(groups):
        posts = [run for run in published if all(run[name] == own[0][name] for name in ("length", "attention"))]
        values, theirs = ([run["sequences_right"] for run in runs] for runs in (own, posts))
        labels = ["a seed", "mean of five", "the post's two"] if row == 0 else [None] * 3
        axes.plot(values, [row] * len(values), "o", color=plots.COLOURS[0], alpha=0.6, label=labels[0])
        axes.plot([mean(values)], [row], "|", color="black", markersize=16, label=labels[1])
        axes.plot(theirs, [row] * len(theirs), "x", color=plots.COLOURS[1], markersize=9, label=labels[2])
    axes.legend(loc="center")
    labels = [" ".join(setting(own).split()) for own in groups]
    axes.set_yticks(range(len(labels)), labels)
    axes.set(
        title="Five seeds each, and the two that the post printed",
        xlabel="whole sequences right, share of 1,000",
        xlim=(-0.02, 1.02),
    )
    axes.invert_yaxis()
    return figure


if __name__ == "__main__":
    script.run(measure, tell, draw, options)
