"""Baum–Welch of hmm.py against hmmlearn's CategoricalHMM: one iteration with 16 states on the frozen training text.

Both start from the same model, on the same pieces of 1,000 characters, on one thread, and take turns; what is reported
is the processor's time, the median of the rounds, the median and range of the rounds' ratios, and the largest relative
gap between the transitions that the two arrive at.

    python benchmarks/hmm.py          20 s
"""

import os
import sys
import time
from pathlib import Path
from statistics import median

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read when numpy starts

import numpy as np
from hmmlearn.hmm import CategoricalHMM

ROOT = Path(__file__).resolve().parent.parent
# In place of this folder, where "hmm" would be this file.
sys.path[0] = str(ROOT)

import corpus  # noqa: E402
import hmm  # noqa: E402
from lab import script  # noqa: E402
from lab.results import Results  # noqa: E402

STATES = 16
WARM_UP, ROUNDS = 1, 7
SEED = 0


def ours(model, x):
    _, better = hmm.em_step(model, hmm.cut(x))
    return better.transition


def hmmlearns(model, x):
    theirs = CategoricalHMM(STATES, n_iter=1, init_params="")
    theirs.startprob_, theirs.transmat_, theirs.emissionprob_ = model.start, model.transition, model.emission
    theirs.n_features = model.emission.shape[1]
    whole, rest = divmod(len(x), hmm.PIECE)
    theirs.fit(x[:, None], [hmm.PIECE] * whole + [rest] * (rest > 0))
    return theirs.transmat_


def main(argv=None):
    results = Results("benchmark_hmm", script.Arguments(__doc__).parse_args(argv), seeds=[SEED])
    text = corpus.load()
    x = text.encode(text.train)
    model = hmm.random_model(STATES, text.size, np.random.default_rng(SEED))
    seconds, transitions = {"ours": [], "hmmlearn's": []}, {}
    for _ in range(WARM_UP + ROUNDS):
        for name, iterate in zip(seconds, (ours, hmmlearns), strict=True):
            start = time.process_time()
            transitions[name] = iterate(model, x)
            seconds[name].append(time.process_time() - start)
    for name, took in seconds.items():
        results.print(f"{name:10}: {median(took[WARM_UP:]):.2f} s an iteration")
    ratios = [theirs / our for our, theirs in zip(*(took[WARM_UP:] for took in seconds.values()), strict=True)]
    gap = abs(transitions["ours"] / transitions["hmmlearn's"] - 1).max()
    results.print(f"{median(ratios):.1f} times as fast ({min(ratios):.1f} to {max(ratios):.1f}); gap {gap:.0e}")
    results.record(seconds=seconds, ratios=ratios, largest_relative_gap=gap)
    results.save()


if __name__ == "__main__":
    script.run(main)
