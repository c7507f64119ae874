"""A recurrent layer takes its steps one after the other; attention does more arithmetic in less time, in one pass.

Both read the same 1,024 vectors of width 256. The GRU's step t needs its step t - 1, so that 1,024 small products wait
for each other. Attention multiplies everything with everything at once, and the mask takes away what lies ahead:

    GRU         three gates, each a product with W_i and one with W_h:  2 · 2 · 3 · T · d² floating-point operations
    attention   q, k, v, then q kᵀ and weights · v:                     3 · 2 · T · d² + 2 · 2 · T² · d

(A multiplication and an addition count as two. Biases, activations and softmax aren't counted. The half of the T × T
products that the mask throws away is counted, since it is computed.)

    python parallel.py          2 s
    python parallel.py --device cuda

Prints:

    GRU:       1024 sequential steps, 0.81 GFLOPs,   21.2 ms
    attention: 1 parallel pass,      1.48 GFLOPs,   14.9 ms
    the GRU takes 1.4 times as long

    beyond the post: with the mask made before, attention takes 11.1 ms
    GRU has 394,752 parameters, attention has 196,608 parameters
    the 6th, fastest and slowest of 10 forward passes (float32, batch 1, cpu)
    GRU:                         21.19 ms, 20.82 to 21.61 ms; 38 GFLOP/s achieved
    attention:                   14.89 ms, 13.14 to 16.08 ms; 99.1 GFLOP/s achieved
    attention, mask made before: 11.07 ms, 10.54 to 24.69 ms; 133 GFLOP/s achieved

What is timed is what the post's listing times: a forward pass without gradients, the sixth of ten in the order of their
times, after one that isn't counted. Its attention makes the mask anew in every pass. The mask depends on nothing but
the length, so the same attention with the mask made before is a third rival. Times belong to the machine: they are
compared only by the claim that the post makes of their ratio. How they grow with the length is in
beyond/parallel_lengths.py.

Source: Vaswani et al., "Attention is all you need" (2017), section 4.
"""

import torch
from torch.nn.functional import softmax

from lab import devices, plots, script, timing

SEED = 0
LENGTH = 1024  # steps
WIDTH = 256
RUNS = 10  # of each rival, after one that isn't counted
OURS = "attention, mask made before"

KINDS = {"*": "exact .2f", "device": "timing", "*.ms": "timing"}
KINDS |= {"*.every_run_ms.*": "timing", "*.GFLOP_per_s": "timing", "*times_as_long": "timing"}


def attention(x, W_q, W_k, W_v, mask):
    """One head of causal attention."""
    q, k, v = x @ W_q, x @ W_k, x @ W_v  # (batch, time, width)
    scores = (q @ k.mT / WIDTH**0.5).masked_fill(mask, float("-inf"))  # (batch, time, time)
    return softmax(scores, dim=-1) @ v  # (batch, time, width)


def causal_mask(length, device=None):
    """True above the diagonal: what step t may not see."""
    return torch.ones(length, length, device=device).triu(1).bool()  # (time, time)


def gru_flops(length, width):
    return 2 * 2 * 3 * length * width**2


def attention_flops(length, width):
    return 3 * 2 * length * width**2 + 2 * 2 * length**2 * width


def build(device):
    """The rivals, as functions without arguments, on the same input; all drawn on the CPU."""
    torch.manual_seed(SEED)
    x = torch.randn(1, LENGTH, WIDTH)  # (batch, time, width)
    gru = torch.nn.GRU(WIDTH, WIDTH, batch_first=True)
    projections = torch.randn(3, WIDTH, WIDTH) / WIDTH**0.5
    gru, x, projections, mask = (thing.to(device) for thing in (gru, x, projections, causal_mask(LENGTH)))
    return {
        "GRU": lambda: gru(x)[0],
        "attention": lambda: attention(x, *projections, causal_mask(LENGTH, device)),
        OURS: lambda: attention(x, *projections, mask),
    }


def timed(rival, device):
    """ms of every run, after one that isn't counted."""
    rival()
    return [1000 * timing.seconds(rival, device) for _ in range(RUNS)]


def options(parser):
    parser.add_device()


def measure(arguments):
    device = devices.trusted(arguments.device)
    with torch.no_grad():
        times = {name: timed(rival, device) for name, rival in build(device).items()}
    computed = {"GFLOPs": attention_flops(LENGTH, WIDTH) / 1e9}
    found = {
        "seeds": [SEED],
        "device": str(device),
        "sequence_length": LENGTH,
        "width": WIDTH,
        "parameters": {"GRU": 6 * WIDTH**2 + 6 * WIDTH, "attention": 3 * WIDTH**2},
        "GRU": {"sequential_steps": LENGTH, "GFLOPs": gru_flops(LENGTH, WIDTH) / 1e9},
        "attention": {"parallel_passes": 1} | computed,
        OURS: computed,
    }
    for name, runs in times.items():
        ms = sorted(runs)[RUNS // 2]
        found[name] |= {"ms": ms, "every_run_ms": runs, "GFLOP_per_s": found[name]["GFLOPs"] / (ms / 1000)}
    found["times_as_long"] = found["GRU"]["ms"] / found["attention"]["ms"]
    return found


def tell(found):
    gru, attention, ours = rivals = [found[name] for name in ("GRU", "attention", OURS)]
    steps, passes = gru["sequential_steps"], attention["parallel_passes"]
    yield f"GRU:       {steps} sequential steps, {gru['GFLOPs']:.2f} GFLOPs, {gru['ms']:6.1f} ms"
    yield f"attention: {passes} parallel pass,      {attention['GFLOPs']:.2f} GFLOPs, {attention['ms']:6.1f} ms"
    yield f"the GRU takes {found['times_as_long']:.1f} times as long"
    yield ""
    yield f"beyond the post: with the mask made before, attention takes {ours['ms']:.1f} ms"
    yield ", ".join(f"{name} has {count:,} parameters" for name, count in found["parameters"].items())
    runs = len(gru["every_run_ms"])
    yield f"the {runs // 2 + 1}th, fastest and slowest of {runs} forward passes (float32, batch 1, {found['device']})"
    for name, rival in zip(["GRU", "attention", OURS], rivals, strict=True):
        fastest, slowest = min(rival["every_run_ms"]), max(rival["every_run_ms"])
        spread = f"{rival['ms']:.2f} ms, {fastest:.2f} to {slowest:.2f} ms"
        yield f"{name + ':':28} {spread}; {rival['GFLOP_per_s']:.3g} GFLOP/s achieved"


def draw(found):
    """Arithmetic and time side by side, every run a mark."""
    figure, (arithmetic, time_taken) = plots.subplots(1, 2, size=(9.6, 2.6), sharey=True)
    names = [OURS, "attention", "GRU"]
    gflops = {name: found[name]["GFLOPs"] for name in names}
    ms = {name: found[name]["ms"] for name in names}
    arithmetic.barh(names, list(gflops.values()), height=0.5, color=plots.COLOURS[0])
    arithmetic.set(xlabel="floating-point operations (10⁹)")
    for row, name in enumerate(names):
        runs = found[name]["every_run_ms"]
        time_taken.plot(runs, [row] * len(runs), "|", markersize=16, color=plots.COLOURS[1])
        time_taken.plot(ms[name], row, "o", markersize=5, color=plots.COLOURS[5])
    time_taken.set(xlabel=f"ms of one forward pass: every run, the {len(runs) // 2 + 1}th of them")
    time_taken.set_xlim(left=0)
    faster = ms["attention"] < ms["GRU"]
    arithmetic.set_title("attention: more arithmetic …")
    time_taken.set_title("… in less time" if faster else "… and here in more time")
    for axes in arithmetic, time_taken:
        axes.set_axisbelow(True)
        axes.grid(axis="y", visible=False)
    return figure


if __name__ == "__main__":
    script.run(measure, tell, draw, options)
