"""A recurrent layer takes its steps one after the other; attention does more arithmetic in less time, in one pass.

Both read the same 1,024 vectors of width 256. The GRU's step t needs its step t - 1, so that 1,024 small products wait
for each other. Attention multiplies everything with everything at once, and the mask takes away what lies ahead:

    GRU         three gates, each a product with W_i and one with W_h:  2 · 2 · 3 · T · d² floating-point operations
    attention   q, k, v, then q kᵀ and weights · v:                     3 · 2 · T · d² + 2 · 2 · T² · d

(a multiplication and an addition count as two; biases, activations and softmax aren't counted, nor is the half of the
T × T products that the mask throws away left out.)

    python parallel.py          3 s
    python parallel.py --device cuda
    python parallel.py --lengths          the same as python parallel_lengths.py: from 64 steps to 8,192

Prints:

    GRU:       1024 sequential steps, 0.81 GFLOPs,   20.2 ms
    attention: 1 parallel pass,      1.48 GFLOPs,    9.0 ms

    GRU has 394,752 parameters, attention has 196,608 parameters
    median, fastest and slowest of 10 forward passes (float32, batch 1, cpu)
    GRU:       20.24 ms, 19.48 to 22.48 ms; 39.8 GFLOP/s achieved
    attention: 8.99 ms, 6.88 to 12.73 ms; 164 GFLOP/s achieved

The times are medians of 10 runs after 3 that aren't counted, the two rivals taking turns, both forward only, in
inference mode and float32. They belong to the machine and are never compared.

Source: Vaswani et al., "Attention is all you need" (2017), section 4.
"""

import statistics

import torch
from torch.nn.functional import softmax

from lab import devices, plots, script, timing
from lab.results import Results

SEED = 0
LENGTH = 1024  # steps
WIDTH = 256
WARM_UP, RUNS = 3, 10


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


def main(argv=None):
    parser = script.Arguments(__doc__)
    devices.add_arguments(parser)
    parser.add_argument("--lengths", action="store_true", help="from 64 steps to 8,192: see parallel_lengths.py")
    arguments = parser.parse_args(argv)
    device = devices.pick(arguments.device)
    devices.check_recurrent(device)
    if vars(arguments).pop("lengths"):
        import parallel_lengths  # here, because it imports this script

        del arguments.changed["lengths"]  # it has results of its own, with saved outputs of their own
        parallel_lengths.measure(arguments, device)
        return
    results = Results("parallel", arguments, seeds=[SEED], device=device)

    with torch.inference_mode():
        times = timing.take_turns(build(device), device, warm_up=WARM_UP, runs=RUNS)  # ms
    ms = {name: statistics.median(runs) for name, runs in times.items()}
    flops = {"GRU": gru_flops(LENGTH, WIDTH) / 1e9, "attention": attention_flops(LENGTH, WIDTH) / 1e9}  # GFLOPs

    results.print(f"GRU:       {LENGTH} sequential steps, {flops['GRU']:.2f} GFLOPs, {ms['GRU']:6.1f} ms")
    results.print(f"attention: 1 parallel pass,      {flops['attention']:.2f} GFLOPs, {ms['attention']:6.1f} ms")
    results.record(sequence_length=LENGTH, width=WIDTH)
    counts = {"GRU": {"sequential_steps": LENGTH}, "attention": {"parallel_passes": 1}}

    results.print()
    parameters = {"GRU": 6 * WIDTH**2 + 6 * WIDTH, "attention": 3 * WIDTH**2}
    results.print(", ".join(f"{name} has {count:,} parameters" for name, count in parameters.items()))
    results.record(parameters=parameters)
    results.print(f"median, fastest and slowest of {RUNS} forward passes (float32, batch 1, {device})")
    for name, runs in times.items():
        speed = flops[name] / (ms[name] / 1000)  # GFLOP/s
        results.print(
            f"{name + ':':10} {ms[name]:.2f} ms, {min(runs):.2f} to {max(runs):.2f} ms; {speed:.3g} GFLOP/s achieved"
        )
        measured = {"ms": ms[name], "every_run_ms": runs, "GFLOP_per_s": speed}
        results.record(**{name: counts[name] | {"GFLOPs": flops[name]} | measured})
    results.save(draw)


def draw(results):
    """Arithmetic and time side by side, every run a mark."""
    figure, (arithmetic, time_taken) = plots.subplots(1, 2, size=(8.4, 2.4), sharey=True)
    names = ["attention", "GRU"]
    arithmetic.barh(names, [results[name]["GFLOPs"] for name in names], height=0.5, color=plots.COLOURS[0])
    arithmetic.set(xlabel="floating-point operations (10⁹)", title="more arithmetic …")
    for row, name in enumerate(names):
        runs = results[name]["every_run_ms"]
        time_taken.plot(runs, [row] * len(runs), "|", markersize=16, color=plots.COLOURS[1])
        time_taken.plot(results[name]["ms"], row, "o", markersize=5, color=plots.COLOURS[5])
    time_taken.set(xlabel="ms of one forward pass: every run, median", title="… in less time")
    time_taken.set_xlim(left=0)
    for axes in arithmetic, time_taken:
        axes.set_axisbelow(True)
        axes.grid(axis="y", visible=False)
    return figure


if __name__ == "__main__":
    script.run(main)
