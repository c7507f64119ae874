"""Reading from both ends lets a tagger see what comes after a word; it doesn't make a gradient reach any further.

A sentence has three words that matter, each 0 or 1 (the first, the one in the middle, which is to be tagged, the last)
and noise between them. The tag tells two of them: the middle one and what comes after; its mirror, the middle one and
what came before; or both ends. A reader that sees only one of the two has a fair coin for the other and can't be right
in more than half of all sentences, however it is trained; `ceiling` counts that out. The distance between the words
grows from 5 to 80: seeing both sides doesn't help a gradient to get there.

    python bidirectional.py          3 min

Prints, in the middle:

    RNN: the tag depends on what comes after
    forward , at most 0.500: 0.513 / 0.489 / 0.501; 0.0e+00 / 0.0e+00 / 0.0e+00
    backward, at most 1.000: 1.000 / 0.659 / 0.499; 2.5e-03 / 2.2e-06 / 3.2e-19
    both    , at most 1.000: 1.000 / 0.489 / 0.498; 2.5e-03 / 1.9e-07 / 8.6e-22

What comes after is out of sight for whoever reads forwards, and in sight for the others five words away. Eighty words
away a reader that sees it all the same was trained 21 times with each cell, in whatever direction: plain cells learned
it once, LSTMs that keep their state 8 times, in as many steps.

Sources: Schuster and Paliwal (1997); Bengio, Simard and Frasconi (1994).
"""

from collections import Counter
from fractions import Fraction
from itertools import product
from statistics import fmean, median

import torch
from torch import nn
from torch.nn.functional import cross_entropy

import cells
from lab import plots, script, trainings
from lab.fitting import fit
from lab.results import Results
from recall import new_layer

DISTANCES = [5, 20, 80]  # words from the first to the tagged one, and from there to the last
SEEDS = range(3)
CELLS = ["RNN", "LSTM, forget bias 3"]
STEPS, BATCH, WIDTH = 400, 64, 32  # of every training: steps, sentences a step, units a direction
OPTIMIZER, LEARNING_RATE, CLIP = "Adam", 3e-3, 1.0
NOISE = 0.1  # standard deviation of the words that don't matter
TESTED = 2000  # fresh sentences for each model
TEST_SEED = 1000  # added to a training's own

FIRST, MIDDLE, LAST = 0, 1, 2  # the words that matter; each is 0 or 1
TASKS = {  # the two words that a tag tells; the middle one is tagged
    "what comes after": (MIDDLE, LAST),
    "what came before": (MIDDLE, FIRST),
    "both sides": (FIRST, LAST),
}
READERS = {"forward": {FIRST, MIDDLE}, "backward": {MIDDLE, LAST}, "both": {FIRST, MIDDLE, LAST}}  # and what each sees


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
        seen = tuple(words[place] for place in READERS[reader])
        alike.setdefault(seen, Counter())[tag(task, words)] += 1
    return Fraction(sum(max(tags.values()) for tags in alike.values()), 8)


class Tagger(nn.Module):
    """One layer for each direction; both have the tagged word as their last input."""

    def __init__(self, cell, reader):
        super().__init__()
        self.directions = ["forward", "backward"] if reader == "both" else [reader]
        self.layers = nn.ModuleList(new_layer(cell, WIDTH) for _ in self.directions)
        self.readout = nn.Linear(WIDTH * len(self.directions), 4)

    def forward(self, x):
        middle = len(x) // 2
        read = {"forward": x[: middle + 1], "backward": x[middle:].flip(0)}  # (1 + distance, batch, 1)
        runs = zip(self.layers, self.directions, strict=True)
        states = [cells.run(layer, read[direction])[0][-1] for layer, direction in runs]
        return self.readout(torch.cat(states, dim=1))  # (batch, tags)


def sentences(generator, distance, count):
    """Inputs (1 + 2 distance, count, 1): noise around three words; and the words themselves (3, count)."""
    x = NOISE * torch.randn(1 + 2 * distance, count, 1, generator=generator)
    words = torch.randint(2, (3, count), generator=generator)
    x[::distance, :, 0] = words.float()
    return x, words


def gradient_at_needed(model, config, generator):
    """|∂L/∂x| at the two words that the tag tells, L being one sentence's loss: the smaller of the means."""
    x, words = sentences(generator, config["distance"], BATCH)
    loss = cross_entropy(model(x.requires_grad_()), tag(config["task"], words), reduction="sum")
    (gradient,) = torch.autograd.grad(loss, x)
    sizes = gradient[:: config["distance"], :, 0].abs().mean(dim=1)  # (word,)
    return min(sizes[place].item() for place in TASKS[config["task"]])


def train(config, keeper):
    """One training, from its configuration to its record."""

    def loss_on(generator):
        x, words = sentences(generator, config["distance"], BATCH)
        return cross_entropy(model(x), tag(config["task"], words))

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config["seed"])
        model = Tagger(config["cell"], config["reader"])
    fresh = torch.Generator().manual_seed(TEST_SEED + config["seed"])
    gradient = gradient_at_needed(model, config, fresh)
    fit(model, loss_on, config, keeper)
    x, words = sentences(fresh, config["distance"], TESTED)
    with torch.no_grad():
        right = (model(x).argmax(dim=1) == tag(config["task"], words)).sum().item()
    return {**config, "right": right, "accuracy": right / TESTED, "gradient": gradient}


def configuration(cell, task, reader, distance, seed, steps=STEPS):
    """Everything that one training's record depends on."""
    how = {"optimizer": OPTIMIZER, "learning_rate": LEARNING_RATE, "clip": CLIP, "noise": NOISE}
    how |= {"steps": steps, "batch": BATCH, "width": WIDTH}
    return {"cell": cell, "task": task, "reader": reader, "distance": distance, "seed": seed, **how}


def main(argv=None):
    arguments = parse(argv)
    results = Results("bidirectional", arguments, seeds=SEEDS)
    ceilings = {task: {reader: float(ceiling(task, reader)) for reader in READERS} for task in TASKS}
    lines = list(product(CELLS, TASKS, READERS))
    runs = trainings.run(
        train,
        [configuration(*line, *where, arguments.steps) for line, where in product(lines, product(DISTANCES, SEEDS))],
        name="bidirectional",
        jobs=arguments.jobs,
        cluster=arguments.cluster,
        describe=lambda config: "{cell}, {task}, {reader}, distance {distance}, seed {seed}".format(**config),
        cost=lambda config: config["distance"],
    )
    runs = list(runs)  # if one of them diverged it's said here, when the others have ended
    results.print(
        f"right tags at distances {' / '.join(map(str, DISTANCES))}, mean of {len(SEEDS)} seeds; before training,"
    )
    results.print("the gradient at the word that the tag depends on (of two, where it is smaller)")
    for cell, task, reader in lines:
        if reader == "forward":
            results.print(f"\n{cell}: the tag depends on {task}")
        groups = [seeds(runs, cell, task, reader, distance) for distance in DISTANCES]
        right = " / ".join(f"{fmean(run['accuracy'] for run in group):.3f}" for group in groups)
        sizes = " / ".join(f"{median(run['gradient'] for run in group):.1e}" for group in groups)
        results.print(f"{reader:<8}, at most {ceilings[task][reader]:.3f}: {right}; {sizes}")
    results.record(ceiling=ceilings, runs=runs)
    results.save(draw)


def seeds(runs, *setting):
    """The runs of one cell, task, reader and distance."""
    return [run for run in runs if (run["cell"], run["task"], run["reader"], run["distance"]) == setting]


def parse(argv):
    parser = script.Arguments(__doc__)
    parser.add_argument("--steps", type=script.positive_int, default=STEPS, metavar="N", help="of every training")
    trainings.add_arguments(parser)
    return parser.parse_args(argv)


def draw(results):
    """Right tags against the distance: a row for each cell, a column for each task, a line for each reader."""
    figure, grid = plots.subplots(len(CELLS), len(TASKS), size=(10.0, 6.0), sharex=True, sharey=True)
    for (cell, task), axes in zip(product(CELLS, TASKS), grid.flat, strict=True):
        for reader, marker in zip(READERS, plots.MARKERS, strict=False):
            groups = [seeds(results["runs"], cell, task, reader, distance) for distance in DISTANCES]
            mean = [fmean(run["accuracy"] for run in group) for group in groups]
            axes.plot(DISTANCES, mean, marker=marker, label=reader)
        axes.axhline(results["ceiling"][task]["forward"], color="0.4", linewidth=0.8, label="forward at most")
        axes.set(xscale="log", ylim=(0.2, 1.03), title=f"{cell}: {task}")
        axes.set_xticks(DISTANCES, DISTANCES)
        axes.minorticks_off()
    for axes in grid[-1]:
        axes.set_xlabel("distance (words)")
    for axes in grid[:, 0]:
        axes.set_ylabel("right tags")
    grid[0, 0].legend()
    return figure


if __name__ == "__main__":
    script.run(main)
