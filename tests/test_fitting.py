"""The loop of small trainings (lab/fitting.py)."""

import pytest
import torch
from torch import nn

from lab.fitting import fit
from lab.script import Diverged
from lab.trainings import Keeper


def config(**changed):
    return {"seed": 4, "steps": 12, "optimizer": "Adam", "learning_rate": 0.05, "clip": 1.0, **changed}


def trained(config, keeper):
    torch.manual_seed(0)
    model = nn.Linear(3, 1)

    def loss_on(generator):
        x = torch.randn(5, 3, generator=generator)
        return (model(x) - x.sum(dim=1, keepdim=True)).square().mean()

    fit(model, loss_on, config, keeper)
    return torch.cat([p.detach().flatten() for p in model.parameters()]).tolist()


@pytest.mark.parametrize("clip", [None, 1.0])
def test_steps_are_gradient_descent_by_hand(clip):
    """The mean of (w·x + b - y)² has the gradient (2 e·x / 5, 2 Σe / 5); a step's has nothing of the one before it."""
    torch.manual_seed(0)
    model = nn.Linear(3, 1)
    w = torch.cat([p.detach().flatten() for p in model.parameters()])
    generator, clipped = torch.Generator().manual_seed(4), 0
    for _ in range(12):
        x = torch.randn(5, 3, generator=generator)
        ones = torch.cat([x, torch.ones(5, 1)], dim=1)
        gradient = 2 / 5 * ones.T @ (ones @ w - x.sum(dim=1))
        if clip and gradient.norm() > clip:
            gradient *= clip / gradient.norm()
            clipped += 1
        w = w - 0.05 * gradient
    assert (0 < clipped < 12) == bool(clip)
    assert trained(config(optimizer="SGD", clip=clip), Keeper()) == pytest.approx(w.tolist(), rel=1e-5)


class Killed(Exception):
    pass


class Mortal(Keeper):
    """Saves after every step, and ends there."""

    def save_if_due(self, make_state):
        super().save_if_due(make_state)
        raise Killed


@pytest.mark.parametrize("how", [{}, {"optimizer": "SGD", "clip": None}])
def test_an_interruption_after_any_step_changes_no_bit(how, tmp_path):
    expected = trained(config(**how), Keeper())
    assert expected != trained(config(**how, steps=11), Keeper())
    for _ in range(12):
        with pytest.raises(Killed):
            trained(config(**how), Mortal(tmp_path, config(**how), every=0))
    assert trained(config(**how), Keeper(tmp_path, config(**how))) == expected


def test_the_same_seed_gives_the_same_weights_whatever_else_was_drawn():
    first = trained(config(), Keeper())
    torch.rand(3)
    assert trained(config(), Keeper()) == first
    assert trained(config(seed=5), Keeper()) != first


def test_a_loss_that_is_not_finite_stops_at_its_step():
    model = nn.Linear(1, 1)
    losses = iter([1.0, 1.0, float("inf")])
    with pytest.raises(Diverged, match="step 3"):
        fit(model, lambda generator: model.weight.sum() * next(losses), config(), Keeper())
