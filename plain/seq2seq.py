"""The encoder-decoder as one would first write it: what layers/encoder_decoder.py must equal, and its rival in timings.

A step of the decoder at a time, whether or not anything depends on it; W_enc applied to all encoder states again at
every step; no padding: sequences of different lengths go through it one by one. Parameters have the names that they
have in layers/encoder_decoder.py, so weights pass from one to the other with load_state_dict.
"""

import torch
from torch import nn

START = 10


class PlainSeq2Seq(nn.Module):
    def __init__(self, model, embedding=32, hidden=128):
        super().__init__()
        self.model = model
        width = hidden * (2 if model == "bahdanau" else 1)  # of an encoder state
        self.embed = nn.Embedding(11, embedding)
        self.encoder = nn.GRU(embedding, hidden, bidirectional=model == "bahdanau")
        self.decoder = nn.GRUCell(embedding + (width if model != "none" else 0), hidden)
        if model != "none":
            self.W_dec = nn.Linear(hidden, hidden)
            self.W_enc = nn.Linear(width, hidden)
            self.v = nn.Linear(hidden, 1, bias=False)
        self.output = nn.Linear(hidden + (width if model == "bahdanau" else 0), 10)

    def forward(self, source, target, free=False):
        """Logits and attention weights: source (batch, source), target (batch, target) -> (batch, target, 10)."""
        states, last = self.encoder(self.embed(source.t()))  # (source, batch, width)
        h = last[0]  # the forward direction's state after the last digit
        previous = torch.full_like(source[:, 0], START)
        all_logits, all_weights = [], []
        for t in range(target.shape[1]):
            x = self.embed(previous)
            if self.model != "none":
                score = self.v(torch.tanh(self.W_dec(h) + self.W_enc(states)))  # (source, batch, 1)
                weights = torch.softmax(score, 0)
                context = (weights * states).sum(0)  # (batch, width)
                x = torch.cat([x, context], 1)
                all_weights.append(weights.squeeze(2).t())
            h = self.decoder(x, h)
            logits = self.output(torch.cat([h, context], 1) if self.model == "bahdanau" else h)
            all_logits.append(logits)
            previous = logits.argmax(1) if free else target[:, t]
        return torch.stack(all_logits, 1), torch.stack(all_weights, 1) if all_weights else None
