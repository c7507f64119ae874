"""The task of remembering one bit, and models for it: recurrent cells, a state space, a Transformer block.

The first input is 0 or 1. Noise follows at the same input for a delay of T steps, and what a layer gives after the last
of them has to say which it was. The layers differ in how the bit gets there:

    recurrent       a state is handed from step to step: RNN, GRU, LSTM (cells.py), minGRU and linear attention
                    (scans.py), which differ in how they start, too
    state space     every channel is filtered by a kernel of its own (scans.py), the same at every step
    Transformer     the last token looks at all of them (transformer.py)

The last two read vectors, not numbers: each input is first widened to one, through gelu or for the Transformer by the
norm of its block, so that both can tell a bit from noise before they look back. A recurrent cell does that by itself.

``chrono`` spreads the biases of the gates over units, so that these keep what they hold for 1 to T steps:

    LSTM   b_f = log U(1, T - 1), b_i = -b_f          GRU   the update gate gets log U(1, T - 1)

Sources: Bengio, Simard and Frasconi (1994) for the task; Le, Jaitly and Hinton (2015) for the identity, whose units
here keep their tanh; Tallec and Ollivier, "Can recurrent neural networks warp time?" (2018) for chrono; Gu et al., "On
the parameterization and initialization of diagonal state space models" (2022), S4D-Lin, for the state space.

Over 150 lines because the models are measured here too: how a gradient reaches the bit, and how much of it is about it.
"""

import copy
import math

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, gelu, scaled_dot_product_attention

from lab import devices
from layers import cells, scans
from layers.transformer import Block

CPU = torch.device("cpu")
NOISE = 0.1  # standard deviation
CHRONO = "chrono"
HEADS = 4  # of the Transformer block
MODES = 8  # complex ones, of each channel of the state space
SLOWEST, FASTEST = 1e-3, 1e-1  # how much time lies between two inputs, from one channel to another

CELLS = {  # the layer, and the bias of the gate that keeps where it isn't left as torch draws it
    "RNN": (nn.RNN, None),
    "RNN, identity": (nn.RNN, None),
    "GRU": (nn.GRU, None),
    "GRU, chrono": (nn.GRU, CHRONO),
    "LSTM": (nn.LSTM, None),
    "LSTM, forget bias 1": (nn.LSTM, 1),
    "LSTM, forget bias 3": (nn.LSTM, 3),
    "LSTM, chrono": (nn.LSTM, CHRONO),
    "LSTM, forget bias -5": (nn.LSTM, -5),
    "minGRU": (scans.MinGRU, None),
    "linear attention": (scans.LinearAttention, None),
}
DIRECT = ["state space", "Transformer"]
MODELS = [*CELLS, *DIRECT]


def sequences(generator, delay, count, noise=NOISE, device=CPU):
    """Inputs (1 + delay, count, 1), and the bit (count,) that is the first of each and nowhere else."""
    x = noise * torch.randn(1 + delay, count, 1, generator=generator)
    bit = torch.randint(2, (count,), generator=generator).float()
    x[0, :, 0] = bit
    return devices.send(x, device), devices.send(bit, device)


def new_layer(cell, width, delay=None):
    """An untrained cell that reads one number a step; ``delay`` is what a chrono one is made for."""
    kind, bias = CELLS[cell]
    layer = kind(1, width)
    if bias == CHRONO:
        spread_gate_biases(layer, delay)
    elif bias is not None:
        cells.set_gate_bias(layer, bias)
    if cell == "RNN, identity":
        start_at_identity(layer)
    return layer


class Recurrent(nn.Module):
    """A cell reads the sequence step by step, and its last state answers."""

    def __init__(self, cell, width, delay=None):
        super().__init__()
        self.layer = new_layer(cell, width, delay)
        self.readout = nn.Linear(width, 1)

    def first(self, x):
        """What is handed on by the step that reads the bit: a state, or h and c."""
        _, state = cells.run(self.layer, x[:1])
        return state if isinstance(state, tuple) else (state,)

    def forward(self, x, first=None):
        """The logit of the answer 1: (batch,). With ``first``, x is what comes after the bit."""
        state = first if first is None or isinstance(self.layer, nn.LSTM) else first[0]
        h, _ = cells.run(self.layer, x, state)  # (time, batch, hidden)
        return self.readout(h[-1])[:, 0]


class Direct(nn.Module):
    """All inputs become vectors, and what the last step gets from them answers."""

    def __init__(self, width):
        super().__init__()
        self.widen = nn.Linear(1, width)
        self.readout = nn.Linear(width, 1)

    def embed(self, x):
        return self.widen(x)  # (time, batch, width)

    def first(self, x):
        """The vector that the bit becomes."""
        return (self.embed(x[:1]),)

    def forward(self, x, first=None):
        v = self.embed(x)
        return self.readout(self.last(v if first is None else torch.cat([*first, v])))[:, 0]


class Transformer(Direct):
    """One block. Of its outputs only the last token's is wanted, so that no other token has to ask anything."""

    def __init__(self, width):
        super().__init__(width)
        self.block = Block(width, HEADS)

    def last(self, v):
        """What ``block(v)`` gives at the last token: (batch, width)."""
        block, x = self.block, v.transpose(0, 1)  # (batch, time, width)
        q, k, values = block.attention.queries_keys_values(block.before_attention(x))
        read = scaled_dot_product_attention(q[:, :, -1:], k, values)
        return block.after_attention(x[:, -1:], block.attention.merged(read))[:, 0]


class StateSpace(Direct):
    """Each channel a few damped oscillations that its input sets going: a diagonal state space."""

    def __init__(self, width):
        super().__init__(width)
        self.log_step = nn.Parameter(torch.empty(width, 1).uniform_(math.log(SLOWEST), math.log(FASTEST)))
        self.log_decay = nn.Parameter(torch.full((width, MODES), math.log(0.5)))
        self.frequency = nn.Parameter((math.pi * torch.arange(MODES)).repeat(width, 1))
        self.C = nn.Parameter(torch.view_as_real(torch.randn(width, MODES, dtype=torch.cfloat)).clone())

    def embed(self, x):
        return gelu(self.widen(x))

    def parts(self):
        """log A and C as scans.py takes them: (width, mode)."""
        A = torch.complex(-self.log_decay.exp(), self.frequency)
        step = self.log_step.exp()
        return step * A, step * torch.view_as_complex(self.C)

    def last(self, v):
        """What ``scans.convolved`` gives at the last step: (batch, width)."""
        return gelu((v.flip(0) * scans.kernel(*self.parts(), len(v))[:, None]).sum(0))


def new_model(cell, width, delay=None):
    """An untrained model of MODELS, drawn from torch's own generator."""
    if cell in DIRECT:
        return {"Transformer": Transformer, "state space": StateSpace}[cell](width)
    return Recurrent(cell, width, delay)


@torch.no_grad()
def start_at_identity(layer):
    """As Le, Jaitly and Hinton have it: the recurrent weights the identity, small input weights, no biases."""
    layer.weight_hh_l0.copy_(torch.eye(layer.hidden_size))
    layer.weight_ih_l0.normal_(std=0.001)
    layer.bias_ih_l0.zero_()
    layer.bias_hh_l0.zero_()


def spread_gate_biases(layer, delay):
    """Chrono initialisation: units that keep what they hold for 1 to ``delay`` steps."""
    rows = cells.keeping_gate(layer)
    cells.set_gate_bias(layer, 0)
    with torch.no_grad():
        bias = layer.bias_ih_l0[rows].uniform_(1, max(delay - 1, 1)).log_()
        if isinstance(layer, nn.LSTM):  # torch's first gate is what is written
            layer.bias_ih_l0[: rows.start] = -bias
            layer.bias_hh_l0[: rows.start] = 0


@torch.no_grad()
def keeping_gate(layer, x):
    """The values of the gate that keeps at every step of a GRU or an LSTM: (time, batch, hidden)."""
    h, _ = cells.run(layer, x)
    before = torch.cat([torch.zeros_like(h[:1]), h[:-1]])
    rows = cells.keeping_gate(layer)
    from_input = nn.functional.linear(x, layer.weight_ih_l0[rows], layer.bias_ih_l0[rows])
    return torch.sigmoid(from_input + nn.functional.linear(before, layer.weight_hh_l0[rows], layer.bias_hh_l0[rows]))


def kept(model, x):
    """The mean value of the gate that keeps, while a GRU or an LSTM reads x; None of other models."""
    layer = getattr(model, "layer", None)
    if not isinstance(layer, nn.GRU | nn.LSTM):
        return None
    return keeping_gate(layer, x).mean().item()


def gradient_at_first_state(model, x, bit):
    """‖∂L/∂h_1‖, L being one sequence's loss and h_1 what has just read the bit: the mean over sequences.

    For an LSTM that is h_1 and c_1, for a state space and a Transformer the vector that the bit becomes.
    """
    first = [part.detach().requires_grad_() for part in model.first(x)]
    loss = binary_cross_entropy_with_logits(model(x[1:], first), bit, reduction="sum")
    gradient = torch.cat(torch.autograd.grad(loss, first), dim=2)[0]  # (batch, state), or (batch, key, value)
    # In float32 the squares of what is below 1e-23 are 0; float64 is the CPU's, not every device has it.
    return gradient.cpu().double().flatten(1).norm(dim=1).mean().item()


def share_of_the_bit(model, x, generator):
    """How much of a step's gradient is about the bit: the size of that part over the size of all of it.

    Sequences that differ in nothing but their bit, once with the right answers and once with the wrong ones: half of
    the difference is what the answers teach, and all that noise does to both is gone. All of it is a step's gradient:
    as many sequences as x has, a bit and an answer drawn for each. In float64 on the CPU, because so little is left.
    """
    model, batch = copy.deepcopy(model).cpu().double(), x.shape[1]
    bit = torch.arange(2).repeat_interleave(batch).double()
    pairs = x.cpu().double().repeat(1, 2, 1)  # (1 + delay, 2 batch, 1)
    pairs[0, :, 0] = bit

    def gradient(sequences, answers):
        loss = binary_cross_entropy_with_logits(model(sequences), answers)
        parts = torch.autograd.grad(loss, [*model.parameters()], allow_unused=True)
        return torch.cat([part.flatten() for part in parts if part is not None])

    about_the_bit = (gradient(pairs, bit) - gradient(pairs, 1 - bit)) / 2
    drawn = torch.randint(2, (2, batch), generator=generator)
    step = gradient(pairs[:, torch.arange(batch) + batch * drawn[0]], drawn[1].double())
    return (about_the_bit.norm() / step.norm()).item()


def fewest_above_chance(count, odds=10_000):
    """The number of right answers, of ``count``, that a guesser reaches with a probability below 1 / odds."""
    right, ways, tail = count, 1, 1  # ways of being right that often, and of being right at least that often
    while tail * odds < 2**count:
        ways = ways * right // (count - right + 1)
        right -= 1
        tail += ways
    return right + 1
