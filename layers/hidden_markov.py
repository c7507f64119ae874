"""A hidden Markov model of symbols: how probable a sequence is, what its states were, and how to learn the tables.

A state that nobody sees moves by fixed probabilities A, and each state has its own probabilities B of what it writes:

    P(x, s) = π[s_1] B[s_1, x_1] · A[s_1, s_2] B[s_2, x_2] · A[s_2, s_3] B[s_3, x_3] · …

``forward`` sums that over all paths of states, ``viterbi`` finds the largest term, and ``baum_welch`` improves π, A and
B: it counts how often each state, step and symbol is expected, given the sequences, and takes the relative frequencies.
In code π, A and B are ``start``, ``transition`` and ``emission``.

Sources: Baum, Petrie, Soules and Weiss (1970); Rabiner, "A tutorial on hidden Markov models" (1989). The backward pass
is written with conditional probabilities (Kitagawa 1987) in place of Rabiner's β, whose scaled values can overflow
where a state can't be reached.

Over 150 lines because it is one model with all that is ever asked of it.
"""

import warnings
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

TINY = np.finfo(float).tiny  # what 0 is replaced by where 0 is divided by it


@dataclass(frozen=True)
class HMM:
    """Probabilities of the first state (N,), of a state after a state (N, N), of a symbol in a state (N, V)."""

    start: np.ndarray
    transition: np.ndarray
    emission: np.ndarray

    def __post_init__(self):
        N, V = self.emission.shape
        for name, shape in ("start", (N,)), ("transition", (N, N)), ("emission", (N, V)):
            table = getattr(self, name)
            if table.shape != shape:
                raise ValueError(f"{name} has the shape {table.shape}; beside that emission it has to be {shape}")
            for row, probabilities in enumerate(np.atleast_2d(table)):
                if not (abs(probabilities.sum() - 1) < 1e-9 and probabilities.min() >= 0):
                    raise ValueError(
                        f"row {row} of {name} has to hold probabilities that sum to 1: "
                        f"it sums to {probabilities.sum():.6g}, its smallest is {probabilities.min():.6g}"
                    )


class Pieces:
    """Independent sequences of symbols, laid out so that one step goes through all of them.

    ``x`` holds the first symbol of each, then the second of each, and so on, and ``steps[t]`` says where those at t
    are. The longest comes first: a sequence that has ended is missing at the end of a step.
    """

    def __init__(self, sequences):
        sequences = sorted((np.asarray(x, dtype=int) for x in sequences if len(x)), key=len, reverse=True)
        t = np.concatenate([np.arange(len(x)) for x in sequences] + [np.empty(0, int)])
        self.x = np.concatenate([*sequences, np.empty(0, int)])[np.argsort(t, kind="stable")]
        if (self.x < 0).any():
            raise ValueError(f"symbols are numbers from 0, not {self.x.min()}")
        ends = np.cumsum([0, *np.bincount(t)])
        self.steps = [slice(begin, end) for begin, end in pairwise(ends)]
        self.count = len(sequences)


def check_symbols(model, x):
    """Raise ValueError for a symbol that the model doesn't know."""
    V = model.emission.shape[1]
    if len(x) and (np.min(x) < 0 or np.max(x) >= V):
        raise ValueError(f"symbols are numbers from 0 to {V - 1}, not from {np.min(x)} to {np.max(x)}")


def cut(x, length):
    """A long sequence in pieces of that length, the last one shorter."""
    return Pieces([x[begin : begin + length] for begin in range(0, len(x), length)])


def forward(model, pieces):
    """How probable each state is after the symbols so far, and each symbol after those before it: (T, N) and (T,).

    That is α scaled to a sum of 1 at every step, without which it would underflow, and the factors c that do it, whose
    product is the probability of the sequence. Both lie as in ``pieces.x``.
    """
    check_symbols(model, pieces.x)
    alpha = np.take(np.ascontiguousarray(model.emission.T), pieces.x, axis=0)  # b(x_t), soon α_t
    c = np.empty(len(pieces.x))
    prior = np.tile(model.start, (pieces.count, 1))  # (piece, N)
    for here in pieces.steps:
        alpha_t, c_t = alpha[here], c[here]
        alpha_t *= prior[: len(c_t)]
        np.add.reduce(alpha_t, axis=1, out=c_t)
        alpha_t /= np.maximum(c_t, TINY)[:, None]  # after a symbol that can't be, α is 0, and so is c from there on
        np.matmul(alpha_t, model.transition, out=prior[: len(c_t)])
    return alpha, c


def backward(model, pieces, alpha):
    """Turn α, in place, into γ, how probable each state is given the whole sequence; and how often each follows each.

    Each step hands the probabilities of its states back to the states that they can have come from:

        p_t = α_{t-1} A      w_t = γ_t / p_t      ξ_t[i, j] = α_{t-1}[i] A[i, j] w_t[j]      γ_{t-1} = α_{t-1} (A w_t)

    γ = α β says the same, but the β of a state that can't be reached grows without bound.
    """
    gamma, transitions = alpha, np.zeros_like(model.transition)
    for before, here in reversed(list(pairwise(pieces.steps))):
        gamma_t = gamma[here]
        alpha_before = alpha[before][: len(gamma_t)]  # of the pieces that haven't ended there
        w = gamma_t / np.maximum(alpha_before @ model.transition, TINY)  # where p is 0, so is γ
        transitions += alpha_before.T @ w
        alpha_before *= w @ model.transition.T
    return gamma, model.transition * transitions  # (T, N), (N, N)


def expected_counts(model, pieces):
    """log P of all pieces; how often a state is expected first (N,), after another (N, N), with a symbol (N, V)."""
    alpha, c = forward(model, pieces)
    if not c.all():
        raise ValueError("a sequence is impossible: its probability is 0, so there is nothing to expect")
    gamma, transitions = backward(model, pieces, alpha)
    emissions = np.stack([np.bincount(pieces.x, gamma_n, model.emission.shape[1]) for gamma_n in gamma.T])
    return np.log(c).sum(), gamma[: pieces.count].sum(axis=0), transitions, emissions


def em_step(model, pieces, pseudo_count=0.0):
    """One iteration of Baum–Welch: the objective of this model, and a model whose objective is at least that.

    The objective is log P, plus Σ pseudo_count · log b if that is added to each expected count of a symbol. A state
    that is never visited, or never left, keeps its row.
    """
    log_p, *counts = expected_counts(model, pieces)
    objective = log_p
    if pseudo_count:
        counts[2] += pseudo_count
        objective += pseudo_count * np.log(model.emission).sum()

    def normalised(counts, row_before):
        total = counts.sum(axis=-1, keepdims=True)
        return np.divide(counts, total, out=row_before.copy(), where=total > 0)

    return objective, HMM(*map(normalised, counts, (model.start, model.transition, model.emission)))


ROUNDING = 1e-9  # of an objective: it can be off by so much of itself


def baum_welch(model, pieces, pseudo_count=0.0, window=1, share=0.0, before=()):
    """Yield each model, this one first, with the objectives of all models up to it, ``before`` being those before it.

    Ends as ``settled`` says, and warns of a model that loses: no correct iteration can.
    """
    objectives = list(before)
    while True:
        objective, better = em_step(model, pieces, pseudo_count)
        gain = objective - objectives[-1] if objectives else np.inf
        if gain < -ROUNDING * max(abs(objective), 1):
            warnings.warn(f"iteration {len(objectives)} made the objective fall by {-gain:.3g}", RuntimeWarning, 2)
        objectives = [*objectives, objective]
        yield model, objectives
        if settled(objectives, window, share):
            return
        model = better


def settled(objectives, window, share):
    """Whether the last ``window`` iterations together gained no more than a share of all but the first iteration.

    The first one is left out because it finds how frequent each symbol is, which is nearly all that there is to gain.
    On a plateau after it, where states are still alike, the last gains are few but so are all: that isn't settled.
    """
    if len(objectives) < window + 2:
        return False
    all_gained, last_gained = (objectives[-1] - objectives[i] for i in (1, -1 - window))
    return last_gained <= share * all_gained + ROUNDING * abs(objectives[-1])


def log_probability(model, pieces):
    """log P of all pieces together; minus infinity if one of them is impossible."""
    with np.errstate(divide="ignore"):
        return np.log(forward(model, pieces)[1]).sum()


def bits_per_character(model, x):
    """Of each symbol after the first, given all before it: the text is one sequence."""
    _, c = forward(model, Pieces([x]))
    with np.errstate(divide="ignore"):
        return -np.log2(c[1:]).mean()


def viterbi(model, x):
    """The most probable states of a sequence, and the log-probability of these and the sequence together."""
    check_symbols(model, x)
    with np.errstate(divide="ignore"):
        start, A, B = np.log(model.start), np.log(model.transition), np.log(model.emission)
    best = start  # (N,): log-probability of the best path that ends in a state
    came_from = np.empty((len(x), len(start)), dtype=int)
    for t, symbol in enumerate(x):
        if t:
            paths = best[:, None] + A
            came_from[t] = paths.argmax(axis=0)
            best = paths.max(axis=0)
        best = best + B[:, symbol]
    path = np.empty(len(x), dtype=int)
    if len(x):
        path[-1] = best.argmax()
    for t in range(len(x) - 1, 0, -1):
        path[t - 1] = came_from[t, path[t]]
    return path, best.max() if len(x) else 0.0


def sample(model, length, rng):
    """Symbols drawn from the model."""
    up_to = [table.cumsum(axis=-1) / table.sum(axis=-1, keepdims=True) for table in (model.transition, model.emission)]
    state = rng.choice(len(model.start), p=model.start)
    x = np.empty(length, dtype=int)
    for t, (move, emit) in enumerate(rng.random((length, 2))):
        x[t] = np.searchsorted(up_to[1][state], emit, side="right")
        state = np.searchsorted(up_to[0][state], move, side="right")
    return x


def random_model(states, symbols, rng):
    """Any rows but equal ones, whose states Baum–Welch couldn't tell apart."""
    rows = rng.dirichlet(np.ones(states), 1 + states), rng.dirichlet(np.ones(symbols), states)
    return HMM(rows[0][0], rows[0][1:], rows[1])


def most_used_first(model, pieces):
    """The same model with its states in another order, and how often each emits each symbol: (N, V)."""
    *_, counts = expected_counts(model, pieces)
    order = counts.sum(axis=1).argsort()[::-1]
    return HMM(model.start[order], model.transition[order][:, order], model.emission[order]), counts[order]


def to_lists(model):
    """The model's tables as JSON can hold them."""
    return [table.tolist() for table in (model.start, model.transition, model.emission)]


def from_lists(lists):
    return HMM(*map(np.array, lists))
