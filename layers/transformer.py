"""A Transformer block by hand: pre-norm, causal attention over a window, rotary positions, keys and values kept.

    x ← x + W_o attention(norm(x))          x ← x + W_2 gelu(W_1 norm(x) + b_1) + b_2

    q_t, k_t, v_t   three products of the normalised x_t, cut into heads
    attention       Σ_s softmax_s(q_t · k_s / √size) v_s over the tokens s ≤ t of the window

Positions are rotary: before the product of q_t and k_s, each pair of their numbers is turned by an angle proportional
to t and to s, so that the product depends on t - s alone. That is preferred to a learned vector for each position for
two reasons. What a head learns about a distance holds everywhere in the window. And there is no vector to learn for
each position, of which a small text shows too few examples.

There are two ways to the same numbers. ``forward`` reads a whole window by torch's ``scaled_dot_product_attention``,
which never writes the weights of all pairs to memory. ``read`` reads a few tokens after others whose keys and values
were kept; its products always have the same shapes, so a token's bits don't depend on how many were read before it in
one go. ``weights`` computes how much a token reads of each other one, where that is to be looked at.

Sources: Vaswani et al., "Attention is all you need" (2017); Xiong et al., "On layer normalization in the Transformer
architecture" (2020) for the norm before each part; Su et al., "RoFormer" (2021), equation 34, for rotary positions.
Departure from the last: the pairs are the numbers i and i + size / 2 of a head, not neighbours.
"""

import math
from functools import cache

import torch
from torch import nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

WIDENING = 4  # of the layer between the two products of the feed-forward part
BASE = 10_000.0  # of the rotary angles: pair i of a head of ``size`` numbers turns by BASE^(-2i / size) a token


class Attention(nn.Module):
    """Causal attention with rotary positions, several heads side by side."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        if width % (2 * heads):
            raise ValueError(f"{heads} heads of an even size can't be cut from a width of {width}")
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.output = nn.Linear(width, width, bias=False)

    def queries_keys_values(self, x, begin=0):
        """Of tokens x (batch, time, width) that stand at begin, begin + 1, …: three (batch, head, time, size)."""
        qkv = self.qkv(x).unflatten(2, (3, self.heads, -1))  # (batch, time, 3, head, size)
        cos, sin = (table[begin:, None, None] for table in angles(begin + x.shape[1], qkv.shape[4], x.dtype, x.device))
        q, k = Turn.apply(qkv[:, :, :2], cos, sin).permute(2, 0, 3, 1, 4)
        return q, k, qkv[:, :, 2].transpose(1, 2)

    def forward(self, x):
        """What each token reads from those up to itself: (batch, time, width)."""
        q, k, v = self.queries_keys_values(x)
        return self.merged(F.scaled_dot_product_attention(q, k, v, is_causal=True))

    def read(self, x, kept, begin):
        """The same for tokens that stand at ``begin`` and after; ``kept`` takes their keys and values in.

        ``kept`` (2, batch, head, window, size) holds those of the tokens before, and any finite numbers after them.
        """
        q, k, v = self.queries_keys_values(x, begin)
        end = begin + x.shape[1]
        kept[0, :, :, begin:end], kept[1, :, :, begin:end] = k, v
        return self.merged(shares(q, kept[0], begin) @ kept[1])

    def weights(self, x):
        """How much of each token every token reads: (batch, head, time, time), rows summing to 1."""
        q, k, _ = self.queries_keys_values(x)
        return shares(q, k)

    def merged(self, read):
        """What the heads have read (batch, head, time, size), side by side and through the last product."""
        return self.output(read.transpose(1, 2).flatten(2))


def shares(q, k, begin=0):
    """softmax(q · k / √size) over the keys up to each query, which stand at ``begin`` and after: (…, queries, keys)."""
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    at = torch.arange(k.shape[-2], device=q.device)
    later = at > at[begin : begin + q.shape[-2], None]
    return scores.masked_fill(later, -math.inf).softmax(-1)


class Block(nn.Module):
    """Attention, then a feed-forward part, each added to what it reads; ``dropout`` drops of what is added."""

    def __init__(self, width: int, heads: int, dropout: nn.Module | None = None):
        super().__init__()
        self.before_attention, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.before_feed_forward = nn.LayerNorm(width)
        self.widen, self.narrow = nn.Linear(width, WIDENING * width), nn.Linear(WIDENING * width, width)
        self.dropout = dropout or nn.Identity()

    def forward(self, x):
        """(batch, time, width) from the same."""
        return self.after_attention(x, self.attention(self.before_attention(x)))

    def read(self, x, kept, begin):
        """The same for tokens after others, as Attention.read does it."""
        return self.after_attention(x, self.attention.read(self.before_attention(x), kept, begin))

    def after_attention(self, x, read):
        x = x + self.dropout(read)
        return x + self.dropout(self.narrow(F.gelu(self.widen(self.before_feed_forward(x)))))


@cache
def angles(length: int, size: int, dtype: torch.dtype, device: torch.device):
    """Cosine and sine by which each pair of a head's numbers is turned: (time, size / 2) each."""
    with torch.inference_mode(False):  # they may be kept from an evaluation for a training
        rates = BASE ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)  # (size / 2,)
        turns = torch.arange(length, dtype=torch.float64)[:, None] * rates
        return turns.cos().to(device, dtype), turns.sin().to(device, dtype)


class Turn(torch.autograd.Function):
    """x (…, size) with its pairs (i, i + size / 2) turned; the gradient is turned back."""

    @staticmethod
    def forward(ctx, x, cos, sin):
        ctx.save_for_backward(cos, sin)
        return turned(x, cos, sin)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        cos, sin = ctx.saved_tensors
        return turned(grad_output, cos, -sin), None, None


def turned(x, cos, sin):
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    (a, b), (c, d) = x.chunk(2, -1), out.chunk(2, -1)
    torch.mul(a, cos, out=c).addcmul_(b, sin, value=-1)
    torch.mul(b, cos, out=d).addcmul_(a, sin)
    return out
