"""What a scan buys in time: a minGRU against torch's GRU and attention, linear attention and a state-space layer.

Every layer of scan.py in every form, torch's GRU and causal attention (as written in parallel.py, and torch's fused
one) read noise of 256 to 8,192 steps, batch 1, width 256, float32: forward alone, and forward with backward (gradients
of the input and of all weights). Forms of one layer compute the same. Different layers don't, and they have different
numbers of parameters: the only question here is what they cost.

    python -m beyond.scan_lengths          2 min
    python -m beyond.scan_lengths --device cuda

Prints, near the end:

    at 8,192 steps minGRU, scan takes 0.154 of the time of minGRU, loop
    at 8,192 steps minGRU, scan takes 0.025 of the time of GRU
    at 8,192 steps linear attention, chunked takes 0.190 of the time of fused attention

Times are medians of 5 rounds in which all rivals take turns, and of 3 rounds at 4,096 steps and beyond, where a round
takes seconds; 3 rounds before them aren't counted. Forward passes run in inference mode. A slope is fitted to the last
three lengths. The recurrent form of linear attention isn't differentiated beyond 2,048 steps: its states alone would
take gigabytes.

Sources: those of scan.py and parallel_lengths.py.
"""

from functools import partial
from statistics import median

import torch

from beyond.parallel_lengths import fused_attention
from beyond.scan import forms
from lab import devices, plots, script, timing
from parallel import SEED, WIDTH, attention, causal_mask

PASSES = "forward", "forward and backward"
LENGTHS = [256, 512, 1024, 2048, 4096, 8192]  # steps
WARM_UP = 3  # rounds that aren't counted
RUNS, LONG, RUNS_OF_LONG = 5, 4096, 3  # rounds, fewer from this length on
STATE_BY_STATE, MOST_STATES = "linear attention, recurrent", 2048  # steps
LAST = 3  # lengths that a slope is fitted to
FASTER = [("minGRU, scan", "minGRU, loop"), ("minGRU, scan", "GRU"), ("linear attention, chunked", "fused attention")]

KINDS = {"*": "timing", "lengths.*": "exact", "width": "exact", "parameters.*": "exact"}


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


def times(length, device):
    """Every run's ms: pass → rival → list."""
    forward, backward = PASSES
    functions = {}
    for name, (function, inputs) in build(length, device).items():
        functions[forward, name] = torch.inference_mode()(function)
        if name != STATE_BY_STATE or length <= MOST_STATES:
            functions[backward, name] = partial(differentiate, function, inputs)
    runs = RUNS if length < LONG else RUNS_OF_LONG
    ms = timing.take_turns(functions, device, warm_up=WARM_UP, runs=runs)
    return {kind: {name: of for (own, name), of in ms.items() if own == kind} for kind in PASSES}


def layer_of(name):
    """The layer that a rival is a form of."""
    return name.partition(", ")[0].removeprefix("fused ")


def differentiate(function, inputs):
    """One pass forward and one backward, from a gradient of 1 at every output."""
    y = function()
    return torch.autograd.grad(y, inputs, torch.ones_like(y))


def measure(arguments):
    device = devices.trusted(arguments.device)
    measured = [times(length, device) for length in LENGTHS]
    weights = {layer_of(name): inputs[1:] for name, (_, inputs) in build(LENGTHS[0], device).items()}
    parameters = {layer: sum(w.numel() * (1 + w.is_complex()) for w in those) for layer, those in weights.items()}
    found = {"seeds": [SEED], "device": str(device), "lengths": LENGTHS, "width": WIDTH, "parameters": parameters}
    for kind in PASSES:
        runs = {name: [of[kind][name] for of in measured if name in of[kind]] for name in measured[0][kind]}
        ms = {name: [median(of) for of in series] for name, series in runs.items()}
        slopes = {name: timing.slope(LENGTHS[: len(series)][-LAST:], series[-LAST:]) for name, series in ms.items()}
        found[kind] = {"ms": ms, "every_run_ms": runs, "slopes": slopes}
    return found


def tell(found):
    yield "parameters: " + ", ".join(f"{layer} {count:,}" for layer, count in found["parameters"].items())
    yield ""
    lengths, longest = found["lengths"], found["lengths"][-1]
    for kind in PASSES:
        ms, slopes, runs = (found[kind][name] for name in ("ms", "slopes", "every_run_ms"))
        yield f"{kind}, batch 1, width {found['width']}, float32, {found['device']}: ms at T ="
        yield f"{'':27}" + "".join(f"{length:9,}" for length in lengths) + "    grows as"
        for name, series in ms.items():
            cells = [f"{value:9.2f}" for value in series] + [f"{'-':>9}"] * (len(lengths) - len(series))
            yield f"{name:27}{''.join(cells)}    T^{slopes[name]:.2f}"
        for fast, slow in FASTER:
            yield f"at {longest:,} steps {fast} takes {ms[fast][-1] / ms[slow][-1]:.3f} of the time of {slow}"
        spreads = [max(of) / min(of) for series in runs.values() for of in series]
        yield f"slowest run / fastest: {median(spreads):.2f} (median), {max(spreads):.2f} at most"
        yield ""


def draw(found):
    """Time against length for both passes: a colour for each layer, a dash for each of its forms."""
    figure, panels = plots.subplots(1, 2, size=(13, 5), sharey=True)
    for axes, kind in zip(panels, PASSES, strict=True):
        layers = {}  # how many forms of each have been drawn
        for name, ms in found[kind]["ms"].items():
            layer = layer_of(name)
            layers[layer] = layers.get(layer, 0) + 1
            style = {"color": plots.COLOURS[len(layers) - 1], "linestyle": plots.DASHES[layers[layer] - 1]}
            stops = len(ms) < len(found["lengths"])
            (line,) = axes.loglog(found["lengths"][: len(ms)], ms, label=" " if stops else name, **style)
            if stops:  # amid the others: its label goes above the line
                above = {"xytext": (0, 6), "textcoords": "offset points", "ha": "right"}
                axes.annotate(name, line.get_xydata()[-1], color=line.get_color(), fontsize=9, **above)
        axes.set(xlabel="length (steps)", title=kind)
        axes.set_xticks(found["lengths"], [f"{length:,}" for length in found["lengths"]], fontsize=8)
        axes.minorticks_off()
        plots.label_ends(axes)
    panels[0].set_ylabel("ms (median)")
    return figure


def options(parser):
    parser.add_device()


if __name__ == "__main__":
    script.run(measure, tell, draw, options)
