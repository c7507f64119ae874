"""What it takes to beat modified Kneser–Ney, without a look at the validation text before the end.

Two posts are set aside from the training text. They decide when to stop, how long Kneser–Ney's context is, how models
are mixed and which row is the best of its kind; the validation text is scored once, with what was decided. The rows of
the table, the first two of one seed, the others of three:

    LSTM, as in the post       as charlm.py trains it, but for the posts set aside, and for 2,400 steps at most
    LSTM, regularised          outputs and recurrent weights are dropped, weights decay, the rate falls as a cosine
    LSTM, regularised, wide    512 units, dropping more
    GPT, regularised           four blocks of 128 that read windows of 256 characters

Then the probabilities of the three seeds are averaged, and mixed with those of Kneser–Ney. Kneser–Ney has two rows. On
the posts that the networks learn from it is what they are compared with. On all training posts it is what can be had
from counting, which needs no stopping and so reads the posts set aside as well once the weights are fitted: that one is
mixed. What learns while it reads the text that it is scored on is reported separately.

What no training post shows is one symbol, of which training says nothing. So every model, Kneser–Ney too, gives it the
share of characters that a training post has to itself, on average, and the rest of its probabilities that much less
(layers/mixtures.py). With a text of one's own, --data, a twentieth of the training text stands for a post, and the last
one is set aside.

    python -m beyond.beat_counting          49 min

Prints, in the middle:

                             parameters   seconds    stopped at      set aside          alone          mixed  weight
    modified Kneser–Ney, context 15                                                     2.465
    modified Kneser–Ney, context 15, on all training posts                              2.450
    LSTM, as in the post        377,236       439   2,400 ± 120          2.331          2.463          2.283  0.51
    LSTM, regularised           377,236       243   2,280 ± 120          2.288          2.388          2.262  0.54
    LSTM, regularised, wide   1,269,140  692 ± 12   2,000 ± 100  2.184 ± 0.005  2.296 ± 0.007  2.212 ± 0.003  0.65
    GPT, regularised            829,332  879 ± 17   2,400 ± 120  2.177 ± 0.012  2.331 ± 0.010  2.209 ± 0.007  0.65

    the seeds averaged           alone     mixed
    LSTM, regularised, wide      2.253     2.194
    GPT, regularised             2.242     2.176
    all of these                           2.166  weights 0.17 / 0.58, of Kneser–Ney 0.25

On the validation posts the wide LSTM is ahead, on those set aside on average the GPT, which has two thirds as many
parameters. All but one are best at their last step, that one at the point before: with more steps they may do better,
the post's LSTM too. So may other rates.

The learning rates are those that beyond/beat_counting_settings.py chose on the posts set aside. Widths, steps and what
is dropped follow a first try of one seed, whose bits on the validation text were known.

Sources: Merity et al., "Regularizing and optimizing LSTM language models" (2018); Loshchilov and Hutter, "SGDR" (2017),
for the cosine; Krause et al., "Dynamic evaluation of neural sequence models" (2018).
"""

# Longer than most scripts: trainings of two kinds, and all the ways of combining them.

import math
from pathlib import Path

import numpy as np
import torch

import charlm
import corpus
from char_models import options, spread
from cleaning import posts
from kneser_ney import MODIFIED_CONTEXTS, levels, modified_discounts
from lab import devices, plots, script, trainings
from lab.errors import UserError
from layers import mixtures, stopped
from layers.ngrams import count_ngrams, score

SEEDS = [0, 1, 2]
SET_ASIDE = 20  # one post of so many
CONTEXTS = MODIFIED_CONTEXTS  # of Kneser–Ney, to choose from
LEARNING_SEED = 0  # of the trainings that are also scored while they learn
AIMS = {"a recurrent model": 2.36, "a GPT": 2.30, "the best mixture": 2.15}
COUNTING, ON_ALL = "modified Kneser–Ney", "on all training posts"
POSTS, WIDEST, OF_GPT = "LSTM, as in the post", "LSTM, regularised, wide", "GPT, regularised"
REGULARISED = {"learning_rate": 8e-3, "steps": 2400}
ROWS = {
    POSTS: {"hidden": 256, "batch": 64, "steps": 2400, "decay": 0.01, "cosine": False, "cost": 0.18},
    "LSTM, regularised": REGULARISED | {"hidden": 256, "dropout": 0.3, "weight_dropout": 0.3, "cost": 0.10},
    WIDEST: REGULARISED | {"hidden": 512, "dropout": 0.4, "weight_dropout": 0.4, "steps": 2000, "cost": 0.34},
    OF_GPT: REGULARISED | {"kind": "GPT", "dropout": 0.15, "window": 256, "batch": 16, "cost": 0.34},
}
SEVERAL = (WIDEST, OF_GPT)  # rows of all seeds; of the others there is the first

KINDS = {
    "*": "trained",
    "*scored_characters": "corpus",
    "compressed.*": "corpus .3f",
    "counting.*": "corpus",
    "set_aside.*": "corpus",
    "rates.*": "setting",
    **{f"runs.*.{name}": "setting" for name in stopped.SETTINGS},
    "runs.*.parameters": "exact",
}


def parts(text, data):
    """The training text in two: what is trained on, and what is set aside."""
    parted = corpus.set_aside(data and Path(data), SET_ASIDE)
    return (parted.train, parted.validation) if parted else (text.train, "")


def ids_of(text, data, device="cpu"):
    """The ids of what is trained on, of what is set aside and of the validation text.

    What is trained on doesn't show all of the characters set aside: the others are unseen there.
    """
    rest, aside, validation = (torch.from_numpy(text.encode(part)) for part in (*parts(text, data), text.validation))
    aside = torch.where(torch.isin(aside, rest), aside, text.size - 1)
    return [ids.to(device) for ids in (rest, aside, validation)]


def share_unseen(text, data):
    """The share of its characters that a training post has to itself: so much is to be expected of another one."""
    if data is None or Path(data).resolve() == corpus.DATA:
        found, _ = posts.gather(corpus.DATA / "posts")
        return mixtures.share_of_its_own([post.cleaned for name, post in found.items() if name not in corpus.HELD_OUT])
    length = -(-len(text.train) // SET_ASIDE)
    return mixtures.share_of_its_own([text.train[at : at + length] for at in range(0, len(text.train), length)])


def train(config, checkpoint):
    """One training, stopped on what is set aside; its record has the bits of every character, packed."""
    text = corpus.load(config.data and Path(config.data))
    if text.fingerprint != config.text:
        raise UserError("the text has changed since this training was set up: start it again")
    pieces = ids_of(text, config.data, devices.trusted(config.device))
    return stopped.train(config, checkpoint, *pieces, vocabulary=text.size)


def counted(text, data):
    """Kneser–Ney's context, best on what is set aside, and its probabilities of that and of the validation text.

    Both from what is trained on; and of the validation text again, from all of the training text.
    """
    ids, aside, validation = (part.numpy() for part in ids_of(text, data))

    def probabilities(train, *texts):
        """For each text and each context."""
        model = levels(count_ngrams(train, text.size, max(CONTEXTS) + 1), modified_discounts, text.size)
        return [[p[1:] for p in score(*model, scored, text.size)] for scored in texts]

    on_aside, on_validation = probabilities(ids, aside, validation)
    context = min(CONTEXTS, key=lambda n: mixtures.bits_per_char(on_aside[n]))
    (on_all,) = probabilities(text.encode(text.train), validation)
    return context, on_aside[context], on_validation[context], on_all[context]


def configurations(arguments, where):
    settings = {"device": arguments.device, **where}
    return [
        stopped.Config(row, seed, **own | {"cost": own["cost"] * own["steps"]}, **settings, learns_reading=learns)
        for row, own in ROWS.items()
        for seed in (SEEDS if row in SEVERAL else SEEDS[:1])
        for learns in [row in SEVERAL and seed == LEARNING_SEED]
    ]


def refuse_short(text, data):
    """Refuse a text that there is nothing to train on or to stop by, before anything is trained."""
    rest, aside, _ = ids_of(text, data)
    longest = max(own.get("window", charlm.WINDOW) for own in ROWS.values())
    if len(rest) <= longest or (aside < text.size - 1).sum() < 2:
        has = script.counted(len(text.train), "character")
        raise UserError(f"the training text has {has}: it has to be over {longest}, and some more to set aside")


def measure(arguments):
    text, where = charlm.read(arguments)
    refuse_short(text, arguments.data)
    runs = trainings.run(train, configurations(arguments, where), arguments)
    curves, packed = ([run.pop(name, None) for run in runs] for name in ("curve", "packed"))
    share, (_, *scored) = share_unseen(text, arguments.data), ids_of(text, arguments.data)
    unseen = [(ids[1:] == text.size - 1).numpy() for ids in scored]

    def expecting(*both):
        """Probabilities of what is set aside and of the validation text."""
        return [mixtures.expecting(p, which, share) for p, which in zip(both, unseen, strict=True)]

    context, *both, on_all = counted(text, arguments.data)
    on_rest, counting = expecting(*both)[1], expecting(both[0], on_all)

    def with_counting(row, own):
        return mixtures.fitted({row: own, COUNTING: counting})

    models, learning = {}, {}  # of each row: the two of ``expecting``, by seed
    for run, kept in zip(runs, packed, strict=True):
        if not kept:  # it diverged
            continue
        own = expecting(*map(mixtures.unpack, kept["reading"]))
        models.setdefault(run["row"], []).append(own)
        run["set_aside_bits_per_char"], run["validation_bits_per_char"] = map(mixtures.bits_per_char, own)
        mixed = with_counting(run["row"], own)
        run |= {"mixed_bits_per_char": mixed["bits_per_char"], "weight": mixed["weights"][run["row"]]}
        if "rate" in kept:
            learning[run["row"]] = kept["rate"], expecting(*map(mixtures.unpack, kept["learning"]))
    averages = {row: [np.mean(one, 0) for one in zip(*models[row], strict=True)] for row in SEVERAL if row in models}
    learnt = {f"{row}, learning": own for row, (_, own) in learning.items()}
    bits = mixtures.bits_per_char
    found = {"seeds": SEEDS, "corpus": text.fingerprint, "scored_characters": len(on_all), "rates": stopped.RATES}
    found |= {"runs": [stopped.recorded(run) for run in runs], "curves": curves}
    return found | {
        "set_aside": {"characters": len(scored[0]), "share": len(scored[0]) / len(text.train), "unseen_share": share},
        "counting": {"context": context, "bits_per_char": bits(on_rest), "on_all_bits_per_char": bits(counting[1])},
        "averages": {
            row: {"bits_per_char": bits(own[1]), "mixed": with_counting(row, own)} for row, own in averages.items()
        },
        "all": mixtures.fitted(averages | {COUNTING: counting}),
        "learning": [
            {"row": row, "rate": rate, "bits_per_char": bits(own[1])} for row, (rate, own) in learning.items()
        ],
        "all_and_learning": mixtures.fitted(learnt | averages | {COUNTING: counting}),
        "compressed": mixtures.compressed(text.train, text.validation),
    }


def best(found):
    """What the validation text costs the recurrent row, the GPT and the mixture that are best on what is set aside."""
    rows, mixed = by_row(found), [found["all"], *(own["mixed"] for own in found["averages"].values())]

    def mean(row, text):
        return np.mean([run[f"{text}_bits_per_char"] for run in rows[row]])

    recurrent = min((row for row in rows if row != OF_GPT), key=lambda row: mean(row, "set_aside"), default=None)
    values = [mean(row, "validation") if row in rows else math.inf for row in (recurrent, OF_GPT)]
    values.append(min(mixed, key=lambda one: one["set_aside_bits_per_char"])["bits_per_char"])
    return dict(zip(AIMS, values, strict=True))


def by_row(found):
    finished = [run for run in found["runs"] if "diverged_at_step" not in run]
    return {row: own for row in ROWS if (own := [run for run in finished if run["row"] == row])}


def tell(found):
    aside, counting, scored = found["set_aside"], found["counting"], found["scored_characters"]
    yield f"set aside: {aside['characters']:,} characters, {aside['share']:.1%} of the training text"
    yield f"expected of characters that training doesn't show: {aside['unseen_share']:.3%}"
    yield f"bits per character of the validation text, {scored:,} scored; mixed: with {COUNTING} {ON_ALL}, each seed"
    columns = f"{'parameters':>11}{'seconds':>10}{'stopped at':>14}{'set aside':>15}{'alone':>15}{'mixed':>15}"
    yield f"{'':24}{columns}  weight"
    name = f"{COUNTING}, context {counting['context']}"
    yield f"{name:74}{counting['bits_per_char']:15.3f}"
    yield f"{f'{name}, {ON_ALL}':74}{counting['on_all_bits_per_char']:15.3f}"
    for row, own in by_row(found).items():
        seconds, step = ([run[name] for run in own] for name in ("seconds", "best_step"))
        bits = [[run[f"{name}_bits_per_char"] for run in own] for name in ("set_aside", "validation", "mixed")]
        weight = sum(run["weight"] for run in own) / len(own)
        at = spread(step, ",.0f", own[0]["steps"] / own[0]["points"])  # known no better than to the next point
        yield (
            f"{row:24}{own[0]['parameters']:11,}{spread(seconds, '.0f'):>10}{at:>14}"
            f"{''.join(f'{spread(values):>15}' for values in bits)}  {weight:.2f}"
        )
    yield from stopped.tell_diverged(found["runs"])
    yield ""
    yield f"{'the seeds averaged':24}{'alone':>10}{'mixed':>10}"
    for row, own in found["averages"].items():
        yield f"{row:24}{own['bits_per_char']:10.3f}{own['mixed']['bits_per_char']:10.3f}"
    shares = found["all"]["weights"]
    weights = " / ".join(f"{weight:.2f}" for name, weight in shares.items() if name != COUNTING)
    told = f"weights {weights}, of Kneser–Ney {shares[COUNTING]:.2f}"
    yield f"{'all of these':24}{'':10}{found['all']['bits_per_char']:10.3f}  {told}"
    yield ""
    yield f"reported separately, because it learns while it reads (seed {LEARNING_SEED})"
    for one in found["learning"]:
        told = f"{one['row']:24}{one['bits_per_char']:10.3f}  at a rate of {one['rate']:g}"
        ends = {min(found["rates"]): "smallest", max(found["rates"]): "largest"}
        yield told + (f", the {ends[one['rate']]} tried: beyond it may be a better one" if one["rate"] in ends else "")
    yield f"{'with all of the above':24}{found['all_and_learning']['bits_per_char']:10.3f}"
    yield ""
    for name, bits in found["compressed"].items():
        yield f"{name:5} packs the validation text, after the training text, into {bits:.3f} bits per character"
    yield ""
    yield "chosen by what is set aside:"
    for aim, bits in best(found).items():
        reached = "reached" if bits <= AIMS[aim] else f"missed by {bits - AIMS[aim]:.3f}"
        yield f"{aim} at {AIMS[aim]:.2f} bits or below: {bits:.3f}, {reached}"


def draw(found):
    """Each row's seeds, alone and mixed, and their averages, above what counting and compressing reach."""
    figure, axes = plots.subplots(size=(9, 4.8))
    rows = by_row(found)
    for number, (row, own) in enumerate(rows.items()):
        for name, mark, label in (("validation", "o", "alone"), ("mixed", "s", "mixed with Kneser–Ney")):
            bits = [run[f"{name}_bits_per_char"] for run in own]
            style = {"color": plots.COLOURS[name == "mixed"], "label": label if number == 0 else None}
            axes.plot([number] * len(bits), bits, mark, fillstyle="none", **style)
        if average := found["averages"].get(row):
            label = "seeds averaged" if row == next(iter(found["averages"])) else None
            axes.plot(number, average["bits_per_char"], "o", color=plots.COLOURS[0], label=label)
            axes.plot(number, average["mixed"]["bits_per_char"], "s", color=plots.COLOURS[1])
    axes.plot(len(rows), found["all"]["bits_per_char"], "D", color=plots.COLOURS[2], label="all of them mixed")
    counted = found["counting"]["on_all_bits_per_char"]
    axes.axhline(counted, color="black", linewidth=1, linestyle="--", label=f"{COUNTING} {counted:.2f}")
    name, packed = min(found["compressed"].items(), key=lambda one: one[1])
    axes.axhline(packed, color="black", linewidth=1, linestyle=":", label=f"{name} {packed:.2f}")
    names = [row.replace(", ", ",\n") for row in rows]
    axes.set_xticks(range(len(rows) + 1), [*names, "averages and\nKneser–Ney"])
    axes.set(ylabel="validation bits per character", title="What beats counting, chosen without the validation text")
    axes.legend(fontsize=8)
    return figure


if __name__ == "__main__":
    script.run(measure, tell, draw, options)
