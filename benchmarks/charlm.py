"""The trainings of char_models.py against the plain listing: a training step of each cell.

plain     plain/charlm.py, one training at a time on all cores, as one would first run it
layers    charlm.py with torch's own nn.RNN, nn.GRU and nn.LSTM; one training per core
fast      charlm.py as char_models.py trains it, with the cells written by hand; one training per core

They take turns. What is reported is the time of a step as all cores together get through the trainings of a sweep (two
trainings side by side in 100 ms are 50 ms each): medians of the rounds, and the median and range of the rounds' ratios.
Beside them stands the floor: what the matrix products of a fast step alone would take at the speed of a large product,
measured in every round, one on each core.

    python -m benchmarks.charlm          2 min
"""

import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from statistics import median

import torch

import char_models
import charlm
import corpus
from charlm import BATCH, STEPS, WINDOW
from lab import script
from lab.results import available_cores
from lab.trainings import Checkpoint
from layers.char_rnn import CELLS, EMBEDDING, HIDDEN
from plain import charlm as plain

ROUNDS = 5
STEPS_PER_ROUND = 8
SEED = 0
RIVALS = ["plain", "layers", "fast"]
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
PRODUCT = 2048  # rows and columns of the large product
begun = {}  # in each process: the trainings that it has begun

KINDS = {"*": "timing"}


def by_torch(model, ids, state=None):
    """What charlm.py's model computes, without the cells written by hand."""
    h, state = model.rnn(model.embedding(ids), state)
    return model.linear(h), state


def begin(rival, cell):
    """A training's next step, as a function."""
    text = corpus.load()
    if rival == "plain":
        return plain.trainer(torch.from_numpy(text.encode(text.train)), text.size, cell, SEED)[1]
    training, *_ = charlm.set_up(charlm.Config(cell, SEED, text.fingerprint), Checkpoint())
    if rival == "layers":
        training.model.forward = partial(by_torch, training.model)
    return partial(next, iter(training))


def train(rival, cell):
    """Take a round's steps of a training, begun at the first call and gone on with."""
    if (rival, cell) not in begun:
        begun[rival, cell] = begin(rival, cell)
    for _ in range(STEPS_PER_ROUND):
        begun[rival, cell]()


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


def measure(arguments):
    cores, V = available_cores(), corpus.load().size
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
    runs = [cell for cell, _, _ in char_models.RUNS]
    floor = STEPS * sum(gflop(cell, V, table=True) for cell in runs) / median(peaks["a core"]) / cores
    return {
        "seeds": [SEED],
        "cores": cores,
        "threads": torch.get_num_threads(),
        "vocabulary": V,
        "seconds": rounds,
        "gflop_per_s": peaks,
        "sweep_seconds": [
            {rival: STEPS * sum(rounds[cell][i][rival] for cell in runs) for rival in RIVALS} for i in range(ROUNDS)
        ],
        "floor_seconds": floor,
    }


def tell(found):
    cores, threads, V = found["cores"], found["threads"], found["vocabulary"]
    together, one = (median(found["gflop_per_s"][name]) for name in ("all cores", "a core"))
    yield f"product of {PRODUCT} x {PRODUCT}: {together:.0f} GFLOP/s on {threads} threads, {one:.0f} on each of {cores}"
    yield f"ms a training step; plain on {threads} threads, the others one training on each of {cores} cores"
    yield "        plain  layers    fast   floor   plain / fast: median, range   GFLOP/s: plain, fast"
    for cell, took in found["seconds"].items():
        floor = gflop(cell, V, table=True) / one / cores
        speeds = gflop(cell, V, table=False), gflop(cell, V, table=True)
        speeds = [work / median(t[rival] for t in took) for work, rival in zip(speeds, ("plain", "fast"), strict=True)]
        yield f"{cell:5}{row(took, floor)}           {speeds[0]:7.0f} {speeds[1]:5.0f}"
    sweep, floor = found["sweep_seconds"], found["floor_seconds"]
    yield "minutes for the nine models of char_models.py"
    yield f"     {row(sweep, floor, 1 / 60)}"
    yield f"The floor is {floor / median(took['fast'] for took in sweep):.0%} of the time that fast takes."


def row(took, floor, unit=1e3):
    """The median of each rival's times, the floor, and the ratios of the rounds."""
    medians = [median(seconds[rival] for seconds in took) * unit for rival in RIVALS]
    ratios = [seconds["plain"] / seconds["fast"] for seconds in took]
    times = "".join(f"{value:8.1f}" for value in (*medians, floor * unit))
    return f"{times}   {median(ratios):.2f}, {min(ratios):.2f} to {max(ratios):.2f}"


if __name__ == "__main__":
    script.run(measure, tell)
