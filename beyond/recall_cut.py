"""A plain RNN tells a bit after delays from which no gradient reaches it. Does it need one, and does it hold the bit?

In recall.py a plain RNN learns delays over which the gradient at the bit is 0 in float32, at a learning rate of 0.01.
Here its gradient is cut on purpose: the steps before the last few count as constants, so that nothing of the bit's own
gradient is left, whatever its size. In two controls the recurrent weights stay as they were drawn, or as drawn but
scaled to a spectral radius of 1.5. And an LSTM that starts at chrono biases stands beside them.

    whole                 as in recall.py
    last 20 steps         the gradient of the 20 steps before the answer, no more: truncated backpropagation
    last step             of one step
    readout               only the readout is trained
    readout, radius 1.5   the same, the recurrent weights scaled before
    LSTM, chrono          whole

Solved is as in recall.py, within 1,000 steps of 32 sequences. Those that solve it are then asked one and two steps
later than they were trained for. Who holds a bit still has it.

    python -m beyond.recall_cut          6 min

Prints, all of it:

    seeds of 5 that solved it (median of their steps), by the delay
                                  20          40          80         160         320         640
    whole                    5 (100)     4 (188)     3 (200)     2 (225)     2 (588)     4 (275)
    last 20 steps            4 (138)     2 (150)     3 (600)     4 (250)     4 (250)     4 (275)
    last step                5 (150)     2 (388)     1 (300)     5 (375)     2 (312)     3 (100)
    readout                        0           0           0           0           0           0
    readout, radius 1.5       5 (75)      5 (75)     3 (550)      2 (88)      1 (75)     2 (100)
    LSTM, chrono             5 (100)     5 (125)     5 (150)     5 (175)     5 (275)     5 (425)
    of those that solved it: right at the delay they were trained for, one and two steps later (medians)
    whole                 1.00 0.92 0.00  1.00 0.44 0.51  1.00 0.00 1.00  1.00 0.74 0.52  1.00 0.50 0.50  1.00 0.00 1.00
    last 20 steps         1.00 0.50 0.25  1.00 0.42 0.24  1.00 0.00 1.00  1.00 0.01 0.24  1.00 0.51 0.24  1.00 0.00 1.00
    last step             1.00 0.00 1.00  1.00 0.00 1.00  1.00 0.00 1.00  1.00 0.00 1.00  1.00 0.00 1.00  1.00 0.00 1.00
    readout                            -               -               -               -               -               -
    readout, radius 1.5   1.00 0.48 0.48  0.97 0.49 0.51  0.90 0.23 0.50  0.94 0.25 0.75  1.00 0.00 1.00  0.94 0.24 0.76
    LSTM, chrono          1.00 1.00 1.00  1.00 1.00 1.00  1.00 1.00 1.00  1.00 1.00 1.00  1.00 1.00 1.00  1.00 1.00 1.00
    the spectral radius in the end, lowest to highest: of those that solved it, of those that didn't
    whole               2.24 to 5.24, 2.78 to 5.04
    last 20 steps       2.28 to 7.65, 1.40 to 6.39
    last step           1.40 to 6.09, 1.72 to 3.62
    readout             none, 0.54 to 0.63
    readout, radius 1.5 1.50 to 1.50, 1.50 to 1.50

It needs no gradient from the bit. With that of the last step alone about as many seeds tell the bit after 640 steps as
with all of it, and some do with no more than their recurrent weights scaled up. But they don't hold it. A step later
most of them answer at random or the opposite, and two steps later some are right again, as an oscillation would be that
has the bit for its phase. So each tells it at the delay that it was trained for. The LSTM holds it: it is right a step
later and two.

Sources: as recall.py; Williams and Peng (1990) for truncated backpropagation; Jaeger (2001) for networks whose readout
alone is trained.
"""

from dataclasses import dataclass, replace
from statistics import median

import torch
from torch import nn

from lab import plots, script, trainings
from layers import cells, one_bit_training
from layers.one_bit_training import LOOK, LOOK_SEED, LOOKED, SETTINGS, TEST_SEED, share_right, solved_at

RATE, STEPS = 0.01, 1000
WAYS = {  # the cell, the steps that its gradient goes through (None: all), the spectral radius (None: as drawn)
    "whole": ("RNN", None, None),
    "last 20 steps": ("RNN", 20, None),
    "last step": ("RNN", 1, None),
    "readout": ("RNN", 0, None),
    "readout, radius 1.5": ("RNN", 0, 1.5),
    "LSTM, chrono": ("LSTM, chrono", None, None),
}
LATER = [0, 1, 2]  # steps after the delay that was trained for
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


def radius(layer):
    """The spectral radius of a plain cell's recurrent weights."""
    return torch.linalg.eigvals(layer.weight_hh_l0.detach().cpu().double()).abs().max().item()


def train(config, checkpoint):
    """One training, until it solves the task or its steps end, from its configuration to its record."""
    _, steps, scaled = WAYS[config.way]
    model = Cut(one_bit_training.build(config), steps)
    layer = model.model.layer
    if scaled:
        with torch.no_grad():
            layer.weight_hh_l0.mul_(scaled / radius(layer))
    training = one_bit_training.descent(model, config, checkpoint)
    for step in training:
        if step % LOOK == 0:
            looked_at = torch.Generator().manual_seed((LOOK_SEED + config.seed) * 1_000_003 + step)
            training.log(right=share_right(model, looked_at, config, LOOKED))
            if solved_at(training.curve["right"]):
                break
    solved, fresh = solved_at(training.curve.get("right", [])), torch.Generator().manual_seed(TEST_SEED + config.seed)
    later = [replace(config, delay=config.delay + more) for more in LATER]
    right = [share_right(model, fresh, other, one_bit_training.TESTED) for other in later]
    return trainings.settings(config) | {
        "solved_at": solved,
        "seconds": training.seconds,
        "accuracy": right[0],
        "right_later": right,
        "spectral_radius": radius(layer) if config.cell == "RNN" else None,
    }


def measure(arguments):
    steps = min(arguments.steps, STEPS)
    configs = [
        Config(cell, delay, seed, RATE, steps, device=arguments.device, way=way)
        for way, (cell, *_) in WAYS.items()
        for delay in DELAYS
        for seed in SEEDS
    ]
    return {"seeds": SEEDS, "runs": trainings.run(train, configs, arguments)}


def tell(found):
    yield f"seeds of {len(SEEDS)} that solved it (median of their steps), by the delay"
    yield f"{'':20}" + "".join(f"{delay:>12,}" for delay in DELAYS)
    for way in WAYS:
        yield f"{way:20}" + "".join(f"{told(runs_of(found, way, delay)):>12}" for delay in DELAYS)
    yield "of those that solved it: right at the delay they were trained for, one and two steps later (medians)"
    for way in WAYS:
        own = [solved(runs_of(found, way, delay)) for delay in DELAYS]
        cells = (" ".join(f"{median(each):.2f}" for each in later(runs)) if runs else "-" for runs in own)
        yield f"{way:20}" + "".join(f"{each:>16}" for each in cells)
    yield "the spectral radius in the end, lowest to highest: of those that solved it, of those that didn't"
    for way, (cell, *_) in WAYS.items():
        if cell == "RNN":
            own = [run for run in found["runs"] if run["way"] == way and "accuracy" in run]
            parts = (solved(own), [run for run in own if not run["solved_at"]])
            yield f"{way:20}" + ", ".join(span([run["spectral_radius"] for run in runs]) for runs in parts)


def solved(runs):
    return [run for run in runs if run["solved_at"]]


def later(runs):
    """The shares right at the delay and after it: a list of seeds each."""
    return zip(*(run["right_later"] for run in runs), strict=True)


def span(values):
    return f"{min(values):.2f} to {max(values):.2f}" if values else "none"


def runs_of(found, way, delay):
    return [run for run in found["runs"] if (run["way"], run["delay"]) == (way, delay) and "accuracy" in run]


def told(runs):
    steps = [run["solved_at"] for run in solved(runs)]
    return f"{len(steps)} ({median(steps):,.0f})" if steps else "0"


def draw(found):
    """How many seeds solve it against the delay, each way; and how many of their answers are right a step later."""
    figure, (axes, after) = plots.subplots(1, 2, size=(11.0, 4.6))
    for number, way in enumerate(WAYS):
        counts = [len(solved(runs_of(found, way, delay))) for delay in DELAYS]
        style = {"color": plots.COLOURS[number], "marker": plots.MARKERS[number], "linestyle": plots.DASHES[number]}
        axes.plot(DELAYS, counts, label=way, **style)
        for delay in DELAYS:
            shares = [run["right_later"][1] for run in solved(runs_of(found, way, delay))]
            after.plot([delay] * len(shares), shares, fillstyle="none", **(style | {"linestyle": ""}))
    for panel in (axes, after):
        panel.set(xscale="log", xlabel="delay (steps)")
        panel.set_xticks(DELAYS, [f"{delay:,}" for delay in DELAYS], minor=False)
        panel.minorticks_off()
    axes.set(
        ylabel=f"seeds of {len(SEEDS)} that solve it", ylim=(-0.3, 7.3), title="One bit, by how far the gradient goes"
    )
    axes.legend(ncols=2, loc="upper right", fontsize=8)
    after.set(ylabel="share right one step later", ylim=(-0.03, 1.03), title="Asked a step later: each that solved it")
    return figure


def options(parser):
    parser.add_argument("--steps", type=script.positive_int, default=STEPS, metavar="N", help="of a training, at most")
    parser.add_jobs()
    parser.add_device()


if __name__ == "__main__":
    script.run(measure, tell, draw, options)
