"""What a scan buys in time: a minGRU against torch's GRU and attention, linear attention and a state-space layer.

Every layer of scan.py in every form, torch's GRU and causal attention (as written in parallel.py, and torch's fused
one) read noise of 256 to 8,192 steps, batch 1, width 256, float32: forward alone, and forward with backward (gradients
of the input and of all weights). Forms of one layer compute the same (scan.py), layers don't, nor have they equally
many parameters: here it is only asked what they take.

    python scan_lengths.py          2 min
    python scan_lengths.py --device cuda

Prints, near the end:

    at 8,192 steps minGRU, scan takes 0.156 of the time of minGRU, loop
    at 8,192 steps minGRU, scan takes 0.026 of the time of GRU
    at 8,192 steps linear attention, chunked takes 0.292 of the time of fused attention

Times are medians of 5 rounds in which all rivals take turns, 3 rounds at 4,096 steps and beyond, where a round takes
seconds; the 3 rounds before them aren't counted. Forward passes run in inference mode. Slopes are those of the last
three lengths. The recurrent form of linear attention isn't differentiated beyond 2,048 steps: its states alone would
take gigabytes.

Sources: those of scan.py and parallel_lengths.py.
"""

from functools import partial
from statistics import median

import torch

from lab import devices, plots, script, timing
from lab.results import Results
from parallel import SEED, WARM_UP, WIDTH, attention, causal_mask
from parallel_lengths import fused_attention
from scan import forms

PASSES = "forward", "forward and backward"
LENGTHS = [256, 512, 1024, 2048, 4096, 8192]  # steps
RUNS, LONG, RUNS_OF_LONG = 5, 4096, 3  # rounds, fewer from this length on
STATE_BY_STATE, MOST_STATES = "linear attention, recurrent", 2048  # steps
LAST = 3  # lengths that a slope is fitted to
FASTER = [("minGRU, scan", "minGRU, loop"), ("minGRU, scan", "GRU"), ("linear attention, chunked", "fused attention")]


def build(length, device):
    """The layers of scan.py, and beside them the GRU and attention on inputs of the same size."""
    torch.manual_seed(SEED)
    gru = torch.nn.GRU(WIDTH, WIDTH, batch_first=True).to(device)
    x = torch.randn(1, length, WIDTH).to(device).requires_grad_()  # (batch, time, width)
    W = (torch.randn(3, WIDTH, WIDTH) / WIDTH**0.5).to(device).requires_grad_()
    mask = causal_mask(length).to(device)
    return {
        "GRU": (lambda: gru(x)[0], [x, *gru.parameters()]),
        "attention": (lambda: attention(x, *W, mask), [x, W]),
        "fused attention": (lambda: fused_attention(x, *W), [x, W]),
        **forms(length, WIDTH, device),
    }


def measure(length, device):
    """Every run's ms: pass → rival → list."""
    forward, backward = PASSES
    functions = {}
    for name, (function, inputs) in build(length, device).items():
        functions[forward, name] = torch.inference_mode()(function)
        if name != STATE_BY_STATE or length <= MOST_STATES:
            functions[backward, name] = partial(differentiate, function, inputs)
    runs = RUNS if length < LONG else RUNS_OF_LONG
    times = timing.take_turns(functions, device, warm_up=WARM_UP, runs=runs)
    return {kind: {name: ms for (of, name), ms in times.items() if of == kind} for kind in PASSES}


def layer_of(name):
    """The layer that a rival is a form of."""
    return name.partition(", ")[0].removeprefix("fused ")


def differentiate(function, inputs):
    """One pass forward and one backward, from a gradient of 1 at every output."""
    y = function()
    return torch.autograd.grad(y, inputs, torch.ones_like(y))


def main(argv=None):
    parser = script.Arguments(__doc__)
    devices.add_arguments(parser)
    arguments = parser.parse_args(argv)
    device = devices.pick(arguments.device)
    devices.check_recurrent(device)
    results = Results("scan_lengths", arguments, seeds=[SEED], device=device)
    measured = [measure(length, device) for length in LENGTHS]
    weights = {layer_of(name): inputs[1:] for name, (_, inputs) in build(LENGTHS[0], device).items()}
    parameters = {layer: sum(w.numel() * (1 + w.is_complex()) for w in those) for layer, those in weights.items()}
    results.print("parameters: " + ", ".join(f"{layer} {count:,}" for layer, count in parameters.items()) + "\n")
    results.record(lengths=LENGTHS, width=WIDTH, parameters=parameters)
    for kind in PASSES:
        runs = {name: [of[kind][name] for of in measured if name in of[kind]] for name in measured[0][kind]}
        report(results, kind, runs)
    results.save(draw)


def report(results, kind, runs):
    """Print and record one pass, given every run's ms: rival → list for each length."""
    ms = {name: [median(times) for times in series] for name, series in runs.items()}
    slopes = {name: timing.slope(LENGTHS[: len(series)][-LAST:], series[-LAST:]) for name, series in ms.items()}
    results.print(f"{kind}, batch 1, width {WIDTH}, float32, {results.device}: ms at T =")
    results.print(f"{'':27}" + "".join(f"{length:9,}" for length in LENGTHS) + "    grows as")
    for name, series in ms.items():
        cells = [f"{value:9.2f}" for value in series] + [f"{'-':>9}"] * (len(LENGTHS) - len(series))
        results.print(f"{name:27}{''.join(cells)}    T^{slopes[name]:.2f}")
    for fast, slow in FASTER:
        results.print(f"at {LENGTHS[-1]:,} steps {fast} takes {ms[fast][-1] / ms[slow][-1]:.3f} of the time of {slow}")
    spreads = [max(times) / min(times) for series in runs.values() for times in series]
    results.print(f"slowest run / fastest: {median(spreads):.2f} (median), {max(spreads):.2f} at most\n")
    results.record(**{kind: {"ms": ms, "every_run_ms": runs, "slopes": slopes}})


def draw(results):
    """Time against length for both passes: a colour for each layer, a dash for each of its forms."""
    figure, panels = plots.subplots(1, 2, size=(13, 5), sharey=True)
    for axes, kind in zip(panels, PASSES, strict=True):
        layers = {}  # how many forms of each have been drawn
        for name, ms in results[kind]["ms"].items():
            layer = layer_of(name)
            layers[layer] = layers.get(layer, 0) + 1
            style = {"color": plots.COLOURS[len(layers) - 1], "linestyle": plots.DASHES[layers[layer] - 1]}
            stops = len(ms) < len(results["lengths"])
            (line,) = axes.loglog(results["lengths"][: len(ms)], ms, label=" " if stops else name, **style)
            if stops:  # amid the others: its label goes above the line
                place = {"xytext": (0, 6), "textcoords": "offset points", "ha": "right"}
                axes.annotate(name, line.get_xydata()[-1], color=line.get_color(), fontsize=9, **place)
        axes.set(xlabel="length (steps)", title=kind)
        axes.set_xticks(results["lengths"], [f"{length:,}" for length in results["lengths"]], fontsize=8)
        axes.minorticks_off()
        plots.label_ends(axes)
    panels[0].set_ylabel("ms (median)")
    return figure


if __name__ == "__main__":
    script.run(main)
