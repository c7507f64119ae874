"""The cells written by hand against torch's own layers: forward and backward, one thread, float32.

At the size of recall.py the inputs are vectors; at the size of charlm.py they are characters, which torch's layers get
as rows of an embedding and ours as a table with ids. Rivals take turns; what is reported is the processor's time, the
median of the rounds, and the median and range of the rounds' ratios.

    python -m benchmarks.cells          15 s
"""

import time
from dataclasses import asdict, dataclass
from statistics import median

import torch
from torch import nn

from lab import script
from layers import cells

ROUNDS, WARM_UP = 11, 3
SEED = 0
LAYERS = [nn.RNN, nn.GRU, nn.LSTM]

KINDS = {"*": "timing"}


@dataclass(frozen=True)
class Size:
    width: int
    batch: int
    steps: int
    inputs: int  # numbers in an input, or in the row that stands for a character
    vocabulary: int | None = None  # None: inputs aren't characters


SIZES = {"recall.py": Size(64, 64, 160, 2), "charlm.py": Size(256, 64, 128, 64, vocabulary=148)}


def rivals(kind, size):
    """A forward and a backward pass, each way, as functions."""
    layer, grad_output = kind(size.inputs, size.width), torch.randn(size.steps, size.batch, size.width)
    if size.vocabulary:
        rows = torch.randn(size.vocabulary, size.inputs, requires_grad=True)
        ids = torch.randint(size.vocabulary, (size.steps, size.batch))
        forward = {
            "torch": lambda: layer(nn.functional.embedding(ids, rows)),
            "by hand": lambda: cells.run(layer, rows, ids=ids),
        }
    else:
        x = torch.randn(size.steps, size.batch, size.inputs)
        forward = {"torch": lambda: layer(x), "by hand": lambda: cells.run(layer, x)}
    return {name: lambda run=run: run()[0].backward(grad_output) for name, run in forward.items()}


def measure(arguments):
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    rows = []
    for name, size in SIZES.items():
        for kind in LAYERS:
            seconds = {rival: [] for rival in ("torch", "by hand")}
            passes = rivals(kind, size)
            for number in range(WARM_UP + ROUNDS):
                for rival, run in passes.items():
                    start = time.process_time()
                    run()
                    seconds[rival] += [time.process_time() - start] * (number >= WARM_UP)
            ratios = [slow / quick for slow, quick in zip(*seconds.values(), strict=True)]
            rows.append({"script": name, "cell": kind.__name__, "seconds": seconds, "ratios": ratios})
    return {"seeds": [SEED], "sizes": {name: asdict(size) for name, size in SIZES.items()}, "rows": rows}


def tell(found):
    for name, size in found["sizes"].items():
        yield f"ms, width {size['width']}, batch {size['batch']}, {size['steps']} steps: {name}"
        for row in found["rows"]:
            if row["script"] == name:
                slow, quick = (median(took) * 1e3 for took in row["seconds"].values())
                low, middle, high = min(row["ratios"]), median(row["ratios"]), max(row["ratios"])
                yield (
                    f"{row['cell']:4}  torch {slow:6.1f}, by hand {quick:6.1f};"
                    f" ratio {middle:.2f}, {low:.2f} to {high:.2f}"
                )


if __name__ == "__main__":
    script.run(measure, tell)
