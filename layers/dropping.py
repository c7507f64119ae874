"""Against overfitting: an LSTM character model that drops while it trains, and models that learn while they are scored.

    dropped outputs     the same units of a window's outputs are 0 at all of its steps (Gal and Ghahramani 2016)
    dropped weights     some of W_h are 0 for a whole window (Wan et al. 2013; Merity et al. 2018 for W_h alone)

Neither costs more than a product with a mask, since one mask serves all steps. What is left is scaled up, so that a
model that isn't training takes all weights and outputs as they are.

Dynamic evaluation (Krause et al. 2018) reads a text in segments. Each is scored first; then one step of descent on its
loss changes the weights, so that the next one is scored by a model that has learnt from it. A step is the gradient
divided by its usual size, which a look at training text tells, and a pull back to where the weights began:

    W ← W - rate · g / (√(mean g²) + ε) + PULL · (W_0 - W)

Departure from theirs: all weights are pulled back alike, not those more whose gradients are usually larger.
"""

import copy
import math

import torch
from torch.nn import functional as F

from layers import cells
from layers.char_rnn import CharRNN

SEGMENT = 64  # characters between steps of dynamic evaluation
LOOKED_AT = 100  # segments of training text that tell the usual size of a gradient
PULL, EPSILON = 0.002, 2e-3  # theirs; where a gradient is usually 0, the second keeps a step from being huge


class DroppingLSTM(CharRNN):
    """The post's LSTM, of any width, with dropped outputs and weights."""

    def __init__(self, vocabulary, hidden, dropout=0.0, weight_dropout=0.0):
        super().__init__(vocabulary, "LSTM", hidden)
        self.dropout, self.weight_dropout = dropout, weight_dropout

    def forward(self, ids, state=None):
        if not self.training:
            return super().forward(ids, state)
        W_h = F.dropout(self.rnn.weight_hh_l0, self.weight_dropout)
        z = cells.input_product(self.rnn, self.embedding.weight)  # a row for each character of the vocabulary
        if state is None:
            zeros = z.new_zeros(1, ids.shape[1], self.rnn.hidden_size)
            state = zeros, zeros
        h, c = cells.lstm(z, (state[0][0], state[1][0]), W_h, ids)  # (time, batch, hidden)
        kept = F.dropout(torch.ones_like(h[0]), self.dropout)  # (batch, hidden)
        return self.linear(h * kept), (h[-1:], c[None])


def segments(ids):
    """A text's segments, each with the characters that follow: two of (time, 1)."""
    return zip(ids[:-1, None].split(SEGMENT), ids[1:, None].split(SEGMENT), strict=True)


def differentiated(model, x, y, state):
    """Bits of y after x, the state after it, and the gradient of the mean loss at each of the model's parameters."""
    logits, state = model(x, state)
    nats = F.cross_entropy(logits.flatten(0, 1), y.flatten(), reduction="none")
    gradient = torch.autograd.grad(nats.mean(), list(model.parameters()))
    state = tuple(part.detach() for part in state) if isinstance(state, tuple) else state.detach()
    return nats.detach().cpu().double() / math.log(2), state, gradient


def usual_sizes(model, ids, count=LOOKED_AT):
    """√(mean g²) of each parameter over the first segments of a text."""
    squares, state = [torch.zeros_like(p) for p in model.parameters()], None
    for number, (x, y) in enumerate(segments(ids[: count * SEGMENT + 1]), 1):
        _, state, gradient = differentiated(model, x, y, state)
        for square, g in zip(squares, gradient, strict=True):
            square += (g.square() - square) / number
    return [square.sqrt() for square in squares]


def score_learning(model, ids, sizes, rate, pull=PULL):
    """Bits of each character of a text after the first, the model learning segment by segment; it isn't changed."""
    model = copy.deepcopy(model).eval()
    began = [p.detach().clone() for p in model.parameters()]
    bits, state = [], None
    for x, y in segments(ids):
        found, state, gradient = differentiated(model, x, y, state)
        bits.append(found)
        with torch.no_grad():
            for p, p_0, g, size in zip(model.parameters(), began, gradient, sizes, strict=True):
                p += pull * (p_0 - p) - rate * g / (size + EPSILON)
    return torch.cat(bits)


def cosine(step, steps, warm_up):
    """The share of the highest learning rate at a step, from 1: it rises evenly, then falls to 0 as a cosine does."""
    return min(1, step / warm_up) * (1 + math.cos(math.pi * step / steps)) / 2
