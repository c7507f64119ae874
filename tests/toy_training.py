"""A small sweep with everything that a real one has: draws, momentum, clipping, a curve, the best weights, divergence.

For the tests of lab: a module of its own, so that other processes can import it; as a script it is an experiment. What
the trainings do is steered by the files of the folder that TOY_FOLDER names: at step S one with ``stop-S`` there writes
``PROCESS at S`` and waits until the file is gone.
"""

import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import nn

from lab import script, trainings
from lab.descent import Descent
from lab.errors import Diverged

STEPS = 40
KINDS = {"*": "trained", "runs.*.steps": "setting"}


@dataclass(frozen=True)
class Config:
    """One training."""

    seed: int
    steps: int = STEPS
    clip: float | None = 1.0  # largest norm of the gradient
    diverges_at: int | None = None  # the step

    def __str__(self):
        return f"seed {self.seed}"

    @property
    def cost(self):
        return self.steps


class Momentum:
    """An optimizer by hand: the first one of torch's takes a process a second, for modules that it doesn't use."""

    def __init__(self, layer):
        self.parameters = list(layer.parameters())
        self.velocity = [torch.zeros_like(parameter) for parameter in self.parameters]

    def zero_grad(self):
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self):
        for parameter, velocity in zip(self.parameters, self.velocity, strict=True):
            parameter -= 0.3 * velocity.mul_(0.9).add_(parameter.grad)

    def state_dict(self):
        return {"velocity": self.velocity}

    def load_state_dict(self, state):
        self.velocity = state["velocity"]


def train(config, checkpoint):
    """Fit a small recurrent layer to noise, with a checkpoint after every step. Dropout draws from torch's noise."""
    checkpoint.every = 0
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        layer = nn.GRU(4, 8, num_layers=2, batch_first=True, dropout=0.5)

    def loss_on(generator):
        x = torch.randn(8, 5, 4, generator=generator)  # (batch, time, input)
        return (layer(x)[0] - x.sum(2, keepdim=True)).square().mean()

    generator = torch.Generator().manual_seed(config.seed)
    training = Descent(layer, Momentum(layer), loss_on, generator, config, checkpoint)
    for step in training:
        wait_at(step)
        if step == config.diverges_at:
            raise Diverged(step)
        if step % 3 == 1:
            training.log(step=step, loss=training.losses[-1])
            training.keep_best("loss")
    weights = [parameter.detach().flatten() for parameter in layer.parameters()]
    return asdict(config) | {
        "curve": training.curve,
        "losses": training.losses,
        "best_step": training.best["step"],
        "weights": torch.cat([*weights, *(value.flatten() for value in training.best["model"].values())]).tolist(),
    }


def wait_at(step):
    folder = Path(os.environ.get("TOY_FOLDER", "nowhere"))
    if (folder / f"stop-{step}").exists():
        (folder / f"{os.getpid()} at {step}").touch()
        while (folder / f"stop-{step}").exists():
            time.sleep(0.01)


def measure(arguments):
    configs = [
        Config(seed, arguments.steps, diverges_at=7 if seed == arguments.diverges else None) for seed in (0, 1, 2)
    ]
    return {
        "seeds": [0, 1, 2],
        "runs": trainings.run(train, configs, arguments, line=lambda run: f"ended: {run['seed']}"),
    }


def tell(found):
    for run in found["runs"]:
        yield f"seed {run['seed']}: {run['losses'][-1] if 'losses' in run else 'diverged'}"


def options(parser):
    parser.add_argument("--steps", type=script.positive_int, default=STEPS, metavar="N")
    parser.add_argument("--diverges", type=script.seed, metavar="SEED")
    parser.add_jobs()


if __name__ == "__main__":
    script.run(measure, tell, options=options)
