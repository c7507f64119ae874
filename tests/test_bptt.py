"""Backpropagation through time by hand (bptt.py)."""

import re

import numpy as np
import pytest
import torch
from commands import record_of
from post import assert_same_as_published

import bptt

# Each size differs from the others, so that a transposed product can't pass.
STEPS, INPUT, HIDDEN = 5, 2, 3


def network(seed):
    rng = np.random.default_rng(seed)
    shapes = {"W_x": (INPUT, HIDDEN), "W_h": (HIDDEN, HIDDEN), "b": (HIDDEN,)}
    weights = {name: 0.7 * rng.standard_normal(shape) for name, shape in shapes.items()}
    return weights, rng.standard_normal((STEPS, INPUT)), rng.standard_normal(HIDDEN), rng.standard_normal(HIDDEN)


def predict(weights, x, h_0, w_out):
    return bptt.forward(x, h_0, **weights)[-1] @ w_out


def relative_gap(ours, reference):
    return np.max(abs(ours - reference) / np.maximum(abs(reference), 1e-3))


@pytest.mark.parametrize("seed", range(10))
def test_every_gradient_agrees_with_central_differences(seed):
    weights, x, h_0, w_out = network(seed)
    h = bptt.forward(x, h_0, **weights)
    dh, gradients = bptt.backward(x, h, weights["W_h"], w_out)
    assert set(gradients) == set(weights)
    for name in weights:
        reference = bptt.central_differences(
            lambda value, name=name: predict({**weights, name: value}, x, h_0, w_out), weights[name], 1e-5
        )
        assert relative_gap(gradients[name], reference) < 1e-6, name
    reference = bptt.central_differences(lambda h_0: predict(weights, x, h_0, w_out), h_0, 1e-5)
    assert relative_gap(dh[0], reference) < 1e-6
    assert abs(dh[0]).min() > 0  # five steps back: nothing was cut off on the way


@pytest.mark.parametrize("seed", range(3))
def test_every_gradient_agrees_with_autograd_and_with_a_complex_step(seed):
    weights, x, h_0, w_out = network(seed)
    dh, gradients = bptt.backward(x, bptt.forward(x, h_0, **weights), weights["W_h"], w_out)

    tensors = {name: torch.tensor(value, requires_grad=True) for name, value in weights.items()}
    states = [torch.tensor(h_0, requires_grad=True)]
    for x_t in torch.tensor(x):
        states.append(torch.tanh(x_t @ tensors["W_x"] + states[-1] @ tensors["W_h"] + tensors["b"]))
        states[-1].retain_grad()
    (states[-1] @ torch.tensor(w_out)).backward()
    for name in weights:
        np.testing.assert_allclose(gradients[name], tensors[name].grad, rtol=1e-12, atol=1e-14)
    for ours, state in zip(dh, states, strict=True):
        np.testing.assert_allclose(ours, state.grad, rtol=1e-12, atol=1e-14)

    # f(W + iε) has the derivative as its imaginary part over ε, without any subtraction.
    for index in np.ndindex(HIDDEN, HIDDEN):
        W_h = weights["W_h"].astype(complex)
        W_h[index] += 1e-30j
        derivative = predict({**weights, "W_h": W_h}, x, h_0, w_out).imag / 1e-30
        assert gradients["W_h"][index] == pytest.approx(derivative, rel=1e-12, abs=1e-14)


def test_states_equal_torchs_recurrent_layer():
    weights, x, h_0, _ = network(0)
    layer = torch.nn.RNN(INPUT, HIDDEN, dtype=torch.float64)
    with torch.no_grad():
        layer.weight_ih_l0.copy_(torch.tensor(weights["W_x"].T))
        layer.weight_hh_l0.copy_(torch.tensor(weights["W_h"].T))
        layer.bias_ih_l0.copy_(torch.tensor(weights["b"]))
        layer.bias_hh_l0.zero_()
        states, _ = layer(torch.tensor(x), torch.tensor(h_0)[None])
    np.testing.assert_allclose(bptt.forward(x, h_0, **weights)[1:], states, rtol=1e-13, atol=1e-15)


def test_the_first_input_reaches_the_last_state():
    weights, x, h_0, _ = network(1)
    before = bptt.forward(x, h_0, **weights)[-1]
    x[0] += 0.1
    assert abs(bptt.forward(x, h_0, **weights)[-1] - before).min() > 0


@pytest.mark.parametrize("window", [1, 3, STEPS])
def test_the_last_steps_alone_give_the_gradient_of_those_steps(window):
    """Truncated to K steps, it is the gradient of y with the state K steps back held constant."""
    weights, x, h_0, w_out = network(2)
    h = bptt.forward(x, h_0, **weights)
    _, gradients = bptt.backward(x[-window:], h[-window - 1 :], weights["W_h"], w_out)
    reference = bptt.central_differences(
        lambda W_h: predict({**weights, "W_h": W_h}, x[-window:], h[-window - 1], w_out), weights["W_h"], 1e-5
    )
    assert relative_gap(gradients["W_h"], reference) < 1e-6
    _, full = bptt.backward(x, h, weights["W_h"], w_out)
    assert np.array_equal(gradients["W_h"], full["W_h"]) == (window == STEPS)


def test_the_slope_of_tanh_is_one_minus_h_squared():
    # tanh(z) = 0.5 at z = ln(3) / 2, where (1 - h²) = 0.75. One unit, one step: y = h, dy/db = slope.
    z = np.array([np.log(3) / 2])
    h = bptt.forward(np.zeros((1, 1)), np.zeros(1), np.zeros((1, 1)), np.zeros((1, 1)), z)
    assert h[1] == pytest.approx(0.5, rel=1e-15)
    _, gradients = bptt.backward(np.zeros((1, 1)), h, np.zeros((1, 1)), np.ones(1))
    assert gradients["b"] == pytest.approx(0.75, rel=1e-15)


def test_a_wrong_gradient_shows_in_the_gap():
    weights, x, h_0, w_out = network(3)
    _, gradients = bptt.backward(x, bptt.forward(x, h_0, **weights), weights["W_h"], w_out)
    reference = bptt.central_differences(
        lambda W_h: predict({**weights, "W_h": W_h}, x, h_0, w_out), weights["W_h"], 1e-5
    )
    for index in np.ndindex(HIDDEN, HIDDEN):
        wrong = gradients["W_h"].copy()
        wrong[index] += 1e-5
        assert relative_gap(wrong, reference) > 1e-6


def test_figures_are_the_posts(tmp_path):
    record = record_of(bptt, tmp_path)
    assert_same_as_published(record)
    printed = record["printed"]
    assert printed[:7] == [
        "h_1 = [ 0.537  -0.2913]",
        "h_2 = [ 0.5691 -0.0673]",
        "h_3 = [0.082 0.357]",
        "prediction y = h_3 . w_out = -0.2750",
        "gradient reaching h_2: [ 0.6201 -0.9208]",
        "gradient reaching h_1: [ 0.1521 -0.7177]",
        "gradient reaching h_0: [-0.0448 -0.4374]",
    ]
    # The gap is rounding (see the script): of the post's size, its digits the processor's own.
    gap = re.fullmatch(
        r"dy/dW_h = \[\[0\.7904, -0\.9888\], \[-0\.189, 0\.3257\]\]; largest gap to finite differences (.*)", printed[7]
    )
    assert 1e-12 < float(gap[1]) < 5e-10


def test_cutting_off_the_series_costs_epsilon_squared(tmp_path):
    results = record_of(bptt, tmp_path)["results"]
    gaps = dict(zip(results["epsilons"], results["gaps_to_finite_differences"], strict=True))
    assert gaps[1e-2] / gaps[1e-3] == pytest.approx(100, rel=1e-2)
    assert gaps[1e-3] / gaps[1e-4] == pytest.approx(100, rel=1e-2)
    assert max(gaps[epsilon] for epsilon in (1e-5, 1e-6)) < 1e-9
