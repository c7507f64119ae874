"""beyond/horizon.py: reaches worked out by hand, Kneser–Ney on the same characters, and what it needs."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from commands import record_of

import charlm
import corpus
import kneser_ney
from beyond import horizon
from lab.errors import UserError
from lab.results import to_json
from lab.trainings import Checkpoint
from layers import looking_back, scans


def measured(**changed):
    lists = {"history": [1, 2, 4, 8], "bits_per_char": [4.0, 3.0, 2.5, 2.52], "gradient": [2.0, 0.5, 0.005, None]}
    return lists | {"bits_per_char_where_the_rest_is_shuffled": [3.5, 2.9, 2.6]} | changed


def test_reaches_worked_out_by_hand():
    """The fewest bits are 2.5: 2.55 lies 9 / 10 of the way from 3.0 to 2.5, between 2 and 4 characters: 2 · 2^0.9.

    1 % of 2.0 is 0.02. log 0.02 lies 0.69897 of the way from log 0.5 to log 0.005 (ln 25 / ln 100): 2 · 2^0.69897.
    """
    assert horizon.reach_of_bits(measured()) == pytest.approx(2 * 2**0.9)
    assert horizon.reach_of_gradient(measured()) == pytest.approx(2 * 2**0.69897, rel=1e-5)


def test_reaches_at_the_ends_are_the_histories_themselves():
    assert horizon.reach_of_bits(measured(bits_per_char=[2.5, 2.5, 2.6, 2.5])) == 1
    assert horizon.reach_of_gradient(measured(gradient=[2.0, 0.5, 0.021, None])) == 4
    assert horizon.reach_of_gradient(measured(gradient=[2.0, 0.001, 0.03, 0.03])) == 8


@pytest.fixture
def data(write_corpus):
    return write_corpus("the first, short training of some characters\n" * 20, "then some characters; ζ\n" * 6)


@pytest.fixture(autouse=True)
def small(in_this_process, monkeypatch):
    monkeypatch.setattr(looking_back, "HISTORIES", [1, 2, 4, 8])
    monkeypatch.setattr(looking_back.by_order, "__defaults__", (16, 8))
    cells = {"RNN": "char_models", "minGRU": "scan_models"}
    for name, value in {"CELLS": cells, "CONTEXTS": [1, 2, 3]}.items():
        monkeypatch.setattr(horizon, name, value)
    original = charlm.set_up
    monkeypatch.setattr(charlm, "set_up", lambda config, checkpoint: original(replace(config, hidden=8), checkpoint))


def save(out, data, **experiments):
    """What char_models.py, beyond/scan_models.py and beyond/gpt.py saved."""
    out.mkdir(exist_ok=True)
    about = {"arguments": {}, "kinds": {}, "environment": {"device": "cpu", "cores": 1}, "takes": [], "seconds": 1.0}
    about["corpus"] = corpus.load(data).fingerprint
    gpt = [{"cell": "GPT", "longer_best_step": 4, "seed": 0}, {"cell": "GPT", "seed": 1, "diverged_at_step": 1}]
    rnns = [{"cell": "RNN", "seed": 1, "best_step": 9}, {"cell": "RNN", "seed": 0, "best_step": 3}]
    saved = {
        "char_models": {"runs": rnns},
        "scan_models": {"runs": [{"cell": "minGRU", "seed": 0, "best_step": 2}]},
        "gpt": {"runs": gpt, "looking_back": [measured(), None]},
    }  # fmt: skip
    for name, found in (saved | experiments).items():
        text = to_json(about | {"experiment": name, "results": found})
        (out / f"{name}.json").write_text(text, encoding="utf-8")
    return out


def test_every_model_and_counting_are_told(data, tmp_path):
    out = save(tmp_path / "out", data)
    record = record_of(horizon, out, "--data", data)
    models = record["results"]["models"]
    assert [(m["cell"], m["best_step"]) for m in models] == [("RNN", 3), ("minGRU", 2), ("GPT", 4)]
    lines = record["printed"]
    assert [line.split()[0] for line in lines[2:6]] == ["Kneser–Ney", "RNN", "minGRU", "GPT"]
    one, two, three = (f"{bits:.3f}" for bits in record["results"]["counting"]["bits_per_char"])
    assert lines[2] == f"Kneser–Ney  {one:>8}{two:>8}, {three} given 3"  # which has no column
    assert lines[5].split()[1:] == ["4.000", "3.000", "2.500", "2.520"]
    assert lines[-1] == "GPT         : 4 characters; by its gradient 3 (step 4)"
    assert (out / "horizon.png").stat().st_size > 10_000


def test_a_training_that_diverges_is_told(data, tmp_path, monkeypatch):
    monkeypatch.setattr(horizon, "draw", None)
    out, original = save(tmp_path / "out", data), charlm.loss_on
    monkeypatch.setattr(charlm, "loss_on", lambda *given: original(*given) * (torch.nan if given[0].rnn.mode else 1))
    monkeypatch.setattr(scans.MinGRU, "mode", None, raising=False)
    record = record_of(horizon, out, "--data", data, status=1)
    assert record["printed"][-1] == "RNN seed 0, 3 steps: the loss was not finite at step 1"
    assert [line.split()[0] for line in record["printed"][2:5]] == ["Kneser–Ney", "minGRU", "GPT"]


def test_the_weights_are_those_of_the_best_step(data, monkeypatch):
    """charlm.py's training for 30 steps, whose 5th is made its best, and ours for 5: the same weights."""
    text = corpus.load(data).fingerprint
    bits = iter([value for step in range(1, 31) for value in (9.0, 1.0 if step == 5 else 2.0)])
    seen = []
    monkeypatch.setattr(charlm, "curve_points", lambda steps: range(1, 31))
    monkeypatch.setattr(charlm, "estimate", lambda *_: next(bits))
    monkeypatch.setattr(charlm, "evaluate", lambda model, ids: seen.append(copy.deepcopy(model)) or (1.0, 1))
    assert charlm.train(charlm.Config("RNN", 0, text, steps=30, data=str(data)), Checkpoint())["best_step"] == 5
    monkeypatch.setattr(looking_back, "measure", lambda model, *_: seen.append(model) or {})
    horizon.train(charlm.Config("RNN", 0, text, steps=5, data=str(data)), Checkpoint())
    *_, last, best, ours = seen
    assert all(torch.equal(a, b) for a, b in zip(best.parameters(), ours.parameters(), strict=True))
    assert not torch.equal(last.linear.weight, ours.linear.weight)


def test_kneser_ney_is_asked_for_the_same_characters(data):
    text = corpus.load(data)
    found = horizon.counted(text)
    ids, validation = text.encode(text.train), text.encode(text.validation)
    at = looking_back.positions(len(validation), looking_back.SCORED, [8]).numpy()
    assert at[0] == 8 and at[-1] == len(validation) - 1
    model = kneser_ney.levels(kneser_ney.count_ngrams(ids, text.size, 3), kneser_ney.modified_discounts, text.size)
    one = kneser_ney.of_context(*model, 2)
    expected = [-np.log2(kneser_ney.probabilities(one, validation[:t], text.size)[validation[t]]) for t in at]
    assert found["bits_per_char"][1] == pytest.approx(np.mean(expected))


@pytest.mark.parametrize(
    "name, words",
    [("gpt", "there are no GPTs to look at"), ("scan_models", "step of minGRU .* run python -m beyond.scan_models on")],
)
def test_without_one_of_them_it_refuses_in_one_line(data, tmp_path, name, words, monkeypatch):
    out = save(tmp_path / "out", data)
    (out / f"{name}.json").unlink()
    with pytest.raises(UserError, match=words):
        record_of(horizon, out, "--data", data)


def test_too_short_a_text_is_refused_before_anything_is_trained(write_corpus, tmp_path):
    short = write_corpus("the first, short training of some characters\n" * 20, "xyz")
    with pytest.raises(UserError, match="the validation text has 3 characters: to see"):
        record_of(horizon, save(tmp_path / "out", short), "--data", short)
