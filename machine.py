"""What this machine is, whether recurrent layers can be trusted on it, and how long a whole rerun would take.

    python rerun.py --check-machine

The time is estimated from some seconds of two trainings, one of each on every core at once: processor time a step here,
divided by what benchmarks/ measured of the same step on the reference machine, is how much slower this machine is; the
geometric mean of the two times the seconds that the saved outputs took is the work there is, and the cores share it.
"""

import math
import os
import re
import time
from importlib import metadata
from statistics import geometric_mean, mean, median

import torch

import charlm
import corpus
import seq2seq
from lab import devices, pools, results, script

SECONDS = 4  # of each of the two trainings
WARM_UP = 2  # steps
LENGTH = 40  # digits that the attention model reverses
LSTM, ATTENTION = "LSTM of char_models.py", f"attention of reverse.py at {LENGTH} digits"


def check(names: list[str]) -> int:
    """Print all of it, given the names of the experiments; 1 if a device fails its check."""
    cores = results.available_cores()
    environment = results.environment()
    print(f"machine    {environment['processor']}, {script.counted(cores, 'core')}{memory()}; {environment['system']}")
    saved = results.load("bptt")["environment"]
    print(f"versions   {python(environment['python'], saved['python'])}")
    for line in versions((script.ROOT / "requirements.txt").read_text(encoding="utf-8")):
        print(f"           {line}")
    faults = 0
    print("devices    cpu: what the others are held to")
    for name in others(devices.available()):
        fault = fault_of(name)
        faults += bool(fault)
        print(f"           {name}: {fault or 'recurrent layers agree with those of the CPU'}", flush=True)

    here, reference = measure(cores), reference_seconds()
    for name in here:
        ours, theirs = 1000 * here[name], 1000 * reference[name]
        print(f"a step     {name}: {ours:.0f} ms on each core, {theirs:.0f} on the reference machine")
    slower = geometric_mean(here[name] / reference[name] for name in here)
    work = {name: slower * results.core_seconds(results.load(name)) for name in names}
    longest = max(work, key=work.get)
    print(f"rerun      {duration(sum(work.values()))} of one core's work, {slower:.2f} times the reference machine's")
    whole = max(sum(work.values()) / cores, slower * longest_training(names))
    print(
        f"           python rerun.py --all: about {duration(whole)} on {script.counted(cores, 'core')} if they are free"
    )
    print(f"           the longest is {longest}.py, {duration(work[longest])} of one core's work")
    return 1 if faults else 0


def memory() -> str:
    try:
        return f", {os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f} GiB of memory"
    except (AttributeError, ValueError):  # a system that doesn't say
        return ""


def python(here: str, saved: str) -> str:
    same = here.split(".")[:2] == saved.split(".")[:2]
    return f"python {here}: " + ("as the saved outputs" if same else f"differs, the saved outputs come from {saved}")


def versions(pins: str) -> list[str]:
    """A line for each library that requirements.txt pins: what is installed, and whether it is the same."""
    lines = []
    for name, pinned in re.findall(r"^([\w.-]+)==(\S+)", pins, re.MULTILINE):
        try:
            here = metadata.version(name)
        except metadata.PackageNotFoundError:
            lines.append(f"{name}: not installed, the pin is {pinned}")
            continue
        same = here.partition("+")[0] == pinned  # what follows a plus sign names a build, such as +cpu
        lines.append(f"{name} {here}: " + ("as pinned" if same else f"differs, the pin is {pinned}"))
    return lines


def others(names: list[str]) -> list[str]:
    """Every device but the CPU, each once: "cuda" is the first of cuda:0, cuda:1, …"""
    return [name for name in names if name not in ("cpu", "cuda")]


def fault_of(name: str) -> str:
    """What is wrong with a device's recurrent layers, if anything is."""
    try:
        devices.check_recurrent(devices.pick(name))
    except script.UserError as error:
        return str(error)
    return ""


def measure(cores: int) -> dict[str, float]:
    """Seconds of a core for a step of each of the two trainings, which run on all cores at once."""
    with pools.processes(cores, {"cpu"}) as executor:
        with pools.for_children():
            probes = [executor.submit(probe, SECONDS) for _ in range(cores)]
        found = [probe.result() for probe in probes]
    return {name: mean(seconds[name] for seconds in found) for name in found[0]}


def probe(seconds: float) -> dict[str, float]:
    """Seconds of a core for a step, measured in this process for so many seconds each."""
    torch.set_num_threads(1)
    text = corpus.load()
    ids, draws = torch.from_numpy(text.encode(text.train)), torch.Generator().manual_seed(0)
    letters = charlm.build(charlm.configuration("LSTM", 0, text), text.size)
    digits = seq2seq.build(seq2seq.configuration(LENGTH, True, 0))
    adamw = torch.optim.AdamW(letters.parameters(), lr=charlm.LEARNING_RATE, fused=True)
    adam = torch.optim.Adam(digits.parameters(), lr=seq2seq.LEARNING_RATE, fused=True)

    def reverse():
        source = seq2seq.random_digits(seq2seq.BATCH, LENGTH, LENGTH, draws)
        seq2seq.train_step(digits, adam, source, seq2seq.answer(source))

    return {
        LSTM: of_a_step(lambda: charlm.train_step(letters, adamw, charlm.windows(ids, draws)), seconds),
        ATTENTION: of_a_step(reverse, seconds),
    }


def of_a_step(step, seconds: float) -> float:
    """The median processor time of a step, of as many as there is time for."""
    took, end = [], time.monotonic() + seconds
    while len(took) <= WARM_UP or time.monotonic() < end:
        start = time.process_time()
        step()
        took.append(time.process_time() - start)
    return median(took[WARM_UP:])


def reference_seconds() -> dict[str, float]:
    """The same of the reference machine, as its benchmarks saved it: there a step's time is shared by all cores."""
    letters, digits = results.load("benchmark_charlm"), results.load("benchmark_seq2seq")
    setting = digits["results"]["settings"].index({"length": LENGTH, "attention": True})
    rounds = {LSTM: letters["results"]["seconds"]["LSTM"], ATTENTION: digits["results"]["seconds"][setting]}
    cores = {LSTM: letters["environment"]["cores"], ATTENTION: digits["environment"]["cores"]}
    return {name: median(seconds["fast"] for seconds in rounds[name]) * cores[name] for name in rounds}


def longest_training(names: list[str]) -> float:
    """Seconds of the longest training of all: more cores can't make a rerun shorter than that."""
    runs = [run for name in names for run in results.load(name)["results"].get("runs", []) if isinstance(run, dict)]
    return max((run.get("seconds", 0.0) for run in runs), default=0.0)


def duration(seconds: float) -> str:
    """``40 s``, ``12 min`` or ``3.1 h``."""
    if seconds < 60:
        return f"{math.ceil(seconds)} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
