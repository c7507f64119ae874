"""An encoder and a decoder that reverse a sequence of random digits, through a single state or with attention.

The encoder reads the digits; the decoder starts from the encoder's last state and writes them in the opposite order,
reading at each step the digit before. With attention each step also looks at every encoder state. The model, with its
equations, is layers/encoder_decoder.py. It is trained and scored here, for this command and for reverse.py and all its
family: this script is long because it is the one that they share.

Embeddings of 32, states of 128. Adam at 3e-3, 2,000 steps of 64 fresh sequences, the gradient's norm clipped at 1,
teacher forcing: in training the digit before is always the true one. A model is scored on 1,000 new sequences by the
digits it writes when it reads its own (greedy, free-running). All models of a seed are scored on the same sequences of
a length, whatever else is different: these have a random generator of their own.

    python seq2seq.py 10 attention 0           length, model, seed
    python seq2seq.py 40 none 0 3000 0.001     and steps, learning rate
    python seq2seq.py --lengths 5-20           both models on mixed lengths, scored length by length up to 30

A trained model gets more digits right reading the true ones than reading its own, but never more whole sequences: as
long as it is right, both read the same. There is no end symbol: the answer is as long as the source, so the length is
known.

The gradient is clipped, which the post's listing doesn't show: beyond/reverse_unclipped.py says why. As in the listing
W_dec and W_enc have biases, which the paper's don't, the state before the step asks, as in the paper's, and weights are
as torch draws them. The listing builds attention's layers in both models; here the one without attention has none. In
the paper the encoder reads both ways and the output layer sees the context too; beyond/reverse_bahdanau.py has that.

Sources: Cho et al. (2014) and Sutskever, Vinyals and Le (2014) for the encoder and decoder; Bahdanau, Cho and Bengio
(2015) for attention.
"""

import argparse
import math
import statistics
from dataclasses import dataclass, fields, replace

import torch
from torch.nn import functional as F

from lab import devices, script, trainings
from lab.descent import Descent
from lab.errors import UserError
from layers.encoder_decoder import DIGITS, PAD, Seq2Seq, lengths_of, reverse

BATCH, STEPS, LEARNING_RATE = 64, 2_000, 3e-3
CLIP = 1.0  # largest norm of the gradient
TEST_SEQUENCES = 1_000
LONGEST_TEST = 30  # digits, for a model that was trained on mixed lengths
POINTS = 100  # of the curves of loss and gradient norm
DRAWS = ("weights", "training", "test")  # each has a generator of its own


@dataclass(frozen=True)
class Config:
    """Everything that the record of one training depends on."""

    length: int | tuple[int, int]  # digits of a sequence, or the shortest and the longest of mixed lengths
    attention: bool  # or one state alone
    seed: int  # of weights and of sequences
    steps: int = STEPS  # of training
    learning_rate: float = LEARNING_RATE  # Adam's
    clip: float | None = CLIP  # largest norm of the gradient; None: any
    task: str = "reverse"  # or copy
    bahdanau: bool = False  # the encoder reads both ways, and the output layer sees the context too
    device: str = "cpu"  # where it is trained; not recorded

    def __str__(self):
        return describe(vars(self), with_task=self.task != "reverse")

    @property
    def lengths(self):
        """The shortest and the longest sequence that it trains on."""
        return (self.length, self.length) if isinstance(self.length, int) else self.length

    @property
    def cost(self):
        """Its steps of the decoder, which take longer with attention."""
        return self.steps * self.lengths[1] * (1 + 3 * self.attention + self.bahdanau)


KINDS = {
    "*": "trained",
    "runs.*_right": "trained .3f",
    "runs.*.parameters": "exact",
    "runs.*.seen_in_training": "exact",
    "runs.*.length.*": "setting",  # the shortest and the longest
    **{f"runs.*.{field.name}": "setting" for field in fields(Config) if field.name not in ("seed", "device")},
}


def random_digits(count, shortest, longest, draws):
    """``count`` sequences of random digits whose lengths are drawn between two, both included."""
    digits = torch.randint(DIGITS, (count, longest), generator=draws)  # (count, longest)
    if shortest == longest:
        return digits
    lengths = torch.randint(shortest, longest + 1, (count, 1), generator=draws)
    return digits.masked_fill(torch.arange(longest) >= lengths, PAD)


def answer(source, task="reverse"):
    """What the model should write for a source (batch, time)."""
    return reverse(source, (source != PAD).sum(1)) if task == "reverse" else source


def generator(seed, draws):
    """The random numbers of one kind of a seed. No two kinds, of the same seed or of others, share a stream."""
    number = len(DRAWS) * seed + DRAWS.index(draws)
    if not 0 <= number < script.SEEDS:  # torch would take the stream of another seed
        raise ValueError(f"seeds are from 0 to {script.SEEDS // len(DRAWS) - 1:,}, not {seed:,}")
    return torch.Generator().manual_seed(number)


def build(config):
    """The untrained model, whose weights are drawn on the CPU whatever the device."""
    with torch.random.fork_rng(devices=[]):
        torch.set_rng_state(generator(config.seed, "weights").get_state())
        return Seq2Seq(config.attention, config.bahdanau)


def mean_loss(model, source, target):
    """The mean loss of every digit of a batch that was made on the CPU."""
    lengths, device = lengths_of(source), model.embed.weight.device
    source, target = devices.send(source, device), devices.send(target, device)
    logits = model(source, target, lengths)  # (batch, time, 10)
    return F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=PAD)


def set_up(config, checkpoint):
    """The training, not yet begun."""
    model = build(config).to(devices.trusted(config.device))
    optimizer = torch.optim.Adam(model.parameters(), lr=config.learning_rate, fused=True)

    def loss_on(draws):
        source = random_digits(BATCH, *config.lengths, draws)
        return mean_loss(model, source, answer(source, config.task))

    return Descent(model, optimizer, loss_on, generator(config.seed, "training"), config, checkpoint)


def train(config, checkpoint):
    """One training, from its configuration to its record."""
    training = set_up(config, checkpoint)
    for _ in training:
        pass
    losses, norms = training.losses, training.norms
    each = math.ceil(config.steps / POINTS)
    windows = [slice(first, first + each) for first in range(0, config.steps, each)]
    record = trainings.settings(config) | {
        "parameters": sum(p.numel() for p in training.model.parameters()),
        "seconds": training.seconds,
        "median_gradient_norm": statistics.median(norms),
        "largest_gradient_norm": max(norms),
        "curve": {
            "steps_per_point": each,
            "mean_loss": [sum(losses[w]) / len(losses[w]) for w in windows],
            "largest_gradient_norm": [max(norms[w]) for w in windows],
        },
    }
    shortest, longest = config.lengths
    if shortest == longest:
        return record | evaluate(training.model, config, longest)
    lengths = range(shortest, max(LONGEST_TEST, longest) + 1)
    return record | {"by_length": [{"length": n} | evaluate(training.model, config, n) for n in lengths]}


def evaluate(model, config, length):
    """How well a trained model does on new sequences of one length."""
    source = random_digits(TEST_SEQUENCES, length, length, generator(config.seed, "test"))
    seen = drawn_in_training(source, config)  # (sequences,)
    lengths, source = lengths_of(source), source.to(model.embed.weight.device)
    target = answer(source, config.task)
    written, weights = model.write(source, length, lengths)
    with torch.no_grad():
        forced = (model(source, target, lengths).argmax(2) == target).cpu()  # (sequences, time)
    free = (written == target).cpu()
    scores = {
        "digits_right": share(free),
        "sequences_right": share(free.all(1)),
        "teacher_forced_digits_right": share(forced),
        "seen_in_training": share(seen),
        "unseen_sequences": int((~seen).sum()),
        "unseen_sequences_right": share(free.all(1)[~seen]),
        "right_by_position": [share(right) for right in free.t()],
        "teacher_forced_right_by_position": [share(right) for right in forced.t()],
    }
    if weights is not None:
        positions = answer(torch.arange(length)[None], config.task)[0]  # where each answer is to be read
        # The state after it has read the answer's digit too, and is often where attention settles.
        after = F.pad(weights, (0, 0, 0, 1))[torch.arange(length), positions + 1]  # (step, batch)
        scores["weight_on_answer"] = (weights[torch.arange(length), positions] + after).mean().item()
        example = {"source": source[0], "written": written[0], "weights": weights[:, :, 0]}
        scores["example"] = {name: value.tolist() for name, value in example.items()}
    return scores


def share(right):
    """The share of the true ones, or None of none."""
    return right.sum().item() / right.numel() if right.numel() else None


def drawn_in_training(source, config):
    """Which of the sequences training has drawn: its draws are made once more, and compared exactly."""
    draws, drawn = generator(config.seed, "training"), set()
    for _ in range(config.steps):
        batch = random_digits(BATCH, *config.lengths, draws).to(torch.int8)
        drawn.update(row.tobytes().rstrip(b"\xff") for row in batch.numpy())  # without padding, -1
    return torch.tensor([row.tobytes() in drawn for row in source.to(torch.int8).numpy()])


def describe(run, with_task=False):
    """A configuration or a record, given as a dictionary, as the printed lines name it."""
    length = run["length"] if isinstance(run["length"], int) else "-".join(map(str, run["length"]))
    name = "Bahdanau" if run["bahdanau"] else "attention" if run["attention"] else "no attention"
    text = f"{run['task']:7}, " * with_task + f"length {length}, {name:12}, seed {run['seed']}"
    if (run["steps"], run["learning_rate"]) != (STEPS, LEARNING_RATE):
        text += f", {run['steps']:,} steps, learning rate {run['learning_rate']:g}"
    return text + (", not clipped" if run["clip"] is None else "")


def line(run, with_task=False):
    """A record as the post prints it."""
    name = describe(run, with_task)
    if "diverged_at_step" in run:
        return f"{name}: the loss is not finite at step {run['diverged_at_step']:,}"
    return f"{name}: digits right {run['digits_right']:.3f}, whole sequences right {run['sequences_right']:.3f}"


def finished(runs):
    """The runs that didn't diverge."""
    return [run for run in runs if "diverged_at_step" not in run]


def length_range(text):
    """Two lengths such as 5-20, as an argument's type."""
    shortest, dash, longest = text.partition("-")
    if not dash or (lengths := (script.positive_int(shortest), script.positive_int(longest)))[0] >= lengths[1]:
        raise argparse.ArgumentTypeError(f"must be two lengths, the shorter first, as 5-20, not {text!r}")
    return lengths


def options(parser):
    """One model on one length, or both on mixed lengths."""
    add = parser.add_argument
    add("length", nargs="?", type=script.positive_int, metavar="LENGTH", help="digits in a sequence")
    add("model", nargs="?", choices=["attention", "none"], metavar="attention|none", help="which model")
    add("seed", nargs="?", type=script.seed, metavar="SEED", help="of weights and sequences")
    add("steps", nargs="?", type=script.positive_int, default=STEPS, metavar="STEPS", help="of training")
    add("learning_rate", nargs="?", type=script.positive_float, default=LEARNING_RATE, metavar="LR", help="Adam's")
    add("--lengths", type=length_range, metavar="A-B", help="train both models on all of these lengths mixed, seed 0")
    parser.add_jobs()
    parser.add_device()


def measure(arguments):
    if (arguments.seed is None) if arguments.lengths is None else (arguments.length is not None):
        raise UserError("give LENGTH, attention or none, and SEED; or --lengths without them")
    if (arguments.seed or 0) >= script.SEEDS // len(DRAWS):
        raise UserError(f"SEED must be below {script.SEEDS // len(DRAWS):,}: each takes {len(DRAWS)} random generators")
    if arguments.lengths:
        configs = [Config(arguments.lengths, attends, seed=0) for attends in (False, True)]
    else:
        asked = (arguments.length, arguments.model == "attention", arguments.seed)
        configs = [Config(*asked, arguments.steps, arguments.learning_rate)]
    configs = [replace(config, device=arguments.device) for config in configs]
    return {"seeds": [configs[0].seed], "runs": trainings.run(train, configs, arguments)}


def tell(found):
    yield from (line(run) for run in found["runs"] if "diverged_at_step" in run)
    if runs := finished(found["runs"]):
        yield from by_length(runs) if "by_length" in runs[0] else by_position(*runs)


def by_position(run):
    """The post's line, then the digits right at each position of the answer."""
    yield line(run)
    yield ""
    yield f"of the sequences, training had drawn {run['seen_in_training']:.3f}; digits right at each position"
    yield "reading its own digits : " + " ".join(f"{right:.3f}" for right in run["right_by_position"])
    yield "reading the true digits: " + " ".join(f"{right:.3f}" for right in run["teacher_forced_right_by_position"])


def by_length(runs):
    """The models side by side on each length, those that they weren't trained on included."""
    shortest, longest = runs[0]["length"]
    yield f"trained on lengths {shortest}-{longest}: digits right, whole sequences right"
    names = ["attention" if run["attention"] else "no attention" for run in runs]
    yield "length   " + "  ".join(f"{name:>12}" for name in names) + "   seen in training"
    for row in zip(*(run["by_length"] for run in runs), strict=True):
        shown = "  ".join(f"{scores['digits_right']:.3f}  {scores['sequences_right']:.3f}" for scores in row)
        yield f"{row[0]['length']:6}   {shown}   {row[0]['seen_in_training']:.3f}"


if __name__ == "__main__":
    script.run(measure, tell, options=options)
