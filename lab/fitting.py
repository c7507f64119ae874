"""The loop of a small training: fresh data at every step, one optimizer, and all that an interruption must not lose."""

import math
from collections.abc import Callable

import torch
from torch import nn

from lab.script import Diverged
from lab.trainings import Keeper


def fit(model: nn.Module, loss_on: Callable[[torch.Generator], torch.Tensor], config: dict, keeper: Keeper):
    """Train ``model`` on the loss of data that ``loss_on`` draws from the generator it is given.

    The configuration says ``steps``, the data's ``seed``, the ``optimizer`` by its name in torch.optim, its
    ``learning_rate``, and ``clip``, the largest norm that a gradient may have (None: any).
    """
    optimizer = getattr(torch.optim, config["optimizer"])(model.parameters(), lr=config["learning_rate"])
    generator = torch.Generator().manual_seed(config["seed"])
    step = 0
    if state := keeper.load():
        step = state["step"]
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        generator.set_state(state["generator"])

    def snapshot():
        parts = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        return {"step": step, "generator": generator.get_state(), **parts}

    while step < config["steps"]:
        step += 1
        loss = loss_on(generator)
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), math.inf if config["clip"] is None else config["clip"])
        if not math.isfinite(loss.item() + norm.item()):
            raise Diverged(step)
        optimizer.step()
        keeper.tick(step, config["steps"], loss=loss.item())
        keeper.save_if_due(snapshot)
