"""A decoder-only Transformer as a character model, called as the recurrent one: ``logits, state = model(ids, state)``.

What a recurrent model has read is in its state. A Transformer has no other state than the text itself, as much of it as
fits into its window. The window holds two halves of HALF characters: the last whole one, and the one being filled.

    text      0 ········ 64 ········ 128 ········ 192 ········ 256
    window 1  |███████████████████████|                                   all 128 are scored
    window 2              |···········████████████|                       the last 64 are
    window 3                           |···········████████████|          and so on

So every character is scored once, from the 65 to 128 characters before it; only the first 64 of a text have fewer. That
is the stated context of every figure, whether a text is read in one go, in batches of windows (``score_text``) or by
single characters.

Writing keeps the keys and values of the window (``Writer``). When the window moves on, the half that stays is read
anew, because what its tokens have in them from the dropped half mustn't count. Uncached writing reads the whole window
anew for each character; the logits of both are the same to the last bit.

At the start embeddings are small, and a block adds nothing: the last product of each of its two parts is 0. So what
tells characters apart isn't drowned in what happens to be drawn, and each part has to find out what to add. Other
weights are as torch draws them. A dropped number is dropped at all of a window's characters, as an LSTM's outputs are
in layers/dropping.py: that takes one mask for a window.

Sources: Radford et al., "Language models are unsupervised multitask learners" (2019) and its code (GPT-2) for the size
of embeddings; Zhang, Dauphin and Ma, "Fixup initialization" (2019) for parts that begin at 0, where GPT-2 scales them
by the root of their number; Gal and Ghahramani, "A theoretically grounded application of dropout" (2016) for the mask.
"""

from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional as F

from layers import char_rnn
from layers.transformer import Block

WINDOW = 128  # characters, as many as the post's models are trained on at once
BLOCK = 8  # tokens that Writer reads at once: a fixed number, so that the bits don't depend on what is kept
AT_ONCE = 64  # windows of a text that are scored side by side
EMBEDDED = 0.02  # standard deviation of the embeddings at the start


class Size(NamedTuple):
    width: int
    blocks: int
    heads: int


SIZES = {  # about as many parameters as the post's RNN and its LSTM, rather fewer
    "GPT": Size(width=64, blocks=2, heads=2),
    "larger GPT": Size(width=96, blocks=3, heads=3),
}


class WindowDropout(nn.Dropout):
    """Drops the same numbers of (batch, time, width) at every time."""

    def forward(self, x):
        if not (self.training and self.p):
            return x
        return x * F.dropout(torch.ones_like(x[:, :1]), self.p)


class GPT(nn.Module):
    """Embedding, blocks, norm, and the odds of the next character."""

    def __init__(self, vocabulary: int, size: Size, window: int = WINDOW, dropout: float = 0.0):
        super().__init__()
        if window % (2 * BLOCK):
            raise ValueError(f"a window is two halves of whole blocks of {BLOCK}, not {window} tokens")
        self.window = window
        self.embedding = nn.Embedding(vocabulary, size.width)
        self.dropout = WindowDropout(dropout)
        self.blocks = nn.ModuleList(Block(size.width, size.heads, self.dropout) for _ in range(size.blocks))
        self.norm, self.linear = nn.LayerNorm(size.width), nn.Linear(size.width, vocabulary)
        self.start()

    def start(self):
        """The weights that aren't left as torch draws them."""
        nn.init.normal_(self.embedding.weight, std=EMBEDDED)
        for block in self.blocks:
            for last in block.attention.output.weight, block.narrow.weight, block.narrow.bias:
                nn.init.zeros_(last)

    def forward(self, ids, state=None):
        """Logits (time, batch, vocabulary) after each of ids (time, batch); the state is the window's ids so far."""
        known = ids[:0] if state is None else state
        logits = []
        while len(ids):
            new, ids = ids[: self.window - len(known)], ids[self.window - len(known) :]
            read = torch.cat([known, new])
            logits.append(self.of_window(read)[len(known) :])
            known = read[self.window // 2 :] if len(read) == self.window else read
        return torch.cat(logits), known

    def of_window(self, ids):
        """Logits (time, batch, vocabulary) after each token of one window (time, batch)."""
        x = self.dropout(self.embedding(ids.t()))  # (batch, time, width)
        for block in self.blocks:
            x = block(x)
        return self.linear(self.norm(x)).transpose(0, 1)

    def read(self, ids, kept, begin):
        """The same after tokens ids (batch, BLOCK) that stand at ``begin`` and after: (batch, BLOCK, vocabulary)."""
        x = self.embedding(ids)
        for block, of_block in zip(self.blocks, kept, strict=True):
            x = block.read(x, of_block, begin)
        return self.linear(self.norm(x))

    def room(self, batch):
        """Where ``read`` keeps keys and values: (block, 2, batch, head, window, size)."""
        attention, weight = self.blocks[0].attention, self.embedding.weight
        size = weight.shape[1] // attention.heads
        return weight.new_zeros(len(self.blocks), 2, batch, attention.heads, self.window, size)

    def attention_weights(self, ids):
        """How much of each token every token of one window (time, batch) reads: (block, batch, head, time, time)."""
        x, weights = self.embedding(ids.t()), []
        for block in self.blocks:
            weights.append(block.attention.weights(block.before_attention(x)))
            x = block(x)
        return torch.stack(weights)

    def flops(self, characters):
        """What the products of a training step on so many characters, in whole windows, take; a multiply-add is two.

        Each product is done once forward and twice backward. A token reads (window + 1) / 2 tokens on average.
        """
        width, blocks = self.embedding.weight.shape[1], len(self.blocks)
        weights = sum(p.numel() for p in self.parameters() if p.dim() == 2) - self.embedding.weight.numel()
        pairs = blocks * 2 * width * (self.window + 1) / 2  # products with keys and with values
        return 3 * 2 * (weights + pairs) * characters


def build(name, seed, vocabulary, **options):
    """The untrained model of that size's name, drawn on the CPU whatever the device, with no other draw disturbed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return GPT(vocabulary, SIZES[name], **options)


def score_text(model, ids, at_once=AT_ONCE):
    """Bits of each character of a text after the first (time,), in the windows in which ``forward`` would read it."""
    x, y = ids[:-1], ids[1:]
    half = model.window // 2
    if len(x) < model.window:
        return char_rnn.score(model, x[:, None], y[:, None])[:, 0]
    bits = []
    inputs, following = (part.unfold(0, model.window, half) for part in (x, y))  # (windows, window)
    for read, expected in zip(inputs.split(at_once), following.split(at_once), strict=True):
        of_windows = char_rnn.score(model, read.t(), expected.t(), chunk=model.window)  # (window, windows)
        bits += [of_windows[:half, 0]] * (not bits) + [of_windows[half:].t().flatten()]
    scored = sum(map(len, bits))
    if scored < len(x):
        rest = char_rnn.score(model, x[scored:, None], y[scored:, None], x[scored - half : scored, None])
        bits.append(rest[:, 0])
    return torch.cat(bits)


class Writer(nn.Module):
    """A GPT as ``char_rnn.generate`` calls it, one character after the other. Only the last one's logits are computed.

    Its state is the window's ids so far, the keys and values kept of them, and how many of them those are.
    """

    def __init__(self, model, cached=True):
        super().__init__()
        self.model, self.cached = model, cached

    def forward(self, ids, state=None):
        known, kept, count = state or (ids[:0], None, 0)
        window = torch.cat([known, ids])  # (time, batch)
        while len(window) > self.model.window:
            window, kept = window[self.model.window // 2 :], None
        if kept is None or not self.cached:
            kept, count = self.model.room(ids.shape[1]), 0
        padded = F.pad(window, (0, 0, 0, -len(window) % BLOCK)).t()  # what follows a token doesn't change it
        for begin in range(count - count % BLOCK, len(window), BLOCK):
            logits = self.model.read(padded[:, begin : begin + BLOCK], kept, begin)
        return logits[:, (len(window) - 1) % BLOCK][None], (window, kept, len(window))


def generate(model, prompt, count, temperature, generator, cached=True):
    """The ids of a continuation, as ``char_rnn.generate`` draws them."""
    return char_rnn.generate(Writer(model, cached), prompt, count, temperature, generator)
