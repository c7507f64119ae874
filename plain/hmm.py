"""A hidden Markov model as its definition says, without any care for speed: what layers/hidden_markov.py is held to."""

from itertools import product

import numpy as np


def joint(model, path, x):
    """The probability of a path of states and the symbols together."""
    p = 1.0
    for t, (state, symbol) in enumerate(zip(path, x, strict=True)):
        p *= model.transition[path[t - 1], state] if t else model.start[state]
        p *= model.emission[state, symbol]
    return p


def all_paths(model, x):
    """Every path of states with its joint probability."""
    return {path: joint(model, path, x) for path in product(range(len(model.start)), repeat=len(x))}


def posterior(model, x):
    """P(x), and from all paths: γ (time, N) and ξ summed over time (N, N)."""
    paths = all_paths(model, x)
    total = sum(paths.values())
    N = len(model.start)
    gamma, xi = np.zeros((len(x), N)), np.zeros((N, N))
    for path, p in paths.items():
        for t, state in enumerate(path):
            gamma[t, state] += p / total
            if t:
                xi[path[t - 1], state] += p / total
    return total, gamma, xi


def log_sum_exp(values):
    largest = max(values)
    if largest == -np.inf:
        return -np.inf
    return largest + np.log(sum(np.exp(value - largest) for value in values))


def log_forward_backward(model, x):
    """log P(x) and γ, all in logarithms: unscaled α and β, which sum to nothing in particular."""
    with np.errstate(divide="ignore"):
        start, A, B = np.log(model.start), np.log(model.transition), np.log(model.emission)
    N = len(start)
    alpha, beta = np.empty((len(x), N)), np.zeros((len(x), N))
    alpha[0] = start + B[:, x[0]]
    for t in range(1, len(x)):
        for j in range(N):
            alpha[t, j] = log_sum_exp([alpha[t - 1, i] + A[i, j] for i in range(N)]) + B[j, x[t]]
    for t in range(len(x) - 2, -1, -1):
        for i in range(N):
            beta[t, i] = log_sum_exp([A[i, j] + B[j, x[t + 1]] + beta[t + 1, j] for j in range(N)])
    log_p = log_sum_exp(alpha[-1])
    return log_p, np.exp(alpha + beta - log_p)
