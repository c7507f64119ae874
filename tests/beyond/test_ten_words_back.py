"""How far back a prediction depends on a character (beyond/ten_words_back.py): what is replaced, and what moves."""

from functools import partial

import numpy as np
import pytest
import torch
from commands import measured, record_of

import corpus
import kneser_ney
from beyond import ten_words_back
from lab.errors import UserError
from layers import hidden_markov
from layers.char_rnn import CharRNN
from layers.ngrams import count_ngrams

WORDS = "the cat sat on the mat and the hat was flat so that cat ate it "


@pytest.fixture
def text(write_corpus, monkeypatch):
    monkeypatch.setattr(ten_words_back, "READ", 40)
    monkeypatch.setattr(ten_words_back, "PLACES", 6)
    monkeypatch.setattr(ten_words_back, "DISTANCES", [1, 2, 4, 8])
    return corpus.load(write_corpus(WORDS * 30, WORDS * 4))


def test_one_character_is_replaced_and_by_another_one(text):
    at = ten_words_back.places(text)
    assert at.windows.shape == (6, 40)
    for distance, windows in at.replaced.items():
        differs = windows != at.windows
        assert differs[:, -distance].all() and differs.sum() == 6
    assert set(at.replaced) == {1, 2, 4, 8, 39}  # ten words take 39 characters, a hundred more than are read
    again = ten_words_back.places(text)
    assert all(np.array_equal(again.replaced[d], windows) for d, windows in at.replaced.items())


def test_ten_words_take_ten_words_of_the_text(text):
    """63 characters and 16 words, four times."""
    assert len(WORDS) == 63 and ten_words_back.words_take(text) == {10: round(630 / 16), 100: round(6300 / 16)}


def test_what_moves_is_what_the_prediction_depends_on(text):
    """A model that is sure of the character four back: everything moves there, and nothing elsewhere."""
    found = ten_words_back.moved(lambda windows: np.eye(text.size)[windows[:, -4]], text)
    assert found == {distance: float(distance == "4") for distance in found}


def test_kneser_ney_has_nothing_beyond_its_context(text):
    train, V = text.encode(text.train), text.size
    levels = kneser_ney.levels(count_ngrams(train, V, 6), kneser_ney.modified_discounts, V)
    for context in (2, 5):
        model = kneser_ney.of_context(*levels, context)
        found = ten_words_back.moved(partial(ten_words_back.by_counting, model, V), text)
        assert all((moved > 0) == (int(distance) <= context) for distance, moved in found.items())


def test_a_hidden_markov_model_s_odds_are_those_of_all_its_paths():
    """Against the sum over all paths of a short window's states; in a model that forgets its state nothing moves."""
    rng = np.random.default_rng(0)
    model = hidden_markov.random_model(2, 3, rng)
    windows = rng.integers(3, size=(4, 5))
    found = ten_words_back.by_states(model, windows)
    for window, odds in zip(windows, found, strict=True):
        weights = np.zeros(3)
        for path in np.ndindex(*[2] * 6):
            p = model.start[path[0]]
            for t, symbol in enumerate(window):
                p *= model.emission[path[t], symbol] * model.transition[path[t], path[t + 1]]
            weights += p * model.emission[path[-1]]
        assert odds == pytest.approx(weights / weights.sum())
    forgets = hidden_markov.HMM(model.start, np.tile(model.transition[:1], (2, 1)), model.emission)
    one, other = ten_words_back.by_states(forgets, windows), ten_words_back.by_states(forgets, (windows + 1) % 3)
    assert np.allclose(one, other, atol=1e-14)


def test_a_network_s_odds_are_its_softmax_in_float64():
    torch.manual_seed(0)
    model, windows = CharRNN(5, "LSTM", 8), np.random.default_rng(0).integers(5, size=(3, 7))
    found = ten_words_back.by_network(model, windows)
    with torch.no_grad():
        logits, _ = model.rnn(model.embedding(torch.from_numpy(windows).t()))
        expected = model.linear(logits[-1]).softmax(1)
    assert found.dtype == np.float64 and found == pytest.approx(expected.numpy(), abs=1e-12)


def test_a_text_that_is_too_short_is_refused(write_corpus):
    folder = write_corpus(WORDS * 30, WORDS * 4)
    with pytest.raises(UserError, match="the validation text has 252 characters: a place takes 641"):
        measured(ten_words_back, "--data", folder)


def test_the_command_measures_what_it_tells(text, tmp_path, in_this_process, monkeypatch):
    for name, value in {"CELLS": ["RNN"], "STATES": 2, "SEEDS": range(2), "CONTEXTS": [2]}.items():
        monkeypatch.setattr(ten_words_back, name, value)
    saved = record_of(ten_words_back, tmp_path / "out", "--steps", 1, "--data", tmp_path / "text")
    found, lines = saved["results"], saved["printed"]
    assert [run["model"] for run in found["runs"]] == ["HMM, 2 states"] * 2 + ["RNN"] * 2
    row = next(line for line in lines if line.startswith("Kneser–Ney, context 2"))
    assert row.split()[-1] == "0" and float(row.split()[3]) > 0
    assert "10 words of the validation text take 39 characters" in lines
    assert (tmp_path / "out" / "ten_words_back.png").exists()
