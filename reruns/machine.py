"""What this machine is, whether recurrent layers can be trusted on it, and how long a whole rerun would take.

    python rerun.py --check-machine

The time is estimated from some seconds of two trainings, one of each on every core at once: processor time a step here,
divided by what the saved one took, is how much slower this machine is. The geometric mean of the two times the seconds
that the saved outputs took is the work there is, and the cores share it.
"""

import os
import re
import time
from importlib import metadata
from statistics import geometric_mean, mean, median

import torch

from lab import devices, pools, results
from lab.errors import ROOT, UserError
from lab.script import counted
from lab.trainings import Checkpoint
from reruns import catalogue
from reruns.running import duration

SECONDS = 4  # of each of the two trainings
WARM_UP = 2  # steps
LSTM, ATTENTION = "LSTM of char_models_long.py", "attention of reverse_40_longer.py"


def check(entries: list[catalogue.Entry]) -> int:
    """Print all of it; 1 if a device fails its check."""
    cores, here, saved = results.available_cores(), results.environment(), results.load("bptt")["environment"]
    print(f"machine    {here['processor']}, {counted(cores, 'core')}{memory()}; {here['system']}")
    print(f"versions   {version('python', here['python'], saved['python'])}")
    for name, pin in re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "requirements.txt").read_text("utf-8"), re.MULTILINE):
        print(f"           {version(name, installed(name), pin)}")
    print("devices    cpu: what the others are held to")
    # Each once: "cuda" is the first of cuda:0, cuda:1, …
    faults = {name: fault_of(name) for name in devices.available() if name not in ("cpu", "cuda")}
    for name, fault in faults.items():
        print(f"           {name}: {fault or 'recurrent layers agree with those of the CPU'}", flush=True)

    ours, theirs = measure(cores), reference()
    for name, seconds in ours.items():
        print(f"a step     {name}: {1000 * seconds:.0f} ms on each core, {1000 * theirs[name]:.0f} when it was saved")
    slower = geometric_mean(ours[name] / theirs[name] for name in ours)
    work = {entry.name: slower * entry.core_seconds for entry in entries}
    # More cores can't make a rerun shorter than its longest training.
    longest = max(run.get("seconds", 0.0) for entry in entries if entry.record for run in catalogue.runs(entry.record))
    whole, name = max(sum(work.values()) / cores, slower * longest), max(work, key=work.get)
    print(f"rerun      {duration(sum(work.values()))} of one core's work, {slower:.2f} times the reference machine's")
    print(f"           python rerun.py --all: about {duration(whole)} on {counted(cores, 'core')} if they are free")
    print(f"           the longest is {name}, {duration(work[name])} of one core's work")
    return 1 if any(faults.values()) else 0


def memory() -> str:
    try:
        return f", {os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f} GiB of memory"
    except (AttributeError, ValueError):  # a system that doesn't say
        return ""


def installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def version(name: str, here: str | None, pin: str) -> str:
    """How a version compares with what the saved outputs were made with; of Python the first two numbers count."""
    if here is None:
        return f"{name}: not installed, the saved outputs come from {pin}"
    parts = 2 if name == "python" else None
    same = here.partition("+")[0].split(".")[:parts] == pin.split(".")[:parts]  # a plus sign names a build, as +cpu
    return f"{name} {here}: " + ("as the saved outputs" if same else f"differs, the saved outputs come from {pin}")


def fault_of(name: str) -> str:
    """What is wrong with a device's recurrent layers, if anything is."""
    try:
        devices.trusted(name)
    except UserError as error:
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
    import charlm
    import corpus
    import seq2seq

    torch.set_num_threads(1)
    letters, *_ = charlm.set_up(charlm.Config("LSTM", 0, corpus.load().fingerprint), Checkpoint())
    digits = seq2seq.set_up(seq2seq.Config(40, True, 0), Checkpoint())
    return {LSTM: of_a_step(letters, seconds), ATTENTION: of_a_step(digits, seconds)}


def of_a_step(training, seconds: float) -> float:
    """The median processor time of a step, of as many as there is time for."""
    steps, took, end = iter(training), [], time.monotonic() + seconds
    while len(took) <= WARM_UP or time.monotonic() < end:
        start = time.process_time()
        next(steps)
        took.append(time.process_time() - start)
    return median(took[WARM_UP:])


def reference() -> dict[str, float]:
    """The same of the saved runs, which had all cores busy too."""
    letters = next(run for run in results.load("char_models_long")["results"]["runs"] if run["cell"] == "LSTM")
    digits = next(run for run in results.load("reverse_40_longer")["results"]["runs"] if run["attention"])
    return {name: run["seconds"] / run["steps"] for name, run in ((LSTM, letters), (ATTENTION, digits))}
