"""A small training with everything that a real one has to keep: generator, momentum, step and curve.

For the tests of lab.trainings: a module of its own, so that other processes can import it. As a script it is a sweep.
"""

import os
import sys
import time

import torch
from torch import nn

from lab import script, trainings

CONFIGS = [{"seed": seed, "steps": 200, "pause": 0.01} for seed in (0, 1, 2)]


def train(config: dict, keeper: trainings.Keeper) -> dict:
    """Fit a small recurrent layer to noise, with a checkpoint at every step unless ``config`` has ``every``."""
    keeper.every = config.get("every", 0)
    generator = torch.Generator().manual_seed(config["seed"])
    torch.manual_seed(config["seed"])
    layer = nn.GRU(4, 8, batch_first=True)
    velocity = {name: torch.zeros_like(parameter) for name, parameter in layer.named_parameters()}
    step, curve = 0, []
    if state := keeper.load():
        layer.load_state_dict(state["layer"])
        generator.set_state(state["generator"])
        velocity, step, curve = state["velocity"], state["step"], state["curve"]
    while step < config["steps"]:
        step += 1
        if step == config.get("diverges_at"):
            raise script.Diverged(step)
        x = torch.randn(8, 5, 4, generator=generator)  # (batch, time, input)
        loss = (layer(x)[0] - x.sum(2, keepdim=True)).square().mean()
        layer.zero_grad()
        loss.backward()
        with torch.no_grad():
            for name, parameter in layer.named_parameters():
                velocity[name].mul_(0.9).add_(parameter.grad)
                parameter -= 0.01 * velocity[name]
        curve.append(loss.item())
        state = {"layer": layer.state_dict(), "generator": generator.get_state(), "velocity": velocity}
        keeper.save_if_due(lambda state=state, step=step: {**state, "step": step, "curve": curve})
        keeper.tick(step, config["steps"], process=os.getpid())
        time.sleep(config.get("pause", 0.0))
    weights = torch.cat([parameter.detach().flatten() for parameter in layer.parameters()])
    return {"seed": config["seed"], "curve": curve, "weights": weights.tolist()}


def main():
    """The sweep that the tests interrupt: WORK and the number of jobs are its arguments; it prints its records."""
    work, jobs = sys.argv[1:]
    for record in trainings.run(train, CONFIGS, name="toy", jobs=int(jobs), work=work, describe=describe):
        print(record, flush=True)


def describe(config: dict) -> str:
    """A configuration's name."""
    return f"seed {config['seed']}"


if __name__ == "__main__":
    script.run(main)
