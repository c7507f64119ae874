"""Gradients through 50 steps of a recurrent network (vanishing.py)."""

import numpy as np
import pytest
import torch
from commands import record_of
from post import assert_same_as_published

import vanishing


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    return record_of(vanishing, tmp_path_factory.mktemp("vanishing"))


def sizes(W, activation, inputs=0.5, steps=50, seed=1):
    h = vanishing.states(W, activation, inputs, np.random.default_rng(seed), steps)
    dh = np.full(len(W), len(W) ** -0.5)
    return np.array([np.linalg.norm(g) for g in vanishing.gradients(dh, h, W, activation)])


def test_figures_are_the_posts(record):
    assert_same_as_published(record)


def test_lines_are_the_posts(record):
    lines = record["printed"]
    assert lines[1] == (
        "radius 0.9, tanh  : gradient size after 1 steps 6.6e-01, 10 steps 1.6e-02, 25 steps 1.2e-04, 50 steps 1.6e-08"
    )
    assert lines[7].startswith("radius 1.1, tanh, no inputs: gradient size after 1 steps 1.0e+00, 10 steps 9.8e-01")
    assert lines[8] == ""


@pytest.mark.parametrize("radius", [0.5, 0.9, 1.0, 1.1])
def test_a_linear_network_scales_by_the_radius_at_every_step(radius):
    """An orthogonal matrix changes no length, so 200 steps back the size is radius²⁰⁰ and nothing else."""
    Q = vanishing.orthogonal(np.random.default_rng(3), 64)
    np.testing.assert_allclose(Q @ Q.T, np.eye(64), atol=1e-14)
    np.testing.assert_allclose(sizes(radius * Q, "linear", steps=200), radius ** np.arange(1, 201), rtol=1e-12)


def test_published_linear_sizes_are_powers_of_the_radius(record):
    for case in record["results"]["gradient_size"]:
        if case["activation"] == "linear":
            np.testing.assert_allclose(case["every_step"], case["radius"] ** np.arange(1, 51), rtol=1e-12)


@pytest.mark.parametrize("activation", ["tanh", "linear"])
def test_gradients_agree_with_autograd(activation):
    rng = np.random.default_rng(5)
    W = rng.standard_normal((7, 7)) / 7**0.5
    g = rng.standard_normal(7)
    # states() draws its start, then each step's input: the same numbers are drawn again here.
    replay = np.random.default_rng(6)
    start = 0.5 * replay.standard_normal(7)
    hidden = [torch.tensor(start, requires_grad=True)]
    for _ in range(9):
        noise = torch.tensor(0.5 * replay.standard_normal(7))
        z = hidden[-1] @ torch.tensor(W) + noise
        hidden.append(torch.tanh(z) if activation == "tanh" else z)
        hidden[-1].retain_grad()
    (hidden[-1] @ torch.tensor(g)).backward()

    h = vanishing.states(W, activation, 0.5, np.random.default_rng(6), steps=9)
    np.testing.assert_allclose(h, [state.detach().numpy() for state in hidden[1:]], rtol=1e-12)
    ours = list(vanishing.gradients(g, h, W, activation))
    assert len(ours) == 9
    for dh, state in zip(ours, reversed(hidden[:-1]), strict=True):
        np.testing.assert_allclose(dh, state.grad, rtol=1e-11, atol=1e-15)


def test_gradients_agree_with_finite_differences():
    rng = np.random.default_rng(8)
    W, g, h_0, inputs = (
        rng.standard_normal((4, 4)),
        rng.standard_normal(4),
        rng.standard_normal(4),
        rng.standard_normal((6, 4)),
    )

    def last(h):
        for noise in inputs:
            h = np.tanh(h @ W + noise)
        return h @ g

    h, visited = h_0, []
    for noise in inputs:
        h = np.tanh(h @ W + noise)
        visited.append(h)
    ours = list(vanishing.gradients(g, visited, W, "tanh"))[-1]
    step = 1e-6 * np.eye(4)
    differences = [(last(h_0 + e) - last(h_0 - e)) / 2e-6 for e in step]
    np.testing.assert_allclose(ours, differences, rtol=1e-6, atol=1e-10)


def test_rows_of_a_matrix_are_gradients_of_their_own():
    """Starting from the identity gives the product of all steps: its row i is what the i-th unit's gradient becomes."""
    rng = np.random.default_rng(9)
    W = rng.standard_normal((5, 5)) / 2
    h = vanishing.states(W, "tanh", 0.5, rng, steps=6)
    product = list(vanishing.gradients(np.eye(5), h, W, "tanh"))[-1]
    for i in range(5):
        np.testing.assert_allclose(product[i], list(vanishing.gradients(np.eye(5)[i], h, W, "tanh"))[-1], rtol=1e-12)
    by_hand = np.eye(5)
    for h_t in reversed(h):
        by_hand = by_hand @ np.diag(1 - h_t**2) @ W.T
    np.testing.assert_allclose(product, by_hand, rtol=1e-12)


def test_silent_inputs_are_drawn_all_the_same():
    """The noise is drawn also when its size is 0, so that the generator stands where it would have stood."""
    W = np.eye(3)
    quiet, loud = np.random.default_rng(0), np.random.default_rng(0)
    vanishing.states(W, "tanh", 0, quiet)
    vanishing.states(W, "tanh", 0.5, loud)
    assert quiet.standard_normal() == loud.standard_normal()


def test_a_general_matrix_stretches_more_than_its_spectral_radius(record):
    for case in record["results"]["general_matrix"]:
        assert case["largest_singular_value"] > 1.5 * case["radius"]
    # The rotation [[0, 4], [-1/4, 0]]: eigenvalues ±i, so radius 1, but it stretches one direction by 4.
    W = np.array([[0, 4], [-0.25, 0]])
    assert vanishing.spectral_radius(W) == pytest.approx(1, rel=1e-15)
    assert vanishing.largest_singular_value(W) == pytest.approx(4, rel=1e-15)


def test_the_conditions_of_pascanu_et_al_hold(record):
    """σ below 1 is sufficient to vanish; σ above 1 is necessary, and not sufficient, to explode."""
    steps = np.arange(1, 51)
    for case in record["results"]["general_matrix"]:
        bound = case["largest_singular_value"] ** steps
        assert (np.array(case["every_step"]) <= bound * (1 + 1e-9)).all()
        assert case["gains"] == [case["every_step"][k - 1] for k in record["results"]["steps_back"]]
    below = [c for c in record["results"]["general_matrix"] if c["largest_singular_value"] < 1]
    above = [c for c in record["results"]["general_matrix"] if c["largest_singular_value"] > 1]
    assert len(below) == 2 and all(c["gains"][-1] < 0.9**50 for c in below)
    assert {c["gains"][-1] > 1 for c in above} == {True, False}
    # In the long run it is the spectral radius that decides in a linear network: 0.9 grows first, and vanishes.
    linear = next(c for c in above if c["activation"] == "linear")
    assert linear["radius"] == pytest.approx(0.9) and linear["every_step"][0] > 1 > linear["every_step"][-1] * 100


def test_nothing_underflows_or_comes_near(record):
    """Denormal numbers would be slow, and zeros would be missing from the figure's log axis."""
    results = record["results"]
    smallest = min(min(case["every_step"]) for case in results["gradient_size"] + results["general_matrix"])
    assert smallest > 1e-30
    # float64 holds radius 0.5 at lag 200; in float32 it is 0 there, which is why nothing here is float32.
    Q = vanishing.orthogonal(np.random.default_rng(3), 16)
    assert sizes(0.5 * Q, "linear", steps=200)[-1] == pytest.approx(2.0**-200, rel=1e-12)
    single = list(vanishing.gradients(np.full(16, 0.25, "f4"), [None] * 200, (0.5 * Q).astype("f4"), "linear"))[-1]
    assert single.dtype == np.float32 and not single.any()
