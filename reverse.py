"""Sixteen models that reverse 5, 10, 20 or 40 digits, through one state or with attention.

What passes from the encoder to the decoder without attention is one state of 128 numbers, however long the sequence;
seq2seq.py trains both models. Two seeds each. The post's lines come first, then the same models and sequences more
closely: what the model would score if it read the true digits instead of its own, where in the answer it fails, which
sequences training had drawn, how much of attention's weight lies on the digit to be written, and the gradient's norm.
The table and the panels of the figure are shared with the sweeps that change one setting: they are half of this file.

    python reverse.py          9 min

Prints, first:

    length 5, no attention, seed 0: digits right 0.994, whole sequences right 0.984
    length 5, no attention, seed 1: digits right 0.997, whole sequences right 0.992
    length 5, attention   , seed 0: digits right 0.993, whole sequences right 0.980
    length 5, attention   , seed 1: digits right 0.999, whole sequences right 0.996
    length 10, no attention, seed 0: digits right 0.952, whole sequences right 0.789
    length 10, no attention, seed 1: digits right 0.973, whole sequences right 0.868
    length 10, attention   , seed 0: digits right 0.985, whole sequences right 0.959
    length 10, attention   , seed 1: digits right 0.992, whole sequences right 0.974
    length 20, no attention, seed 0: digits right 0.802, whole sequences right 0.171
    length 20, no attention, seed 1: digits right 0.828, whole sequences right 0.206
    length 20, attention   , seed 0: digits right 0.952, whole sequences right 0.864
    length 20, attention   , seed 1: digits right 0.925, whole sequences right 0.828
    length 40, no attention, seed 0: digits right 0.415, whole sequences right 0.000
    length 40, no attention, seed 1: digits right 0.402, whole sequences right 0.000
    length 40, attention   , seed 0: digits right 0.525, whole sequences right 0.139
    length 40, attention   , seed 1: digits right 0.730, whole sequences right 0.453

At length 5 there are only 100,000 sequences and training draws 128,000, so most of the test is known to it; "others"
counts the rest. Whole sequences right are the same whichever digits are read (see seq2seq.py).

The gradient's norm is clipped at 1; beyond/reverse_unclipped.py says why, and what is different without.

Sources: as seq2seq.py.
"""

from dataclasses import replace
from functools import partial

import seq2seq
from lab import plots, script, trainings
from seq2seq import Config, describe, finished, line, train

LENGTHS = [5, 10, 20, 40]
SEEDS = [0, 1]
SHOWN_LENGTH = 20  # whose positions and attention weights the figure shows
CONFIGS = [Config(length, attends, seed) for length in LENGTHS for attends in (False, True) for seed in SEEDS]
KINDS = seq2seq.KINDS
CAPTION = """\
The same sequences more closely: digits right when each step reads the true digit before it (teacher-forced), and when
it reads the model's own (free, as above), overall and by position; the share of sequences that training had drawn
(seen), and whole sequences right among the others; attention's weight on the digit to write, there or one position
later; the norm of the gradient before it is clipped."""


def options(parser):
    parser.add_jobs()
    parser.add_device()


def sweep(configs, arguments):
    """Train a list of models. ``details`` has what is a list for each run: its curves, positions and one example."""
    configs = [replace(config, device=arguments.device) for config in configs]
    records = trainings.run(train, configs, arguments, line)
    return {
        "seeds": sorted({config.seed for config in configs}),
        "runs": [{k: v for k, v in record.items() if not isinstance(v, list | dict)} for record in records],
        "details": [{k: v for k, v in record.items() if isinstance(v, list | dict)} for record in records],
    }


measure = partial(sweep, CONFIGS)


def with_details(found):
    """The runs that didn't diverge, each with its details."""
    return finished([run | details for run, details in zip(found["runs"], found["details"], strict=True)])


def tell(found):
    """A line for each model, and what lies behind the lines. The task is named where there are several."""
    with_task = len({run["task"] for run in found["runs"]}) > 1
    for run in found["runs"]:
        yield line(run, with_task)
    yield ""
    yield from table(with_details(found), with_task)


def table(runs, with_task):
    """What lies behind each line: the same model and the same sequences, looked at more closely."""
    names = [describe(run, with_task) for run in runs]
    width = max(map(len, names), default=0)
    yield CAPTION
    yield ""
    yield f"{'':{width}}    digits right      by position: free  seen  others  weight    gradient norm"
    yield f"{'':{width}}  forced   free   first middle   last           right           median largest"
    for name, run in zip(names, runs, strict=True):
        right = run["right_by_position"]
        others, weight = number(run["unseen_sequences_right"]), number(run.get("weight_on_answer"))
        yield (
            f"{name:{width}}   {run['teacher_forced_digits_right']:.3f}  {run['digits_right']:.3f}"
            f"   {right[0]:.3f}  {right[len(right) // 2]:.3f}  {right[-1]:.3f}"
            f"   {run['seen_in_training']:.3f}   {others}   {weight}"
            f"   {run['median_gradient_norm']:6.2f} {run['largest_gradient_norm']:7.2f}"
        )
    for length in sorted({run["length"] for run in runs if run["seen_in_training"] > 0.5}):
        yield f"Training had drawn most sequences of length {length}: there are only {10**length:,}."


def number(value):
    return "  -  " if value is None else f"{value:.3f}"


def draw(found):
    """Accuracy against length and by position; where attention looks; the gradient's norm at length 40."""
    figure, ((by_length, by_position), (looks, norms)) = plots.subplots(2, 2, size=(11, 8))
    runs = with_details(found)
    for attends, model in (False, "no attention"), (True, "attention"):
        own = {n: [run for run in runs if (run["length"], run["attention"]) == (n, attends)] for n in LENGTHS}
        own = {n: [run["sequences_right"] for run in same] for n, same in own.items() if same}
        mean = [sum(right) / len(right) for right in own.values()]
        (curve,) = by_length.plot(list(own), mean, label=f"{model}, mean of {len(SEEDS)} seeds")
        dots = [(n, share) for n, right in own.items() for share in right]
        x, y = [n for n, _ in dots], [share for _, share in dots]
        by_length.plot(x, y, "o" if attends else "s", color=curve.get_color(), label=f"{model}, each seed")
    by_length.set(title="Whole sequences right", xlabel="length (digits)", ylabel="share of 1,000", ylim=(-0.03, 1.03))
    by_length.set_xticks(LENGTHS)
    by_length.legend()

    shown = [run for run in runs if (run["length"], run["seed"]) == (SHOWN_LENGTH, SEEDS[0])]
    draw_positions(by_position, shown)
    if shown:
        by_position.legend()
    for run in shown:
        if run["attention"]:
            draw_weights(looks, run["example"])
    draw_norms(norms, [run for run in runs if run["length"] == LENGTHS[-1]])
    return figure


def draw_models(found):
    """Every model of a sweep: digits right by position, and the gradient's norm over training."""
    figure, (by_position, norms) = plots.subplots(1, 2, size=(12, 4.8))
    draw_positions(by_position, with_details(found))
    draw_norms(norms, with_details(found))
    return figure


def draw_positions(axes, runs):
    """Digits right at each position written: a line where the model reads its own, dots where it is teacher-forced."""
    for run in runs:
        positions = range(1, run["length"] + 1)
        (curve,) = axes.plot(positions, run["right_by_position"], label=name_of(run))
        forced = run["teacher_forced_right_by_position"]
        axes.plot(positions, forced, ".", color=curve.get_color(), markersize=4)
    axes.set(title="Digits right by position (dots: reading the true digits)", xlabel="position in the answer")
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


def draw_norms(axes, runs):
    """The largest gradient norm of each stretch of the training."""
    for run in runs:
        norms = run["curve"]["largest_gradient_norm"]
        steps = [run["curve"]["steps_per_point"] * (k + 1) for k in range(len(norms))]
        axes.semilogy(steps, norms, label=name_of(run), linewidth=1)
    axes.set(title="Gradient norm over training", xlabel="step", ylabel="largest in a hundredth of the steps")
    if runs:
        axes.legend()


def name_of(run):
    """A run in a legend: what the runs of one figure differ in."""
    text, seed, _ = describe(run).partition(f"seed {run['seed']}")
    return (" ".join(text.split()) + " " + seed).replace(" ,", ",")


if __name__ == "__main__":
    script.run(measure, tell, draw, options)
