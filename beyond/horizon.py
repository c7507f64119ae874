"""How far back does a character model look? What the past is worth to it, and how much of its gradient goes there.

Each model is given only the last d characters before the one it predicts, d = 1, 2, 4, … 1,024, beginning with a state
of zero: its bits fall until more of the past is worth nothing to it. For d up to 128 it is also given all of the last
128, the words further back than d in random order: what it loses is what their order was worth. And the gradient of its
loss is measured at the embedding d characters back. All three are of the same 1,024 characters of the validation text
(the gradient of 256 of them), and explained in layers/looking_back.py.

    python -m beyond.horizon          8 min, after beyond.gpt

Prints, at the end:

    how far it looks: to 0.05 bits from its best; by its gradient, to 1% of the nearest
    RNN         : 12 characters; by its gradient 19 (step 1,920)
    GRU         : 12 characters; by its gradient 29 (step 963)
    LSTM        : 14 characters; by its gradient 29 (step 2,253)
    minGRU      : 12 characters; by its gradient 17 (step 3,000)
    GPT         : 19 characters; by its gradient 128, all of its window (step 1,920)
    larger GPT  : 15 characters; by its gradient 128, all of its window (step 1,080)

All of them look back over two or three words and hardly use what lies before: the recurrent ones, of whose gradient
next to nothing arrives there, and the larger GPT, to which a hundredth and more comes from anywhere in its window.

One seed of each model is looked at, with the weights of its best step. The recurrent ones are trained anew by
charlm.py, for as many steps as char_models.py and beyond/scan_models.py found to be best: at a rate that never changes,
these give the same weights again on the same processor, and others of the same kind on another, as here. The GPTs are
those of beyond/gpt.py, which looked when it had trained them. Kneser–Ney is the modified one, with each context as long
as the history.

A model's reach is the history that leaves it 0.05 bits from the fewest that it takes with any; by its gradient, the
distance from which on it is less than 1 % of what arrives right before the character. Both are read off straight lines
between the histories measured, over the logarithm of the history. They needn't agree: a gradient says how much the loss
would change if a far character did, not whether that is of any use.

Sources: Khandelwal et al., "Sharp nearby, fuzzy far away: how neural language models use context" (2018).
"""

import math

import numpy as np

import charlm
from char_models import options, saved_for
from kneser_ney import levels, modified_discounts
from lab import plots, results, script, trainings
from lab.errors import UserError
from layers import looking_back
from layers.ngrams import count_ngrams, score

SEED = 0
READS = ("char_models", "scan_models", "gpt")
CELLS = {"RNN": "char_models", "GRU": "char_models", "LSTM": "char_models", "minGRU": "scan_models"}  # who trained it
CONTEXTS = [1, 2, 4, 8, 12]  # of Kneser–Ney
COUNTING = "Kneser–Ney"
NEAR_BITS = 0.05  # from the fewest: the past beyond is worth no more
NEAR_SHARE = 0.01  # of the gradient right before the character
SHOWN = [1, 2, 4, 8, 16, 32, 64, 128, 256, 1024]

KINDS = {
    "*": "trained",
    "counting.*": "corpus",
    "models.*.history.*": "setting",
    "models.*.cell": "setting",
    "models.*.best_step": "exact",
    "scored_characters": "corpus",
}


def train(config, checkpoint):
    """One training for as many steps as are best, and how far back it looks."""
    training, text, _, validation = charlm.set_up(config, checkpoint)
    for _ in training:
        pass
    about = {"cell": config.cell, "seed": config.seed, "best_step": config.steps, "seconds": training.seconds}
    return about | looking_back.measure(training.model, text, validation, config.seed)


def counted(text):
    """Bits of Kneser–Ney on the very characters that the others are measured on, for each context."""
    train_ids, ids, V = text.encode(text.train), text.encode(text.validation), text.size
    model = levels(count_ngrams(train_ids, V, max(CONTEXTS) + 1), modified_discounts, V)
    at = looking_back.positions(len(ids), looking_back.SCORED, looking_back.histories_of(text)).numpy()
    bits = [-np.log2(p[at]).mean() for p in score(*model, ids, V)]
    return {"history": CONTEXTS, "bits_per_char": [bits[context] for context in CONTEXTS]}


def best_steps(text, folder):
    """The best step of each recurrent cell, as those who trained it for this text saved it."""
    found = {}
    for cell, experiment in CELLS.items():
        saved = saved_for(text, folder, experiment, cell)
        if not saved:
            raise UserError(f"the best step of {cell} isn't known: run {results.command(experiment)} on the same text")
        for run in saved["runs"]:
            if (run["cell"], run["seed"]) == (cell, SEED) and "diverged_at_step" not in run:
                found[cell] = run["best_step"]
    return found


def of_gpts(text, folder):
    """What beyond/gpt.py measured of its models, as records like those of ``train``."""
    saved = saved_for(text, folder, "gpt", "GPT")
    if not saved:
        raise UserError("there are no GPTs to look at: run python -m beyond.gpt first, on the same text")
    models = zip(saved["runs"], saved["looking_back"], strict=True)
    return [
        {"cell": run["cell"], "seed": run["seed"], "best_step": run["longer_best_step"]} | found
        for run, found in models
        if found
    ]


def measure(arguments):
    text, where = charlm.read(arguments)
    histories = looking_back.histories_of(text)
    steps, gpts = best_steps(text, arguments.outputs), of_gpts(text, arguments.outputs)
    configs = [charlm.Config(cell, SEED, steps=steps[cell], device=arguments.device, **where) for cell in steps]
    models = [charlm.recorded(record) for record in trainings.run(train, configs, arguments)] + gpts
    for model in models:
        if "history" in model:
            model |= {"reach": reach_of_bits(model), "reach_of_gradient": reach_of_gradient(model)}
    return {
        "seeds": [SEED],
        "corpus": text.fingerprint,
        "models": models,
        "counting": counted(text),
        "scored_characters": min(looking_back.SCORED, len(text.validation) - max(histories)),
    }


def reach_of_bits(model):
    """The history from which on more of the past is worth hardly anything."""
    bits, enough = model["bits_per_char"], min(model["bits_per_char"]) + NEAR_BITS
    first = next(i for i, b in enumerate(bits) if b <= enough)
    if first == 0:
        return float(model["history"][0])
    return between(model["history"][first - 1 :], bits[first - 1 :], enough)


def reach_of_gradient(model):
    """The distance from which on so little of the gradient comes that it isn't worth mentioning."""
    arrived = [(d, math.log(g)) for d, g in zip(model["history"], model["gradient"], strict=True) if g]
    distances, logarithms = zip(*arrived, strict=True)
    enough = logarithms[0] + math.log(NEAR_SHARE)
    last = max(i for i, g in enumerate(logarithms) if g >= enough)
    if last == len(arrived) - 1:
        return float(distances[last])
    return between(distances[last:], logarithms[last:], enough)


def between(distances, values, wanted):
    """Where the straight line from the first value to the second, over log2 of the distance, passes ``wanted``."""
    share = (values[0] - wanted) / (values[0] - values[1])
    return distances[0] * (distances[1] / distances[0]) ** share


def tell(found):
    models, counting = [model for model in found["models"] if "history" in model], found["counting"]
    known = {d for model in models for d in model["history"]} | set(counting["history"])
    shown = [d for d in SHOWN if d in known]
    head = f"{'':12}" + "".join(f"{d:8,}" for d in shown)
    yield f"bits per character of {found['scored_characters']:,} characters, given the last … characters and no more"
    yield head
    own = dict(zip(counting["history"], counting["bits_per_char"], strict=True))
    others = "".join(f", {bits:.3f} given {d}" for d, bits in own.items() if d not in shown)
    yield f"{COUNTING:12}" + "".join(f"{own[d]:8.3f}" if d in own else f"{'':8}" for d in shown).rstrip() + others
    yield from rows(models, shown, "bits_per_char", ".3f")
    yield ""
    yield f"and given {looking_back.SHUFFLED}, the words further back in random order"
    yield head
    yield from rows(models, shown, "bits_per_char_where_the_rest_is_shuffled", ".3f")
    yield ""
    yield "the gradient at the embedding so many characters back, as a share of that right before"
    yield head
    yield from rows(models, shown, "gradient", ".1e", relative=True)
    yield ""
    yield f"how far it looks: to {NEAR_BITS} bits from its best; by its gradient, to {NEAR_SHARE:.0%} of the nearest"
    for model in models:
        told = f"{model['reach']:,.0f} characters; by its gradient {model['reach_of_gradient']:,.0f}"
        furthest = max(d for d, g in zip(model["history"], model["gradient"], strict=True) if g)
        told += ", all of its window" * (model["reach_of_gradient"] == furthest)
        yield f"{model['cell']:12}: {told} (step {model['best_step']:,})"
    yield from (charlm.line(model) for model in found["models"] if "diverged_at_step" in model)


def rows(models, shown, what, form, *, relative=False):
    """A line for each model, blank where there is nothing."""
    for model in models:
        values = dict(zip(model["history"], model[what], strict=False))
        if relative:
            values = {d: v and v / model[what][0] for d, v in values.items()}
        cells = (f"{values[d]:8{form}}" if values.get(d) is not None else f"{'':8}" for d in shown)
        yield f"{model['cell']:12}{''.join(cells)}".rstrip()


def draw(found):
    """What the past is worth, what arrives of the gradient, and how far each model looks by both."""
    figure, (left, middle, right) = plots.subplots(1, 3, size=(14, 4.6))
    counting, models = found["counting"], [model for model in found["models"] if "history" in model]
    left.plot(counting["history"], counting["bits_per_char"], "x:", color="black", label=COUNTING)
    for number, model in enumerate(models):
        style = {"color": plots.COLOURS[number], "marker": plots.MARKERS[number], "markersize": 4}
        left.plot(model["history"], model["bits_per_char"], label=model["cell"], linewidth=1, **style)
        arrived = [g / model["gradient"][0] if g else math.nan for g in model["gradient"]]
        middle.plot(model["history"], arrived, linewidth=1, **style)
        reach = model["reach"], model["reach_of_gradient"]
        right.plot(reach, (number, number), "-", color=style["color"], linewidth=1)
        right.plot(reach[0], number, style["marker"], color=style["color"])
        right.plot(reach[1], number, style["marker"], color=style["color"], fillstyle="none")
    for axes in left, middle, right:
        axes.set_xscale("log", base=2)
    left.set(xlabel="characters given", ylabel="bits per character", title="What the past is worth")
    middle.set(xlabel="characters back", yscale="log", ylim=(1e-6, 2), title="Gradient, as a share of the nearest")
    right.set(xlabel="characters back", title="How far it looks: by bits (full), by gradient (hollow)")
    right.set_yticks(range(len(models)), [model["cell"] for model in models])
    right.invert_yaxis()
    left.legend(fontsize=8)
    return figure


if __name__ == "__main__":
    script.run(measure, tell, draw, options)
