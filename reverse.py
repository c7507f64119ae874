"""Sixteen models that reverse 5, 10, 20 or 40 digits, through one state or with attention.

What passes from the encoder to the decoder without attention is one state of 128 numbers, however long the sequence;
seq2seq.py has both models. Two seeds each. The post's lines come first, then the same models and sequences more
closely: what the model would score if it read the true digits instead of its own, where in the answer it fails, which
sequences training had drawn, how much of attention's weight lies on the digit to be written, and the gradient's norm.

    python reverse.py          12 min

Prints, first:

    length 5, no attention, seed 0: digits right 0.975, whole sequences right 0.933
    length 5, no attention, seed 1: digits right 0.996, whole sequences right 0.988
    length 5, attention   , seed 0: digits right 0.999, whole sequences right 0.995
    length 5, attention   , seed 1: digits right 0.996, whole sequences right 0.990
    length 10, no attention, seed 0: digits right 0.964, whole sequences right 0.847
    length 10, no attention, seed 1: digits right 0.973, whole sequences right 0.876
    length 10, attention   , seed 0: digits right 0.995, whole sequences right 0.972
    length 10, attention   , seed 1: digits right 0.986, whole sequences right 0.960
    length 20, no attention, seed 0: digits right 0.803, whole sequences right 0.178
    length 20, no attention, seed 1: digits right 0.835, whole sequences right 0.218
    length 20, attention   , seed 0: digits right 0.942, whole sequences right 0.850
    length 20, attention   , seed 1: digits right 0.906, whole sequences right 0.783
    length 40, no attention, seed 0: digits right 0.420, whole sequences right 0.000
    length 40, no attention, seed 1: digits right 0.394, whole sequences right 0.000
    length 40, attention   , seed 0: digits right 0.565, whole sequences right 0.190
    length 40, attention   , seed 1: digits right 0.634, whole sequences right 0.307

At length 5 there are only 100,000 sequences and training draws 128,000, so most of the test is known to it; "others"
counts the rest. Whole sequences right are the same whichever digits are read (see seq2seq.py).

The post doesn't say whether it clipped the gradient. With the norm clipped at 1, as in its character models, the
figures come out near the post's; reverse_40_unclipped.py shows what is different without.

Sources: as seq2seq.py.
"""

from itertools import chain

from lab import devices, plots, script, trainings
from lab.results import Results
from seq2seq import configuration, cost, describe, line, train

LENGTHS = [5, 10, 20, 40]
SEEDS = [0, 1]
SHOWN_LENGTH = 20  # whose positions and attention weights the figure shows
CONFIGS = [configuration(length, attends, seed) for length in LENGTHS for attends in (False, True) for seed in SEEDS]
CAPTION = """\
The same sequences more closely: digits right when each step reads the true digit before it (taught), and when
it reads the model's own (free, as above), overall and by place; the share of sequences that training had drawn
(seen), and whole sequences right among the others; attention's weight on the digit to write, there or one place later;
the norm of the gradient before it is clipped."""


def main(argv=None):
    """The post's sixteen models."""
    sweep("reverse", __doc__, CONFIGS, draw, argv)


def sweep(name, doc, configs, draw, argv=None, more=None):
    """Train a list of models, print a line for each and what lies behind the lines, and save it all.

    ``more``, where given, makes further lines of the records.
    """
    parser = script.Arguments(doc)
    trainings.add_arguments(parser)
    devices.add_arguments(parser)
    arguments = parser.parse_args(argv)
    devices.pick(arguments.device)
    seeds = sorted({config["seed"] for config in configs})
    results = Results(name, arguments, seeds=seeds, device=arguments.device)
    configs = [config | {"device": arguments.device} for config in configs]
    options = {"name": name, "describe": describe, "cost": cost}
    records = []
    for record in trainings.run(train, configs, jobs=arguments.jobs, cluster=arguments.cluster, **options):
        results.print(line(record))
        records.append(record)
    results.print()
    for row in chain(table(records), more(records) if more else ()):
        results.print(row)
    plain = [{k: v for k, v in record.items() if not isinstance(v, list | dict)} for record in records]
    lists = [{k: v for k, v in record.items() if isinstance(v, list | dict)} for record in records]
    results.record(runs=plain, details=lists)
    results.save(draw)


def table(records):
    """What lies behind each line: the same model and the same sequences, looked at more closely."""
    width = max(len(describe(record)) for record in records)
    yield CAPTION
    yield ""
    yield f"{'':{width}}    digits right      by place: free     seen  others  weight    gradient norm"
    yield f"{'':{width}}  taught   free   first middle   last           right           median largest"
    for r in records:
        places = r["right_by_position"]
        others, weight = number(r["unseen_sequences_right"]), number(r.get("weight_on_answer"))
        yield (
            f"{describe(r):{width}}   {r['taught_digits_right']:.3f}  {r['digits_right']:.3f}"
            f"   {places[0]:.3f}  {places[len(places) // 2]:.3f}  {places[-1]:.3f}"
            f"   {r['seen_in_training']:.3f}   {others}   {weight}"
            f"   {r['median_gradient_norm']:6.2f} {r['largest_gradient_norm']:7.2f}"
        )
    for length in sorted({r["length"] for r in records if r["seen_in_training"] > 0.5}):
        yield f"Training had drawn most sequences of length {length}: there are only {10**length:,}."


def number(value):
    return "  -  " if value is None else f"{value:.3f}"


def draw(results):
    """Accuracy against length; by place, free and taught; where attention looks; the gradient's norm at length 40."""
    figure, ((by_length, by_place), (looks, norms)) = plots.subplots(2, 2, size=(11, 8))
    runs, details = results["runs"], results["details"]
    for attends, model in (False, "no attention"), (True, "attention"):
        own = [run for run in runs if run["attention"] == attends]
        mean = [sum(run["sequences_right"] for run in own if run["length"] == n) / len(SEEDS) for n in LENGTHS]
        (curve,) = by_length.plot(LENGTHS, mean, label=f"{model}, mean of {len(SEEDS)} seeds")
        x, y = [run["length"] for run in own], [run["sequences_right"] for run in own]
        by_length.plot(x, y, "o" if attends else "s", color=curve.get_color(), label=f"{model}, each seed")
    by_length.set(title="Whole sequences right", xlabel="length (digits)", ylabel="share of 1,000", ylim=(-0.03, 1.03))
    by_length.set_xticks(LENGTHS)
    by_length.legend()

    shown = [i for i, run in enumerate(runs) if run["length"] == SHOWN_LENGTH and run["seed"] == SEEDS[0]]
    draw_places(by_place, runs, details, shown)
    by_place.legend()
    draw_weights(looks, details[shown[-1]]["example"])
    draw_norms(norms, runs, details, [i for i, run in enumerate(runs) if run["length"] == LENGTHS[-1]])
    return figure


def draw_models(results):
    """Every model of a sweep: digits right by place, free and taught, and the gradient's norm over training."""
    figure, (by_place, norms) = plots.subplots(1, 2, size=(12, 4.8))
    everything = range(len(results["runs"]))
    draw_places(by_place, results["runs"], results["details"], everything)
    draw_norms(norms, results["runs"], results["details"], everything)
    return figure


def draw_places(axes, runs, details, shown):
    """Digits right at each place written: a line where the model reads its own digits, dots where it is taught."""
    for i in shown:
        places = range(1, runs[i]["length"] + 1)
        (curve,) = axes.plot(places, details[i]["right_by_position"], label=name(runs[i]))
        axes.plot(places, details[i]["taught_right_by_position"], ".", color=curve.get_color(), markersize=4)
    axes.set(title="Digits right by place (dots: reading the true digits)", xlabel="place in the answer")
    axes.set(ylabel="share of 1,000", ylim=(0, 1.03))
    axes.xaxis.get_major_locator().set_params(integer=True)


def draw_weights(axes, example):
    """Where the decoder looked while it wrote each digit: often one state later, which has read the digit as well."""
    axes.imshow(example["weights"], cmap="Greys", vmin=0, vmax=1)
    axes.set_xticks(range(len(example["source"])), example["source"])
    axes.set_yticks(range(len(example["written"])), example["written"])
    axes.set(title="Attention's weights while writing one sequence", ylabel="digits written")
    axes.set_xlabel("digits read (a state has also read those before it)")
    axes.grid(False)


def draw_norms(axes, runs, details, shown):
    """The largest gradient norm of each stretch of the training."""
    for i in shown:
        curve = details[i]["curve"]
        norms = curve["largest_gradient_norm"]
        steps = [curve["steps_per_point"] * (k + 1) for k in range(len(norms))]
        axes.semilogy(steps, norms, label=name(runs[i]), linewidth=1)
    axes.set(title="Gradient norm over training", xlabel="step", ylabel="largest in a hundredth of the steps")
    axes.legend()


def name(run):
    """A run in a legend: what the runs of one figure differ in."""
    text, seed, _ = describe(run).partition(f"seed {run['seed']}")
    return (" ".join(text.split()) + " " + seed).replace(" ,", ",")


if __name__ == "__main__":
    script.run(main)
