"""Many trainings side by side: each a function of its configuration, safe against interruptions, records in order.

    def train(config: dict, keeper: Keeper) -> dict:
        model, optimizer, generator, curve, start = ...       # seeded by the configuration, on the CPU
        if state := keeper.load():
            ...                                               # go on where an interrupted run stopped
        for step in range(start + 1, config["steps"] + 1):
            ...                                               # raise script.Diverged(step) if the loss isn't finite
            keeper.tick(step, config["steps"], loss=loss)
            keeper.save_if_due(lambda: {"step": step, "model": model.state_dict(), ...})
        return {**config, "accuracy": accuracy}

    for record in trainings.run(train, configs, name="reverse", jobs=arguments.jobs, cluster=arguments.cluster):
        results.print(...)

A training is single-threaded, so its bits don't depend on the number of cores or of trainings beside it; speed comes
from one training per core. ``train`` is a function of a module; configurations and records are what JSON can hold.

Work in progress lies in ``work/NAME/KEY/`` at the root of the repository, KEY standing for the configuration: the last
checkpoint, then the record. An interrupted command goes on from there; once all records have been handed over the
folder is removed, so that a sweep that had finished starts afresh.
"""

import hashlib
import io
import json
import os
import shutil
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

import torch

from lab import pools
from lab.progress import Bar
from lab.results import claim, write_whole
from lab.script import ROOT, Diverged, UserError, note, positive_int

CHECKPOINT_SECONDS = 20  # between checkpoints: a kill loses no more work than that
PROGRESS_SECONDS = 0.5  # between reports of progress
RESTARTS = 3  # of a pool in which a process died, before any training ends
ONE_AT_A_TIME = threading.Lock()  # trainings of one process: torch's settings and random numbers are the process's


class SomeDiverged(Diverged):
    """Trainings of a sweep whose loss stopped being finite; ``step`` is the first one's."""

    def __init__(self, steps: dict[str, int]):
        super().__init__(next(iter(steps.values())))
        self.steps = steps

    def __str__(self):
        return "the loss is not finite: " + "; ".join(f"{what} at step {step:,}" for what, step in self.steps.items())


def add_arguments(parser):
    """Add --jobs and --cluster to a script's arguments."""
    parser.add_argument(
        "--jobs",
        type=positive_int,
        metavar="N",
        help="trainings side by side (default: one per core; with --device cuda, one per GPU)",
    )
    parser.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="train on the Dask cluster whose scheduler is at ADDRESS, such as tcp://host:8786, instead; its workers "
        "are started with 'dask worker ADDRESS --nworkers N --nthreads 1' where these scripts are",
    )


class Keeper:
    """What a training hands its state to. ``Keeper()`` keeps nothing; ``Keeper(folder, config)`` keeps it there."""

    def __init__(self, folder: Path | None = None, config: dict | None = None, every: float = CHECKPOINT_SECONDS):
        self.folder = folder and Path(folder)
        self.config = _plain(config)
        self.every = every
        self._started = self._saved = time.monotonic()
        self._seconds_before = 0.0
        self._reported = -float("inf")
        self._complained = False
        self.wanted = self._wanted() if folder else ""
        if folder:
            self.folder.mkdir(parents=True, exist_ok=True)

    @property
    def seconds(self) -> float:
        """How long this training has taken, interrupted runs included up to their last checkpoint."""
        return self._seconds_before + time.monotonic() - self._started

    def load(self) -> dict | None:
        """The state last saved, or None where the training has to start at the beginning."""
        path = self.folder and self.folder / "checkpoint.pt"
        if not path or not path.exists():
            return None
        try:
            # The file is a zip archive whose checksums torch doesn't look at.
            with zipfile.ZipFile(path) as archive:
                if archive.testzip():
                    raise ValueError("checksum")
            kept = torch.load(path, map_location="cpu", weights_only=True)
            config, seconds, state = kept["config"], kept["seconds"], kept["state"]
        except Exception:  # a damaged file can raise anything
            note(f"{path} is damaged: this training starts afresh")
            return None
        if config != self.config:
            raise UserError(f"{path} is of another configuration, {config}: remove it to train {self.config}")
        self._seconds_before = seconds
        return state

    def save_if_due(self, make_state: Callable[[], dict]):
        """Save ``make_state()`` if the last time is long enough ago. The file is always a whole one."""
        now = time.monotonic()
        if self.folder is None or now - self._saved < self.every:
            return
        content = io.BytesIO()
        torch.save({"config": self.config, "seconds": self.seconds, "state": make_state()}, content)
        try:
            write_whole(self.folder / "checkpoint.pt", content.getvalue())
        except OSError as error:
            if not self._complained:
                note(
                    f"can't save in {self.folder} ({error.strerror}): training goes on, the checkpoint stays as it was"
                )
            self._complained = True
        self._saved = time.monotonic()

    def tick(self, step: int, total: int, **shown):
        """Report that ``step`` of ``total`` is done, with numbers to show. Cheap enough to be called at every step."""
        now = time.monotonic()
        if self.folder is None or now - self._reported < PROGRESS_SECONDS:
            return
        self._reported = now
        if self._wanted() != self.wanted:
            raise RuntimeError("nobody waits for this training any more")
        with suppress(OSError):  # a full disk: save_if_due says so
            (self.folder / "progress.json").write_text(json.dumps([step, total, shown]), encoding="utf-8")

    def _wanted(self) -> str:
        """Who waits for this training: empty where it runs by itself or shares no folder with whoever waits."""
        try:
            return (self.folder / "wanted").read_text(encoding="utf-8")
        except OSError:
            return ""


def run(
    train: Callable[[dict, Keeper], dict],
    configs: list[dict],
    *,
    name: str,
    jobs: int | None = None,
    cluster: str | None = None,
    describe: Callable[[dict], str] = str,
    cost: Callable[[dict], float] | None = None,
    keep: bool = False,
    work: Path | None = None,
) -> Iterator[dict]:
    """Train each configuration and yield the records in the order of ``configs``, each as soon as it is there.

    A configuration's ``device``, if it has one, is where it runs: without ``jobs`` there is one training per core of
    the CPU, or one per device elsewhere. ``describe`` names a configuration for people. ``cost``, where given, says how
    long a configuration takes, in any unit: the longest are then started first, and the time left is estimated better.

    ``keep`` leaves the records where they are, for an experiment whose next sweep depends on what this one found: it
    ends with all its configurations once more, without ``keep``.

    A training that raises Diverged doesn't stop the others: its record is the configuration with ``diverged_at_step``,
    and SomeDiverged is raised after the last record.
    """
    torch.set_num_threads(1)  # here too: what is computed from the records depends on cores no more than they do
    order = [key_of(config) for config in configs]
    trainings = {key: _plain(config) for key, config in zip(order, configs, strict=True)}
    folders = {key: _folder(work, name, key) for key in trainings}
    names = {key: describe(config) for key, config in trainings.items()}
    costs = {key: cost(config) if cost else 1 for key, config in trainings.items()}
    with _claimed(folders, names):
        records = {key: record for key, folder in folders.items() if (record := _stored(folder)) is not None}
        todo = sorted(trainings.keys() - records.keys(), key=lambda key: (-costs[key], order.index(key)))
        bar = Bar(folders, names, costs, todo)
        devices = {config.get("device", "cpu") for config in trainings.values()}
        pool = partial(pools.cluster, cluster) if cluster else partial(pools.processes, jobs, devices)
        calls = {key: (train, trainings[key], work and str(work), name, key) for key in todo}
        new = _completed(pool, calls, bar)
        try:
            for key in order:
                while key not in records:
                    finished, record = next(new)
                    records[finished] = record
                    _store(record, folders[finished])
                yield dict(records[key])
        except KeyboardInterrupt:
            bar.close()
            note(f"{len(records)} of {len(trainings)} trainings are done; the same command goes on from here")
            raise
        finally:
            new.close()
            bar.close()
        for folder in folders.values() if not keep else ():
            shutil.rmtree(folder, ignore_errors=True)
    for folder in {folder.parent for folder in folders.values()}:
        if folder.exists() and not any(folder.iterdir()):
            folder.rmdir()
    steps = {names[key]: record["diverged_at_step"] for key, record in records.items() if "diverged_at_step" in record}
    if steps:
        raise SomeDiverged(steps)


def _completed(pool, calls: dict[str, tuple], bar) -> Iterator[tuple[str, dict]]:
    """Make the calls of _train_one in a pool; yield (key, record) in the order in which trainings end."""
    deaths = 0
    while calls:
        with pool() as executor:
            futures = {}
            with suppress(BrokenExecutor), pools.for_children():
                futures = {executor.submit(_train_one, *call): key for key, call in calls.items()}
            while futures:
                bar.show()
                for future in wait(futures, PROGRESS_SECONDS, FIRST_COMPLETED).done:
                    key = futures.pop(future)
                    if not isinstance(future.exception(), BrokenExecutor):
                        deaths = 0
                        del calls[key]
                        bar.finish(key)
                        yield key, future.result()
        if calls:
            deaths += 1
            if deaths > RESTARTS:
                raise UserError(f"processes died {deaths} times (out of memory?): give the same command fewer --jobs")
            note("a training's process died (killed, or out of memory?): going on from the checkpoints")


def _train_one(train, config: dict, work: str | None, name: str, key: str) -> dict:
    """One training, in a process of the pool."""
    with ONE_AT_A_TIME:
        torch.set_num_threads(1)
        folder = _folder(work, name, key)
        keeper = Keeper(folder, config)
        try:
            record = train(config, keeper)
        except Diverged as error:
            record = config | {"diverged_at_step": error.step}
        if not keeper.wanted:  # on a cluster that shares no folder with the sweep, nobody else would remove it
            shutil.rmtree(folder, ignore_errors=True)
        return _plain(record)


@contextmanager
def _claimed(folders: dict[str, Path], names: dict[str, str]):
    """Make the folders and hold them, so that the same training can't run twice at once."""
    token = f"{os.getpid()} {time.time_ns()}"
    with ExitStack() as files:
        for key, folder in folders.items():
            try:
                folder.mkdir(parents=True, exist_ok=True)
                file = files.enter_context(open(folder / "wanted", "a", encoding="utf-8"))
                claimed = claim(file)
            except OSError as error:
                raise UserError(f"can't keep work in progress in {folder}: {error.strerror}") from None
            if not claimed:
                raise UserError(f"{names[key]} is being trained by another process: wait for it, or stop it")
            file.truncate(0)
            file.write(token)
            file.flush()
        try:
            yield
        finally:
            for folder in folders.values():
                (folder / "wanted").unlink(missing_ok=True)


def _store(record: dict, folder: Path):
    try:
        write_whole(folder / "record.json", json.dumps(record).encode())
        (folder / "checkpoint.pt").unlink(missing_ok=True)
    except OSError as error:
        note(f"can't save in {folder} ({error.strerror}): an interrupted run would train this once more")


def _stored(folder: Path) -> dict | None:
    path = folder / "record.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError:
        note(f"{path} is damaged: this training starts afresh")
        return None


def _folder(work: str | Path | None, name: str, key: str) -> Path:
    return Path(work or ROOT / "work") / name / key


def key_of(config: dict) -> str:
    """A few letters that stand for a configuration and for no other."""
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()[:12]


def _plain(value):
    """The value as JSON gives it back: the same in this process, from another one, and from a file."""
    return json.loads(json.dumps(value))
