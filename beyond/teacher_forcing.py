"""What teacher forcing is worth: reversers trained on the true digits, on their own, and from the one to the other.

A decoder reads at each step the digit before. In training that can be the true one, which is teacher forcing, or the
one that the decoder itself has just chosen, which is what it will read when it is used. Between the two is scheduled
sampling (Bengio et al., 2015): each digit is the true one with a probability that falls as training goes on, here by
the inverse sigmoid k / (k + exp(step / k)) with k an eighth of the steps: from 1 at the beginning to 0.08 at the end.

The models and their settings are those of seq2seq.py; all three ways begin with the same weights and see the same
sequences in the same order. Every fifty steps the models write 200 other sequences. At the end they write 1,000, and it
is counted how often a digit is wrong after a digit that is wrong, and after digits that are all right. That difference
may be the sequence's: one that is hard is hard at every digit. So a wrong digit is also put in the place of the first
one that the decoder reads, and the later ones are compared with what it writes otherwise.

    python -m beyond.teacher_forcing          10 min

Prints, for each length and model:

    length 20, attention   , true digits, seed 0:     200 / 500;   82 s,  41 ms a step; 0.931, 0.953, 0.840
    length 20, attention   , true digits, seed 1:     200 / 500;   83 s,  41 ms a step; 0.932, 0.961, 0.840
    length 20, attention   , scheduled  , seed 0:     200 / 700;  112 s,  56 ms a step; 0.335, 0.449, 0.001
    length 20, attention   , scheduled  , seed 1:     200 / 500;  112 s,  56 ms a step; 0.832, 0.909, 0.603
    length 20, attention   , own digits , seed 0:     200 / 350;  110 s,  55 ms a step; 0.932, 0.938, 0.828
    length 20, attention   , own digits , seed 1:     150 / 200;  110 s,  55 ms a step; 0.985, 0.985, 0.949

These are steps until 50% / 90% of the digits are right, free-running; processor time; in the end digits right on its
own digits and on the true ones, whole sequences right.

A step of teacher forcing is the cheaper one, on own digits it takes 1.3 to 1.5 times as long. But fewer of those are
needed in seven of eight pairs, so that on the way to 90% it saves no time either, except with attention at ten digits.
What has practised on its own digits is right more often in the end, digit by digit, and a wrong digit put in its way
throws it off less. Perhaps because the digit before tells little that the source doesn't; elsewhere it may differ.
Scheduled sampling ends worst where twenty digits are to be reversed.

Own digits have to be written one by one before there is anything to learn from, without gradient; then all steps are
computed at once, as with the true ones, because a choice among digits has no gradient. So a step on own digits costs
the writing more, and nothing else.

This script is longer than others because it trains in three ways and asks four questions of each.

Sources: KnowML's course page "Sequence Modeling Pre-Transformer", "Seq2seq machine translation, pre-attention"; Bengio,
Vinyals, Jaitly and Shazeer, "Scheduled sampling for sequence prediction with recurrent neural networks" (2015);
Williams and Zipser (1989) for teacher forcing; else as seq2seq.py.
"""

import math
from dataclasses import dataclass, fields
from statistics import fmean

import torch
from torch.nn import functional as F

import seq2seq
from lab import devices, plots, script, trainings
from lab.descent import Descent
from layers.encoder_decoder import DIGITS, START
from seq2seq import BATCH, CLIP, LEARNING_RATE, STEPS, TEST_SEQUENCES, answer, generator, random_digits, share

LENGTHS = [10, 20]
SEEDS = [0, 1]
FORCED, SCHEDULED, OWN = "true digits", "scheduled", "own digits"
WAYS = [FORCED, SCHEDULED, OWN]
EVERY, LOOKED = 50, 200  # steps between looks at a model, and the sequences that it writes then
WANTED = [0.5, 0.9]  # shares of digits right, free-running, whose first look is told


@dataclass(frozen=True)
class Config:
    """Everything that the record of one training depends on."""

    length: int  # digits
    attention: bool  # or one state alone
    way: str  # of WAYS: what the decoder reads in training
    seed: int  # of weights, sequences and coins
    steps: int = STEPS
    learning_rate: float = LEARNING_RATE  # Adam's
    clip: float = CLIP  # largest norm of the gradient
    device: str = "cpu"  # where it is trained; not recorded
    bahdanau = False

    def __str__(self):
        return name_of(vars(self))

    @property
    def cost(self):
        return self.steps * self.length * (1 + 3 * self.attention)


KINDS = {
    "*": "trained",
    **{f"runs.*.{field.name}": "setting" for field in fields(Config) if field.name not in ("seed", "device")},
    "runs.*.curve.step.*": "exact",
}


def probability_of_the_true_digit(way, step, steps):
    """Of each digit that the decoder reads at a step of training (from 1)."""
    k = steps / 8
    return {FORCED: 1.0, OWN: 0.0, SCHEDULED: k / (k + math.exp(step / k))}[way]


def whole(source):
    """The lengths of sequences without padding, for a model that would else have to ask its device for them."""
    return torch.full((len(source),), source.shape[1])


@torch.no_grad()
def digits_read(model, source, target, true):
    """What the decoder reads, step by step: the true digit where ``true`` (batch, time) says so, else its own choice.

    The digits are in the place of the target: the one at t is what is read at t + 1.
    """
    memory = model.encode(source, whole(source))
    digit, h = torch.full_like(source[:, 0], START), memory.h
    read = []
    for t in range(target.shape[1]):
        logits, h, _ = model.step(digit, h, memory)
        digit = torch.where(true[:, t], target[:, t], logits.argmax(1))
        read.append(digit)
    return torch.stack(read, 1)


def train(config, checkpoint):
    """One training, from its configuration to its record."""
    device = devices.trusted(config.device)
    model = seq2seq.build(config).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=config.learning_rate, fused=True)

    def loss_on(draws):
        source = random_digits(BATCH, config.length, config.length, draws)
        target = answer(source)
        chance = probability_of_the_true_digit(config.way, training.step, config.steps)
        true = torch.rand(target.shape, generator=draws) < chance  # drawn in any case: all ways see the same sequences
        source, target = devices.send(source, device), devices.send(target, device)
        read = target if config.way == FORCED else digits_read(model, source, target, devices.send(true, device))
        logits = model(source, read, whole(source))
        return F.cross_entropy(logits.flatten(0, 1), target.flatten())

    training = Descent(model, optimizer, loss_on, generator(config.seed, "training"), config, checkpoint)
    looked_at = random_digits(LOOKED, config.length, config.length, generator(config.seed, "test")).to(device)
    for step in training:
        if step % EVERY == 0:
            training.log(step=step, right=share(model.write(looked_at, config.length)[0] == answer(looked_at)))
    return trainings.settings(config) | {"seconds": training.seconds, "curve": training.curve} | evaluate(model, config)


@torch.no_grad()
def evaluate(model, config):
    """How well a model writes on its own, and what becomes of a wrong digit."""
    draws = generator(config.seed, "test")
    random_digits(LOOKED, config.length, config.length, draws)  # those that were looked at along the way
    source = random_digits(TEST_SEQUENCES, config.length, config.length, draws)
    wrong = (answer(source)[:, :1] + torch.randint(1, DIGITS, (len(source), 1), generator=draws)) % DIGITS
    source, wrong = (digits.to(devices.trusted(config.device)) for digits in (source, wrong))
    target = answer(source)
    free = (model.write(source, config.length)[0] == target).cpu()  # (sequences, time)
    forced = model(source, target).argmax(2) == target
    given = torch.zeros_like(target, dtype=torch.bool)
    given[:, 0] = True  # the first digit isn't its own choice: it reads the wrong one
    disturbed = digits_read(model, source, torch.cat([wrong, target[:, 1:]], 1), given) == target
    return {
        "digits_right": share(free),
        "sequences_right": share(free.all(1)),
        "forced_digits_right": share(forced),
        "right_by_position": [share(right) for right in free.t()],
        "forced_right_by_position": [share(right) for right in forced.t()],
        "right_after_a_wrong_first": [share(right) for right in disturbed.t()],
        **wrong_after(free),
    }


def wrong_after(right):
    """The share of wrong digits after a wrong one, and after digits all of which are right: right (sequences, time)."""
    all_right = right.cumprod(1).bool()  # up to each digit
    return {
        "wrong_after_wrong": share(~right[:, 1:][~right[:, :-1]]),
        "wrong_after_all_right": share(~right[:, 1:][all_right[:, :-1]]),
    }


def measure(arguments):
    configs = [
        Config(length, attends, way, seed, arguments.steps, device=arguments.device)
        for length in LENGTHS
        for attends in (False, True)
        for way in WAYS
        for seed in SEEDS
    ]
    return {"seeds": SEEDS, "runs": trainings.run(train, configs, arguments, line)}


def name_of(run):
    model = "attention" if run["attention"] else "no attention"
    return f"length {run['length']}, {model:12}, {run['way']:11}, seed {run['seed']}"


def first_step(run, wanted):
    """The first look at which so many digits were right, or None."""
    return next((n for n, right in zip(*run["curve"].values(), strict=True) if right >= wanted), None)


def line(run):
    """A record as it is printed."""
    if "diverged_at_step" in run:
        return f"{name_of(run)}: the loss is not finite at step {run['diverged_at_step']:,}"
    reached = " / ".join(f"{step:,}" if step else "-" for step in (first_step(run, wanted) for wanted in WANTED))
    each = run["seconds"] / run["steps"]
    return (
        f"{name_of(run)}: {reached:>13}; {run['seconds']:4.0f} s, {1000 * each:3.0f} ms a step; "
        f"{run['digits_right']:.3f}, {run['forced_digits_right']:.3f}, {run['sequences_right']:.3f}"
    )


def tell(found):
    shares = " / ".join(f"{wanted:.0%}" for wanted in WANTED)
    yield f"steps until {shares} of the digits are right, free-running; processor time; digits right in the end,"
    yield "reading its own digits and the true ones; whole sequences right"
    yield from map(line, found["runs"])
    runs = seq2seq.finished(found["runs"])
    yield ""
    yield "digits wrong: after a wrong one / after none; with a wrong first digit read in place of its own / without"
    for run in runs:
        after = [number(run[f"wrong_after_{what}"]) for what in ("wrong", "all_right")]
        later = [1 - fmean(run[name][1:]) for name in ("right_after_a_wrong_first", "right_by_position")]
        yield f"{name_of(run)}: {' / '.join(after)}; {later[0]:.3f} / {later[1]:.3f}"
    yield ""
    yield "digits right at the first, middle and last position, reading its own"
    for run in runs:
        right = run["right_by_position"]
        yield f"{name_of(run)}: {right[0]:.3f} {right[len(right) // 2]:.3f} {right[-1]:.3f}"


def number(value):
    return "-" if value is None else f"{value:.3f}"


def draw(found):
    """Each length and model: digits right along training, of each way (seed 0), and by position in the end."""
    figure, grid = plots.subplots(2, 2 * len(LENGTHS), size=(4.0 * 2 * len(LENGTHS), 7.6), sharey=True)
    cases = [(length, attends) for length in LENGTHS for attends in (False, True)]
    for (length, attends), (curve, position) in zip(cases, grid.T, strict=True):
        for run in seq2seq.finished(found["runs"]):
            if (run["length"], run["attention"], run["seed"]) == (length, attends, SEEDS[0]):
                looks = run["curve"] or {"step": [], "right": []}  # none of a training shorter than EVERY
                (drawn,) = curve.plot(looks["step"], looks["right"], label=run["way"])
                places = range(1, length + 1)
                position.plot(places, run["right_by_position"], label=run["way"])
                disturbed = run["right_after_a_wrong_first"][1:]
                position.plot(places[1:], disturbed, ".", color=drawn.get_color(), markersize=5)
        curve.set(title=f"{length} digits, {'attention' if attends else 'no attention'}", xlabel="step of training")
        position.set(xlabel="position (dots: a wrong digit read first)")
        position.xaxis.get_major_locator().set_params(integer=True)
    for axes in grid[:, 0]:
        axes.set(ylabel="share of digits right", ylim=(0, 1.03))
    grid[0, 0].legend()
    return figure


def options(parser):
    parser.add_argument("--steps", type=script.positive_int, default=STEPS, metavar="N", help="of each training")
    parser.add_jobs()
    parser.add_device()


if __name__ == "__main__":
    script.run(measure, tell, draw, options)
