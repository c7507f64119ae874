"""Many trainings side by side: each a function of its configuration, safe against interruptions, records in order.

    @dataclass(frozen=True)
    class Config:
        length: int  # digits
        seed: int
        ...
        def __str__(self): ...                           # what it is called where progress is shown
        @property
        def cost(self): ...                              # how long it takes, in any unit; where they differ

    def train(config: Config, checkpoint: Checkpoint) -> dict:
        ...                                              # set up; descend (lab/descent.py); score
        return settings(config) | {"accuracy": accuracy}

    records = trainings.run(train, configs, arguments)

A training is single-threaded, so its bits don't depend on the number of cores or of trainings beside it; speed comes
from one training per core. ``train`` is a function of a module; records are what JSON can hold. A training that raises
Diverged doesn't stop the others: its record is the configuration with ``diverged_at_step``.

Work in progress lies in the folder of ``arguments.work`` (lab/results.py), for each training the last checkpoint, then
the record. It stays there until the command has saved its results: an interrupted one goes on from there.
"""

import hashlib
import io
import json
import shutil
import threading
import time
import zipfile
from argparse import Namespace
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, wait
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path

import torch

from lab import pools
from lab.errors import ROOT, Diverged, UserError, note, shown
from lab.progress import Bar
from lab.results import write_whole

CHECKPOINT_SECONDS = 20  # between checkpoints: a kill loses no more work than that
FIRST_CHECKPOINT_SECONDS = 3  # until the first one
PROGRESS_SECONDS = 0.5  # between reports of progress
RESTARTS = 3  # of a pool in which a process died, before any training ends
ONE_AT_A_TIME = threading.Lock()  # trainings of one process: torch's settings and random numbers are the process's


class Checkpoint:
    """What a training hands its state to. ``Checkpoint()`` keeps nothing; with a folder it is kept there.

    ``name`` is what the training is called, ``wanted`` the token of the command that waits for it.
    """

    def __init__(self, folder: Path | None = None, name="this training", wanted="", every: float = CHECKPOINT_SECONDS):
        self.folder, self.name, self.every, self.wanted = folder and Path(folder), name, every, wanted
        self._saved = time.monotonic() - every + min(every, FIRST_CHECKPOINT_SECONDS)
        self._reported = -float("inf")
        self._complained = False
        if folder:
            with suppress(OSError):  # a full disk: save_if_due says so
                self.folder.mkdir(parents=True, exist_ok=True)

    def load(self) -> dict | None:
        """The state last saved, or None where the training has to start at the beginning. Says which."""
        path = self.folder and self.folder / "checkpoint.pt"
        if not path or not path.exists():
            return None
        try:
            # The file is a zip archive whose checksums torch doesn't look at.
            with zipfile.ZipFile(path) as archive:
                if archive.testzip():
                    raise ValueError("checksum")
            state = torch.load(path, map_location="cpu", weights_only=True)
            step = state["step"]
        except Exception:  # a damaged file can raise anything
            note(f"{shown(path)} is damaged: {self.name} starts afresh")
            return None
        note(f"{self.name}: going on from step {step:,}")
        return state

    def save_if_due(self, make_state: Callable[[], dict]):
        """Save ``make_state()``, which says its ``step``, if the last time is long enough ago, whole or not at all."""
        now = time.monotonic()
        if self.folder is None or now - self._saved < self.every:
            return
        content = io.BytesIO()
        torch.save(make_state(), content)
        try:
            write_whole(self.folder / "checkpoint.pt", content.getvalue())
        except OSError as error:
            if not self._complained:
                note(f"can't save in {shown(self.folder)} ({error.strerror}): training goes on all the same")
            self._complained = True
        self._saved = time.monotonic()

    def tick(self, step: int, total: int, **shown_beside: float):
        """Report that ``step`` of ``total`` is done, with numbers to show. Cheap enough to be called at every step."""
        now = time.monotonic()
        if self.folder is None or now - self._reported < PROGRESS_SECONDS:
            return
        self._reported = now
        with suppress(FileNotFoundError):  # on a cluster that shares no folder with the command
            if self.wanted and (self.folder.parent / "lock").read_text(encoding="utf-8") != self.wanted:
                raise RuntimeError("nobody waits for this training any more")
        with suppress(OSError):  # a full disk: save_if_due says so
            (self.folder / "progress.json").write_text(json.dumps([step, total, shown_beside]), encoding="utf-8")


def run(
    train: Callable[[object, Checkpoint], dict],
    configs: list,
    arguments: Namespace,
    line: Callable[[dict], str] | None = None,
    more: Callable[[object, dict], list] = lambda config, record: [],
) -> list[dict]:
    """Train each configuration; the records, in the order of ``configs``.

    ``arguments`` has ``jobs``, ``cluster`` and ``work``. A configuration's ``device``, if any, is where it runs:
    without ``jobs`` there is one training per core of the CPU, or some per device elsewhere. The longest start first.
    ``line``, where given, is what a person is told of a training's record as soon as it ends; ``more`` says which
    configurations are to be trained, too, now that it has (lab/searches.py).
    """
    torch.set_num_threads(1)  # here too: what is computed from the records depends on cores no more than they do
    work = arguments.work
    token = work.hold()
    place = str(work.folder.relative_to(ROOT) if work.folder.is_relative_to(ROOT) else work.folder)
    trainings, records, calls = {}, {}, {}  # by key; of calls, those that are still to be made

    def add(configs):
        new = {key: config for config in configs if (key := key_of(config)) not in trainings}
        trainings.update(new)
        for key, config in sorted(new.items(), key=lambda item: -getattr(item[1], "cost", 1)):
            if (record := _stored(work.folder / key)) is None:
                calls[key] = (train, config, place, key, token)
            else:
                keep(key, record)

    def keep(key, record):
        records[key] = record
        add(more(trainings[key], record))

    add(configs)
    if records:
        note(f"{len(records)} of {len(trainings)} trainings are done already: going on")
    for key, record in records.items():
        _tell(trainings[key], record)
    bar = Bar(work.folder, trainings, records)
    devices = {getattr(config, "device", "cpu") for config in trainings.values()}
    cluster = arguments.cluster
    if cluster is not None:
        pool = partial(pools.cluster, cluster, work.made_of, work.module)
    else:
        pool = partial(pools.processes, arguments.jobs, devices)
    try:
        for key, record in _completed(pool, calls, bar):
            _store(record, work.folder / key)
            _tell(trainings[key], record, line)
            keep(key, record)
    except KeyboardInterrupt:
        bar.close()
        note(f"{len(records)} of {len(trainings)} trainings are done; the same command goes on from here")
        raise
    finally:
        bar.close()
    return [dict(records[key_of(config)]) for config in configs]


def _tell(config, record: dict, line: Callable[[dict], str] | None = None):
    if "diverged_at_step" in record:
        note(f"{config}: {Diverged(record['diverged_at_step'])}")
    elif line:
        note(line(record))


def _completed(pool, calls: dict[str, tuple], bar) -> Iterator[tuple[str, dict]]:
    """Make the calls of _train_one in a pool; yield (key, record) in the order in which trainings end.

    Calls that are added meanwhile are made as well.
    """
    deaths = 0
    while calls:
        with pool() as executor:
            futures = {}

            def submit(executor=executor, futures=futures):
                with suppress(BrokenExecutor), pools.for_children():
                    for key in [key for key in calls if key not in futures.values()]:
                        futures[executor.submit(_train_one, *calls[key])] = key

            submit()
            while futures:
                bar.show()
                for future in wait(futures, PROGRESS_SECONDS, FIRST_COMPLETED).done:
                    key = futures.pop(future)
                    if not isinstance(future.exception(), BrokenExecutor):
                        deaths = 0
                        del calls[key]
                        bar.clear()
                        yield key, future.result()
                        submit()
        if calls:
            deaths += 1
            if deaths > RESTARTS:
                raise UserError(f"processes died {deaths} times (out of memory?): give the same command fewer --jobs")
            note("a training's process died (killed, or out of memory?): going on from the checkpoints")


def _train_one(train, config, place: str, key: str, token: str) -> dict:
    """One training, in a process of the pool. ``place`` is the work folder, from the root of this process's code."""
    with ONE_AT_A_TIME:
        torch.set_num_threads(1)
        folder = ROOT / place / key
        shared = (folder.parent / "lock").exists()
        try:
            record = train(config, Checkpoint(folder, str(config), token))
        except Diverged as error:
            record = settings(config) | {"diverged_at_step": error.step}
        if not shared:  # on a cluster that shares no folder with the command, nobody else would remove it
            shutil.rmtree(folder, ignore_errors=True)
        return _plain(record)


def _store(record: dict, folder: Path):
    text = json.dumps(record)
    try:
        folder.mkdir(exist_ok=True)  # a cluster's worker may have made it on a disk of its own
        write_whole(folder / "record.json", json.dumps([_sum(text), record]).encode())
        (folder / "checkpoint.pt").unlink(missing_ok=True)
    except OSError as error:
        note(f"can't save in {shown(folder)} ({error.strerror}): an interrupted run would train this once more")


def _stored(folder: Path) -> dict | None:
    path = folder / "record.json"
    try:
        total, record = json.loads(path.read_text(encoding="utf-8"))
        if total != _sum(json.dumps(record)):
            raise ValueError("checksum")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError):
        note(f"{shown(path)} is damaged: this training starts afresh")
        return None
    return record


def _sum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def settings(config) -> dict:
    """What a record says of its configuration: all but the device, which doesn't change what was asked."""
    return {name: value for name, value in asdict(config).items() if name != "device"}


def key_of(config) -> str:
    """A few letters that stand for a configuration and for no other."""
    return _sum(json.dumps([type(config).__name__, asdict(config)], sort_keys=True))[:12]


def _plain(value):
    """The value as JSON gives it back: the same in this process, from another one, and from a file."""
    return json.loads(json.dumps(value))
