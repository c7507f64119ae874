"""N-grams of characters as sorted arrays: counting them, finding them, and models that go from each length to the next.

A text is an array of numbers below V. The n-grams of each length are numbered in alphabetical order. An n-gram is found
by its key: the number of its history (all but its last character) times V, plus its last character. Keys ascend as the
numbers do, so one binary search finds an n-gram once its history is known. However long the n-grams are, no key is
above V times the length of the text.

A model is a list of levels, one for each length of history. A level says how probable c is after a history h, given how
probable it is after the shorter history h' (h without its first character):

    p(c | h) = alpha(hc) + gamma(h) · p(c | h')

Below the empty history every character has 1/V. What alpha and gamma are is up to the smoothing (kneser_ney.py).
"""

from typing import NamedTuple

import numpy as np


class Ngrams(NamedTuple):
    """The n-grams of one length that a text holds, numbered in alphabetical order. Each array is (n-grams,)."""

    key: np.ndarray  # the number of its history · V + its last character: ascending
    count: np.ndarray  # how often it occurs
    suffix: np.ndarray  # the number of what is left without its first character


def count_ngrams(text, V, longest):
    """The n-grams of a text of numbers below V, for n from 1 to ``longest``, from one sort of its positions."""
    N = len(text)
    padded = np.zeros(N + longest, np.min_scalar_type(V))  # 0 stands beyond the end
    padded[:N] = text
    padded[:N] += 1
    # Sorted stably by each of the following characters, the furthest first, positions end up in the alphabetical order
    # of what follows them, where equal n-grams stand together, for every n.
    order = np.arange(N)
    for n in reversed(range(longest)):
        order = order[np.argsort(padded[n:][order], kind="stable")]
    rank = np.zeros(N + 1, np.int64)
    rank[order] = np.arange(N)
    rank_of_next = rank[order + 1]
    ngrams = []
    number = np.zeros(N, np.int64)  # of the n-gram of each rank; the empty one, n = 0, has number 0
    differs = np.arange(N) == 0  # from the n-gram one rank before
    for n in range(1, longest + 1):
        last = padded[n - 1 :][order]
        differs[1:] |= last[1:] != last[:-1]
        first = np.flatnonzero(differs)
        count = np.diff(first, append=N)
        inside = last[first] > 0
        first, count = first[inside], count[inside]
        ngrams.append(Ngrams(number[first] * V + last[first] - 1, count, number[rank_of_next[first]]))
        starts = np.zeros(N, bool)
        starts[first] = True
        number = np.cumsum(starts) - 1
    return ngrams


class Level(NamedTuple):
    """p(c | h) = alpha(hc) + gamma(h) · p(c | h') for all histories h of one length.

    Behind the last n-gram and the last history stand a 0 and a 1: number -1, never seen, leaves everything to h'.
    """

    key: np.ndarray  # (n-grams,)
    alpha: np.ndarray  # (n-grams + 1,)
    gamma: np.ndarray  # (histories + 1,)


def find(key, history, character, V):
    """The numbers of n-grams from those of their histories and their last characters; -1 if never seen."""
    wanted = history * V + character
    if not len(key):
        return np.full_like(wanted, -1)
    order = np.argsort(wanted)  # asked in ascending order, a search ends near where the one before did
    at = np.empty_like(order)
    at[order] = np.searchsorted(key, wanted[order])
    at[at == len(key)] = -1
    return np.where(key[at] == wanted, at, -1)


def score(longest, below, text, V):
    """The probability of every character of a text, from the models with contexts of 0, 1, 2, … characters in turn.

    A model with a context of n has the level ``longest[n]`` on top of the first n of ``below``.
    """
    p = np.full(len(text), 1 / V)  # from the histories so far
    number = np.zeros(len(text) + 1, np.int64)  # of the n-gram that starts at each position
    for n, top in enumerate(longest):
        history, number = number[:-1], find(top.key, number[:-1], text[n:], V)
        yield np.append(p[:n], top.alpha[number] + top.gamma[history] * p[n:])
        if n < len(below):
            p[n:] = below[n].alpha[number] + below[n].gamma[history] * p[n:]


def histories(model, text, V):
    """The numbers of the last 0, 1, 2, … characters of a text, as far back as the model looks; -1 if never seen."""
    number = np.zeros(len(text) + 1, np.int64)
    last = [0]
    for n, (key, _, _) in enumerate(model[:-1]):
        number = find(key, number[:-1], text[n:], V)
        last.append(number[-1] if len(number) else -1)
    return np.array(last)


def probabilities(model, text, V):
    """The probability of each of the V characters after a text."""
    p = np.full(V, 1 / V)
    for (key, alpha, gamma), history in zip(model, histories(model, text, V), strict=True):
        p = alpha[find(key, history, np.arange(V), V)] + gamma[history] * p
    return p


def sample(model, text, V, streams, steps, rng):
    """What the model writes after a text, in several streams side by side: (streams, steps).

    A character takes one uniform number u. If u is below what the longest history's own n-grams share out, it picks one
    of them; otherwise the rest, from there to 1, is stretched to [0, 1) again and asks the next shorter history.
    """
    shares = [np.append(0, np.cumsum(alpha[:-1])) for _, alpha, _ in model]
    starts = [np.searchsorted(key, np.arange(len(gamma)) * V) for key, _, gamma in model]  # of a history's n-grams
    seen = np.repeat(histories(model, text, V)[:, None], streams, axis=1)  # (levels, streams)
    written = np.empty((steps, streams), np.min_scalar_type(V))
    for character in written:
        waiting, u = np.arange(streams), rng.random(streams)
        for n in reversed(range(len(model))):
            key, _, gamma = model[n]
            history = seen[n, waiting]
            own = 1 - gamma[history]
            here = u < own
            start, end = starts[n][history[here]], starts[n][history[here] + 1]
            ngram = np.searchsorted(shares[n], shares[n][start] + u[here], side="right") - 1
            character[waiting[here]] = key[np.minimum(ngram, end - 1)] % V
            waiting, u = waiting[~here], (u - own)[~here] / gamma[history[~here]]
        character[waiting] = np.minimum(u * V, V - 1)
        for n in reversed(range(1, len(model))):
            seen[n] = find(model[n - 1].key, seen[n - 1], character, V)
    return written.T
