"""beyond/evaluation.py: the listing's sum and divisor by brute force, and both scores of the same model."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from commands import ROOT, record_of
from torch.nn import functional as F

import charlm
from beyond import evaluation
from lab.errors import UserError
from layers.char_rnn import evaluate

LINE = "The cat sat on the mat, the rat sat on the hat. "


def listed(model, ids):
    """Bits per character as the listing has them: window by window, each sum a number, the state carried along."""
    total, state, T = 0.0, None, 128
    with torch.no_grad():
        for s in range(0, len(ids) - 1 - T, T):
            logits, state = model(ids[s : s + T, None], state)
            total += F.cross_entropy(logits[:, 0], ids[s + 1 : s + T + 1], reduction="sum").item()
    return total / ((len(ids) - 1 - T) // T * T) / np.log(2)


@pytest.mark.parametrize("length", [257, 258, 384, 385, 386, 700])
def test_three_ways_of_one_model(length):
    ids = torch.randint(20, (length,), generator=torch.Generator().manual_seed(length))
    model = charlm.build(charlm.Config("GRU", 0, "", hidden=8), 20)
    with evaluation.evaluating(model):
        bits = evaluation.score(model, ids[:-1, None], ids[1:, None])[:, 0]
    found = evaluation.three_ways(bits)
    assert found["bits_per_char"] == pytest.approx(evaluate(model, ids)[0], rel=1e-12)
    assert found["listing"] == pytest.approx(listed(model, ids), rel=1e-6)
    # 257: one window begins before 128, none after it; 384: two before 255, and 128 goes into it once.
    added, divided_by = evaluation.windows(length)
    assert (added, divided_by) == {257: (1, 1), 258: (2, 1), 384: (2, 1), 385: (2, 2), 386: (3, 2), 700: (5, 4)}[length]
    assert found["whole_windows"] == pytest.approx(bits[: 128 * added].mean().item(), rel=1e-12)
    assert found["listing"] == pytest.approx(found["whole_windows"] * added / divided_by, rel=1e-12)


def test_figures_of_the_post_are_too_high_by_one_window():
    # 56,786 - 1 - 128 = 56,657 = 442.63 · 128: 443 windows, divided by 442. The lowest figure 2.690 has 2.690 / 443 too
    # much, which is 0.00607, and the highest, 2.842, has 0.00642.
    post = evaluation.of_the_post()
    assert (post["windows"], post["divided_by"]) == (443, 442)
    assert (post["least_too_much"], post["most_too_much"]) == pytest.approx((2.690 / 443, 2.842 / 443), rel=1e-9)


def test_windows_that_end_with_the_text_are_those_that_training_draws(monkeypatch):
    """Of 129 + 3 characters there are four windows with the character after them; a fourth of them ends the text."""
    monkeypatch.setattr(evaluation.charlm, "STEPS", 100)
    generator = torch.Generator().manual_seed(evaluation.SEED)
    ids = torch.arange(132)
    drawn = torch.cat([charlm.windows(ids, generator)[-1] for _ in range(100)])
    count = evaluation.ending_with_the_text(132)
    assert count == (drawn == 131).sum().item() and 1400 < count < 1800


def test_a_run(monkeypatch, tmp_path, write_corpus, in_this_process):
    trained, train = [], evaluation.charlm.set_up

    def set_up(config, checkpoint):
        trained.append((config.cell, config.seed, config.steps))
        return train(replace(config, hidden=4, steps=2), checkpoint)

    monkeypatch.setattr(evaluation.charlm, "set_up", set_up)
    data = write_corpus(LINE * 10, LINE * 7)  # 336 characters are scored here: two windows of 128 by the listing
    record = record_of(evaluation, tmp_path / "out", "--data", data)
    results = record["results"]
    assert sorted(trained) == [(cell, 0, 300) for cell in ("GRU", "LSTM", "RNN")]
    assert [run["cell"] for run in results["runs"]] == ["RNN", "GRU", "LSTM"]
    assert results["here"]["scored_characters"] == 335
    assert results["listing"] == {"windows": 2, "divided_by": 1, "scored_characters": 256}
    for run in results["runs"]:
        assert run["listing"] == pytest.approx(2 * run["whole_windows"], rel=1e-12)
        assert 0.5 < run["bits_per_char"] / run["whole_windows"] < 2
    assert record["printed"][1].startswith("RNN  ")
    with pytest.raises(UserError, match="has 256 characters: the listing's division takes 257"):
        record_of(evaluation, tmp_path / "out", "--data", write_corpus(LINE * 10, (LINE * 6)[:256], "short"))


def test_saved_differences_are_those_of_the_sums():
    saved = json.loads((ROOT / "outputs" / "evaluation.json").read_text(encoding="utf-8"))["results"]
    # 57,280 - 1 - 128 = 57,151 = 446.49 · 128.
    assert (saved["listing"]["windows"], saved["listing"]["divided_by"]) == (447, 446)
    for run in saved["runs"]:
        assert run["listing"] == pytest.approx(run["whole_windows"] * 447 / 446, rel=1e-12)
