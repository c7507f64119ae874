"""What a step costs in each cell, and what it carries along: an LSTM is four plain RNNs, a GRU three.

The layer is that of `charlm.py` in float32: 256 units that read 64 numbers a character. Four things are counted:

    parameters              also relative to those of the plain RNN
    sequential steps        the steps that wait for one another while a window of 128 characters is read
    multiply-adds a step    a step multiplies each weight of a matrix once, so these are the entries of the matrices;
                            what is done to each unit by itself (biases, gates, tanh) isn't counted
    bytes of state          what one step hands to the next

Beside the cells stands a Transformer layer of the same width, with four heads and a feed-forward part of 1,024 units.
It reads all characters at once, and its twelve width × width matrices make it 9.6 plain RNNs. What it carries along
grows: a key and a value for every token so far, and every step meets all of them. The key and the value of one token
take as many bytes as the whole state of the LSTM.

    python -m beyond.cells_table          2 s

Prints, at the end:

    keys and values of one token: 2,048 bytes; the whole state of the LSTM: 2,048
    attention multiplies more than the layer's matrices from token 1,537 on

Sources: Elman (1990); Hochreiter and Schmidhuber (1997); Cho et al. (2014); Vaswani et al. (2017) for the Transformer
layer, whose two normalisations are counted.
"""

import torch
from torch import nn

from charlm import WINDOW
from lab import script
from layers.char_rnn import CELLS, EMBEDDING, HIDDEN

HEADS, FEED_FORWARD = 4, 4 * HIDDEN  # of the Transformer layer
TOKENS = [1, WINDOW, 1024, 65_536]  # that it has read when it is looked at

KINDS = {"*": "exact"}


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


def measure(arguments):
    layers = {name: cell(EMBEDDING, HIDDEN) for name, cell in CELLS.items()}
    transformer = nn.TransformerEncoderLayer(HIDDEN, HEADS, FEED_FORWARD)

    def row(layer, steps, added, kept):
        return {
            "parameters": parameters(layer),
            "relative_to_RNN": parameters(layer) / parameters(layers["RNN"]),
            "sequential_steps": steps,
            "multiply_adds": multiply_adds(layer) + added,
            "state_bytes": kept,
        }

    rows = {name: row(layer, WINDOW, 0, state_bytes(layer)) for name, layer in layers.items()}
    rows |= {f"Transformer, token {tokens:,}": row(transformer, 1, *attention(tokens)) for tokens in TOKENS}
    overtakes = multiply_adds(transformer) // attention(1)[0] + 1
    return {"units": HIDDEN, "characters": WINDOW, "layers": rows, "attention_overtakes_at_token": overtakes}


def tell(found):
    rows = found["layers"]
    yield f"one layer of {found['units']} units, reading {found['characters']} characters"
    yield f"{'':<25}parameters   × RNN  sequential steps  multiply-adds a step  bytes of state"
    for name, row in rows.items():
        yield (
            f"{name:<25}{row['parameters']:>10,}{row['relative_to_RNN']:>8.2f}{row['sequential_steps']:>18,}"
            f"{row['multiply_adds']:>22,}{row['state_bytes']:>16,}"
        )
    yield ""
    one_token, lstm = rows["Transformer, token 1"]["state_bytes"], rows["LSTM"]["state_bytes"]
    yield f"keys and values of one token: {one_token:,} bytes; the whole state of the LSTM: {lstm:,}"
    first = found["attention_overtakes_at_token"]
    yield f"attention multiplies more than the layer's matrices from token {first:,} on"


if __name__ == "__main__":
    script.run(measure, tell)
