"""The block against attention written out: values and gradients, positions, causality, tokens read after others."""

import math

import pytest
import torch
from torch import nn
from torch.autograd import gradcheck
from torch.nn import functional as F

from layers import transformer
from layers.transformer import Attention, Block

WIDTH, HEADS, TIME = 12, 2, 9  # heads of 6 numbers, three pairs


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.fixture
def block():
    torch.manual_seed(0)
    return Block(WIDTH, HEADS).double()


def rotated(x, position):
    """One head's vector, each pair (i, i + size / 2) turned by position · 10,000^(-2i / size)."""
    size, out = len(x), list(x)
    for i in range(size // 2):
        angle = position * 10_000 ** (-2 * i / size)
        out[i] = x[i] * math.cos(angle) - x[i + size // 2] * math.sin(angle)
        out[i + size // 2] = x[i] * math.sin(angle) + x[i + size // 2] * math.cos(angle)
    return torch.stack(out)


def attention_written_out(layer, x):
    """One sequence, one head, one pair of tokens at a time: the outputs (time, width), and the shares."""
    size = x.shape[1] // layer.heads
    q, k, v = (x @ W.T for W in layer.qkv.weight.chunk(3))
    heads, weights = [], []
    for h in range(layer.heads):
        part = slice(h * size, (h + 1) * size)
        rows, shares = [], []
        for t in range(len(x)):
            scores = [rotated(q[t, part], t) @ rotated(k[s, part], s) / math.sqrt(size) for s in range(t + 1)]
            share = torch.stack(scores).exp()
            share = share / share.sum()
            rows.append(share @ v[: t + 1, part])
            shares.append(F.pad(share, (0, len(x) - t - 1)))
        heads.append(torch.stack(rows))
        weights.append(torch.stack(shares))
    return torch.cat(heads, 1) @ layer.output.weight.T, torch.stack(weights)


def block_written_out(block, x):
    def norm(part, x):
        centred = x - x.mean(1, keepdim=True)
        return centred / (centred.square().mean(1, keepdim=True) + part.eps).sqrt() * part.weight + part.bias

    x = x + attention_written_out(block.attention, norm(block.before_attention, x))[0]
    z = norm(block.before_feed_forward, x) @ block.widen.weight.T + block.widen.bias
    z = z * (1 + torch.erf(z / math.sqrt(2))) / 2
    return x + z @ block.narrow.weight.T + block.narrow.bias


def test_a_block_is_its_equations_values_and_gradients(block):
    x = drawn(2, TIME, WIDTH).requires_grad_()
    grad_output = drawn(2, TIME, WIDTH, seed=1)
    inputs = [x, *block.parameters()]
    ours = block(x)
    plain = torch.stack([block_written_out(block, sequence) for sequence in x])
    assert (ours - plain).abs().max() < 1e-12
    gradients = [torch.autograd.grad(y, inputs, grad_output) for y in (ours, plain)]
    assert len(gradients[0]) == 11
    for a, b in zip(*gradients, strict=True):
        assert (a - b).abs().max() < 1e-11 < (a - b * (1 + 1e-6)).abs().max()


def test_the_weights_are_those_that_attention_applies(block):
    x = drawn(2, TIME, WIDTH)
    ours = block.attention.weights(x)
    plain = torch.stack([attention_written_out(block.attention, sequence)[1] for sequence in x])
    assert ours.shape == (2, HEADS, TIME, TIME) and (ours - plain).abs().max() < 1e-12
    assert (ours.sum(3) - 1).abs().max() < 1e-12


def test_turning_worked_out_by_hand():
    """At position 1 the only pair of a head of 2 turns by 1 radian: (1, 0) -> (cos 1, sin 1) = (0.5403, 0.8415)."""
    cos, sin = transformer.angles(2, 2, torch.float64, torch.device("cpu"))
    out = transformer.Turn.apply(torch.tensor([[1.0, 0.0], [1.0, 0.0]], dtype=torch.float64), cos, sin)
    expected = torch.tensor([[1.0, 0.0], [0.5403023059, 0.8414709848]], dtype=torch.float64)
    assert (out - expected).abs().max() < 1e-9


def test_the_gradient_of_turning_agrees_with_finite_differences():
    cos, sin = transformer.angles(5, 6, torch.float64, torch.device("cpu"))
    assert gradcheck(lambda x: transformer.Turn.apply(x, cos, sin), drawn(2, 5, 6).requires_grad_())


def test_products_depend_on_the_distance_alone(block):
    """The same two vectors, as query and key at all pairs of positions the same distance apart."""
    x = drawn(1, 1, WIDTH).expand(1, 20, WIDTH)
    q, k, _ = block.attention.queries_keys_values(x)
    products = (q @ k.mT)[0]  # (head, query, key)
    for distance in (0, 1, 7):
        along = products.diagonal(-distance, 1, 2)
        assert (along - along[:, :1]).abs().max() < 1e-12
    assert (products[:, 7, 0] - products[:, 1, 0]).abs().min() > 1e-3  # but not the same at every distance


def test_where_a_window_begins_changes_nothing(block):
    """Tokens that stand at 30, 31, … read each other as if they stood at 0, 1, …."""
    x = drawn(2, TIME, WIDTH)
    q, k, v = block.attention.queries_keys_values(x, begin=30)
    read = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert (block.attention.merged(read) - block.attention(x)).abs().max() < 1e-12


def test_a_later_token_changes_nothing_earlier(block):
    x = drawn(2, TIME, WIDTH)
    changed = x.clone()
    changed[:, 4, 0] += 1  # of one number: the norm takes away what is added to all
    before, after = block(x), block(changed)
    assert torch.equal(before[:, :4], after[:, :4]) and (before[:, 4:] != after[:, 4:]).any(2).all()


@pytest.mark.parametrize("cut", [1, 3, 8])
def test_tokens_read_after_others_are_as_if_all_were_read_at_once(block, cut):
    x, whole = drawn(2, TIME, WIDTH), block(drawn(2, TIME, WIDTH))
    kept = drawn(2, 2, HEADS, TIME + 4, WIDTH // HEADS, seed=7)  # what was there before doesn't matter
    parts = [block.read(x[:, begin : begin + cut], kept, begin) for begin in range(0, TIME, cut)]
    assert (torch.cat(parts, 1) - whole).abs().max() < 1e-12


def test_angles_kept_from_an_evaluation_serve_a_training(block):
    transformer.angles.cache_clear()
    with torch.inference_mode():
        block(drawn(1, 3, WIDTH))
    block(drawn(1, 3, WIDTH)).sum().backward()


def test_dropout_drops_of_all_that_is_added():
    """With all of it dropped a block gives back what it reads."""
    x = drawn(1, TIME, WIDTH).float()
    assert torch.equal(Block(WIDTH, HEADS, nn.Dropout(1.0))(x), x)
    assert not torch.equal(Block(WIDTH, HEADS)(x), x)


def test_heads_that_can_t_be_cut_are_refused():
    with pytest.raises(ValueError, match="4 heads of an even size can't be cut from a width of 12"):
        Attention(12, 4)
