"""beyond/scan_models.py: the table of its models, and of those that char_models.py saved."""

from dataclasses import replace

import pytest
from commands import record_of

import char_models
import charlm
import corpus
from beyond import scan_models
from lab.results import to_json


@pytest.fixture
def data(write_corpus):
    return write_corpus("the first, short training of some characters\n" * 20, "then some characters; ζ\n" * 6)


@pytest.fixture
def small(in_this_process, monkeypatch):
    """Trainings of a few steps in this process, with few units."""

    def train(config, checkpoint):
        return original(replace(config, hidden=8), checkpoint)

    original = charlm.train
    monkeypatch.setattr(charlm, "train", train)
    monkeypatch.setattr(scan_models, "RUNS", [(cell, seed, 3) for cell in scan_models.CELLS for seed in (0, 1)])


def test_the_table_holds_both_kinds_of_layer_and_counting(data, small, tmp_path, capsys):
    """The recurrent rows are those that char_models.py has saved on this text: 2.5 and 2.7 are 2.6 ± 0.1."""
    out = tmp_path / "out"
    out.mkdir()
    gru = {"cell": "GRU", "steps": 3000, "best_step": 963, "scored_characters": 143, "parameters": 9}
    bits = [
        {"best_validation_bits_per_char": b, "validation_bits_per_char": b + 1, "seed": i}
        for i, b in ((0, 2.5), (1, 2.7))
    ]
    diverged = {"cell": "RNN", "steps": 3000, "seed": 0, "diverged_at_step": 5}
    saved = {
        "experiment": "char_models",
        "arguments": {},
        "kinds": {},
        "environment": {"device": "cpu", "cores": 1},
        "takes": [],
        "seconds": 1.0,
    }
    saved |= {"corpus": corpus.load(data).fingerprint, "results": {"runs": [diverged, *(gru | b for b in bits)]}}
    (out / "char_models.json").write_text(to_json(saved), encoding="utf-8")
    record = record_of(scan_models, out, "--data", data)
    lines, found = record["printed"], record["results"]
    assert len([line for line in lines if "parameters" in line]) == 4
    rows = lines[lines.index("beyond the post: the best step of each learning curve, and models that only count") + 1 :]
    assert rows[1].split("steps")[1].split() == ["963", "±", "117", "2.600", "±", "0.100", "3.600", "±", "0.100"]
    assert [row.split(",")[0] for row in rows[1:4]] == ["GRU", *scan_models.CELLS]
    assert len({len(row) for row in rows[:4]}) == 1
    assert "no Kneser–Ney to compare with" in capsys.readouterr().err  # the saved figures are of another text
    assert [run["cell"] for run in found["beside"]] == ["GRU", "GRU"] and len(found["runs"]) == 4
    assert found["beside"][0].keys() == set(char_models.IN_THE_TABLE)
    assert (out / "scan_models.png").stat().st_size > 10_000


def test_without_saved_models_the_table_says_so_and_goes_on(data, small, tmp_path, capsys):
    lines = record_of(scan_models, tmp_path / "out", "--data", data)["printed"]
    assert "no models to compare with: char_models.py has saved nothing on this text" in capsys.readouterr().err
    assert any(line.startswith("minGRU, 3 steps") for line in lines)
    assert not any(line.startswith("GRU, 3,000") for line in lines)
