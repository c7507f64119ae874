"""The trainings of char_models.py against the plain listing: a training step of each cell.

plain     tests/plain_charlm.py, one training at a time on all cores, as one would first run it
layers    charlm.py with torch's own nn.RNN, nn.GRU and nn.LSTM; one training per core
fast      charlm.py as char_models.py trains it, with the cells written by hand; one training per core

They take turns. What is reported is the time of a step as all cores together get through the trainings of a sweep (two
trainings side by side in 100 ms are 50 ms each): medians of the rounds, and the median and range of the rounds' ratios.
Beside them stands the floor: what the matrix products of a fast step alone would take at the speed of a large product,
measured in every round, one on each core.

    python benchmarks/charlm.py          2 min
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
# In place of this folder, where "charlm" would be this file.
sys.path[:1] = [str(ROOT), str(ROOT / "tests")]

import plain_charlm  # noqa: E402

import char_models  # noqa: E402
import charlm  # noqa: E402
import corpus  # noqa: E402
from charlm import BATCH, CELLS, EMBEDDING, HIDDEN, LEARNING_RATE, STEPS, WINDOW  # noqa: E402
from lab import script  # noqa: E402
from lab.results import Results, available_cores  # noqa: E402

ROUNDS = 5
STEPS_PER_ROUND = 8
SEED = 0
RIVALS = ["plain", "layers", "fast"]
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
PRODUCT = 2048  # rows and columns of the large product
trainings = {}  # in each process: those that it has begun


class Layers(charlm.CharRNN):
    """charlm.py's model without the cells written by hand."""

    def forward(self, ids, state=None):
        h, state = self.rnn(self.embedding(ids), state)
        return self.linear(h), state


def begin(rival, cell):
    """A training's next step, as a function."""
    text = corpus.load()
    ids = torch.from_numpy(text.encode(text.train))
    if rival == "plain":
        return plain_charlm.trainer(ids, text.size, cell, SEED)[1]
    torch.manual_seed(SEED)
    model = {"layers": Layers, "fast": charlm.CharRNN}[rival](text.size, cell)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, fused=True)
    generator = torch.Generator().manual_seed(SEED)
    return lambda: charlm.train_step(model, optimizer, charlm.windows(ids, generator))


def train(rival, cell):
    """Take a round's steps of a training, begun at the first call and gone on with."""
    if (rival, cell) not in trainings:
        trainings[rival, cell] = begin(rival, cell)
    for _ in range(STEPS_PER_ROUND):
        trainings[rival, cell]()


def multiply():
    """GFLOP/s of a large product."""
    a = torch.ones(PRODUCT, PRODUCT)
    a @ a
    start = time.perf_counter()
    for _ in range(4):
        a @ a
    return 4 * 2 * PRODUCT**3 / (time.perf_counter() - start) / 1e9


def on_every_core(workers, function, *arguments):
    return [done.result() for done in [worker.submit(function, *arguments) for worker in workers]]


def in_turn(cell, workers):
    """Seconds of a step with each rival, all cores at work."""
    seconds = {}
    for rival in RIVALS:
        start = time.perf_counter()
        if rival == "plain":
            train(rival, cell)
        else:
            on_every_core(workers, train, rival, cell)
        side_by_side = 1 if rival == "plain" else len(workers)
        seconds[rival] = (time.perf_counter() - start) / STEPS_PER_ROUND / side_by_side
    return seconds


def gflop(cell, vocabulary, *, table):
    """Of a step's products with W_ih, W_h and the output's weights, each once forward and twice backward.

    With a table the product with W_ih is one of the vocabulary's rows instead of one of every character.
    """
    gates, characters = GATES[cell] * HIDDEN, BATCH * WINDOW
    into = 2 * EMBEDDING * gates * (vocabulary if table else characters)
    return 3 * (into + characters * 2 * HIDDEN * (gates + vocabulary)) / 1e9


def main(argv=None):
    results = Results("benchmark_charlm", script.Arguments(__doc__).parse_args(argv), seeds=[SEED])
    cores, threads, V = available_cores(), torch.get_num_threads(), corpus.load().size
    context = multiprocessing.get_context("spawn")
    rounds, peaks = {cell: [] for cell in CELLS}, {"all cores": [], "a core": []}
    with ExitStack() as stack:
        processes = [ProcessPoolExecutor(1, context, torch.set_num_threads, (1,)) for _ in range(cores)]
        workers = [stack.enter_context(process) for process in processes]
        for number in range(1 + ROUNDS):
            peak = {"all cores": multiply(), "a core": min(on_every_core(workers, multiply))}
            for name, value in peak.items():
                peaks[name] += [value] * bool(number)  # the first round warms up
            for cell in CELLS:
                rounds[cell] += [in_turn(cell, workers)] * bool(number)

    together, one = (median(peaks[name]) for name in ("all cores", "a core"))
    results.print(
        f"product of {PRODUCT} x {PRODUCT}: {together:.0f} GFLOP/s on {threads} threads, {one:.0f} on each of {cores}"
    )
    results.print(f"ms a training step; plain on {threads} threads, the others one training on each of {cores} cores")
    results.print("        plain  layers    fast   floor   plain / fast: median, range   GFLOP/s: plain, fast")
    for cell, took in rounds.items():
        floor = gflop(cell, V, table=True) / one / cores
        speeds = gflop(cell, V, table=False), gflop(cell, V, table=True)
        speeds = [work / median(t[rival] for t in took) for work, rival in zip(speeds, ("plain", "fast"), strict=True)]
        results.print(f"{cell:5}{row(took, floor)}           {speeds[0]:7.0f} {speeds[1]:5.0f}")
    runs = [cell for cell, _, _ in char_models.RUNS]
    sweep = [{rival: STEPS * sum(rounds[cell][i][rival] for cell in runs) for rival in RIVALS} for i in range(ROUNDS)]
    floor = STEPS * sum(gflop(cell, V, table=True) for cell in runs) / one / cores
    results.print("minutes for the nine models of char_models.py")
    results.print(f"     {row(sweep, floor, 1 / 60)}")
    share = floor / median(took["fast"] for took in sweep)
    results.print(f"The floor is {share:.0%} of the time that fast takes.")
    results.record(seconds=rounds, gflop_per_s=peaks, sweep_seconds=sweep, floor_seconds=floor)
    results.save()


def row(took, floor, unit=1e3):
    """The median of each rival's times, the floor, and the ratios of the rounds."""
    medians = [median(seconds[rival] for seconds in took) * unit for rival in RIVALS]
    ratios = [seconds["plain"] / seconds["fast"] for seconds in took]
    times = "".join(f"{value:8.1f}" for value in (*medians, floor * unit))
    return f"{times}   {median(ratios):.2f}, {min(ratios):.2f} to {max(ratios):.2f}"


if __name__ == "__main__":
    script.run(main)
