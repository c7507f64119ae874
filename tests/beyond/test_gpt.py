"""beyond/gpt.py: when a training ends, what it is judged by, and what is told of it beside the others."""

from dataclasses import replace

import pytest
import torch
from commands import record_of

import charlm
import corpus
from beyond import gpt
from lab.errors import UserError
from lab.results import to_json
from lab.trainings import Checkpoint
from layers import char_gpt, char_lm, looking_back
from layers.char_gpt import Size


@pytest.fixture
def data(write_corpus):
    return write_corpus("the first, short training of some characters\n" * 20, "then some characters; ζ\n" * 6)


@pytest.fixture(autouse=True)
def small(in_this_process, monkeypatch):
    """Small models, and trainings in this process."""
    monkeypatch.setitem(char_gpt.SIZES, "GPT", Size(8, 1, 1))
    monkeypatch.setitem(char_gpt.SIZES, "larger GPT", Size(16, 1, 2))
    monkeypatch.setattr(looking_back, "HISTORIES", [1, 2, 4])
    for name, value in {"EVERY": 2, "SEEDS": [0, 1], "STEPS": 3, "MOST_STEPS": 9, "PRODUCT": 64, "WRITTEN": 20}.items():
        monkeypatch.setattr(gpt, name, value)
    monkeypatch.setattr(gpt, "Config", lambda *known, **options: SMALL(*known, first=3, **options))


SMALL = gpt.Config


def config(data, **options):
    return SMALL("GPT", 0, corpus.load(data).fingerprint, data=str(data), **{"first": 3, "steps": 9} | options)


@pytest.mark.parametrize(
    "bits, ended, best, first_best",
    [
        ([5, 4, 3, 2, 1, 1.5], 9, 7, 3),  # step 3, then 5, 7 (the best), 9: the most
        ([5, 4, 3.5, 3, 4, 4], 9, 5, 3),  # 5 is the best: 7 isn't half as long again, 9 is
        ([5, 3, 4, 9, 9, 9], 3, 2, 2),  # 2 is the best, and 3 is half as long again
    ],
)
def test_a_training_ends_when_half_as_long_again_has_brought_nothing(data, monkeypatch, bits, ended, best, first_best):
    """A curve is estimated at 1, 2 and 3, then at every second step; each time of the training text first."""
    given = iter([value for value in bits for _ in range(2)])
    monkeypatch.setattr(char_lm, "estimate", lambda *_: next(given))
    found = gpt.train(config(data), Checkpoint())
    assert (found["ended_at_step"], found["longer_best_step"], found["best_step"]) == (ended, best, first_best)


def test_after_the_post_s_steps_it_is_judged_as_the_post_s_models_are(data):
    """A training that goes on has the figures of one that ends there; so has charlm.py's own loop."""
    longer, shorter = (gpt.train(config(data, steps=steps), Checkpoint()) for steps in (9, 3))
    names = ("train_bits_per_char", "validation_bits_per_char", "best_step", "best_validation_bits_per_char")
    assert [longer[name] for name in names] == [shorter[name] for name in names]
    text = corpus.load(data)
    ids, validation = (torch.from_numpy(text.encode(part)) for part in (text.train, text.validation))
    model = char_lm.build(config(data), text.size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=charlm.LEARNING_RATE)
    generator = torch.Generator().manual_seed(0)
    for _ in range(3):
        optimizer.zero_grad()
        charlm.loss_on(model, ids, generator).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), charlm.CLIP)
        optimizer.step()
    assert char_lm.evaluate(model, validation)[0] == pytest.approx(shorter["validation_bits_per_char"], abs=1e-5)
    assert longer["longer_best_validation_bits_per_char"] <= longer["best_validation_bits_per_char"]


def test_a_best_step_at_the_end_is_told():
    """At 9 steps, the most, the best is the 8th or later, or the 6th: 1.5 times 6 is 9."""
    run = {"cell": "GPT", "seed": 0, "first": 3, "steps": 9, "best_step": 3, "ended_at_step": 9, "seconds": 1.0}
    bits = ("train_bits_per_char", "validation_bits_per_char", "best_validation_bits_per_char")
    run |= dict.fromkeys([*bits, "longer_best_validation_bits_per_char"], 2.0)
    run |= {"parameters": 1, "flops_a_step": 1, "product_seconds": 1.0, "scored_characters": 9}
    for best, said in (6, False), (7, True):
        found = {"runs": [run | {"longer_best_step": best}], "beside": [], "counting": {}, "shown": {}}
        assert any("may get better yet" in line for line in gpt.tell(found)) == said


def test_too_short_a_text_is_refused_before_anything_is_trained(write_corpus, tmp_path):
    short = write_corpus("the first, short training of some characters\n" * 20, "xyz")
    with pytest.raises(UserError, match="the validation text has 3 characters: to see"):
        record_of(gpt, tmp_path / "out", "--data", short)
    assert not (tmp_path / "out").exists()


def test_an_interrupted_training_ends_with_the_same_bits(data, tmp_path):
    class Stopped(Exception):
        pass

    class Stopping(Checkpoint):
        def save_if_due(self, make_state):
            super().save_if_due(make_state)
            if make_state()["step"] == 4:
                raise Stopped

    whole = gpt.train(config(data), Checkpoint())
    with pytest.raises(Stopped):
        gpt.train(config(data), Stopping(tmp_path, every=0))
    resumed = gpt.train(config(data), Checkpoint(tmp_path))
    times = {"seconds": 0, "longer_seconds": 0, "product_seconds": 0}
    assert resumed | times == whole | times


def test_the_table_holds_both_sizes_and_their_rivals(data, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    lstm = {"cell": "LSTM", "seed": 0, "hidden": 8, "forget_bias": None, "steps": 3000, "best_step": 1000}
    lstm |= {"scored_characters": 143, "parameters": 9, "seconds": 60.0, "train_bits_per_char": 1.0}
    lstm |= {"validation_bits_per_char": 3.5, "best_validation_bits_per_char": 2.5}
    saved = {
        "experiment": "char_models",
        "arguments": {},
        "kinds": {},
        "environment": {"device": "cpu", "cores": 1},
        "takes": [],
        "seconds": 1.0,
    }
    saved |= {"corpus": corpus.load(data).fingerprint, "results": {"runs": [lstm]}}
    (out / "char_models.json").write_text(to_json(saved), encoding="utf-8")
    record = record_of(gpt, out, "--data", data)
    lines, found = record["printed"], record["results"]
    rows = {line.split(",")[0]: line for line in lines if " steps  " in line}
    assert list(rows) == ["LSTM", "GPT", "larger GPT"]
    # the points beside are 3,000 · (17/30)² = 963 and 3,000 · (18/30)² = 1,080: it is known no better than that
    assert rows["LSTM"].split()[-5:] == ["1,000", "±", "80", "2.500", "3.500"]
    assert len({len(row) for row in rows.values() if "±" in row}) == 1
    assert len([line for line in lines if "share of the products' speed" in line]) == 2
    assert sum(line.endswith("writes:") for line in lines) == 2
    assert len(found["runs"]) == len(found["curves"]) == len(found["looking_back"]) == 4
    ends = [(run["seed"], run["steps"], "ended_at_step" in run) for run in found["runs"]]
    assert ends == [(0, 9, True), (1, 3, False)] * 2  # other seeds end with the post's steps and aren't looked at
    assert sum(line.startswith("all characters alike") for line in lines) == 2
    looked = found["looking_back"]
    assert looked[0]["history"] == looked[2]["history"] == [1, 2, 4] and looked[1] is looked[3] is None
    assert found["shown"]["GPT"]["sample"].startswith("The ")
    assert (out / "gpt.png").stat().st_size > 10_000


def test_a_training_that_diverges_is_told(data, tmp_path, monkeypatch):
    monkeypatch.delattr(gpt, "draw")
    monkeypatch.setattr(gpt, "Config", lambda *known, **options: replace(SMALL(*known, **options), first=2,
        learning_rate=1e30 if known[1] == 1 else 1e-3))  # fmt: skip
    record = record_of(gpt, tmp_path / "out", "--data", data, status=1)
    assert sum("the loss was not finite" in line for line in record["printed"]) == 2
    assert [run.get("diverged_at_step", 0) > 0 for run in record["results"]["runs"]] == [False, True] * 2


def test_the_share_is_of_a_large_product_s_speed(monkeypatch):
    """2 · 100³ operations in a second are 2 MFLOP/s; 10 steps of 1 M in 8 seconds are 62.5 % of that."""
    monkeypatch.setattr(gpt, "PRODUCT", 100)
    assert gpt.share({"flops_a_step": 1e6, "first": 10, "seconds": 8, "product_seconds": 1}) == pytest.approx(0.625)
