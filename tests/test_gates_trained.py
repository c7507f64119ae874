"""Reach and gates before and after training (gates_trained.py)."""

from types import SimpleNamespace

import pytest
import torch
from commands import assert_refused, run
from torch import nn

import charlm
import corpus
import gates
import gates_trained
import recall
from lab import results
from lab.script import UserError
from lab.trainings import Keeper


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
        found = gates_trained.keeping_gate(layer, x)
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


@pytest.fixture(scope="module")
def saved(text, tmp_path_factory):
    """A model file as charlm.py writes it; its output weights are not those it began with, its layer's are."""
    path = tmp_path_factory.mktemp("saved") / "lstm.pt"
    config = charlm.configuration("LSTM", 3, text, steps=1) | {"hidden": 16}
    model = charlm.build(config, text.size)
    nn.init.zeros_(model.linear.weight)
    charlm.save(path, config, text, {"step": 1, "model": model.state_dict()})
    return path


def test_untrained_weights_look_the_same_as_trained_ones_that_are_equal(saved, text):
    seen = gates_trained.look_at_saved(saved, text)
    assert (seen["cell"], seen["seed"]) == ("LSTM", 3)
    assert seen["untrained"] == seen["trained"]
    assert len(seen["trained"]["gradient"]) == 50 and len(seen["trained"]["gate"]) == 5
    assert seen["trained"]["gate"] == sorted(seen["trained"]["gate"])


def test_the_trained_model_is_the_saved_one(text, tmp_path):
    """Weights of 0 and a forget bias of 1, as above: σ(1). An untrained gate is σ of something near 0."""
    config = charlm.configuration("LSTM", 3, text, steps=1) | {"hidden": 16}
    model = charlm.build(config, text.size)
    with torch.no_grad():
        for parameter in model.rnn.parameters():
            parameter.zero_()
        model.rnn.bias_ih_l0[16:32] = 1.0
    charlm.save(tmp_path / "lstm.pt", config, text, {"step": 1, "model": model.state_dict()})
    seen = gates_trained.look_at_saved(tmp_path / "lstm.pt", text)
    assert seen["trained"]["gate"] == pytest.approx([0.7310586] * 5)
    assert seen["untrained"]["gate"][2] == pytest.approx(0.5, abs=0.1)


def test_a_saved_model_is_looked_at_without_training(saved, tmp_path):
    gates_trained.main(["--load", str(saved), "--outputs", str(tmp_path)])
    record = results.load("gates_trained", tmp_path)
    lines = (tmp_path / "gates_trained.txt").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "as saved: gradient reaching the input 1 / 10 / 25 / 50 steps back"
    assert [line.split(":")[0].strip() for line in lines[1:3]] == ["LSTM, untrained", "LSTM, trained"]
    run_ = record["results"]["runs"][0]["trained"]
    assert lines[2].endswith(" / ".join(f"{run_['gradient'][steps - 1]:.1e}" for steps in (1, 10, 25, 50)))
    assert (tmp_path / "gates_trained.png").exists()


def test_training_on_bits_changes_what_is_seen():
    config = recall.configuration("GRU", 5, 0, steps=2)
    seen = gates_trained.train(config, Keeper())
    noise, _ = recall.sequences(torch.Generator().manual_seed(2000), 127, 64, config["noise"])
    assert seen["untrained"] == gates_trained.look(recall.build(config).layer, noise)
    assert seen["untrained"]["gate"] != seen["trained"]["gate"]
    assert seen == gates_trained.train(config, Keeper())


def test_text_and_bits_stand_apart_and_medians_are_over_seeds(monkeypatch, tmp_path):
    def run(train, configs, **options):
        for config in configs:
            size = config["seed"] + (10 if "gap" in config else 100)
            seen = {"gradient": [float(size)] * 50} | ({} if config["cell"] == "RNN" else {"gate": [size / 1000] * 5})
            yield {"cell": config["cell"], "seed": config["seed"], "untrained": seen, "trained": seen}

    fake = SimpleNamespace(run=run, add_arguments=gates_trained.trainings.add_arguments)
    monkeypatch.setattr(gates_trained, "trainings", fake)
    gates_trained.main(["--outputs", str(tmp_path)])
    lines = (tmp_path / "gates_trained.txt").read_text(encoding="utf-8").splitlines()
    assert lines.count("GRU, trained                  : 1.0e+02 / 1.0e+02 / 1.0e+02 / 1.0e+02") == 1
    assert lines.count("GRU, trained                  : 0.101 / 0.101 / 0.101 / 0.101 / 0.101") == 1
    assert lines.count("LSTM, forget bias 1, untrained: 1.1e+01 / 1.1e+01 / 1.1e+01 / 1.1e+01") == 1
    assert lines.count("RNN, trained                  : 1.1e+01 / 1.1e+01 / 1.1e+01 / 1.1e+01") == 1


def test_a_validation_text_shorter_than_a_window_is_refused(saved, text, tmp_path):
    """127 characters; with 128 there is one window, seen 64 times."""
    (tmp_path / "blog_train.txt").write_text(text.train, encoding="utf-8")
    for length in (127, 128):
        (tmp_path / "blog_val.txt").write_text(text.validation[:length], encoding="utf-8")
        arguments = ["--load", str(saved), "--data", str(tmp_path), "--outputs", str(tmp_path)]
        if length == 127:
            with pytest.raises(UserError, match="the validation text has 127 characters: a window takes 128"):
                gates_trained.main(arguments)
        else:
            gates_trained.main(arguments)


def test_a_mistake_is_one_line(tmp_path):
    assert_refused(run("gates_trained.py", "--load", tmp_path / "nothing.pt"), "can't read", "nothing.pt")
    (tmp_path / "damaged.pt").write_bytes(b"not a model")
    assert_refused(run("gates_trained.py", "--load", tmp_path / "damaged.pt"), "damaged.pt")
    assert_refused(run("gates_trained.py", "--steps", "0"), "--steps")
