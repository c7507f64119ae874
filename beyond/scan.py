"""A recurrence whose gates read the input alone needn't wait for itself: it trains as a scan, in parallel.

    h_t = a_t ⊙ h_{t-1} + b_t          where nothing in a and b depends on h

layers/scans.py has three layers of this kind: minGRU, linear attention and a state-space layer. Each has forms that
compute the same, some step by step and some in parallel. Here the forms are held together in float64, values and
gradients, and a minGRU is trained both ways. scan_lengths.py times them; scan_models.py and recall.py show what such
layers can do.

    python -m beyond.scan          2 s

Prints:

    largest relative gaps in float64: values, gradients (1,000 steps, width 32)
    8,192 steps of the recurrence, loop and scan : 1.4e-16, 2.8e-16
    minGRU, loop and scan                        : 2.3e-16, 9.4e-16
    linear attention, recurrent and chunked      : 2.8e-16, 1.2e-14
    linear attention, recurrent and parallel     : 5.7e-16, 1.5e-14
    state space, scan and convolution            : 3.4e-15, 1.0e-14

    minGRU trained 100 steps by loop and by scan: squared error 1.386 to 0.740; weights 3.2e-16 apart

A gap is the largest difference of two forms' values, or of their gradients at all inputs and weights, relative to the
largest number compared.

Sources: those of layers/scans.py; the state-space layer's A is S4D-Lin of Gu et al. (2022).
"""

import math
from functools import partial

import torch
from torch import nn
from torch.nn.functional import mse_loss

from lab import script
from layers import scans

SEED = 0
LONGEST = 8192  # steps of the recurrence itself
LENGTH, WIDTH = 1000, 32  # steps and channels of the layers that are compared
STATES = 4  # complex ones, of each channel of the state-space layer
ZEROS = 0.01  # share of the a_t that are exactly 0
PAIRS = [
    ("minGRU, loop", "minGRU, scan"),
    ("linear attention, recurrent", "linear attention, chunked"),
    ("linear attention, recurrent", "linear attention, parallel"),
    ("state space, scan", "state space, convolution"),
]
TRAINED, DELAY, RATE = 100, 3, 0.01  # training: steps, how long ago the input was that is asked for, Adam's rate

# The last digits of a sum differ between processors, and a gap is made of them.
KINDS = {"*": "exact", "gaps.*": "rounding", "trained_both_ways.weights": "rounding"}


def forms(length, width, device="cpu", dtype=torch.float32):
    """Each layer in each form on one input: a function without arguments, and what its gradient is taken of."""

    def layer(kind, **options):
        torch.manual_seed(SEED)  # all forms get the same weights
        made = kind(width, width, **options).to(device, dtype)
        return lambda: made(x)[0], [x, *made.parameters()]

    torch.manual_seed(SEED)
    x = torch.randn(length, 1, width).to(device, dtype).requires_grad_()  # (time, batch, width)
    step = torch.logspace(-3, -1, width)[:, None]  # how much time lies between two inputs, for each channel
    log_A = step * torch.complex(torch.tensor(-0.5), math.pi * torch.arange(STATES))  # (width, state)
    C = step * torch.randn(width, STATES, dtype=torch.cfloat)
    log_A, C = (parameter.to(device, dtype.to_complex()).requires_grad_() for parameter in (log_A, C))
    return {
        "minGRU, loop": layer(scans.MinGRU, recurrence=scans.loop),
        "minGRU, scan": layer(scans.MinGRU),
        "linear attention, recurrent": layer(scans.LinearAttention, chunk=1),
        "linear attention, chunked": layer(scans.LinearAttention),
        "linear attention, parallel": layer(scans.LinearAttention, chunk=length),
        "state space, scan": (partial(scans.recurred, x, log_A, C), [x, log_A, C]),
        "state space, convolution": (partial(scans.convolved, x, log_A, C), [x, log_A, C]),
    }


def gaps(one, other):
    """How far two forms are apart, in values and in gradients of a sum with weights that all differ."""
    compared = []
    for function, inputs in one, other:
        y = function()
        grad_output = torch.arange(y.numel(), dtype=y.dtype).cos().view_as(y)
        compared.append((y.detach(), *torch.autograd.grad(y, inputs, grad_output)))
    values, *gradients = [relative(a, b) for a, b in zip(*compared, strict=True)]
    return {"values": values, "gradients": max(gradients)}


def relative(a, b):
    return ((a - b).abs().max() / b.abs().max()).item()


def of_recurrence(recurrence):
    """A long recurrence with some a_t exactly 0, in the form that `gaps` takes."""
    torch.manual_seed(SEED)
    a, b = torch.rand(LONGEST, 2, 3).double(), torch.randn(LONGEST, 2, 3).double()  # (time, …)
    a[torch.rand(a.shape) < ZEROS] = 0
    inputs = [a.requires_grad_(), b.requires_grad_(), torch.randn(2, 3).double().requires_grad_()]
    return partial(recurrence, *inputs), inputs


def trained(recurrence):
    """A minGRU learns to tell what it read DELAY steps ago: its weights, in one row, and the loss of each step."""
    torch.manual_seed(SEED)
    model = nn.ModuleList([scans.MinGRU(1, WIDTH, recurrence), nn.Linear(WIDTH, 1)]).double()
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    losses = []
    for _ in range(TRAINED):
        x = torch.randn(100, 8, 1).double()  # (time, batch, 1)
        loss = mse_loss(model[1](model[0](x)[0])[DELAY:], x[:-DELAY])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()]), losses


def measure(arguments):
    loop, scan = scans.loop, scans.scan
    pairs = {f"{LONGEST:,} steps of the recurrence, loop and scan": (of_recurrence(loop), of_recurrence(scan))}
    compared = forms(LENGTH, WIDTH, dtype=torch.float64)
    for one, other in PAIRS:
        pairs[f"{one} and {other.rpartition(', ')[2]}"] = compared[one], compared[other]
    found = {"seeds": [SEED], "length": LENGTH, "width": WIDTH}
    found["gaps"] = {name: gaps(*pair) for name, pair in pairs.items()}
    (by_loop, losses), (by_scan, _) = trained(loop), trained(scan)
    both = {"steps": TRAINED, "weights": relative(by_scan, by_loop), "error": [losses[0], losses[-1]]}
    return found | {"trained_both_ways": both}


def tell(found):
    yield f"largest relative gaps in float64: values, gradients ({found['length']:,} steps, width {found['width']})"
    for name, gap in found["gaps"].items():
        yield f"{name:45}: {gap['values']:.1e}, {gap['gradients']:.1e}"
    yield ""
    both = found["trained_both_ways"]
    first, last = both["error"]
    yield (
        f"minGRU trained {both['steps']} steps by loop and by scan: squared error {first:.3f} to {last:.3f};"
        f" weights {both['weights']:.1e} apart"
    )


if __name__ == "__main__":
    script.run(measure, tell)
