"""What training does to the reach of a gradient that `gates.py` measures in untrained cells, and to the gates.

Character models (`charlm.py`) read windows of the validation text, one-bit models (`recall.py`) noise of the same
length, untrained and trained: the gradient that the sum of the last state sends to the inputs 1, 10, 25 and 50 steps
back, in the median window, and how the values of the gate that keeps are distributed, an LSTM's forget gate or a GRU's
update gate. Models are trained here for a short while, 500 steps of text where the post takes 3,000; --load looks at
models that `charlm.py --save` wrote instead.

    python gates_trained.py          8 min
    python gates_trained.py --load FILE

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

Five hundred steps of text drive the gates apart: half of the LSTM's keep more than 0.869 of the state instead of 0.502,
half of the GRU's less than 0.017 and one in twenty more than 0.997; and the gradient from fifty steps back is more than
a million times as large, the plain cell's too. One bit with noise after it opens gates only where the forget bias had
done so before, and there the gradient gets smaller.

Sources: as gates.py.
"""

import tempfile
from pathlib import Path
from statistics import median

import torch
from torch import nn

import cells
import charlm
import corpus
import recall
from lab import plots, script, trainings
from lab.results import Results

SEEDS = range(3)
TEXT_STEPS = 500  # of the character models; the post's take 3,000
GAP = 20  # steps, of the one-bit models
TEXT_CELLS = ["RNN", "GRU", "LSTM"]
BIT_CELLS = ["RNN", "GRU", "LSTM", "LSTM, forget bias 1", "LSTM, forget bias 3"]
STEPS_BACK = [1, 10, 25, 50]
LENGTH, COUNT = charlm.WINDOW, 64  # characters of the windows that are looked at, or numbers; windows
QUANTILES = [0.05, 0.25, 0.5, 0.75, 0.95]
TEST_SEED = 2000  # of the noise that the one-bit models are looked at with, added to a training's own
GATES = {nn.GRU: "update gate", nn.LSTM: "forget gate"}


def gradient_sizes(layer, x):
    """The gradient that the sum of the last state sends to the input 1, 2, … steps back: the median sequence's."""
    x = x.detach().requires_grad_()
    h, _ = cells.run(layer, x)  # (time, batch, hidden)
    (gradient,) = torch.autograd.grad(h[-1].sum(), x)
    return gradient.double().norm(dim=2).flip(0).median(dim=1).values  # (time,)


@torch.no_grad()
def keeping_gate(layer, x):
    """The gate that keeps, an LSTM's forget or a GRU's update gate, at every step: (time, batch, hidden)."""
    h, _ = cells.run(layer, x)
    before = torch.cat([torch.zeros_like(h[:1]), h[:-1]])
    second = slice(layer.hidden_size, 2 * layer.hidden_size)  # of three or four, in torch's order
    from_input = nn.functional.linear(x, layer.weight_ih_l0[second], layer.bias_ih_l0[second])
    return torch.sigmoid(
        from_input + nn.functional.linear(before, layer.weight_hh_l0[second], layer.bias_hh_l0[second])
    )


def look(layer, x):
    """All that is measured of a layer."""
    seen = {"gradient": gradient_sizes(layer, x)[: max(STEPS_BACK)].tolist()}
    if type(layer) in GATES:
        gate = keeping_gate(layer, x).flatten().sort().values
        seen["gate"] = [gate[round(share * (len(gate) - 1))].item() for share in QUANTILES]
    return seen


def look_at_saved(weights, text):
    """What is seen in a model that `charlm.py --save` wrote, untrained and as it is, on windows of validation text."""
    trained, config, _ = charlm.load(weights, text)
    ids = torch.from_numpy(text.encode(text.validation))
    starts = torch.arange(COUNT) * (len(ids) - LENGTH) // (COUNT - 1)
    windows = ids[torch.arange(LENGTH)[:, None] + starts]  # (time, batch)
    models = charlm.build(config, text.size), trained
    untrained, trained = (look(model.rnn, model.embedding(windows)) for model in models)
    return {"cell": config["cell"], "seed": config["seed"], "untrained": untrained, "trained": trained}


def train_on_text(config, keeper):
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder) / "weights.pt"
        charlm.train({**config, "save": str(weights)}, keeper)
        return look_at_saved(weights, corpus.load(config["data"] and Path(config["data"])))


def train_on_bits(config, keeper):
    model = recall.build(config)
    generator = torch.Generator().manual_seed(TEST_SEED + config["seed"])
    x, _ = recall.sequences(generator, LENGTH - 1, COUNT, config["noise"])
    untrained = look(model.layer, x)
    recall.learn(model, config, keeper)
    return {"cell": config["cell"], "seed": config["seed"], "untrained": untrained, "trained": look(model.layer, x)}


def train(config, keeper):
    return (train_on_bits if "gap" in config else train_on_text)(config, keeper)


def main(argv=None):
    arguments = parse(argv)
    text = corpus.load(arguments.data)
    results = Results("gates_trained", arguments, corpus=text.fingerprint, seeds=SEEDS)
    if len(text.validation) < LENGTH:
        has = script.counted(len(text.validation), "character")
        raise script.UserError(f"the validation text has {has}: a window takes {LENGTH}")
    if arguments.load:
        report(results, {"as saved": [look_at_saved(Path(file), text) for file in arguments.load]})
        return results.save(draw)
    on_text = [
        charlm.configuration(cell, seed, text, arguments.steps, arguments.data) for cell in TEXT_CELLS for seed in SEEDS
    ]
    on_bits = [recall.configuration(cell, GAP, seed) for cell in BIT_CELLS for seed in SEEDS]
    runs = list(
        trainings.run(
            train,
            on_text + on_bits,
            name="gates_trained",
            jobs=arguments.jobs,
            cluster=arguments.cluster,
            describe=lambda config: f"{config['cell']} {'bit' if 'gap' in config else 'text'} seed {config['seed']}",
            cost=lambda config: 1 if "gap" in config else 25,
        )
    )
    named = {f"{arguments.steps:,} steps of text": runs[: len(on_text)], f"one bit, {GAP} steps": runs[len(on_text) :]}
    report(results, named)
    results.save(draw)


def report(results, named):
    """For each kind of model: cell by cell, untrained beside trained, the medians over seeds."""
    medians = {}
    for name, runs in named.items():
        medians[name] = {}
        for cell in dict.fromkeys(run["cell"] for run in runs):
            for state in ("untrained", "trained"):
                seen = [run[state] for run in runs if run["cell"] == cell]
                medians[name][f"{cell}, {state}"] = {
                    what: [median(values) for values in zip(*(one[what] for one in seen), strict=True)]
                    for what in seen[0]
                }
        results.print(f"{name}: gradient reaching the input {' / '.join(map(str, STEPS_BACK))} steps back")
        for model, seen in medians[name].items():
            told = " / ".join(f"{seen['gradient'][steps - 1]:.1e}" for steps in STEPS_BACK)
            results.print(f"{model:<30}: {told}")
        shares = " / ".join(f"{share:.0%}" for share in QUANTILES)
        results.print(f"and the gate that keeps: {shares} of its values are below")
        for model, seen in medians[name].items():
            if "gate" in seen:
                results.print(f"{model:<30}: {' / '.join(f'{value:.3f}' for value in seen['gate'])}")
        results.print()
    every_run = [{"task": name, **run} for name, runs in named.items() for run in runs]
    results.record(steps_back=STEPS_BACK, quantiles=QUANTILES, medians=medians, runs=every_run)


def parse(argv):
    parser = script.Arguments(__doc__)
    parser.add_argument(
        "--steps", type=script.positive_int, default=TEXT_STEPS, metavar="N", help="of training on text"
    )
    parser.add_argument(
        "--load",
        nargs="+",
        metavar="FILE",
        help="train nothing: look at models that charlm.py --save wrote",
    )
    corpus.add_argument(parser)
    trainings.add_arguments(parser)
    return parser.parse_args(argv)


def draw(results):
    """For each kind of model the gradient on its way back, dashed before training, and the gate's distribution."""
    kinds = results["medians"]
    figure, grid = plots.subplots(len(kinds), 2, size=(10.5, 4.2 * len(kinds)), squeeze=False)
    for (kind, models), (left, right) in zip(kinds.items(), grid, strict=True):
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
                right.plot(seen["gate"], results["quantiles"], **style)
        left.set(xlabel="steps back", ylabel="gradient at the input", title=kind)
        right.set(xlabel="gate that keeps the old state", ylabel="share of its values below", xlim=(0, 1))
        for axes in (left, right):
            axes.legend(fontsize=8, handlelength=3.5)  # shows a dash on both sides of the marker
    return figure


if __name__ == "__main__":
    script.run(main)
