"""Why an LSTM doesn't learn to remember one bit without its bias, and what remembering does to the gradient.

Two questions that recall.py leaves. The trainings are its own (layers/one_bit_training.py).

What keeps the LSTM, as torch draws it, from learning a delay of 20 steps soon? It is trained as there,
two seeds at each rate, and then with one thing changed: no noise after the bit, a tenth of the noise, eight times as
many sequences a step, a forget bias of 1. Beside it stand the RNN and the GRU. Looked at are the gradient that reaches
the state that has just read the bit, the gate that keeps, and how much of an untrained model's first step is about the
bit at all.

What does it cost to remember? Bengio, Simard and Frasconi (1994) put the dilemma: to store a bit robustly the state has
to fall back to where it was after every disturbance, and what makes disturbances shrink makes gradients shrink. A plain
RNN whose recurrent weights start at the identity sends the gradient back almost whole. It is trained for 600 steps, not
ending when it has solved the task, and beside it an LSTM whose forget bias is 3. The loss's own gradient shrinks in any
model that is right and sure of it. So of these the gradient of the logit is told as well, which doesn't.

    python -m beyond.recall_why          3 min

Prints, after two lines of what stands where:

    RNN                        : 2 / 2 / 2; 9e-05; 2.1e-06 -> 1.8e-03
    GRU                        : 2 / 1 / 2; 1e-04; 1.6e-05 -> 1.1e-04; 0.50 -> 0.46
    LSTM                       : 0 / 0 / 0; 6e-05; 5.3e-06 -> 1.3e-09; 0.49 -> 0.36
    LSTM, no noise             : 2 / 2 / 0; 6e-05; 5.3e-06 -> 7.3e-07; 0.49 -> 0.66
    LSTM, a tenth of the noise : 2 / 0 / 0; 6e-05; 5.3e-06 -> 7.2e-10; 0.49 -> 0.36
    LSTM, 8 times the batch    : 2 / 0 / 0; 4e-04; 5.3e-06 -> 3.8e-10; 0.49 -> 0.34
    LSTM, forget bias 1        : 2 / 2 / 2; 2e-02; 1.8e-03 -> 1.5e-05; 0.73 -> 0.82

    600 steps: right; gradient at h_1 before -> after training, the logit's; the loss's
    RNN, identity       delay   5: 1.000; 6.1e-01 -> 5.8e-01; 3.0e-01 -> 2.7e-04
    RNN, identity       delay  10: 1.000; 6.1e-01 -> 9.4e-04; 3.1e-01 -> 5.8e-07
    RNN, identity       delay  20: 1.000; 6.1e-01 -> 7.6e-14; 3.1e-01 -> 1.1e-16
    RNN, identity       delay  40: 1.000; 6.1e-01 -> 6.9e-27; 3.1e-01 -> 7.9e-30
    RNN, identity       delay  80: 1.000; 6.1e-01 -> underflow; 3.1e-01 -> underflow
    LSTM, forget bias 3 delay   5: 1.000; 1.8e-01 -> 1.3e+00; 9.3e-02 -> 2.1e-03
    LSTM, forget bias 3 delay  10: 1.000; 1.8e-01 -> 2.8e-01; 8.8e-02 -> 6.6e-04
    LSTM, forget bias 3 delay  20: 1.000; 2.0e-01 -> 1.9e-02; 9.8e-02 -> 4.7e-05
    LSTM, forget bias 3 delay  40: 1.000; 2.1e-01 -> 6.9e-03; 1.1e-01 -> 2.5e-05
    LSTM, forget bias 3 delay  80: 1.000; 1.5e-01 -> 5.2e-03; 7.3e-02 -> 2.6e-05

It is noise that makes the LSTM slow, not a lack of gradient alone: about as little arrives in the plain RNN, which
learns it. Without noise, with a tenth of it or with eight times as many sequences a step some rate serves the LSTM too.
To remember for ten steps and more is to contract, as Bengio and others proved: the RNN that is right in 1,000 of 1,000
sequences 80 steps later has no gradient of its answer left that float32 could hold. The LSTM keeps 3 % or more.

Sources: as recall.py; Bengio, Simard and Frasconi, "Learning long-term dependencies with gradient descent is
difficult" (1994).
"""

from statistics import median

import torch

from beyond.recall import RATES, SEEDS, briefly, solved
from lab import devices, plots, script, trainings
from layers import one_bit_training
from layers.one_bit import NOISE, gradient_at_first_state, sequences
from layers.one_bit_training import BATCH, FIRST_EDITION, SETTINGS, TEST_SEED, Config

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
ROBUST, ROBUST_DELAYS, ROBUST_SEEDS = ["RNN, identity", "LSTM, forget bias 3"], [5, 10, 20, 40, 80], 3
EVERY = 25  # steps between points of their curves
UNDERFLOW = 1e-46  # where the figure shows a gradient that float32 can't hold

KINDS = {"*": "trained"}
KINDS |= {f"*.{name}": "setting" for name in SETTINGS}


def train(config, checkpoint):
    """A training of recall.py; of one that doesn't end when it is solved, the gradient of the logit too."""
    if config.stops:
        return one_bit_training.train(config, checkpoint)
    fresh = torch.Generator().manual_seed(TEST_SEED + config.seed)
    x, bit = sequences(fresh, config.delay, config.batch, config.noise, devices.trusted(config.device))
    model = one_bit_training.build(config)
    before = reach_back(model, x, bit)
    training = one_bit_training.descent(model, config, checkpoint)
    for step in training:
        if step % EVERY == 0:
            training.log(step=step, logit=reach_back(model, x, bit)["logit"])
    after = reach_back(model, x, bit)
    return trainings.settings(config) | {
        "seconds": training.seconds,
        "accuracy": one_bit_training.share_right(model, fresh, config, one_bit_training.TESTED),
        **{f"{name}_before": value for name, value in before.items()},
        **{f"{name}_after": value for name, value in after.items()},
        "curve": {name: training.curve.get(name, []) for name in ("step", "logit")},
    }


def reach_back(model, x, bit):
    """The size of the gradient at the state that has just read the bit, of the loss and of the logit: means."""
    first = [part.detach().requires_grad_() for part in model.first(x)]
    gradients = torch.autograd.grad(model(x[1:], first).sum(), first)
    logit = torch.cat(gradients, dim=2)[0].cpu().double().norm(dim=1).mean().item()
    return {"gradient": gradient_at_first_state(model, x, bit), "logit": logit}


def measure(arguments):
    steps = min(arguments.steps, STEPS)
    cases = [
        (name, Config(cell, DELAY, seed, rate, steps, device=arguments.device, **changed))
        for name, (cell, changed) in CASES.items()
        for rate in RATES
        for seed in SEEDS[:TRIED]
    ]
    robust = [
        Config(cell, delay, seed, device=arguments.device, **FIRST_EDITION)
        for cell in ROBUST
        for delay in ROBUST_DELAYS
        for seed in SEEDS[:ROBUST_SEEDS]
    ]
    records = trainings.run(train, [config for _, config in cases] + robust, arguments, line)
    runs = [{"case": name} | record for (name, _), record in zip(cases, records, strict=False)]
    return {"seeds": SEEDS[:ROBUST_SEEDS], "runs": runs, "robust": records[len(cases) :]}


def of_case(found, case):
    return [run for run in found["runs"] if run["case"] == case and "accuracy" in run]


def robust_of(found, cell, delay):
    return [run for run in found["robust"] if (run["cell"], run["delay"]) == (cell, delay) and "accuracy" in run]


def line(run):
    """What is told of a training as soon as it ends."""
    if "solved_at" in run:
        return briefly(run)
    return f"{run['cell']}, delay {run['delay']}, seed {run['seed']}: {run['accuracy']:.3f} right"


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
    yield f"{FIRST_EDITION['steps']} steps: right; gradient at h_1 before -> after training, the logit's; the loss's"
    for cell in ROBUST:
        for delay in ROBUST_DELAYS:
            if runs := robust_of(found, cell, delay):
                (right,) = medians(runs, "accuracy")
                logit, loss = (medians(runs, f"{of}_before", f"{of}_after") for of in ("logit", "gradient"))
                told = "; ".join(f"{size(before)} -> {size(after)}" for before, after in (logit, loss))
                yield f"{cell:<19} delay {delay:>3}: {right:.3f}; {told}"


def draw(found):
    """The gradient along trainings: left of the cases, right of the two that go on when the task is solved."""
    figure, panels = plots.subplots(1, 1 + len(ROBUST), size=(15.0, 4.6))
    for number, case in enumerate(CASES):
        for first, run in enumerate(of_case(found, case)):
            curve = run["curve"]
            draw_curve(panels[0], curve["step"], curve["gradient"], number, None if first else case)
    for cell, axes in zip(ROBUST, panels[1:], strict=True):
        for number, delay in enumerate(ROBUST_DELAYS):
            for first, run in enumerate(robust_of(found, cell, delay)):
                steps, sizes = [0, *run["curve"]["step"]], [run["logit_before"], *run["curve"]["logit"]]
                draw_curve(axes, steps, sizes, number, None if first else f"delay {delay}")
        axes.set(title=f"{cell}, trained on when it is solved", ylabel="gradient of the logit at the first state")
    panels[0].set_title(f"What reaches the bit, a delay of {DELAY}")
    panels[0].set_ylabel("gradient of the loss at the first state")
    for axes in panels:
        axes.set(yscale="log", xlabel="step")
        axes.legend(fontsize=8)
    return figure


def draw_curve(axes, steps, sizes, number, label):
    style = {"color": plots.COLOURS[number], "linestyle": plots.DASHES[number], "linewidth": 1.2, "label": label}
    axes.plot(steps, [size or UNDERFLOW for size in sizes], **style)


def options(parser):
    parser.add_argument(
        "--steps", type=script.positive_int, default=STEPS, metavar="N", help="of a case's training, at most"
    )
    parser.add_jobs()
    parser.add_device()


if __name__ == "__main__":
    script.run(measure, tell, draw, options)
