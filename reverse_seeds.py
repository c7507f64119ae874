"""Five seeds for the lengths 10 and 20, so that the two that the post printed can be placed among others.

The settings of reverse.py; its seeds 0 and 1 are two of the five, with the same bits on the same machine.

    python reverse_seeds.py

No full run is saved in outputs/ yet.

Sources: as seq2seq.py.
"""

from statistics import mean

from lab import plots, script
from reverse import sweep
from seq2seq import configuration, describe

LENGTHS = [10, 20]
SEEDS = range(5)
SETTINGS = [(length, attends) for length in LENGTHS for attends in (False, True)]
CONFIGS = [configuration(*setting, seed) for setting in SETTINGS for seed in SEEDS]


def main(argv=None):
    """Five seeds for the rows that the post printed two of."""
    sweep("reverse_seeds", __doc__, CONFIGS, draw, argv, spread)


def spread(runs):
    """A line for each setting: mean, lowest and highest of its seeds."""
    yield ""
    yield f"over {len(SEEDS)} seeds: mean, and lowest to highest"
    for own in by_setting(runs):
        digits, sequences = told(own, "digits_right"), told(own, "sequences_right")
        yield f"{setting(own)}: digits right {digits}, whole sequences right {sequences}"


def by_setting(runs):
    """The runs of each setting, all seeds together."""
    return [[run for run in runs if (run["length"], run["attention"]) == setting] for setting in SETTINGS]


def setting(own):
    return describe(own[0]).partition(", seed")[0]


def told(own, name):
    values = [run[name] for run in own]
    return f"{mean(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def draw(results):
    """Whole sequences right, a dot for each seed."""
    figure, axes = plots.subplots(size=(8, 4))
    for row, own in enumerate(by_setting(results["runs"])):
        values = [run["sequences_right"] for run in own]
        axes.plot(values, [row] * len(values), "o", color=plots.COLOURS[own[0]["attention"]], alpha=0.6)
        axes.plot([mean(values)], [row], "|", color="black", markersize=16)
    labels = [" ".join(setting(own).split()) for own in by_setting(results["runs"])]
    axes.set_yticks(range(len(labels)), labels)
    axes.set(
        title="Five seeds each, and their mean", xlabel="whole sequences right, share of 1,000", xlim=(-0.02, 1.02)
    )
    axes.invert_yaxis()
    return figure


if __name__ == "__main__":
    script.run(main)
