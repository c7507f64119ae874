"""lab.trainings: the same bits however a sweep is run or interrupted, and checkpoints that are whole or not there."""

import errno
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import BrokenExecutor, Executor
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import pytest
import torch
import toy_training

from lab import progress as progress_module
from lab import script, trainings
from lab.trainings import Keeper

TESTS = Path(__file__).resolve().parent
SHORT = {"seed": 0, "steps": 30}


@pytest.fixture(scope="module", autouse=True)
def single_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def expected(single_thread):
    """The records of trainings that nothing interrupts, one after the other in this process."""
    return [toy_training.train({**config, "pause": 0}, Keeper()) for config in toy_training.CONFIGS]


def start(work, jobs, hash_seed):
    return subprocess.Popen(
        [sys.executable, TESTS / "toy_training.py", work, str(jobs)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(TESTS.parent), "PYTHONHASHSEED": str(hash_seed)},
    )


def progress(work) -> dict[str, tuple[int, int]]:
    """How far the running trainings are and in which process, by folder."""
    found = {}
    for path in work.glob("toy/*/progress.json"):
        try:
            step, _, shown = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:  # just being written
            continue
        found[path.parent.name] = (step, shown["process"])
    return found


def wait_until(true, seconds=120):
    end = time.monotonic() + seconds
    while not (result := true()):
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.02)
    return result


def gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    # A process that ended but that nobody has waited for yet is gone too.
    status = Path(f"/proc/{process}/stat")
    return status.exists() and status.read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"


def run(work, **options):
    return trainings.run(
        toy_training.train, toy_training.CONFIGS, name="toy", work=work, describe=toy_training.describe, **options
    )


def test_a_sweep_that_is_killed_again_and_again_ends_with_the_same_bits(tmp_path, expected, monkeypatch, capfd):
    """Ctrl-C, then SIGKILL of the sweep twice, then SIGKILL of its process, each at a random moment."""
    dice = random.Random(0)

    def some_steps_later(reached):
        wait_until(lambda: any(step > reached.get(key, 0) for key, (step, _) in progress(tmp_path).items()))
        time.sleep(dice.uniform(0, 0.5))

    monkeypatch.setenv("PYTHONHASHSEED", "1")

    def interrupt():
        some_steps_later({})
        signal.raise_signal(signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        list(run(tmp_path, jobs=1))
    assert re.fullmatch(r"\d of 3 trainings are done; the same command goes on from here\n", capfd.readouterr().err)

    for jobs, hash_seed in [(2, 2), (1, 3)]:
        # Interrupted trainings don't go on by themselves.
        wait_until(lambda: all(gone(process) for _, process in progress(tmp_path).values()), 20)
        reached = {key: step for key, (step, _) in progress(tmp_path).items()}
        sweep = start(tmp_path, jobs, hash_seed)
        some_steps_later(reached)
        sweep.kill()
        sweep.communicate(timeout=20)
    wait_until(lambda: all(gone(process) for _, process in progress(tmp_path).values()), 20)

    def kill_a_worker():
        os.kill(wait_until(lambda: [p for _, p in progress(tmp_path).values() if not gone(p)])[0], signal.SIGKILL)

    threading.Thread(target=kill_a_worker).start()
    assert list(run(tmp_path, jobs=1)) == expected
    assert capfd.readouterr().err.count("process died") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_sweep_that_is_told_to_end_says_so_in_two_lines(tmp_path):
    """SIGTERM, as a shutdown sends it, is Ctrl-C without a terminal."""
    sweep = start(tmp_path, 1, 0)
    wait_until(lambda: progress(tmp_path))
    sweep.terminate()
    _, errors = sweep.communicate(timeout=20)
    assert sweep.returncode == 128 + signal.SIGTERM
    assert errors.splitlines() == [
        "0 of 3 trainings are done; the same command goes on from here",
        "toy_training.py: interrupted",
    ]


def test_an_interruption_at_any_step_changes_no_bit(tmp_path):
    """Every step once: the training ends there, as if killed, and another keeper goes on."""

    class Killed(Exception):
        pass

    class Mortal(Keeper):
        def tick(self, step, total, **shown):
            raise Killed

    for step in range(SHORT["steps"]):
        assert (state := Mortal(tmp_path, SHORT).load()) is None or state["step"] == step
        with pytest.raises(Killed):
            toy_training.train(SHORT, Mortal(tmp_path, SHORT))
    assert toy_training.train(SHORT, Keeper(tmp_path, SHORT)) == toy_training.train(SHORT, Keeper())


def test_records_that_are_kept_are_not_trained_again_until_a_sweep_clears_them(tmp_path, monkeypatch):
    configs = [{"seed": seed, "steps": 3} for seed in (0, 1)]
    sweep = partial(trainings.run, toy_training.train, name="toy", jobs=1, work=tmp_path)
    records = list(sweep(configs, keep=True))
    with monkeypatch.context() as patch:
        patch.setattr(trainings.pools, "processes", lambda *_: pytest.fail("trained again"))
        assert list(sweep(configs)) == records
    assert not (tmp_path / "toy").exists()


def test_records_come_in_order_and_a_diverging_training_stops_no_other(tmp_path, capfd):
    configs = [
        {"seed": 0, "steps": 20, "pause": 0.02},
        {"seed": 1, "steps": 20, "diverges_at": 7},
        {"seed": 2, "steps": 5},
        {"seed": 0, "steps": 20, "pause": 0.02},
    ]
    records, work = [], tmp_path / "work"
    with pytest.raises(script.Diverged, match=r"^the loss is not finite: seed 1 at step 7$"):
        for record in trainings.run(
            toy_training.train, configs, name="toy", jobs=1, work=work, describe=toy_training.describe
        ):
            records.append(record)
            if len(records) == 1:
                with pytest.raises(script.UserError, match="seed 1 is being trained by another process"):
                    next(
                        trainings.run(
                            toy_training.train, configs[1:], name="toy", work=work, describe=toy_training.describe
                        )
                    )
    alone = [toy_training.train(config, Keeper()) for config in (configs[0], configs[2])]
    assert records == [alone[0], {**configs[1], "diverged_at_step": 7}, alone[1], alone[0]]
    assert not any(work.iterdir())
    assert capfd.readouterr() == ("", "")


@pytest.fixture
def scheduler():
    """A Dask scheduler with two workers that share nothing with us but the machine: (address, workers)."""
    pytest.importorskip("distributed")
    dask = Path(sys.executable).parent / "dask"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    host, port = address.split(":")
    worker = [dask, "worker", f"tcp://{address}", "--nthreads", "1", "--no-nanny", "--no-dashboard"]
    processes = [subprocess.Popen([dask, "scheduler", "--host", host, "--port", port, "--no-dashboard"], **quiet)]
    processes += [subprocess.Popen(worker, cwd=TESTS, **quiet) for _ in range(2)]
    yield address
    for process in processes:
        process.kill()
        process.wait()


def test_a_dask_worker_killed_in_the_middle_loses_nothing(scheduler, tmp_path, expected):
    def until_up():
        try:
            return socket.create_connection(scheduler.split(":")).close() is None
        except OSError:
            return False

    wait_until(until_up)
    sweep = run(tmp_path, cluster=scheduler)
    records = [next(sweep)]
    victim = wait_until(lambda: [p for _, p in progress(tmp_path).values() if not gone(p)])[0]
    os.kill(victim, signal.SIGKILL)
    records += sweep
    assert records == expected
    assert list(tmp_path.iterdir()) == []


def test_a_cluster_that_does_not_answer_is_refused_in_one_line(tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(trainings.pools, "CLUSTER_SECONDS", 0.2)
    for address in ("nowhere", "tcp://127.0.0.1", "127.0.0.1:9"):
        with pytest.raises(script.UserError, match="no Dask scheduler at") as error:
            next(trainings.run(toy_training.train, [SHORT], name="toy", cluster=address, work=tmp_path))
        assert "\n" not in str(error.value)


# Checkpoints


def interrupted(folder, config=SHORT) -> Path:
    """A checkpoint as an interrupted training leaves it."""
    keeper = Keeper(folder, config, every=0)
    optimizer = torch.optim.Adam([torch.ones(3, requires_grad=True)])
    optimizer.param_groups[0]["params"][0].square().sum().backward()
    optimizer.step()
    keeper.save_if_due(
        lambda: {"step": 3, "curve": [1.5], "optimizer": optimizer.state_dict(), "weights": torch.arange(500)}
    )
    return folder / "checkpoint.pt"


def test_what_is_kept_loads_with_weights_only_and_comes_back(tmp_path):
    path = interrupted(tmp_path)
    assert set(torch.load(path, weights_only=True, map_location="cpu")) == {"config", "seconds", "state"}
    state = Keeper(tmp_path, SHORT).load()
    assert (state["step"], state["curve"]) == (3, [1.5])
    assert torch.equal(state["weights"], torch.arange(500))


@pytest.mark.parametrize("damage", ["empty", "truncated", "one byte", "other file"])
def test_a_damaged_checkpoint_is_said_and_its_training_starts_afresh(tmp_path, capsys, damage):
    path = interrupted(tmp_path)
    content = bytearray(path.read_bytes())
    if damage == "one byte":  # inside the weights: torch itself would load it without a word
        content[content.index(torch.arange(500).numpy().tobytes()) + 800] ^= 1
    path.write_bytes({"empty": b"", "truncated": content[:-300], "one byte": content, "other file": b"PK" * 99}[damage])
    assert Keeper(tmp_path, SHORT).load() is None
    assert capsys.readouterr().err == f"{path} is damaged: this training starts afresh\n"


def test_a_checkpoint_of_another_configuration_is_refused(tmp_path):
    interrupted(tmp_path)
    with pytest.raises(script.UserError, match=r"of another configuration, \{'seed': 0, 'steps': 30\}"):
        Keeper(tmp_path, SHORT | {"steps": 31}).load()


def test_a_full_disk_leaves_the_checkpoint_before_and_the_training_goes_on(tmp_path, monkeypatch, capsys):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = interrupted(tmp_path)
    before = path.read_bytes()
    keeper = Keeper(tmp_path, SHORT, every=0)
    for function in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, function, full)
            keeper.save_if_due(lambda: {"step": 4})
        assert path.read_bytes() == before
        assert [p.name for p in tmp_path.iterdir()] == ["checkpoint.pt"]
    assert capsys.readouterr().err.count("No space left on device") == 1
    keeper.save_if_due(lambda: {"step": 4})
    assert Keeper(tmp_path, SHORT).load() == {"step": 4}


def test_checkpoints_are_rare_and_ticks_cost_microseconds(tmp_path):
    keeper = Keeper(tmp_path, SHORT)
    keeper.save_if_due(pytest.fail)
    start = time.process_time()
    for step in range(10_000):
        keeper.tick(step, 10_000, loss=1.0)
    assert time.process_time() - start < 0.1  # 10 microseconds each: ten times what it takes
    assert json.loads((tmp_path / "progress.json").read_text(encoding="utf-8"))[1:] == [10_000, {"loss": 1.0}]


def test_seconds_count_earlier_runs(tmp_path):
    keeper = Keeper(tmp_path, SHORT, every=0)
    time.sleep(0.1)
    keeper.save_if_due(dict)
    again = Keeper(tmp_path, SHORT)
    assert again.seconds < 0.1
    again.load()
    assert 0.1 <= again.seconds < 10


def test_a_keeper_without_a_folder_keeps_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    keeper = Keeper()
    keeper.every = 0
    assert keeper.load() is None
    keeper.save_if_due(pytest.fail)
    keeper.tick(1, 2)
    assert list(tmp_path.iterdir()) == []


def test_progress_counts_all_trainings_by_their_cost_and_names_what_runs(tmp_path, monkeypatch, capsys):
    """a is done (cost 1), b at a quarter (cost 2), c not begun (cost 3): 1.5 of 6 is 25%."""
    monkeypatch.setattr(progress_module, "LOG_SECONDS", 0)
    folders = {key: tmp_path / key for key in "abc"}
    Keeper(folders["b"]).tick(50, 200, loss=1.25)
    bar = progress_module.Bar(folders, {"a": "A", "b": "B", "c": "C"}, {"a": 1, "b": 2, "c": 3}, ["b", "c"])
    bar.show()
    bar.finish("b")
    bar.show()
    bar.close()
    output, messages = capsys.readouterr()
    first, second = messages.splitlines()
    assert output == ""
    assert re.fullmatch(r" 25% 00:0\d, \S+ left, B 50/200 loss 1.25", first)
    assert re.fullmatch(r" 50% 00:0\d, 00:0\d left", second)


def test_a_pool_that_dies_again_and_again_ends_in_one_line(tmp_path, monkeypatch, capsys):
    class Dying(Executor):
        def submit(self, *call):
            raise BrokenExecutor

    monkeypatch.setattr(trainings.pools, "processes", lambda jobs, devices: nullcontext(Dying()))
    with pytest.raises(script.UserError, match=r"^processes died 4 times \(out of memory\?\): .* fewer --jobs$"):
        list(run(tmp_path))
    assert capsys.readouterr().err.count("going on from the checkpoints") == trainings.RESTARTS
