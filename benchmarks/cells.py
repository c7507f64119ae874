"""The cells written by hand against torch's own layers: forward and backward, one thread, float32.

At the size of recall.py the inputs are vectors; at the size of charlm.py they are characters, which torch's layers get
as rows of an embedding and ours as a table with ids. Rivals take turns; what is reported is the processor's time, the
median of the rounds, and the median and range of the rounds' ratios.

    python benchmarks/cells.py          15 s
"""

import sys
import time
from pathlib import Path
from statistics import median

import torch
from torch import nn

ROOT = Path(__file__).resolve().parent.parent
sys.path[:1] = [str(ROOT)]  # in place of this folder, where "cells" would be this file

import cells  # noqa: E402
from lab import script  # noqa: E402
from lab.results import Results  # noqa: E402

ROUNDS, WARM_UP = 11, 3
SEED = 0
LAYERS = [nn.RNN, nn.GRU, nn.LSTM]
SIZES = {  # width, batch, steps, size of an input, vocabulary
    "recall.py": (64, 64, 160, 2, None),
    "charlm.py": (256, 64, 128, 64, 148),
}


def rivals(kind, width, batch, steps, inputs, vocabulary):
    """A forward and a backward pass, each way, as functions."""
    layer, up = kind(inputs, width), torch.randn(steps, batch, width)
    if vocabulary:
        rows = torch.randn(vocabulary, inputs, requires_grad=True)
        ids = torch.randint(vocabulary, (steps, batch))
        forward = {
            "torch": lambda: layer(nn.functional.embedding(ids, rows)),
            "by hand": lambda: cells.run(layer, rows, ids=ids),
        }
    else:
        x = torch.randn(steps, batch, inputs)
        forward = {"torch": lambda: layer(x), "by hand": lambda: cells.run(layer, x)}
    return {name: lambda run=run: run()[0].backward(up) for name, run in forward.items()}


def main(argv=None):
    results = Results("benchmark_cells", script.Arguments(__doc__).parse_args(argv), seeds=[SEED])
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    rows = []
    for script_name, size in SIZES.items():
        results.print(f"ms, width {size[0]}, batch {size[1]}, {size[2]} steps: {script_name}")
        for kind in LAYERS:
            seconds = {name: [] for name in ("torch", "by hand")}
            passes = rivals(kind, *size)
            for number in range(WARM_UP + ROUNDS):
                for name, run in passes.items():
                    start = time.process_time()
                    run()
                    seconds[name] += [time.process_time() - start] * (number >= WARM_UP)
            ratios = [slow / quick for slow, quick in zip(*seconds.values(), strict=True)]
            slow, quick = (median(took) * 1e3 for took in seconds.values())
            results.print(
                f"{kind.__name__:4}  torch {slow:6.1f}, by hand {quick:6.1f}; "
                f"ratio {median(ratios):.2f}, {min(ratios):.2f} to {max(ratios):.2f}"
            )
            rows.append({"script": script_name, "cell": kind.__name__, "seconds": seconds, "ratios": ratios})
    results.record(rows=rows)
    results.save()


if __name__ == "__main__":
    script.run(main)
