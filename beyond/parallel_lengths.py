"""Attention's cost grows with the square of the length, a GRU's with the length: somewhere they are even.

This is `parallel.py`'s comparison at lengths T from 64 to 8,192: one sequence, width 256, float32; forward alone, and
forward with backward (gradients of the input and of all weights). There are three rivals: torch's GRU; attention as
`parallel.py` writes it, its mask made before, which makes T × T numbers and keeps them; and "fused attention", torch's
scaled_dot_product_attention, which comes to the same result block by block and never holds them all.

The length from which on attention is slower than the GRU is found in two ways. "Measured" lies between the two lengths
at which the faster one changes, on a straight line between logarithms. "Fitted" comes from a model of the times,
c + b T for the GRU and c + b T + d T² for attention: no coefficient is negative, and the relative errors are least.

A GRU's cost has two parts. The products of the inputs with W_i need no state and are one large product for all steps;
they are timed alone. The rest has to wait, step after step. This serial part is timed as the same GRU reading inputs of
width 1.

    python -m beyond.parallel_lengths          2 min
    python -m beyond.parallel_lengths --device cuda

Prints, among the rest:

    forward, growing with T
    GRU            : T to the power of 0.98 at the end; 0.158 + 0.0204 T ms, at most 2% off
    attention      : T to the power of 2.07 at the end; 0.204 + 0.000731 T + 9.18e-06 T² ms, at most 16% off
    fused attention: T to the power of 1.75 at the end; 0.0444 + 0.00253 T + 4.04e-06 T² ms, at most 8% off
    attention      : as slow as the GRU at 2,106 steps (measured), at 2,137 (fitted)
    fused attention: as slow as the GRU at 4,528 steps (measured), at 4,426 (fitted)

With the backward pass attention is the faster one at all of these lengths.

Times are medians of 10 rounds up to 1,024 steps and of 5 beyond, after 3 rounds that aren't counted. In a round all
rivals take turns. Forward passes run in inference mode. Operations are counted as in `parallel.py`, three times as many
with the backward pass. What the mask throws away is counted too; fused attention skips part of it, so its GFLOP/s can
exceed what the machine does. Memory is the most that tensors take at one time, beyond inputs, weights and mask, which
are there before. The power of T that a time grows with at the end is that of the last four lengths.

Sources: Vaswani et al., "Attention is all you need" (2017), table 1; Dao et al., "FlashAttention" (2022), for attention
in blocks.
"""

# Longer than most scripts: five computations are timed, three of them in two passes, and three tables tell the times.

from functools import partial
from statistics import median

import torch
from torch.nn.functional import linear, scaled_dot_product_attention

from lab import devices, plots, script, timing
from parallel import SEED, WIDTH, attention, attention_flops, causal_mask, gru_flops

LENGTHS = [64, 128, 256, 512, 1024, 2048, 4096, 8192]  # steps
WARM_UP = 3  # rounds that aren't counted
RUNS, LONG, RUNS_OF_LONG = 10, 2048, 5  # rounds, fewer from this length on
LAST = 4  # lengths that a slope is fitted to
FLOPS = {"GRU": gru_flops, "attention": attention_flops, "fused attention": attention_flops}
PASSES = {"forward": 1, "forward and backward": 3}  # times the operations: two products backward for each one forward
INPUT_SIDE, SERIAL = "input side at once", "serial part"

# Memory isn't compared either: kernels differ between machines.
KINDS = {"*": "timing", "lengths.*": "exact", "width": "exact", "*.GFLOPs": "exact"}


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
        grad_output = torch.randn(inputs[0].shape, generator=torch.Generator().manual_seed(SEED)).to(device)
        functions["forward and backward", name] = partial(differentiate, function, inputs, grad_output)
    return functions


def differentiate(function, inputs, grad_output):
    return torch.autograd.grad(function(), inputs, grad_output)


def options(parser):
    parser.add_device()


def measure(arguments):
    device = devices.trusted(arguments.device)
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
    about = {"seeds": [SEED], "device": str(device), "lengths": LENGTHS, "width": WIDTH}
    about["parts"] = {name: rows["forward", name] for name in (INPUT_SIDE, SERIAL)}
    by_pass = {kind: {name: rows[kind, name] for name in FLOPS} for kind in PASSES}
    return about | {kind: {"rows": of} | growth(LENGTHS, times(of)) for kind, of in by_pass.items()}


def times(rows):
    return {name: [row["ms"] for row in series] for name, series in rows.items()}


def growth(lengths, ms):
    """How the times of one pass grow, and where attention's meet the GRU's."""
    models = {name: timing.fit(lengths, series, (0, 1) if name == "GRU" else (0, 1, 2)) for name, series in ms.items()}
    crossovers = {
        name: {
            "measured": timing.measured_crossover(lengths, ms["GRU"], ms[name]),
            "fitted": timing.fitted_crossover(models["GRU"], models[name]),
        }
        for name in ("attention", "fused attention")
    }
    slopes = {name: timing.slope(lengths[-LAST:], series[-LAST:]) for name, series in ms.items()}
    return {"models": models, "slopes": slopes, "crossovers": crossovers}


def tell(found):
    lengths, every_row = found["lengths"], list(found["parts"].values())
    yield f"ms, GFLOP/s achieved, MB held at most: width {found['width']}, batch 1, float32, {found['device']}"
    for kind in PASSES:
        rows = found[kind]["rows"]
        yield f"{kind + ', T':24}" + "".join(f"{name:>25}" for name in rows)
        for length, *row in zip(lengths, *rows.values(), strict=True):
            cells = [f"{c['ms']:11.2f}{c['GFLOP_per_s']:6.0f}{c['peak_bytes'] / 1e6:8.1f}" for c in row]
            yield f"{length:24,}" + "".join(cells)
        every_row += rows.values()
    spreads = [max(row["every_run_ms"]) / min(row["every_run_ms"]) for series in every_row for row in series]
    yield f"slowest run / fastest: {median(spreads):.2f} (median), {max(spreads):.2f} at most"

    yield ""
    yield f"the forward pass of a GRU, ms: {INPUT_SIDE}, {SERIAL}, both"
    parts = times(found["parts"]) | times(found["forward"]["rows"])
    for i, length in enumerate(lengths):
        yield f"{length:24,}" + "".join(f"{parts[name][i]:11.2f}" for name in (INPUT_SIDE, SERIAL, "GRU"))
    for kind in PASSES:
        yield ""
        yield f"{kind}, growing with T"
        yield from tell_growth(lengths, times(found[kind]["rows"]), found[kind])


def tell_growth(lengths, ms, found):
    for name, model in found["models"].items():
        c = {int(power): coefficient for power, coefficient in model.items()}
        off = max(abs(sum(c[p] * T**p for p in c) / t - 1) for T, t in zip(lengths, ms[name], strict=True))
        terms = " + ".join(f"{c[p]:.3g}{('', ' T', ' T²')[p]}" for p in c if c[p])
        slope = found["slopes"][name]
        yield f"{name:15}: T to the power of {slope:.2f} at the end; {terms} ms, at most {off:.0%} off"
    for name, at in found["crossovers"].items():
        measured = f"at {at['measured']:,.0f}" if at["measured"] else f"nowhere from {lengths[0]} to {lengths[-1]:,}"
        fitted = f"at {at['fitted']:,.0f}" if at["fitted"] else "nowhere"
        yield f"{name:15}: as slow as the GRU {measured} steps (measured), {fitted} (fitted)"


def draw(found):
    """Time against length for both passes, fastest to slowest run, with the slope of the last lengths."""
    figure, panels = plots.subplots(1, 2, size=(11, 4.4), sharey=True)
    lengths = found["lengths"]
    for axes, kind in zip(panels, PASSES, strict=True):
        for number, name in enumerate(FLOPS):
            every_run = [row["every_run_ms"] for row in found[kind]["rows"][name]]
            ms = [row["ms"] for row in found[kind]["rows"][name]]
            label = f"{name}, slope {found[kind]['slopes'][name]:.2f}"
            axes.loglog(lengths, ms, label=label, marker=plots.MARKERS[number], markersize=4)
            axes.fill_between(lengths, *zip(*((min(r), max(r)) for r in every_run), strict=True), alpha=0.2)
        axes.set(xlabel="length (steps)", title=kind)
        axes.set_xticks(lengths, [f"{length:,}" for length in lengths], fontsize=8)
        axes.minorticks_off()
        plots.label_ends(axes)
    panels[0].set_ylabel("ms: median, fastest to slowest run")
    return figure


if __name__ == "__main__":
    script.run(measure, tell, draw, options)
