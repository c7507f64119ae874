"""Training a model to remember one bit (one_bit.py), until it has solved the task or its steps end.

Solved is: 90% of 100 fresh sequences right, three times in a row, looked at every 25 steps. What a training leaves is
its record: when it solved the task, how well the model does on other sequences, and how large the gradient is at the
state that has just read the bit, before, along the way and after.
"""

from dataclasses import dataclass, fields

import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from lab import devices, trainings
from lab.descent import Descent
from layers import one_bit
from layers.one_bit import NOISE, gradient_at_first_state, sequences

BATCH, WIDTH = 32, 32  # sequences a step, units
CLIP = 1.0  # largest norm of the gradient
LOOK, LOOKED, ENOUGH, IN_A_ROW = 25, 100, 0.9, 3  # steps between looks, sequences, their share right, looks
POINT = 10  # looks between two points of the gradient's curve
FIRST_EDITION = {"learning_rate": 0.001, "steps": 600, "batch": 64, "stops": False}  # what recall.py gave all models
TESTED, CHUNK = 1000, 100  # fresh sequences for each model; how many of them at once
LOOK_SEED, TEST_SEED = 1000, 2000  # added to a training's own, for sequences that it isn't trained on


@dataclass(frozen=True)
class Config:
    """One training."""

    cell: str  # of one_bit.MODELS
    delay: int  # steps between the bit and the end
    seed: int  # of the weights and of all sequences
    learning_rate: float  # Adam's
    steps: int  # at most
    noise: float = NOISE  # standard deviation
    batch: int = BATCH  # sequences a step
    width: int = WIDTH  # units
    clip: float | None = CLIP  # largest norm of the gradient
    stops: bool = True  # as soon as the task is solved
    device: str = "cpu"  # where it is trained; not recorded

    def __str__(self):
        return f"{self.cell}, delay {self.delay:,}, rate {self.learning_rate:g}, seed {self.seed}"

    @property
    def cost(self):
        return self.steps * self.delay * self.batch


SETTINGS = [field.name for field in fields(Config) if field.name not in ("seed", "device")]


def build(config):
    """The untrained model, whose weights are drawn on the CPU whatever the device."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        return one_bit.new_model(config.cell, config.width, config.delay).to(devices.trusted(config.device))


def descent(model, config, checkpoint):
    """The training of a model, ready to begin: fresh sequences at every step."""
    device = devices.trusted(config.device)

    def loss_on(generator):
        x, bit = sequences(generator, config.delay, config.batch, config.noise, device)
        return binary_cross_entropy_with_logits(model(x), bit)

    optimizer = torch.optim.Adam(model.parameters(), lr=config.learning_rate)
    return Descent(model, optimizer, loss_on, torch.Generator().manual_seed(config.seed), config, checkpoint)


@torch.no_grad()
def share_right(model, generator, config, count, bit_is_shown=True):
    """The share of right answers on fresh sequences."""
    right, device = 0, devices.trusted(config.device)
    for _ in range(0, count, CHUNK):
        x, bit = sequences(generator, config.delay, CHUNK, config.noise, device)
        x[0] *= bit_is_shown
        right += ((model(x) > 0) == (bit == 1)).sum().item()
    return right / count


def train(config, checkpoint):
    """One training, until it solves the task or its budget ends, from its configuration to its record."""
    model, fresh = build(config), torch.Generator().manual_seed(TEST_SEED + config.seed)
    some = sequences(fresh, config.delay, config.batch, config.noise, devices.trusted(config.device))
    before = {
        "gradient_before": gradient_at_first_state(model, *some),
        "share_of_the_bit": one_bit.share_of_the_bit(model, some[0], fresh),
        "kept_before": one_bit.kept(model, some[0]),
    }
    training = descent(model, config, checkpoint)
    for step in training:
        if step % LOOK:
            continue
        # The sequences of a look depend on its step alone: a training that goes on after an interruption sees the same.
        looked_at = torch.Generator().manual_seed((LOOK_SEED + config.seed) * 1_000_003 + step)
        training.log(right=share_right(model, looked_at, config, LOOKED))
        if step % (LOOK * POINT) == 0:
            training.log(step=step, gradient=gradient_at_first_state(model, *some))
        if config.stops and solved_at(training.curve["right"]):
            break
    return trainings.settings(config) | before | {
        "solved_at": solved_at(training.curve.get("right", [])),
        "seconds": training.seconds,
        "accuracy": share_right(model, fresh, config, TESTED),
        "accuracy_without_the_bit": share_right(model, fresh, config, TESTED, bit_is_shown=False),
        "gradient_after": gradient_at_first_state(model, *some),
        "kept_after": one_bit.kept(model, some[0]),
        "curve": {name: training.curve.get(name, []) for name in ("step", "gradient")},
    }  # fmt: skip


def solved_at(looks):
    """The step of the look with which a training had solved the task, or None."""
    for number in range(IN_A_ROW, 1 + len(looks)):
        if min(looks[number - IN_A_ROW : number]) >= ENOUGH:
            return number * LOOK
    return None
