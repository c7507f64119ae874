"""Exploding gradients (beyond/explosions.py): a divergence is a result here, and norms are those before clipping."""

import pytest
import torch
from commands import record_of
from torch import nn

import charlm
import corpus
from beyond import explosions
from beyond.explosions import Plain
from lab.trainings import Checkpoint

TEXT = "A cat sat on a mat; the hat was flat.\n" * 20, "That cat ate the bat.\n" * 20


@pytest.fixture
def where(write_corpus):
    folder = write_corpus(*TEXT)
    return {"text": corpus.load(folder).fingerprint, "data": str(folder)}


def test_a_training_that_comes_apart_is_a_record_with_its_losses(where):
    """Two steps at a rate of 10^20: the first one throws the weights out of range, the second loss can't be finite."""
    config = Plain("rectified", 1e20, None, 0, steps=5, **where)
    record = explosions.train_plain(config, Checkpoint())
    assert record["not_finite_at_step"] == 2
    assert len(record["losses"]) == len(record["norms"]) == 1 and record["loss"] == record["losses"][0]
    assert "text" not in record and record["clip"] is None and "diverged_at_step" not in record


def test_the_units_are_the_ones_asked_for_and_the_norm_is_that_before_clipping(where):
    text = corpus.load(explosions.Path(where["data"]))
    torch.manual_seed(0)
    model = explosions.PlainRNN(text.size, "rectified")
    assert model.rnn(torch.randn(5, 2, 64) - 5)[0].min() == 0 and explosions.PlainRNN(9, "tanh").rnn.mode == "RNN_TANH"
    records = {
        clip: explosions.train_plain(Plain("tanh", 0.5, clip, 0, steps=2, **where), Checkpoint())
        for clip in (None, 1e-3)
    }
    ids = torch.from_numpy(text.encode(text.train))
    torch.manual_seed(0)
    model = explosions.PlainRNN(text.size, "tanh")
    batch = charlm.windows(ids, torch.Generator().manual_seed(0), explosions.BATCH)
    nn.functional.cross_entropy(model(batch[:-1]).flatten(0, 1), batch[1:].flatten()).backward()
    norm = torch.cat([p.grad.flatten() for p in model.parameters()]).norm().item()
    assert records[None]["norms"][0] == records[1e-3]["norms"][0] == pytest.approx(norm, rel=1e-5)
    assert records[None]["losses"][0] == records[1e-3]["losses"][0]
    assert abs(records[1e-3]["losses"][1] - records[None]["losses"][1]) > 1e-3  # a step of 5e-4 against one of 0.3


def test_what_is_said_of_a_character_model_s_norms(where, monkeypatch):
    config = charlm.Config("RNN", 0, steps=7, hidden=8, clip=1.0, **where)
    monkeypatch.setattr(explosions, "descended", lambda training: ([], [0.05, 0.5, 5.0, 50.0, 0.5, 0.5, 0.5], None))
    record = explosions.train_characters(config, Checkpoint())
    assert record["share_above"] == {"0.1": pytest.approx(6 / 7), "1": pytest.approx(2 / 7), "10": pytest.approx(1 / 7)}
    assert (record["median_norm"], record["largest_norm"]) == (0.5, 50.0)
    assert record["largest_in_each"] == [0.05, 0.5, 5.0, 50.0, 0.5, 0.5, 0.5] and record["steps_per_point"] == 1
    assert record["validation_bits_per_char"] > 0


def test_shown_is_a_seed_that_clipping_saves():
    def run(clip, seed, ended):
        return {"clip": clip, "seed": seed, "not_finite_at_step": ended, "losses": [1.0], "norms": [1.0]}

    saved = [run(None, 0, None), run(None, 1, 9), run(None, 2, 7), run(1.0, 0, None), run(1.0, 1, 8), run(1.0, 2, None)]
    assert [(one["clip"], one["seed"]) for one in explosions.shown(saved)] == [(None, 2), (1.0, 2)]
    assert {one["seed"] for one in explosions.shown(saved[:1] + saved[3:4])} == {0}


def test_the_command_tells_who_came_apart_and_it_is_no_failure(tmp_path, in_this_process, write_corpus, monkeypatch):
    monkeypatch.setattr(explosions, "CELLS", {"RNN": nn.RNN})
    monkeypatch.setattr(explosions, "CHAR_CLIPS", [None, 1.0])
    monkeypatch.setattr(explosions, "SEEDS", range(1))
    monkeypatch.setattr(explosions, "PLAIN", [("rectified", 1e20)])
    monkeypatch.setattr(explosions, "CLIPS", [None, 1e-25])
    monkeypatch.setattr(
        explosions, "shown", lambda runs: [{n: r[n] for n in ("clip", "seed", "losses", "norms")} for r in runs]
    )
    saved = record_of(explosions, tmp_path / "out", "--steps", 3, "--data", write_corpus(*TEXT))
    lines = saved["printed"]
    assert lines[2].startswith("rectified rate 1e+20 not clipped : 1 of 1 (step 2); norms up to ")
    assert lines[3].startswith("rectified rate 1e+20 clipped at 1e-25: 0 of 1; loss ")
    assert sum(line.startswith("RNN ") for line in lines) == 2
    assert any(line.startswith("no attention: clipped at 1 0.") for line in lines)
    assert sum(line.startswith("length ") for line in lines) == 16  # the post's reversers
    assert (tmp_path / "out" / "explosions.png").exists() and "losses" not in saved["results"]["plain"][0]


def test_how_often_clipping_acted_in_the_reversers(monkeypatch):
    """Norms of 0.5, 2 and 3 against a limit of 1: in two stretches of three."""
    run = {"length": 5, "attention": False, "seed": 0, "median_gradient_norm": 0.7, "clip": 1.0, "digits_right": 0.9}
    details = {"curve": {"largest_gradient_norm": [0.5, 2.0, 3.0]}}
    found = {"results": {"runs": [run, {"diverged_at_step": 3}], "details": [details, {}]}}
    monkeypatch.setattr(explosions.results, "load", lambda name, folder: found)
    (one,) = explosions.clipped_reversers(None)
    assert one["share_of_stretches"] == 2 / 3 and one["median_gradient_norm"] == 0.7
    assert explosions.reversers(None) == {"no attention": {"clipped at 1": [0.9], "not clipped": [0.9]}}


def test_reversers_that_were_never_trained_are_left_out(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(explosions.results, "SAVED", tmp_path)
    assert explosions.reversers(None) == {} and explosions.clipped_reversers(None) == []
    assert "run python reverse.py first" in capsys.readouterr().err
