"""A training stopped on a text set aside: its settings reach the model, it resumes, and only that text decides."""

from dataclasses import replace

import pytest
import torch

from lab.trainings import Checkpoint
from layers import char_lm, dropping, mixtures, stopped
from layers.char_gpt import GPT
from layers.dropping import DroppingLSTM

V = 20
SMALL = {"steps": 6, "hidden": 5, "dropout": 0.2, "weight_dropout": 0.2, "batch": 3, "window": 16, "points": 3}
LSTM = stopped.Config("LSTM", seed=1, text="", **SMALL)
SMALL_GPT = replace(LSTM, row="GPT", kind="GPT", hidden=8)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(stopped, "GPT_BLOCKS", 1)
    monkeypatch.setattr(stopped, "GPT_HEADS", 2)


def text(seed, count=150):
    return torch.randint(V, (count,), generator=torch.Generator().manual_seed(seed))


def train(config, checkpoint=None, scored=2):
    return stopped.train(config, checkpoint or Checkpoint(), text(0), text(1), text(scored), vocabulary=V)


def without_seconds(record):
    return record | {"seconds": 0}


def test_the_settings_reach_the_model():
    lstm, gpt = (stopped.build(config, V) for config in (LSTM, SMALL_GPT))
    assert isinstance(lstm, DroppingLSTM) and (lstm.dropout, lstm.weight_dropout, lstm.rnn.hidden_size) == (0.2, 0.2, 5)
    assert isinstance(gpt, GPT) and gpt.window == 16 and gpt.embedding.weight.shape == (V, 8)
    assert gpt.dropout.p == gpt.blocks[0].dropout.p == 0.2


@pytest.mark.parametrize("config", [LSTM, SMALL_GPT], ids=["LSTM", "GPT"])
def test_an_interrupted_training_ends_with_the_same_bits(config, tmp_path):
    """Dropping and the falling rate included."""

    class Stopped(Exception):
        pass

    class Stopping(Checkpoint):
        def save_if_due(self, make_state):
            super().save_if_due(make_state)
            if make_state()["step"] == 3:
                raise Stopped

    whole = train(config)
    with pytest.raises(Stopped):
        train(config, Stopping(tmp_path, every=0))
    assert without_seconds(train(config, Checkpoint(tmp_path))) == without_seconds(whole)
    assert whole["curve"]["step"] == [2, 4, 6] and whole["best_step"] in (2, 4, 6)


def test_the_scored_text_decides_nothing():
    one, other = train(LSTM, scored=2), train(LSTM, scored=3)
    assert one["packed"]["reading"][0] == other["packed"]["reading"][0]
    assert one["curve"] == other["curve"] and one["best_step"] == other["best_step"]
    assert one["packed"]["reading"][1] != other["packed"]["reading"][1]


def test_the_bits_are_those_of_the_best_step(monkeypatch):
    """The stopping text is made to be best at the first point: training for as long as that gives the same model."""
    bits = iter([1.0, 2.0, 3.0, 1.0, 1.0, 1.0])
    monkeypatch.setattr(stopped, "stopping_bits", lambda model, ids: next(bits))
    config = replace(LSTM, cosine=False)
    longer, shorter = train(config), train(replace(config, steps=2))
    assert longer["best_step"] == shorter["best_step"] == 2
    assert longer["packed"]["reading"] == shorter["packed"]["reading"]
    assert len(mixtures.unpack(longer["packed"]["reading"][1])) == 149


def test_the_rate_falls_step_by_step(monkeypatch):
    config, rates = replace(LSTM, warm_up=2), []
    step = torch.optim.AdamW.step

    def noting(self, *arguments):
        rates.append(self.param_groups[0]["lr"])
        return step(self, *arguments)

    monkeypatch.setattr(torch.optim.AdamW, "step", noting)
    train(config)
    assert rates == [stopped.rate(config, step) for step in range(1, 7)]
    assert rates[0] < rates[1] > rates[2] > rates[5] == pytest.approx(0, abs=1e-9)
    assert stopped.rate(replace(config, cosine=False), 5) == config.learning_rate


@pytest.mark.parametrize("config", [LSTM, SMALL_GPT], ids=["LSTM", "GPT"])
def test_learning_while_reading_is_tuned_on_what_is_set_aside(config):
    found = train(replace(config, learns_reading=True))["packed"]
    assert found["rate"] in stopped.RATES and len(mixtures.unpack(found["learning"][1])) == 149
    assert found["learning"][1] != found["reading"][1]
    aside = mixtures.bits_per_char(mixtures.unpack(found["learning"][0]))
    assert aside <= mixtures.bits_per_char(mixtures.unpack(found["reading"][0])) + 0.05


def test_learning_while_reading_goes_on_where_it_was_interrupted(tmp_path, monkeypatch):
    """Each text that has been read is kept: 2 of 3 rates before a kill, then the third and the text scored."""
    monkeypatch.setattr(stopped, "RATES", (1e-4, 1e-3, 1e-2))
    score, read, config = dropping.score_learning, [], replace(LSTM, learns_reading=True)
    whole = train(config)

    def reading(model, ids, sizes, rate):
        if len(read) == 2:
            read.append("killed")
            raise KeyboardInterrupt
        read.append(rate)
        return score(model, ids, sizes, rate)

    monkeypatch.setattr(dropping, "score_learning", reading)
    with pytest.raises(KeyboardInterrupt):
        train(config, Checkpoint(tmp_path, every=0))
    assert without_seconds(train(config, Checkpoint(tmp_path, every=0))) == without_seconds(whole)
    assert read == [1e-4, 1e-3, "killed", 1e-2, whole["packed"]["rate"]]


def test_characters_that_training_never_showed_don_t_count_for_when_to_stop():
    """V - 1 stands for them: a text with them stops a training as the same text without them does."""
    aside = text(1)
    with_them = torch.cat([aside[:50], torch.tensor([V - 1] * 5), aside[50:]])
    known = aside[aside < V - 1]
    one, other = (stopped.descend(LSTM, Checkpoint(), text(0), part, V).curve for part in (with_them, known))
    assert one == other


def test_what_is_stopped_by_is_close_to_the_exact_bits():
    model, ids = stopped.build(LSTM, V), text(5, 3000)
    assert stopped.stopping_bits(model, ids) == pytest.approx(char_lm.evaluate(model, ids)[0], abs=0.05)
    gpt = stopped.build(SMALL_GPT, V)
    assert stopped.stopping_bits(gpt, ids) == char_lm.evaluate(gpt, ids)[0]
