"""Where trainings run: processes of this machine or the workers of a Dask cluster, as a concurrent.futures.Executor."""

import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager

import torch

from lab.results import available_cores
from lab.script import ROOT, UserError, note

CLUSTER_SECONDS = 5  # within which a cluster has to answer
SINGLE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def default_jobs(configs) -> int:
    """One training per core, or per device where they run elsewhere (one process for each GPU)."""
    devices = {config.get("device", "cpu") for config in configs}
    if devices == {"cpu"}:
        return available_cores()
    return max(1, torch.cuda.device_count()) if devices == {"cuda"} else len(devices)


@contextmanager
def processes(jobs: int) -> Iterator[Executor]:
    """Processes of this machine. They end with this one, however it ends, so that none goes on writing on its own."""
    context = multiprocessing.get_context("spawn")
    leash, hand = context.Pipe(duplex=False)
    executor = ProcessPoolExecutor(jobs, context, _start_process, (leash, context.Value("i", 0)))
    try:
        yield executor
    finally:
        hand.close()
        executor.shutdown()
        leash.close()


def _start_process(leash, counter):
    """Set a process of the pool up: its lifeline, and the GPU that is its own where there are several."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of a terminal; the sweep's own decides

    def watch():
        multiprocessing.connection.wait([leash])  # nothing is ever sent: this returns when the other end is gone
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    if torch.cuda.is_available():
        with counter.get_lock():
            torch.cuda.set_device(counter.value % torch.cuda.device_count())
            counter.value += 1


@contextmanager
def for_children():
    """What processes started inside inherit: one thread, also for libraries that ask only once, and no Ctrl-C."""
    before = {name: os.environ.get(name) for name in SINGLE_THREAD}
    os.environ.update(SINGLE_THREAD)
    main_thread = threading.current_thread() is threading.main_thread()
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN) if main_thread else None
    try:
        yield
    finally:
        if main_thread:
            signal.signal(signal.SIGINT, handler)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def cluster(address: str) -> Iterator[Executor]:
    """The workers of a Dask cluster. Dask itself gives a dead worker's trainings to another one."""
    try:
        from distributed import Client, KilledWorker, WorkerPlugin
    except ImportError:
        raise UserError("--cluster needs Dask: pip install 'dask[distributed]'") from None
    try:
        client = Client(address, timeout=CLUSTER_SECONDS, set_as_default=False)
    except (OSError, ValueError):
        raise UserError(f"no Dask scheduler answers at {address}: start one with 'dask scheduler'") from None

    class FindScripts(WorkerPlugin):  # a class of a function travels as code, before a worker can import ours
        def setup(self, worker):
            sys.path[:0] = [str(ROOT), os.getcwd()]

    with client:
        if not client.scheduler_info()["workers"]:
            note(f"the cluster has no workers yet: start some with 'dask worker {address} --nthreads 1'")
        client.register_plugin(FindScripts())
        executor = client.get_executor()
        try:
            yield executor
        except KilledWorker as error:
            raise UserError(f"{error}") from None
        finally:
            executor.shutdown(wait=False)
