"""A hidden Markov model of characters: what language models were between counting and recurrent networks.

A state that nobody sees moves by fixed probabilities, and each state has its own probabilities of what it writes
(layers/hidden_markov.py has the equations). Baum–Welch learns both from the text. All that the model carries along of
the past is how probable each of its N states is now. Nobody says what a state should stand for. They learn to tell
vowels from consonants, the parts of a word, numbers from words, and code from prose. With one state it is the add-one
model without context, exactly.

    python -m beyond.hmm                                            20 min   all trainings, side by side
    python -m beyond.hmm --sample 300 --states 16 --seed 1                   train one model and let it write

Prints, after a line for each training:

    beside counting: validation bits/char, the same characters scored
    previous 0 characters, add-one: 4.989
    previous 1 characters, add-one: 4.033
    previous 2 characters, add-one: 3.494
     1 states: 4.989 (seeds 4.989 to 4.989)
     2 states: 4.809 (seeds 4.769 to 4.887)
     4 states: 4.606 (seeds 4.595 to 4.619)
     8 states: 4.315 (seeds 4.300 to 4.343)
    16 states: 4.100 (seeds 4.092 to 4.112)
    32 states: 3.885 (seeds 3.883 to 3.890)
    64 states: 3.639 (seeds 3.630 to 3.645)

Baum–Welch goes through pieces of 1,000 characters, each a sequence of its own. It starts from random rows and ends when
ten iterations together gain less than a ten-thousandth of what all after the first one have gained, on the training
text. That an iteration gains little says nothing by itself: states that are still alike can gain little for many
iterations before they part. Each iteration adds one to the expected count of every character, divided equally among
the states. So an unseen character (all of them are one symbol, as in ngram.py) is improbable but not impossible, and
what the iterations raise is the likelihood times a Dirichlet prior.

Validation is the whole text as one sequence, and the characters scored are those of ngram.py. Training bits are those
of the pieces. The model that is looked into is the one of the three seeds with the lowest training bits.

Source: Cave and Neuwirth (1980), who found vowels and consonants in the states.

Over 150 lines because it looks into a model as well as scoring all of them.
"""

import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import corpus
import ngram
from lab import plots, script
from lab.errors import UserError
from layers import hidden_markov
from layers.hidden_markov import baum_welch, bits_per_character, cut, from_lists, to_lists

STATES = [1, 2, 4, 8, 16, 32, 64]
SEEDS = range(3)
PIECE = 1000  # characters; Baum–Welch goes through all pieces of the text side by side
PSEUDO_COUNT = 1  # added to the expected count of each character, divided among the states
ITERATIONS = 1000  # of Baum–Welch, at most
WINDOW, SHARE = 10, 1e-4  # iterations that together gain no more than this share of all after the first are the last
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

KINDS = {
    "*": "trained",
    "add_one.*": "corpus",
    "runs.*.states": "setting",
    "runs.*.most_iterations": "setting",
    "runs.*.window": "setting",
    "runs.*.share": "setting",
}


@dataclass(frozen=True)
class Config:
    """One training."""

    states: int
    seed: int  # of the random rows that it starts from
    text: str  # the fingerprint of the corpus
    data: str | None = None  # the folder of the corpus; None: the frozen text
    most_iterations: int = ITERATIONS
    window: int = WINDOW  # iterations whose gain is compared with
    share: float = SHARE  # of all that was gained

    def __str__(self):
        return f"{self.states} states, seed {self.seed}"

    @property
    def cost(self):
        """How long an iteration takes, in that of one state."""
        return 1 + self.states**2 / 100


def train(config, checkpoint):
    """One training, from its configuration to its record."""
    text = corpus.load_to_score(config.data and Path(config.data))
    if text.fingerprint != config.text:
        raise UserError("the text has changed since this training was set up: start it again")
    pieces = cut(text.encode(text.train), PIECE)
    first = hidden_markov.random_model(config.states, text.size, np.random.default_rng(config.seed))
    before, seconds = [], 0.0
    if state := checkpoint.load():
        # The model's own objective comes last among those kept, and is computed again.
        first, before, seconds = from_lists(state["model"]), state["objectives"][:-1], state["seconds"]
    began = time.process_time()

    pseudo_count = PSEUDO_COUNT / config.states
    for model, objectives in baum_welch(first, pieces, pseudo_count, config.window, config.share, before):
        checkpoint.tick(len(objectives), config.most_iterations, bits=-objectives[-1] / len(pieces.x) / np.log(2))
        checkpoint.save_if_due(
            lambda model=model, objectives=objectives: {
                "step": len(objectives),
                "model": to_lists(model),
                "objectives": [float(value) for value in objectives],  # loading refuses numpy's own
                "seconds": seconds + time.process_time() - began,
            }
        )
        if len(objectives) == config.most_iterations:
            break
    log_p = hidden_markov.log_probability(model, pieces)
    return {name: value for name, value in asdict(config).items() if name not in ("text", "data")} | {
        "iterations": len(objectives),
        "seconds": seconds + time.process_time() - began,
        "train_bits_per_char": float(-log_p / len(pieces.x) / np.log(2)),
        "validation_bits_per_char": float(bits_per_character(model, text.encode(text.validation))),
        "model": to_lists(model),
    }


def measure(arguments):
    from lab import trainings  # imports torch, for checkpoints: nothing else here needs it

    if not arguments.sample and (arguments.states is not None or arguments.seed is not None):
        raise UserError("--states and --seed belong to --sample N")
    text = corpus.load_to_score(arguments.data)
    data = arguments.data and str(arguments.data.resolve())
    sizes, seeds = STATES, SEEDS
    if arguments.sample:
        sizes, seeds = [arguments.states or WRITER[0]], [WRITER[1] if arguments.seed is None else arguments.seed]
    configs = [Config(states, seed, text.fingerprint, data) for states in sizes for seed in seeds]
    records = trainings.run(train, configs, arguments, line)
    about = {"corpus": text.fingerprint, "seeds": seeds}
    if arguments.sample:
        return about | {"saved_as": "hmm_sample", "sample": write(records[0], text, arguments.sample)}
    return about | {
        "runs": [{name: value for name, value in record.items() if name != "model"} for record in records],
        "add_one": {"context": CONTEXTS, "bits_per_char": add_one(text)},
        **look_into(from_lists(fittest(records, SHOWN)["model"]), text),
        "sample": write(fittest(records, max(STATES)), text, WRITTEN),
    }


def fittest(runs, states):
    """Of the trainings with so many states the one that fits the training text best."""
    return min((run for run in runs if run["states"] == states), key=lambda run: run["train_bits_per_char"])


def add_one(text):
    """Validation bits per character of add-one counts, as ngram.py has them, by context."""
    train, validation, V = text.encode(text.train), text.encode(text.validation), text.size
    counted = ngram.count(train, validation, V, max(CONTEXTS))
    return [-np.log2((N_pair[1:] + 1) / (N_context[1:] + V)).mean() for N_context, N_pair in counted]


def look_into(model, text):
    """What the states of a model learned: the most used one comes first."""
    model, counts = hidden_markov.most_used_first(model, cut(text.encode(text.train), PIECE))
    homes = {}
    for name, members in CLASSES.items():
        of_class = counts[:, [n for n, character in enumerate(text.characters) if character in members]].sum(axis=1)
        if of_class.any():  # a text needn't have digits
            homes[name] = {"state": of_class.argmax() + 1, "share": of_class.max() / of_class.sum()}
    path, _ = hidden_markov.viterbi(model, text.encode(text.validation))
    likeliest = [text.decode(np.argsort(-row, kind="stable")[:LIKELIEST]) for row in model.emission]
    read = [{"text": text.validation[part], "states": "".join(str(n + 1) for n in path[part])} for part in READ]
    return {
        "classes": homes,
        "share_of_text": counts.sum(axis=1) / counts.sum(),
        "transition": model.transition,
        "likeliest": [visible(characters) for characters in likeliest],
        "read": read,
    }


def write(record, text, length):
    rng = np.random.default_rng(record["seed"])
    return text.decode(hidden_markov.sample(from_lists(record["model"]), length, rng))


def visible(text):
    return text.replace(" ", "␣").replace("\n", "⏎")


def line(run):
    return (
        f"{run['states']:2} states, seed {run['seed']}: {run['iterations']:3} iterations, {run['seconds']:4.0f} s; "
        f"train {run['train_bits_per_char']:.3f}, validation {run['validation_bits_per_char']:.3f} bits/char"
    )


def tell(found):
    if "runs" not in found:
        yield found["sample"]
        return
    runs, sizes = found["runs"], sorted({run["states"] for run in found["runs"]})
    yield from map(line, runs)
    yield ""
    yield "beside counting: validation bits/char, the same characters scored"
    for context, bits in zip(found["add_one"]["context"], found["add_one"]["bits_per_char"], strict=True):
        yield f"previous {context} characters, add-one: {bits:.3f}"
    for states in sizes:
        bits = [run["validation_bits_per_char"] for run in runs if run["states"] == states]
        yield f"{states:2} states: {np.mean(bits):.3f} (seeds {min(bits):.3f} to {max(bits):.3f})"

    states = len(found["transition"])
    seed = fittest(runs, states)["seed"]
    yield ""
    yield f"what {states} states learned (seed {seed}, the one that fits the training text best)"
    for n, (share, likeliest) in enumerate(zip(found["share_of_text"], found["likeliest"], strict=True)):
        after = found["transition"][n]
        then = f"then state {np.argmax(after) + 1} ({max(after):.0%})"
        yield f"state {n + 1}, {share:5.1%} of the text: {likeliest} {then}"
    for name, home in found["classes"].items():
        yield f"{name}: {home['share']:.0%} in state {home['state']}"
    yield "the most probable states behind some of the validation text:"
    for part in found["read"]:
        yield visible(part["text"])
        yield part["states"]
    yield ""
    yield f"what {sizes[-1]} states write (seed {fittest(runs, sizes[-1])['seed']})"
    yield visible(found["sample"])


def draw(found):
    """Left: bits per character against states, beside counting. Right: which state follows which."""
    figure, (left, right) = plots.subplots(1, 2, size=(11, 4.8), width_ratios=[1, 1.1])
    states = [run["states"] for run in found["runs"]]
    sizes = sorted(set(states))
    for name, marker in ("validation", "o"), ("train", "x"):
        bits = [run[f"{name}_bits_per_char"] for run in found["runs"]]
        left.plot(states, bits, marker, label=f"{name}, three seeds", fillstyle="none")
    left.set_xscale("log", base=2)
    left.set(xlabel="states", ylabel="bits per character", xticks=sizes, xticklabels=sizes)
    left.set(title="Hidden states against remembered characters")
    for context, bits in zip(found["add_one"]["context"], found["add_one"]["bits_per_char"], strict=True):
        left.axhline(bits, color="k", linewidth=0.8, linestyle="--")
        label = f"add-one, previous {context}" if context else "add-one, no context"
        left.annotate(label, (sizes[-1], bits), xytext=(-7, 3), textcoords="offset points", ha="right", fontsize=9)
    left.legend(loc="lower left", bbox_to_anchor=(0, 0.1))

    transition = np.array(found["transition"])
    shown = len(transition)
    right.imshow(transition, cmap="Greys", vmin=0, vmax=1)
    for n, m in np.argwhere(transition >= 0.05):
        colour = "white" if transition[n, m] > 0.5 else "black"
        right.text(m, n, f"{transition[n, m]:.0%}", ha="center", va="center", fontsize=8, color=colour)
    names = [f"{n}: {likeliest[:7]}" for n, likeliest in enumerate(found["likeliest"], start=1)]
    right.set(yticks=range(shown), yticklabels=names, xticks=range(shown), xticklabels=range(1, shown + 1))
    right.set(xlabel="next state", ylabel="state: its likeliest characters")
    right.set(title=f"{shown} states: which follows which")
    right.grid(visible=False)
    return figure


def options(parser):
    number, seed = script.positive_int, script.seed
    parser.add_argument("--sample", metavar="N", type=number, help="train one model and write N characters")
    parser.add_argument("--states", metavar="K", type=number, help=f"of the model that writes (default: {WRITER[0]})")
    parser.add_argument("--seed", metavar="S", type=seed, help=f"of the model that writes (default: {WRITER[1]})")
    corpus.add_argument(parser)
    parser.add_jobs()


if __name__ == "__main__":
    script.run(measure, tell, draw, options)
