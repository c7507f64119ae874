"""What tests share: one thread, trainings in this process, small texts to read, a Dask cluster."""

import os
import socket
import subprocess
import sys
import time
import uuid
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def one_thread():
    """What a test computes doesn't depend on the number of cores, nor on which other tests run beside it."""
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def own_work(monkeypatch, tmp_path_factory):
    """Each test has work in progress of its own, also where the same command runs in another process beside it."""
    monkeypatch.setattr("lab.results.WORK", tmp_path_factory.getbasetemp() / f"work-{uuid.uuid4()}")


@pytest.fixture
def in_this_process(monkeypatch):
    """Trainings take place here and not in processes of their own, so that a test can put something else in place."""
    from lab import pools

    class Here:
        def submit(self, function, *arguments):
            future = Future()
            try:
                future.set_result(function(*arguments))
            except Exception as error:
                future.set_exception(error)
            return future

    @contextmanager
    def processes(jobs, devices):
        yield Here()

    monkeypatch.setattr(pools, "processes", processes)


@pytest.fixture
def write_corpus(tmp_path):
    """Write a training and a validation text into a folder that --data can name."""

    def write(train: str, validation: str, name: str = "text"):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        (folder / "blog_train.txt").write_text(train, encoding="utf-8")
        (folder / "blog_val.txt").write_text(validation, encoding="utf-8")
        return folder

    return write


@pytest.fixture
def start_cluster(tmp_path):
    """Start a Dask scheduler with a worker in each of these folders; they share nothing with us but the machine."""
    pytest.importorskip("distributed")
    dask = Path(sys.executable).parent / "dask"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    environment = {**os.environ, "TOY_FOLDER": str(tmp_path)}
    processes = []

    def start(*folders):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            host, port = map(str, free.getsockname())
        worker = [sys.executable, "-m", "dask", "worker", f"tcp://{host}:{port}"]  # -m: its folder comes before ours
        worker += ["--nthreads", "1", "--no-nanny", "--no-dashboard"]
        processes.append(
            subprocess.Popen([dask, "scheduler", "--host", host, "--port", port, "--no-dashboard"], **quiet)
        )
        processes.extend(subprocess.Popen(worker, cwd=cwd, env=environment, **quiet) for cwd in folders)

        while True:
            with suppress(ConnectionRefusedError):
                socket.create_connection((host, port)).close()
                return f"{host}:{port}"
            time.sleep(0.05)

    yield start
    for process in processes:
        process.kill()
        process.wait()
