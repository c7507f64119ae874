"""From the last frame to the transcript: CTC's one pass against a decoder that writes label after label.

The models are those of ctc_digits.py (layers/transcribers.py), for one speaker at a time. When the last frame has been
heard, this is still to be done:

    CTC, one way     one step of a GRU, one row of outputs; the labels before have been written already
    CTC, both ways   the same, then the GRU from the last frame to the first, an output for each frame, collapsing
    attention        the same two GRUs, a key for each frame, then one step of the decoder a label and one to end it

How long that takes is measured for strings of 3 to 96 digits, with untrained weights: the time doesn't depend on what
the weights are, but for the decoder's end, so it writes as many labels as there are digits.

A reader who wants each digit as soon as it is spoken has to wait, too, for frames that haven't been heard. Both ways,
and with attention, that is until the end. CTC that hears one way can write at any time, but when it does it learns by
itself. So it is trained as ctc_digits.py trains both ways, for twice as long, three seeds, with about as many
parameters: how many frames after a digit's end does it write it (before: negative), and how many more mistakes does it
make?

    python -m beyond.latency          3 min

Prints, first:

    ms from the last frame to the transcript, one speaker, float32, cpu
     digits  frames     CTC, one way   CTC, both ways        attention
          3      58             0.07             0.61             1.09
          6      91             0.07             0.88             1.73
         12     184             0.08             1.65             3.30
         24     378             0.08             3.35             7.23
         48     879             0.08             7.40            17.45
         96   1,657             0.10            13.85            41.83

CTC that hears one way needs a tenth of a millisecond whatever came before, and writes a digit 6 to 8 frames before it
ends, with some more mistakes: one label in a hundred is wrong, where it is three to seven in a thousand both ways.

This script is longer than others because it measures time and waiting, of which the second takes training.

Times are medians of 20 runs in which the three take turns, on one core, in float32. Both ways and with attention the
GRU from the first frame to the last has been running along, so it isn't counted.

Sources: KnowML's course page "Sequence Modeling Pre-Transformer", "CTC in speech recognition"; Graves, Fernández, Gomez
and Schmidhuber (2006); Bahdanau, Cho and Bengio (2015).
"""

from dataclasses import dataclass, fields
from itertools import pairwise
from statistics import fmean, median

import torch
from torch import nn

from beyond.ctc_digits import BATCH, LEARNING_RATE, LONGEST, TESTED, hear
from beyond.ctc_digits import EPOCHS as EPOCHS_THERE
from beyond.ctc_digits import STEPS as STEPS_THERE
from lab import devices, plots, script, timing, trainings
from lab.descent import Descent
from layers import cells
from layers.ctc import BLANK, best_path
from layers.encoder_decoder import reverse
from layers.spoken_digits import FEATURES, LABELS, random_strings, speak
from layers.transcribers import CTC, HIDDEN, Writer, error_rate
from seq2seq import generator

LENGTHS = [3, 6, 12, 24, 48, 96]  # digits
WARM_UP, RUNS = 3, 20
RIVALS = ["CTC, one way", "CTC, both ways", "attention"]
ONE_WAY = 70  # units of the GRU that hears one way, which then has about as many parameters as two of HIDDEN
SEEDS = range(3)
EPOCH = STEPS_THERE  # steps between two looks at the mistakes
STEPS = 2 * EPOCHS_THERE["CTC", "forwards"] * EPOCH  # what hears one way may take longer
TIMED_SEED = 0


@dataclass(frozen=True)
class Config:
    """One training of a CTC model."""

    hears: str  # "one way" or "both ways"
    seed: int  # of weights and strings
    steps: int
    device: str = "cpu"  # where it is trained; not recorded
    clip: float = 1.0  # largest norm of the gradient

    def __str__(self):
        return f"CTC, {self.hears}, seed {self.seed}"


KINDS = {
    "*": "trained",
    "device": "timing",
    "lengths.*": "exact",
    "frames.*": "exact",
    "ms.*": "timing",
    "growth.*": "timing",
    "frames_to_wait.*": "exact",
    "runs.*.parameters": "exact",
    **{f"runs.*.{field.name}": "setting" for field in fields(Config) if field.name not in ("seed", "device")},
}


class Forward(nn.Module):
    """A GRU from the first frame to the last."""

    def __init__(self):
        super().__init__()
        self.there = nn.GRU(FEATURES, ONE_WAY)

    def forward(self, sound, frames):
        return cells.run(self.there, sound.transpose(0, 1))[0].transpose(0, 1)  # (batch, time, ONE_WAY)


class OneWay(CTC):
    """CTC whose outputs know nothing of the frames to come."""

    def __init__(self):
        super().__init__()
        self.encoder, self.output = Forward(), nn.Linear(ONE_WAY, LABELS)


MODELS = {"one way": OneWay, "both ways": CTC}


def build(model, seed):
    """An untrained model, whose weights are drawn on the CPU."""
    with torch.random.fork_rng(devices=[]):
        torch.set_rng_state(generator(seed, "weights").get_state())
        return model()


def collapsed(labels):
    """The string that a path of labels (time,) says."""
    return [b for a, b in pairwise([BLANK, *labels.tolist()]) if b not in (a, BLANK)]


def after_the_last_frame(speech, digits):
    """What each rival has still to do when all frames but the last have been worked on: functions without arguments."""
    device = speech.sound.device
    one_way, both_ways, writer = (build(model, TIMED_SEED).to(device) for model in (OneWay, CTC, Writer))
    sound, frames = speech.sound[:, : speech.frames[0]], speech.frames
    x = sound.transpose(0, 1)  # (time, 1, feature)
    before, last = x[:-1], x[-1:]
    _, one_way_state = cells.run(one_way.encoder.there, before)

    def encoded(encoder, there, state):
        there = torch.cat([there, cells.run(encoder.there, last, state)[0]])
        back, _ = cells.run(encoder.back, reverse(sound, frames).transpose(0, 1))
        return torch.cat([there.transpose(0, 1), reverse(back.transpose(0, 1), frames)], 2)

    def step():
        h, _ = cells.run(one_way.encoder.there, last, one_way_state)
        return one_way.output(h[-1]).argmax(1).item()

    heard = {model: cells.run(model.encoder.there, before) for model in (both_ways, writer)}

    def pass_back():
        states = encoded(both_ways.encoder, *heard[both_ways])
        return collapsed(both_ways.output(states)[0].argmax(1))

    def write():
        states = encoded(writer.encoder, *heard[writer]).transpose(0, 1).contiguous()
        memory = states, writer.W_enc(states), None
        h, label, labels = states.new_zeros(1, 1, HIDDEN), torch.full((1, 1), BLANK, device=device), []
        for _ in range(digits + 1):
            logits, h, _ = writer(label, h[0], memory)
            label = logits.argmax(2)
            labels.append(label.item())
        return labels

    return dict(zip(RIVALS, (step, pass_back, write), strict=True))


@torch.inference_mode()
def latencies(device):
    """ms from the last frame to the transcript, for each rival and length; and the frames of each length."""
    ms, frames = {name: [] for name in RIVALS}, []
    for digits in LENGTHS:
        draws = generator(TIMED_SEED, "test")
        speech, _ = hear(random_strings(1, digits, draws), "forwards", draws, device)
        rivals = after_the_last_frame(speech, digits)
        times = timing.take_turns(rivals, device, warm_up=WARM_UP, runs=RUNS)
        for name in RIVALS:
            ms[name].append(median(times[name]))
        frames.append(speech.frames[0].item())
    return ms, frames


def train(config, checkpoint):
    """One training, from its configuration to its record: mistakes, and when the labels are written."""
    device = devices.trusted(config.device)
    model = build(MODELS[config.hears], config.seed).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, fused=True)
    draws = generator(config.seed, "test")
    speech, wanted = hear(random_strings(TESTED, LONGEST, draws), "forwards", draws, device)

    def loss_on(draws):
        length = int(torch.randint(1, LONGEST + 1, (), generator=draws))
        return model.loss(*hear(random_strings(BATCH, length, draws), "forwards", draws, device))

    training = Descent(model, optimizer, loss_on, generator(config.seed, "training"), config, checkpoint)
    for step in training:
        if step % EPOCH == 0:
            training.log(error=mistakes(model, speech, wanted))
    with torch.no_grad():
        paths = model(speech).argmax(2).cpu()  # (string, time)
    frames, segments = speech.frames.tolist(), speech.segments.cpu()
    waits = written_after(paths, frames, segments, wanted.tolist())
    return trainings.settings(config) | {
        "parameters": sum(p.numel() for p in model.parameters()),
        "seconds": training.seconds,
        "label_error": mistakes(model, speech, wanted),
        "error_by_epoch": training.curve.get("error", []),
        "strings_right": len(waits) / len(wanted),
        "written_after_frames": median(wait for string in waits for wait in string) if waits else None,
    }


@torch.no_grad()
def mistakes(model, speech, wanted):
    """The label error rate of what a model writes, greedily."""
    return error_rate(best_path(model(speech).cpu(), speech.frames.cpu()), wanted.tolist())


def written_after(paths, frames, segments, wanted):
    """Of each string that is right: how many frames after its end each digit is first written."""
    waits = []
    for path, T, own, string in zip(paths, frames, segments, wanted, strict=True):
        labels = path[:T].tolist()
        if collapsed(path[:T]) == string:
            starts = [t for t, (a, b) in enumerate(pairwise([BLANK, *labels])) if b not in (a, BLANK)]
            waits.append([start - end for start, end in zip(starts, ends_of(own[:T]), strict=True)])
    return waits


def ends_of(segments):
    """The last frame of each digit. Digits are the odd segments, silences the even ones; some are missing."""
    return [int((segments == digit).nonzero()[-1]) for digit in range(1, int(segments.max()) + 1, 2)]


def frames_to_wait():
    """How many frames lie between the end of a digit and the end of its string of LONGEST, on average."""
    draws = generator(TIMED_SEED, "test")
    speech = speak(random_strings(TESTED, LONGEST, draws), draws)
    left = [
        T - 1 - end for T, row in zip(speech.frames.tolist(), speech.segments, strict=True) for end in ends_of(row[:T])
    ]
    return fmean(left)


def measure(arguments):
    steps = min(arguments.steps, STEPS)
    configs = [Config(hears, seed, steps, arguments.device) for hears in MODELS for seed in SEEDS]
    runs = trainings.run(train, configs, arguments)
    torch.set_num_threads(1)
    device = devices.trusted(arguments.device)
    ms, frames = latencies(device)
    return {
        "seeds": SEEDS,
        "device": str(device),
        "lengths": LENGTHS,
        "frames": frames,
        "ms": ms,
        "growth": {name: timing.slope(frames, times) for name, times in ms.items()},
        "frames_to_wait": {"digits": LONGEST, "mean": frames_to_wait()},
        "runs": runs,
    }


def tell(found):
    yield f"ms from the last frame to the transcript, one speaker, float32, {found['device']}"
    yield f"{'digits':>7}{'frames':>8}" + "".join(f"{name:>17}" for name in found["ms"])
    for digits, frames, *ms in zip(found["lengths"], found["frames"], *found["ms"].values(), strict=True):
        yield f"{digits:7}{frames:8,}" + "".join(f"{time:17.2f}" for time in ms)
    yield "growing with the frames to the power of: " + ", ".join(
        f"{n} {power:z.2f}" for n, power in found["growth"].items()
    )
    yield ""
    wait = found["frames_to_wait"]
    yield f"{wait['digits']} digits: frames from the end of a digit to its label; label error rate, strings right"
    yield "(one way: the median in strings that are right; both ways: the mean distance to the last frame)"
    for run in found["runs"]:
        name = f"CTC, {run['hears']:9}, seed {run['seed']}, {run['parameters']:,} parameters"
        if "diverged_at_step" in run:
            yield f"{name}: the loss is not finite at step {run['diverged_at_step']:,}"
            continue
        after = wait["mean"] if run["hears"] == "both ways" else run["written_after_frames"]
        told = "  none right" if after is None else f"{after:5.1f} frames"
        yield f"{name}: {told}; {run['label_error']:.3f}, {run['strings_right']:.2f}"


def draw(found):
    """Time from the last frame to the transcript against the frames of the string."""
    figure, axes = plots.subplots(size=(7.0, 4.4))
    for name, marker in zip(found["ms"], plots.MARKERS, strict=False):
        axes.loglog(found["frames"], found["ms"][name], marker=marker, markersize=4.5, label=name)
    axes.set(xlabel="frames of the string", ylabel="ms after the last frame", title="How long the transcript takes")
    plots.label_ends(axes)
    return figure


def options(parser):
    parser.add_argument(
        "--steps", type=script.positive_int, default=STEPS, metavar="N", help="of each training, at most"
    )
    parser.add_jobs()
    parser.add_device()


if __name__ == "__main__":
    script.run(measure, tell, draw, options)
