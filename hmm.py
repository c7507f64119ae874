"""A hidden Markov model of characters: what language models were between counting and recurrent networks.

A state that nobody sees moves by fixed probabilities A, and each state has its own probabilities B of what it writes:

    P(x, s) = π[s_1] B[s_1, x_1] · A[s_1, s_2] B[s_2, x_2] · A[s_2, s_3] B[s_3, x_3] · …

The forward pass sums that over all paths of states, Viterbi finds the largest term, and Baum–Welch improves π, A and B:
count how often each state, step and symbol is expected, given the text, and take the relative frequencies. With one
state it is the add-one model without context, exactly. Everything that the model knows about the past is which of N
states it is in, so its memory is log2 N bits at most; what they learn to tell apart, unasked, is vowels from
consonants, the parts of a word, numbers from words, and code from prose.

    python hmm.py                                            27 min   all trainings, side by side
    python hmm.py --sample 300 --states 16 --seed 1                   train one model and let it write

Prints, after a line for each training:

    beside counting: validation bits/char, the same characters scored
    previous 0 characters, add-one: 4.989
    previous 1 characters, add-one: 4.033
    previous 2 characters, add-one: 3.494
     1 states: 4.989 (seeds 4.989 to 4.989)
     2 states: 4.843 (seeds 4.769 to 4.989)
     4 states: 4.606 (seeds 4.595 to 4.620)
     8 states: 4.315 (seeds 4.300 to 4.344)
    16 states: 4.106 (seeds 4.093 to 4.112)
    32 states: 3.889 (seeds 3.884 to 3.892)
    64 states: 3.642 (seeds 3.634 to 3.649)

Baum–Welch goes through pieces of 1,000 characters, each a sequence of its own; it starts from random rows and ends when
an iteration gains less than 5e-5 bits per character, or after 200. That can be too soon: with two states seed 2 ends on
a plateau, its states still alike and no better than one. Each character has been seen once more than it has, shared by
the states: 1 / N is added to its expected count in each of N states, so that an unseen character (all of them are one
symbol, as in ngram.py) is improbable and not impossible. With that the iterations raise the likelihood times a
Dirichlet prior. Validation is the whole text as one sequence, the same characters scored as in ngram.py.
Training bits are those of the pieces. The model looked into is the seed with the best training bits.

Sources: Baum, Petrie, Soules and Weiss (1970); Rabiner, "A tutorial on hidden Markov models" (1989); Cave and Neuwirth
(1980), who found vowels and consonants in the states. The backward pass is written with conditional probabilities
(Kitagawa 1987) in place of Rabiner's β, whose scaled values can overflow where a state is out of reach.
"""

import time
import warnings
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

import corpus
import ngram
from lab import plots, script
from lab.results import Results
from lab.script import UserError

STATES = [1, 2, 4, 8, 16, 32, 64]
SEEDS = range(3)
PIECE = 1000  # characters; Baum–Welch goes through all pieces of the text side by side
PSEUDO_COUNT = 1  # added to the count of each character, shared by the states
ITERATIONS = 200  # of Baum–Welch, at most
TOLERANCE = 5e-5  # bits per character: an iteration that gains less is the last one
CONTEXTS = [0, 1, 2]  # characters, of the add-one counts shown beside
SHOWN = 8  # states of the model that is looked into
LIKELIEST = 12  # characters shown of each state
WRITTEN = 300  # characters shown that the largest model writes
WRITER = 16, 0  # states and seed of the model that --sample trains
# Prose and code of the validation text, shown with the most probable states behind them.
READ = [slice(143, 219), slice(996, 1067)]
CLASSES = {
    "vowels": "aeiouAEIOU",
    "other letters": "bcdfghjklmnpqrstvwxyzBCDFGHJKLMNPQRSTVWXYZ",
    "spaces and line ends": " \n",
    "digits": "0123456789",
}
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


def cut(x, length=PIECE):
    """A long sequence in pieces."""
    return Pieces([x[begin : begin + length] for begin in range(0, len(x), length)])


def forward(model, pieces):
    """How probable each state is after the symbols so far, and each symbol after those before it: (T, N) and (T,).

    That is α scaled to a sum of 1 at every step, without which it would underflow, and the factors c that do it, whose
    product is the probability of the sequence. Both lie as in ``pieces.x``.
    """
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


def baum_welch(model, pieces, pseudo_count=0.0, tolerance=0.0, before=()):
    """Yield each model, this one first, with the objectives of all models up to it, ``before`` being those before it.

    Ends with a model that gains less than ``tolerance`` per symbol, and warns of one that loses: no correct iteration
    can.
    """
    objectives = list(before)
    while True:
        objective, better = em_step(model, pieces, pseudo_count)
        gain = objective - objectives[-1] if objectives else np.inf
        if gain < -1e-9 * max(abs(objective), 1):
            warnings.warn(f"iteration {len(objectives)} made the objective fall by {-gain:.3g}", RuntimeWarning, 2)
        objectives = [*objectives, objective]
        yield model, objectives
        if gain < tolerance * len(pieces.x):
            return
        model = better


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


def train(config, keeper):
    """One training, from its configuration to its record."""
    text = load(config["data"] and Path(config["data"]))
    if text.fingerprint != config["text"]:
        raise UserError("the text has changed since this training was set up: start it again")
    pieces = cut(text.encode(text.train))
    first, before, seconds = random_model(config["states"], text.size, np.random.default_rng(config["seed"])), [], 0.0
    if state := keeper.load():
        # The model's own objective comes last among those kept, and is computed again.
        first, before, seconds = from_lists(state["model"]), state["objectives"][:-1], state["seconds"]
    began = time.process_time()

    pseudo_count = PSEUDO_COUNT / config["states"]
    for model, objectives in baum_welch(first, pieces, pseudo_count, config["tolerance"] * np.log(2), before):
        keeper.tick(len(objectives), config["iterations"], bits=-objectives[-1] / len(pieces.x) / np.log(2))
        keeper.save_if_due(
            lambda model=model, objectives=objectives: {
                "model": to_lists(model),
                "objectives": [float(value) for value in objectives],  # loading refuses numpy's own
                "seconds": seconds + time.process_time() - began,
            }
        )
        if len(objectives) == config["iterations"]:
            break
    return {
        "states": config["states"],
        "seed": config["seed"],
        "iterations": len(objectives),
        "seconds": seconds + time.process_time() - began,
        "train_bits_per_char": float(-log_probability(model, pieces) / len(pieces.x) / np.log(2)),
        "validation_bits_per_char": float(bits_per_character(model, text.encode(text.validation))),
        "model": to_lists(model),
    }


def configuration(states, seed, text, data=None):
    """Everything that one training's record depends on, as JSON can hold it."""
    return {
        "states": states,
        "seed": seed,
        "iterations": ITERATIONS,
        "tolerance": TOLERANCE,
        "text": text.fingerprint,
        "data": data and str(Path(data).resolve()),
    }


def to_lists(model):
    return [table.tolist() for table in (model.start, model.transition, model.emission)]


def from_lists(lists):
    return HMM(*map(np.array, lists))


def load(folder):
    text = corpus.load(folder)
    if len(text.validation) < 2:
        raise UserError("the validation text has 1 character; it takes 2, since the first is only context")
    return text


def main(argv=None):
    from lab import trainings  # imports torch, for checkpoints: nothing above needs it

    parser = script.Arguments(__doc__)
    parser.add_argument(
        "--sample", metavar="N", type=script.positive_int, help="train one model and write N characters"
    )
    parser.add_argument(
        "--states", metavar="K", type=script.positive_int, help=f"of the model that writes (default: {WRITER[0]})"
    )
    parser.add_argument(
        "--seed", metavar="S", type=script.seed, help=f"of the model that writes (default: {WRITER[1]})"
    )
    corpus.add_argument(parser)
    trainings.add_arguments(parser)
    arguments = parser.parse_args(argv)
    if arguments.sample:
        arguments.states = WRITER[0] if arguments.states is None else arguments.states
        arguments.seed = WRITER[1] if arguments.seed is None else arguments.seed
    elif arguments.states is not None or arguments.seed is not None:
        parser.error("--states and --seed belong to --sample N")
    text = load(arguments.data)

    runs = [(arguments.states, arguments.seed)] if arguments.sample else [(N, seed) for N in STATES for seed in SEEDS]
    name, seeds = ("hmm_sample", [arguments.seed]) if arguments.sample else ("hmm", SEEDS)
    results = Results(name, arguments, corpus=text.fingerprint, seeds=seeds)
    configs = [configuration(*run, text, arguments.data) for run in runs]
    options = {"jobs": arguments.jobs, "cluster": arguments.cluster, "describe": describe, "cost": cost}
    records = trainings.run(train, configs, name="hmm", **options)
    if arguments.sample:
        for record in records:
            written = write(record, text, arguments.sample)
            results.print(written)
            results.record(sample=written)
        results.save()
    else:
        report(results, records, text)
        results.save(draw)


def describe(config):
    return f"{config['states']} states, seed {config['seed']}"


def cost(config):
    """How long an iteration takes, in that of one state."""
    return 1 + config["states"] ** 2 / 100


def report(results, records, text):
    """Print and record all trainings, the comparison with counting, and what the states learned."""
    runs, fittest = [], {}  # the record of each number of states that fits the training text best
    for record in records:
        results.print(
            f"{record['states']:2} states, seed {record['seed']}: {record['iterations']:3} iterations, "
            f"{record['seconds']:4.0f} s; train {record['train_bits_per_char']:.3f}, "
            f"validation {record['validation_bits_per_char']:.3f} bits/char"
        )
        runs.append({name: value for name, value in record.items() if name != "model"})
        rival = fittest.setdefault(record["states"], record)
        if record["train_bits_per_char"] < rival["train_bits_per_char"]:
            fittest[record["states"]] = record

    results.print("\nbeside counting: validation bits/char, the same characters scored")
    counting = add_one(text)
    for context, bits in zip(CONTEXTS, counting, strict=True):
        results.print(f"previous {context} characters, add-one: {bits:.3f}")
    for states in STATES:
        bits = [run["validation_bits_per_char"] for run in runs if run["states"] == states]
        results.print(f"{states:2} states: {np.mean(bits):.3f} (seeds {min(bits):.3f} to {max(bits):.3f})")

    best = fittest[SHOWN]
    results.print(f"\nwhat {SHOWN} states learned (seed {best['seed']}, the one that fits the training text best)")
    model, counts = most_used_first(from_lists(best["model"]), cut(text.encode(text.train)))
    share = counts.sum(axis=1) / counts.sum()
    likeliest = [visible(text.decode(np.argsort(-row, kind="stable")[:LIKELIEST])) for row in model.emission]
    for n in range(SHOWN):
        m = model.transition[n].argmax()
        then = f"then state {m + 1} ({model.transition[n, m]:.0%})"
        results.print(f"state {n + 1}, {share[n]:5.1%} of the text: {likeliest[n]} {then}")
    homes = {}
    for name, members in CLASSES.items():
        of_class = counts[:, [n for n, character in enumerate(text.characters) if character in members]].sum(axis=1)
        if of_class.any():  # a text needn't have digits
            homes[name] = {"state": int(of_class.argmax()) + 1, "share": of_class.max() / of_class.sum()}
            results.print(f"{name}: {homes[name]['share']:.0%} in state {homes[name]['state']}")
    path, _ = viterbi(model, text.encode(text.validation))
    results.print("the most probable states behind some of the validation text:")
    for part in READ:
        results.print(visible(text.validation[part]))
        results.print("".join(str(n + 1) for n in path[part]))

    largest = fittest[max(STATES)]
    written = write(largest, text, WRITTEN)
    results.print(f"\nwhat {max(STATES)} states write (seed {largest['seed']})\n{visible(written)}")
    results.record(runs=runs, add_one={"context": CONTEXTS, "bits_per_char": counting}, classes=homes)
    results.record(share_of_text=share, transition=model.transition, likeliest=likeliest, sample=written)


def add_one(text):
    """Validation bits per character of add-one counts, as ngram.py has them, by context."""
    train, validation, V = text.encode(text.train), text.encode(text.validation), text.size
    counted = ngram.count(train, validation, V, max(CONTEXTS))
    return [-np.log2((N_pair[1:] + 1) / (N_context[1:] + V)).mean() for N_context, N_pair in counted]


def most_used_first(model, pieces):
    """The same model with its states in another order, and how often each emits each symbol: (N, V)."""
    *_, counts = expected_counts(model, pieces)
    order = counts.sum(axis=1).argsort()[::-1]
    return HMM(model.start[order], model.transition[order][:, order], model.emission[order]), counts[order]


def write(record, text, length):
    return text.decode(sample(from_lists(record["model"]), length, np.random.default_rng(record["seed"])))


def visible(text):
    return text.replace(" ", "␣").replace("\n", "⏎")


def draw(results):
    """Left: bits per character against states, beside counting. Right: which state follows which."""
    figure, (left, right) = plots.subplots(1, 2, size=(11, 4.8), width_ratios=[1, 1.1])
    states = [run["states"] for run in results["runs"]]
    for name, marker in ("validation", "o"), ("train", "x"):
        bits = [run[f"{name}_bits_per_char"] for run in results["runs"]]
        left.plot(states, bits, marker, label=f"{name}, three seeds", fillstyle="none")
    left.set_xscale("log", base=2)
    left.set(xlabel="states", ylabel="bits per character", xticks=STATES, xticklabels=STATES)
    left.set(title="Hidden states against remembered characters")
    for context, bits in zip(results["add_one"]["context"], results["add_one"]["bits_per_char"], strict=True):
        left.axhline(bits, color="k", linewidth=0.8, linestyle="--")
        label = f"add-one, previous {context}" if context else "add-one, no context"
        left.annotate(label, (STATES[-1], bits), xytext=(-7, 3), textcoords="offset points", ha="right", fontsize=9)
    left.legend(loc="lower left", bbox_to_anchor=(0, 0.1))

    transition = np.array(results["transition"])
    right.imshow(transition, cmap="Greys", vmin=0, vmax=1)
    for n, m in np.argwhere(transition >= 0.05):
        colour = "white" if transition[n, m] > 0.5 else "black"
        right.text(m, n, f"{transition[n, m]:.0%}", ha="center", va="center", fontsize=8, color=colour)
    names = [f"{n}: {likeliest[:7]}" for n, likeliest in enumerate(results["likeliest"], start=1)]
    right.set(yticks=range(SHOWN), yticklabels=names, xticks=range(SHOWN), xticklabels=range(1, SHOWN + 1))
    right.set(
        xlabel="next state", ylabel="state: its likeliest characters", title=f"{SHOWN} states: which follows which"
    )
    right.grid(visible=False)
    return figure


if __name__ == "__main__":
    script.run(main)
