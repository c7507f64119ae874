"""Reach and gates before and after training (beyond/gates_trained.py)."""

import base64
from dataclasses import replace

import pytest
import torch
from commands import record_of
from torch import nn

import charlm
import corpus
import gates
from beyond import gates_trained
from lab import script
from lab.errors import Diverged, UserError
from lab.trainings import Checkpoint
from layers import char_files, char_rnn, one_bit, one_bit_training


def numbers(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_the_gradient_is_the_one_that_gates_py_measures(kind):
    """One sequence through torch's own layer; of several, the median of them, step by step."""
    torch.manual_seed(0)
    layer = kind(3, 5).double()
    x = numbers(9, 4, 3).double()
    layer.batch_first = True
    alone = torch.stack([gates.gradient_sizes(layer, x[:, n].clone()[None]) for n in range(4)])  # (sequence, time)
    layer.batch_first = False
    for n in range(4):
        assert torch.allclose(gates_trained.gradient_sizes(layer, x[:, [n]]), alone[n], rtol=1e-10, atol=0)
    assert torch.allclose(gates_trained.gradient_sizes(layer, x), alone.median(dim=0).values, rtol=1e-10, atol=0)


def test_the_gate_that_keeps_is_the_second_one_computed_step_by_step():
    """σ of the sum of both products and both biases, from a state that nn.LSTMCell or nn.GRUCell computes."""
    x = numbers(6, 4, 3)
    for kind, cell_kind in ((nn.LSTM, nn.LSTMCell), (nn.GRU, nn.GRUCell)):
        torch.manual_seed(1)
        layer, cell = kind(3, 5), cell_kind(3, 5)
        cell.load_state_dict({name.removesuffix("_l0"): value for name, value in layer.state_dict().items()})
        state = None
        found = one_bit.keeping_gate(layer, x)
        for t in range(6):
            h = torch.zeros(4, 5) if state is None else state[0] if kind is nn.LSTM else state
            arguments = cell.weight_ih @ x[t].T + cell.bias_ih[:, None] + cell.weight_hh @ h.T + cell.bias_hh[:, None]
            assert torch.allclose(found[t], torch.sigmoid(arguments[5:10].T), atol=1e-6)
            state = cell(x[t], state)


def test_a_gate_without_weights_is_its_bias():
    """σ(1) = 0.7311 for every unit and step, so every quantile; and a plain cell has no gate."""
    layer = nn.LSTM(3, 4)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.zero_()
        layer.bias_ih_l0[4:8] = 1.0
    assert gates_trained.look(layer, numbers(60, 2, 3))["gate"] == pytest.approx([0.7310586] * 5)
    assert list(gates_trained.look(nn.RNN(3, 4), numbers(60, 2, 3))) == ["gradient"]


@pytest.fixture(scope="module")
def text():
    return corpus.load(None)


def config(text, cell="LSTM"):
    return charlm.Config(cell, 3, text.fingerprint, 1, hidden=16)


def write(path, text, model):
    path.write_bytes(char_files.pack(charlm.recorded(vars(config(text))), text, {"step": 1, "model": model}))
    return path


@pytest.fixture(scope="module")
def saved(text, tmp_path_factory):
    """A model file as charlm.py writes it; its output weights are not those it began with, its layer's are."""
    model = char_rnn.build(config(text), text.size)
    nn.init.zeros_(model.linear.weight)
    return write(tmp_path_factory.mktemp("saved") / "lstm.pt", text, model.state_dict())


def test_untrained_weights_look_the_same_as_trained_ones_that_are_equal(saved, text):
    seen = gates_trained.look_at(*char_files.load(saved, text), text)
    assert (seen["cell"], seen["seed"]) == ("LSTM", 3)
    assert seen["untrained"] == seen["trained"]
    assert len(seen["trained"]["gradient"]) == 50 and len(seen["trained"]["gate"]) == 5
    assert seen["trained"]["gate"] == sorted(seen["trained"]["gate"])


def test_the_trained_model_is_the_saved_one(text, tmp_path):
    """Weights of 0 and a forget bias of 1, as above: σ(1). An untrained gate is σ of something near 0."""
    model = char_rnn.build(config(text), text.size)
    with torch.no_grad():
        for parameter in model.rnn.parameters():
            parameter.zero_()
        model.rnn.bias_ih_l0[16:32] = 1.0
    path = write(tmp_path / "lstm.pt", text, model.state_dict())
    seen = gates_trained.look_at(*char_files.load(path, text), text)
    assert seen["trained"]["gate"] == pytest.approx([0.7310586] * 5)
    assert seen["untrained"]["gate"][2] == pytest.approx(0.5, abs=0.1)


def test_a_saved_model_is_looked_at_without_training(saved, tmp_path):
    record = record_of(gates_trained, tmp_path, "--load", saved)
    lines, (one,) = record["printed"], record["results"]["runs"]
    assert lines[0] == "as saved: gradient reaching the input 1 / 10 / 25 / 50 steps back"
    assert [line.split(":")[0].strip() for line in lines[1:3]] == ["LSTM, untrained", "LSTM, trained"]
    gradient = one["trained"]["gradient"]
    assert lines[2].endswith(" / ".join(f"{gradient[steps - 1]:.1e}" for steps in (1, 10, 25, 50)))
    assert record["seeds"] == [3] and (tmp_path / "gates_trained.png").exists()


def test_a_model_of_another_text_is_looked_at_and_that_is_said(saved, text, tmp_path, write_corpus):
    data = write_corpus(text.train, text.validation + text.validation)
    assert record_of(gates_trained, tmp_path / "out", "--load", saved, "--data", data)["printed"][0].startswith(
        "as saved, trained on another text: gradient"
    )


def test_training_on_text_looks_at_the_weights_of_the_best_step(write_corpus):
    folder = write_corpus("A cat sat on a mat; the hat was flat.\n" * 20, "That cat ate the bat.\n" * 20)
    text = corpus.load(folder)
    short = replace(config(text, "GRU"), steps=4, data=str(folder))
    seen = gates_trained.train(short, Checkpoint())
    packed = charlm.train(replace(short, with_weights=True), Checkpoint())["weights"]
    model, settings = char_files.unpack(base64.b64decode(packed), text)
    assert seen == gates_trained.look_at(model, settings, text) and seen["untrained"] != seen["trained"]


def test_training_on_bits_changes_what_is_seen():
    short = one_bit_training.Config("GRU", 5, 0, 0.001, 2, batch=64, stops=False)
    seen = gates_trained.train(short, Checkpoint())
    noise, _ = one_bit.sequences(torch.Generator().manual_seed(2000), 127, 64, short.noise)
    assert seen["untrained"] == gates_trained.look(one_bit_training.build(short).layer, noise)
    assert seen["untrained"]["gate"] != seen["trained"]["gate"]
    assert seen == gates_trained.train(short, Checkpoint())


def test_text_and_bits_stand_apart_and_medians_are_over_seeds(monkeypatch, tmp_path, in_this_process):
    """Sizes of 100, 101 and 102 for text, 10, 11 and 12 for bits; one training diverges, so its cell has two."""

    def train(config, checkpoint):
        of_text = isinstance(config, charlm.Config)
        if not of_text and (config.cell, config.seed) == ("RNN", 0):
            raise Diverged(8)
        size = config.seed + (100 if of_text else 10)
        seen = {"gradient": [float(size)] * 50} | ({} if config.cell == "RNN" else {"gate": [size / 1000] * 5})
        return {"cell": config.cell, "seed": config.seed, "untrained": seen, "trained": seen}

    monkeypatch.setattr(gates_trained, "train", train)
    record = record_of(gates_trained, tmp_path, status=1)
    for line in (
        "GRU, trained                  : 1.0e+02 / 1.0e+02 / 1.0e+02 / 1.0e+02",
        "GRU, trained                  : 0.101 / 0.101 / 0.101 / 0.101 / 0.101",
        "LSTM, forget bias 1, untrained: 1.1e+01 / 1.1e+01 / 1.1e+01 / 1.1e+01",
        "RNN, trained                  : 1.2e+01 / 1.2e+01 / 1.2e+01 / 1.2e+01",  # 11.5, rounded to even
    ):
        assert record["printed"].count(line) == 1
    diverged = [run for run in record["results"]["runs"] if "diverged_at_step" in run]
    assert diverged == [{"task": "one bit, 20 steps", "cell": "RNN", "seed": 0, "diverged_at_step": 8}]
    assert len(record["results"]["runs"]) == 3 * 3 + 5 * 3 and record["seeds"] == [0, 1, 2]


def test_a_validation_text_shorter_than_a_window_is_refused(saved, text, tmp_path, write_corpus):
    """127 characters; with 128 there is one window, seen 64 times."""
    short = write_corpus(text.train, text.validation[:127])
    with pytest.raises(UserError, match="the validation text has 127 characters: a window takes 128"):
        script.perform(script.experiment(gates_trained), ["--load", str(saved), "--data", str(short)])
    record_of(gates_trained, tmp_path, "--load", saved, "--data", write_corpus(text.train, text.validation[:128]))
