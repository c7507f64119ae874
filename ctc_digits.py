"""Transcribing spoken digits with nobody saying which frame belongs to which digit: CTC, attention, and told frames.

Strings of digits are spoken as frames of 12 numbers: a digit takes 8 to 20 frames, gliding from one sound of its own to
another, with noise everywhere and a short silence in half of the places; 12 digits take some 200 frames. The same
bidirectional GRU hears them, and three kinds of training make it write the string:

    told the frames   a label or a blank for each frame, by one right path: the digit's label in its middle half
    CTC               the same outputs, and the sum over all the paths that collapse to the string (ctc.py)
    attention         a decoder that writes label after label, looking at all frames at each step (attention.py)

The first is the bound: it is given the alignment that the others must find. CTC reads labels off the frames in their
order; so it should learn to transcribe, and fail when the string is to be written in reverse: a label then has to stand
where another digit is heard, and to come from memory alone. Attention looks wherever it likes and should do both. Also
measured: greedy decoding beside a beam, and for how many of its frames a digit gets a label, since CTC is known for
spikes: it needs one.

    python ctc_digits.py          12 min

Prints, at the end:

    means over 3 seeds by epochs of 3,200 strings; chance is 0.852
    told the frames forwards greedy 0.059 0.014 0.010 0.008 0.007 0.009 0.004 0.006 0.005 0.006
    told the frames forwards beam   0.430 0.078 0.042 0.031 0.019 0.022 0.015 0.012 0.014 0.015
    told the frames forwards frames with a label, of 14 in a digit: 7.0
    CTC             forwards greedy 0.962 0.521 0.100 0.037 0.024 0.022 0.014 0.008 0.008 0.009
    CTC             forwards beam   0.627 0.289 0.066 0.027 0.016 0.017 0.012 0.007 0.008 0.008
    CTC             forwards frames with a label, of 14 in a digit: 4.3
    attention       forwards greedy 0.836 0.716 0.626 0.457 0.368 0.273 0.210 0.161 0.146 0.121
    CTC             reversed greedy 1.000 1.000 0.998 0.973 0.931 0.889 0.870 0.850 0.833 0.822
    CTC             reversed beam   0.924 0.918 0.914 0.891 0.831 0.769 0.748 0.739 0.718 0.713
    CTC             reversed frames with a label, of 14 in a digit: 0.5
    attention       reversed greedy 0.844 0.725 0.662 0.526 0.409 0.324 0.258 0.207 0.190 0.160

Neither noise nor sizes nor learning rate have been searched. In ten epochs neither attention nor CTC on reversed
strings has stopped improving. The beam sums over paths as CTC's training does; where the frames were told, nothing
taught the other paths to add up.

The error rate is edit distance by length of the right string. Every seed has strings of its own, heard alike by all
models; training strings are new in every batch and have 1 to 12 digits, the tests have 12.

Sources: Graves, Fernández, Gomez and Schmidhuber (2006); Bahdanau, Cho and Bengio (2015). Departures: the sounds are
made up; decoders start from zeros; attention is scored on content alone, without a beam.
"""

import math
from collections import namedtuple
from itertools import groupby, pairwise
from statistics import mean

import torch
from torch import nn
from torch.nn import functional as F

import attention
import cells
from ctc import BLANK, align, beam_search, best_path, ctc_loss
from lab import devices, plots, script, trainings
from lab.results import Results
from seq2seq import generator, reverse

LABELS = 11  # the blank, which is also silence, and ten digits: digit d is label d + 1
FEATURES = 12  # numbers in a frame of sound
SPOKEN = (8, 20)  # frames that a digit takes, at least and at most
SILENCE = (4, 8)  # frames of silence in half of the places between digits, and at half of the ends
NOISE = 0.7  # standard deviation, where that of the digits' own features is 1
LONGEST = 12  # digits: each training batch has a length from 1 to this, the tests have this
TESTED = 100  # strings
EXAMPLE = "200412"
LANGUAGE = 0  # seed of what the digits sound like, which all trainings share
ROUND = 20  # frames: batches are padded to a multiple, since cells.py keeps buffers for every length it has seen
HIDDEN, EMBEDDING = 48, 16
BATCH, STEPS, EPOCHS = 32, 100, 10  # an epoch is STEPS batches of strings that were never heard before
LEARNING_RATE, CLIP = 3e-3, 1.0
BEAM = 8  # prefixes
CTC, TOLD, ATTENTION = "CTC", "told the frames", "attention"
CASES = [(TOLD, "forwards"), (CTC, "forwards"), (ATTENTION, "forwards"), (CTC, "reversed"), (ATTENTION, "reversed")]
SEEDS = (0, 1, 2)

# Sound (batch, time, feature); frames (batch,) of each item; the segment of its string that every frame belongs to
# (batch, time): silence, digit, silence, ..., digit, silence, as the states of CTC; and one right path (batch, time).
Speech = namedtuple("Speech", "sound frames segments path")


def speak(strings, draws):
    """Speak strings of labels (batch, length). A digit glides from one sound to another, each time at its own speed."""
    sounds = torch.randn(LABELS, 2, FEATURES, generator=torch.Generator().manual_seed(LANGUAGE))
    sounds[BLANK] = 0.0
    batch, length = strings.shape
    labels = torch.full((batch, 2 * length + 1), BLANK)  # (batch, segment)
    labels[:, 1::2] = strings
    durations = torch.randint(SILENCE[0], SILENCE[1] + 1, labels.shape, generator=draws)
    durations *= torch.randint(2, labels.shape, generator=draws)
    durations[:, 1::2] = torch.randint(SPOKEN[0], SPOKEN[1] + 1, strings.shape, generator=draws)

    ends = durations.cumsum(1)
    frames = ends[:, -1]
    t = torch.arange(math.ceil(frames.max() / ROUND) * ROUND).expand(batch, -1).contiguous()
    segments = torch.searchsorted(ends, t, right=True).clamp(max=2 * length)  # (batch, time)
    place = (t - (ends - durations).gather(1, segments)) / durations.gather(1, segments).clamp(min=1)
    label, glide = labels.gather(1, segments), place[:, :, None]
    sound = sounds[label, 0] * (1 - glide) + sounds[label, 1] * glide  # (batch, time, feature)
    sound += NOISE * torch.randn(sound.shape, generator=draws)
    # Where the labels are to be told, a digit's is that of its middle half, so that equal neighbours stay apart.
    return Speech(sound, frames, segments, label.where((place >= 0.25) & (place < 0.75), BLANK))


class Encoder(nn.Module):
    """A GRU from the first frame to the last, and another one from the last to the first."""

    def __init__(self):
        super().__init__()
        self.there, self.back = nn.GRU(FEATURES, HIDDEN), nn.GRU(FEATURES, HIDDEN)

    def forward(self, sound, frames):
        there, _ = cells.run(self.there, sound.transpose(0, 1))
        back, _ = cells.run(self.back, reverse(sound, frames).transpose(0, 1))
        return torch.cat([there.transpose(0, 1), reverse(back.transpose(0, 1), frames)], 2)  # (batch, time, 2 hidden)


class Tagger(nn.Module):
    """A label or a blank for every frame, trained by CTC or, ``told``, by one right path."""

    def __init__(self, told):
        super().__init__()
        self.told = told
        self.encoder, self.output = Encoder(), nn.Linear(2 * HIDDEN, LABELS)

    def forward(self, speech):
        return self.output(self.encoder(speech.sound, speech.frames)).log_softmax(2)  # (batch, time, label)

    def loss(self, speech, strings):
        """A mean over labels, or, told, over frames."""
        log_probs = self(speech)
        if not self.told:
            lengths = torch.full_like(speech.frames, strings.shape[1])
            return ctc_loss(log_probs, strings, speech.frames, lengths).sum() / strings.numel()
        within = torch.arange(log_probs.shape[1], device=log_probs.device) < speech.frames[:, None]
        return F.nll_loss(log_probs[within], speech.path[within])

    @torch.no_grad()
    def transcribe(self, speech):
        """Strings by each way of decoding."""
        log_probs = self(speech).cpu()
        frames = speech.frames.cpu()
        beam = [beam_search(rows[:T].double(), BEAM)[0] for rows, T in zip(log_probs, frames, strict=True)]
        return {"greedy": best_path(log_probs, frames), "beam": beam}

    @torch.no_grad()
    def frames_labelled(self, speech):
        """How many frames have a label rather than a blank as their most probable one."""
        within = torch.arange(speech.sound.shape[1], device=speech.frames.device) < speech.frames[:, None]
        return (self(speech).argmax(2) != BLANK)[within].sum().item()

    @torch.no_grad()
    def show(self, speech, strings):
        """What one item's frames say, and where the paths of its string are."""
        log_probs, T = self(speech), speech.frames[0]
        _, occupancy, _ = align(log_probs, strings, speech.frames, torch.full_like(speech.frames, strings.shape[1]))
        shown = {"segments": speech.segments, "posteriors": log_probs.exp(), "occupancy": occupancy}
        return {name: values[0, :T].tolist() for name, values in shown.items()}


class Writer(nn.Module):
    """A decoder that writes a label at each step and looks at all frames to do so. A blank starts and ends a string."""

    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.embed = nn.Embedding(LABELS, EMBEDDING)
        self.decoder = nn.GRUCell(EMBEDDING + 2 * HIDDEN, HIDDEN)
        self.W_enc = nn.Linear(2 * HIDDEN, HIDDEN, bias=False)
        self.W_dec = nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.v = nn.Linear(HIDDEN, 1, bias=False)
        self.output = nn.Linear(3 * HIDDEN, LABELS)

    def read(self, speech):
        """What every step looks at: the encoder's states and keys (time, batch, ...), and where not to look."""
        states = self.encoder(speech.sound, speech.frames).transpose(0, 1).contiguous()
        padding = torch.arange(len(states), device=states.device)[:, None] >= speech.frames
        return states, self.W_enc(states), padding

    def forward(self, previous, h, memory):
        """Steps after ``previous`` (step, batch): logits (step, batch, label), states, weights (step, batch, time)."""
        states, keys, padding = memory
        cell = self.decoder
        W_x, W_c = cell.weight_ih.split([EMBEDDING, 2 * HIDDEN], 1)
        b_ru, b_n = cell.bias_hh.split([2 * HIDDEN, HIDDEN])
        z = F.linear(self.embed.weight, W_x, cell.bias_ih + torch.cat([b_ru, torch.zeros_like(b_n)]))  # a row per label
        W_dec, v = self.W_dec.weight, self.v.weight[0]
        h, contexts, weights = attention.decode(
            z, h, states, keys, cell.weight_hh, b_n, W_c, W_dec, v, previous, padding
        )
        return self.output(torch.cat([h, contexts], 2)), h, weights

    def loss(self, speech, strings):
        """A mean over the labels and the end of each string."""
        memory = self.read(speech)
        border = torch.full_like(strings[:, :1], BLANK)
        previous, wanted = torch.cat([border, strings], 1).t(), torch.cat([strings, border], 1).t()
        logits, _, _ = self(previous, memory[0].new_zeros(len(strings), HIDDEN), memory)
        return F.cross_entropy(logits.flatten(0, 1), wanted.flatten())

    @torch.no_grad()
    def transcribe(self, speech):
        """Strings by the most probable label at each step, each step reading the one before."""
        return {"greedy": [row[: (*row, BLANK).index(BLANK)] for row in self.write(speech)[0].tolist()]}

    @torch.no_grad()
    def write(self, speech, steps=2 * LONGEST):
        """Labels (batch, step) and weights (step, batch, time), ends ignored."""
        memory = self.read(speech)
        h = memory[0].new_zeros(1, len(speech.frames), HIDDEN)
        label = torch.full_like(speech.frames, BLANK)[None]
        labels, weights = [], []
        for _ in range(steps):
            logits, h, looked = self(label, h[0], memory)
            label = logits.argmax(2)
            labels.append(label)
            weights.append(looked)
        return torch.cat(labels).t(), torch.cat(weights)

    def show(self, speech, strings):
        """Where one item's steps look."""
        _, weights = self.write(speech, strings.shape[1] + 1)
        T = speech.frames[0]
        return {"segments": speech.segments[0, :T].tolist(), "weights": weights[:, 0, :T].tolist()}


def edit_distance(a, b):
    """The fewest labels to insert, leave out or replace that make a into b."""
    distances = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        diagonal, distances[0] = distances[0], i
        for j, y in enumerate(b, 1):
            diagonal, distances[j] = distances[j], min(distances[j] + 1, distances[j - 1] + 1, diagonal + (x != y))
    return distances[-1]


def error_rate(written, strings):
    """Label error rate: edit distance by length of the right string. Can exceed 1."""
    return sum(map(edit_distance, written, strings)) / sum(map(len, strings))


def hear(strings, order, draws, device):
    """Strings as they sound, and what is to be written for them."""
    speech = Speech(*(part.to(device) for part in speak(strings, draws)))
    return speech, (strings.flip(1) if order == "reversed" else strings).to(device)


def random_strings(count, length, draws):
    return torch.randint(1, LABELS, (count, length), generator=draws)


def build(config):
    """The untrained model, whose weights are drawn on the CPU whatever the device."""
    with torch.random.fork_rng(devices=[]):
        torch.set_rng_state(generator(config["seed"], "weights").get_state())
        return Writer() if config["model"] == ATTENTION else Tagger(told=config["model"] == TOLD)


def train(config, keeper):
    """One training, from its configuration to its record. All models of a seed hear the same strings, spoken alike."""
    device = devices.pick(config["device"])
    devices.check_recurrent(device)
    model = build(config).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, fused=True)
    draws = generator(config["seed"], "training")
    step, losses, errors = 0, [], {}
    if state := keeper.load():
        step, losses, errors = (state[name] for name in ("step", "losses", "errors"))
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        draws.set_state(state["draws"])

    def snapshot():
        progress = {"step": step, "losses": losses, "errors": errors, "draws": draws.get_state()}
        return progress | {"model": model.state_dict(), "optimizer": optimizer.state_dict()}

    test_draws = generator(config["seed"], "test")
    test, wanted = hear(random_strings(TESTED, LONGEST, test_draws), config["order"], test_draws, device)
    total = config["epochs"] * STEPS
    while step < total:
        step += 1
        length = int(torch.randint(1, LONGEST + 1, (), generator=draws))
        loss = model.loss(*hear(random_strings(BATCH, length, draws), config["order"], draws, device))
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        if not (loss.isfinite() and norm.isfinite()):
            raise script.Diverged(step)
        optimizer.step()
        losses.append(loss.item())
        if step % STEPS == 0:
            for decoding, written in model.transcribe(test).items():
                errors.setdefault(decoding, []).append(error_rate(written, wanted.tolist()))
        keeper.tick(step, total, loss=losses[-1])
        keeper.save_if_due(snapshot)
    record = {name: value for name, value in config.items() if name != "device"}
    record["parameters"] = sum(p.numel() for p in model.parameters())
    record["loss"] = [mean(losses[first : first + STEPS]) for first in range(0, total, STEPS)]
    record["error"] = errors  # by epochs
    if config["model"] != ATTENTION:
        record["frames_labelled"] = model.frames_labelled(test) / wanted.numel()
    if config["seed"] == SEEDS[0]:
        example = torch.tensor([[int(digit) + 1 for digit in EXAMPLE]])
        record["example"] = model.show(*hear(example, config["order"], generator(LANGUAGE, "test"), device))
    return record


def chance(seed):
    """The error rate of right strings given as the answers to others: the right length, and nothing heard.

    It isn't the lowest that a blind answer can have: a shorter one errs a little less.
    """
    strings = random_strings(TESTED, LONGEST, generator(seed, "test"))
    return error_rate(strings.roll(1, 0).tolist(), strings.tolist())


def describe(config):
    """A configuration as the printed lines name it."""
    return f"{config['model']:15} {config['order']}, seed {config['seed']}"


def line(run):
    """A record as it is printed."""
    if "diverged_at_step" in run:
        return f"{describe(run)}: the loss is not finite at step {run['diverged_at_step']:,}"
    return f"{describe(run)}: " + ", ".join(f"{name} {error[-1]:.4f}" for name, error in run["error"].items())


def main(argv=None):
    parser = script.Arguments(__doc__)
    parser.add_argument(
        "--epochs", type=script.positive_int, default=EPOCHS, metavar="N", help=f"of {STEPS} batches of {BATCH} strings"
    )
    trainings.add_arguments(parser)
    devices.add_arguments(parser)
    arguments = parser.parse_args(argv)
    devices.pick(arguments.device)
    results = Results("ctc_digits", arguments, seeds=SEEDS, device=arguments.device)
    configs = [
        {"model": model, "order": order, "seed": seed, "epochs": arguments.epochs, "device": arguments.device}
        for model, order in CASES
        for seed in SEEDS
    ]

    runs = []
    results.print(f"label error rate on {TESTED} strings of {LONGEST} digits after {arguments.epochs} epochs")
    options = {"jobs": arguments.jobs, "cluster": arguments.cluster, "describe": describe}
    for run in trainings.run(train, configs, name="ctc_digits", **options):
        results.print(line(run))
        runs.append(run)

    blind = mean(chance(seed) for seed in SEEDS)
    results.print()
    results.print(f"means over {len(SEEDS)} seeds by epochs of {STEPS * BATCH:,} strings; chance is {blind:.3f}")
    for model, order in CASES:
        same = [run for run in runs if (run["model"], run["order"]) == (model, order)]
        for decoding in same[0]["error"]:
            means = map(mean, zip(*(run["error"][decoding] for run in same), strict=True))
            results.print(f"{model:15} {order} {decoding:6} " + " ".join(f"{error:.3f}" for error in means))
        if "frames_labelled" in same[0]:
            frames = mean(run["frames_labelled"] for run in same)
            results.print(f"{model:15} {order} frames with a label, of {mean(SPOKEN):g} in a digit: {frames:.1f}")
    results.record(chance=blind, runs=runs)
    results.save(draw)


def draw(results):
    """Errors by epochs, and one spoken string as the models of the first seed hear it."""
    figure, axes = plots.subplots(3, 2, size=(11, 9.5))
    shown = {(run["model"], run["order"]): run["example"] for run in results["runs"] if "example" in run}
    draw_errors(axes[0, 0], results)
    draw_posteriors(axes[1, 0], shown[CTC, "forwards"], "CTC: a spike for each digit")
    draw_posteriors(axes[2, 0], shown[TOLD, "forwards"], "Told the frames: plateaus")
    occupancy = list(zip(*shown[CTC, "forwards"]["occupancy"], strict=True))
    states = "–" + "".join(digit + "–" for digit in EXAMPLE)
    draw_matrix(axes[0, 1], occupancy, shown[CTC, "forwards"], states, "CTC: where the paths of the right string are")
    axes[0, 1].set(ylabel="state (– is blank)")
    for ax, order, string in (axes[1, 1], "forwards", EXAMPLE), (axes[2, 1], "reversed", EXAMPLE[::-1]):
        example = shown[ATTENTION, order]
        draw_matrix(ax, example["weights"], example, string + "·", f"Attention, {order}: where each step looks")
        ax.set(ylabel="right label (· ends)")
    for ax in axes.flat[1:]:
        ax.set(xlabel="frame")
    return figure


def draw_errors(ax, results):
    for i, (model, order) in enumerate(CASES):
        for run in results["runs"]:
            if (run["model"], run["order"]) == (model, order):
                errors, label = run["error"]["greedy"], f"{model}, {order}" if run["seed"] == SEEDS[0] else None
                style = {"color": plots.COLOURS[i], "linestyle": plots.DASHES[i], "linewidth": 1.2}
                ax.plot(range(1, len(errors) + 1), errors, label=label, **style)
    ax.axhline(results["chance"], color="#888888", linestyle=":", linewidth=1, label="chance")
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
                    ax.annotate(
                        str(label - 1), (peak, 1.03), color=curve.get_color(), ha="center", annotation_clip=False
                    )
    draw_borders(ax, example, 0, 1)
    ax.set(title=title + " (dotted: blank; red: borders)", ylabel="probability", ylim=(0, 1.12))


def draw_matrix(ax, rows, example, names, title):
    ax.imshow(rows, aspect="auto", cmap="Greys", vmin=0, interpolation="nearest")
    draw_borders(ax, example, -0.5, len(rows) - 0.5)
    ax.set(title=title, yticks=range(len(names)), yticklabels=names)
    ax.grid(False)


def draw_borders(ax, example, low, high):
    """Where one segment of the sound, a digit or a silence, ends and the next begins."""
    segments = example["segments"]
    for t, (before, after) in enumerate(pairwise(segments), 1):
        if before != after:
            ax.vlines(t - 0.5, low, high, color="#d1495b", linewidth=0.6)


if __name__ == "__main__":
    script.run(main)
