"""What a step costs in each cell, and what it carries along: an LSTM is four plain RNNs, a GRU three.

Counted, for the layer of `charlm.py` (256 units that read 64 numbers a character) in float32: parameters, those of the
plain RNN being 1; the steps that have to wait for one another while a window of 128 characters is read; multiply-adds
a step; and the bytes handed from one step to the next. Each weight of a matrix is multiplied once a step, so a step's
multiply-adds are the entries of the matrices; what is done to each unit by itself (biases, gates, tanh) isn't counted.

Beside them a Transformer layer of the same width, with four heads and a feed-forward part of 1,024. It reads all
characters at once, and its twelve width × width matrices make it 9.6 plain RNNs. What it carries along grows: a key and
a value for every token so far, each of them met in every step. Those of one token take as many bytes as the whole state
of the LSTM.

    python cells_table.py          2 s

Prints, at the end:

    keys and values of one token: 2,048 bytes; the whole state of the LSTM: 2,048
    attention multiplies more than the layer's matrices from token 1,537 on

Sources: Elman (1990); Hochreiter and Schmidhuber (1997); Cho et al. (2014); Vaswani et al. (2017) for the Transformer
layer, whose two normalisations are counted.
"""

import torch
from torch import nn

from charlm import CELLS, EMBEDDING, HIDDEN, WINDOW
from lab import script
from lab.results import Results

HEADS, FEED_FORWARD = 4, 4 * HIDDEN  # of the Transformer layer
TOKENS = [1, WINDOW, 1024, 65_536]  # that it has read when it is looked at


def parameters(layer):
    return sum(p.numel() for p in layer.parameters())


def multiply_adds(layer):
    """Those of one step with the layer's matrices."""
    return sum(p.numel() for p in layer.parameters() if p.dim() == 2)


def state_bytes(layer):
    """What a recurrent layer hands from one step to the next, for one sequence."""
    _, state = layer(torch.zeros(1, 1, layer.input_size))  # (time, batch, input)
    parts = state if isinstance(state, tuple) else (state,)
    return sum(part.numel() * part.element_size() for part in parts)


def attention(tokens):
    """What a Transformer layer's attention adds at the latest of so many tokens: multiply-adds, and bytes kept."""
    keys = values = tokens * HIDDEN  # numbers; a query meets each key's once, and a weight each value's
    return keys + values, (keys + values) * torch.float32.itemsize


def main(argv=None):
    arguments = script.Arguments(__doc__).parse_args(argv)
    results = Results("cells_table", arguments)
    layers = {name: cell(EMBEDDING, HIDDEN) for name, cell in CELLS.items()}
    transformer = nn.TransformerEncoderLayer(HIDDEN, HEADS, FEED_FORWARD)
    plain = parameters(layers["RNN"])
    rows = {
        name: {
            "parameters": parameters(layer),
            "relative_to_RNN": parameters(layer) / plain,
            "sequential_steps": WINDOW,
            "multiply_adds": multiply_adds(layer),
            "state_bytes": state_bytes(layer),
        }
        for name, layer in layers.items()
    }
    for tokens in TOKENS:
        added, kept = attention(tokens)
        rows[f"Transformer, token {tokens:,}"] = {
            "parameters": parameters(transformer),
            "relative_to_RNN": parameters(transformer) / plain,
            "sequential_steps": 1,
            "multiply_adds": multiply_adds(transformer) + added,
            "state_bytes": kept,
        }
    results.print(f"one layer of {HIDDEN} units, reading {WINDOW} characters")
    results.print(f"{'':<25}parameters   × RNN  sequential steps  multiply-adds a step  bytes of state")
    for name, row in rows.items():
        results.print(
            f"{name:<25}{row['parameters']:>10,}{row['relative_to_RNN']:>8.2f}{row['sequential_steps']:>18,}"
            f"{row['multiply_adds']:>22,}{row['state_bytes']:>16,}"
        )
    (added, kept), lstm, matrices = attention(1), rows["LSTM"], multiply_adds(transformer)
    results.print(
        f"\nkeys and values of one token: {kept:,} bytes; the whole state of the LSTM: {lstm['state_bytes']:,}"
    )
    results.print(f"attention multiplies more than the layer's matrices from token {matrices // added + 1:,} on")
    results.record(layers=rows)
    results.save()


if __name__ == "__main__":
    script.run(main)
