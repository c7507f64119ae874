"""The trainings of reverse.py against the plain listing: a training step at each length, without and with attention.

plain          tests/plain_seq2seq.py, one training at a time on all cores, as one would first run it
step by step   seq2seq.py's model as its own `step` defines it, left to autograd; one training per core
fast           seq2seq.py as reverse.py trains it; one training per core

They take turns, on the same batches. What is reported is the time of a step, as the cores together get through the
trainings of a sweep (two trainings side by side in 10 ms are 5 ms each): the median of the rounds, the median and the
range of the rounds' ratios, and the whole of reverse.py, from its number of steps. Then the largest gap between the
logits of plain and fast, with the same weights, in float32.

    python benchmarks/seq2seq.py          2 min
"""

import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import torch

ROOT = Path(__file__).resolve().parent.parent
# In place of this folder, where "seq2seq" would be this file.
sys.path[:1] = [str(ROOT), str(ROOT / "tests")]

from plain_seq2seq import START, PlainSeq2Seq  # noqa: E402

import reverse  # noqa: E402
from lab import script  # noqa: E402
from lab.results import Results, available_cores  # noqa: E402
from seq2seq import BATCH, LEARNING_RATE, STEPS, Seq2Seq, answer, random_digits, train_step  # noqa: E402

ROUNDS = 5
STEPS_PER_ROUND = {5: 40, 10: 20, 20: 10, 40: 5}  # about a second of the plain listing with attention
SEED = 0


class Plain(PlainSeq2Seq):
    """The plain listing behind seq2seq.py's train_step."""

    def __init__(self, attends):
        super().__init__("attention" if attends else "none")

    def forward(self, source, target):
        return super().forward(source, target)[0]


class StepByStep(Seq2Seq):
    """The same model with the decoder's steps taken one by one."""

    def forward(self, source, target):
        memory = self.encode(source)
        h, digit, all_logits = memory.h, torch.full_like(target[:, 0], START), []
        for t in range(target.shape[1]):
            logits, h, _ = self.step(digit, h, memory)
            all_logits.append(logits)
            digit = target[:, t]
        return torch.stack(all_logits, 1)


RIVALS = {"plain": Plain, "step by step": StepByStep, "fast": Seq2Seq}
trainings = {}  # in each process: those that it has begun


def train(rival, length, attends):
    """Take a round's steps of a training, begun at the first call and gone on with."""
    key = (rival, length, attends)
    if key not in trainings:
        torch.manual_seed(SEED)
        model = RIVALS[rival](attends)
        plain = rival == "plain"
        optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, fused=None if plain else True)
        trainings[key] = model, optimizer, torch.Generator().manual_seed(SEED)
    model, optimizer, draws = trainings[key]
    for _ in range(STEPS_PER_ROUND[length]):
        source = random_digits(BATCH, length, length, draws)
        train_step(model, optimizer, source, answer(source))


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


def main(argv=None):
    results = Results("benchmark_seq2seq", script.Arguments(__doc__).parse_args(argv), seeds=[SEED])
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

    results.print(f"ms a training step; plain on {threads} threads, the others one training on each of {cores} cores")
    results.print(f"{'':23}  plain  step by step   fast   plain / fast: median, range")
    for (length, attends), took in rounds.items():
        name = "attention" if attends else "no attention"
        results.print(f"length {length:2}, {name:12} {row(took)}")
    runs = len(reverse.SEEDS) * STEPS
    sweep = [
        {rival: sum(rounds[setting][i][rival] for setting in settings) * runs for rival in RIVALS}
        for i in range(ROUNDS)
    ]
    results.print(f"the whole of reverse.py, minutes: {row(sweep, 1 / 60)}")
    gap = max(largest_gap(*setting) for setting in settings)
    results.print(f"largest gap between logits: {gap:.1e}")
    results.record(
        settings=[{"length": length, "attention": attends} for length, attends in settings],
        seconds=list(rounds.values()),
        largest_gap=gap,
    )
    results.save()


def row(took, unit=1e3):
    """The median of each rival's times, and the ratios of the rounds."""
    plain, steps, fast = (median(seconds[rival] for seconds in took) * unit for rival in RIVALS)
    ratios = [seconds["plain"] / seconds["fast"] for seconds in took]
    return f"{plain:7.1f} {steps:13.1f} {fast:6.1f}   {median(ratios):.1f}, {min(ratios):.1f} to {max(ratios):.1f}"


if __name__ == "__main__":
    script.run(main)
