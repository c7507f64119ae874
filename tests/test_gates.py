"""Gradients through untrained cells by the bias of the gate that keeps (gates.py)."""

import statistics

import numpy as np
import pytest
import torch
from commands import record_of
from post import assert_same_as_published

import gates

CELLS = {"RNN": torch.nn.RNN, "GRU": torch.nn.GRU, "LSTM": torch.nn.LSTM}


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    return record_of(gates, tmp_path_factory.mktemp("gates"))


def test_figures_are_the_posts(record):
    assert_same_as_published(record)
    middle = ": gradient reaching the input 1 / 10 / 25 / 50 steps back: "
    assert record["printed"][0] == "RNN                 " + middle + "3.5e+00 / 2.4e-03 / 1.4e-08 / 3.5e-17"
    assert record["printed"][4] == "LSTM, forget bias 1 " + middle + "1.0e+00 / 8.6e-02 / 3.1e-03 / 1.8e-05"
    assert record["printed"][6] == ""


def test_float32_prints_the_same_digits(record):
    """The construction is float32; only the arithmetic is float64. In float32 no printed digit is another."""
    for name, cell, bias in [
        ("RNN", "RNN", None),
        ("GRU, update bias +1", "GRU", 1),
        ("LSTM, forget bias 0", "LSTM", 0),
    ]:
        sizes = []
        for seed in gates.SEEDS:
            net, x = gates.build(CELLS[cell], bias, seed)
            sizes.append(gates.gradient_sizes(net.float(), x.float()))
        median = torch.stack(sizes).median(dim=0).values
        shown = [f"{median[steps - 1]:.1e}" for steps in gates.STEPS_BACK]
        assert shown == [f"{size:.1e}" for size in record["results"]["gradient_size"][name]]


def test_medians_are_over_the_seeds(record):
    results = record["results"]
    for name, sizes in results["gradient_size"].items():
        for column, size in enumerate(sizes):
            assert size == statistics.median(row[column] for row in results["by_seed"][name])
            assert size == results["every_step"][name][results["steps_back"][column] - 1]


def test_a_larger_bias_reaches_further_for_every_seed(record):
    """The claim doesn't hang on one lucky seed. The margins are what half a bias step would give and more."""
    last = {name: [row[-1] for row in rows] for name, rows in record["results"]["by_seed"].items()}
    assert max(last["RNN"]) < 1e-2 * min(last["GRU, default"])
    assert max(last["GRU, default"]) < 1e-2 * min(last["GRU, update bias +1"])
    assert max(last["LSTM, forget bias 0"]) < 1e-2 * min(last["LSTM, forget bias 1"])
    assert max(last["LSTM, forget bias 1"]) < 1e-2 * min(last["LSTM, forget bias 3"])


def test_nothing_underflows_or_is_denormal():
    """Denormal numbers make a processor many times slower, so no case may have any: the faintest one is the RNN."""
    net, x = gates.build(torch.nn.RNN, None, 0)
    gates.gradient_sizes(net, x)
    assert x.grad.abs().min() > torch.finfo(torch.float64).tiny


@pytest.mark.parametrize("name", CELLS)
def test_gradients_agree_with_finite_differences(name):
    net, x = gates.build(CELLS[name], None if name == "RNN" else 1, 0)
    gates.gradient_sizes(net, x)
    gradient = x.grad[0].numpy().copy()
    rng = np.random.default_rng(0)
    with torch.no_grad():
        for steps_back in 1, 2, 10:  # further back the change in the sum drowns in its rounding
            direction = torch.zeros_like(x)
            direction[0, -steps_back] = torch.tensor(rng.standard_normal(gates.WIDTH))
            sums = [net(x.detach() + sign * 1e-5 * direction)[0][0, -1].sum().item() for sign in (1, -1)]
            along = (gradient * direction[0].numpy()).sum()
            assert along == pytest.approx((sums[0] - sums[1]) / 2e-5, rel=1e-5, abs=1e-9)


def test_sizes_are_counted_from_the_last_input_backwards():
    net, x = gates.build(torch.nn.GRU, None, 0)
    sizes = gates.gradient_sizes(net, x)
    assert sizes.shape == (gates.STEPS,)
    assert sizes[0] == x.grad[0, -1].norm() and sizes[-1] == x.grad[0, 0].norm()


@pytest.mark.parametrize("value", [-5, 0, 1, 3, 0.1])
def test_the_effective_bias_is_exactly_what_was_asked_for(value):
    for seed in gates.SEEDS:
        for cell in torch.nn.LSTM, torch.nn.GRU:
            net, _ = gates.build(cell, value, seed)
            assert (gates.gate_bias(net) == torch.tensor(value, dtype=torch.float32).double()).all()


def test_only_the_gate_that_keeps_is_touched():
    """Torch's order is i, f, g, o and r, z, n: the second block, in all its entries, and nothing else."""
    for name in "LSTM", "GRU":
        before, _ = gates.build(CELLS[name], None, 0)
        after, _ = gates.build(CELLS[name], 7, 0)
        for (parameter, old), new in zip(before.named_parameters(), after.parameters(), strict=True):
            blocks = list(zip(old.split(gates.WIDTH), new.split(gates.WIDTH), strict=True))
            for number, (a, b) in enumerate(blocks):
                assert torch.equal(a, b) == (not ("bias" in parameter and number == 1)), (name, parameter, number)


@pytest.mark.parametrize("name", ["GRU", "LSTM"])
def test_the_formulas_in_the_docstring_are_torchs(name):
    """The page's formulas, one unit at a time in plain numbers; the GRU's other definitions give something else."""
    torch.manual_seed(0)
    cell = {"GRU": torch.nn.GRUCell, "LSTM": torch.nn.LSTMCell}[name](3, 2, dtype=torch.float64)
    W_i, W_h, b_i, b_h = (parameter.detach().numpy() for parameter in cell.parameters())
    x, h, c = np.array([0.3, -1.2, 0.8]), np.array([0.5, -0.7]), np.array([-0.2, 0.9])
    tensors = [torch.tensor(value)[None] for value in (x, h, c)]

    def σ(z):
        return 1 / (1 + np.exp(-z))

    i, f, n, o = (slice(2 * k, 2 * k + 2) for k in range(4))
    if name == "LSTM":
        z = W_i @ x + b_i + W_h @ h + b_h
        c_t = σ(z[f]) * c + σ(z[i]) * np.tanh(z[n])
        with torch.no_grad():
            theirs = cell(tensors[0], (tensors[1], tensors[2]))
        np.testing.assert_allclose(c_t, theirs[1][0], rtol=1e-12)
        np.testing.assert_allclose(σ(z[o]) * np.tanh(c_t), theirs[0][0], rtol=1e-12)
        return
    r = σ(W_i[i] @ x + b_i[i] + W_h[i] @ h + b_h[i])
    u = σ(W_i[f] @ x + b_i[f] + W_h[f] @ h + b_h[f])
    n_t = np.tanh(W_i[n] @ x + b_i[n] + r * (W_h[n] @ h + b_h[n]))
    with torch.no_grad():
        theirs = cell(tensors[0], tensors[1])[0].numpy()
    np.testing.assert_allclose((1 - u) * n_t + u * h, theirs, rtol=1e-12)
    reset_before = np.tanh(W_i[n] @ x + b_i[n] + W_h[n] @ (r * h) + b_h[n])
    assert abs((1 - u) * reset_before + u * h - theirs).max() > 0.01
    assert abs(u * n_t + (1 - u) * h - theirs).max() > 0.01


def test_biases_asked_for_are_saved_with_their_results(tmp_path):
    results = record_of(gates, tmp_path, "--forget-bias", "-1", "2.5")
    assert results["arguments"] == {"forget_bias": [-1.0, 2.5]}
    assert list(results["results"]["gradient_size"])[-2:] == ["LSTM, forget bias -1", "LSTM, forget bias 2.5"]
    assert results["results"]["effective_gate_bias"]["LSTM, forget bias 2.5"] == [2.5, 2.5]
