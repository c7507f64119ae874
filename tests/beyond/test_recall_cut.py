"""Holding a bit without its gradient (beyond/recall_cut.py): what is cut, and what isn't."""

from dataclasses import replace

import pytest
import torch
from commands import record_of

from beyond import recall_cut
from beyond.recall_cut import WAYS, Config, Cut
from lab.trainings import Checkpoint
from layers import one_bit_training
from layers.one_bit import sequences


def model_and_input(delay=30):
    config = Config("RNN", delay, 0, 0.01, 2)
    return one_bit_training.build(config), sequences(torch.Generator().manual_seed(1), delay, 4)[0]


@pytest.mark.parametrize("steps", [None, 20, 1, 0])
def test_what_is_cut_changes_no_answer(steps):
    model, x = model_and_input()
    assert torch.allclose(Cut(model, steps)(x), model(x), atol=1e-6)


def test_of_the_last_step_the_gradient_is_that_of_one_step_by_hand():
    """z = w h_T and h_T = tanh(W h + …) with h constant: ∂z/∂W = w (1 - h_T²) hᵀ, summed over the batch."""
    model, x = model_and_input()
    (gradient,) = torch.autograd.grad(Cut(model, 1)(x).sum(), model.layer.weight_hh_l0)
    h, _ = model.layer(x)
    expected = (model.readout.weight * (1 - h[-1] ** 2)).T @ h[-2]
    assert torch.allclose(gradient, expected, atol=1e-6)


def test_nothing_of_the_bit_s_gradient_is_left_and_whole_has_it():
    model, x = model_and_input(delay=25)
    x.requires_grad_()
    for steps, reaches in ((20, False), (None, True)):
        (gradient,) = torch.autograd.grad(Cut(model, steps)(x).sum(), x, allow_unused=True)
        assert bool(gradient[0].any()) == reaches and gradient[-1].any()


def test_of_the_readout_alone_the_recurrent_weights_stay():
    config = Config("RNN", 5, 0, 0.01, 3, way="readout")
    drawn = torch.linalg.eigvals(one_bit_training.build(config).layer.weight_hh_l0.detach().double()).abs().max()
    assert recall_cut.train(config, Checkpoint())["spectral_radius"] == drawn.item()
    scaled = recall_cut.train(replace(config, way="readout, radius 1.5"), Checkpoint())
    assert scaled["spectral_radius"] == pytest.approx(1.5)


def test_who_holds_a_bit_has_it_a_step_later_and_an_oscillation_has_not(monkeypatch):
    """h' = -5 h in a tanh unit that starts at ±: its sign says the bit at even delays, and its opposite at odd ones."""
    config = Config("RNN", 20, 0, 0.01, 1, noise=0.0, way="whole")
    model = one_bit_training.build(replace(config, width=1))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.layer.weight_ih_l0[:], model.layer.bias_ih_l0[:] = 2.0, 0.0
        model.layer.weight_hh_l0[:], model.readout.weight[:] = -5.0, 1.0
        model.layer.bias_hh_l0[:] = -1e-3  # a bit of 0 starts just below 0
    monkeypatch.setattr(one_bit_training, "build", lambda config: model)
    monkeypatch.setattr(one_bit_training, "TESTED", 100)
    monkeypatch.setattr(recall_cut, "STEPS", 1)
    right = recall_cut.train(replace(config, learning_rate=0.0), Checkpoint())["right_later"]
    assert right == [1.0, 0.0, 1.0]


def test_the_command_tells_each_way_at_each_delay(tmp_path, in_this_process, monkeypatch):
    monkeypatch.setattr(one_bit_training, "TESTED", 100)
    monkeypatch.setattr(recall_cut, "DELAYS", [2, 4])
    monkeypatch.setattr(recall_cut, "SEEDS", range(2))
    saved = record_of(recall_cut, tmp_path, "--steps", "80")
    assert len(saved["results"]["runs"]) == 2 * 2 * len(WAYS)
    solved = [run for run in saved["results"]["runs"] if run["way"] == "whole" and run["delay"] == 2]
    steps = sorted(run["solved_at"] for run in solved)
    assert saved["printed"][2].startswith(f"{'whole':20}{f'2 ({sum(steps) / 2:,.0f})':>12}")
    assert (tmp_path / "recall_cut.png").exists()
