"""What a prediction has of the tenth word back: one character is replaced, and the odds of the next one are compared.

The course says that n-grams and hidden Markov models "could not use context from ten words back, let alone a hundred".
Each model reads 640 characters of the validation text and gives the odds of the next one; then the character d places
back is replaced by another one, drawn as often as the training text has it, and the model reads again. What is
measured is how much probability moves, ½ Σ |p - q|, in the mean of 128 places in the text.

    Kneser–Ney    contexts of 2 and 5 characters (kneser_ney.py): nothing can move beyond the context
    HMM           16 states (beyond/hmm.py): what moves is what a step doesn't forget of which state it is in
    RNN, LSTM     charlm.py's, trained for 600 of its 3,000 steps

    python -m beyond.ten_words_back          6 min

Prints, first:

    how much probability moves when the character d back is replaced: mean of the seeds
    d                           1       2       4       8      16      32      59      64     128     256     586
    Kneser–Ney, context 2   0.761   0.568       0       0       0       0       0       0       0       0       0
    Kneser–Ney, context 5   0.833   0.674   0.379       0       0       0       0       0       0       0       0
    HMM, 16 states          0.529   0.254   0.026   0.001   6e-07   5e-10       0       0       0       0       0
    RNN                     0.738   0.525   0.264   0.059   0.010   2e-04   1e-05   2e-06   1e-09   4e-16   4e-16
    LSTM                    0.712   0.487   0.213   0.048   0.008   0.001   2e-04   1e-04   3e-05   5e-07   3e-08

Ten words are 59 characters, a hundred 586. What counts has nothing of so far back, nor have 16 states. The LSTM moves
two parts in ten thousand, and some after a hundred words, where nothing moves in any other model.

All odds are computed in float64, so that what moves little can be told from rounding. This script is a little longer
than others because three kinds of model are trained and asked.

Sources: KnowML's course page "Sequence Modeling Pre-Transformer", section 2, for the sentence; Khandelwal, He, Qi and
Jurafsky, "Sharp nearby, fuzzy far away: how neural language models use context" (2018), for replacing what lies back.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean

import numpy as np
import torch

import charlm
import corpus
import kneser_ney
from beyond import hmm
from lab import plots, script, trainings
from lab.errors import UserError
from layers import hidden_markov
from layers.char_rnn import evaluating
from layers.ngrams import count_ngrams, probabilities

DISTANCES = [1, 2, 4, 8, 16, 32, 64, 128, 256]  # characters back; ten and a hundred words are added
WORDS = [10, 100]
READ, PLACES = 640, 128  # characters before each place, and the places
CONTEXTS = [2, 5]  # characters, of Kneser–Ney
STATES, CELLS, STEPS = 16, ["RNN", "LSTM"], 600
SEEDS = range(3)
DRAW_SEED = 0  # of the places and of what is put there

KINDS = {"*": "trained", "words_take.*": "corpus", "runs.*.model": "setting"}
KINDS |= {"counting.*": "corpus"}


@dataclass(frozen=True)
class Places:
    """Windows of a text (place, time), and for each distance the same with one character replaced."""

    windows: np.ndarray
    replaced: dict[int, np.ndarray]


def words_take(text):
    """How many characters so many words take in the validation text, with the spaces after them."""
    each = len(text.validation) / max(1, len(text.validation.split()))
    return {words: round(words * each) for words in WORDS}


def places(text):
    """The same for every model of a text."""
    rng = np.random.default_rng(DRAW_SEED)
    train, validation = text.encode(text.train), text.encode(text.validation)
    if len(validation) <= READ:
        raise UserError(
            f"the validation text has {script.counted(len(validation), 'character')}: a place takes {READ + 1}"
        )
    if len(set(text.train)) < 2:
        raise UserError("the training text is one character again and again: there is none to put in its place")
    starts = rng.integers(len(validation) - READ, size=PLACES)
    windows = validation[starts[:, None] + np.arange(READ)]
    replaced = {}
    for distance in sorted({*DISTANCES, *words_take(text).values()}):
        if distance <= READ:
            before = windows[:, -distance]
            other = rng.choice(train, size=PLACES)
            while (same := other == before).any():
                other[same] = rng.choice(train, size=same.sum())
            replaced[distance] = windows.copy()
            replaced[distance][:, -distance] = other
    return Places(windows, replaced)


def moved(predict, text):
    """How much probability moves at each distance, in the mean of the places. ``predict`` gives odds (place, V)."""
    at = places(text)
    odds = predict(at.windows)
    return {str(d): float(np.abs(predict(other) - odds).sum(1).mean() / 2) for d, other in at.replaced.items()}


def by_counting(model, V, windows):
    return np.array([probabilities(model, window[-1 - max(CONTEXTS) :], V) for window in windows])


def by_states(model, windows):
    pieces = hidden_markov.Pieces(windows)  # of equal length, so that they stay in their order
    alpha, _ = hidden_markov.forward(model, pieces)
    return alpha[pieces.steps[-1]] @ model.transition @ model.emission


def by_network(model, windows):
    with evaluating(model.double()):
        logits, _ = model(torch.from_numpy(windows).long().t())
        return logits[-1].softmax(1).numpy()


def train(config, checkpoint):
    """A hidden Markov model or a character model, and how much probability moves in it."""
    text = corpus.load(config.data and Path(config.data))
    if isinstance(config, hmm.Config):
        record = hmm.train(config, checkpoint)
        predict, name = partial(by_states, hidden_markov.from_lists(record["model"])), f"HMM, {config.states} states"
    else:
        training, *_ = charlm.set_up(config, checkpoint)
        for _ in training:
            pass
        predict, name = partial(by_network, training.model), config.cell
    return {"model": name, "seed": config.seed, "moved": moved(predict, text)}


def counting(text):
    """The same of Kneser–Ney with each context."""
    train, V = text.encode(text.train), text.size
    levels = kneser_ney.levels(count_ngrams(train, V, max(CONTEXTS) + 1), kneser_ney.modified_discounts, V)
    models = {context: kneser_ney.of_context(*levels, context) for context in CONTEXTS}
    return {
        f"Kneser–Ney, context {context}": moved(partial(by_counting, model, V), text)
        for context, model in models.items()
    }


def measure(arguments):
    text, where = charlm.read(arguments)
    places(text)  # refuses what is too short
    configs = [hmm.Config(STATES, seed, **where) for seed in SEEDS]
    configs += [charlm.Config(cell, seed, steps=arguments.steps, **where) for cell in CELLS for seed in SEEDS]
    runs = trainings.run(train, configs, arguments)
    return {
        "seeds": SEEDS,
        "corpus": text.fingerprint,
        "words_take": words_take(text),
        "steps": arguments.steps,
        "counting": counting(text),
        "runs": [
            {name: run[name] for name in ("model", "seed", "moved", "diverged_at_step") if name in run} for run in runs
        ],
    }


def by_model(found):
    """How much moves in each model at each distance: a list of the seeds."""
    models = {name: [moved] for name, moved in found["counting"].items()}
    for run in found["runs"]:
        if "moved" in run:
            models.setdefault(run["model"], []).append(run["moved"])
    return {
        name: {int(distance): [own[distance] for own in seeds] for distance in seeds[0]}
        for name, seeds in models.items()
    }


def tell(found):
    models = by_model(found)
    yield "how much probability moves when the character d back is replaced: mean of the seeds"
    yield f"{'d':21}" + "".join(f"{distance:>8,}" for distance in next(iter(models.values())))
    for name, moved in models.items():
        yield f"{name:<21}" + "".join(told(fmean(seeds)) for seeds in moved.values())
    yield ""
    for words, characters in found["words_take"].items():
        yield f"{words} words of the validation text take {characters:,} characters"


def told(share):
    return f"{0:>8}" if share == 0 else f"{share:8.0e}" if share < 1e-3 else f"{share:8.3f}"


def draw(found):
    """How much probability moves against the distance; what doesn't move at all isn't shown."""
    figure, axes = plots.subplots(size=(7.4, 4.6))
    for number, (name, moved) in enumerate(by_model(found).items()):
        shown = {distance: fmean(seeds) for distance, seeds in moved.items() if any(seeds)}
        style = {"color": plots.COLOURS[number], "marker": plots.MARKERS[number], "markersize": 4.5, "label": name}
        axes.loglog(list(shown), list(shown.values()), **style)
    for words, characters in found["words_take"].items():
        axes.axvline(characters, color="0.4", linewidth=0.8)
        axes.annotate(f"{words} words", (characters, 1), (3, -10), textcoords="offset points", fontsize=8)
    axes.set(xlabel="characters back", ylabel="probability that moves", title="One character is replaced")
    axes.legend(fontsize=8)
    return figure


def options(parser):
    parser.add_argument("--steps", type=script.positive_int, default=STEPS, metavar="N", help="of RNN and LSTM")
    corpus.add_argument(parser)
    parser.add_jobs()


if __name__ == "__main__":
    script.run(measure, tell, draw, options)
