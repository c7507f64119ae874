"""A short way through the computation isn't a short way for the gradient: a scan has the first, attention has both.

How many steps lie between token 1 and token T? That is two questions: how many operations on the way have to wait for
one another, and how many factors the gradient meets on its way back.

    recurrent layer, step by step   T - 1 operations   T - 1 factors: ∂h_T/∂h_1 = Π ∂h_t/∂h_{t-1}
    the same by a parallel scan     about log₂ T       T - 1 factors: the product is taken in another order
    attention                       1                  1: output T reads token 1 directly

To count the operations of a recurrence, the very functions of `layers/scans.py` run on numbers of steps in place of
states: two parts combined then give one more than the longer of them.

The gradient that arrives is measured in untrained layers of width 256 that read noise: the size of what the sum of the
last output sends to each input. Where every factor is well below 1, the product of a thousand is too small for any
floating-point number. So the gradient is scaled back to size 1 at each step, and the powers of ten are added up.

    python -m beyond.path_length          11 s

Prints, at the end:

    gradient that arrives 0 / 1 / 10 / 100 / 1,023 steps back, as a power of ten: median of 5 seeds
    GRU       : 0.6 / 0.3 / -1.7 / -20.5 / -215.0 (-219.5 to -210.9 at token 1); float32 holds it 215 steps back
    minGRU    : 0.7 / 0.4 / -2.2 / -28.4 / -306.9 (-308.5 to -303.5 at token 1); float32 holds it 156 steps back
    attention : 0.1 / -2.0 / -1.9 / -2.0 / -1.7 (-2.3 to -1.4 at token 1); float32 holds it 1,023 steps back
    minGRU's, differentiated through its scan: the same, log₁₀ at most 2e-13 apart

Weights and inputs are drawn in float32, as torch draws them, and the arithmetic is float64. minGRU's gates read the
input alone, so its factors are the gates themselves.

Sources: Vaswani et al., "Attention is all you need" (2017), table 1, for the table; Feng et al., "Were RNNs all we
needed?" (2024), for minGRU.
"""

# Longer than most scripts: operations and factors, the two columns of the table above, take a measurement each.

from math import inf, log10
from statistics import median

import torch
from torch.overrides import TorchFunctionMode

from lab import plots, script
from layers import scans
from parallel import attention, causal_mask

LENGTH = 1024  # tokens
WIDTH = 256
SEEDS = range(5)
STEPS_BACK = [0, 1, 10, 100, LENGTH - 1]
SMALLEST = -150  # log₁₀ of the smallest gradient whose square float64 can hold, as its size takes
FLOAT32 = log10(2**-149)  # the smallest number that float32 can hold: 10^-44.9

KINDS = {"*": "exact", "largest_gap": "rounding"}


class Counting(TorchFunctionMode):
    """Makes of h = b + a · h' one more than the number of steps behind b or h', whichever is more."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.addcmul:
            b, _, h = args
            return torch.maximum(b, h) + 1
        return function(*args, **(kwargs or {}))


def count_steps(recurrence, length):
    """How many operations one after the other lie between token 1 and each token: (time,)."""
    behind = torch.full((length,), -inf)  # no way from token 1 leads here
    behind[0] = 0
    with Counting():
        steps = recurrence(torch.ones(length), behind, torch.tensor(-inf))
    return (steps - steps[0]).int()


def log_gradient_sizes(layer, x):
    """log₁₀ of the size of the gradient that the sum of the last state sends 0, 1, … steps back to x (time, 1, width).

    One step at a time, the gradient at the state scaled to size 1 after each.
    """
    states = [torch.zeros(1, 1, WIDTH, dtype=x.dtype)]
    with torch.no_grad():
        for x_t in x.split(1):
            states.append(layer(x_t, states[-1])[1])
    g, power, sizes = torch.ones_like(states[-1]), 0.0, []
    for x_t, h in zip(reversed(x.split(1)), reversed(states[:-1]), strict=True):
        x_t, h = x_t.detach().requires_grad_(), h.requires_grad_()
        dx, g = torch.autograd.grad(layer(x_t, h)[1], (x_t, h), g)
        sizes.append(power + log10(dx.norm()))
        power += log10(g.norm())
        g = g / g.norm()
    return sizes


def gradient_sizes(function, x):
    """The same sizes by automatic differentiation of the whole, not their logarithms: (time,)."""
    x = x.detach().requires_grad_()
    (dx,) = torch.autograd.grad(function(x)[-1].sum(), x)
    return dx.norm(dim=(1, 2)).flip(0)


def build(seed):
    """Untrained layers as functions of x (time, 1, width), all in float64, and an x."""
    torch.manual_seed(seed)
    layers = {"GRU": torch.nn.GRU(WIDTH, WIDTH), "minGRU": scans.MinGRU(WIDTH, WIDTH)}
    W = (torch.randn(3, WIDTH, WIDTH) / WIDTH**0.5).double()
    x = torch.randn(LENGTH, 1, WIDTH).double()
    mask = causal_mask(LENGTH)

    def attend(x):
        return attention(x.transpose(0, 1), *W, mask).transpose(0, 1)

    return {name: layer.double() for name, layer in layers.items()}, attend, x


def powers_of_ten(seed):
    """log₁₀ of the sizes for each layer, and how far the scan's own gradient is from the one taken step by step."""
    layers, attend, x = build(seed)
    sizes = {name: log_gradient_sizes(layer, x) for name, layer in layers.items()}
    sizes["attention"] = gradient_sizes(attend, x).log10().tolist()
    by_scan = gradient_sizes(lambda x: layers["minGRU"](x)[0], x)
    pairs = zip(by_scan.tolist(), sizes["minGRU"], strict=True)
    gap = max(abs(log10(size) - power) for size, power in pairs if power > SMALLEST)
    return sizes, gap


def measure(arguments):
    torch.set_num_threads(1)  # products this small take longer if threads must wait for each other
    serial, parallel = (count_steps(how, LENGTH) for how in (scans.loop, lambda a, b, h0: scans.prefix(a, b)))
    by_seed, gaps = zip(*map(powers_of_ten, SEEDS), strict=True)
    each = {name: [sizes[name] for sizes in by_seed] for name in by_seed[0]}  # layer → (seed, steps back)
    every_step = {name: [median(powers) for powers in zip(*of, strict=True)] for name, of in each.items()}
    return {
        "seeds": SEEDS,
        "length": LENGTH,
        "width": WIDTH,
        "steps_back": STEPS_BACK,
        "steps": {
            "recurrence, step by step": {"operations": serial[-1], "factors": LENGTH - 1},
            "recurrence, by a scan": {"operations": parallel[-1], "factors": LENGTH - 1},
            "attention": {"operations": 1, "factors": 1},
        },
        "most_operations_of_the_scan": parallel.max(),
        "every_step": every_step,
        "at_token_1": {name: [powers[-1] for powers in of] for name, of in each.items()},
        "reach_of_float32": {name: sum(p >= FLOAT32 for p in powers) - 1 for name, powers in every_step.items()},
        "largest_gap": max(gaps),
    }


def tell(found):
    yield f"from token 1 to token {found['length']:,}         operations in a row   factors in the gradient"
    for name, row in found["steps"].items():
        yield f"{name:<30}{row['operations']:>20,}{row['factors']:>26,}"
    yield f"by a scan, no token is more than {found['most_operations_of_the_scan']} operations away from token 1"
    yield ""
    back = " / ".join(f"{steps:,}" for steps in found["steps_back"])
    seeds = len(found["at_token_1"]["attention"])
    yield f"gradient that arrives {back} steps back, as a power of ten: median of {seeds} seeds"
    for name, powers in found["every_step"].items():
        shown = " / ".join(f"{powers[steps]:.1f}" for steps in found["steps_back"])
        ends, reach = found["at_token_1"][name], found["reach_of_float32"][name]
        spread = f"{min(ends):.1f} to {max(ends):.1f} at token 1"
        yield f"{name:<10}: {shown} ({spread}); float32 holds it {reach:,} steps back"
    yield f"minGRU's, differentiated through its scan: the same, log₁₀ at most {found['largest_gap']:.0e} apart"


def draw(found):
    """The median size against the steps back."""
    figure, axes = plots.subplots(size=(7.6, 4.6))
    for name, powers in found["every_step"].items():
        axes.plot(powers, label=name)
    axes.set(xlabel="steps back", ylabel="log₁₀ of the gradient at the input (median of 5 seeds)")
    axes.set(xlim=(0, found["length"]), title="Attention alone sends token 1 a gradient")
    plots.label_ends(axes)
    axes.axhline(FLOAT32, color="#999999", linewidth=0.8, linestyle=":")
    axes.text(found["length"], FLOAT32, "float32 ends", fontsize=8, color="#777777", va="bottom", ha="right")
    return figure


if __name__ == "__main__":
    script.run(measure, tell, draw)
