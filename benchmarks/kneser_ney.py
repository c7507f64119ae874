"""Kneser–Ney n-grams: arrays against dictionaries, counting the frozen text and scoring all seven contexts.

Both count n-grams of 1 to 8 characters once and score every validation character with each of the seven models. They
take turns in one process; each round gives one ratio, and what is reported is their median and range, and the largest
relative gap between the probabilities that the two give.

    python benchmarks/kneser_ney.py          40 s
"""

import sys
import time
from pathlib import Path
from statistics import median

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import plain_kneser_ney  # noqa: E402

import corpus  # noqa: E402
import kneser_ney  # noqa: E402
from lab import script  # noqa: E402
from lab.results import Results  # noqa: E402

ROUNDS = 5


def fast(text, train, validation):
    ngrams = kneser_ney.count_ngrams(train, text.size, max(kneser_ney.CONTEXTS) + 1)
    model = kneser_ney.levels(ngrams, kneser_ney.modified_discounts, text.size)
    return list(kneser_ney.score(*model, validation, text.size))[1:]


def plain(text):
    longest = max(kneser_ney.CONTEXTS) + 1
    model = plain_kneser_ney.PlainKneserNey(text.train, text.size, longest, plain_kneser_ney.modified_discounts)
    return [model.probabilities(text.validation, context) for context in kneser_ney.CONTEXTS]


def timed(compute, *arguments):
    start = time.perf_counter()
    p = compute(*arguments)
    return np.array(p), time.perf_counter() - start


def main(argv=None):
    results = Results("benchmark_kneser_ney", script.Arguments(__doc__).parse_args(argv))
    text = corpus.load()
    train, validation = text.encode(text.train), text.encode(text.validation)
    timed(fast, text, train, validation)  # the first use of memory and of numpy's functions is slower
    seconds = {"plain": [], "fast": []}
    for _ in range(ROUNDS):
        ours, took = timed(fast, text, train, validation)
        seconds["fast"].append(took)
        reference, took = timed(plain, text)
        seconds["plain"].append(took)
    ratios = [slow / quick for slow, quick in zip(*seconds.values(), strict=True)]
    gap = np.abs(ours / reference - 1).max()
    for name, took in seconds.items():
        results.print(f"{name:<5}: {median(took):.2f} s (median of {ROUNDS}), {min(took):.2f} to {max(took):.2f}")
    results.print(f"plain / fast: {median(ratios):.1f} (median), {min(ratios):.1f} to {max(ratios):.1f}")
    results.print(f"largest relative gap between {ours.size:,} probabilities: {gap:.1e}")
    results.record(seconds=seconds, ratios=ratios, largest_gap=gap)
    results.save()


if __name__ == "__main__":
    script.run(main)
