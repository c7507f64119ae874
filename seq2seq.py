"""An encoder and a decoder that reverse a sequence of random digits, through a single state or with attention.

The encoder, a GRU, reads the digits; the decoder, another one, starts from the encoder's last state and writes them in
the opposite order, reading at each step the digit before. Without attention that state of 128 numbers is all it is ever
told. With attention each step also looks at every encoder state e_j (Bahdanau et al., 2015):

    score      s_j = vᵀ tanh(W_dec h + W_enc e_j)      h: the decoder's state before the step
    weights    α = softmax(s) over the source
    context    c = Σ_j α_j e_j, which the decoder reads beside the digit

Embeddings of 32, states of 128. Adam at 3e-3, 2,000 steps of 64 fresh sequences, the gradient's norm clipped at 1,
teacher forcing: in training the digit before is always the true one. It is scored on 1,000 new sequences by the digits
it writes when it reads its own (greedy, free-running). They come from a generator of their own: for a seed and a length
always the same.

    python seq2seq.py 10 attention 0           length, model, seed
    python seq2seq.py 40 none 0 3000 0.001     and steps, learning rate
    python seq2seq.py --lengths 5-20           both models on mixed lengths, scored length by length up to 30

A trained model gets more digits right reading the true ones than reading its own, but never more whole sequences: as
long as it is right, both read the same. There is no end symbol: the answer is as long as the source, so the length is
known. In a batch of mixed lengths the encoder's last state is that of the last real digit, padding gets no attention,
and what is behind an answer's end costs nothing.

What the post leaves open, and is chosen here: the gradient is clipped, as in the post's character models
(reverse_40_unclipped.py does without); the state that asks is the one before the step, as in the paper; W_enc, W_dec
and v have no biases, as in the paper; weights are drawn as torch draws them. In the paper the encoder reads both ways
and the output layer sees the context too; reverse_bahdanau.py has that.

Sources: Cho et al. (2014) and Sutskever, Vinyals and Le (2014) for the encoder and decoder; Bahdanau, Cho and Bengio
(2015) for attention. The test compares it with a plain listing, tests/plain_seq2seq.py.
"""

import argparse
import math
import statistics
import time
from collections import namedtuple

import torch
from torch import nn
from torch.nn import functional as F

import attention
import cells
from lab import devices, script, trainings
from lab.results import Results

DIGITS = 10
START = 10  # what the decoder reads before its first digit
PAD = -1  # after the last digit of a sequence that is shorter than the longest of its batch
EMBEDDING, HIDDEN = 32, 128
BATCH, STEPS, LEARNING_RATE = 64, 2_000, 3e-3
CLIP = 1.0  # largest norm of the gradient
TEST_SEQUENCES = 1_000
LONGEST_TEST = 30  # digits, for a model that was trained on mixed lengths
POINTS = 100  # of the curves of loss and gradient norm
DRAWS = ("weights", "training", "test")  # each has a generator of its own

# What the encoder leaves for the decoder; states, keys and padding are (source, batch, …).
Memory = namedtuple("Memory", "h states keys padding")


class Seq2Seq(nn.Module):
    """An encoder and a decoder. ``bahdanau``: the encoder reads both ways, and the output layer the context as well."""

    def __init__(self, attention=False, bahdanau=False):
        super().__init__()
        width = HIDDEN * (2 if bahdanau else 1) if attention else 0  # of an encoder state, and of the context
        self.embed = nn.Embedding(DIGITS + 1, EMBEDDING)
        self.encoder = nn.GRU(EMBEDDING, HIDDEN)
        self.backwards = nn.GRU(EMBEDDING, HIDDEN) if bahdanau else None
        self.decoder = nn.GRUCell(EMBEDDING + width, HIDDEN)
        self.attends = attention
        if attention:
            self.W_enc = nn.Linear(width, HIDDEN, bias=False)
            self.W_dec = nn.Linear(HIDDEN, HIDDEN, bias=False)
            self.v = nn.Linear(HIDDEN, 1, bias=False)
        self.output = nn.Linear(HIDDEN + (width if bahdanau else 0), DIGITS)

    def encode(self, source):
        """Read the digits of source (batch, source); the state after the last one is the decoder's first."""
        lengths = (source != PAD).sum(1)  # (batch,)
        places = torch.arange(source.shape[1], device=source.device)
        padding = (places >= lengths[:, None]).t()  # (source, batch)
        if not lengths.all() or (padding.t() != (source == PAD)).any():
            raise ValueError("every source sequence needs at least one digit, and its padding behind the last one")
        padding = padding if padding.any() else None
        ids = source.clamp(min=0).t()  # (source, batch)
        states, last = cells.run(self.encoder, self.embed.weight, ids=ids)  # (source, batch, hidden)
        h = last[0] if padding is None else states[lengths - 1, torch.arange(len(source))]  # (batch, hidden)
        if self.backwards is not None:
            ids = reverse(source, lengths).clamp(min=0).t()
            back, _ = cells.run(self.backwards, self.embed.weight, ids=ids)
            states = torch.cat([states, reverse(back.transpose(0, 1), lengths).transpose(0, 1)], 2)
        return Memory(h, states, self.W_enc(states) if self.attends else None, padding)

    def step(self, previous, h, memory):
        """One step of the decoder from the digit before: logits (batch, 10), state, weights (source, batch)."""
        x, weights = self.embed(previous), None  # (batch, embedding)
        if self.attends:
            scores = self.v(torch.tanh(memory.keys + self.W_dec(h)))[:, :, 0]  # (source, batch)
            if memory.padding is not None:
                scores = scores.masked_fill(memory.padding, -math.inf)
            weights = scores.softmax(0)
            context = (weights[:, :, None] * memory.states).sum(0)  # (batch, width)
            x = torch.cat([x, context], 1)
        h = self.decoder(x, h)  # (batch, hidden)
        return self.output(h if self.backwards is None else torch.cat([h, context], 1)), h, weights

    def forward(self, source, target):
        """Teacher forcing: every step reads the true digit before it. Logits (batch, target, 10).

        All the decoder's inputs are known, so the same steps are computed faster than one by one: by cells.py, and with
        attention by attention.py.
        """
        memory = self.encode(source)
        start = torch.full_like(target[:, :1], START)
        known = torch.cat([start, target[:, :-1].clamp(min=0)], 1).t()  # (target, batch)
        cell = self.decoder
        W_x, W_c = cell.weight_ih[:, :EMBEDDING], cell.weight_ih[:, EMBEDDING:]
        b_ru, b_n = cell.bias_hh.split([2 * HIDDEN, HIDDEN])
        z = F.linear(self.embed.weight, W_x, cell.bias_ih + torch.cat([b_ru, torch.zeros_like(b_n)]))  # a row per digit
        if self.attends:
            _, states, keys, padding = memory
            h, contexts, _ = attention.decode(
                z, memory.h, states, keys, cell.weight_hh, b_n, W_c, self.W_dec.weight, self.v.weight[0], known, padding
            )
        else:
            h = cells.gru(z, memory.h, cell.weight_hh, b_n, known)  # (target, batch, hidden)
        if self.backwards is not None:
            h = torch.cat([h, contexts], 2)
        return self.output(h).transpose(0, 1)

    @torch.no_grad()
    def write(self, source, steps):
        """Free-running: digits (batch, steps), each step reading the digit that the last one chose, and the weights."""
        memory = self.encode(source)
        digit, h = torch.full_like(source[:, 0], START), memory.h
        written, looked = [], []
        for _ in range(steps):
            logits, h, weights = self.step(digit, h, memory)
            digit = logits.argmax(1)
            written.append(digit)
            looked.append(weights)
        return torch.stack(written, 1), torch.stack(looked) if self.attends else None  # (steps, source, batch)


def reverse(x, lengths):
    """x (batch, time, …) with the first ``lengths`` items in the opposite order and the padding where it was."""
    places = (lengths[:, None] - 1 - torch.arange(x.shape[1], device=x.device)) % x.shape[1]  # (batch, time)
    return torch.take_along_dim(x, places.reshape(*places.shape, *[1] * (x.dim() - 2)), 1)


def random_digits(count, shortest, longest, generator):
    """``count`` sequences of random digits whose lengths are drawn between two, both included."""
    digits = torch.randint(DIGITS, (count, longest), generator=generator)  # (count, longest)
    if shortest == longest:
        return digits
    lengths = torch.randint(shortest, longest + 1, (count, 1), generator=generator)
    return digits.masked_fill(torch.arange(longest) >= lengths, PAD)


def answer(source, task="reverse"):
    """What the model should write for a source (batch, time)."""
    return reverse(source, (source != PAD).sum(1)) if task == "reverse" else source


def generator(seed, draws):
    """The random numbers of one kind of a seed. No two kinds, of the same seed or of others, share a stream."""
    return torch.Generator().manual_seed((len(DRAWS) * seed + DRAWS.index(draws)) % 2**64)


def span(length):
    """The shortest and the longest of the lengths that a configuration trains on."""
    return length if isinstance(length, list) else (length, length)


def build(config):
    """The untrained model, whose weights are drawn on the CPU whatever the device."""
    with torch.random.fork_rng(devices=[]):
        torch.set_rng_state(generator(config["seed"], "weights").get_state())
        return Seq2Seq(config["attention"], config.get("bahdanau", False))


def train_step(model, optimizer, source, target, clip=CLIP):
    """One step down the gradient: the mean loss of every digit, and the gradient's norm before any clipping."""
    logits = model(source, target)  # (batch, time, 10)
    loss = F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=PAD)
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), math.inf if clip is None else clip)
    optimizer.step()
    return loss.item(), norm.item()


def train(config, keeper):
    """One training, from its configuration to its record."""
    device = devices.pick(config.get("device", "cpu"))
    devices.check_recurrent(device)
    model = build(config).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=config["learning_rate"], fused=True)
    draws = generator(config["seed"], "training")
    clock = time.process_time if device.type == "cpu" else time.perf_counter  # not what else the processor had to do
    step, seconds, began, losses, norms = 0, 0.0, clock(), [], []
    if state := keeper.load():
        step, seconds, losses, norms = (state[name] for name in ("step", "seconds", "losses", "norms"))
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        draws.set_state(state["draws"])

    def snapshot():
        return {
            "step": step,
            "seconds": seconds + clock() - began,
            "losses": losses,
            "norms": norms,
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "draws": draws.get_state(),
        }

    while step < config["steps"]:
        step += 1
        source = random_digits(BATCH, *span(config["length"]), draws).to(device)
        target = answer(source, config.get("task", "reverse"))
        loss, norm = train_step(model, optimizer, source, target, config["clip"])
        if not math.isfinite(loss + norm):
            raise script.Diverged(step)
        losses.append(loss)
        norms.append(norm)
        keeper.tick(step, config["steps"], loss=loss)
        keeper.save_if_due(snapshot)
    seconds += clock() - began
    each = math.ceil(step / POINTS)
    windows = [slice(first, first + each) for first in range(0, step, each)]
    record = {
        **{name: value for name, value in config.items() if name != "device"},
        "parameters": sum(p.numel() for p in model.parameters()),
        "seconds": seconds,
        "median_gradient_norm": statistics.median(norms),
        "largest_gradient_norm": max(norms),
        "curve": {
            "steps_per_point": each,
            "mean_loss": [sum(losses[w]) / len(losses[w]) for w in windows],
            "largest_gradient_norm": [max(norms[w]) for w in windows],
        },
    }
    shortest, longest = span(config["length"])
    if shortest == longest:
        return record | evaluate(model, config, longest)
    lengths = range(shortest, max(LONGEST_TEST, longest) + 1)
    return record | {"by_length": [{"length": length} | evaluate(model, config, length) for length in lengths]}


def evaluate(model, config, length):
    """How well a trained model does on new sequences of one length, the same for a seed and a length whatever else."""
    source = random_digits(TEST_SEQUENCES, length, length, generator(config["seed"], "test"))
    seen = drawn_in_training(source, config)  # (sequences,)
    source = source.to(model.embed.weight.device)
    target = answer(source, config.get("task", "reverse"))
    written, weights = model.write(source, length)
    with torch.no_grad():
        taught = (model(source, target).argmax(2) == target).cpu()  # (sequences, time)
    free = (written == target).cpu()
    scores = {
        "digits_right": share(free),
        "sequences_right": share(free.all(1)),
        "taught_digits_right": share(taught),
        "seen_in_training": share(seen),
        "unseen_sequences": int((~seen).sum()),
        "unseen_sequences_right": share(free.all(1)[~seen]),
        "right_by_position": [share(place) for place in free.t()],
        "taught_right_by_position": [share(place) for place in taught.t()],
    }
    if weights is not None:
        places = answer(torch.arange(length)[None], config.get("task", "reverse"))[0]  # where each answer is to be read
        # The state after it has read the answer's digit too, and is often where attention settles.
        after = F.pad(weights, (0, 0, 0, 1))[torch.arange(length), places + 1]  # (step, batch)
        scores["weight_on_answer"] = (weights[torch.arange(length), places] + after).mean().item()
        example = {"source": source[0], "written": written[0], "weights": weights[:, :, 0]}
        scores["example"] = {name: value.tolist() for name, value in example.items()}
    return scores


def share(right):
    """The share of the true ones, or None of none."""
    return right.sum().item() / right.numel() if right.numel() else None


def drawn_in_training(source, config):
    """Which of the sequences training has drawn: its draws are made once more, and compared exactly."""
    draws, drawn = generator(config["seed"], "training"), set()
    for _ in range(config["steps"]):
        batch = random_digits(BATCH, *span(config["length"]), draws).to(torch.int8)
        drawn.update(row.tobytes().rstrip(b"\xff") for row in batch.numpy())  # without padding, -1
    return torch.tensor([row.tobytes() in drawn for row in source.to(torch.int8).numpy()])


def describe(config):
    """A configuration as the printed lines name it."""
    length = "-".join(map(str, config["length"])) if isinstance(config["length"], list) else config["length"]
    name = "Bahdanau" if config.get("bahdanau") else "attention" if config["attention"] else "no attention"
    text = f"length {length}, {name:12}, seed {config['seed']}"
    if "task" in config:
        text = f"{config['task']:7}, {text}"
    if (config["steps"], config["learning_rate"]) != (STEPS, LEARNING_RATE):
        text += f", {config['steps']:,} steps, learning rate {config['learning_rate']:g}"
    return text + (", not clipped" if config["clip"] is None else "")


def line(record):
    """A record as the post prints it."""
    if "diverged_at_step" in record:
        return f"{describe(record)}: the loss is not finite at step {record['diverged_at_step']:,}"
    return (
        f"{describe(record)}: digits right {record['digits_right']:.3f},"
        f" whole sequences right {record['sequences_right']:.3f}"
    )


def cost(config):
    """About how long a training takes, in any unit: its steps of the decoder, which take longer with attention."""
    return config["steps"] * span(config["length"])[1] * (1 + 3 * config["attention"] + config.get("bahdanau", False))


def configuration(length, attention, seed, steps=STEPS, learning_rate=LEARNING_RATE, **more):
    """Everything that one training's record depends on; ``more`` may hold task, bahdanau, clip and device."""
    names = ("length", "attention", "seed", "steps", "learning_rate", "clip")
    return dict(zip(names, (length, attention, seed, steps, learning_rate, CLIP), strict=True)) | more


def length_range(text):
    """Two lengths such as 5-20, as an argument's type."""
    shortest, dash, longest = text.partition("-")
    if not (dash and shortest.isdecimal() and longest.isdecimal() and 1 <= int(shortest) < int(longest)):
        raise argparse.ArgumentTypeError(f"must be two lengths of at least 1, the shorter first, as 5-20, not {text!r}")
    return [int(shortest), int(longest)]


def main(argv=None):
    """One model on one length, or both on mixed lengths."""
    parser = script.Arguments(__doc__)
    parser.add_argument("length", nargs="?", type=script.positive_int, metavar="LENGTH", help="digits in a sequence")
    parser.add_argument("model", nargs="?", choices=["attention", "none"], metavar="attention|none", help="which model")
    parser.add_argument("seed", nargs="?", type=script.seed, metavar="SEED", help="of weights and sequences")
    parser.add_argument(
        "steps", nargs="?", type=script.positive_int, default=STEPS, metavar="STEPS", help="of training"
    )
    parser.add_argument(
        "learning_rate", nargs="?", type=script.positive_float, default=LEARNING_RATE, metavar="LR", help="Adam's"
    )
    parser.add_argument(
        "--lengths", type=length_range, metavar="A-B", help="train both models on all of these lengths mixed, seed 0"
    )
    trainings.add_arguments(parser)
    devices.add_arguments(parser)
    arguments = parser.parse_args(argv)
    if (arguments.seed is None) if arguments.lengths is None else (arguments.length is not None):
        parser.error("give LENGTH, attention or none, and SEED; or --lengths without them")
    devices.pick(arguments.device)
    if arguments.lengths:
        configs = [configuration(arguments.lengths, attends, 0, STEPS) for attends in (False, True)]
    else:
        attends = arguments.model == "attention"
        configs = [configuration(arguments.length, attends, arguments.seed, arguments.steps, arguments.learning_rate)]
    results = Results("seq2seq", arguments, seeds=[configs[0]["seed"]], device=arguments.device)
    options = {"jobs": arguments.jobs, "cluster": arguments.cluster, "describe": describe, "cost": cost}
    configs = [config | {"device": arguments.device} for config in configs]
    runs = list(trainings.run(train, configs, name="seq2seq", **options))
    for text in by_length(*runs) if arguments.lengths else by_place(*runs):
        results.print(text)
    results.record(runs=runs)
    results.save()


def by_place(run):
    """The post's line, then the digits right at each place of the answer."""
    yield line(run)
    yield ""
    yield f"of the sequences, training had drawn {run['seen_in_training']:.3f}; digits right at each place"
    yield "reading its own digits : " + " ".join(f"{right:.3f}" for right in run["right_by_position"])
    yield "reading the true digits: " + " ".join(f"{right:.3f}" for right in run["taught_right_by_position"])


def by_length(without, attends):
    """Both models on each length, those that they weren't trained on included."""
    shortest, longest = without["length"]
    yield f"trained on lengths {shortest}-{longest}: digits right, whole sequences right"
    yield "length   no attention      attention   seen in training"
    for a, b in zip(without["by_length"], attends["by_length"], strict=True):
        shown = "  ".join(f"{run['digits_right']:.3f}  {run['sequences_right']:.3f}" for run in (a, b))
        yield f"{a['length']:6}   {shown}   {a['seen_in_training']:.3f}"


if __name__ == "__main__":
    script.run(main)
