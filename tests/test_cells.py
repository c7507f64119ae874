"""The hand-written cells against torch's own layers, and against finite differences."""

import pytest
import torch
from torch import nn

import cells

TIME, BATCH, WIDTH, IN, VOCABULARY = 5, 2, 3, 4, 6
CELLS = {"RNN": nn.RNN, "GRU": nn.GRU, "LSTM": nn.LSTM}
both = pytest.mark.parametrize("cell", CELLS)


def build(cell, seed=0, dtype=torch.float64):
    torch.manual_seed(seed)
    layer = CELLS[cell](IN, WIDTH).to(dtype)
    with torch.no_grad():
        for p in layer.parameters():
            p.normal_(0, 0.7)  # larger than torch's own draw, so that every term counts
    x = torch.randn(TIME, BATCH, IN, dtype=dtype, requires_grad=True)
    h0, c0 = (torch.randn(1, BATCH, WIDTH, dtype=dtype, requires_grad=True) for _ in range(2))
    return layer, x, (h0, c0) if cell == "LSTM" else h0


def leaves(layer, x, state):
    return [*layer.parameters(), x, *(state if isinstance(state, tuple) else [state])]


def objective(result, seed=1):
    """A weighted sum of everything that the layer returns: all states, and the final ones once more."""
    out, state = result
    parts = [out, *(state if isinstance(state, tuple) else [state])]
    generator = torch.Generator().manual_seed(seed)
    return sum((p * torch.randn(p.shape, dtype=p.dtype, generator=generator)).sum() for p in parts)


@both
def test_values_and_gradients_are_torchs(cell):
    layer, x, state = build(cell)
    ours, theirs = cells.run(layer, x, state), layer(x, state)
    assert torch.allclose(ours[0], theirs[0], rtol=0, atol=1e-10)
    for a, b in zip(leaves(layer, ours[0], ours[1])[4:], leaves(layer, theirs[0], theirs[1])[4:], strict=True):
        assert a.shape == b.shape and torch.allclose(a, b, rtol=0, atol=1e-10)
    ours, theirs = (torch.autograd.grad(objective(r), leaves(layer, x, state)) for r in (ours, theirs))
    for a, b in zip(ours, theirs, strict=True):
        assert a.shape == b.shape and torch.allclose(a, b, rtol=0, atol=1e-10)


@both
def test_a_table_with_ids_is_the_product_of_the_rows_looked_up(cell):
    layer, _, state = build(cell)
    E = torch.randn(VOCABULARY, IN, dtype=torch.float64, requires_grad=True)
    ids = torch.tensor([[0, 3], [3, 3], [1, 0], [5, 3], [0, 1]])  # rows repeated, and some never used
    ours, theirs = cells.run(layer, E, state, ids), layer(E[ids], state)
    ours, theirs = (torch.autograd.grad(objective(r), leaves(layer, E, state)) for r in (ours, theirs))
    for a, b in zip(ours, theirs, strict=True):
        assert torch.allclose(a, b, rtol=0, atol=1e-10)
