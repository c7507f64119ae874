"""The character model as one would first write it: the reference for charlm.py, and its rival in timings.

A batch is put together window by window, the layer is torch's own and autograd does the rest. The arithmetic is the
same, the order of its roundings isn't.
"""

from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional as F

LAYERS = {"RNN": nn.RNN, "GRU": nn.GRU, "LSTM": nn.LSTM}


class PlainCharRNN(nn.Module):
    def __init__(self, vocabulary, cell, hidden=256):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, 64)
        self.rnn = LAYERS[cell](64, hidden, batch_first=True)
        self.linear = nn.Linear(hidden, vocabulary)

    def forward(self, x, state=None):
        h, state = self.rnn(self.embedding(x), state)  # (batch, time, hidden)
        return self.linear(h), state


def batch(ids, generator, size=64, window=128):
    starts = torch.randint(len(ids) - window, (size,), generator=generator)
    x = torch.stack([ids[s : s + window] for s in starts.tolist()])
    y = torch.stack([ids[s + 1 : s + window + 1] for s in starts.tolist()])
    return x, y  # (batch, time)


def trainer(ids, vocabulary, cell, seed, hidden=256, learning_rate=2e-3, dtype=torch.float32):
    """The model, and a function that takes one step and returns its loss."""
    torch.manual_seed(seed)
    model = PlainCharRNN(vocabulary, cell, hidden).to(dtype)
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    generator = torch.Generator().manual_seed(seed)

    def step():
        x, y = batch(ids, generator)
        logits, _ = model(x)
        loss = F.cross_entropy(logits.reshape(-1, vocabulary), y.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    return model, step


def bits_per_char(model, ids):
    """One character after the other, the state carried along."""
    bits, state = [], None
    with torch.no_grad():
        for here, following in pairwise(ids):
            logits, state = model(here.view(1, 1), state)
            bits.append(-logits[0, 0].double().log_softmax(0)[following] / torch.tensor(2.0).double().log())
    return torch.stack(bits).mean().item(), len(bits)
