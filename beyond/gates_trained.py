"""What training does to the reach of a gradient that `gates.py` measures in untrained cells, and to the gates.

Models are looked at twice, untrained and trained: character models (`charlm.py`) while they read windows of the
validation text, one-bit models (`recall.py`) while they read noise of the same length. Measured are the gradient that
the sum of the last state sends to the inputs 1, 10, 25 and 50 steps back, in the median window, and how the values of
the gate that keeps are distributed: an LSTM's forget gate, a GRU's update gate. Trainings are short, 500 steps of text
where the post takes 3,000. With --load nothing is trained: models that `charlm.py --save` wrote are looked at instead.

    python -m beyond.gates_trained          8 min
    python -m beyond.gates_trained --load FILE

Prints, first:

    500 steps of text: gradient reaching the input 1 / 10 / 25 / 50 steps back
    RNN, untrained                : 4.0e+00 / 1.2e-02 / 8.6e-07 / 1.6e-13
    RNN, trained                  : 6.7e+00 / 1.9e-01 / 1.6e-03 / 4.5e-07
    GRU, untrained                : 2.2e+00 / 1.9e-02 / 1.6e-05 / 2.0e-10
    GRU, trained                  : 6.1e+00 / 3.1e-01 / 5.6e-02 / 7.9e-03
    LSTM, untrained               : 1.1e+00 / 9.4e-03 / 7.1e-06 / 8.1e-11
    LSTM, trained                 : 3.7e+00 / 1.1e-01 / 5.3e-03 / 2.5e-04
    and the gate that keeps: 5% / 25% / 50% / 75% / 95% of its values are below
    GRU, untrained                : 0.374 / 0.450 / 0.501 / 0.553 / 0.625
    GRU, trained                  : 0.000 / 0.001 / 0.017 / 0.438 / 0.997
    LSTM, untrained               : 0.381 / 0.453 / 0.502 / 0.549 / 0.617
    LSTM, trained                 : 0.031 / 0.700 / 0.869 / 0.937 / 0.986

Five hundred steps of text drive the gates apart. Half of the LSTM's gates keep more than 0.869 of the state, where it
was 0.502; half of the GRU's keep less than 0.017, and one in twenty keeps more than 0.997. The gradient from fifty
steps back is more than a million times as large as before, the plain cell's too. Training on one bit with noise after
it opens the gates only where the forget bias had opened them before, and there the gradient gets smaller.

This script is longer than others because it trains models of two kinds and can look at saved ones besides.

Sources: as gates.py.
"""

from statistics import median

import torch
from torch import nn

import charlm
import corpus
from lab import devices, plots, script, trainings
from lab.errors import UserError
from layers import cells, char_files, char_rnn, one_bit, one_bit_training
from layers.one_bit_training import FIRST_EDITION

SEEDS = range(3)
TEXT_STEPS = 500  # of the character models; the post's take 3,000
DELAY = 20  # steps, of the one-bit models
TEXT_CELLS = ["RNN", "GRU", "LSTM"]
BIT_CELLS = ["RNN", "GRU", "LSTM", "LSTM, forget bias 1", "LSTM, forget bias 3"]
STEPS_BACK = [1, 10, 25, 50]
LENGTH, COUNT = charlm.WINDOW, 64  # characters of the windows that are looked at, or numbers; windows
QUANTILES = [0.05, 0.25, 0.5, 0.75, 0.95]
TEST_SEED = 2000  # of the noise that the one-bit models are looked at with, added to a training's own
GATED = nn.GRU, nn.LSTM

KINDS = {
    "*": "trained",
    "steps_back.*": "exact",
    "quantiles.*": "exact",
    "runs.*.task": "setting",
    "runs.*.cell": "setting",
}


def gradient_sizes(layer, x):
    """The gradient that the sum of the last state sends to the input 1, 2, … steps back: the median sequence's."""
    x = x.detach().requires_grad_()
    h, _ = cells.run(layer, x)  # (time, batch, hidden)
    (gradient,) = torch.autograd.grad(h[-1].sum(), x)
    return gradient.cpu().double().norm(dim=2).flip(0).median(dim=1).values  # (time,)


def look(layer, x):
    """All that is measured of a layer."""
    seen = {"gradient": gradient_sizes(layer, x)[: max(STEPS_BACK)].tolist()}
    if isinstance(layer, GATED):
        gate = one_bit.keeping_gate(layer, x).flatten().sort().values
        seen["gate"] = [gate[round(share * (len(gate) - 1))].item() for share in QUANTILES]
    return seen


def look_at(trained, settings, text):
    """What is seen in a character model, untrained and as it is, on windows of the validation text."""
    ids, device = torch.from_numpy(text.encode(text.validation)), trained.linear.weight.device
    starts = torch.arange(COUNT) * (len(ids) - LENGTH) // (COUNT - 1)
    windows = ids[torch.arange(LENGTH)[:, None] + starts].to(device)  # (time, batch)
    models = {"untrained": char_rnn.build(settings, text.size).to(device), "trained": trained}
    seen = {state: look(model.rnn, model.embedding(windows)) for state, model in models.items()}
    return {"cell": settings.cell, "seed": settings.seed} | seen


def train_on_text(config, checkpoint):
    training, text, ids, validation = charlm.set_up(config, checkpoint)
    charlm.learn(training, ids, validation)
    training.model.load_state_dict(training.best["model"])
    return look_at(training.model, config, text)


def train_on_bits(config, checkpoint):
    model = one_bit_training.build(config)
    generator = torch.Generator().manual_seed(TEST_SEED + config.seed)
    x, _ = one_bit.sequences(generator, LENGTH - 1, COUNT, config.noise, devices.trusted(config.device))
    untrained = look(model.layer, x)
    for _ in one_bit_training.descent(model, config, checkpoint):
        pass
    return {"cell": config.cell, "seed": config.seed, "untrained": untrained, "trained": look(model.layer, x)}


def train(config, checkpoint):
    return (train_on_text if isinstance(config, charlm.Config) else train_on_bits)(config, checkpoint)


def measure(arguments):
    if arguments.load and "steps" in arguments.changed:
        raise UserError("--steps: models to --load aren't trained")
    text, where = charlm.read(arguments, train=not arguments.load)
    if len(text.validation) < LENGTH:
        has = script.counted(len(text.validation), "character")
        raise UserError(f"the validation text has {has}: a window takes {LENGTH}")
    if arguments.load:
        device = devices.trusted(arguments.device)
        loaded = [char_files.load(file, text) for file in arguments.load]
        runs = [
            {"task": "as saved" + ", trained on another text" * about.other_text}
            | look_at(model.to(device), about, text)
            for model, about in loaded
        ]
    else:
        where["device"] = device = arguments.device
        on_text = [charlm.Config(c, seed, steps=arguments.steps, **where) for c in TEXT_CELLS for seed in SEEDS]
        on_bits = [
            one_bit_training.Config(c, DELAY, seed, **FIRST_EDITION, device=device) for c in BIT_CELLS for seed in SEEDS
        ]
        tasks = [f"{arguments.steps:,} steps of text"] * len(on_text) + [f"one bit, {DELAY} steps"] * len(on_bits)
        records = trainings.run(train, on_text + on_bits, arguments)
        runs = [{"task": task} | what_was_seen(record) for task, record in zip(tasks, records, strict=True)]
    about = {
        "seeds": sorted({run["seed"] for run in runs}),
        "corpus": text.fingerprint,
        "steps_back": STEPS_BACK,
        "quantiles": QUANTILES,
    }
    return about | {"medians": medians(runs), "runs": runs}


def what_was_seen(record):
    """A record without its settings, which that of a training that diverged has."""
    wanted = ("cell", "seed", "untrained", "trained", "diverged_at_step")
    return {name: record[name] for name in wanted if name in record}


def medians(runs):
    """Over the seeds, of each number: task → cell and state → what was measured."""
    found = {}
    for task, cell in dict.fromkeys((run["task"], run["cell"]) for run in runs if "trained" in run):
        own = [run for run in runs if (run["task"], run["cell"]) == (task, cell) and "trained" in run]
        for state in ("untrained", "trained"):
            found.setdefault(task, {})[f"{cell}, {state}"] = {
                what: [median(values) for values in zip(*(run[state][what] for run in own), strict=True)]
                for what in own[0][state]
            }
    return found


def tell(found):
    """For each kind of model: cell by cell, untrained beside trained, the medians over seeds."""
    steps_back = found["steps_back"]
    shares = " / ".join(f"{share:.0%}" for share in found["quantiles"])
    for task, models in found["medians"].items():
        yield f"{task}: gradient reaching the input {' / '.join(map(str, steps_back))} steps back"
        for model, seen in models.items():
            sizes = (seen["gradient"][steps - 1] for steps in steps_back)
            yield f"{model:<30}: {' / '.join(f'{size:.1e}' for size in sizes)}"
        yield f"and the gate that keeps: {shares} of its values are below"
        for model, seen in models.items():
            if "gate" in seen:
                yield f"{model:<30}: {' / '.join(f'{value:.3f}' for value in seen['gate'])}"
        yield ""


def draw(found):
    """For each kind of model the gradient on its way back, dashed before training, and the gate's distribution."""
    tasks = found["medians"]
    figure, grid = plots.subplots(len(tasks), 2, size=(10.5, 4.2 * len(tasks)), squeeze=False)
    for (task, models), (left, right) in zip(tasks.items(), grid, strict=True):
        cells_seen = list(dict.fromkeys(model.rpartition(", ")[0] for model in models))
        for model, seen in models.items():
            cell, _, state = model.rpartition(", ")
            number = cells_seen.index(cell)
            style = {
                "color": plots.COLOURS[number],
                "marker": plots.MARKERS[number],
                "markersize": 4,
                "linestyle": "-" if state == "trained" else "--",
                "label": model,
            }
            left.semilogy(range(1, 1 + len(seen["gradient"])), seen["gradient"], markevery=(number, 8), **style)
            if "gate" in seen:
                right.plot(seen["gate"], found["quantiles"], **style)
        left.set(xlabel="steps back", ylabel="gradient at the input", title=task)
        right.set(xlabel="gate that keeps the old state", ylabel="share of its values below", xlim=(0, 1))
        for axes in (left, right):
            axes.legend(fontsize=8, handlelength=3.5)  # shows a dash on both sides of the marker
    return figure


def options(parser):
    parser.add_argument(
        "--steps", type=script.positive_int, default=TEXT_STEPS, metavar="N", help="of training on text"
    )
    parser.add_argument(
        "--load",
        nargs="+",
        metavar="FILE",
        type=script.file,
        help="train nothing: look at models that charlm.py --save wrote",
    )
    corpus.add_argument(parser)
    parser.add_jobs()
    parser.add_device()


if __name__ == "__main__":
    script.run(measure, tell, draw, options)
