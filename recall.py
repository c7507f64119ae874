"""How long a trained cell remembers one bit: it stands at the start, noise follows, and the end is asked for it.

The first input is 0 or 1, then T steps of noise follow in the same place, and the last state has to say which it was.
For each cell and gap T a fresh model is trained, all with the same small budget and three seeds each; gaps grow to 160
for every cell and are doubled from there, to 1,280, for those that are still above chance. A model that has kept
nothing of the bit is right in a number of fresh sequences that is binomial with probability ½, so whether a cell is
above chance is decided by that distribution over the sequences of all seeds, not by eye. Beside it stands the gradient
of the loss with respect to the state that has just read the bit, before and after training; for an LSTM that state is
h_1 and c_1. A gradient that float32 can't hold is called an underflow.

    python recall.py          25 min
    python recall.py --cap 20 --steps 50          less to try than the whole sweep

Prints, after a line for each cell and gap:

    the gap at which each cell drops to chance and stays there
    RNN                 : 40
    RNN, identity       : 160
    GRU                 : 20
    LSTM                : 20
    LSTM, forget bias 1 : 80
    LSTM, forget bias 3 : none up to 1,280
    LSTM, forget bias 6 : 1,280
    LSTM, forget bias -5: 5
    minGRU              : 20
    linear attention    : 1,280

It isn't the gates that remember, it is the bias of one of them: as torch draws them GRU and LSTM forget sooner than the
plain RNN, which a ten times higher learning rate takes to 80 steps, and so does a start at the identity. Above a gap of
160 a cell that still counts as remembering does so with some seeds and not with others.

Departures: Le et al. (2015) start rectified units at the identity; the row "RNN, identity" keeps the plain cell's tanh.

Sources: Bengio, Simard and Frasconi (1994) for the task; Hochreiter and Schmidhuber (1997); Gers, Schmidhuber and
Cummins (2000); Cho et al. (2014); Le, Jaitly and Hinton (2015) for the identity.
"""

import math
from collections import defaultdict
from itertools import product
from statistics import fmean, median

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

import cells
import scan
from lab import plots, script, trainings
from lab.fitting import fit
from lab.results import Results

GAPS = [5 * 2**doublings for doublings in range(10)]  # steps between the bit and the end: 5 to 2,560
FOR_ALL = 160  # longer gaps are for cells that still remember
CAP = 1280  # the longest that is tried unless asked for: each doubling takes each cell that remembers twice as long
SEEDS = range(3, 6)  # 0 to 2 served to choose noise and learning rate, in short trainings
STEPS, BATCH, WIDTH = 600, 64, 32  # of every training: steps, sequences a step, units
NOISE = 0.1  # standard deviation
TESTED, CHUNK = 2000, 100  # fresh sequences for each model; how many of them at once
TEST_SEED = 1000  # added to a training's own
ODDS = 10_000  # a guesser passes for a cell that remembers once in so many times
UNDERFLOW = 1e-46  # where the figure shows a gradient that float32 can't hold

CELLS = {  # the layer, and the effective bias of an LSTM's forget gate where it isn't left as torch draws it
    "RNN": (nn.RNN, None),
    "RNN, identity": (nn.RNN, None),
    "GRU": (nn.GRU, None),
    "LSTM": (nn.LSTM, None),
    "LSTM, forget bias 1": (nn.LSTM, 1),
    "LSTM, forget bias 3": (nn.LSTM, 3),
    "LSTM, forget bias 6": (nn.LSTM, 6),
    "LSTM, forget bias -5": (nn.LSTM, -5),
    "minGRU": (scan.MinGRU, None),
    "linear attention": (scan.LinearAttention, None),
}
TRAININGS = {  # optimizer, learning rate, largest norm of the gradient, noise
    "as above": ("Adam", 0.001, 1.0, NOISE),
    "not clipped": ("Adam", 0.001, None, NOISE),
    "rate 0.003": ("Adam", 0.003, 1.0, NOISE),
    "rate 0.01": ("Adam", 0.01, 1.0, NOISE),
    "SGD, rate 0.1": ("SGD", 0.1, 1.0, NOISE),
    "SGD, rate 1": ("SGD", 1.0, 1.0, NOISE),
    "noise of size 1": ("Adam", 0.001, 1.0, 1.0),
}
TRAINING = "as above"  # every cell's; the others are tried on these cells and gaps
VARIED_CELLS, VARIED_GAPS = ["RNN", "LSTM, forget bias 3"], [20, 40, 80]


def new_layer(cell, width=WIDTH):
    """An untrained layer that reads one number a step."""
    kind, forget_bias = CELLS[cell]
    layer = kind(1, width)
    with torch.no_grad():
        if forget_bias is not None:  # torch adds two biases: the other one has to be 0
            layer.bias_ih_l0[width : 2 * width] = forget_bias
            layer.bias_hh_l0[width : 2 * width] = 0
        if cell == "RNN, identity":
            layer.weight_hh_l0.copy_(torch.eye(width))
            layer.weight_ih_l0.normal_(std=0.001)
            layer.bias_ih_l0.zero_()
            layer.bias_hh_l0.zero_()
    return layer


class Model(nn.Module):
    """A cell reads the sequence, and its last state answers."""

    def __init__(self, cell, width=WIDTH):
        super().__init__()
        self.layer = new_layer(cell, width)
        self.readout = nn.Linear(width, 1)

    def forward(self, x, state=None):
        """The logit of the answer 1: (batch,)."""
        h, _ = cells.run(self.layer, x, state)  # (time, batch, hidden)
        return self.readout(h[-1])[:, 0]


def sequences(generator, gap, count, noise=NOISE):
    """Inputs (1 + gap, count, 1), and the bit (count,) that is the first of each and nowhere else."""
    x = noise * torch.randn(1 + gap, count, 1, generator=generator)
    bit = torch.randint(2, (count,), generator=generator).float()
    x[0, :, 0] = bit
    return x, bit


def gradient_at_first_state(model, x, bit):
    """‖∂L/∂h_1‖, L being one sequence's loss and h_1 the state that has just read the bit: the mean over sequences."""
    _, state = cells.run(model.layer, x[:1])
    if isinstance(model.layer, nn.LSTM):  # what it carries is h_1 and c_1
        state = parts = tuple(part.detach().requires_grad_() for part in state)  # (1, batch, hidden) each
    else:
        parts = [state := state.detach().requires_grad_()]
    loss = binary_cross_entropy_with_logits(model(x[1:], state), bit, reduction="sum")
    gradient = torch.cat(torch.autograd.grad(loss, parts), dim=2)[0]  # (batch, state), or (batch, key, value)
    return gradient.double().flatten(1).norm(dim=1).mean().item()  # in float32 the squares of what is below 1e-23 are 0


@torch.no_grad()
def count_right(model, generator, config, bit_is_shown=True):
    """Right answers on fresh sequences."""
    right = 0
    for _ in range(0, TESTED, CHUNK):
        x, bit = sequences(generator, config["gap"], CHUNK, config["noise"])
        x[0] *= bit_is_shown
        right += ((model(x) > 0) == (bit == 1)).sum().item()
    return right


def build(config):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config["seed"])
        return Model(config["cell"], config["width"])


def learn(model, config, keeper):
    def loss_on(generator):
        x, bit = sequences(generator, config["gap"], config["batch"], config["noise"])
        return binary_cross_entropy_with_logits(model(x), bit)

    fit(model, loss_on, config, keeper)


def train(config, keeper):
    """One training, from its configuration to its record."""
    model = build(config)
    fresh = torch.Generator().manual_seed(TEST_SEED + config["seed"])
    some = sequences(fresh, config["gap"], config["batch"], config["noise"])
    before = gradient_at_first_state(model, *some)
    learn(model, config, keeper)
    right = count_right(model, fresh, config)
    return {
        **config,
        "right": right,
        "accuracy": right / TESTED,
        "accuracy_without_the_bit": count_right(model, fresh, config, bit_is_shown=False) / TESTED,
        "gradient_before_training": before,
        "gradient_after_training": gradient_at_first_state(model, *some),
    }


def configuration(cell, gap, seed, training=TRAINING, steps=STEPS):
    """Everything that one training's record depends on."""
    optimizer, learning_rate, clip, noise = TRAININGS[training]
    how = {"optimizer": optimizer, "learning_rate": learning_rate, "clip": clip, "noise": noise}
    size = {"steps": steps, "batch": BATCH, "width": WIDTH}
    return {"cell": cell, "gap": gap, "training": training, "seed": seed, **how, **size}


def fewest_above_chance(count):
    """The number of right answers, of ``count``, that a guesser reaches with a probability below 1 / ODDS."""
    right, ways, tail = count, 1, 1  # ways of being right that often, and of being right at least that often
    while tail * ODDS < 2**count:
        ways = ways * right // (count - right + 1)
        right -= 1
        tail += ways
    return right + 1


def remembers(runs):
    return sum(run["right"] for run in runs) >= fewest_above_chance(TESTED * len(runs))


def falls_to_chance_at(by_gap):
    """The gap from which on no gap is remembered; None if the longest one is."""
    longest = max((gap for gap, runs in by_gap.items() if remembers(runs)), default=0)
    return min((gap for gap in by_gap if gap > longest), default=None)


def sweep(settings, arguments, keep=True):
    """Train each (cell, gap, training) with every seed; what is yielded is the runs of one setting together."""
    runs = trainings.run(
        train,
        [configuration(cell, gap, seed, how, arguments.steps) for cell, gap, how in settings for seed in SEEDS],
        name="recall",
        jobs=arguments.jobs,
        cluster=arguments.cluster,
        describe=lambda config: f"{config['cell']}, gap {config['gap']}, {config['training']}, seed {config['seed']}",
        cost=lambda config: config["gap"],
        keep=keep,
    )
    return zip(*[runs] * len(SEEDS), strict=True)


def main(argv=None):
    arguments = parse(argv)
    results = Results("recall", arguments, seeds=SEEDS)
    count = TESTED * len(SEEDS)
    results.print(f"chance: 0.500 right, a loss of ln 2 = {math.log(2):.3f}")
    results.print(
        f"above chance: {fewest_above_chance(count):,} of {count:,} right, as a guesser is once in {ODDS:,} times"
    )

    results.print("\nright (each seed); gradient at h_1 before -> after training (median of the seeds)")
    runs, remembering = {}, list(CELLS)
    gaps = [gap for gap in GAPS if gap <= min(FOR_ALL, arguments.cap)]
    while gaps and remembering:
        settings = list(product(remembering, gaps, [TRAINING]))
        for setting, of_seeds in zip(settings, sweep(settings, arguments), strict=True):
            runs[setting] = of_seeds
            results.print(line(of_seeds))
        remembering = [cell for cell in remembering if remembers(runs[cell, gaps[-1], TRAINING])]
        gaps = [gap for gap in GAPS if gap == 2 * gaps[-1] and gap <= arguments.cap]

    results.print("\nthe gap at which each cell drops to chance and stays there")
    falls = {}
    for cell in CELLS:
        by_gap = {gap: of_seeds for (name, gap, _), of_seeds in runs.items() if name == cell}
        falls[cell] = falls_to_chance_at(by_gap)
        results.print(f"{cell:<20}: {f'{falls[cell]:,}' if falls[cell] else f'none up to {max(by_gap):,}'}")

    if gaps := [gap for gap in VARIED_GAPS if gap <= arguments.cap]:
        new = [key for key in product(VARIED_CELLS, gaps, TRAININGS) if key not in runs]
        runs |= zip(new, sweep(new, arguments), strict=True)
        results.print(f"\ntrained otherwise: right at gaps {' / '.join(map(str, gaps))} (seeds above chance)")
        for cell, training in product(VARIED_CELLS, TRAININGS):
            told = " / ".join(short(runs[cell, gap, training]) for gap in gaps)
            results.print(f"{cell:<20}{training:<25}: {told}")

    every_run = [run for of_seeds in runs.values() for run in of_seeds]
    blind = [run["accuracy_without_the_bit"] for run in every_run]
    bound = fewest_above_chance(TESTED) / TESTED
    results.print(
        f"\nwith the bit set to 0 in the test: {min(blind):.3f} to {max(blind):.3f} right in {len(blind)} models"
    )
    results.print(f"a guesser is between {1 - bound:.3f} and {bound:.3f} all but twice in {ODDS:,} times")
    results.record(drops_to_chance_at=falls, runs=every_run)
    results.save(draw)
    list(sweep(runs, arguments, keep=False))


def line(runs):
    """One setting's line. A gradient of exactly 0 was too small for float32."""
    setting = f"{runs[0]['cell']:<20} gap {runs[0]['gap']:>5,}"
    if any("diverged_at_step" in run for run in runs):
        return f"{setting}: the loss is not finite"
    each = " ".join(f"{run['accuracy']:.3f}" for run in runs)
    sizes = [median(run[f"gradient_{when}_training"] for run in runs) for when in ("before", "after")]
    told = " -> ".join(f"{size:.1e}" if size else "underflow" for size in sizes)
    return f"{setting}: {mean_accuracy(runs):.3f} ({each}); {told}"


def short(runs):
    return f"{mean_accuracy(runs):.3f} ({sum(remembers([run]) for run in runs)})"


def mean_accuracy(runs):
    return fmean(run["accuracy"] for run in runs)


def parse(argv):
    parser = script.Arguments(__doc__)
    parser.add_argument("--steps", type=script.positive_int, default=STEPS, metavar="N", help="of every training")
    parser.add_argument("--cap", type=int, choices=GAPS, default=CAP, help="the longest gap to try, in steps")
    trainings.add_arguments(parser)
    return parser.parse_args(argv)


def draw(results):
    """Accuracy against the gap, each cell's drop to chance ringed; beside it the gradient that reaches h_1."""
    figure, (left, right) = plots.subplots(1, 2, size=(11.0, 4.6))
    for (cell, drop), marker in zip(results["drops_to_chance_at"].items(), plots.MARKERS, strict=True):
        by_gap = defaultdict(list)
        for run in results["runs"]:
            if (run["cell"], run["training"]) == (cell, TRAINING):
                by_gap[run["gap"]].append(run)
        accuracy = [mean_accuracy(runs) for runs in by_gap.values()]
        gradient = [median(run["gradient_before_training"] for run in runs) for runs in by_gap.values()]
        (drawn,) = left.plot(list(by_gap), accuracy, marker=marker, markersize=4.5, label=cell)
        if drop:
            at = list(by_gap).index(drop)
            left.plot(drop, accuracy[at], marker, markersize=11, markerfacecolor="none", color=drawn.get_color())
        right.plot(list(by_gap), [g or UNDERFLOW for g in gradient], marker=marker, markersize=4.5, label=cell)
    left.axhline(0.5, color="0.4", linewidth=0.8)
    left.set(xscale="log", xlabel="gap (steps)", ylabel="share right (mean of 3 seeds)")
    left.set_title("One bit remembered; ringed: at chance from there on")
    right.set(xscale="log", yscale="log", xlabel="gap (steps)", ylabel="size of the gradient at the first state")
    right.set_title("What reaches it before training; at the bottom: underflow")
    for axes in (left, right):
        axes.set_xticks(GAPS, [f"{gap:,}" for gap in GAPS], minor=False, fontsize=8)
        axes.minorticks_off()
    right.legend(fontsize=8, loc="lower right")  # where gaps are long and only large gradients are left
    return figure


if __name__ == "__main__":
    script.run(main)
