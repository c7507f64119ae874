"""Baum–Welch of layers/hidden_markov.py against hmmlearn's: one iteration with 16 states on the frozen training text.

Both start from the same model, on the same pieces of 1,000 characters, on one thread, and take turns. The lines say the
processor's time, the median of the rounds; the median and the range of the rounds' ratios; and the largest relative gap
between the transitions that the two arrive at.

    python -m benchmarks.hmm          20 s

Prints:

    ours      : 0.32 s an iteration
    hmmlearn's: 3.81 s an iteration
    11.8 times as fast (10.3 to 20.4); gap 2e-13
"""

import time
from statistics import median

import numpy as np
from hmmlearn.hmm import CategoricalHMM
from threadpoolctl import threadpool_limits

import corpus
from beyond.hmm import PIECE
from lab import script
from layers import hidden_markov

STATES = 16
WARM_UP, ROUNDS = 1, 7
SEED = 0

KINDS = {"*": "timing", "warm_up": "exact", "largest_relative_gap": "rounding"}


def ours(model, x):
    _, better = hidden_markov.em_step(model, hidden_markov.cut(x, PIECE))
    return better.transition


def hmmlearns(model, x):
    theirs = CategoricalHMM(STATES, n_iter=1, init_params="")
    theirs.startprob_, theirs.transmat_, theirs.emissionprob_ = model.start, model.transition, model.emission
    theirs.n_features = model.emission.shape[1]
    whole, rest = divmod(len(x), PIECE)
    theirs.fit(x[:, None], [PIECE] * whole + [rest] * (rest > 0))
    return theirs.transmat_


def measure(arguments):
    text = corpus.load()
    x = text.encode(text.train)
    model = hidden_markov.random_model(STATES, text.size, np.random.default_rng(SEED))
    seconds, transitions = {"ours": [], "hmmlearn's": []}, {}
    with threadpool_limits(1):
        for _ in range(WARM_UP + ROUNDS):
            for name, iterate in zip(seconds, (ours, hmmlearns), strict=True):
                start = time.process_time()
                transitions[name] = iterate(model, x)
                seconds[name].append(time.process_time() - start)
    rounds = zip(*(took[WARM_UP:] for took in seconds.values()), strict=True)
    return {
        "corpus": text.fingerprint,
        "seeds": [SEED],
        "warm_up": WARM_UP,
        "seconds": seconds,
        "ratios": [theirs / our for our, theirs in rounds],
        "largest_relative_gap": abs(transitions["ours"] / transitions["hmmlearn's"] - 1).max(),
    }


def tell(found):
    for name, took in found["seconds"].items():
        yield f"{name:10}: {median(took[found['warm_up'] :]):.2f} s an iteration"
    ratios, gap = found["ratios"], found["largest_relative_gap"]
    yield f"{median(ratios):.1f} times as fast ({min(ratios):.1f} to {max(ratios):.1f}); gap {gap:.0e}"


if __name__ == "__main__":
    script.run(measure, tell)
