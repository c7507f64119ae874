"""A plain RNN learns to hold one bit over delays from which no gradient reaches it. Does it need that gradient at all?

In recall.py a plain RNN learns delays over which the gradient at the bit is 0 in float32, at a learning rate of 0.01.
Here its gradient is cut on purpose: the steps before the last few count as constants, so that nothing of the bit's own
gradient is left, whatever its size. And in a second control the recurrent weights stay as they were drawn.

    whole           as in recall.py
    last 20 steps   the gradient of the 20 steps before the answer, no more: truncated backpropagation
    last step       of one step
    readout         only the readout is trained

Solved is as in recall.py, within 1,000 steps of 32 sequences.

    python -m beyond.recall_cut          2 min

Prints, all of it:

    seeds of 5 that solved it (median of their steps), by the delay; the spectral radius of the
    recurrent weights in the end, median of all
                             20           40           80          160          320          640
    whole               5 (100)      4 (188)      3 (200)      2 (225)      2 (588)      4 (275)
    last 20 steps       4 (138)      2 (150)      3 (600)      4 (250)      4 (250)      4 (275)
    last step           5 (150)      2 (388)      1 (300)      5 (375)      2 (312)      3 (100)
    readout                   0            0            0            0            0            0
    whole                  2.62         3.06         3.05         4.31         3.67         4.05
    last 20 steps          2.47         2.61         3.66         3.36         2.98         3.71
    last step              4.16         2.92         2.50         4.10         3.62         3.63
    readout                0.59         0.59         0.59         0.59         0.59         0.59

It doesn't need it. With the gradient of the last step alone about as many seeds learn to hold a bit for 640 steps as
with all of it, about as soon. What holds the bit comes about without a signal from there: whatever else the weights are
trained on, they grow, to a spectral radius of 2.5 and more. Then tanh gives the state places to stay in, which one is
left to the first input, and the readout has only to tell them apart. At the radius of 0.59 that torch draws there is
only one such place, and nothing for a readout to find.

Sources: as recall.py; Williams and Peng (1990) for truncated backpropagation; Jaeger (2001) for networks whose readout
alone is trained.
"""

from dataclasses import dataclass
from statistics import median

import torch
from torch import nn

from lab import plots, script, trainings
from layers import cells, one_bit_training
from layers.one_bit_training import LOOK, LOOK_SEED, LOOKED, SETTINGS, TEST_SEED, share_right, solved_at

CELL, RATE, STEPS = "RNN", 0.01, 1000
WAYS = {"whole": None, "last 20 steps": 20, "last step": 1, "readout": 0}  # steps that the gradient goes through
DELAYS = [20, 40, 80, 160, 320, 640]
SEEDS = range(3, 8)  # recall.py's


@dataclass(frozen=True)
class Config(one_bit_training.Config):
    """One training."""

    way: str = "whole"  # of WAYS

    def __str__(self):
        return f"{self.way}, delay {self.delay:,}, seed {self.seed}"


KINDS = {"*": "trained", "runs.*.way": "setting"}
KINDS |= {f"runs.*.{name}": "setting" for name in SETTINGS}


class Cut(nn.Module):
    """A recurrent model whose gradient goes through its last steps only; ``steps`` None: through all."""

    def __init__(self, model, steps):
        super().__init__()
        self.model, self.steps = model, steps

    def forward(self, x):
        """The logit of the answer 1: (batch,). Its value is the model's own, whatever is cut."""
        if self.steps is None or self.steps >= len(x):
            return self.model(x)
        with torch.no_grad():
            h, _ = cells.run(self.model.layer, x[: len(x) - self.steps])
        if not self.steps:
            return self.model.readout(h[-1])[:, 0]
        return self.model(x[-self.steps :], (h[-1:],))


def train(config, checkpoint):
    """One training, until it solves the task or its steps end, from its configuration to its record."""
    model = Cut(one_bit_training.build(config), WAYS[config.way])
    training = one_bit_training.descent(model, config, checkpoint)
    for step in training:
        if step % LOOK == 0:
            looked_at = torch.Generator().manual_seed((LOOK_SEED + config.seed) * 1_000_003 + step)
            training.log(right=share_right(model, looked_at, config, LOOKED))
            if solved_at(training.curve["right"]):
                break
    fresh = torch.Generator().manual_seed(TEST_SEED + config.seed)
    W = model.model.layer.weight_hh_l0.detach().cpu().double()
    return trainings.settings(config) | {
        "solved_at": solved_at(training.curve.get("right", [])),
        "seconds": training.seconds,
        "accuracy": share_right(model, fresh, config, one_bit_training.TESTED),
        "spectral_radius": torch.linalg.eigvals(W).abs().max().item(),
    }


def measure(arguments):
    steps = min(arguments.steps, STEPS)
    configs = [
        Config(CELL, delay, seed, RATE, steps, device=arguments.device, way=way)
        for way in WAYS
        for delay in DELAYS
        for seed in SEEDS
    ]
    return {"seeds": SEEDS, "runs": trainings.run(train, configs, arguments)}


def tell(found):
    yield f"seeds of {len(SEEDS)} that solved it (median of their steps), by the delay; the spectral radius of the"
    yield "recurrent weights in the end, median of all"
    yield f"{'':14}" + "".join(f"{delay:>13,}" for delay in DELAYS)
    for way in WAYS:
        yield f"{way:14}" + "".join(f"{told(runs_of(found, way, delay)):>13}" for delay in DELAYS)
    for way in WAYS:
        radii = [median(run["spectral_radius"] for run in runs_of(found, way, delay)) for delay in DELAYS]
        yield f"{way:14}" + "".join(f"{radius:13.2f}" for radius in radii)


def runs_of(found, way, delay):
    return [run for run in found["runs"] if (run["way"], run["delay"]) == (way, delay) and "accuracy" in run]


def told(runs):
    steps = [run["solved_at"] for run in runs if run["solved_at"]]
    return f"{len(steps)} ({median(steps):,.0f})" if steps else "0"


def draw(found):
    """How many seeds solve it against the delay, each way."""
    figure, axes = plots.subplots(size=(7.0, 4.4))
    for number, way in enumerate(WAYS):
        counts = [sum(bool(run["solved_at"]) for run in runs_of(found, way, delay)) for delay in DELAYS]
        style = {"color": plots.COLOURS[number], "marker": plots.MARKERS[number], "linestyle": plots.DASHES[number]}
        axes.plot(DELAYS, counts, label=way, **style)
    axes.set(xscale="log", xlabel="delay (steps)", ylabel=f"seeds of {len(SEEDS)} that solve it", ylim=(-0.3, 6.3))
    axes.set_xticks(DELAYS, [f"{delay:,}" for delay in DELAYS], minor=False)
    axes.minorticks_off()
    axes.set_title("One bit, a plain RNN, by how far its gradient goes back")
    axes.legend(ncols=2, loc="upper right")
    return figure


def options(parser):
    parser.add_argument("--steps", type=script.positive_int, default=STEPS, metavar="N", help="of a training, at most")
    parser.add_jobs()
    parser.add_device()


if __name__ == "__main__":
    script.run(measure, tell, draw, options)
