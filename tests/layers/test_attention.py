"""Attention by hand: its gradients against finite differences, and the weights of a GRU cell as it takes them."""

import pytest
import torch
from torch import nn

from layers import attention, cells


@pytest.mark.parametrize("looked_up", [True, False])
def test_attention_by_hand_has_the_gradients_of_finite_differences(looked_up):
    """Every single number that goes in, padding and a row that is looked up twice in one step included."""
    torch.manual_seed(1)
    steps, source, batch, hidden, width, ε = 3, 4, 2, 2, 3, 1e-5
    ids = torch.tensor([[0, 4], [2, 2], [0, 1]]) if looked_up else None  # (steps, batch)
    z = (5, 3 * hidden) if looked_up else (steps, batch, 3 * hidden)
    padding = torch.tensor([[False, False], [False, False], [False, True], [False, True]])  # (source, batch)
    shapes = {
        "z": z,
        "h0": (batch, hidden),
        "e": (source, batch, width),
        "k": (source, batch, hidden),
        "W_h": (3 * hidden, hidden),
        "b_n": (hidden,),
        "W_c": (3 * hidden, width),
        "W_dec": (hidden, hidden),
        "v": (hidden,),
    }
    values = {name: torch.randn(shape, dtype=torch.float64, requires_grad=True) for name, shape in shapes.items()}
    weight_h, weight_c = torch.randn(steps, batch, hidden).double(), torch.randn(steps, batch, width).double()

    def loss():
        h, contexts, _ = attention.decode(**values, ids=ids, padding=padding)
        return (h * weight_h).sum() + (contexts * weight_c).sum()

    loss().backward()
    for name, value in values.items():
        differences = torch.empty_like(value).flatten()
        for i in range(value.numel()):
            with torch.no_grad():
                entry = value.view(-1)[i : i + 1]
                entry += ε
                above = loss()
                entry -= 2 * ε
                differences[i] = (above - loss()) / (2 * ε)
                entry += ε
        assert (value.grad.flatten() - differences).abs().max() < 1e-8 * max(1, differences.abs().max()), name


@pytest.mark.parametrize("context", [3, 0])
def test_a_gru_cell_s_weights_are_unpacked_as_the_cell_uses_them(context):
    """One step, with uniform attention to a single state: what nn.GRUCell makes of x and the context side by side."""
    torch.manual_seed(0)
    cell = nn.GRUCell(2 + context, 4).double()
    x, h, e = torch.randn(5, 2).double(), torch.randn(5, 4).double(), torch.randn(1, 5, 3).double()
    z, W_h, b_n, W_c = attention.gru_weights(cell, x)
    assert W_c.shape == (12, context)
    if context:
        k, W_dec, v = torch.zeros(1, 5, 4).double(), torch.zeros(4, 4).double(), torch.zeros(4).double()
        (ours,), _, _ = attention.decode(z[None], h, e, k, W_h, b_n, W_c, W_dec, v)
        plain = cell(torch.cat([x, e[0]], 1), h)
    else:
        (ours,) = cells.gru(z[None], h, W_h, b_n)
        plain = cell(x, h)
    assert (ours - plain).abs().max() < 1e-14


def test_an_item_that_is_nothing_but_padding_is_refused():
    padding = torch.tensor([[False, True], [True, True]])  # (source, batch)
    shapes = (1, 2, 6), (2, 2), (2, 2, 3), (2, 2, 2), (6, 2), (2,), (6, 3), (2, 2), (2,)
    with pytest.raises(ValueError, match="nothing but padding"):
        attention.decode(*map(torch.zeros, shapes), padding=padding)
