"""The CTC loss of layers/ctc.py against torch's own on the CPU: forward and backward, from logits to their gradient.

A batch of 32, 200 frames, 40 labels, an alphabet of 28. Both do log_softmax first and take turns in one process, on one
thread (processor time) and on torch's default number of threads (wall time); each round gives one ratio, and what is
reported is their median and range, and the largest gap between the two gradients, in single precision.

    python -m benchmarks.ctc          10 s
"""

import time
from statistics import median

import torch

from lab import script
from layers.ctc import ctc_loss

BATCH, TIME, LENGTH, ALPHABET = 32, 200, 40, 28
WARM_UP, ROUNDS = 3, 30
SEED = 0
KINDS = {"*": "timing", "entries": "exact", "largest_gap": "rounding"}


def ours(logits, targets, frames, lengths):
    return ctc_loss(logits.log_softmax(2), targets, frames, lengths)


def torchs(logits, targets, frames, lengths):
    log_probs = logits.log_softmax(2).transpose(0, 1)
    return torch.nn.functional.ctc_loss(log_probs, targets, frames, lengths, reduction="none")


def timed(loss, clock, logits, *rest):
    start = clock()
    (gradient,) = torch.autograd.grad(loss(logits, *rest).sum(), logits)
    return gradient, clock() - start


def measure(arguments):
    generator = torch.Generator().manual_seed(SEED)
    logits = torch.randn(BATCH, TIME, ALPHABET, generator=generator, requires_grad=True)
    targets = torch.randint(1, ALPHABET, (BATCH, LENGTH), generator=generator)
    case = logits, targets, torch.full((BATCH,), TIME), torch.full((BATCH,), LENGTH)

    seconds = {}
    for threads, clock in (1, time.process_time), (torch.get_num_threads(), time.perf_counter):
        torch.set_num_threads(threads)
        took = {"ours": [], "torch's": []}
        for _ in range(WARM_UP + ROUNDS):
            gradients = []
            for name, loss in zip(took, (ours, torchs), strict=True):
                gradient, duration = timed(loss, clock, *case)
                took[name].append(duration)
                gradients.append(gradient)
        seconds[threads] = {name: durations[WARM_UP:] for name, durations in took.items()}
    gap = (gradients[0] - gradients[1]).abs().max().item()
    return {"seeds": [SEED], "seconds": seconds, "entries": logits.numel(), "largest_gap": gap}


def tell(found):
    for threads, took in found["seconds"].items():
        yield f"threads: {threads}"
        for name, durations in took.items():
            each = f"{1000 * min(durations):.1f} to {1000 * max(durations):.1f}"
            yield f"  {name:7}: {1000 * median(durations):.1f} ms (median of {len(durations)}), {each}"
        ratios = [a / b for a, b in zip(*took.values(), strict=True)]
        yield f"  ours / torch's: {median(ratios):.2f} (median), {min(ratios):.2f} to {max(ratios):.2f}"
    yield f"largest gap between {found['entries']:,} entries of the gradients: {found['largest_gap']:.1e}"


if __name__ == "__main__":
    script.run(measure, tell)
