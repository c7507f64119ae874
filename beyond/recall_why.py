"""Why an LSTM doesn't learn to remember one bit without its bias, and what remembering does to the gradient.

Two questions that recall.py leaves. The trainings are its own (layers/one_bit_training.py).

Why does the LSTM, as torch draws it, fail at a delay of 20 steps, where a plain RNN doesn't? It is trained as there,
two seeds at each rate, and then with one thing changed: no noise after the bit, a tenth of the noise, eight times as
many sequences a step, a forget bias of 1. Beside it stand the RNN and the GRU. Looked at are the gradient that reaches
the state that has just read the bit, the gate that keeps, and how much of an untrained model's first step is about the
bit at all.

What does it cost to remember? A plain RNN whose recurrent weights start at the identity sends the gradient back almost
whole. It is trained for 600 steps, not ending when it has solved the task. Bengio, Simard and Frasconi (1994) put the
dilemma: to store a bit robustly the state has to fall back to where it was after every disturbance, and what makes
disturbances shrink makes gradients shrink.

    python -m beyond.recall_why          not run at full length yet; about 5 min by the time of a step

Sources: as recall.py; Bengio, Simard and Frasconi, "Learning long-term dependencies with gradient descent is
difficult" (1994).
"""

from statistics import median

from beyond.recall import RATES, SEEDS, briefly, solved
from lab import plots, script, trainings
from layers.one_bit import NOISE
from layers.one_bit_training import BATCH, SETTINGS, Config, train

DELAY, STEPS = 20, 6000
TRIED = 2  # seeds at each rate
CASES = {  # the cell, and what differs from recall.py
    "RNN": ("RNN", {}),
    "GRU": ("GRU", {}),
    "LSTM": ("LSTM", {}),
    "LSTM, no noise": ("LSTM", {"noise": 0.0}),
    "LSTM, a tenth of the noise": ("LSTM", {"noise": NOISE / 10}),
    "LSTM, 8 times the batch": ("LSTM", {"batch": 8 * BATCH}),
    "LSTM, forget bias 1": ("LSTM, forget bias 1", {}),
}
ROBUST, ROBUST_DELAYS, ROBUST_SEEDS = "RNN, identity", [5, 10, 20, 40, 80], 3
ROBUST_SETTINGS = {"learning_rate": 0.001, "steps": 600, "batch": 64, "stops": False}  # recall.py's first edition
UNDERFLOW = 1e-46  # where the figure shows a gradient that float32 can't hold

KINDS = {"*": "trained"}
KINDS |= {f"*.{name}": "setting" for name in SETTINGS}


def measure(arguments):
    steps = min(arguments.steps, STEPS)
    cases = [
        (name, Config(cell, DELAY, seed, rate, steps, device=arguments.device, **changed))
        for name, (cell, changed) in CASES.items()
        for rate in RATES
        for seed in SEEDS[:TRIED]
    ]
    robust = [
        Config(ROBUST, delay, seed, device=arguments.device, **ROBUST_SETTINGS)
        for delay in ROBUST_DELAYS
        for seed in SEEDS[:ROBUST_SEEDS]
    ]
    records = trainings.run(train, [config for _, config in cases] + robust, arguments, line=briefly)
    runs = [{"case": name} | record for (name, _), record in zip(cases, records, strict=False)]
    return {"seeds": SEEDS[:ROBUST_SEEDS], "runs": runs, "robust": records[len(cases) :]}


def of_case(found, case):
    return [run for run in found["runs"] if run["case"] == case and "accuracy" in run]


def of_delay(found, delay):
    return [run for run in found["robust"] if run["delay"] == delay and "accuracy" in run]


def size(number):
    return f"{number:.1e}" if number else "underflow"


def medians(runs, *names):
    return [median(run[name] for run in runs) for name in names]


def tell(found):
    rates = " / ".join(f"{rate:g}" for rate in RATES)
    yield f"a delay of {DELAY}: of {TRIED} seeds those that solved it at rates {rates}; the bit's share of the gradient"
    yield "before training; gradient at h_1 before -> after; mean of the gate that keeps before -> after"
    for case in CASES:
        if runs := of_case(found, case):
            counts = [len(solved([run for run in runs if run["learning_rate"] == rate])) for rate in RATES]
            share, before, after = medians(runs, "share_of_the_bit", "gradient_before", "gradient_after")
            told = f"{case:<27}: {' / '.join(map(str, counts))}; {share:.0e}; {size(before)} -> {size(after)}"
            if runs[0]["kept_before"] is not None:
                told += "; {:.2f} -> {:.2f}".format(*medians(runs, "kept_before", "kept_after"))
            yield told
    yield ""
    yield f"{ROBUST}, {ROBUST_SETTINGS['steps']} steps: right; gradient at h_1 before -> after training"
    for delay in ROBUST_DELAYS:
        if runs := of_delay(found, delay):
            right, before, after = medians(runs, "accuracy", "gradient_before", "gradient_after")
            yield f"delay {delay:>3}: {right:.3f}; {size(before)} -> {size(after)}"


def draw(found):
    """Left: the gradient along the LSTM's trainings, with and without noise. Right: the identity-started RNN's."""
    figure, (left, right) = plots.subplots(1, 2, size=(11.0, 4.6))
    for number, case in enumerate(CASES):
        for first, run in enumerate(of_case(found, case)):
            draw_curve(left, run["curve"], number, None if first else case)
    for number, delay in enumerate(ROBUST_DELAYS):
        for first, run in enumerate(of_delay(found, delay)):
            curve = {name: [run[f"gradient_{name}"]] for name in ("before", "after")}
            sizes = [*curve["before"], *run["curve"]["gradient"], *curve["after"]]
            steps = [0, *run["curve"]["step"], run["steps"]]
            draw_curve(right, {"step": steps, "gradient": sizes}, number, None if first else f"delay {delay}")
    left.set_title(f"What reaches the bit along the trainings, a delay of {DELAY}")
    right.set_title(f"{ROBUST}, trained on when the task is solved")
    for axes in (left, right):
        axes.set(yscale="log", xlabel="step", ylabel="size of the gradient at the first state")
        axes.legend(fontsize=8)
    return figure


def draw_curve(axes, curve, number, label):
    style = {"color": plots.COLOURS[number], "linestyle": plots.DASHES[number], "linewidth": 1.2, "label": label}
    axes.plot(curve["step"], [value or UNDERFLOW for value in curve["gradient"]], **style)


def options(parser):
    parser.add_argument("--steps", type=script.positive_int, default=STEPS, metavar="N", help="at most, of a training")
    parser.add_jobs()
    parser.add_device()


if __name__ == "__main__":
    script.run(measure, tell, draw, options)
