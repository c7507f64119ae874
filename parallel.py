"""A recurrent layer takes its steps one after the other; attention does more arithmetic in less time, in one pass.

Both read the same 1,024 vectors of width 256. The GRU's step t needs its step t - 1, so that 1,024 small products wait
for each other. Attention multiplies everything with everything at once, and the mask takes away what lies ahead:

    GRU         three gates, each a product with W_i and one with W_h:  2 · 2 · 3 · T · d² floating-point operations
    attention   q, k, v, then q kᵀ and weights · v:                     3 · 2 · T · d² + 2 · 2 · T² · d

(A multiplication and an addition count as two. Biases, activations and softmax aren't counted. The half of the T × T
products that the mask throws away is counted, since it is computed.)

    python parallel.py          3 s
    python parallel.py --device cuda

Prints:

    GRU:       1024 sequential steps, 0.81 GFLOPs,   20.2 ms
    attention: 1 parallel pass,      1.48 GFLOPs,    9.0 ms

    GRU has 394,752 parameters, attention has 196,608 parameters
    median, fastest and slowest of 10 forward passes (float32, batch 1, cpu)
    GRU:       20.24 ms, 19.48 to 22.48 ms; 39.8 GFLOP/s achieved
    attention: 8.99 ms, 6.88 to 12.73 ms; 164 GFLOP/s achieved

The times are medians of 10 runs, after 3 that aren't counted. The two rivals take turns, both forward only, in
inference mode and float32. Times belong to the machine and are never compared. How they grow with the length is in
beyond/parallel_lengths.py.

Source: Vaswani et al., "Attention is all you need" (2017), section 4.
"""

import statistics

import torch
from torch.nn.functional import softmax

from lab import devices, plots, script, timing

SEED = 0
LENGTH = 1024  # steps
WIDTH = 256
WARM_UP, RUNS = 3, 10

KINDS = {"*": "exact .2f", "device": "timing", "*.ms": "timing"}
KINDS |= {"*.every_run_ms.*": "timing", "*.GFLOP_per_s": "timing"}


def attention(x, W_q, W_k, W_v, mask):
    """One head of causal attention."""
    q, k, v = x @ W_q, x @ W_k, x @ W_v  # (batch, time, width)
    scores = q @ k.mT / WIDTH**0.5 + mask  # (batch, time, time)
    return softmax(scores, dim=-1) @ v  # (batch, time, width)


def causal_mask(length):
    """Minus infinity above the diagonal: what step t may not see."""
    return torch.full((length, length), float("-inf")).triu(1)  # (time, time)


def gru_flops(length, width):
    return 2 * 2 * 3 * length * width**2


def attention_flops(length, width):
    return 3 * 2 * length * width**2 + 2 * 2 * length**2 * width


def build(device):
    """The rivals, as functions without arguments, on the same input; all drawn on the CPU."""
    torch.manual_seed(SEED)
    gru = torch.nn.GRU(WIDTH, WIDTH, batch_first=True)
    x = torch.randn(1, LENGTH, WIDTH)  # (batch, time, width)
    projections = torch.randn(3, WIDTH, WIDTH) / WIDTH**0.5
    gru, x, projections, mask = (thing.to(device) for thing in (gru, x, projections, causal_mask(LENGTH)))
    return {"GRU": lambda: gru(x)[0], "attention": lambda: attention(x, *projections, mask)}


def options(parser):
    parser.add_device()


def measure(arguments):
    device = devices.trusted(arguments.device)
    with torch.inference_mode():
        times = timing.take_turns(build(device), device, warm_up=WARM_UP, runs=RUNS)  # ms
    found = {
        "seeds": [SEED],
        "device": str(device),
        "sequence_length": LENGTH,
        "width": WIDTH,
        "parameters": {"GRU": 6 * WIDTH**2 + 6 * WIDTH, "attention": 3 * WIDTH**2},
        "GRU": {"sequential_steps": LENGTH, "GFLOPs": gru_flops(LENGTH, WIDTH) / 1e9},
        "attention": {"parallel_passes": 1, "GFLOPs": attention_flops(LENGTH, WIDTH) / 1e9},
    }
    for name, runs in times.items():
        ms = statistics.median(runs)
        found[name] |= {"ms": ms, "every_run_ms": runs, "GFLOP_per_s": found[name]["GFLOPs"] / (ms / 1000)}
    return found


def tell(found):
    gru, attention = found["GRU"], found["attention"]
    steps, passes = gru["sequential_steps"], attention["parallel_passes"]
    yield f"GRU:       {steps} sequential steps, {gru['GFLOPs']:.2f} GFLOPs, {gru['ms']:6.1f} ms"
    yield f"attention: {passes} parallel pass,      {attention['GFLOPs']:.2f} GFLOPs, {attention['ms']:6.1f} ms"
    yield ""
    yield ", ".join(f"{name} has {count:,} parameters" for name, count in found["parameters"].items())
    runs = len(gru["every_run_ms"])
    yield f"median, fastest and slowest of {runs} forward passes (float32, batch 1, {found['device']})"
    for name, rival in {"GRU:": gru, "attention:": attention}.items():
        fastest, slowest = min(rival["every_run_ms"]), max(rival["every_run_ms"])
        spread = f"{rival['ms']:.2f} ms, {fastest:.2f} to {slowest:.2f} ms"
        yield f"{name:10} {spread}; {rival['GFLOP_per_s']:.3g} GFLOP/s achieved"


def draw(found):
    """Arithmetic and time side by side, every run a mark."""
    figure, (arithmetic, time_taken) = plots.subplots(1, 2, size=(8.4, 2.4), sharey=True)
    names = ["attention", "GRU"]
    arithmetic.barh(names, [found[name]["GFLOPs"] for name in names], height=0.5, color=plots.COLOURS[0])
    arithmetic.set(xlabel="floating-point operations (10⁹)", title="more arithmetic …")
    for row, name in enumerate(names):
        runs = found[name]["every_run_ms"]
        time_taken.plot(runs, [row] * len(runs), "|", markersize=16, color=plots.COLOURS[1])
        time_taken.plot(found[name]["ms"], row, "o", markersize=5, color=plots.COLOURS[5])
    time_taken.set(xlabel="ms of one forward pass: every run, median", title="… in less time")
    time_taken.set_xlim(left=0)
    for axes in arithmetic, time_taken:
        axes.set_axisbelow(True)
        axes.grid(axis="y", visible=False)
    return figure


if __name__ == "__main__":
    script.run(measure, tell, draw, options)
