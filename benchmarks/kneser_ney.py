"""Kneser–Ney n-grams: arrays against dictionaries, counting the frozen text and scoring all seven contexts.

Both count n-grams of 1 to 8 characters once and score every validation character with each of the seven models. They
take turns in one process. Each round gives one ratio; the lines say the median and the range of these, and the largest
relative gap between the probabilities that the two give.

    python -m benchmarks.kneser_ney          40 s

Prints:

    plain: 5.01 s (median of 5), 4.96 to 5.21
    fast : 0.17 s (median of 5), 0.16 to 0.19
    plain / fast: 29.8 (median), 26.1 to 32.0
    largest relative gap between 400,960 probabilities: 1.8e-15
"""

import time
from statistics import median

import numpy as np

import corpus
import kneser_ney
from lab import script
from layers.ngrams import count_ngrams, score
from plain import kneser_ney as plain_kneser_ney

ROUNDS = 5

KINDS = {"*": "timing", "probabilities": "corpus", "largest_gap": "rounding"}


def fast(text, train, validation):
    ngrams = count_ngrams(train, text.size, max(kneser_ney.CONTEXTS) + 1)
    model = kneser_ney.levels(ngrams, kneser_ney.modified_discounts, text.size)
    return list(score(*model, validation, text.size))[1:]


def plain(text):
    longest = max(kneser_ney.CONTEXTS) + 1
    model = plain_kneser_ney.KneserNey(text.train, text.size, longest, plain_kneser_ney.modified_discounts)
    return [model.probabilities(text.validation, context) for context in kneser_ney.CONTEXTS]


def timed(compute, *arguments):
    start = time.perf_counter()
    p = compute(*arguments)
    return np.array(p), time.perf_counter() - start


def measure(arguments):
    text = corpus.load()
    train, validation = text.encode(text.train), text.encode(text.validation)
    timed(fast, text, train, validation)  # the first use of memory and of numpy's functions is slower
    seconds = {"plain": [], "fast": []}
    for _ in range(ROUNDS):
        ours, took = timed(fast, text, train, validation)
        seconds["fast"].append(took)
        reference, took = timed(plain, text)
        seconds["plain"].append(took)
    return {
        "corpus": text.fingerprint,
        "seconds": seconds,
        "ratios": [slow / quick for slow, quick in zip(*seconds.values(), strict=True)],
        "probabilities": ours.size,
        "largest_gap": np.abs(ours / reference - 1).max(),
    }


def tell(found):
    for name, took in found["seconds"].items():
        yield f"{name:<5}: {median(took):.2f} s (median of {len(took)}), {min(took):.2f} to {max(took):.2f}"
    ratios = found["ratios"]
    yield f"plain / fast: {median(ratios):.1f} (median), {min(ratios):.1f} to {max(ratios):.1f}"
    yield f"largest relative gap between {found['probabilities']:,} probabilities: {found['largest_gap']:.1e}"


if __name__ == "__main__":
    script.run(measure, tell)
