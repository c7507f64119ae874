"""Running experiments as their users do: each a process of its own that writes its results into a folder.

    for rerun, record in running.run(reruns, arguments):
        ...                             # each as soon as it ends; record is None where it failed

What lies in the folder already, made by the same code from the same arguments and text, isn't run again: that is how an
interrupted rerun goes on. A sweep keeps its own work in progress besides (lab/trainings.py).
"""

import math
import os
import signal
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

from lab import results
from lab.errors import ROOT, UserError, note
from lab.script import ENDS_WITH_STDIN, counted
from reruns.catalogue import Entry

SIDE_BY_SIDE = 2  # sweeps, each with its share of the cores: when one has only its last training left, the other works
TRUSTED_AFTER = 60  # seconds, before which the time left is rather what the reference machine took
TOLD_FROM = 60  # seconds that are left


class Rerun:
    """An experiment that is run again, with the options that all scripts share as far as it takes them.

    ``text`` is the fingerprint of what scripts read. ``status`` and ``seconds`` are there once it has ended.
    """

    def __init__(self, entry: Entry, arguments: Namespace, folder: Path, text: str | None):
        self.entry, self.folder, self.text, self.status, self.seconds = entry, folder.resolve(), text, None, None
        given = {"device": arguments.device, "data": arguments.data, "cluster": arguments.cluster}
        given = {name: value for name, value in given.items() if value not in (None, "cpu") and name in entry.takes}
        self.given = {name: value.resolve() if isinstance(value, Path) else value for name, value in given.items()}

    def made(self) -> dict | None:
        """The record in the folder, if this code made it from these arguments and this text, and nothing is missing."""
        name = self.entry.name
        drawn = (results.SAVED / f"{name}.png").exists()
        try:
            record = results.load(name, self.folder)
        except UserError:
            return None
        changed = {option: value for option, value in self.given.items() if option != "cluster"}
        same_code = record.get("made_by") == results.made_by(self.entry.module, changed)
        same_text = record["corpus"] in (None, self.text)
        whole = all((self.folder / f"{name}{suffix}").exists() for suffix in (".txt", *[".png"] * drawn))
        return record if same_code and same_text and whole else None

    def command(self, jobs: int | None) -> list[str]:
        """What a user would type; ``jobs`` is how many trainings run side by side, where it is for us to say."""
        module = self.entry.module
        options = {"outputs": self.folder} | self.given | ({"jobs": jobs} if jobs and self.entry.is_sweep else {})
        script = ["-m", module] if "." in module else [f"{module}.py"]
        return [sys.executable, *script, *(f"--{name}={value}" for name, value in options.items())]

    def start(self, jobs: int | None, events: SimpleQueue):
        """Start it, to end when this process does. What it tells its user becomes events (self, line), its end None."""
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process: this one decides
        try:
            self.process = subprocess.Popen(
                self.command(jobs),
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
                env=os.environ | {ENDS_WITH_STDIN: "1", "PYTHONIOENCODING": "utf-8"},
            )
        except OSError as error:
            raise UserError(f"can't start {self.entry.name}: {error.strerror}") from None
        finally:
            signal.signal(signal.SIGINT, before)
        started = time.monotonic()

        def follow():
            with self.process:
                for line in self.process.stderr:
                    events.put((self, line.rstrip()))
            self.status, self.seconds = self.process.returncode, time.monotonic() - started
            events.put((self, None))

        Thread(target=follow, daemon=True).start()

    def end(self):
        """End it, unless it has ended."""
        self.process.stdin.close()
        self.process.wait()

    def result(self) -> dict | None:
        """What it saved; with status 1 that may be trainings that diverged, or it has failed."""
        return results.load(self.entry.name, self.folder) if self.status == 0 else self.made()


def run(reruns: list[Rerun], arguments: Namespace) -> Iterator[tuple[Rerun, dict | None]]:
    """Run what isn't made yet: quick ones first, then sweeps side by side from the longest, then what takes times.

    One that reads what others of these save waits until they have ended, however they end.
    """
    before = {rerun: record for rerun in reruns if (record := rerun.made())}
    if before:
        note(f"{len(before)} of {counted(len(reruns), 'experiment')} are there already, made by the same code")
        yield from before.items()
    waiting = sorted((rerun for rerun in reruns if rerun not in before), key=lambda rerun: rerun.entry.turn)
    jobs, beside = _shares(arguments, sum(rerun.entry.is_sweep for rerun in waiting))
    events, running, began, work = SimpleQueue(), [], time.monotonic(), 0.0
    try:
        while waiting or running:
            while len(running) < beside and (rerun := _next(waiting, running)):
                rerun.start(jobs, events)
                waiting.remove(rerun)
                running.append(rerun)
            _tell(len(reruns), waiting, running, time.monotonic() - began, work)
            while (event := events.get())[1] is not None:
                note(f"{event[0].entry.name}: {event[1]}")
            ended = event[0]
            running.remove(ended)
            work += ended.entry.core_seconds
            yield ended, ended.result()
    finally:
        for rerun in running:
            rerun.end()


def _next(waiting: list[Rerun], running: list[Rerun]) -> Rerun | None:
    """The first of those waiting that reads nothing still to come, and may run beside what runs: a sweep beside one."""
    to_come = {rerun.entry.name for rerun in (*waiting, *running)}
    for rerun in waiting:
        may = not running or (rerun.entry.is_sweep and running[0].entry.is_sweep)
        if may and not to_come & set(rerun.entry.reads):
            return rerun
    return None if running else next(iter(waiting), None)  # which read each other in a circle


def _shares(arguments: Namespace, sweeps: int) -> tuple[int | None, int]:
    """How many trainings each sweep runs side by side, where that is for us to say, and how many sweeps there are."""
    ours = arguments.device == "cpu" and arguments.cluster is None
    jobs = arguments.jobs or (results.available_cores() if ours else None)
    beside = min(SIDE_BY_SIDE, max(sweeps, 1), jobs or (1 if arguments.cluster is None else SIDE_BY_SIDE))
    return jobs and -(-jobs // beside), beside


def _tell(number: int, waiting: list[Rerun], running: list[Rerun], seconds: float, work: float):
    """Tell how far all is, if some of it is long. ``work`` is what has been done in ``seconds`` of ours.

    It is in seconds of a core of the reference machine. How fast this one gets through them is measured; until it has
    been for a while, it is taken to be as fast.
    """
    pace = (seconds + TRUSTED_AFTER) / (work + TRUSTED_AFTER * results.available_cores())
    left = pace * sum(rerun.entry.core_seconds for rerun in (*waiting, *running))
    if left >= TOLD_FROM:
        done, now = number - len(waiting) - len(running), ", ".join(rerun.entry.name for rerun in running)
        note(f"{done} of {number} done, about {duration(left)} left; now {now}")


def duration(seconds: float) -> str:
    """``40 s``, ``12 min`` or ``3.1 h``."""
    if seconds < 60:
        return f"{math.ceil(seconds)} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
