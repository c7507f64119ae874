"""Reading from both ends lets a tagger see what comes after a word; it doesn't make a gradient reach any further.

A sentence has three words that matter, each 0 or 1 (the first, the one in the middle, which is to be tagged, the last)
and noise between them. The tag tells two of them: the middle one and what comes after; its mirror, the middle one and
what came before; or both ends. A reader that sees only one of the two has to guess the other, which is a fair coin. It
can't be right in more than half of all sentences, however it is trained; `ceiling` counts that out. The distance
between the words grows from 5 to 80: seeing both sides doesn't help a gradient to get there.

    python -m beyond.bidirectional          3 min

Prints, in the middle:

    RNN: the tag depends on what comes after
    forward , at most 0.500: 0.513 / 0.489 / 0.501; 0.0e+00 / 0.0e+00 / 0.0e+00
    backward, at most 1.000: 1.000 / 0.659 / 0.499; 2.5e-03 / 2.2e-06 / 3.2e-19
    both    , at most 1.000: 1.000 / 0.489 / 0.498; 2.5e-03 / 1.9e-07 / 8.6e-22

A forward reader can't see what comes after. The others see it, and learn it when it is five words away. At 80 words 21
models of each cell could see a distant word that the tag tells, in whichever direction they read it. One of the plain
models learned to use it, and 8 of the LSTMs whose forget gates start open. All were trained for the same number of
steps.

This script is longer than others because the share that each reader can reach at most is counted out beside what it
reaches.

Sources: Schuster and Paliwal (1997); Bengio, Simard and Frasconi (1994).
"""

import math
from collections import Counter
from dataclasses import dataclass, fields
from fractions import Fraction
from itertools import product
from statistics import fmean, median

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from lab import devices, plots, script, trainings
from lab.descent import Descent
from layers import cells
from layers.one_bit import CPU, NOISE, new_layer

DISTANCES = [5, 20, 80]  # words from the first to the tagged one, and from there to the last
SEEDS = range(3)
CELLS = ["RNN", "LSTM, forget bias 3"]
STEPS, BATCH, WIDTH = 400, 64, 32  # of every training: steps, sentences a step, units a direction
TESTED = 2000  # fresh sentences for each model
TEST_SEED = 1000  # added to a training's own

FIRST, MIDDLE, LAST = 0, 1, 2  # the words that matter; each is 0 or 1
TASKS = {  # the two words that a tag tells; the middle one is tagged
    "what comes after": (MIDDLE, LAST),
    "what came before": (MIDDLE, FIRST),
    "both sides": (FIRST, LAST),
}
READERS = {"forward": {FIRST, MIDDLE}, "backward": {MIDDLE, LAST}, "both": {FIRST, MIDDLE, LAST}}  # and what each sees


@dataclass(frozen=True)
class Config:
    """One training."""

    cell: str  # of CELLS
    task: str  # of TASKS
    reader: str  # of READERS
    distance: int  # words from the first to the tagged one, and from there to the last
    seed: int  # of the weights and of all sentences
    optimizer: str = "Adam"  # of torch.optim
    learning_rate: float = 3e-3
    clip: float | None = 1.0  # largest norm of the gradient
    noise: float = NOISE  # standard deviation of the words that don't matter
    steps: int = STEPS
    batch: int = BATCH  # sentences a step
    width: int = WIDTH  # units a direction
    device: str = "cpu"  # where it is trained; not recorded

    def __str__(self):
        return f"{self.cell}, {self.task}, {self.reader}, distance {self.distance}, seed {self.seed}"

    @property
    def cost(self):
        return self.distance


KINDS = {
    "*": "trained",
    "ceiling.*": "exact",
    **{f"runs.*.{field.name}": "setting" for field in fields(Config) if field.name not in ("seed", "device")},
}


def tag(task, words):
    """0 to 3: one for each pair of values that the two words can have."""
    one, other = TASKS[task]
    return 2 * words[one] + words[other]


def ceiling(task, reader):
    """The share of right tags that no reader of this kind can exceed, however it was trained.

    All eight sentences are equally likely. Those that look the same to the reader get the same tag from it, which is
    right in as many of them as have their commonest tag.
    """
    alike = {}
    for words in product((0, 1), repeat=3):
        seen = tuple(words[position] for position in READERS[reader])
        alike.setdefault(seen, Counter())[tag(task, words)] += 1
    return Fraction(sum(max(tags.values()) for tags in alike.values()), 8)


class Tagger(nn.Module):
    """One layer for each direction; both have the tagged word as their last input."""

    def __init__(self, cell, reader, width=WIDTH):
        super().__init__()
        self.directions = ["forward", "backward"] if reader == "both" else [reader]
        self.layers = nn.ModuleList(new_layer(cell, width) for _ in self.directions)
        self.readout = nn.Linear(width * len(self.directions), 4)

    def forward(self, x):
        middle = len(x) // 2
        read = {"forward": x[: middle + 1], "backward": x[middle:].flip(0)}  # (1 + distance, batch, 1)
        runs = zip(self.layers, self.directions, strict=True)
        states = [cells.run(layer, read[direction])[0][-1] for layer, direction in runs]
        return self.readout(torch.cat(states, dim=1))  # (batch, tags)


def sentences(generator, distance, count, noise=NOISE, device=CPU):
    """Inputs (1 + 2 distance, count, 1): noise around three words; and the words themselves (3, count)."""
    x = noise * torch.randn(1 + 2 * distance, count, 1, generator=generator)
    words = torch.randint(2, (3, count), generator=generator)
    x[::distance, :, 0] = words.float()
    return devices.send(x, device), devices.send(words, device)


def gradient_at_needed(model, config, generator):
    """|∂L/∂x| at the two words that the tag tells, L being one sentence's loss: the smaller of the means."""
    x, words = sentences(generator, config.distance, config.batch, config.noise, model.readout.weight.device)
    loss = cross_entropy(model(x.requires_grad_()), tag(config.task, words), reduction="sum")
    (gradient,) = torch.autograd.grad(loss, x)
    sizes = gradient[:: config.distance, :, 0].abs().mean(dim=1)  # (word,)
    return min(sizes[position].item() for position in TASKS[config.task])


def train(config, checkpoint):
    """One training, from its configuration to its record."""

    def loss_on(generator):
        x, words = sentences(generator, config.distance, config.batch, config.noise, device)
        return cross_entropy(model(x), tag(config.task, words))

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        model = Tagger(config.cell, config.reader, config.width)
    model.to(device := devices.trusted(config.device))
    fresh = torch.Generator().manual_seed(TEST_SEED + config.seed)
    gradient = gradient_at_needed(model, config, fresh)
    optimizer = getattr(torch.optim, config.optimizer)(model.parameters(), lr=config.learning_rate)
    for _ in Descent(model, optimizer, loss_on, torch.Generator().manual_seed(config.seed), config, checkpoint):
        pass
    x, words = sentences(fresh, config.distance, TESTED, config.noise, device)
    with torch.no_grad():
        right = (model(x).argmax(dim=1) == tag(config.task, words)).sum().item()
    return trainings.settings(config) | {"right": right, "accuracy": right / TESTED, "gradient": gradient}


def measure(arguments):
    settings = product(CELLS, TASKS, READERS, DISTANCES, SEEDS)
    asked = {"steps": arguments.steps, "device": arguments.device}
    runs = trainings.run(train, [Config(*setting, **asked) for setting in settings], arguments, briefly)
    ceilings = {task: {reader: float(ceiling(task, reader)) for reader in READERS} for task in TASKS}
    return {"seeds": SEEDS, "ceiling": ceilings, "runs": runs}


def briefly(run):
    """What is told of a training as soon as it ends."""
    setting = "{cell}, {task}, {reader}, distance {distance}, seed {seed}".format(**run)
    return f"{setting}: {run['accuracy']:.3f} right"


def tell(found):
    yield f"right tags at distances {' / '.join(map(str, DISTANCES))}, mean of {len(SEEDS)} seeds; before training,"
    yield "the gradient at the word that the tag depends on (of two, where it is smaller)"
    for cell, task, reader in product(CELLS, TASKS, READERS):
        if reader == "forward":
            yield ""
            yield f"{cell}: the tag depends on {task}"
        right = " / ".join(f"{mean:.3f}" for mean in by_distance(found["runs"], fmean, "accuracy", cell, task, reader))
        sizes = " / ".join(f"{size:.1e}" for size in by_distance(found["runs"], median, "gradient", cell, task, reader))
        yield f"{reader:<8}, at most {found['ceiling'][task][reader]:.3f}: {right}; {sizes}"


def by_distance(runs, middle, name, *setting):
    """The mean or median of a result at each distance, of the seeds that didn't diverge: of none it is NaN."""
    runs = [run for run in runs if (run["cell"], run["task"], run["reader"]) == setting and name in run]
    return [middle([run[name] for run in runs if run["distance"] == d] or [math.nan]) for d in DISTANCES]


def draw(found):
    """Right tags against the distance: a row for each cell, a column for each task, a line for each reader."""
    figure, grid = plots.subplots(len(CELLS), len(TASKS), size=(10.0, 6.0), sharex=True, sharey=True)
    for (cell, task), axes in zip(product(CELLS, TASKS), grid.flat, strict=True):
        for reader, marker in zip(READERS, plots.MARKERS, strict=False):
            mean = by_distance(found["runs"], fmean, "accuracy", cell, task, reader)
            axes.plot(DISTANCES, mean, marker=marker, label=reader)
        axes.axhline(found["ceiling"][task]["forward"], color="0.4", linewidth=0.8, label="forward at most")
        axes.set(xscale="log", ylim=(0.2, 1.03), title=f"{cell}: {task}")
        axes.set_xticks(DISTANCES, DISTANCES)
        axes.minorticks_off()
    for axes in grid[-1]:
        axes.set_xlabel("distance (words)")
    for axes in grid[:, 0]:
        axes.set_ylabel("right tags")
    grid[0, 0].legend()
    return figure


def options(parser):
    parser.add_argument("--steps", type=script.positive_int, default=STEPS, metavar="N", help="of every training")
    parser.add_jobs()
    parser.add_device()


if __name__ == "__main__":
    script.run(measure, tell, draw, options)
