"""What it takes to beat modified Kneser–Ney, without a look at the validation text before the end.

Two posts are set aside from the training text. They decide when to stop, how long Kneser–Ney's context is and how
models are mixed; the validation text is scored once, with what was decided. The rows of the table, three seeds each:

    LSTM, as in the post       as charlm.py trains it, but for the posts set aside
    LSTM, regularised          outputs and recurrent weights are dropped, weights decay, the rate falls as a cosine
    LSTM, regularised, wide    512 units, dropping more
    GPT, regularised           four blocks of 128 that read windows of 256 characters

Then the probabilities of the three seeds are averaged, and mixed with those of Kneser–Ney. Kneser–Ney's own row and its
part in the mixtures are of all training posts: counting needs no stopping, so it reads the posts set aside as well once
the weights are fitted. What learns while it reads the text that it is scored on is told apart.

    python -m beyond.beat_counting          not run at full length yet; about 60 min by the time of a step

Sources: Merity et al., "Regularizing and optimizing LSTM language models" (2018); Loshchilov and Hutter, "SGDR" (2017),
for the cosine; Krause et al., "Dynamic evaluation of neural sequence models" (2018). With a text of one's own, --data,
the last twentieth of the training text is set aside.
"""

# Longer than most scripts: trainings of two kinds, and all the ways of combining them.

import math
from pathlib import Path

import numpy as np
import torch

import charlm
import corpus
from char_models import spread
from kneser_ney import levels, modified_discounts
from lab import devices, plots, script, trainings
from lab.errors import UserError
from layers import mixtures, stopped
from layers.ngrams import count_ngrams, score

SEEDS = [0, 1, 2]
SET_ASIDE = 20  # one post of so many
CONTEXTS = range(1, 13)  # of Kneser–Ney, to choose from
LEARNING_SEED = 0  # of the trainings that are also scored while they learn
AIMS = {"a recurrent model": 2.36, "a GPT": 2.30, "the best mixture": 2.15}
COUNTING = "modified Kneser–Ney"
ROWS = {
    "LSTM, as in the post": {"hidden": 256, "batch": 64, "steps": 2400, "decay": 0.01, "cosine": False, "cost": 0.18},
    "LSTM, regularised": {"hidden": 256, "dropout": 0.3, "weight_dropout": 0.3, "steps": 2400, "cost": 0.10},
    "LSTM, regularised, wide": {"hidden": 512, "dropout": 0.4, "weight_dropout": 0.4, "steps": 2000, "cost": 0.34},
    "GPT, regularised": {"kind": "GPT", "dropout": 0.15, "window": 256, "batch": 16, "steps": 2400, "cost": 0.38},
}
WIDEST, OF_GPT = list(ROWS)[-2:]

KINDS = {
    "*": "trained",
    "*scored_characters": "corpus",
    "compressed.*": "corpus .3f",
    "counting.*": "corpus",
    "set_aside.*": "corpus",
    **{f"runs.*.{name}": "setting" for name in stopped.SETTINGS},
    "runs.*.parameters": "exact",
}


def parts(text, data):
    """The training text in two: what is trained on, and what is set aside."""
    parted = corpus.set_aside(data and Path(data), SET_ASIDE)
    return (parted.train, parted.validation) if parted else (text.train, "")


def ids_of(text, data, device="cpu"):
    """The ids of what is trained on, of what is set aside and of the validation text."""
    pieces = *parts(text, data), text.validation
    return [torch.from_numpy(text.encode(piece)).to(device) for piece in pieces]


def train(config, checkpoint):
    """One training, stopped on what is set aside; its record has the bits of every character, packed."""
    text = corpus.load(config.data and Path(config.data))
    if text.fingerprint != config.text:
        raise UserError("the text has changed since this training was set up: start it again")
    pieces = ids_of(text, config.data, devices.trusted(config.device))
    return stopped.train(config, checkpoint, *pieces, vocabulary=text.size)


def counted(text, data):
    """Kneser–Ney's probabilities of what is set aside and of the validation text, with the context best on the first.

    Of what is set aside from the rest of the training text, of the validation text from all of it.
    """
    ids, aside, validation = (part.numpy() for part in ids_of(text, data))

    def probabilities(train, text_scored):
        model = levels(count_ngrams(train, text.size, max(CONTEXTS) + 1), modified_discounts, text.size)
        return [p[1:] for p in score(*model, text_scored, text.size)]

    before = probabilities(ids, aside)
    context = min(CONTEXTS, key=lambda n: mixtures.bits_per_char(before[n]))
    return context, before[context], probabilities(text.encode(text.train), validation)[context]


def configurations(arguments, where):
    settings = {"device": arguments.device, **where}
    return [
        stopped.Config(row, seed, **own | {"cost": own["cost"] * own["steps"]}, **settings, learns_reading=learns)
        for row, own in ROWS.items()
        for seed in SEEDS
        for learns in [row in (WIDEST, OF_GPT) and seed == LEARNING_SEED]
    ]


def measure(arguments):
    devices.pick(arguments.device)
    text, where = charlm.read(arguments)
    rest, aside = parts(text, arguments.data)
    longest = max(own.get("window", charlm.WINDOW) for own in ROWS.values())
    if len(rest) <= longest or len(aside) < 2:
        has = script.counted(len(text.train), "character")
        raise UserError(f"the training text has {has}: it has to be over {longest}, and some more to set aside")
    runs = trainings.run(train, configurations(arguments, where), arguments)
    curves, packed = ([run.pop(name, None) for run in runs] for name in ("curve", "packed"))
    context, *counting = counted(text, arguments.data)
    models, learning = {}, []  # of each row: the probabilities of what is set aside and of the validation text, by seed
    for run, bits in zip(runs, packed, strict=True):
        if not bits:  # it diverged
            continue
        own = list(map(mixtures.unpack, bits["reading"]))
        models.setdefault(run["row"], []).append(own)
        run["set_aside_bits_per_char"], run["validation_bits_per_char"] = map(mixtures.bits_per_char, own)
        mixed = mixtures.fitted([own, counting])
        run |= {"mixed_bits_per_char": mixed["bits_per_char"], "weight": mixed["weights"][0]}
        if "rate" in bits:
            learning.append((run["row"], bits["rate"], list(map(mixtures.unpack, bits["learning"]))))
    averages = {row: [np.mean(one, 0) for one in zip(*own, strict=True)] for row, own in models.items()}
    both = [averages[row] for row in (WIDEST, OF_GPT) if row in averages]
    return {
        "seeds": SEEDS,
        "corpus": text.fingerprint,
        "set_aside": {"characters": len(aside), "share": len(aside) / len(text.train)},
        "scored_characters": len(counting[1]),
        "runs": [charlm.recorded(run) for run in runs],
        "curves": curves,
        "counting": {"context": context, "bits_per_char": mixtures.bits_per_char(counting[1])},
        "averages": {
            row: {"bits_per_char": mixtures.bits_per_char(own[1]), "mixed": mixtures.fitted([own, counting])}
            for row, own in averages.items()
        },
        "all": mixtures.fitted([*both, counting]),
        "learning": [
            {"row": row, "rate": rate, "bits_per_char": mixtures.bits_per_char(own[1])} for row, rate, own in learning
        ],
        "all_and_learning": mixtures.fitted([*(own for *_, own in learning), *both, counting]),
        "compressed": mixtures.compressed(text.train, text.validation),
    }


def best(found):
    """The lowest mean of a recurrent row's seeds, that of the GPT, and the lowest of all mixtures."""
    rows = {row: np.mean([run["validation_bits_per_char"] for run in own]) for row, own in by_row(found).items()}
    mixed = [found["all"], *(own["mixed"] for own in found["averages"].values())]
    recurrent = min((bits for row, bits in rows.items() if row != OF_GPT), default=math.inf)
    values = recurrent, rows.get(OF_GPT, math.inf), min(one["bits_per_char"] for one in mixed)
    return dict(zip(AIMS, values, strict=True))


def by_row(found):
    finished = [run for run in found["runs"] if "diverged_at_step" not in run]
    return {row: own for row in ROWS if (own := [run for run in finished if run["row"] == row])}


def tell(found):
    aside, counting, scored = found["set_aside"], found["counting"], found["scored_characters"]
    yield f"set aside: {aside['characters']:,} characters, {aside['share']:.1%} of the training text"
    yield f"bits per character of the validation text, {scored:,} scored; mixed: with {COUNTING}, each seed"
    yield f"{'':24}{'parameters':>11}{'seconds':>14}{'stopped at':>16}{'alone':>16}{'mixed':>16}  weight"
    name = f"{COUNTING}, context {counting['context']}"
    yield f"{name:65}{counting['bits_per_char']:16.3f}"
    for row, own in by_row(found).items():
        seconds, step, alone, mixed = (
            [run[name] for run in own]
            for name in ("seconds", "best_step", "validation_bits_per_char", "mixed_bits_per_char")
        )
        weight = sum(run["weight"] for run in own) / len(own)
        yield (
            f"{row:24}{own[0]['parameters']:11,}{spread(seconds, '.0f'):>14}{spread(step, ',.0f'):>16}"
            f"{spread(alone):>16}{spread(mixed):>16}  {weight:.2f}"
        )
    yield ""
    yield f"{'the seeds averaged':24}{'alone':>10}{'mixed':>10}"
    for row, own in found["averages"].items():
        yield f"{row:24}{own['bits_per_char']:10.3f}{own['mixed']['bits_per_char']:10.3f}"
    weights = " / ".join(f"{weight:.2f}" for weight in found["all"]["weights"])
    yield f"{'both and Kneser–Ney':24}{'':10}{found['all']['bits_per_char']:10.3f}  weights {weights}"
    yield ""
    yield f"told apart, because it learns while it reads (seed {LEARNING_SEED})"
    for one in found["learning"]:
        yield f"{one['row']:24}{one['bits_per_char']:10.3f}  at a rate of {one['rate']:g}"
    yield f"{'and all of the above':24}{found['all_and_learning']['bits_per_char']:10.3f}"
    yield ""
    for name, bits in found["compressed"].items():
        yield f"{name:5} packs the validation text, after the training text, into {bits:.3f} bits per character"
    yield ""
    for aim, bits in best(found).items():
        reached = "reached" if bits <= AIMS[aim] else f"missed by {bits - AIMS[aim]:.3f}"
        yield f"{aim} at {AIMS[aim]:.2f} bits or below: {bits:.3f}, {reached}"


def draw(found):
    """Each row's seeds, alone and mixed, and their averages, above what counting and compressing reach."""
    figure, axes = plots.subplots(size=(9, 4.8))
    rows = by_row(found)
    for number, own in enumerate(rows.values()):
        for name, mark, label in (("validation", "o", "alone"), ("mixed", "s", "mixed with Kneser–Ney")):
            bits = [run[f"{name}_bits_per_char"] for run in own]
            style = {"color": plots.COLOURS[name == "mixed"], "label": label if number == 0 else None}
            axes.plot([number] * len(bits), bits, mark, fillstyle="none", **style)
    for number, row in enumerate(rows):
        average = found["averages"][row]
        label = "seeds averaged" if number == 0 else None
        axes.plot(number, average["bits_per_char"], "o", color=plots.COLOURS[0], label=label)
        axes.plot(number, average["mixed"]["bits_per_char"], "s", color=plots.COLOURS[1])
    axes.plot(len(rows), found["all"]["bits_per_char"], "D", color=plots.COLOURS[2], label="all of them mixed")
    axes.axhline(found["counting"]["bits_per_char"], color="black", linewidth=1, linestyle="--", label=COUNTING)
    packed = min(found["compressed"].items(), key=lambda one: one[1])
    axes.axhline(packed[1], color="black", linewidth=1, linestyle=":", label=f"{packed[0]} {packed[1]:.2f}")
    names = [row.replace(", ", ",\n") for row in rows]
    axes.set_xticks(range(len(rows) + 1), [*names, "both, and\nKneser–Ney"])
    axes.set(ylabel="validation bits per character", title="What beats counting, chosen without the validation text")
    axes.legend(fontsize=8)
    return figure


def options(parser):
    corpus.add_argument(parser)
    parser.add_jobs()
    parser.add_device()


if __name__ == "__main__":
    script.run(measure, tell, draw, options)
