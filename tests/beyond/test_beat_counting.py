"""beyond/beat_counting.py: what is set aside decides, the validation text is only scored, and the table says so."""

import math

import numpy as np
import pytest
from commands import record_of

import corpus
import kneser_ney
from beyond import beat_counting, beat_counting_settings
from beyond.beat_counting import OF_GPT, POSTS, ROWS, WIDEST
from lab import results
from lab.errors import UserError
from layers import mixtures, stopped

LSTM = {"hidden": 6, "batch": 4, "window": 16, "steps": 4, "points": 2, "cost": 1.0}
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
    monkeypatch.setattr(stopped, "RATES", (1e-4, 1e-3))


def test_the_table_and_the_mixtures(data, tmp_path):
    record = record_of(beat_counting, tmp_path / "out", "--data", data)
    lines, found = record["printed"], record["results"]
    table = lines[6 : lines.index("")]
    rows = [line for line in table if line.startswith(("LSTM", "GPT"))]
    assert (
        rows == table
        and [row.split("  ")[0] for row in rows] == list(beat_counting.ROWS)
        and len({len(row) for row in rows}) == 1
    )
    assert [(run["row"], run["seed"]) for run in found["runs"]] == [
        (POSTS, 0), ("LSTM, regularised", 0), (WIDEST, 0), (WIDEST, 1), (OF_GPT, 0), (OF_GPT, 1)
    ]  # fmt: skip
    assert found["scored_characters"] == 143 and found["averages"].keys() == {WIDEST, OF_GPT}
    for run in found["runs"]:
        assert 0 <= run["weight"] <= 1 and "packed" not in run and "cost" not in run
    assert [one["row"] for one in found["learning"]] == [WIDEST, OF_GPT]
    assert list(found["all"]["weights"]) == [WIDEST, OF_GPT, "modified Kneser–Ney"]
    assert sum(found["all"]["weights"].values()) == pytest.approx(1)
    assert sum("bits or below" in line for line in lines) == 3
    assert found["compressed"] == mixtures.compressed(TRAIN, corpus.load(data).validation)
    assert (tmp_path / "out" / "beat_counting.png").stat().st_size > 10_000


def test_a_rate_at_the_end_of_those_tried_and_a_training_that_diverges_are_told(data, tmp_path, monkeypatch):
    """The only rate tried is the smallest and the largest; all seeds of one row diverge."""
    monkeypatch.delattr(beat_counting, "draw")
    monkeypatch.setattr(beat_counting, "SEEDS", [0])
    monkeypatch.setattr(stopped, "RATES", (1e-3,))
    monkeypatch.setitem(beat_counting.ROWS, OF_GPT, beat_counting.ROWS[OF_GPT] | {"learning_rate": 1e30})
    lines = record_of(beat_counting, tmp_path / "out", "--data", data, status=1)["printed"]
    (learning,) = [line for line in lines if "at a rate of" in line]
    assert learning.startswith(WIDEST) and learning.endswith("0.001, the largest tried: beyond it may be a better one")
    (diverged,) = [line for line in lines if "the loss is not finite" in line]
    assert diverged.startswith(f"{OF_GPT}, seed 0: ")


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
    context, *found = beat_counting.counted(text, data)
    assert context == 1 + int(np.argmin(by_context))
    expected = [kneser_ney.bits_per_char(*pair, text.size, [context])[0] for pair in (ids[::3], ids[2:])]
    assert [mixtures.bits_per_char(p) for p in found] == pytest.approx([min(by_context), *expected])


def test_what_is_trained_on_doesn_t_show_is_unseen(write_corpus):
    """The last twentieth has a ξ of its own, which then is no other symbol than the ζ that only validation has."""
    data = write_corpus("ab" * 190 + "ababξababababababab", "abζ")
    text = corpus.load(data)
    rest, aside, validation = beat_counting.ids_of(text, data)
    assert text.size == 4 and validation.tolist() == [0, 1, 3] and not (rest == 3).any()
    assert aside.tolist()[:5] == [0, 1, 0, 1, 3] and (aside == 3).sum() == 1


def test_as_much_is_expected_unseen_as_a_post_has_to_itself(write_corpus):
    """Of 400 characters in twenty pieces, one piece has five that are nowhere else: 5 of 400."""
    data = write_corpus("ab" * 190 + "ξξξξξ" + "abababababababa", "abζ")
    assert beat_counting.share_unseen(corpus.load(data), data) == pytest.approx(5 / 400)
    assert 1e-5 < beat_counting.share_unseen(corpus.load(), None) < 0.01


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


def test_what_is_best_is_chosen_by_what_is_set_aside():
    """The second row is better there, on average, though not in validation; so is the mixture of one average."""

    def runs(row, *bits):
        return [{"row": row, "set_aside_bits_per_char": aside, "validation_bits_per_char": b} for aside, b in bits]

    def mixture(aside, bits):
        return {"set_aside_bits_per_char": aside, "bits_per_char": bits}

    rows = list(beat_counting.ROWS)
    found = {"runs": runs(rows[0], (2.6, 2.3)) + runs(rows[1], (2.4, 2.4), (2.7, 2.6)) + runs(OF_GPT, (2.3, 2.29))}
    found |= {"all": mixture(2.2, 2.0), "averages": {WIDEST: {"mixed": mixture(2.1, 2.15)}}}
    best = beat_counting.best(found)
    assert list(best.values()) == pytest.approx([2.5, 2.29, 2.15])
    assert beat_counting.best(found | {"runs": []})["a GPT"] == math.inf


# beat_counting_settings.py


def test_rates_are_chosen_on_what_is_set_aside_alone(data, write_corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(beat_counting_settings, "ROWS", beat_counting.ROWS)
    monkeypatch.setattr(beat_counting_settings, "LEARNING_RATES", [1e-4, 1e-2, 1e30])
    monkeypatch.setattr(beat_counting_settings, "STEPS", 4)
    other = write_corpus(TRAIN, "some other text, of the first characters\n" * 4, "other")
    one, two = (record_of(beat_counting_settings, tmp_path / p.name, "--data", p, status=1) for p in (data, other))
    for record in one, two:
        for run in record["results"]["runs"]:
            run.pop("seconds", None)
    assert one["results"] == two["results"] and one["printed"] == two["printed"]
    assert one["results"]["best"] == dict.fromkeys(["LSTM, regularised", WIDEST, OF_GPT], 0.01)
    assert one["printed"][2].startswith("LSTM, regularised  ") and "–" in one["printed"][2]
    assert sum("the loss is not finite" in line for line in one["printed"]) == 3


def test_the_rows_have_the_rates_that_were_chosen():
    if not (results.SAVED / "beat_counting_settings.json").exists():
        pytest.skip("nothing is saved yet")
    chosen = results.load("beat_counting_settings")["results"]["best"]
    assert {row: ROWS[row]["learning_rate"] for row in chosen} == chosen
    assert chosen.keys() == {row for row, own in ROWS.items() if own.get("cosine", True)}
