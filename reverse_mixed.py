"""Lengths that training never showed: models trained on 5 to 20 digits, scored from 5 to 30.

One model has to do for all lengths here, where reverse.py trains one for each: every batch holds sequences of 5 to 20
digits, each length as often as any other, the shorter ones padded. Beyond 20 neither model has practice: does it know
how to reverse, or only how to reverse what it has seen?

    python reverse_mixed.py          4 min

Prints, at the end:

        26     0.369      0.000     0.859      0.685
        27     0.341      0.000     0.844      0.649
        28     0.318      0.000     0.816      0.609
        29     0.303      0.000     0.817      0.589
        30     0.292      0.000     0.793      0.553

Attention goes on reversing where it has no practice, only worse with each digit; one state, which has lost whole
sequences well before 20 digits, ends there.

Sources: as seq2seq.py, whose --lengths trains on other ranges.
"""

from statistics import mean

from lab import devices, plots, script, trainings
from lab.results import Results
from reverse import SEEDS
from seq2seq import configuration, cost, describe, train

LENGTHS = [5, 20]  # digits, the shortest and the longest in training
MODELS = {"no attention": False, "attention": True}
CONFIGS = [configuration(LENGTHS, attends, seed) for attends in MODELS.values() for seed in SEEDS]


def main(argv=None):
    """Both models on mixed lengths."""
    parser = script.Arguments(__doc__)
    trainings.add_arguments(parser)
    devices.add_arguments(parser)
    arguments = parser.parse_args(argv)
    devices.pick(arguments.device)
    results = Results("reverse_mixed", arguments, seeds=SEEDS, device=arguments.device)
    configs = [config | {"device": arguments.device} for config in CONFIGS]
    options = {"jobs": arguments.jobs, "cluster": arguments.cluster, "describe": describe, "cost": cost}
    runs = list(trainings.run(train, configs, name="reverse_mixed", **options))
    results.print(f"trained on {LENGTHS[0]} to {LENGTHS[1]} digits; mean of {len(SEEDS)} seeds")
    results.print("            no attention           attention")
    results.print("length    digits  sequences     digits  sequences right")
    of_model = {name: by_length(runs, attends) for name, attends in MODELS.items()}
    for length in of_model["attention"]:
        right = [lengths[length] for lengths in of_model.values()]
        shown = "     ".join(f"{digits:.3f}      {sequences:.3f}" for digits, sequences in right)
        results.print(f"{length:6}     {shown}")
    results.record(runs=runs)
    results.save(draw)


def by_length(runs, attends):
    """The mean over seeds of the digits and of the whole sequences right, for each length."""
    same = [run["by_length"] for run in runs if run["attention"] == attends]
    names = ("digits_right", "sequences_right")
    return {
        seeds[0]["length"]: [mean(one[name] for one in seeds) for name in names] for seeds in zip(*same, strict=True)
    }


def draw(results):
    """Both kinds of accuracy against length; the lengths of training are shaded."""
    figure, panels = plots.subplots(1, 2, size=(11, 4.4), sharey=True)
    for name, attends in MODELS.items():
        mean_of = by_length(results["runs"], attends)
        for place, axes in enumerate(panels):
            axes.plot(list(mean_of), [shares[place] for shares in mean_of.values()], label=name)
    for axes, title in zip(panels, ("Digits right", "Whole sequences right"), strict=True):
        axes.axvspan(*LENGTHS, color="0.92", zorder=0)
        axes.set(title=title, xlabel="length (digits; shaded: as in training)", ylim=(-0.02, 1.03))
    panels[0].set_ylabel(f"share of 1,000, mean of {len(SEEDS)} seeds")
    panels[0].legend()
    return figure


if __name__ == "__main__":
    script.run(main)
