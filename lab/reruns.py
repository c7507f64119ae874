"""Running experiments as their users do: each a process of its own, all of them resumable as a whole.

    for experiment, status, seconds in reruns.run(experiments, folder):
        ...                                              # each as soon as it ends; those that were done before first
    reruns.finish(experiments, folder, outputs)

Results wait in ``folder`` until all are there, each beside a note of what made it: an interrupted rerun goes on from
there, and a changed script, library or text runs again. A finished rerun leaves nothing behind, so that the next one
starts afresh. An experiment that is a sweep keeps its own work in progress (lab/trainings.py).
"""

import ast
import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from lab.progress import Overview
from lab.results import available_cores, claim, write_whole
from lab.script import ENDS_WITH_STDIN, ROOT, UserError, counted, note

SIDE_BY_SIDE = 2  # sweeps, each with its share of the cores: when one has only its last training left, the other works
POLL_SECONDS = 0.1
PROGRESS = re.compile(r" *(\d+)%[ |]")  # how a line of a sweep's progress begins
LIBRARIES = ("numpy", "torch", "matplotlib")  # those that can change a result or its figure


@dataclass(frozen=True)
class Experiment:
    """A script with its arguments. ``cost`` is about how many seconds of one core it takes, in any machine's seconds.

    A ``sweep`` runs many trainings and takes --jobs; the others have the machine to themselves.
    """

    script: Path
    arguments: tuple[str, ...] = ()
    cost: float = 1.0
    sweep: bool = False
    text: str = ""  # the fingerprint of what it reads

    @property
    def name(self) -> str:
        return self.script.stem

    def made_by(self) -> str:
        """A digest of all that its results depend on: code, arguments, text, and the libraries."""
        parts = [path.read_bytes() for path in sorted(sources(self.script))]
        versions = [sys.version, *(metadata.version(name) for name in LIBRARIES)]
        parts += [json.dumps([self.arguments, self.text, versions]).encode()]
        return hashlib.sha256(b"\0".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def sources(path: Path) -> set[Path]:
    """A script and every file beside it or in lab/ that it imports, directly or not."""
    found, new = set(), {path}
    while new:
        found |= new
        names = {name for source in new for name in _imported(source)}
        candidates = {ROOT.joinpath(*name.split(".")).with_suffix(".py") for name in names}
        new = {candidate for candidate in candidates - found if candidate.is_file()}
    return found


@functools.cache
def _imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
    return found


def run(experiments: list[Experiment], folder: Path) -> Iterator[tuple[Experiment, int, float]]:
    """Run the experiments, their results going to ``folder``, and yield each with its exit status and its seconds."""
    digests = {experiment: experiment.made_by() for experiment in experiments}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / "lock", "a", encoding="utf-8") as lock:
            if not claim(lock):
                raise UserError("the same rerun is running already: wait for it, or stop it")
            yield from _run(digests, folder)
    except OSError as error:
        raise UserError(f"can't keep results in {folder}: {error.strerror}") from None


def _run(digests: dict[Experiment, str], folder: Path) -> Iterator[tuple[Experiment, int, float]]:
    done = {}
    for experiment, digest in digests.items():
        if (seconds := _seconds_of(folder, experiment, digest)) is not None:
            done[experiment] = seconds
    if done:
        note(f"{len(done)} of {len(digests)} experiments were done when this rerun was interrupted: going on")
    for experiment, seconds in done.items():
        yield experiment, 0, seconds

    waiting = [experiment for experiment in digests if experiment not in done]
    beside = min(SIDE_BY_SIDE, available_cores(), max(1, sum(experiment.sweep for experiment in waiting)))
    jobs = -(-available_cores() // beside)
    board = Overview(
        {experiment.name: experiment.cost for experiment in digests},
        [experiment.name for experiment in done],
        available_cores(),
        beside,
    )
    running = []
    try:
        while waiting or running:
            while waiting and (
                not running or (len(running) < beside and waiting[0].sweep and all(p.experiment.sweep for p in running))
            ):
                running.append(Process(waiting.pop(0), folder, jobs))
            board.show({process.experiment.name: process.share() for process in running})
            time.sleep(POLL_SECONDS)
            for process in [process for process in running if process.popen.poll() is not None]:
                running.remove(process)
                status, seconds = process.popen.returncode, time.monotonic() - process.started
                if not status:
                    _remember(folder, process.experiment, digests[process.experiment], seconds)
                    done[process.experiment] = seconds
                board.finish(process.experiment.name)
                process.end()
                for line in process.said():
                    note(f"{process.experiment.name}: {line}")
                yield process.experiment, status, seconds
    except KeyboardInterrupt:
        board.close()
        note(f"{len(done)} of {counted(len(digests), 'experiment')} are done; the same command goes on from here")
        raise
    finally:
        board.close()
        for process in running:
            process.end()


class Process:
    """An experiment that runs, and ends when this process does, however that ends."""

    def __init__(self, experiment: Experiment, folder: Path, jobs: int):
        self.experiment = experiment
        self.started = time.monotonic()
        self.log = folder / f"{experiment.name}.log"
        command = [sys.executable, str(experiment.script), "--outputs", str(folder), *experiment.arguments]
        command += ["--jobs", str(jobs)] if experiment.sweep else []
        with open(self.log, "w", encoding="utf-8") as log:
            self.popen = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=log,
                env=os.environ | {ENDS_WITH_STDIN: "1", "PYTHONIOENCODING": "utf-8"},
            )

    def share(self) -> float:
        """How much of it is done, as its last line of progress says."""
        shares = [match[1] for line in self._lines() if (match := PROGRESS.match(line))]
        return int(shares[-1]) / 100 if shares else 0.0

    def said(self) -> list[str]:
        """What it had to tell its user, apart from its progress."""
        return [line for line in self._lines() if not PROGRESS.match(line)]

    def _lines(self) -> list[str]:
        return self.log.read_text(encoding="utf-8", errors="replace").splitlines()

    def end(self):
        """End it, unless it has ended."""
        self.popen.stdin.close()
        self.popen.wait()


def _remember(folder: Path, experiment: Experiment, digest: str, seconds: float):
    record = {"made_by": digest, "seconds": round(seconds, 2)}
    write_whole(folder / f"{experiment.name}.done", json.dumps(record).encode())


def _seconds_of(folder: Path, experiment: Experiment, digest: str) -> float | None:
    """How long it took to make the results that wait in the folder, if it made them."""
    try:
        record = json.loads((folder / f"{experiment.name}.done").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return record["seconds"] if record["made_by"] == digest else None


def finish(experiments: list[Experiment], folder: Path, outputs: Path | None):
    """End a rerun: put the results of ``experiments`` into ``outputs``, if it is given, and leave nothing in folder."""
    try:
        for experiment in experiments if outputs else ():
            for suffix in (".txt", ".json", ".png"):
                made = folder / f"{experiment.name}{suffix}"
                if made.exists():
                    write_whole(outputs / made.name, made.read_bytes())
        over = folder.with_suffix(".over")  # in one step, so that a kill can't leave a part of a rerun
        shutil.rmtree(over, ignore_errors=True)
        folder.rename(over)
        shutil.rmtree(over, ignore_errors=True)
    except OSError as error:
        raise UserError(f"the results wait in {folder}: can't put them into {outputs}: {error.strerror}") from None
