"""beyond/horizon.py: reaches worked out by hand, Kneser–Ney on the same characters, and what it needs."""

from dataclasses import replace

import numpy as np
import pytest
from commands import record_of

import charlm
import corpus
import kneser_ney
from beyond import horizon
from lab.errors import UserError
from lab.results import to_json
from layers import looking_back


def measured(**changed):
    lists = {"history": [1, 2, 4, 8], "bits_per_char": [4.0, 3.0, 2.54, 2.5], "gradient": [2.0, 0.5, 0.019, None]}
    return lists | {"cell": "GRU", "seed": 1, "bits_per_char_where_the_rest_is_shuffled": [3.5, 2.9, 2.6]} | changed


def test_reaches_worked_out_by_hand():
    """2.54 is within 0.05 of 2.5, 3.0 isn't; 0.5 is 25 % of 2.0, and 0.019 less than 1 % of it."""
    assert horizon.reach_of_bits(measured()) == 4
    assert horizon.reach_of_bits(measured(bits_per_char=[4.0, 3.0, 2.56, 2.5])) == 8
    assert horizon.reach_of_gradient(measured()) == 2
    assert horizon.reach_of_gradient(measured(gradient=[2.0, 0.5, 0.021, None])) == 4


@pytest.fixture
def data(write_corpus):
    return write_corpus("the first, short training of some characters\n" * 20, "then some characters; ζ\n" * 6)


@pytest.fixture(autouse=True)
def small(in_this_process, monkeypatch):
    monkeypatch.setattr(looking_back, "HISTORIES", [1, 2, 4, 8])
    monkeypatch.setattr(looking_back.by_order, "__defaults__", (16, 8))
    for name, value in {"SEEDS": [0, 1], "STEPS": 2, "CELLS": ["RNN", "minGRU"], "CONTEXTS": [1, 2]}.items():
        monkeypatch.setattr(horizon, name, value)
    original = charlm.set_up
    monkeypatch.setattr(charlm, "set_up", lambda config, checkpoint: original(replace(config, hidden=8), checkpoint))


def save_gpts(out, data):
    out.mkdir(exist_ok=True)
    run = {"cell": "GPT", "ended_at_step": 5, "longer_best_step": 4}
    runs = [run | {"seed": 0}, run | {"seed": 1}, {"cell": "GPT", "seed": 2, "diverged_at_step": 1}]
    looked = {name: value for name, value in measured().items() if name not in ("cell", "seed")}
    found = {"runs": runs, "looking_back": [looked, looked, None]}
    saved = {
        "experiment": "gpt",
        "arguments": {},
        "kinds": {},
        "environment": {"device": "cpu", "cores": 1},
        "takes": [],
        "seconds": 1.0,
        "results": found,
    }
    (out / "gpt.json").write_text(to_json(saved | {"corpus": corpus.load(data).fingerprint}), encoding="utf-8")


def test_every_model_and_counting_are_told(data, tmp_path):
    out = tmp_path / "out"
    save_gpts(out, data)
    record = record_of(horizon, out, "--data", data)
    assert [(m["cell"], m["seed"]) for m in record["results"]["models"]] == [
        ("RNN", 0), ("RNN", 1), ("minGRU", 0), ("minGRU", 1), ("GPT", 0), ("GPT", 1)
    ]  # fmt: skip
    lines = record["printed"]
    assert [line.split()[0] for line in lines[2:6]] == ["Kneser–Ney", "RNN", "minGRU", "GPT"]
    assert lines[2].split()[1:] == [f"{bits:.3f}" for bits in record["results"]["counting"]["bits_per_char"]]
    assert lines[5].split()[1:] == ["4.000", "3.000", "2.540", "2.500"]
    assert lines[-1] == "GPT         : 4 ± 0 characters; by its gradient 2 ± 0"
    assert (out / "horizon.png").stat().st_size > 10_000


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


def test_without_gpts_it_refuses_in_one_line(data, tmp_path):
    with pytest.raises(UserError, match="there are no GPTs to look at"):
        record_of(horizon, tmp_path / "out", "--data", data)
