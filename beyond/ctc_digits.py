"""Transcribing spoken digits when nobody says which frame belongs to which digit: CTC, and attention.

Strings of digits are heard as frames of 12 numbers (layers/spoken_digits.py makes them). The same bidirectional GRU
hears them, and three kinds of training make it write the string (layers/transcribers.py):

    framewise   a label or a blank for each frame, by one right path: the digit's label in its middle half
    CTC         the same outputs, and the sum over all the paths that collapse to the string (layers/ctc.py)
    attention   a decoder that writes label after label, looking at all frames at each step (layers/attention.py)

Framewise supervision is the bound: it is given the alignment that the others must find. CTC reads labels off the frames
in their order. So it should learn to transcribe, and fail when the string is to be written in reverse: a label then has
to stand where another digit is heard, and to come from memory alone. Attention looks wherever it likes and should do
both. Two more things are measured. A beam is compared with greedy decoding. And since CTC is known for spikes, the
frames of a digit that get a label are counted: it needs one.

    python -m beyond.ctc_digits          25 min

Prints, at the end:

    means over 3 seeds by epochs of 3,200 strings; chance is 0.852
    epoch                               1     2     5    10    20    30    40    50    60
    framewise       forwards greedy 0.059 0.014 0.007 0.006
    framewise       forwards beam   0.430 0.078 0.019 0.015
    framewise       forwards frames with a label, of 14 in a digit: 7.0
    CTC             forwards greedy 0.962 0.521 0.022 0.008
    CTC             forwards beam   0.627 0.289 0.014 0.008
    CTC             forwards frames with a label, of 14 in a digit: 4.2
    attention       forwards greedy 0.847 0.733 0.406 0.129 0.046 0.043
    CTC             reversed greedy 1.000 1.000 0.931 0.822 0.754 0.714 0.720 0.746 0.721
    CTC             reversed beam   0.924 0.918 0.831 0.713 0.665 0.637 0.639 0.633 0.622
    CTC             reversed frames with a label, of 14 in a digit: 0.9
    attention       reversed greedy 0.833 0.754 0.461 0.167 0.046 0.033 0.039 0.024 0.019

Neither noise nor sizes nor learning rate have been searched. CTC on reversed strings stops getting better after some 30
epochs, with seven labels of ten wrong; attention, after 60, has two of a hundred wrong either way round. The beam sums
over paths, as CTC's training does. After framewise supervision it makes more mistakes than greedy decoding: that
training looked at one path only, and the others need not add up.

The error rate is edit distance by length of the right string. Every seed has strings of its own, and all models of a
seed hear them alike. Training strings are new in every batch and have 1 to 12 digits, the tests have 12. The last third
of this file draws the figure: one string as the models hear it.

Sources: Graves, Fernández, Gomez and Schmidhuber (2006); Bahdanau, Cho and Bengio (2015). Departures: the sounds are
made up; decoders start from zeros; attention is scored on content alone, without a beam.
"""

from dataclasses import dataclass, fields
from itertools import groupby, pairwise
from statistics import mean

import torch

from lab import devices, plots, script, trainings
from lab.descent import Descent
from layers.ctc import BLANK
from layers.spoken_digits import LANGUAGE, SPOKEN, Speech, random_strings, speak
from layers.transcribers import CTC, Framewise, Writer, error_rate
from seq2seq import generator

LONGEST = 12  # digits: each training batch has a length from 1 to this, the tests have this
TESTED = 100  # strings
EXAMPLE = "200412"
BATCH, STEPS = 32, 100  # an epoch is STEPS batches of strings that were never heard before
LEARNING_RATE = 3e-3
MODELS = {"framewise": Framewise, "CTC": CTC, "attention": Writer}
EPOCHS = {  # until what is learned is learned, and what isn't has had several times as long
    ("framewise", "forwards"): 10,
    ("CTC", "forwards"): 10,
    ("attention", "forwards"): 30,
    ("CTC", "reversed"): 60,
    ("attention", "reversed"): 60,
}
CASES = list(EPOCHS)
SHOWN = [1, 2, 5, 10, 20, 30, 40, 50, 60]  # epochs whose means are printed
SEEDS = (0, 1, 2)


@dataclass(frozen=True)
class Config:
    """Everything that the record of one training depends on."""

    model: str  # a name in MODELS
    order: str  # in which the string is to be written: forwards or reversed
    seed: int  # of weights and of strings
    epochs: int
    device: str = "cpu"  # where it is trained; not recorded
    clip = 1.0  # largest norm of the gradient

    def __str__(self):
        return name_of(vars(self))

    @property
    def steps(self):
        return self.epochs * STEPS

    @property
    def cost(self):
        return self.steps * (1 if self.model == "attention" else 1.6)


KINDS = {
    "*": "trained",
    "chance": "exact",
    "runs.*.parameters": "exact",
    **{f"runs.*.{field.name}": "setting" for field in fields(Config) if field.name not in ("seed", "device")},
}


def chance(seed):
    """The error rate of right strings given as the answers to others: the right length, and nothing heard.

    It isn't the lowest that a blind answer can have: a shorter one errs a little less.
    """
    strings = random_strings(TESTED, LONGEST, generator(seed, "test"))
    return error_rate(strings.roll(1, 0).tolist(), strings.tolist())


def hear(strings, order, draws, device):
    """Strings as they sound, and what is to be written for them."""
    speech = Speech(*(devices.send(part, device) for part in speak(strings, draws)))
    return speech, devices.send(strings.flip(1) if order == "reversed" else strings, device)


def build(config):
    """The untrained model, whose weights are drawn on the CPU whatever the device."""
    with torch.random.fork_rng(devices=[]):
        torch.set_rng_state(generator(config.seed, "weights").get_state())
        return MODELS[config.model]()


def train(config, checkpoint):
    """One training, from its configuration to its record. All models of a seed hear the same strings, spoken alike."""
    device = devices.trusted(config.device)
    model = build(config).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, fused=True)
    test_draws = generator(config.seed, "test")
    test, wanted = hear(random_strings(TESTED, LONGEST, test_draws), config.order, test_draws, device)

    def loss_on(draws):
        length = int(torch.randint(1, LONGEST + 1, (), generator=draws))
        return model.loss(*hear(random_strings(BATCH, length, draws), config.order, draws, device))

    training = Descent(model, optimizer, loss_on, generator(config.seed, "training"), config, checkpoint)
    for step in training:
        if step % STEPS == 0:
            for decoding, written in model.transcribe(test).items():
                training.log(**{decoding: error_rate(written, wanted.tolist())})
    record = trainings.settings(config)
    record["parameters"] = sum(p.numel() for p in model.parameters())
    record["loss"] = [mean(training.losses[first : first + STEPS]) for first in range(0, config.steps, STEPS)]
    record["error"] = training.curve  # by epochs
    record["seconds"] = training.seconds
    if config.model != "attention":
        record["frames_labelled"] = model.frames_labelled(test) / wanted.numel()
    if config.seed == SEEDS[0]:
        example = torch.tensor([[int(digit) + 1 for digit in EXAMPLE]])
        record["example"] = model.show(*hear(example, config.order, generator(LANGUAGE, "test"), device))
    return record


def name_of(run):
    """A configuration or a record, given as a dictionary, as the printed lines name it."""
    return f"{run['model']:15} {run['order']}, seed {run['seed']}"


def line(run):
    """A record as it is printed."""
    if "diverged_at_step" in run:
        return f"{name_of(run)}: the loss is not finite at step {run['diverged_at_step']:,}"
    last = ", ".join(f"{decoding} {error[-1]:.4f}" for decoding, error in run["error"].items())
    return f"{name_of(run)}, {run['epochs']} epochs: {last}"


def options(parser):
    explained = f"of {STEPS} batches of {BATCH} strings, at most: cases have {min(EPOCHS.values())} to {SHOWN[-1]}"
    parser.add_argument("--epochs", type=script.positive_int, default=SHOWN[-1], metavar="N", help=explained)
    parser.add_jobs()
    parser.add_device()


def measure(arguments):
    most, device = arguments.epochs, arguments.device
    configs = [Config(*case, seed, min(EPOCHS[case], most), device) for case in CASES for seed in SEEDS]
    runs = trainings.run(train, configs, arguments, line)
    return {"seeds": SEEDS, "chance": mean(chance(seed) for seed in SEEDS), "runs": runs}


def tell(found):
    yield f"label error rate on {TESTED} strings of {LONGEST} digits"
    yield from map(line, found["runs"])
    yield ""
    yield f"means over {len(SEEDS)} seeds by epochs of {STEPS * BATCH:,} strings; chance is {found['chance']:.3f}"
    yield f"{'epoch':31} " + " ".join(f"{epoch:5}" for epoch in SHOWN)
    for model, order in CASES:
        same = finished(found, model, order)
        for decoding in same[0]["error"] if same else ():
            means = list(map(mean, zip(*(run["error"][decoding] for run in same), strict=True)))
            told = " ".join(f"{means[epoch - 1]:.3f}" for epoch in SHOWN if epoch <= len(means))
            yield f"{model:15} {order} {decoding:6} {told}"
        if same and "frames_labelled" in same[0]:
            frames = mean(run["frames_labelled"] for run in same)
            yield f"{model:15} {order} frames with a label, of {mean(SPOKEN):g} in a digit: {frames:.1f}"


def finished(found, model, order):
    """The runs of a case that didn't diverge."""
    same = [run for run in found["runs"] if (run["model"], run["order"]) == (model, order)]
    return [run for run in same if "diverged_at_step" not in run]


def draw(found):
    """Errors by epochs, and one spoken string as the models of the first seed hear it."""
    figure, axes = plots.subplots(3, 2, size=(11, 9.5))
    draw_errors(axes[0, 0], found)
    examples = {(run["model"], run["order"]): run["example"] for run in found["runs"] if "example" in run}
    titles = {"CTC": "CTC: a spike for each digit", "framewise": "Framewise supervision: plateaus"}
    for ax, (model, title) in zip(axes[1:, 0], titles.items(), strict=True):
        if example := examples.get((model, "forwards")):
            draw_posteriors(ax, example, title)
    if example := examples.get(("CTC", "forwards")):
        occupancy = list(zip(*example["occupancy"], strict=True))
        states = "–" + "".join(digit + "–" for digit in EXAMPLE)
        draw_matrix(axes[0, 1], occupancy, example, states, "CTC: where the paths of the right string are")
        axes[0, 1].set(ylabel="state (– is blank)")
    for ax, order, string in (axes[1, 1], "forwards", EXAMPLE), (axes[2, 1], "reversed", EXAMPLE[::-1]):
        if example := examples.get(("attention", order)):
            draw_matrix(ax, example["weights"], example, string + "·", f"Attention, {order}: where each step looks")
            ax.set(ylabel="right label (· ends)")
    for ax in axes.flat[1:]:
        ax.set(xlabel="frame")
    return figure


def draw_errors(ax, found):
    for i, (model, order) in enumerate(CASES):
        for run in finished(found, model, order):
            errors, label = run["error"]["greedy"], f"{model}, {order}" if run["seed"] == SEEDS[0] else None
            style = {"color": plots.COLOURS[i], "linestyle": plots.DASHES[i], "linewidth": 1.2}
            ax.plot(range(1, len(errors) + 1), errors, label=label, **style)
    ax.axhline(found["chance"], color="#888888", linestyle=":", linewidth=1, label="chance")
    ax.set(title="Label error rate, greedy, three seeds each", xlabel="epoch", ylim=(0, None))
    ax.legend(fontsize=7)


def draw_posteriors(ax, example, title):
    posteriors = list(zip(*example["posteriors"], strict=True))
    ax.plot(posteriors[BLANK], color="#999999", linestyle=":", linewidth=1)
    for label, probabilities in enumerate(posteriors):
        if label != BLANK and max(probabilities) > 0.2:
            (curve,) = ax.plot(probabilities, linestyle="-")
            for above, spike in groupby(range(len(probabilities)), key=lambda t: probabilities[t] > 0.2):
                if above:
                    peak = max(spike, key=probabilities.__getitem__)
                    style = {"color": curve.get_color(), "ha": "center", "annotation_clip": False}
                    ax.annotate(str(label - 1), (peak, 1.03), **style)
    draw_borders(ax, example, 0, 1)
    ax.set(title=title + " (dotted: blank; red: borders)", ylabel="probability", ylim=(0, 1.12))


def draw_matrix(ax, rows, example, names, title):
    ax.imshow(rows, aspect="auto", cmap="Greys", vmin=0, interpolation="nearest")
    draw_borders(ax, example, -0.5, len(rows) - 0.5)
    ax.set(title=title, yticks=range(len(names)), yticklabels=names)
    ax.grid(False)


def draw_borders(ax, example, low, high):
    """Where one segment of the sound, a digit or a silence, ends and the next begins."""
    for t, (before, after) in enumerate(pairwise(example["segments"]), 1):
        if before != after:
            ax.vlines(t - 0.5, low, high, color="#d1495b", linewidth=0.6)


if __name__ == "__main__":
    script.run(measure, tell, draw, options)
