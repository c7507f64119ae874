"""The loop of every training (lab/descent.py): the arithmetic of a step, the curve, and interruptions at any step."""

import math
from dataclasses import asdict, dataclass, replace
from types import SimpleNamespace

import pytest
import torch
import toy_training
from torch import nn

from lab.descent import Descent
from lab.errors import Diverged
from lab.trainings import Checkpoint

CPU = SimpleNamespace(type="cpu")
OTHER = SimpleNamespace(type="other")  # stands for a device whose losses are fetched many at once


@dataclass(frozen=True)
class Config:
    steps: int = 12
    clip: float | None = 1.0
    optimizer: str = "Adam"


def descent(config, checkpoint=None, seed=4):
    """A linear model learns to add three numbers."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = nn.Linear(3, 1)

    def loss_on(generator):
        x = torch.randn(5, 3, generator=generator)
        return (model(x) - x.sum(dim=1, keepdim=True)).square().mean()

    optimizer = getattr(torch.optim, config.optimizer)(model.parameters(), lr=0.05)
    generator = torch.Generator().manual_seed(seed)
    return Descent(model, optimizer, loss_on, generator, config, checkpoint or Checkpoint())


def weights(training):
    return torch.cat([p.detach().flatten() for p in training.model.parameters()]).tolist()


def trained(config, checkpoint=None, seed=4):
    training = descent(config, checkpoint, seed)
    assert list(training)[-1:] == [config.steps]
    return weights(training)


@pytest.mark.parametrize("clip", [None, 1.0])
def test_steps_are_gradient_descent_by_hand(clip):
    """The mean of (w·x + b - y)² has the gradient (2 e·x / 5, 2 Σe / 5); a step's has nothing of the one before it."""
    config = Config(clip=clip, optimizer="SGD")
    training = descent(config)
    w = torch.tensor(weights(training))
    generator, losses, norms = torch.Generator().manual_seed(4), [], []
    for _ in range(12):
        x = torch.randn(5, 3, generator=generator)
        ones = torch.cat([x, torch.ones(5, 1)], dim=1)
        errors = ones @ w - x.sum(dim=1)
        gradient = 2 / 5 * ones.T @ errors
        losses.append(errors.square().mean().item())
        norms.append(gradient.norm().item())
        w = w - 0.05 * gradient * min(1, (clip or math.inf) / norms[-1])
    assert not clip or min(norms) < clip < max(norms)
    assert list(training) == list(range(1, 13))
    assert weights(training) == pytest.approx(w.tolist(), rel=1e-5)
    assert training.losses == pytest.approx(losses, rel=1e-4)
    assert training.norms == pytest.approx(norms, rel=1e-4)


@pytest.mark.parametrize("config", [Config(), Config(optimizer="SGD", clip=None)])
def test_an_interruption_after_any_step_changes_no_bit(config, tmp_path):
    """Each step once: what was done after it is lost with the process that did it, and another one goes on."""
    expected = trained(config)
    assert expected != trained(replace(config, steps=11))
    for step in range(1, 13):
        for reached in (training := descent(config, Checkpoint(tmp_path, every=0))):
            if reached == step:
                break
        assert len(training.losses) == step
    assert trained(config, Checkpoint(tmp_path)) == expected


def test_an_interruption_loses_nothing_that_a_training_keeps(tmp_path):
    """The toy has two layers with dropout, momentum, a curve and best weights; here it ends once in every step."""

    class Killed(Exception):
        pass

    class Mortal(Checkpoint):
        def tick(self, step, total, **shown):
            super().tick(step, total, **shown)
            if step == dies_at:
                raise Killed

    config = toy_training.Config(seed=0, steps=9)
    expected = toy_training.train(config, Checkpoint())
    assert expected["curve"]["step"] == [1, 4, 7] and len(expected["losses"]) == 9
    for dies_at in range(1, 10):
        torch.rand(dies_at)  # other draws from torch's own noise
        with pytest.raises(Killed):
            toy_training.train(config, Mortal(tmp_path, "seed 0"))
        assert (
            Checkpoint(tmp_path).load() is None if dies_at == 1 else Checkpoint(tmp_path).load()["step"] == dies_at - 1
        )
    assert toy_training.train(config, Checkpoint(tmp_path)) == expected


def test_the_same_seed_gives_the_same_weights_whatever_else_was_drawn():
    first = trained(Config())
    torch.rand(3)
    assert trained(Config()) == first
    assert trained(Config(), seed=5) != first


@pytest.mark.parametrize("device", [CPU, OTHER])
@pytest.mark.parametrize("bad", [3, 51])
def test_a_loss_that_is_not_finite_is_said_with_its_step(device, bad):
    model = nn.Linear(1, 1)
    losses = iter([1.0] * (bad - 1) + [math.inf] + [1.0] * 100)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    training = Descent(
        model, optimizer, lambda _: model.weight.sum() * next(losses), torch.Generator(), Config(steps=60), Checkpoint()
    )
    training.device = device
    with pytest.raises(Diverged, match=rf"step {bad};"):
        list(training)
    assert len(training.losses) == bad - 1


def test_a_gradient_that_is_not_finite_changes_no_weight():
    """The square root's slope at 0 is infinite, though its value is not."""
    model = nn.Linear(1, 1)
    before = [p.tolist() for p in model.parameters()]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def loss_on(_):
        return (model.weight - model.weight.detach()).sqrt().sum()

    with pytest.raises(Diverged, match="step 1;"):
        list(Descent(model, optimizer, loss_on, torch.Generator(), Config(), Checkpoint()))
    assert [p.tolist() for p in model.parameters()] == before


def test_losses_that_are_fetched_many_at_once_are_the_same(tmp_path):
    """120 steps: fetched at 50, at 100, at a checkpoint and at the end."""
    config = Config(steps=120)
    training, other = descent(config), descent(config, checkpoint := Checkpoint(tmp_path))
    list(training)
    other.device = OTHER
    for step in other:
        checkpoint.every = 0 if step == 70 else math.inf
        assert len(other.losses) == (step // 50 * 50 if step <= 70 else 70 if step < 120 else 120)
    assert (other.losses, other.norms, weights(other)) == (training.losses, training.norms, weights(training))


def test_the_best_weights_are_those_of_the_lowest_point(tmp_path):
    values, seen = [3.0, 1.0, 2.0, 1.5], {}
    training = descent(Config(steps=4))
    for step in training:
        training.log(step=step, validation=values[step - 1])
        training.keep_best("validation")
        seen[step] = weights(training)
    assert training.curve == {"step": [1, 2, 3, 4], "validation": values}
    assert training.best["step"] == 2
    assert torch.cat([value.flatten() for value in training.best["model"].values()]).tolist() == seen[2] != seen[4]


def test_seconds_are_those_of_all_runs_and_of_nothing_else(tmp_path):
    """A clock that a step moves by 1, what is done in between by 10, and everything else by 100."""
    now = [0]

    def interrupted(training, last):
        loss_on, training._clock = training.loss_on, lambda: now[0]
        training.loss_on = lambda generator: (now.__setitem__(0, now[0] + 1), loss_on(generator))[1]
        for step in training:
            now[0] += 10
            if step == last:
                break
        now[0] += 100
        return training.seconds

    assert interrupted(descent(Config(), Checkpoint(tmp_path, every=0)), last=4) == 33  # three whole steps
    assert interrupted(descent(Config(), Checkpoint(tmp_path)), last=None) == 12 * 11


def test_what_is_kept_is_what_weights_only_loads(tmp_path):
    list(descent(Config(steps=2), Checkpoint(tmp_path, every=0)))
    state = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    assert state["step"] == 2 and len(state["losses"]) == 2
    assert asdict(Config())  # settings are the folder's name: nothing of them is in the file
    assert "config" not in state
