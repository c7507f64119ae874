"""An encoder that reads digits and a decoder that writes digits, with one state between them or with attention.

The encoder, a GRU, reads the digits; the decoder, another one, starts from the encoder's last state and writes, reading
at each step the digit before. Without attention that state of 128 numbers is all that it gets. With attention each step
also looks at every encoder state e_j (Bahdanau et al., 2015):

    score      s_j = vᵀ tanh(W_dec h + b_dec + W_enc e_j + b_enc)      h: the decoder's state before the step
    weights    α = softmax(s) over the source
    context    c = Σ_j α_j e_j, which the decoder reads beside the digit

There is no end symbol: an answer is as long as its target, and who asks for one says how long. Sequences of different
lengths are padded to the longest of their batch. The encoder's last state is then that of the last real digit, padding
gets no attention, and what is behind an answer's end is left to the loss to ignore.

plain/seq2seq.py is the same model as one would first write it: the test compares the two.
"""

import math
from collections import namedtuple

import torch
from torch import nn

from lab import devices
from layers import attention, cells

DIGITS = 10
START = 10  # what the decoder reads before its first digit
PAD = -1  # after the last digit of a sequence that is shorter than the longest of its batch
EMBEDDING, HIDDEN = 32, 128

# What the encoder leaves for the decoder; states, keys and padding are (source, batch, …).
Memory = namedtuple("Memory", "h states keys padding")


class Seq2Seq(nn.Module):
    """An encoder and a decoder. ``bahdanau``: the encoder reads both ways, and the output layer the context as well."""

    def __init__(self, attention=False, bahdanau=False):
        super().__init__()
        width = HIDDEN * (2 if bahdanau else 1) if attention else 0  # of an encoder state, and of the context
        self.embed = nn.Embedding(DIGITS + 1, EMBEDDING)
        self.encoder = nn.GRU(EMBEDDING, HIDDEN)
        self.backwards = nn.GRU(EMBEDDING, HIDDEN) if bahdanau else None
        self.decoder = nn.GRUCell(EMBEDDING + width, HIDDEN)
        self.attends = attention
        if attention:
            self.W_dec = nn.Linear(HIDDEN, HIDDEN)
            self.W_enc = nn.Linear(width, HIDDEN)
            self.v = nn.Linear(HIDDEN, 1, bias=False)
        self.output = nn.Linear(HIDDEN + (width if bahdanau else 0), DIGITS)

    def encode(self, source, lengths=None):
        """Read the digits of source (batch, source); the state after the last one is the decoder's first.

        ``lengths`` (batch,), where given, are `lengths_of` the source, counted on the CPU where the batch was made. No
        device is then asked whether there is padding, and no step waits for its answer.
        """
        lengths = lengths_of(source.cpu()) if lengths is None else lengths
        padded = (lengths < source.shape[1]).any()
        lengths = devices.send(lengths, source.device)
        padding = is_padding(source, lengths).t() if padded else None  # (source, batch)
        ids = source.clamp(min=0).t()  # (source, batch)
        states, last = cells.run(self.encoder, self.embed.weight, ids=ids)  # (source, batch, hidden)
        h = states[lengths - 1, torch.arange(len(source), device=source.device)] if padded else last[0]  # (batch, …)
        if self.backwards is not None:
            ids = reverse(source, lengths).clamp(min=0).t()
            back, _ = cells.run(self.backwards, self.embed.weight, ids=ids)
            states = torch.cat([states, reverse(back.transpose(0, 1), lengths).transpose(0, 1)], 2)
        return Memory(h, states, self.W_enc(states) if self.attends else None, padding)

    def step(self, previous, h, memory):
        """One step of the decoder from the digit before: logits (batch, 10), state, weights (source, batch)."""
        x, weights = self.embed(previous), None  # (batch, embedding)
        if self.attends:
            scores = self.v(torch.tanh(memory.keys + self.W_dec(h)))[:, :, 0]  # (source, batch)
            if memory.padding is not None:
                scores = scores.masked_fill(memory.padding, -math.inf)
            weights = scores.softmax(0)
            context = (weights[:, :, None] * memory.states).sum(0)  # (batch, width)
            x = torch.cat([x, context], 1)
        h = self.decoder(x, h)  # (batch, hidden)
        return self.output(h if self.backwards is None else torch.cat([h, context], 1)), h, weights

    def forward(self, source, target, lengths=None):
        """Teacher forcing: every step reads the true digit before it. Logits (batch, target, 10).

        All the decoder's inputs are known, so the same steps are computed faster than one by one: by cells.py, and with
        attention by attention.py. ``lengths`` are as in `encode`.
        """
        if target.device.type == "cpu":  # another device would have to be waited for
            check_digits(target)
        memory = self.encode(source, lengths)
        start = torch.full_like(target[:, :1], START)
        known = torch.cat([start, target[:, :-1].clamp(min=0)], 1).t()  # (target, batch)
        z, W_h, b_n, W_c = attention.gru_weights(self.decoder, self.embed.weight)  # z: a row per digit
        if self.attends:
            _, states, keys, padding = memory
            keys = keys + self.W_dec.bias  # the same at every step: added once, decode needs no bias of the queries
            h, contexts, _ = attention.decode(
                z, memory.h, states, keys, W_h, b_n, W_c, self.W_dec.weight, self.v.weight[0], known, padding
            )
        else:
            h = cells.gru(z, memory.h, W_h, b_n, known)  # (target, batch, hidden)
        if self.backwards is not None:
            h = torch.cat([h, contexts], 2)
        return self.output(h).transpose(0, 1)

    @torch.no_grad()
    def write(self, source, steps, lengths=None):
        """Free-running: digits (batch, steps), each step reading the digit that the last one chose, and the weights."""
        memory = self.encode(source, lengths)
        digit, h = torch.full_like(source[:, 0], START), memory.h
        written, looked = [], []
        for _ in range(steps):
            logits, h, weights = self.step(digit, h, memory)
            digit = logits.argmax(1)
            written.append(digit)
            looked.append(weights)
        return torch.stack(written, 1), torch.stack(looked) if self.attends else None  # (steps, source, batch)


def lengths_of(source):
    """How many digits each source (batch, source) has, its padding not counted: (batch,)."""
    check_digits(source)
    lengths = (source != PAD).sum(1)
    if not lengths.all() or (is_padding(source, lengths) != (source == PAD)).any():
        raise ValueError("every source sequence needs at least one digit, and its padding behind the last one")
    return lengths


def check_digits(x):
    """Raise ValueError for what is neither a digit nor padding."""
    if ((x < PAD) | (x >= DIGITS)).any():
        raise ValueError(f"digits are from 0 to {DIGITS - 1}, and {PAD} is padding")


def is_padding(x, lengths):
    """Where x (batch, time, …) lies behind the end of its item: (batch, time)."""
    return torch.arange(x.shape[1], device=x.device) >= lengths[:, None]


def reverse(x, lengths):
    """x (batch, time, …) with the first ``lengths`` items in the opposite order and the padding where it was."""
    positions = (lengths[:, None] - 1 - torch.arange(x.shape[1], device=x.device)) % x.shape[1]  # (batch, time)
    return torch.take_along_dim(x, positions.reshape(*positions.shape, *[1] * (x.dim() - 2)), 1)
