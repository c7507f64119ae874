"""How long a trained cell remembers one bit: it stands at the start, noise follows, and the end is asked for it.

The first input is 0 or 1. Noise follows at the same input for a delay of T steps, and the last state has to say which
it was. For each cell and delay a fresh model is trained, with the same small budget and three seeds. Every cell is
tried at delays up to 160. From there the delay is doubled, up to 1,280, for the cells that are still above chance. A
model that has kept nothing of the bit guesses: how many fresh sequences it gets right is binomial with probability ½.
So that distribution, over the sequences of all seeds, decides whether a cell is above chance. Beside it stands the
gradient of the loss with respect to the state that has just read the bit, before and after training; for an LSTM that
state is h_1 and c_1. A gradient that float32 can't hold is called an underflow.

    python -m beyond.recall          25 min
    python -m beyond.recall --cap 20 --steps 50          less to try than the whole sweep

Prints, after a line for each cell and delay:

    the delay at which each cell drops to chance and stays there
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
plain RNN, which a ten times higher learning rate takes to 80 steps, and so does a start at the identity. Above a delay
of 160 a cell that still counts as remembering does so with some seeds and not with others.

This script is longer than others because what it tries next depends on what it has found, and because a result that is
a chance event has to be told from one that isn't.

Departures: Le et al. (2015) start rectified units at the identity; the row "RNN, identity" keeps the plain cell's tanh.

Sources: Bengio, Simard and Frasconi (1994) for the task; Hochreiter and Schmidhuber (1997); Gers, Schmidhuber and
Cummins (2000); Cho et al. (2014); Le, Jaitly and Hinton (2015) for the identity.
"""

import math
from dataclasses import dataclass, fields
from functools import cache
from itertools import product
from statistics import fmean, median

import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from lab import devices, plots, script, trainings
from lab.descent import Descent
from layers.memory import CELLS, NOISE, Model, gradient_at_first_state, sequences

DELAYS = [5 * 2**doublings for doublings in range(10)]  # steps between the bit and the end: 5 to 2,560
FOR_ALL = 160  # longer delays are for cells that still remember
CAP = 1280  # the longest that is tried unless asked for: each doubling takes each cell that remembers twice as long
SEEDS = range(3, 6)  # 0 to 2 served to choose noise and learning rate, in short trainings
STEPS, BATCH, WIDTH = 600, 64, 32  # of every training: steps, sequences a step, units
TESTED, CHUNK = 2000, 100  # fresh sequences for each model; how many of them at once
TEST_SEED = 1000  # added to a training's own
ODDS = 10_000  # once in so many times a guesser is taken for a cell that remembers
UNDERFLOW = 1e-46  # where the figure shows a gradient that float32 can't hold

TRAININGS = {  # what differs from the settings below
    "as above": {},
    "not clipped": {"clip": None},
    "rate 0.003": {"learning_rate": 0.003},
    "rate 0.01": {"learning_rate": 0.01},
    "SGD, rate 0.1": {"optimizer": "SGD", "learning_rate": 0.1},
    "SGD, rate 1": {"optimizer": "SGD", "learning_rate": 1.0},
    "noise of size 1": {"noise": 1.0},
}
TRAINING = "as above"  # every cell's; the others are tried on these cells and delays
VARIED_CELLS, VARIED_DELAYS = ["RNN", "LSTM, forget bias 3"], [20, 40, 80]


@dataclass(frozen=True)
class Config:
    """One training."""

    cell: str  # of CELLS
    delay: int  # steps between the bit and the end
    seed: int  # of the weights and of all sequences
    training: str = TRAINING  # of TRAININGS, which says what differs below
    optimizer: str = "Adam"  # of torch.optim
    learning_rate: float = 0.001
    clip: float | None = 1.0  # largest norm of the gradient
    noise: float = NOISE  # standard deviation
    steps: int = STEPS
    batch: int = BATCH  # sequences a step
    width: int = WIDTH  # units
    device: str = "cpu"  # where it is trained; not recorded

    def __str__(self):
        return f"{self.cell}, delay {self.delay:,}, {self.training}, seed {self.seed}"

    @property
    def cost(self):
        return self.delay


KINDS = {
    "*": "trained",
    **{f"runs.*.{field.name}": "setting" for field in fields(Config) if field.name not in ("seed", "device")},
}


@torch.no_grad()
def count_right(model, generator, config, bit_is_shown=True):
    """Right answers on fresh sequences."""
    right, device = 0, devices.trusted(config.device)
    for _ in range(0, TESTED, CHUNK):
        x, bit = sequences(generator, config.delay, CHUNK, config.noise, device)
        x[0] *= bit_is_shown
        right += ((model(x) > 0) == (bit == 1)).sum()
    return right.item()


def build(config):
    """The untrained model, whose weights are drawn on the CPU whatever the device."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        return Model(config.cell, config.width).to(devices.trusted(config.device))


def learn(model, config, checkpoint):
    """Train a model: fresh sequences at every step."""
    device = devices.trusted(config.device)

    def loss_on(generator):
        x, bit = sequences(generator, config.delay, config.batch, config.noise, device)
        return binary_cross_entropy_with_logits(model(x), bit)

    optimizer = getattr(torch.optim, config.optimizer)(model.parameters(), lr=config.learning_rate)
    for _ in Descent(model, optimizer, loss_on, torch.Generator().manual_seed(config.seed), config, checkpoint):
        pass


def train(config, checkpoint):
    """One training, from its configuration to its record."""
    model = build(config)
    fresh = torch.Generator().manual_seed(TEST_SEED + config.seed)
    some = sequences(fresh, config.delay, config.batch, config.noise, devices.trusted(config.device))
    before = gradient_at_first_state(model, *some)
    learn(model, config, checkpoint)
    right = count_right(model, fresh, config)
    return trainings.settings(config) | {
        "right": right,
        "accuracy": right / TESTED,
        "accuracy_without_the_bit": count_right(model, fresh, config, bit_is_shown=False) / TESTED,
        "gradient_before_training": before,
        "gradient_after_training": gradient_at_first_state(model, *some),
    }


@cache
def fewest_above_chance(count):
    """The number of right answers, of ``count``, that a guesser reaches with a probability below 1 / ODDS."""
    right, ways, tail = count, 1, 1  # ways of being right that often, and of being right at least that often
    while tail * ODDS < 2**count:
        ways = ways * right // (count - right + 1)
        right -= 1
        tail += ways
    return right + 1


def remembers(runs):
    """Whether these models, those that diverged left out, are right more often than a guesser."""
    right = [run["right"] for run in runs if "right" in run]
    return sum(right) >= fewest_above_chance(TESTED * len(right))


def drops_to_chance_at(by_delay):
    """The delay from which on no delay is remembered; None if the longest one is."""
    longest = max((delay for delay, runs in by_delay.items() if remembers(runs)), default=0)
    return min((delay for delay in by_delay if delay > longest), default=None)


def by_setting(runs):
    """{(cell, training): {delay: the runs of all seeds}}"""
    settings = {}
    for run in runs:
        settings.setdefault((run["cell"], run["training"]), {}).setdefault(run["delay"], []).append(run)
    return settings


def measure(arguments):
    runs = []

    def sweep(settings):
        configs = [
            Config(cell, delay, seed, how, steps=arguments.steps, device=arguments.device, **TRAININGS[how])
            for cell, delay, how in settings
            for seed in SEEDS
        ]
        runs.extend(trainings.run(train, configs, arguments, line=lambda run: line([run])))
        return by_setting(runs)

    remembering, delays = list(CELLS), [delay for delay in DELAYS if delay <= min(FOR_ALL, arguments.cap)]
    while delays and remembering:
        settings = sweep(product(remembering, delays, [TRAINING]))
        remembering = [cell for cell in remembering if remembers(settings[cell, TRAINING][delays[-1]])]
        delays = [delay for delay in DELAYS if delay == 2 * delays[-1] and delay <= arguments.cap]
    drops = {cell: drops_to_chance_at(settings[cell, TRAINING]) for cell in CELLS}
    varied = [delay for delay in VARIED_DELAYS if delay <= arguments.cap]
    sweep(product(VARIED_CELLS, varied, [how for how in TRAININGS if how != TRAINING]))
    return {"seeds": SEEDS, "drops_to_chance_at": drops, "runs": runs}


def tell(found):
    settings, count = by_setting(found["runs"]), TESTED * len(SEEDS)
    yield f"chance: 0.500 right, a loss of ln 2 = {math.log(2):.3f}"
    yield f"above chance: {fewest_above_chance(count):,} of {count:,} right, as a guesser is once in {ODDS:,} times"
    yield ""
    yield "right (each seed); gradient at h_1 before -> after training (median of the seeds)"
    of_all = [runs for (_, how), groups in settings.items() if how == TRAINING for runs in groups.values()]
    yield from map(line, sorted(of_all, key=lambda runs: max(runs[0]["delay"], FOR_ALL)))  # as they were trained
    yield ""
    yield "the delay at which each cell drops to chance and stays there"
    for cell, drop in found["drops_to_chance_at"].items():
        yield f"{cell:<20}: {f'{drop:,}' if drop else f'none up to {max(settings[cell, TRAINING]):,}'}"
    if delays := [delay for delay in VARIED_DELAYS if delay in settings[VARIED_CELLS[0], TRAINING]]:
        yield ""
        yield f"trained otherwise: right at delays {' / '.join(map(str, delays))} (seeds above chance)"
        for setting in product(VARIED_CELLS, TRAININGS):
            each = " / ".join(short(settings[setting][delay]) for delay in delays)
            yield f"{setting[0]:<20}{setting[1]:<25}: {each}"
    blind = values(found["runs"], "accuracy_without_the_bit")
    bound = fewest_above_chance(TESTED) / TESTED
    yield ""
    yield f"with the bit set to 0 in the test: {min(blind):.3f} to {max(blind):.3f} right in {len(blind)} models"
    yield f"a guesser is between {1 - bound:.3f} and {bound:.3f} all but twice in {ODDS:,} times"


def line(runs):
    """One setting's line. A gradient of exactly 0 was too small for float32."""
    setting = f"{runs[0]['cell']:<20} delay {runs[0]['delay']:>5,}"
    if any("diverged_at_step" in run for run in runs):
        return f"{setting}: the loss is not finite"
    each = " ".join(f"{run['accuracy']:.3f}" for run in runs)
    sizes = [median(values(runs, f"gradient_{when}_training")) for when in ("before", "after")]
    told = " -> ".join(f"{size:.1e}" if size else "underflow" for size in sizes)
    return f"{setting}: {fmean(values(runs, 'accuracy')):.3f} ({each}); {told}"


def short(runs):
    return f"{fmean(values(runs, 'accuracy')):.3f} ({sum(remembers([run]) for run in runs)})"


def values(runs, name):
    """A result of the models that didn't diverge; if all of them did, one that is not a number."""
    return [run[name] for run in runs if name in run] or [math.nan]


def draw(found):
    """Accuracy against the delay, each cell's drop to chance ringed; beside it the gradient that reaches h_1."""
    settings = by_setting(found["runs"])
    figure, (left, right) = plots.subplots(1, 2, size=(11.0, 4.6))
    for (cell, drop), marker in zip(found["drops_to_chance_at"].items(), plots.MARKERS, strict=True):
        groups = settings[cell, TRAINING]
        accuracy = {delay: fmean(values(runs, "accuracy")) for delay, runs in groups.items()}
        gradient = [median(values(runs, "gradient_before_training")) or UNDERFLOW for runs in groups.values()]
        (drawn,) = left.plot(list(groups), list(accuracy.values()), marker=marker, markersize=4.5, label=cell)
        if drop:
            ring = {"markersize": 11, "markerfacecolor": "none", "color": drawn.get_color()}
            left.plot(drop, accuracy[drop], marker, **ring)
        right.plot(list(groups), gradient, marker=marker, markersize=4.5, label=cell)
    left.axhline(0.5, color="0.4", linewidth=0.8)
    left.set(xscale="log", xlabel="delay (steps)", ylabel="share right (mean of 3 seeds)")
    left.set_title("One bit remembered; ringed: at chance from there on")
    right.set(xscale="log", yscale="log", xlabel="delay (steps)", ylabel="size of the gradient at the first state")
    right.set_title("What reaches it before training; at the bottom: underflow")
    for axes in (left, right):
        axes.set_xticks(DELAYS, [f"{delay:,}" for delay in DELAYS], minor=False, fontsize=8)
        axes.minorticks_off()
    right.legend(fontsize=8, loc="lower right")  # where delays are long and only large gradients are left
    return figure


def options(parser):
    parser.add_argument("--steps", type=script.positive_int, default=STEPS, metavar="N", help="of every training")
    parser.add_argument("--cap", type=int, choices=DELAYS, default=CAP, help="the longest delay to try, in steps")
    parser.add_jobs()
    parser.add_device()


if __name__ == "__main__":
    script.run(measure, tell, draw, options)
