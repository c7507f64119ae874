"""Exploding gradients: a plain RNN that comes apart, the same one clipped, and what clipping does otherwise.

Three measurements.

1. A plain RNN learns characters by stochastic gradient descent, with rectified units, as Le et al. (2015) use them, and
   with tanh, which is tried at larger learning rates too: five seeds, without clipping and with the gradient's norm
   clipped at 1. A state of rectified units has no bound, so that a step too large can make the next loss infinite. One
   of tanh can't be above 1.
2. The post's character models (charlm.py), one seed, 600 steps: not clipped, and clipped at 0.1, 1 and 10. How often
   was the norm above the limit, and how well do the models predict?
3. The post's reversers, from what reverse.py has saved: how often clipping acted. Those of forty digits, from what
   reverse_40_longer.py and reverse_40_unclipped.py have saved: what it cost.

    python -m beyond.explosions          11 min

Prints, first:

    a plain RNN on characters, by gradient descent: seeds whose loss was not finite, and when;
    of the others: mean loss of the last 50 steps (nats); of all: the largest norm of the gradient
    rectified rate 0.5 not clipped : 2 of 5 (step 16, 13); loss 2.32 to 2.36; norms up to 1.5e+15
    rectified rate 0.5 clipped at 1: 0 of 5; loss 2.29 to 2.30; norms up to 2.2e+01
    tanh      rate 0.5 not clipped : 0 of 5; loss 2.36 to 2.39; norms up to 2.0e+00
    tanh      rate 0.5 clipped at 1: 0 of 5; loss 2.36 to 2.38; norms up to 2.0e+00
    tanh      rate 5   not clipped : 0 of 5; loss 3.19 to 6.82; norms up to 2.0e+02
    tanh      rate 5   clipped at 1: 0 of 5; loss 2.16 to 2.18; norms up to 7.2e+00
    tanh      rate 50  not clipped : 0 of 5; loss 115.84 to 161.40; norms up to 5.5e+04
    tanh      rate 50  clipped at 1: 0 of 5; loss 49.88 to 55.95; norms up to 3.9e+01

An explosion of rectified units ends in a loss that isn't finite, one of tanh in a loss that is large and stays so. At a
rate of 5 clipping is what lets tanh learn, and better than at 0.5. The post's character models are clipped in one step
of a hundred, the reversers of ten digits and more at least once in almost every hundredth of their training; at forty
digits that costs the one without attention 0.06 of them.

This script is longer than others because it has three measurements.

Sources: KnowML's course page "Sequence Modeling Pre-Transformer", section 4, for the NaN; Pascanu, Mikolov and Bengio
(2013) for clipping; Le, Jaitly and Hinton (2015) for rectified units.
"""

from dataclasses import dataclass, fields
from pathlib import Path
from statistics import fmean, median

import torch
from torch import nn
from torch.nn import functional as F

import charlm
import corpus
import reverse
from lab import devices, plots, results, script, trainings
from lab.descent import Descent
from lab.errors import Diverged, UserError, note
from layers.char_rnn import CELLS, EMBEDDING, evaluate

UNITS = {"rectified": "relu", "tanh": "tanh"}
PLAIN = [("rectified", 0.5), ("tanh", 0.5), ("tanh", 5.0), ("tanh", 50.0)]  # units and learning rates
CLIPS = [None, 1.0]  # of the plain RNN
PLAIN_STEPS, WIDTH, BATCH = 600, 64, 32  # of stochastic gradient descent; units; windows a step
SEEDS = range(5)
LAST = 50  # steps whose mean loss is told
CHAR_STEPS, CHAR_CLIPS, CHAR_SEED = 600, [None, 0.1, 1.0, 10.0], 0
POINTS = 100  # of a curve of norms
CURVES = ("losses", "norms")  # of every step
READS = ("reverse", "reverse_40_longer", "reverse_40_unclipped")
SAVED = {"clipped at 1": "reverse_40_longer", "not clipped": "reverse_40_unclipped"}  # the reversers' experiments


@dataclass(frozen=True)
class Plain:
    """One training of a plain RNN."""

    units: str  # of UNITS
    rate: float  # of stochastic gradient descent
    clip: float | None  # largest norm of the gradient
    seed: int  # of weights and windows
    text: str  # fingerprint of the text
    data: str | None  # its folder; None: data/
    steps: int
    device: str = "cpu"  # where it is trained; not recorded

    def __str__(self):
        return f"{self.units} RNN, rate {self.rate:g}, {told_clip(self.clip)}, seed {self.seed}"

    @property
    def cost(self):
        return self.steps / 5  # of those of a character model's plain RNN


KINDS = {
    "*": "trained",
    **{f"plain.*.{field.name}": "setting" for field in fields(Plain) if field.name not in ("seed", "device")},
    **{f"characters.*.{name}": "setting" for name in ("cell", "clip", "steps")},
}


class PlainRNN(nn.Module):
    """An Elman network that reads characters, with torch's own layer, which has rectified units too."""

    def __init__(self, vocabulary, units):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, EMBEDDING)
        self.rnn = nn.RNN(EMBEDDING, WIDTH, nonlinearity=UNITS[units])
        self.linear = nn.Linear(WIDTH, vocabulary)

    def forward(self, ids):
        return self.linear(self.rnn(self.embedding(ids))[0])  # (time, batch, vocabulary)


def train_plain(config, checkpoint):
    text = corpus.load(config.data and Path(config.data))
    device = devices.trusted(config.device)
    ids = torch.from_numpy(text.encode(text.train)).to(device)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        model = PlainRNN(text.size, config.units).to(device)

    def loss_on(generator):
        batch = charlm.windows(ids, generator, BATCH)
        return F.cross_entropy(model(batch[:-1]).flatten(0, 1), batch[1:].flatten())

    optimizer = torch.optim.SGD(model.parameters(), lr=config.rate)
    generator = torch.Generator().manual_seed(config.seed)
    training = Descent(model, optimizer, loss_on, generator, config, checkpoint)
    losses, norms, ended = descended(training)
    return {name: value for name, value in trainings.settings(config).items() if name not in ("text", "data")} | {
        "not_finite_at_step": ended,
        "loss": fmean(losses[-LAST:]),
        "largest_norm": max(norms),
        "losses": losses,
        "norms": norms,
    }


def train_characters(config, checkpoint):
    training, _, _, validation = charlm.set_up(config, checkpoint)
    _, norms, ended = descended(training)
    each = max(1, config.steps // POINTS)
    bits = None if ended else evaluate(training.model, validation)[0]
    return {
        "cell": config.cell,
        "clip": config.clip,
        "seed": config.seed,
        "steps": config.steps,
        "not_finite_at_step": ended,
        "seconds": training.seconds,
        "validation_bits_per_char": bits,
        "median_norm": median(norms),
        "largest_norm": max(norms),
        "share_above": {f"{limit:g}": fmean(norm > limit for norm in norms) for limit in CHAR_CLIPS if limit},
        "steps_per_point": each,
        "largest_in_each": [max(norms[first : first + each]) for first in range(0, len(norms), each)],
    }


def descended(training):
    """Go through a training: the losses and norms of its steps, and the one that wasn't finite, or None."""
    try:
        for _ in training:
            pass
    except Diverged as error:
        return training.losses, training.norms, error.step
    return training.losses, training.norms, None


def train(config, checkpoint):
    return (train_plain if isinstance(config, Plain) else train_characters)(config, checkpoint)


def saved(experiment, folder):
    """The runs of a reversers' experiment, each with its details, as saved in a folder or else in outputs/."""
    own = folder and (folder / f"{experiment}.json").exists()
    try:
        return reverse.with_details(results.load(experiment, folder if own else results.SAVED)["results"])
    except UserError as error:
        note(f"no reversers to look at: {error}")
        return []


def reversers(folder):
    """Digits right of each model at forty digits, clipped and not."""
    found = {}
    for name, experiment in SAVED.items():
        for run in saved(experiment, folder):
            model = "attention" if run["attention"] else "no attention"
            found.setdefault(model, {}).setdefault(name, []).append(run["digits_right"])
    return found


def clipped_reversers(folder):
    """How large the gradients of the post's reversers were before they were clipped at 1, and how often they were."""
    found = []
    for run in saved("reverse", folder):
        largest = run["curve"]["largest_gradient_norm"]
        each = {name: run[name] for name in ("length", "attention", "seed", "median_gradient_norm")}
        found.append(each | {"share_of_stretches": fmean(norm > run["clip"] for norm in largest)})
    return found


def shown(runs):
    """The curves of a seed that comes apart without clipping and doesn't with it; of the first, where there is none."""
    ended = {clip: {run["seed"] for run in runs if run["clip"] == clip and run["not_finite_at_step"]} for clip in CLIPS}
    seed = min(ended[None] - ended[1.0], default=SEEDS[0])
    return [{name: run[name] for name in ("clip", "seed", *CURVES)} for run in runs if run["seed"] == seed]


def measure(arguments):
    text, where = charlm.read(arguments)
    where["device"] = arguments.device
    shared = {name: where[name] for name in ("text", "data", "device")} | {"steps": min(arguments.steps, PLAIN_STEPS)}
    plain = [Plain(units, rate, clip, seed, **shared) for units, rate in PLAIN for clip in CLIPS for seed in SEEDS]
    steps = min(arguments.steps, CHAR_STEPS)
    characters = [charlm.Config(c, CHAR_SEED, steps=steps, clip=clip, **where) for c in CELLS for clip in CHAR_CLIPS]
    records = trainings.run(train, plain + characters, arguments)
    plain = records[: len(plain)]
    return {
        "seeds": SEEDS,
        "corpus": text.fingerprint,
        "plain": [{name: value for name, value in run.items() if name not in CURVES} for run in plain],
        "shown": shown([run for run in plain if run["units"] == "rectified"]),
        "characters": records[len(plain) :],
        "reversers": reversers(arguments.outputs),
        "clipped_reversers": clipped_reversers(arguments.outputs),
    }


def told_clip(clip):
    return "not clipped" if clip is None else f"clipped at {clip:g}"


def tell(found):
    yield "a plain RNN on characters, by gradient descent: seeds whose loss was not finite, and when;"
    yield f"of the others: mean loss of the last {LAST} steps (nats); of all: the largest norm of the gradient"
    for units, rate in PLAIN:
        for clip in CLIPS:
            of = units, rate, clip
            runs = [run for run in found["plain"] if (run["units"], run["rate"], run["clip"]) == of]
            ended = [run["not_finite_at_step"] for run in runs if run["not_finite_at_step"]]
            whole = [run for run in runs if not run["not_finite_at_step"]]
            told = f"{len(ended)} of {len(runs)}" + (f" (step {', '.join(map(str, ended))})" if ended else "")
            if whole:
                told += f"; loss {span([run['loss'] for run in whole])}"
            told += f"; norms up to {max(run['largest_norm'] for run in runs):.1e}"
            yield f"{units:<9} rate {rate:<3g} {told_clip(clip):<12}: {told}"
    yield ""
    steps = found["characters"][0]["steps"]
    yield f"character models, {steps:,} steps, one seed: validation bits/char; the gradient's norm, median and largest;"
    yield "steps with a norm above " + " / ".join(f"{clip:g}" for clip in CHAR_CLIPS if clip)
    for run in found["characters"]:
        bits = run["validation_bits_per_char"]
        told = f"{bits:.3f}" if bits else f"the loss was not finite at step {run['not_finite_at_step']:,}"
        above = " / ".join(f"{share:.1%}" for share in run["share_above"].values())
        norms = f"{run['median_norm']:.2f}, {run['largest_norm']:.2f}"
        yield f"{run['cell']:<4} {told_clip(run['clip']):<15}: {told}; {norms}; {above}"
    if found["reversers"]:
        yield ""
        yield "forty digits, 3,000 steps at 3e-3 (saved runs): digits right, each seed"
    for model, cases in found["reversers"].items():
        told = (f"{name} {' / '.join(f'{right:.3f}' for right in seeds)}" for name, seeds in cases.items())
        yield f"{model:<12}: {', '.join(told)}"
    if found["clipped_reversers"]:
        yield ""
        yield "reversers of all lengths, clipped at 1 (saved runs): the gradient's median norm; the hundredths of the"
        yield "training in which clipping acted at least once"
    for run in found["clipped_reversers"]:
        model = "attention" if run["attention"] else "no attention"
        norm, share = run["median_gradient_norm"], run["share_of_stretches"]
        yield f"length {run['length']:2}, {model:<12}, seed {run['seed']}: {norm:.2f}; {share:.0%}"


def span(values):
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low} to {high}"


def draw(found):
    """A seed that comes apart, clipped and not: its loss, and the norm before clipping; the character models' norms."""
    figure, (loss, norm, characters) = plots.subplots(1, 3, size=(14.0, 4.4))
    for run in found["shown"]:
        ended = len(run["losses"]) < len(found["shown"][-1]["losses"])
        for axes, name in ((loss, "losses"), (norm, "norms")):
            axes.semilogy(range(1, 1 + len(run[name])), run[name], label=told_clip(run["clip"]), linewidth=1)
            if ended:
                axes.plot(len(run[name]), run[name][-1], "X", color="black", markersize=9, label="not finite after it")
    for run in (run for run in found["characters"] if run["clip"] == 1.0):
        steps = [run["steps_per_point"] * (k + 1) for k in range(len(run["largest_in_each"]))]
        characters.semilogy(steps, run["largest_in_each"], label=f"{run['cell']}, clipped at 1")
    characters.axhline(1.0, color="0.4", linewidth=0.8)
    loss.set(
        ylabel="loss (nats per character)", title=f"A plain RNN of rectified units, seed {found['shown'][0]['seed']}"
    )
    norm.set(ylabel="norm of the gradient before clipping", title="The gradient of the same two")
    characters.set(ylabel="largest norm in a hundredth of the steps", title="The post's character models")
    for axes in (loss, norm, characters):
        axes.set_xlabel("step")
        axes.legend()
    return figure


def options(parser):
    parser.add_argument(
        "--steps", type=script.positive_int, default=CHAR_STEPS, metavar="N", help="of each training, at most"
    )
    corpus.add_argument(parser)
    parser.add_jobs()
    parser.add_device()


if __name__ == "__main__":
    script.run(measure, tell, draw, options)
