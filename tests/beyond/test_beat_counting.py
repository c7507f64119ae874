"""beyond/beat_counting.py: what is set aside decides, the validation text is only scored, and the table says so."""

import math

import numpy as np
import pytest
from commands import record_of

import corpus
import kneser_ney
from beyond import beat_counting
from lab.errors import UserError
from layers import mixtures, stopped

LSTM = {"hidden": 6, "batch": 4, "window": 16, "steps": 4, "cost": 1.0}
TRAIN = "the first, short training of some characters\n\n" * 30


@pytest.fixture
def data(write_corpus):
    return write_corpus(TRAIN, "then some characters; ζ\n" * 6)


@pytest.fixture(autouse=True)
def small(in_this_process, monkeypatch):
    rows = {"LSTM, as in the post": LSTM | {"cosine": False}, "LSTM, regularised": LSTM | {"dropout": 0.2}}
    rows |= {"LSTM, regularised, wide": LSTM | {"hidden": 9}}
    rows |= {"GPT, regularised": LSTM | {"kind": "GPT", "hidden": 8}}
    monkeypatch.setattr(beat_counting, "ROWS", rows)
    monkeypatch.setattr(beat_counting, "SEEDS", [0, 1])
    monkeypatch.setattr(beat_counting, "CONTEXTS", range(1, 4))
    monkeypatch.setattr(stopped, "POINTS", 2)


def test_the_table_and_the_mixtures(data, tmp_path):
    record = record_of(beat_counting, tmp_path / "out", "--data", data)
    lines, found = record["printed"], record["results"]
    rows = [line for line in lines if line.startswith(("LSTM", "GPT")) and "±" in line]
    assert [row.split("  ")[0] for row in rows] == list(beat_counting.ROWS) and len({len(row) for row in rows}) == 1
    assert len(found["runs"]) == 8 and found["scored_characters"] == 143
    for run in found["runs"]:
        assert 0 <= run["weight"] <= 1 and "packed" not in run and "cost" not in run
    assert [one["row"] for one in found["learning"]] == ["LSTM, regularised, wide", "GPT, regularised"]
    assert len(found["all"]["weights"]) == 3 and sum(found["all"]["weights"]) == pytest.approx(1)
    assert sum("bits or below" in line for line in lines) == 3
    assert found["compressed"] == mixtures.compressed(TRAIN, corpus.load(data).validation)
    assert (tmp_path / "out" / "beat_counting.png").stat().st_size > 10_000


def test_the_validation_text_decides_nothing(data, write_corpus, tmp_path, monkeypatch):
    """With another one, everything that was chosen is the same: steps, weights, context, rates."""
    monkeypatch.delattr(beat_counting, "draw")
    monkeypatch.setattr(beat_counting, "SEEDS", [0])
    other = write_corpus(TRAIN, "some other text, of the first characters\n" * 4, "other")
    one, two = (record_of(beat_counting, tmp_path / p.name, "--data", p)["results"] for p in (data, other))
    for a, b in zip(one["runs"], two["runs"], strict=True):
        same = ("best_step", "weight", "set_aside_bits_per_char")
        assert [a[name] for name in same] == [b[name] for name in same]
        assert a["validation_bits_per_char"] != b["validation_bits_per_char"]
    assert one["all"]["weights"] == two["all"]["weights"] and one["counting"]["context"] == two["counting"]["context"]
    assert [a["rate"] for a in one["learning"]] == [b["rate"] for b in two["learning"]]


def test_kneser_ney_chooses_its_context_on_what_is_set_aside(data):
    text = corpus.load(data)
    rest, aside = beat_counting.parts(text, data)
    assert rest + aside == text.train and aside
    ids = [text.encode(part) for part in (rest, aside, text.train, text.validation)]
    by_context = kneser_ney.bits_per_char(*ids[:2], text.size, [1, 2, 3])
    context, p_aside, p_validation = beat_counting.counted(text, data)
    assert context == 1 + int(np.argmin(by_context))
    assert mixtures.bits_per_char(p_aside) == pytest.approx(min(by_context))
    (expected,) = kneser_ney.bits_per_char(*ids[2:], text.size, [context])
    assert mixtures.bits_per_char(p_validation) == pytest.approx(expected)


def test_the_frozen_text_sets_two_whole_posts_aside():
    text = corpus.load()
    rest, aside = beat_counting.parts(text, None)
    # A blank line stood between the posts and the rest, and a newline ends each part.
    assert 0.04 < len(aside) / len(text.train) < 0.09 and len(rest) + len(aside) == len(text.train) - 1
    first, second = (text.train.index(aside[place : place + 200]) for place in (0, -300))
    assert first == 0 and second > len(aside)


def test_too_short_a_text_is_refused_before_anything_is_trained(write_corpus, tmp_path, monkeypatch):
    monkeypatch.setitem(beat_counting.ROWS["GPT, regularised"], "window", 256)
    short = write_corpus("x y\n" * 50, "y x\n")
    with pytest.raises(UserError, match="200 characters: it has to be over 256"):
        record_of(beat_counting, tmp_path / "out", "--data", short)
    assert not (tmp_path / "out").exists()


def test_what_is_best_and_what_is_missed():
    """The recurrent rows' means are 2.5 and 2.4 ± 0.1, the GPT's 2.29; the best mixture is that of one average."""

    def runs(row, *bits):
        return [{"row": row, "validation_bits_per_char": b} for b in bits]

    rows = list(beat_counting.ROWS)
    found = {"runs": runs(rows[0], 2.5) + runs(rows[1], 2.3, 2.5) + runs(beat_counting.OF_GPT, 2.29)}
    found |= {"all": {"bits_per_char": 2.2}, "averages": {rows[0]: {"mixed": {"bits_per_char": 2.1}}}}
    best = beat_counting.best(found)
    assert list(best.values()) == pytest.approx([2.4, 2.29, 2.1])
    assert beat_counting.best(found | {"runs": [], "averages": {}})["a GPT"] == math.inf
