"""char_models.py and char_models_long.py: what they train, and what they set beside it."""

from dataclasses import replace

import pytest
from commands import record_of

import char_models
import char_models_long
import charlm
import corpus
from lab import results
from lab.errors import Diverged

SEVENTY_TWO = "A cat sat on a mat; the hat was flat. Its bat, a rat, was fat, and so on\n"


@pytest.fixture
def data(write_corpus):
    return write_corpus(SEVENTY_TWO * 3, "That cat ate the bat.\n" * 4)  # 87 characters are scored


@pytest.fixture
def asked(in_this_process, monkeypatch):
    """What is trained, though smaller and for two steps."""
    configs = []

    def train(config, checkpoint):
        configs.append(config)
        return original(replace(config, hidden=4, steps=2), checkpoint)

    original = charlm.train
    monkeypatch.setattr(charlm, "train", train)
    return configs


def write_record(folder, name, text, found):
    folder.mkdir(exist_ok=True)
    record = {
        "experiment": name,
        "arguments": {},
        "kinds": {},
        "environment": {"device": "cpu", "cores": 1},
        "takes": [],
        "seconds": 1.0,
    }
    record |= {"corpus": text.fingerprint, "results": found}
    (folder / f"{name}.json").write_text(results.to_json(record), encoding="utf-8")


@pytest.mark.parametrize("module, steps, seeds", [(char_models, 3000, [0, 1, 2]), (char_models_long, 12_000, [0])])
def test_a_sweep_trains_what_the_post_did_and_sets_it_beside_counting(module, steps, seeds, data, tmp_path, asked):
    out, text = tmp_path / "out", corpus.load(data)
    for name, bits, modified in (("ngram", [4.0, 3.4567], []), ("kneser_ney", [2.9, 2.4567], [2.3456, 2.5])):
        found = {"context": [1, 2], "bits_per_char": bits}
        chosen = {"context": 2, "bits_per_char": 2.5, "set_aside_characters": 30}  # though 1 is the best in hindsight
        modified = {"context": [1, 2], "bits_per_char": modified, "chosen": chosen}
        write_record(out, name, text, found | {"modified": modified})
    record = record_of(module, out, "--data", data)
    trained = [(config.cell, config.seed, config.steps) for config in asked]
    assert sorted(trained) == sorted((cell, seed, steps) for cell in ("RNN", "GRU", "LSTM") for seed in seeds)
    assert {config.text for config in asked} == {text.fingerprint} and record["seeds"] == seeds
    runs = record["results"]["runs"]
    assert [(run["cell"], run["seed"]) for run in runs] == [(c, s) for c in ("RNN", "GRU", "LSTM") for s in seeds]
    lines = record["printed"]
    assert lines[: len(runs)] == [charlm.line(run) for run in runs]
    best = [" ".join(row.split()) for row in lines[-4:-1]]
    assert best == ["add-one, context 2 3.457", "Kneser–Ney, context 2 2.457", "modified Kneser–Ney, context 2 2.500"]
    assert "the same 87 characters" in lines[-1]
    assert (out / f"{module.__name__}.png").stat().st_size > 10_000


def test_a_training_that_diverges_is_told_and_the_others_make_the_table(
    data, tmp_path, in_this_process, monkeypatch, capsys
):
    def train(config, checkpoint):
        if config.cell != "GRU":
            raise Diverged(7)
        return original(replace(config, hidden=4, steps=2), checkpoint)

    original = charlm.train
    monkeypatch.setattr(charlm, "train", train)
    record = record_of(char_models_long, tmp_path / "out", "--data", data, status=1)
    assert record["printed"][0] == "RNN seed 0, 12,000 steps: the loss was not finite at step 7"
    table = record["printed"][record["printed"].index("") + 2 :]
    assert [row.split(",")[0] for row in table[1:-1]] == ["GRU"]
    assert record["results"]["curves"][0] is None and record["results"]["curves"][1]
    assert (tmp_path / "out" / "char_models_long.png").exists()
    assert "kneser_ney.py has saved nothing on this text" in capsys.readouterr().err
    assert record["results"]["counting"] == {}


def test_a_spread_is_the_largest_distance_from_the_mean():
    assert char_models.spread([2.69, 2.70, 2.74]) == "2.710 ± 0.030"
    assert char_models.spread([1000, 1200], ",.0f") == "1,100 ± 100"
    assert char_models.spread([2.5]) == "2.500"


def test_a_best_step_is_known_no_better_than_its_curve():
    # Thirty points of 3,000 steps, at 3000 (k / 30)²: 2083, 2253, 2430 for k = 25, 26, 27, and at the end 2803, 3000.
    assert char_models.to_the_next_point({"best_step": 2253, "steps": 3000}) == 2430 - 2253
    assert char_models.to_the_next_point({"best_step": 3000, "steps": 3000}) == 3000 - 2803
    assert char_models.to_the_next_point({"best_step": 1, "steps": 1}) == 0
    assert char_models.spread([2253, 2253, 2253], ",.0f", 177) == "2,253 ± 177"
    assert char_models.spread([2000, 2600], ",.0f", 177) == "2,300 ± 300"
    assert char_models.spread([1920], ",.0f", 333) == "1,920 ± 333"
