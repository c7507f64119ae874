"""Is it the cell that carries an LSTM's gradient back? The paths that it takes, one cut after the other.

The course differentiates c_t = f_t c_{t-1} + i_t g_t "ignoring the comparatively minor dependence of the gates" and is
left with f_t; the lesson calls that a constant error carousel. But gates and candidate read h_{t-1}, which is made of
c_{t-1}: the gradient has other ways back. Here is how much of it arrives

    in full
    gates cut    where the gates i, f and o count as constants: through the cell, and through the candidate g
    cell alone   where the candidate does too: a product of forget gates and nothing else

and the same for the GRU, whose h_t = (1 - u_t) n_t + u_t h_{t-1} has such a path: with r and u constants, and with n
too, which leaves a product of update gates. What is cut is what a gate or candidate has from the state before; what it
has from its own input stays. The networks are those of gates.py, untrained, then character models of the same size
(charlm.py: 64 numbers a character, 64 units) before and after 400 steps of training, on the validation text.

    python -m beyond.cell_path          4 min

Prints, at the end:

    of the gradient 50 steps back: the share that the cell alone carries, and with the candidate;
    how far the gradient with the gates cut is from the full one, in parts of it
    GRU, default         untrained : 8.6e-04, 1.0e+00; 0.29
    GRU, update bias +1  untrained : 5.7e-02, 9.9e-01; 0.19
    LSTM, forget bias 0  untrained : 1.0e-03, 1.4e+00; 0.33
    LSTM, forget bias 1  untrained : 1.1e-02, 1.2e+00; 0.30
    LSTM, forget bias 3  untrained : 8.7e-02, 9.7e-01; 0.20
    LSTM, forget bias 7  untrained : 2.7e-01, 1.0e+00; 0.23
    GRU                  untrained : 5.6e-03, 9.6e-01; 0.30 (text)
    GRU                  trained   : 2.6e-01, 7.1e-01; 0.95 (text)
    LSTM                 untrained : 1.1e-02, 1.1e+00; 0.34 (text)
    LSTM                 trained   : 1.5e-01, 1.1e+00; 0.60 (text)
    LSTM, forget bias 1  untrained : 2.1e-02, 9.3e-01; 0.32 (text)
    LSTM, forget bias 1  trained   : 1.2e-01, 8.0e-01; 0.62 (text)

In the untrained networks most of what comes from fifty steps back didn't come through the cell alone, even where a bias
of 7 holds the forget gates at 0.999. The gates' own dependence is minor there: without it the gradient is 0.2 to 0.3 of
its size away from the full one. It is the candidate that the course forgets, and its way leads through a matrix and two
tanh. With a forget bias of 3 the gradient even grows from 10 steps to 50, which no product of forget gates can do. A
little training on text makes the cell's part larger, 12 to 26 % where it was 0.6 to 2 %, but most still comes
another way; and the gates' part is minor no more, 0.6 to 0.95.

A little over 150 lines because a cell is written out twice, to be cut.

Weights and inputs are drawn as float32, as torch draws them, and the arithmetic is float64.

Sources: KnowML's course page "Sequence Modeling Pre-Transformer", section 5; the lesson "RNNs and LSTMs, the
pre-transformer world"; Hochreiter and Schmidhuber (1997); Gers, Schmidhuber and Cummins (2000).
"""

from statistics import median

import torch
from torch import nn

import charlm
import corpus
import gates
from lab import plots, script, trainings
from lab.errors import UserError
from layers import char_rnn

PATHS = ["full", "gates cut", "cell alone"]
STEPS_BACK = gates.STEPS_BACK  # of which the last is looked at most: 50
OPEN = 7  # a forget bias that holds the gate at 0.999
UNTRAINED = {  # the cell, and the bias of the gate that keeps
    "GRU, default": (nn.GRU, None),
    f"GRU, update bias {gates.UPDATE_BIAS:+}": (nn.GRU, gates.UPDATE_BIAS),
    **{f"LSTM, forget bias {bias}": (nn.LSTM, bias) for bias in [*gates.FORGET_BIASES, OPEN]},
}
TRAINED = {"GRU": ("GRU", None), "LSTM": ("LSTM", None), "LSTM, forget bias 1": ("LSTM", 1.0)}
TEXT_SEEDS, TEXT_STEPS = range(3), 400
WINDOWS = 32  # of the validation text, on which character models are looked at

KINDS = {
    "*": "exact .1e",
    "steps_back.*": "exact d",
    "on_text.*": "trained",
    "runs.*": "trained",
    "runs.*.model": "setting",
}


def last_state(layer, x, path):
    """h_T of a one-layer nn.LSTM or nn.GRU that reads x (time, batch, input): the same whatever is cut."""
    run = lstm if isinstance(layer, nn.LSTM) else gru
    return run(layer, x, *(lambda h, cut=cut: h.detach() if path in cut else h for cut in (PATHS[1:], PATHS[2:])))


def lstm(layer, x, for_gates, for_candidate):
    W_i, W_f, W_g, W_o = layer.weight_hh_l0.chunk(4)
    z = nn.functional.linear(x, layer.weight_ih_l0, layer.bias_ih_l0 + layer.bias_hh_l0)  # (time, batch, 4 hidden)
    h = c = x.new_zeros(x.shape[1], layer.hidden_size)
    for z_i, z_f, z_g, z_o in (z_t.chunk(4, -1) for z_t in z):
        i, f, o = (torch.sigmoid(z + for_gates(h) @ W.T) for z, W in ((z_i, W_i), (z_f, W_f), (z_o, W_o)))
        g = torch.tanh(z_g + for_candidate(h) @ W_g.T)
        c = f * c + i * g
        h = o * torch.tanh(c)
    return h


def gru(layer, x, for_gates, for_candidate):
    (W_r, W_u, W_n), (b_r, b_u, b_n) = layer.weight_hh_l0.chunk(3), layer.bias_hh_l0.chunk(3)
    z = nn.functional.linear(x, layer.weight_ih_l0, layer.bias_ih_l0)  # (time, batch, 3 hidden)
    h = x.new_zeros(x.shape[1], layer.hidden_size)
    for z_r, z_u, z_n in (z_t.chunk(3, -1) for z_t in z):
        r, u = (torch.sigmoid(z + for_gates(h) @ W.T + b) for z, W, b in ((z_r, W_r, b_r), (z_u, W_u, b_u)))
        n = torch.tanh(z_n + r * (for_candidate(h) @ W_n.T + b_n))
        h = (1 - u) * n + u * h
    return h


def gradient(layer, x, path):
    """What the sum of the last state sends to the inputs 1, 2, … steps back: (time, batch, input)."""
    x = x.detach().requires_grad_()
    return torch.autograd.grad(last_state(layer, x, path).sum(), x)[0].flip(0)


def sizes(layer, x):
    """The size of the gradient along each path at every step back, the median sequence's: (time,) each.

    And how far the gradient with the gates cut is from the full one, in parts of the latter: sizes can agree where
    directions don't.
    """
    found = {path: gradient(layer, x, path) for path in PATHS}
    seen = {path: each.norm(dim=2) for path, each in found.items()}  # (time, batch)
    seen["difference"] = (found["full"] - found["gates cut"]).norm(dim=2) / seen["full"]
    return {name: each.median(dim=1).values for name, each in seen.items()}


def untrained():
    """The medians over seeds at every step back, of each path of each network of gates.py."""
    found = {}
    for name, (cell, bias) in UNTRAINED.items():
        nets = [gates.build(cell, bias, seed) for seed in gates.SEEDS]
        seen = [sizes(net, x.transpose(0, 1)) for net, x in nets]
        found[name] = {path: torch.stack([one[path] for one in seen]).median(dim=0).values for path in seen[0]}
    return found


def look(model, windows):
    """The gradient along each path at every step back, as a character model reads windows (time, batch)."""
    layer, x = model.rnn.double(), model.embedding(windows).double()
    return {path: each[: STEPS_BACK[-1]].tolist() for path, each in sizes(layer, x).items()}


def train(config, checkpoint):
    """A character model, looked at before and after a short training."""
    training, text, _, validation = charlm.set_up(config, checkpoint)
    starts = torch.arange(WINDOWS) * (len(validation) - charlm.WINDOW) // (WINDOWS - 1)
    windows = validation[torch.arange(charlm.WINDOW)[:, None] + starts]  # (time, batch)
    for _ in training:
        pass
    seen = {"untrained": char_rnn.build(config, text.size), "trained": training.model}
    return {"seed": config.seed} | {state: look(model, windows) for state, model in seen.items()}


def measure(arguments):
    torch.set_num_threads(1)  # products this small take longer if threads must wait for each other
    text, where = charlm.read(arguments)
    if len(text.validation) < charlm.WINDOW:
        has = script.counted(len(text.validation), "character")
        raise UserError(f"the validation text has {has}: a window takes {charlm.WINDOW}")
    settings = {"steps": arguments.steps, "hidden": gates.WIDTH, **where}
    models = [(name, seed) for name in TRAINED for seed in TEXT_SEEDS]
    configs = [charlm.Config(TRAINED[name][0], seed, forget_bias=TRAINED[name][1], **settings) for name, seed in models]
    runs = trainings.run(train, configs, arguments)
    runs = [{"model": name} | run for (name, _), run in zip(models, runs, strict=True)]
    return {
        "seeds": gates.SEEDS,
        "corpus": text.fingerprint,
        "steps_back": STEPS_BACK,
        "every_step": untrained(),
        "text_steps": arguments.steps,
        "on_text": {name: medians([run for run in runs if run["model"] == name]) for name in TRAINED},
        "runs": [
            {k: run[k] for k in run if k in ("model", "seed", "untrained", "trained", "diverged_at_step")}
            for run in runs
        ],
    }


def medians(runs):
    """Over the seeds, before and after training, of each path at every step back."""
    runs = [run for run in runs if "trained" in run]
    return {
        state: {
            path: [median(each) for each in zip(*(run[state][path] for run in runs), strict=True)]
            for path in runs[0][state]
        }
        for state in ("untrained", "trained")
        if runs
    }


def tell(found):
    steps_back = found["steps_back"]
    yield f"gradient reaching the input {' / '.join(map(str, steps_back))} steps back, untrained: {', '.join(PATHS)}"
    for name, paths in found["every_step"].items():
        for path in PATHS:
            shown = " / ".join(f"{paths[path][steps - 1]:.1e}" for steps in steps_back)
            yield f"{name:<20} {path:<10}: {shown}"
    yield ""
    last, text_steps = steps_back[-1], found["text_steps"]
    yield f"{last} steps back on the validation text, before and after {text_steps:,} steps of training"
    for name, states in found["on_text"].items():
        for state, paths in states.items():
            shown = ", ".join(f"{path} {paths[path][last - 1]:.1e}" for path in PATHS)
            yield f"{name:<20} {state:<10}: {shown}"
    yield ""
    yield f"of the gradient {last} steps back: the share that the cell alone carries, and with the candidate;"
    yield "how far the gradient with the gates cut is from the full one, in parts of it"
    for name, paths in found["every_step"].items():
        yield f"{name:<20} untrained : {told_shares(paths, last)}"
    for name, states in found["on_text"].items():
        for state, paths in states.items():
            yield f"{name:<20} {state:<10}: {told_shares(paths, last)} (text)"


def told_shares(paths, back):
    full, gates_cut, alone = (paths[path][back - 1] for path in PATHS)
    return f"{alone / full:.1e}, {gates_cut / full:.1e}; {paths['difference'][back - 1]:.2f}"


def draw(found):
    """Each network's gradient on its way back, in full and with paths cut: untrained above, trained on text below."""
    above = {f"{name}, untrained": paths for name, paths in found["every_step"].items() if name != "GRU, default"}
    below = {f"{name}, trained": states["trained"] for name, states in found["on_text"].items() if states}
    columns = max(len(above), len(below))
    figure, grid = plots.subplots(2, columns, size=(3.4 * columns, 7.4), sharey=True, squeeze=False)
    for row, networks in zip(grid, (above, below), strict=True):
        for axes, (name, paths) in zip(row, networks.items(), strict=False):
            for path in PATHS:
                axes.semilogy(range(1, 1 + len(paths[path])), paths[path], label=path)
            axes.set(xlabel="steps back", title=name)
        for axes in row[len(networks) :]:
            axes.set_axis_off()
        row[0].set_ylabel("gradient at the input (median)")
    grid[0, 0].legend()
    return figure


def options(parser):
    parser.add_argument("--steps", type=script.positive_int, default=TEXT_STEPS, metavar="N", help="of each training")
    corpus.add_argument(parser)
    parser.add_jobs()


if __name__ == "__main__":
    script.run(measure, tell, draw, options)
