"""The recurrent character model: an embedding, one recurrent layer, and the odds of the next character.

It is called as ``logits, state = model(ids, state)``, with ids (time, batch) and logits (time, batch, vocabulary).
Whatever else is called so, with a state that it makes itself, can be judged and written from by what is below.

The last id of a vocabulary stands for every character that training never showed: it is scored and never written.
"""

import math
from contextlib import contextmanager
from functools import partial

import torch
from torch import nn
from torch.nn import functional as F

from layers import cells, scans, selective

EMBEDDING, HIDDEN = 64, 256  # numbers that stand for a character, units of the layer: the post's
CELLS = {"RNN": nn.RNN, "GRU": nn.GRU, "LSTM": nn.LSTM}  # the post's
LAYERS = CELLS | {  # windows are so short that on one core a loop is faster than a scan, and one chunk than two
    "minGRU": partial(scans.MinGRU, recurrence=scans.loop),
    "linear attention": partial(scans.LinearAttention, chunk=128),
    "selective state space": selective.SelectiveStateSpace,
    "fading attention": partial(selective.FadingAttention, chunk=32),
}
CHUNK = 64  # characters that an evaluation takes at once; the result doesn't depend on it
STREAMS, WARM_UP = 64, 32  # of an estimate: windows, and the characters in each that only warm the state up


class CharRNN(nn.Module):
    """The model of the post. On a CPU the layer's arithmetic is done by the cells written by hand."""

    def __init__(self, vocabulary, cell, hidden=HIDDEN):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, EMBEDDING)
        self.rnn = LAYERS[cell](EMBEDDING, hidden)
        self.linear = nn.Linear(hidden, vocabulary)

    def forward(self, ids, state=None):
        if ids.device.type == "cpu":
            h, state = cells.run(self.rnn, self.embedding.weight, state, ids)  # (time, batch, hidden)
        else:
            h, state = self.rnn(self.embedding(ids), state)
        return self.linear(h), state  # (time, batch, vocabulary)


def build(settings, vocabulary):
    """The untrained model of ``settings.cell``, ``hidden``, ``seed`` and ``forget_bias`` (None: as torch draws it).

    Its weights are drawn on the CPU whatever the device, and no other draw is disturbed.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        model = CharRNN(vocabulary, settings.cell, settings.hidden)
    if settings.forget_bias is not None:
        cells.set_gate_bias(model.rnn, settings.forget_bias)
    return model


@contextmanager
def evaluating(model):
    training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        model.train(training)


def score(model, x, y, state=None, chunk=CHUNK):
    """Bits of each next character y after x (time, batch), chunk by chunk with the state carried along."""
    bits = []
    for ids, following in zip(x.split(chunk), y.split(chunk), strict=True):
        logits, state = model(ids, state)
        nats = F.cross_entropy(logits.flatten(0, 1), following.flatten(), reduction="none").view(following.shape)
        bits.append(nats.cpu().double() / math.log(2))
    return torch.cat(bits)  # (time, batch)


def evaluate(model, ids, chunk=CHUNK):
    """Exact bits per character of a text, read from end to end, and how many were scored: all but the first."""
    with evaluating(model):
        bits = score(model, ids[:-1, None], ids[1:, None], chunk=chunk)
    return bits.mean().item(), len(bits)


def estimate(model, ids, length):
    """Bits per character of a sample: windows of so many characters, at even distances, all read side by side.

    The state begins at zero in each window, so its first characters only warm the state up and aren't scored.
    """
    length = min(length, len(ids) - 1)
    starts = torch.arange(STREAMS) * (len(ids) - 1 - length) // (STREAMS - 1)
    text = ids[(torch.arange(length + 1)[:, None] + starts).to(ids.device)]  # (1 + time, stream)
    with evaluating(model):
        bits = score(model, text[:-1], text[1:])
    return bits[min(WARM_UP, length // 2) :].mean().item()


def generate(model, prompt, count, temperature, generator):
    """The ids of a continuation. At temperature 0 the likeliest character is taken, at 1 the model's own odds hold."""
    written, state = [], None
    ids = prompt[:, None]  # (time, 1)
    with evaluating(model):
        for _ in range(count):
            logits, state = model(ids, state)
            z = logits[-1, 0, :-1].cpu().double()  # without the last, which stands for characters it doesn't know
            z = (z - z.max()) / temperature if temperature else torch.where(z == z.max(), 0.0, -math.inf)
            ids = torch.multinomial(z.softmax(0), 1, generator=generator)[:, None].to(prompt.device)
            written.append(ids.item())
    return written
