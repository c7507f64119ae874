"""What counting for Kneser–Ney costs as the text grows: time and memory of n-grams and models, and time of scoring.

The longer texts are the training text and, after it, what the model with the longest context writes. Peak memory is
that of all arrays together. For each million characters the longer texts take more time, since larger tables fit the
processor's caches less well, and less memory, since a longer text repeats itself more.

    python -m benchmarks.kneser_ney_scale          30 s

Prints first, before a line for each length:

    written by the model: 8,994,816 characters in 7.5 s
"""

import time
import tracemalloc

import numpy as np

import corpus
from kneser_ney import CONTEXTS, levels, modified_discounts, of_context
from lab import script
from layers.ngrams import count_ngrams, sample, score

SCALES = [1, 4, 16]  # times the length of the training text
STREAMS = 4096  # texts that are written side by side to make the longer ones
SEED = 0

KINDS = {"*": "corpus", "scales.*": "exact", "runs.*.peak_bytes": "timing"}


def build(text, V):
    ngrams = count_ngrams(text, V, max(CONTEXTS) + 1)
    return ngrams, levels(ngrams, modified_discounts, V)


def longer_text(train, V):
    """The training text and, after it, what the model writes; how many characters it wrote, and in what time."""
    model = of_context(*build(train, V)[1], max(CONTEXTS))
    start = time.perf_counter()
    steps = -(-len(train) * (max(SCALES) - 1) // STREAMS)
    written = sample(model, train, V, STREAMS, steps, np.random.default_rng(SEED))
    about = {"characters": written.size, "seconds": time.perf_counter() - start}
    return np.append(train.astype(written.dtype), written), about


def cost(text, validation, V):
    tracemalloc.start()
    build(text, V)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    start = time.perf_counter()
    ngrams, model = build(text, V)
    built = time.perf_counter()
    for _ in score(*model, validation, V):
        pass
    scored = time.perf_counter()
    return {
        "characters": len(text),
        "ngrams": sum(len(key) for key, _, _ in ngrams),
        "seconds": built - start,
        "peak_bytes": peak_bytes,
        "scoring_seconds": scored - built,
    }


def measure(arguments):
    text = corpus.load_to_score(arguments.data)
    train, validation, V = text.encode(text.train), text.encode(text.validation), text.size
    longest, written = longer_text(train, V)
    return {
        "corpus": text.fingerprint,
        "seeds": [SEED],
        "scales": SCALES,
        "written": written,
        "scored_characters": len(validation),
        "runs": [cost(longest[: scale * len(train)], validation, V) for scale in SCALES],
    }


def tell(found):
    written = found["written"]
    yield f"written by the model: {written['characters']:,} characters in {written['seconds']:.1f} s"
    for scale, run in zip(found["scales"], found["runs"], strict=True):
        millions = run["characters"] / 1e6
        yield (
            f"{scale:>2}x the text, {millions:.1f} million characters: {run['seconds'] / millions:.2f} s and"
            f" {run['peak_bytes'] / 1e6 / millions:.0f} MB for each million; {run['ngrams']:,} n-grams;"
            f" {1e6 * run['scoring_seconds'] / found['scored_characters']:.1f} µs to score a character"
            " with every context"
        )


def options(parser):
    corpus.add_argument(parser)


if __name__ == "__main__":
    script.run(measure, tell, options=options)
