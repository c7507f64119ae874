"""The trainings of reverse.py against the plain listing: a training step at each length, without and with attention.

plain          plain/seq2seq.py, one training at a time on all cores, as one would first run it
step by step   seq2seq.py's model as its own `step` defines it, left to autograd; one training per core
fast           seq2seq.py as reverse.py trains it; one training per core

They take turns, on the same batches. What is reported is the time of a step, as the cores together get through the
trainings of a sweep (two trainings side by side in 10 ms are 5 ms each): the median of the rounds, the median and the
range of the rounds' ratios, and the whole of reverse.py, from its number of steps. Then the largest gap between the
logits of plain and fast, with the same weights, in float32.

    python -m benchmarks.seq2seq          2 min
"""

import functools
import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from statistics import median

import torch

import reverse
from lab import script
from lab.descent import Descent
from lab.results import available_cores
from lab.trainings import Checkpoint
from layers.encoder_decoder import START, Seq2Seq
from plain.seq2seq import PlainSeq2Seq
from seq2seq import BATCH, STEPS, Config, answer, mean_loss, random_digits

ROUNDS = 5
STEPS_PER_ROUND = {5: 40, 10: 20, 20: 10, 40: 5}  # about a second of the plain listing with attention
SEED = 0
KINDS = {"*": "timing", "settings.*": "exact", "largest_gap": "rounding"}


class Plain(PlainSeq2Seq):
    """The plain listing, called as seq2seq.py calls its model."""

    def __init__(self, attends):
        super().__init__("attention" if attends else "none")

    def forward(self, source, target, lengths=None):
        return super().forward(source, target)[0]


class StepByStep(Seq2Seq):
    """The same model with the decoder's steps taken one by one."""

    def forward(self, source, target, lengths=None):
        memory = self.encode(source, lengths)
        h, digit, all_logits = memory.h, torch.full_like(target[:, 0], START), []
        for t in range(target.shape[1]):
            logits, h, _ = self.step(digit, h, memory)
            all_logits.append(logits)
            digit = target[:, t]
        return torch.stack(all_logits, 1)


RIVALS = {"plain": Plain, "step by step": StepByStep, "fast": Seq2Seq}


@functools.cache
def training(rival, length, attends):
    """A training's steps, begun at the first call in a process and gone on with at the next ones."""
    torch.manual_seed(SEED)
    model = RIVALS[rival](attends)
    config = Config(length, attends, SEED, steps=(1 + ROUNDS) * STEPS_PER_ROUND[length])
    fused = None if rival == "plain" else True
    optimizer = torch.optim.Adam(model.parameters(), lr=config.learning_rate, fused=fused)

    def loss_on(draws):
        source = random_digits(BATCH, length, length, draws)
        return mean_loss(model, source, answer(source))

    return iter(Descent(model, optimizer, loss_on, torch.Generator().manual_seed(SEED), config, Checkpoint()))


def train(rival, length, attends):
    """Take a round's steps of a training."""
    steps = training(rival, length, attends)
    for _ in range(STEPS_PER_ROUND[length]):
        next(steps)


def in_turn(length, attends, workers):
    """Seconds of a step with each rival, all cores at work."""
    seconds = {}
    for rival in RIVALS:
        start = time.perf_counter()
        if rival == "plain":
            train(rival, length, attends)
            side_by_side = 1
        else:
            for done in [worker.submit(train, rival, length, attends) for worker in workers]:
                done.result()
            side_by_side = len(workers)
        seconds[rival] = (time.perf_counter() - start) / STEPS_PER_ROUND[length] / side_by_side
    return seconds


def largest_gap(length, attends):
    """Between the logits of the plain model and of the fast one with the same weights."""
    torch.manual_seed(SEED)
    plain, fast = Plain(attends), Seq2Seq(attends)
    fast.load_state_dict(plain.state_dict())
    source = random_digits(BATCH, length, length, torch.Generator().manual_seed(SEED))
    with torch.no_grad():
        return (plain(source, answer(source)) - fast(source, answer(source))).abs().max().item()


def measure(arguments):
    cores, threads = available_cores(), torch.get_num_threads()
    context = multiprocessing.get_context("spawn")
    settings = [(length, attends) for attends in (False, True) for length in reverse.LENGTHS]
    rounds = {setting: [] for setting in settings}
    with ExitStack() as stack:
        processes = [ProcessPoolExecutor(1, context, torch.set_num_threads, (1,)) for _ in range(cores)]
        workers = [stack.enter_context(process) for process in processes]
        for number in range(1 + ROUNDS):
            for setting in settings:
                seconds = in_turn(*setting, workers)
                if number:  # the first round warms up, shape by shape
                    rounds[setting].append(seconds)
    return {
        "seeds": [SEED],
        "threads": threads,
        "cores": cores,
        "settings": [{"length": length, "attention": attends} for length, attends in settings],
        "seconds": list(rounds.values()),
        "largest_gap": max(largest_gap(*setting) for setting in settings),
    }


def tell(found):
    rivals = f"plain on {found['threads']} threads, the others one training on each of {found['cores']} cores"
    yield f"ms a training step; {rivals}"
    yield f"{'':23}  plain  step by step   fast   plain / fast: median, range"
    for setting, took in zip(found["settings"], found["seconds"], strict=True):
        name = "attention" if setting["attention"] else "no attention"
        yield f"length {setting['length']:2}, {name:12} {row(took)}"
    runs = len(reverse.SEEDS) * STEPS
    rounds = zip(*found["seconds"], strict=True)
    sweep = [{rival: sum(took[rival] for took in one) * runs for rival in RIVALS} for one in rounds]
    yield f"the whole of reverse.py, minutes: {row(sweep, 1 / 60)}"
    yield f"largest gap between logits: {found['largest_gap']:.1e}"


def row(took, unit=1e3):
    """The median of each rival's times, and the ratios of the rounds."""
    plain, steps, fast = (median(seconds[rival] for seconds in took) * unit for rival in RIVALS)
    ratios = [seconds["plain"] / seconds["fast"] for seconds in took]
    return f"{plain:7.1f} {steps:13.1f} {fast:6.1f}   {median(ratios):.1f}, {min(ratios):.1f} to {max(ratios):.1f}"


if __name__ == "__main__":
    script.run(measure, tell)
