"""Where trainings run: processes of this machine or the workers of a Dask cluster, as a concurrent.futures.Executor."""

import logging
import math
import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, Executor, ProcessPoolExecutor
from contextlib import contextmanager

import torch

from lab.errors import ROOT, UserError, note
from lab.results import available_cores

GPU_SHARE = 4  # trainings side by side on one GPU: models this small keep it busy for a part of each step
CLUSTER_SECONDS = 5  # within which a cluster has to answer
SINGLE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@contextmanager
def processes(jobs: int | None, devices: set[str]) -> Iterator[Executor]:
    """Processes of this machine: ``jobs``, or one per core; for a GPU GPU_SHARE, as far as there are cores.

    They end with this one, however it ends, so that none goes on writing on its own.
    """
    gpus = torch.cuda.device_count() if "cuda" in devices else 0
    jobs = jobs or min(available_cores(), math.inf if devices <= {"cpu"} else GPU_SHARE * (gpus or len(devices)))
    context = multiprocessing.get_context("spawn")
    leash, hand = context.Pipe(duplex=False)
    executor = ProcessPoolExecutor(jobs, context, _start_process, (leash, context.Value("i", 0), gpus))
    try:
        yield executor
    finally:
        hand.close()
        executor.shutdown()
        leash.close()


def _start_process(leash, counter, gpus: int):
    """Set a process of the pool up: its lifeline, and which GPU "cuda" is to it, in turn, where there are several."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of a terminal; the first one decides

    def watch():
        multiprocessing.connection.wait([leash])  # nothing is ever sent: this returns when the other end is gone
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    if gpus:
        take_turn(counter, gpus)


def take_turn(counter, gpus: int):
    with counter.get_lock():
        torch.cuda.set_device(counter.value % gpus)
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
def cluster(address: str, made_of: dict[str, str] | None = None, module: str = "") -> Iterator[Executor]:
    """The workers of a Dask cluster. Dask itself gives a dead worker's trainings to another one.

    ``made_of`` is what ``module`` consists of here (lab/sources.py): a worker that has anything else computes nothing.
    """
    try:
        import cloudpickle
        from distributed import Client, KilledWorker, Security
        from distributed.comm import get_address_host_port
    except ImportError:
        raise UserError("--cluster needs Dask: pip install 'dask[distributed]'") from None
    address = address if "://" in address else f"tcp://{address}"
    if address.startswith("tls://") and not Security().get_connection_args("client")["ssl_context"]:
        raise UserError(f"{address} needs certificates: name them in Dask's settings, distributed.comm.tls")
    try:
        with socket.create_connection(get_address_host_port(address, strict=True), CLUSTER_SECONDS) as scheduler:
            if address.startswith("tcp://"):  # a scheduler speaks first; the client would wait for any other for ever
                scheduler.recv(1)
        client = Client(address, timeout=CLUSTER_SECONDS, set_as_default=False)
    except (OSError, ValueError):
        raise UserError(f"no Dask scheduler at {address!r}: give the address that 'dask scheduler' says") from None

    # Neither the scheduler nor a worker that 'dask worker' started can import our modules. A function inside a function
    # travels as code; it opens the parcel only where the scripts are.
    def unpack_and_call(parcel):
        sys.path += [folder for folder in (root, os.getcwd()) if folder not in sys.path]
        from lab import errors, sources  # the worker's own

        try:
            there = sources.made_of(module) if made_of else {}
        except (AttributeError, OSError):  # code from before that, or without this script
            there = {}
        for name, ours in (made_of or {}).items():
            if (other := there.get(name)) != ours:
                place = f"the worker in {os.getcwd()} on {socket.gethostname()} has {name} {other}, here it is {ours}"
                raise errors.UserError(f"{place}: start it anew, with the same code and versions")
        function, args = pickle.loads(parcel)
        return function(*args)

    class Parcels:
        def submit(self, function, *args):
            return executor.submit(unpack_and_call, cloudpickle.dumps((function, args)))

        def everywhere(self, function, *args):
            client.run(unpack_and_call, cloudpickle.dumps((function, args)))

    root = str(ROOT)
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # a lost connection is said below, in one line
    with client:
        if not client.scheduler_info()["workers"]:
            note(f"the cluster has no workers yet: start some with 'dask worker {address} --nthreads 1'")
        executor = client.get_executor(pure=False)
        try:
            yield Parcels()
        except ModuleNotFoundError as error:
            raise UserError(f"a worker has no module {error.name}: start 'dask worker' where the scripts are") from None
        except CancelledError:
            raise UserError(f"the Dask scheduler at {address} has gone: the same command goes on from here") from None
        except KilledWorker:
            raise UserError("a training's worker died several times (out of memory?): give each worker more") from None
        finally:
            executor.shutdown(wait=False)
