"""Why an LSTM needs its bias (beyond/recall_why.py): which trainings it compares, and what it tells of them."""

from dataclasses import asdict

import pytest
import torch
from commands import measured, record_of

from beyond import recall_why
from lab import trainings
from layers import one_bit_training
from layers.one_bit import sequences
from layers.one_bit_training import Config


def test_each_case_is_told_and_changes_one_thing(monkeypatch):
    def run(train, configs, arguments, line):
        trained.extend(configs)
        return [record(config) for config in configs]

    def record(c):
        if c.cell == "GRU":
            return asdict(c) | {"diverged_at_step": 7}
        gate = None if c.cell.startswith("RNN") else 0.5
        numbers = {"accuracy": 1.0, "gradient_before": 1e-6, "gradient_after": 0.0, "share_of_the_bit": 1e-4}
        if not c.stops:
            numbers |= {"logit_before": 0.3, "logit_after": 1e-9}
            return asdict(c) | numbers | {"curve": {"step": [25], "logit": [1e-3]}}
        curve = {"step": [250], "gradient": [1e-7]}
        solved = 100 if c.learning_rate == 0.01 and c.seed == 3 else None
        return asdict(c) | numbers | {"solved_at": solved, "kept_before": gate, "kept_after": gate, "curve": curve}

    trained = []
    monkeypatch.setattr(trainings, "run", run)
    found, lines = measured(recall_why)
    plain, *_ = (c for c in trained if c.cell == "LSTM")
    varied = {
        run["case"]: run for run in found["runs"] if run["learning_rate"] == plain.learning_rate and run["seed"] == 3
    }
    for case, changed in (("LSTM, no noise", "noise"), ("LSTM, 8 times the batch", "batch")):
        assert [name for name in asdict(plain) if varied[case][name] != varied["LSTM"][name]] == [changed]
    assert "LSTM                       : 0 / 0 / 1; 1e-04; 1.0e-06 -> underflow; 0.50 -> 0.50" in lines
    assert "RNN                        : 0 / 0 / 1; 1e-04; 1.0e-06 -> underflow" in lines
    assert not any(line.startswith("GRU") for line in lines)  # all of them diverged
    assert "RNN, identity       delay  80: 1.000; 3.0e-01 -> 1.0e-09; 1.0e-06 -> underflow" in lines
    assert all(not c.stops and c.steps == 600 for c in trained if c.cell == "RNN, identity")
    recall_why.draw(found)


def test_the_gradient_of_the_logit_is_the_loss_s_without_its_factor():
    """Of a binary cross-entropy that is σ(z) - y, in size ½ where all logits are near 0."""
    model = one_bit_training.build(Config("GRU", 5, 0, 0.001, 1))
    with torch.no_grad():
        model.readout.weight.mul_(1e-4)
        model.readout.bias.zero_()
    found = recall_why.reach_back(model, *sequences(torch.Generator().manual_seed(0), 5, 8))
    assert found["gradient"] == pytest.approx(found["logit"] / 2, rel=1e-3) and found["logit"] > 0


def test_the_command_trains_what_it_tells(tmp_path, in_this_process, monkeypatch):
    monkeypatch.setattr(one_bit_training, "TESTED", 100)
    monkeypatch.setattr(recall_why, "CASES", {"LSTM": ("LSTM", {})})
    monkeypatch.setattr(recall_why, "ROBUST_DELAYS", [5])
    monkeypatch.setitem(recall_why.FIRST_EDITION, "steps", 10)
    saved = record_of(recall_why, tmp_path, "--steps", "2")
    assert len(saved["results"]["runs"]) == 6 and len(saved["results"]["robust"]) == 6
    assert saved["printed"][-1].startswith("LSTM, forget bias 3 delay   5: ") and (tmp_path / "recall_why.png").exists()
