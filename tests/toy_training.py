"""A training that takes a second: for the tests of lab.trainings, importable by the processes that it starts."""

import time

import torch
from torch import nn

from lab import script


def train(config: dict, keeper) -> dict:
    """Fit a small recurrent layer to noise. Everything that a training has is in it: generator, optimizer, curve."""
    generator = torch.Generator().manual_seed(config["seed"])
    torch.manual_seed(config["seed"])
    model = nn.GRU(4, 8, batch_first=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=config.get("lr", 0.01))
    step, curve = 0, []
    if state := keeper.load():
        step, curve = state["step"], state["curve"]
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        generator.set_state(state["generator"])
    while step < config["steps"]:
        step += 1
        x = torch.randn(8, 5, 4, generator=generator)  # (batch, time, input)
        loss = (model(x)[0] - x.sum(2, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == config.get("diverges_at"):
            raise script.Diverged(step)
        curve.append(loss.item())
        time.sleep(config.get("pause", 0.0))
        keeper.tick(step, config["steps"], loss=curve[-1])
        keeper.save_if_due(
            lambda: {
                "step": step,
                "curve": curve,
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "generator": generator.get_state(),
            }
        )
    weights = torch.cat([p.detach().flatten() for p in model.parameters()]).tolist()
    return {**config, "curve": curve, "weights": weights, "resumed": bool(state)}
