"""How far back does a character model look? What the past is worth to it, and how much of its gradient goes there.

Each model is given only the last d characters before the one it predicts, d = 1, 2, 4, … 1,024, beginning with a state
of zero: its bits fall until more of the past is worth nothing to it. For d up to 128 it is also given all of the last
128, those further back than d in random order: what it loses is what their order was worth. And the gradient of its
loss is measured at the embedding d characters back. All three are of the same 1,024 characters of the validation text
(the gradient of 256 of them), and explained in layers/looking_back.py.

    python -m beyond.horizon          not run at full length yet; about 12 min by the time of a step, after beyond.gpt

The recurrent models are trained by charlm.py for 1,000 steps, where the GRU is near its best and the others are on the
way, and their weights of the best step are looked at. The GPTs are those of beyond/gpt.py, which looked when it had
trained them. Kneser–Ney is the modified one, with each context as long as the history.

A model's reach is the shortest history, among those measured, that leaves it within 0.05 bits of what the longest one
gives; by its gradient, the furthest distance where that is still 1 % of what arrives right before the character. They
needn't agree: a gradient says how much the loss would change if a far character did, not whether that is of any use.

Sources: Khandelwal et al., "Sharp nearby, fuzzy far away: how neural language models use context" (2018).
"""

import math
from dataclasses import asdict

import numpy as np

import charlm
import corpus
from char_models import saved_for, spread
from kneser_ney import levels, modified_discounts
from lab import devices, plots, script
from lab.errors import UserError
from lab.trainings import run as run_trainings
from layers import looking_back
from layers.ngrams import count_ngrams, score

SEEDS = [0, 1, 2]
CELLS = ["RNN", "GRU", "LSTM", "minGRU"]
STEPS = 1000
CONTEXTS = [1, 2, 4, 8, 12]  # of Kneser–Ney
COUNTING = "Kneser–Ney"
NEAR_BITS = 0.05  # from what the longest history gives: the past beyond is worth no more
NEAR_SHARE = 0.01  # of the gradient right before the character
SHOWN = [1, 2, 4, 8, 16, 32, 64, 128, 256, 1024]

KINDS = {
    "*": "trained",
    "counting.*": "corpus",
    "models.*.history.*": "setting",
    "models.*.cell": "setting",
    "models.*.steps": "setting",
    "scored_characters": "corpus",
}


def train(config, checkpoint):
    """One training, and how far back its best weights look."""
    training, text, ids, validation = charlm.set_up(config, checkpoint)
    charlm.learn(training, ids, validation)
    training.model.load_state_dict(training.best["model"])
    found = looking_back.measure(training.model, validation, config.seed, histories(text))
    about = {"best_step": training.best["step"], "seconds": training.seconds}
    return charlm.recorded(asdict(config)) | about | found


def histories(text):
    return [d for d in looking_back.HISTORIES if d < len(text.validation) // 2]


def counted(text):
    """Bits of Kneser–Ney on the very characters that the others are measured on, for each context."""
    train_ids, ids, V = text.encode(text.train), text.encode(text.validation), text.size
    model = levels(count_ngrams(train_ids, V, max(CONTEXTS) + 1), modified_discounts, V)
    at = looking_back.positions(len(ids), looking_back.SCORED, histories(text)).numpy()
    bits = [-np.log2(p[at]).mean() for p in score(*model, ids, V)]
    return {"history": CONTEXTS, "bits_per_char": [bits[context] for context in CONTEXTS]}


def of_gpts(text, folder):
    """What beyond/gpt.py measured of its models, as records like those of ``train``."""
    saved = saved_for(text, folder, "gpt", "GPT")
    if not saved:
        raise UserError("there are no GPTs to look at: run python -m beyond.gpt first, on the same text")
    models = zip(saved["runs"], saved["looking_back"], strict=True)
    return [
        {"cell": run["cell"], "seed": run["seed"], "steps": run["ended_at_step"], "best_step": run["longer_best_step"]}
        | found
        for run, found in models
        if found
    ]


def measure(arguments):
    devices.pick(arguments.device)
    text, where = charlm.read(arguments)
    gpts = of_gpts(text, arguments.outputs)
    settings = {"steps": STEPS, "device": arguments.device, **where}
    configs = [charlm.Config(cell, seed, **settings) for cell in CELLS for seed in SEEDS]
    models = [charlm.recorded(record) for record in run_trainings(train, configs, arguments)]
    return {
        "seeds": SEEDS,
        "corpus": text.fingerprint,
        "models": models + gpts,
        "counting": counted(text),
        "scored_characters": min(looking_back.SCORED, len(text.validation) - max(histories(text))),
    }


def reach_of_bits(model):
    """The shortest history that is worth about as much as the longest."""
    bits = model["bits_per_char"]
    return next(d for d, b in zip(model["history"], bits, strict=True) if b <= bits[-1] + NEAR_BITS)


def reach_of_gradient(model):
    """The furthest distance from which a share of the gradient comes that is worth mentioning."""
    gradient = model["gradient"]
    far = [d for d, g in zip(model["history"], gradient, strict=True) if g and g >= NEAR_SHARE * gradient[0]]
    return max(far)


def by_cell(found):
    finished = [model for model in found["models"] if "diverged_at_step" not in model]
    cells = dict.fromkeys(model["cell"] for model in finished)
    return {cell: [model for model in finished if model["cell"] == cell] for cell in cells}


def tell(found):
    cells, counting = by_cell(found), found["counting"]
    shown = [d for d in SHOWN if d in next(iter(cells.values()))[0]["history"]]
    head = f"{'':12}" + "".join(f"{d:8,}" for d in shown)
    yield f"bits per character of {found['scored_characters']:,} characters, given the last … characters and no more"
    yield head
    own = dict(zip(counting["history"], counting["bits_per_char"], strict=True))
    yield f"{COUNTING:12}" + "".join(f"{own[d]:8.3f}" if d in own else f"{'':8}" for d in shown).rstrip()
    yield from rows(cells, shown, "bits_per_char", ".3f")
    yield ""
    yield f"and given {looking_back.SHUFFLED}, those further back in random order"
    yield head
    yield from rows(cells, shown, "bits_per_char_where_the_rest_is_shuffled", ".3f")
    yield ""
    yield "the gradient at the embedding so many characters back, as a share of that right before"
    yield head
    yield from rows(cells, shown, "gradient", ".1e", relative=True)
    yield ""
    yield f"how far it looks: to within {NEAR_BITS} bits of all; by its gradient, to {NEAR_SHARE:.0%} of the nearest"
    for cell, models in cells.items():
        by_bits, by_gradient = ([reach(model) for model in models] for reach in (reach_of_bits, reach_of_gradient))
        yield f"{cell:12}: {spread(by_bits, ',.0f')} characters; by its gradient {spread(by_gradient, ',.0f')}"


def rows(cells, shown, what, form, *, relative=False):
    """A line for each model: the means of its seeds, blank where there is nothing."""
    for cell, models in cells.items():
        line = f"{cell:12}"
        for d in shown:
            values = [dict(zip(model["history"], model[what], strict=False)).get(d) for model in models]
            if relative:
                values = [v and v / model[what][0] for v, model in zip(values, models, strict=True)]
            line += f"{'':8}" if None in values else f"{sum(values) / len(values):8{form}}"
        yield line.rstrip()


def draw(found):
    """What the past is worth, what arrives of the gradient, and how far each model looks by both."""
    figure, (left, middle, right) = plots.subplots(1, 3, size=(14, 4.6))
    counting, cells = found["counting"], by_cell(found)
    left.plot(counting["history"], counting["bits_per_char"], "x:", color="black", label=COUNTING)
    for number, (cell, models) in enumerate(cells.items()):
        style = {"color": plots.COLOURS[number], "marker": plots.MARKERS[number], "markersize": 4}
        for model in models:
            label = cell if model is models[0] else None
            left.plot(model["history"], model["bits_per_char"], label=label, linewidth=1, **style)
            arrived = [g / model["gradient"][0] if g else math.nan for g in model["gradient"]]
            middle.plot(model["history"], arrived, label=label, linewidth=1, **style)
            height = number + (model["seed"] - 1) * 0.2
            reach = reach_of_bits(model), reach_of_gradient(model)
            right.plot(reach, (height, height), "-", color=style["color"], linewidth=1)
            right.plot(reach[0], height, style["marker"], color=style["color"])
            right.plot(reach[1], height, style["marker"], color=style["color"], fillstyle="none")
    for axes in left, middle, right:
        axes.set_xscale("log", base=2)
    left.set(xlabel="characters given", ylabel="bits per character", title="What the past is worth")
    middle.set(xlabel="characters back", yscale="log", ylim=(1e-6, 2), title="Gradient, as a share of the nearest")
    right.set(xlabel="characters back", title="How far it looks: by bits (full), by gradient (hollow)")
    right.set_yticks(range(len(cells)), list(cells))
    right.invert_yaxis()
    left.legend(fontsize=8)
    return figure


def options(parser):
    corpus.add_argument(parser)
    parser.add_jobs()
    parser.add_device()


if __name__ == "__main__":
    script.run(measure, tell, draw, options)
