"""How far back a gradient reaches in untrained cells (RNN, GRU, LSTM), by the bias of the gate that keeps.

The gate that keeps the old state is σ(… + bias). The further the bias is above 0, the more of the state is kept. With a
forget bias of 3 an LSTM's gradient loses half of its size in 50 steps; in a plain RNN seventeen powers of ten are gone.
The gate doesn't do that alone. A product of forget gates near σ(3) = 0.95 can only fall, and along the cell no more
than 4.0e-02 arrives from 50 steps back; the gradient grows from step 10 to step 50. Nine tenths of it take another way,
through the candidate g and the recurrent weights, which a cell that is open feeds at every step (beyond/cell_path.py).

    LSTM   c_t = f_t c_{t-1} + i_t g_t            f_t = σ(W_if x_t + b_if + W_hf h_{t-1} + b_hf)
    GRU    h_t = (1 - u_t) n_t + u_t h_{t-1}      u_t = σ(W_iz x_t + b_iz + W_hz h_{t-1} + b_hz)
           n_t = tanh(W_in x_t + b_in + r_t (W_hn h_{t-1} + b_hn))

This is torch's GRU. Its u near 1 keeps the old state, as in Cho et al. (2014), so a positive bias lengthens the reach.
(In Chung et al. (2014) the same letter stands for the opposite.) Its reset gate r comes after the recurrent product,
not before it. Torch adds two biases to each gate: a bias of 1 here means 1 on the input side and 0 on the hidden side,
and the sums of both are printed.

    python gates.py          2 s, and 1 s for the figure
    python gates.py --forget-bias -1 5

Prints, at the end:

    LSTM, forget bias 0 : gradient reaching the input 1 / 10 / 25 / 50 steps back: 1.0e+00 / 6.7e-03 / 2.1e-06 / 8.1e-12
    LSTM, forget bias 1 : gradient reaching the input 1 / 10 / 25 / 50 steps back: 1.0e+00 / 8.6e-02 / 3.1e-03 / 1.8e-05
    LSTM, forget bias 3 : gradient reaching the input 1 / 10 / 25 / 50 steps back: 8.9e-01 / 4.1e-01 / 4.3e-01 / 4.6e-01

    effective bias of the gate that keeps (input side + hidden side) over 64 units and all seeds
    GRU, default        : -0.24 to 0.22, as torch draws it
    GRU, update bias +1 : 1
    LSTM, forget bias 0 : 0
    LSTM, forget bias 1 : 1
    LSTM, forget bias 3 : 3

Weights and inputs are drawn as float32, as torch draws them, and the arithmetic is float64, so that the digits don't
depend on the machine; in float32 every printed digit is the same. The smallest gradient, 1e-17, is far above the
smallest normal number, so no case is slowed down by denormal ones.

Sources: Hochreiter and Schmidhuber (1997); Gers, Schmidhuber and Cummins (2000) for the forget gate; Jozefowicz,
Zaremba and Sutskever (2015) for its bias; Cho et al. (2014) for the GRU.
"""

import torch

from lab import plots, script
from lab.errors import UserError
from layers.cells import keeping_gate, set_gate_bias

SEEDS = range(5)
STEPS = 50
WIDTH = 64
STEPS_BACK = [1, 10, 25, 50]
UPDATE_BIAS = 1  # of a GRU
FORGET_BIASES = [0, 1, 3]  # of an LSTM

KINDS = {"*": "exact .1e", "steps_back.*": "exact d"}


def gate_bias(net):
    """What is added to the gate that keeps, from both sides together: (width,)."""
    rows = keeping_gate(net)
    return (net.bias_ih_l0[rows] + net.bias_hh_l0[rows]).detach()


def build(cell, bias, seed):
    """A fresh network, its gate bias set unless that is None, and an input (1, time, width)."""
    torch.manual_seed(seed)
    net = cell(WIDTH, WIDTH, batch_first=True)
    if bias is not None:
        set_gate_bias(net, bias)
    x = torch.randn(1, STEPS, WIDTH)  # drawn after the weights, from the same generator
    return net.double(), x.double()


def gradient_sizes(net, x):
    """The size of the gradient that the sum of the last state sends to the input 1, 2, …, T steps back: (time,)."""
    x = x.requires_grad_()
    states, _ = net(x)  # (1, time, width)
    states[0, -1].sum().backward()
    return x.grad[0].norm(dim=1).flip(0)


def options(parser):
    parser.add_argument(
        "--forget-bias",
        nargs="+",
        type=script.finite_float,
        default=FORGET_BIASES,
        metavar="B",
        help="effective biases of the LSTM's forget gate, one case each",
    )


def measure(arguments):
    torch.set_num_threads(1)  # products this small take longer if threads must wait for each other
    cases = {"RNN": (torch.nn.RNN, None), "GRU, default": (torch.nn.GRU, None)}
    cases[f"GRU, update bias {UPDATE_BIAS:+}"] = (torch.nn.GRU, UPDATE_BIAS)
    for bias in arguments.forget_bias:
        name = f"LSTM, forget bias {str(bias).removesuffix('.0')}"
        if name in cases:
            raise UserError(f"--forget-bias: {bias} is given twice")
        cases[name] = (torch.nn.LSTM, bias)

    gradient_size, by_seed, every_step, biases = {}, {}, {}, {}
    for name, (cell, bias) in cases.items():
        nets = [build(cell, bias, seed) for seed in SEEDS]
        sizes = torch.stack([gradient_sizes(net, x) for net, x in nets])  # (seed, time)
        every_step[name] = sizes.median(dim=0).values
        gradient_size[name] = [every_step[name][steps - 1] for steps in STEPS_BACK]
        by_seed[name] = [[row[steps - 1] for steps in STEPS_BACK] for row in sizes]
        if cell is not torch.nn.RNN:
            sums = torch.stack([gate_bias(net) for net, _ in nets])  # (seed, width)
            biases[name] = [sums.min(), sums.max()]
    return {
        "seeds": SEEDS,
        "width": WIDTH,
        "steps_back": STEPS_BACK,
        "gradient_size": gradient_size,
        "by_seed": by_seed,
        "every_step": every_step,
        "effective_gate_bias": biases,
    }


def tell(found):
    steps = " / ".join(map(str, found["steps_back"]))
    for name, sizes in found["gradient_size"].items():
        shown = " / ".join(f"{size:.1e}" for size in sizes)
        yield f"{name:<20}: gradient reaching the input {steps} steps back: {shown}"
    yield ""
    units = found["width"]
    yield f"effective bias of the gate that keeps (input side + hidden side) over {units} units and all seeds"
    for name, (low, high) in found["effective_gate_bias"].items():
        yield f"{name:<20}: " + (f"{low:g}" if low == high else f"{low:.2f} to {high:.2f}, as torch draws it")


def draw(found):
    """The median over seeds against the steps back."""
    figure, axes = plots.subplots(size=(7.6, 4.6))
    for name, sizes in found["every_step"].items():
        axes.semilogy(range(1, len(sizes) + 1), sizes, label=name)
    axes.set(
        xlabel="steps back",
        ylabel="gradient at the input (median of 5 seeds)",
        xlim=(1, STEPS),
        title="Gradients in untrained cells, by the bias of the gate that keeps",
    )
    plots.label_ends(axes)
    return figure


if __name__ == "__main__":
    script.run(measure, tell, draw, options)
