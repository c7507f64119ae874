"""The selective state space and fading attention against sums and loops written out, and in all their forms."""

import math

import pytest
import torch
from torch.autograd import gradcheck

from layers.selective import LAYERS, FadingAttention, SelectiveLoop, SelectiveStateSpace

TIME, BATCH, INPUT, WIDTH = 11, 2, 3, 6
HALF_LIVES = (1, 4)  # two heads of three


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def state_space():
    torch.manual_seed(0)
    layer = SelectiveStateSpace(INPUT, WIDTH, states=2).double()
    with torch.no_grad():
        layer.D.copy_(drawn(WIDTH, seed=3))
    return layer


def fading(chunk=4):
    torch.manual_seed(0)
    return FadingAttention(INPUT, WIDTH, HALF_LIVES, chunk).double()


every_layer = pytest.mark.parametrize("make", [state_space, fading])


def state_space_written_out(layer, x):
    """One channel and one state at a time."""
    W, b = layer.input_product.weight, layer.input_product.bias
    h, rows = torch.zeros(len(x[0]), WIDTH, 2, dtype=torch.float64), []
    for x_t in x:
        u, step, B, C = (x_t @ W.T + b).split([WIDTH, WIDTH, 2, 2], 1)
        step = (1 + step.exp()).log()
        outputs, states = [], []
        for c in range(WIDTH):
            state = [
                torch.exp(-step[:, c] * layer.log_A[n, c].exp()) * h[:, c, n] + step[:, c] * B[:, n] * u[:, c]
                for n in range(2)
            ]
            outputs.append(sum(C[:, n] * state[n] for n in range(2)) + layer.D[c] * u[:, c])
            states.append(torch.stack(state, 1))
        h = torch.stack(states, 1)
        rows.append(torch.stack(outputs, 1))
    return torch.stack(rows)


def fading_written_out(layer, x):
    """One head, one sequence and one pair of steps at a time, by the sums."""
    W, b = layer.input_product.weight, layer.input_product.bias
    size = WIDTH // len(HALF_LIVES)

    def phi(z):
        return torch.where(z > 0, z + 1, z.exp())

    y = []
    for t in range(len(x)):
        heads = []
        for h, half_life in enumerate(HALF_LIVES):
            part = slice(h * size, (h + 1) * size)
            q, k, v = ((x @ w.T + c)[..., part] for w, c in zip(W.chunk(3), b.chunk(3), strict=True))
            weights = [
                0.5 ** ((t - s) / half_life) * (phi(q[t]) * phi(k[s])).sum(1, keepdim=True) for s in range(t + 1)
            ]
            heads.append(sum(w * v[s] for s, w in enumerate(weights)) / sum(weights))
        y.append(torch.cat(heads, 1))
    return torch.stack(y)


@pytest.mark.parametrize(
    "make, plain", [(state_space, state_space_written_out), (fading, fading_written_out)], ids=["state space", "fading"]
)
def test_a_layer_is_its_equations_values_and_gradients(make, plain):
    layer, x = make(), drawn(TIME, BATCH, INPUT).requires_grad_()
    inputs, grad_output = [x, *layer.parameters()], drawn(TIME, BATCH, WIDTH, seed=1)
    ours, expected = layer(x)[0], plain(layer, x)
    assert (ours - expected).abs().max() < 1e-12
    gradients = [torch.autograd.grad(y, inputs, grad_output) for y in (ours, expected)]
    for a, b in zip(*gradients, strict=True):
        assert (a - b).abs().max() < 1e-11 < (a - b * (1 + 1e-6)).abs().max()


def test_a_state_space_worked_out_by_hand():
    """u = 2, Δ = ln 2, B = C = 1, A = -1, D = 0: h = ½ h + 2 ln 2, so h = 1.3863, 2.0794 and y = h."""
    layer = SelectiveStateSpace(1, 1, states=1).double()
    with torch.no_grad():
        layer.input_product.weight.zero_()
        layer.input_product.bias.copy_(torch.tensor([2.0, 0.0, 1.0, 1.0]))  # softplus(0) = ln 2
        layer.D.zero_()
    y, last = layer(torch.zeros(2, 1, 1, dtype=torch.float64))
    expected = torch.tensor([2 * math.log(2), 3 * math.log(2)], dtype=torch.float64)
    assert (y.flatten() - expected).abs().max() < 1e-12 and last.shape == (1, 1, 1, 1)


def test_the_loop_by_hand_agrees_with_finite_differences():
    """Of all it returns, with ids that occur more than once and one that doesn't occur."""
    a, b, C, h0 = drawn(4, 2, 3).sigmoid(), drawn(4, 2, 3, seed=1), drawn(5, 2, 2, seed=2), drawn(2, 2, 3, seed=3)
    ids = torch.tensor([[0, 1], [2, 1], [0, 0], [1, 2], [2, 2]])
    assert gradcheck(SelectiveLoop.apply, ([part.requires_grad_() for part in (a, b, C, h0)] + [ids]))


@pytest.mark.parametrize("chunk", [1, 3, TIME, 2 * TIME])
def test_chunks_of_any_size_are_the_same(chunk):
    x = drawn(TIME, BATCH, INPUT)
    (y, state), (expected, last) = fading(chunk)(x), fading()(x)
    assert (y - expected).abs().max() < 1e-12 and (state - last).abs().max() < 1e-12


@every_layer
def test_a_layer_called_in_parts_carries_its_state_along(make):
    layer, x = make(), drawn(TIME, BATCH, INPUT)
    whole, last = layer(x)
    first, state = layer(x[:6])
    second, state = layer(x[6:7], state)
    third, state = layer(x[7:], state)
    assert (torch.cat([first, second, third]) - whole).abs().max() < 1e-12
    assert state.shape == last.shape and (state - last).abs().max() < 1e-12


@every_layer
def test_a_step_reads_what_was_before_it_and_nothing_else(make):
    layer, x = make(), drawn(TIME, BATCH, INPUT)
    changed = x.clone()
    changed[4] += 1
    before, after = layer(x)[0], layer(changed)[0]
    assert torch.equal(before[:4], after[:4]) and (before[4:] != after[4:]).any(-1).all()


@every_layer
def test_order_matters(make):
    """What linear attention lacks: the first two characters exchanged change what comes later."""
    layer, x = make(), drawn(TIME, BATCH, INPUT)
    changed = x[[1, 0, *range(2, TIME)]]
    assert (layer(x)[0][2] - layer(changed)[0][2]).abs().min() > 1e-6


@every_layer
def test_rows_looked_up_are_as_good_as_rows_multiplied(make):
    layer, table = make(), drawn(6, INPUT).requires_grad_()
    ids = torch.randint(6, (TIME, BATCH), generator=torch.Generator().manual_seed(0))
    state, grad_output = layer(drawn(2, BATCH, INPUT, seed=1))[1].detach(), drawn(TIME, BATCH, WIDTH, seed=2)
    (ours, last), (expected, state) = layer(table, state, ids), layer(table[ids], state)
    assert (ours - expected).abs().max() < 1e-12 and (last - state).abs().max() < 1e-12
    gradients = [torch.autograd.grad(y, table, grad_output)[0] for y in (ours, expected)]
    assert (gradients[0] - gradients[1]).abs().max() < 1e-11


def test_what_was_read_long_ago_has_faded():
    """After ten half-lives of 4 steps a change of the first step is worth at most 2^-10 of what it was."""
    layer, x = fading(), drawn(60, 1, INPUT)
    changed = x.clone()
    changed[0] += 1
    gaps = (layer(x)[0] - layer(changed)[0]).abs().amax((1, 2))
    assert gaps[45] < 2**-9 * gaps[0]


@pytest.mark.parametrize("name", LAYERS)
def test_long_texts_stay_finite(name):
    layer = LAYERS[name](INPUT, 8)
    y, state = layer(drawn(3000, 1, INPUT).float() * 10)
    assert y.isfinite().all() and state.isfinite().all()


def test_heads_that_can_t_be_cut_are_refused():
    with pytest.raises(ValueError, match="8 heads can't be cut from a width of 12"):
        FadingAttention(3, 12)
