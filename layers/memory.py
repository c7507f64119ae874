"""Remembering one bit: the sequences, the cells by the names that experiments give them, and a model that answers.

The bit stands first, noise follows, and the last state has to say which it was. Cells read one number a step. Gated
ones come as torch draws them and with several biases of the forget gate. "RNN, identity" starts as Le, Jaitly and
Hinton (2015) start theirs: the recurrent weights are the identity, the input weights small, and the biases 0.
"""

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

from lab import devices
from layers import cells, scans

CPU = torch.device("cpu")
NOISE = 0.1  # standard deviation
CELLS = {  # the layer, and the bias of an LSTM's forget gate where it isn't left as torch draws it
    "RNN": (nn.RNN, None),
    "RNN, identity": (nn.RNN, None),
    "GRU": (nn.GRU, None),
    "LSTM": (nn.LSTM, None),
    "LSTM, forget bias 1": (nn.LSTM, 1),
    "LSTM, forget bias 3": (nn.LSTM, 3),
    "LSTM, forget bias 6": (nn.LSTM, 6),
    "LSTM, forget bias -5": (nn.LSTM, -5),
    "minGRU": (scans.MinGRU, None),
    "linear attention": (scans.LinearAttention, None),
}


def new_layer(cell, width):
    """An untrained layer."""
    kind, forget_bias = CELLS[cell]
    layer = kind(1, width)
    if forget_bias is not None:
        cells.set_gate_bias(layer, forget_bias)
    if cell == "RNN, identity":
        start_at_identity(layer)
    return layer


@torch.no_grad()
def start_at_identity(layer):
    layer.weight_hh_l0.copy_(torch.eye(layer.hidden_size))
    layer.weight_ih_l0.normal_(std=0.001)
    layer.bias_ih_l0.zero_()
    layer.bias_hh_l0.zero_()


class Model(nn.Module):
    """A cell reads the sequence, and its last state answers."""

    def __init__(self, cell, width):
        super().__init__()
        self.layer = new_layer(cell, width)
        self.readout = nn.Linear(width, 1)

    def forward(self, x, state=None):
        """The logit of the answer 1: (batch,)."""
        h, _ = cells.run(self.layer, x, state)  # (time, batch, hidden)
        return self.readout(h[-1])[:, 0]


def sequences(generator, delay, count, noise=NOISE, device=CPU):
    """Inputs (1 + delay, count, 1), and the bit (count,) that is the first of each and nowhere else."""
    x = noise * torch.randn(1 + delay, count, 1, generator=generator)
    bit = torch.randint(2, (count,), generator=generator).float()
    x[0, :, 0] = bit
    return devices.send(x, device), devices.send(bit, device)


def gradient_at_first_state(model, x, bit):
    """‖∂L/∂h_1‖, L being one sequence's loss and h_1 the state that has just read the bit: the mean over sequences."""
    _, state = cells.run(model.layer, x[:1])
    if isinstance(model.layer, nn.LSTM):  # what it carries is h_1 and c_1
        state = parts = tuple(part.detach().requires_grad_() for part in state)  # (1, batch, hidden) each
    else:
        parts = [state := state.detach().requires_grad_()]
    loss = binary_cross_entropy_with_logits(model(x[1:], state), bit, reduction="sum")
    gradient = torch.cat(torch.autograd.grad(loss, parts), dim=2)[0]  # (batch, state), or (batch, key, value)
    # In float32 the squares of what is below 1e-23 are 0; float64 is the CPU's, not every device has it.
    return gradient.cpu().double().flatten(1).norm(dim=1).mean().item()
