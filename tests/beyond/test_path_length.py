"""Steps between two tokens, and the gradient that arrives (beyond/path_length.py)."""

from math import log, log10

import pytest
import torch
from commands import record_of

from beyond import path_length
from layers import scans

LENGTH = 64


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(path_length, "LENGTH", LENGTH)
        patch.setattr(path_length, "STEPS_BACK", [0, 1, 10, LENGTH - 1])
        patch.setattr(path_length, "SEEDS", range(3))
        return record_of(path_length, tmp_path_factory.mktemp("path"))


def by_scan(a, b, h0):
    return scans.prefix(a, b)


def test_a_loop_has_a_step_between_neighbours():
    assert path_length.count_steps(scans.loop, 6).tolist() == [0, 1, 2, 3, 4, 5]


def test_steps_of_a_scan_by_hand():
    """Of 8 tokens, (1 2), (3 4), … are combined first: one step to token 2. Pairs of pairs: two to token 4, and those
    combined: three to token 8. Token 3 is one step after 2, token 5 one after 4. Token 6 is the pair (5 6) one step
    after token 4, so three, and token 7 one step after it."""
    assert path_length.count_steps(by_scan, 8).tolist() == [0, 1, 2, 2, 3, 3, 4, 3]


@pytest.mark.parametrize("log_length", [1, 3, 6, 10])
def test_a_scan_s_steps_grow_with_the_logarithm(log_length):
    steps = path_length.count_steps(by_scan, 2**log_length)
    assert steps[-1] == log_length
    assert steps.max() <= max(1, 2 * log_length - 2)


def test_counting_leaves_the_functions_as_they_were():
    path_length.count_steps(scans.loop, 4)
    assert torch.addcmul(torch.tensor(1.0), torch.tensor(2.0), torch.tensor(3.0)) == 7


@pytest.mark.parametrize("name", ["GRU", "minGRU"])
def test_sizes_are_those_of_automatic_differentiation(name, monkeypatch):
    """As far back as float64 holds the square of a gradient."""
    monkeypatch.setattr(path_length, "LENGTH", 200)
    layer = path_length.build(0)[0][name]
    x = path_length.build(0)[2]
    powers = torch.tensor(path_length.log_gradient_sizes(layer, x), dtype=torch.float64)
    sizes = path_length.gradient_sizes(lambda x: layer(x)[0], x)
    torch.testing.assert_close(powers, sizes.log10(), rtol=1e-9, atol=1e-9)
    # The comparison notices a single gate that lets a little more through.
    with torch.no_grad():
        weight = next(parameter for parameter in layer.parameters() if parameter.dim() == 1)
        weight[path_length.WIDTH if name == "GRU" else 0] += 1e-3  # update gate and gate u
    changed = path_length.gradient_sizes(lambda x: layer(x)[0], x).log10()
    assert (powers - changed).abs().max() > 1e-6


def test_a_minGRU_s_gradient_is_the_product_of_its_gates(monkeypatch):
    """dh_T/dx_1 by hand: h_1 = (1 - u) n, so dh_1/dx_1 = -n u (1 - u) W_u + (1 - u) W_n, and u_t for every later t.

    The products are taken in logarithms, with the largest unit's taken out, so that 700 factors are no trouble.
    """
    monkeypatch.setattr(path_length, "LENGTH", 700)
    layers, _, x = path_length.build(3)
    layer = layers["minGRU"]
    with torch.no_grad():
        u, n = layer.input_product(x[:, 0]).chunk(2, dim=1)  # (time, width)
        u = u.sigmoid()
        W_u, W_n = layer.input_product.weight.chunk(2)
        log_product = u[1:].log().sum(dim=0)  # (width,)
        most = log_product.max()
        at_h_1 = (log_product - most).exp()
        dx_1 = (at_h_1 * -n[0] * u[0] * (1 - u[0])) @ W_u + (at_h_1 * (1 - u[0])) @ W_n
        expected = most.item() / log(10) + log10(dx_1.norm())
    assert expected < -170  # so that its square is beyond float64
    assert path_length.log_gradient_sizes(layer, x)[-1] == pytest.approx(expected, abs=1e-9)


def test_attention_s_gradient_by_finite_differences(monkeypatch):
    """One entry of x three steps back, moved by 1e-5 to both sides, in float64."""
    monkeypatch.setattr(path_length, "LENGTH", 12)
    _, attend, x = path_length.build(1)
    x.requires_grad_()
    (dx,) = torch.autograd.grad(attend(x)[-1].sum(), x)
    x = x.detach()
    for unit in 0, 100:
        moved = torch.zeros_like(x)
        moved[-4, 0, unit] = 1e-5
        difference = (attend(x + moved)[-1].sum() - attend(x - moved)[-1].sum()) / 2e-5
        assert dx[-4, 0, unit].item() == pytest.approx(difference.item(), rel=1e-6)
    sizes = path_length.gradient_sizes(attend, x)
    assert sizes[3].item() == pytest.approx(dx[-4].norm().item())


def test_recurrent_gradients_fall_and_attention_s_do_not(record):
    results = record["results"]
    for name, powers in results["every_step"].items():
        assert len(powers) == LENGTH and len(results["at_token_1"][name]) == 3
        if name == "attention":
            assert max(powers[1:]) - min(powers[1:]) < 2
        else:
            # From 16 steps to 32 and on to 48, each by about as much: a factor for each step.
            assert powers[16] - powers[32] == pytest.approx(powers[32] - powers[48], rel=0.4)
            assert powers[16] - powers[32] > 2
    assert results["largest_gap"] < 1e-9


def test_table(record):
    assert record["results"]["steps"] == {
        "recurrence, step by step": {"operations": 63, "factors": 63},
        "recurrence, by a scan": {"operations": 6, "factors": 63},
        "attention": {"operations": 1, "factors": 1},
    }
    assert record["printed"][1].split() == ["recurrence,", "step", "by", "step", "63", "63"]


def test_reach_is_where_float32_ends(record):
    assert record["results"]["reach_of_float32"]["attention"] == LENGTH - 1
    below = 10**path_length.FLOAT32 / 4
    assert torch.tensor(below, dtype=torch.float64).float() == 0
    assert torch.tensor(4 * below, dtype=torch.float64).float() > 0
