"""Attention's cost grows with the square of the length, a GRU's with the length: somewhere they are even.

`parallel.py`'s comparison at lengths T from 64 to 8,192: one sequence, width 256, float32, forward alone, and forward
with backward (gradients of the input and of all weights). The rivals are torch's GRU; attention as `parallel.py` writes
it, which makes T × T numbers and keeps them; and "fused attention", torch's scaled_dot_product_attention, which comes
to the same result block by block and never holds them all.

Where attention has caught up is told twice: between the two lengths at which the faster one changes, on a straight line
between logarithms; and from a model of the times, c + b T for the GRU and c + b T + d T² for attention, with the
coefficients from 0 up that leave the least relative errors.

A GRU's cost has two parts. The products of the inputs with W_i need no state and are one large product for all steps;
they are timed alone. What has to wait is the serial part: the same GRU reading inputs of width 1.

    python parallel_lengths.py          2 min
    python parallel_lengths.py --device cuda

Prints, at the end:

    forward, growing with T
    GRU            : T to the power of 1.00 at the end; 0.439 + 0.0225 T ms, at most 4% off
    attention      : T to the power of 2.03 at the end; 0.311 + 8.68e-06 T² ms, at most 19% off
    fused attention: T to the power of 1.70 at the end; 0.124 + 0.00215 T + 2.81e-06 T² ms, at most 7% off
    attention      : as slow as the GRU at 2,258 steps (measured), at 2,593 (fitted)
    fused attention: as slow as the GRU at 7,514 steps (measured), at 7,240 (fitted)

    forward and backward, growing with T
    GRU            : T to the power of 1.04 at the end; 0.228 + 0.213 T ms, at most 14% off
    attention      : T to the power of 1.91 at the end; 1.96 + 5.12e-05 T + 2.17e-05 T² ms, at most 17% off
    fused attention: T to the power of 1.66 at the end; 0.823 + 0.0077 T + 8.3e-06 T² ms, at most 10% off
    attention      : as slow as the GRU nowhere from 64 to 8,192 steps (measured), at 9,829 (fitted)
    fused attention: as slow as the GRU nowhere from 64 to 8,192 steps (measured), at 24,783 (fitted)

Times are medians after 3 rounds that aren't counted, of 10 rounds up to 1,024 steps and 5 beyond, all rivals taking
turns; forward passes run in inference mode. Operations are counted as in `parallel.py`, three times as many with the
backward pass, and what the mask throws away isn't left out: fused attention skips part of that, so it can achieve more
than the machine does. Memory is what tensors take at the most, beyond inputs, weights and mask, which are there before.
The power of T that a time grows with at the end is that of the last four lengths.

Sources: Vaswani et al., "Attention is all you need" (2017), table 1; Dao et al., "FlashAttention" (2022), for attention
in blocks.
"""

from itertools import combinations, pairwise
from math import exp, log
from statistics import median

import numpy as np
import torch
from torch.nn.functional import linear, scaled_dot_product_attention

from lab import devices, plots, script, timing
from lab.results import Results
from parallel import SEED, WARM_UP, WIDTH, attention, attention_flops, causal_mask, gru_flops

LENGTHS = [64, 128, 256, 512, 1024, 2048, 4096, 8192]  # steps
RUNS, LONG, RUNS_OF_LONG = 10, 2048, 5  # rounds, fewer from this length on
LAST = 4  # lengths that a slope is fitted to
FLOPS = {"GRU": gru_flops, "attention": attention_flops, "fused attention": attention_flops}
PASSES = {"forward": 1, "forward and backward": 3}  # times the operations: two products backward for each one forward
INPUT_SIDE, SERIAL = "input side at once", "serial part"


def fused_attention(x, W_q, W_k, W_v):
    """The same as `attention`, by torch's own function, which looks for batch, head, time and width."""
    q, k, v = ((x @ W)[:, None] for W in (W_q, W_k, W_v))  # (batch, 1, time, width)
    return scaled_dot_product_attention(q, k, v, is_causal=True)[:, 0]  # (batch, time, width)


def build(length, device):
    """What is compared on one input, each a function without arguments, and what its gradient is taken of."""
    torch.manual_seed(SEED)
    gru, narrow = (torch.nn.GRU(width, WIDTH, batch_first=True) for width in (WIDTH, 1))
    x = torch.randn(1, length, WIDTH)  # (batch, time, width)
    W = torch.randn(3, WIDTH, WIDTH) / WIDTH**0.5
    gru, narrow, x, W, mask = (thing.to(device) for thing in (gru, narrow, x, W, causal_mask(length)))
    first = x[..., :1].clone().requires_grad_()  # (batch, time, 1)
    x, W = x.requires_grad_(), W.requires_grad_()
    W_i, b_i = gru.weight_ih_l0, gru.bias_ih_l0
    return {
        "GRU": (lambda: gru(x)[0], [x, *gru.parameters()]),
        "attention": (lambda: attention(x, *W, mask), [x, W]),
        "fused attention": (lambda: fused_attention(x, *W), [x, W]),
        INPUT_SIDE: (lambda: linear(x, W_i, b_i), [x, W_i, b_i]),
        SERIAL: (lambda: narrow(first)[0], [first, *narrow.parameters()]),
    }


def passes(compared, device):
    """(pass, name) → the function that makes this pass."""
    functions = {("forward", name): torch.inference_mode()(function) for name, (function, _) in compared.items()}
    for name in FLOPS:
        function, inputs = compared[name]
        up = torch.randn(inputs[0].shape, generator=torch.Generator().manual_seed(SEED)).to(device)
        functions["forward and backward", name] = lambda function=function, inputs=inputs, up=up: torch.autograd.grad(
            function(), inputs, up
        )
    return functions


def fit(lengths, ms, powers):
    """The coefficients of ms = Σ c_p T^p with the least squares of relative errors, none of them negative.

    With so few terms, every choice of those that are above 0 can be tried.
    """
    terms = np.array([[length**power / t for power in powers] for length, t in zip(lengths, ms, strict=True)])
    best, least = None, np.inf
    for size in range(1, len(powers) + 1):
        for kept in map(list, combinations(range(len(powers)), size)):
            c = np.zeros(len(powers))
            c[kept] = np.linalg.lstsq(terms[:, kept], np.ones(len(terms)))[0]
            error = np.square(terms @ c - 1).sum()
            if (c >= 0).all() and error < least:
                best, least = c, error
    return dict(zip(powers, best.tolist(), strict=True))


def fitted_crossover(gru, attention):
    """The length from which on attention's model is slower than the GRU's; None if there is none."""
    roots = np.roots([attention.get(power, 0) - gru.get(power, 0) for power in (2, 1, 0)])
    ahead = [root.real for root in roots if root.imag == 0 and root.real > 0]
    return float(max(ahead)) if ahead and attention.get(2, 0) > 0 else None


def measured_crossover(lengths, gru, attention):
    """The same from the times: None if attention is ahead at every length, or never."""
    gaps = [log(a / g) for g, a in zip(gru, attention, strict=True)]
    for (low, high), (before, after) in reversed(list(zip(pairwise(lengths), pairwise(gaps), strict=True))):
        if before < 0 <= after:
            return exp(log(low) - before / (after - before) * log(high / low))
    return None


def main(argv=None):
    parser = script.Arguments(__doc__)
    devices.add_arguments(parser)
    arguments = parser.parse_args(argv)
    device = devices.pick(arguments.device)
    devices.check_recurrent(device)
    measure(arguments, device)


def measure(arguments, device):
    results = Results("parallel_lengths", arguments, seeds=[SEED], device=device)
    rows = {}  # (pass, name) → a row for each length
    for length in LENGTHS:
        compared = build(length, device)
        functions = passes(compared, device)
        runs = RUNS if length < LONG else RUNS_OF_LONG
        for (kind, name), every_run in timing.take_turns(functions, device, warm_up=WARM_UP, runs=runs).items():
            row = {"ms": median(every_run), "every_run_ms": every_run}
            if name in FLOPS:
                flops = PASSES[kind] * FLOPS[name](length, WIDTH)
                whole = compared[name][0] if kind == "forward" else functions[kind, name]
                with torch.set_grad_enabled(kind != "forward"):
                    peak = timing.peak_bytes(whole, device)
                row |= {"GFLOPs": flops / 1e9, "GFLOP_per_s": flops / 1e6 / row["ms"], "peak_bytes": peak}
            rows.setdefault((kind, name), []).append(row)
    results.record(lengths=LENGTHS, width=WIDTH)

    results.print(f"ms, GFLOP/s achieved, MB held at most: width {WIDTH}, batch 1, float32, {device}")
    for kind in PASSES:
        results.print(f"{kind + ', T':24}" + "".join(f"{name:>25}" for name in FLOPS))
        for i, length in enumerate(LENGTHS):
            cells = [rows[kind, name][i] for name in FLOPS]
            shown = [f"{c['ms']:11.2f}{c['GFLOP_per_s']:6.0f}{c['peak_bytes'] / 1e6:8.1f}" for c in cells]
            results.print(f"{length:24,}" + "".join(shown))
    spreads = [max(row["every_run_ms"]) / min(row["every_run_ms"]) for series in rows.values() for row in series]
    results.print(f"slowest run / fastest: {median(spreads):.2f} (median), {max(spreads):.2f} at most")

    results.print(f"\nthe forward pass of a GRU, ms: {INPUT_SIDE}, {SERIAL}, both")
    for i, length in enumerate(LENGTHS):
        parts = [rows["forward", name][i]["ms"] for name in (INPUT_SIDE, SERIAL, "GRU")]
        results.print(f"{length:24,}" + "".join(f"{ms:11.2f}" for ms in parts))
    results.record(parts={name: rows["forward", name] for name in (INPUT_SIDE, SERIAL)})

    for kind in PASSES:
        series = {name: rows[kind, name] for name in FLOPS}
        results.print(f"\n{kind}, growing with T")
        results.record(**{kind: {"rows": series} | growth(results, {n: [r["ms"] for r in series[n]] for n in FLOPS})})
    results.save(draw)


def growth(results, ms):
    """Print how the times of one pass grow, and where attention's meet the GRU's."""
    models = {name: fit(LENGTHS, times, (0, 1) if name == "GRU" else (0, 1, 2)) for name, times in ms.items()}
    slopes = {name: timing.slope(LENGTHS[-LAST:], times[-LAST:]) for name, times in ms.items()}
    crossovers = {}
    for name, c in models.items():
        off = max(abs(sum(c[p] * T**p for p in c) / t - 1) for T, t in zip(LENGTHS, ms[name], strict=True))
        terms = " + ".join(f"{c[p]:.3g}{('', ' T', ' T²')[p]}" for p in c if c[p])
        results.print(f"{name:15}: T to the power of {slopes[name]:.2f} at the end; {terms} ms, at most {off:.0%} off")
    for name in "attention", "fused attention":
        measured = measured_crossover(LENGTHS, ms["GRU"], ms[name])
        fitted = fitted_crossover(models["GRU"], models[name])
        crossovers[name] = {"measured": measured, "fitted": fitted}
        told = f"at {measured:,.0f} steps" if measured else f"nowhere from {LENGTHS[0]} to {LENGTHS[-1]:,} steps"
        results.print(
            f"{name:15}: as slow as the GRU {told} (measured), {f'at {fitted:,.0f}' if fitted else 'nowhere'} (fitted)"
        )
    return {"models": models, "slopes": slopes, "crossovers": crossovers}


def draw(results):
    """Time against length for both passes, fastest to slowest run, with the slope of the last lengths."""
    figure, panels = plots.subplots(1, 2, size=(11, 4.4), sharey=True)
    lengths = results["lengths"]
    for axes, kind in zip(panels, PASSES, strict=True):
        found = results[kind]
        for number, name in enumerate(FLOPS):
            every_run = [row["every_run_ms"] for row in found["rows"][name]]
            times = [row["ms"] for row in found["rows"][name]]
            label = f"{name}, slope {found['slopes'][name]:.2f}"
            axes.loglog(lengths, times, label=label, marker=plots.MARKERS[number], markersize=4)
            axes.fill_between(lengths, *zip(*((min(r), max(r)) for r in every_run), strict=True), alpha=0.2)
        axes.set(xlabel="length (steps)", title=kind)
        axes.set_xticks(lengths, [f"{length:,}" for length in lengths], fontsize=8)
        axes.minorticks_off()
        plots.label_ends(axes)
    panels[0].set_ylabel("ms: median, fastest to slowest run")
    return figure


if __name__ == "__main__":
    script.run(main)
