"""beyond/ladder_models.py: charlm.py's model around both layers, and the table beside the layers without positions."""

from dataclasses import replace

import pytest
import torch
from commands import record_of

import charlm
import corpus
from beyond import ladder_models
from lab.results import to_json
from layers import char_rnn


@pytest.fixture
def data(write_corpus):
    return write_corpus("the first, short training of some characters\n" * 20, "then some characters; ζ\n" * 6)


@pytest.mark.parametrize(
    "cell, layer", [("selective state space", 2 * 16640 + 8 * 65 + 1280), ("fading attention", 3 * 16640)]
)
def test_the_models_have_as_many_parameters_as_their_equations(cell, layer):
    """148 · 64 + 148 · 257 = 47,508 around the layer; 256 · 65 = 16,640 for each of u and Δ, or q, k and v.

    The state space has 4 · 65 for each of B and C, 256 · 4 for A and 256 for D besides.
    """
    assert sum(p.numel() for p in char_rnn.CharRNN(148, cell).parameters()) == 47_508 + layer


@pytest.mark.parametrize("cell", ladder_models.CELLS)
def test_bits_don_t_depend_on_how_the_text_is_cut(cell):
    settings = charlm.Config(cell, 0, "", hidden=8)
    model, ids = char_rnn.build(settings, 20), torch.arange(200) * 7 % 20
    exact, scored = char_rnn.evaluate(model, ids, chunk=len(ids))
    for chunk in 1, 7, 64:
        assert char_rnn.evaluate(model, ids, chunk) == (pytest.approx(exact, abs=1e-5), scored)


def test_the_table_holds_both_layers_and_those_without_positions(data, tmp_path, in_this_process, monkeypatch):
    original = charlm.train
    monkeypatch.setattr(charlm, "train", lambda config, checkpoint: original(replace(config, hidden=8), checkpoint))
    monkeypatch.setattr(ladder_models, "RUNS", [(cell, seed, 3) for cell in ladder_models.CELLS for seed in (0, 1)])
    out = tmp_path / "out"
    out.mkdir()
    run = {"cell": "minGRU", "steps": 3000, "best_step": 1000, "scored_characters": 143, "parameters": 9, "seed": 0}
    run |= {"best_validation_bits_per_char": 2.5, "validation_bits_per_char": 3.5}
    saved = {
        "experiment": "scan_models",
        "arguments": {},
        "kinds": {},
        "environment": {"device": "cpu", "cores": 1},
        "takes": [],
        "seconds": 1.0,
    }
    saved |= {"corpus": corpus.load(data).fingerprint, "results": {"runs": [run]}}
    (out / "scan_models.json").write_text(to_json(saved), encoding="utf-8")
    lines = record_of(ladder_models, out, "--data", data)["printed"]
    rows = [line for line in lines if " steps  " in line]
    assert [row.split(",")[0] for row in rows] == ["minGRU", *ladder_models.CELLS]
    assert (out / "ladder_models.png").stat().st_size > 10_000
