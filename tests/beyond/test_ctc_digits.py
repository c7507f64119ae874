"""How the models that hear spoken digits are trained and told (beyond/ctc_digits.py)."""

import json
import math

import pytest
import torch
from commands import record_of

from beyond import ctc_digits as digits
from beyond.ctc_digits import Config
from lab import results
from lab.errors import Diverged
from lab.trainings import Checkpoint


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Trainings of a moment."""
    monkeypatch.setattr(digits, "STEPS", 3)
    monkeypatch.setattr(digits, "BATCH", 4)
    monkeypatch.setattr(digits, "TESTED", 3)
    monkeypatch.setattr(digits, "LONGEST", 3)


def heard(order):
    generator = torch.Generator().manual_seed(0)
    return digits.hear(digits.random_strings(5, 4, generator), order, generator, torch.device("cpu"))


def test_reversed_changes_what_is_wanted_and_not_what_is_heard():
    (speech, forwards), (same, backwards) = heard("forwards"), heard("reversed")
    assert all(torch.equal(a, b) for a, b in zip(speech, same, strict=True))
    assert backwards.flip(1).tolist() == forwards.tolist() != backwards.tolist()


def test_training_and_test_hear_different_strings():
    seen = {tuple(row) for row in digits.random_strings(100, 12, digits.generator(0, "training")).tolist()}
    assert not seen & {tuple(row) for row in digits.random_strings(100, 12, digits.generator(0, "test")).tolist()}


def test_chance_is_what_strings_of_others_score(monkeypatch):
    """Digits compared position by position would be wrong in 0.9 of them; a shift here and there does better."""
    monkeypatch.setattr(digits, "LONGEST", 12)
    monkeypatch.setattr(digits, "TESTED", 100)
    assert 0.8 < digits.chance(0) < 0.9


@pytest.mark.parametrize("case", digits.CASES, ids=" ".join)
def test_interrupted_trainings_end_like_others(case, tmp_path):
    class Interrupted(Exception):
        pass

    class Interrupting(Checkpoint):
        def save_if_due(self, make_state):
            super().save_if_due(make_state)
            if make_state()["step"] == self.stop:
                raise Interrupted

    config = Config(*case, seed=0, epochs=2)
    whole = digits.train(config, Checkpoint())
    for stop in 2, 4, None:
        checkpoint = Interrupting(tmp_path, str(config), every=0)
        checkpoint.stop = stop
        try:
            record = digits.train(config, checkpoint)
        except Interrupted:
            continue
    whole["seconds"] = record["seconds"]
    assert record == whole == json.loads(json.dumps(whole))
    assert all(len(errors) == 2 for errors in whole["error"].values()) and record["seconds"] > 0


def test_models_of_a_seed_that_differ_in_their_loss_begin_with_the_same_weights():
    framewise, ctc = (digits.build(Config(model, "forwards", 1, 1)) for model in ("framewise", "CTC"))
    assert all(torch.equal(a, b) for a, b in zip(framewise.parameters(), ctc.parameters(), strict=True))
    other = digits.build(Config("CTC", "forwards", 2, 1))
    assert not torch.equal(ctc.output.weight, other.output.weight)


def test_loss_that_is_no_number_stops_the_training(monkeypatch):
    monkeypatch.setattr(digits, "LEARNING_RATE", math.inf)
    with pytest.raises(Diverged, match="step 2"):
        digits.train(Config("attention", "forwards", 0, 2), Checkpoint())


def test_the_script_saves_all_cases_and_an_example_of_each(tmp_path, in_this_process):
    record = record_of(digits, tmp_path, "--epochs", 1)
    assert (tmp_path / "ctc_digits.png").stat().st_size > 20_000
    runs = record["results"]["runs"]
    assert [(run["model"], run["order"], run["seed"]) for run in runs] == [
        (*case, seed) for case in digits.CASES for seed in digits.SEEDS
    ]
    assert record["printed"][1 : 1 + len(runs)] == [digits.line(run) for run in runs]
    example = runs[3]["example"]  # of CTC, seed 0
    for row in example["posteriors"] + example["occupancy"]:
        assert sum(row) == pytest.approx(1, abs=1e-3)


def test_runs_that_diverged_are_told_and_the_others_kept():
    found = results.load("ctc_digits")["results"]
    runs = [run | {"diverged_at_step": 7} if run["model"] == "CTC" else run for run in found["runs"]]
    runs = [{k: v for k, v in run.items() if k != "example" or run["model"] != "CTC"} for run in runs]
    printed = "\n".join(digits.tell(found | {"runs": runs}))
    assert printed.count("the loss is not finite at step 7") == 2 * len(digits.SEEDS)
    assert "CTC             forwards greedy" not in printed and "attention       reversed greedy" in printed
    digits.draw(found | {"runs": runs})
