"""Many trainings (lab/trainings.py, pools.py, progress.py): the same bits however they are run and interrupted."""

import errno
import io
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from argparse import Namespace
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest
import torch
import toy_training
from commands import ROOT
from toy_training import Config

from lab import pools, results, sources, trainings
from lab.errors import UserError
from lab.progress import Bar
from lab.trainings import Checkpoint

TESTS = Path(toy_training.__file__).parent
CONFIGS = [Config(seed) for seed in (0, 1, 2)]
PATIENCE = 300  # seconds after which an event that a test waits for isn't coming any more


@pytest.fixture(scope="module")
def expected():
    """The records of trainings that nothing interrupts, one after the other in this process."""
    torch.set_num_threads(1)
    return [toy_training.train(config, Checkpoint()) for config in CONFIGS]


def wait_until(true):
    end = time.monotonic() + PATIENCE
    while not (result := true()):
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.01)
    return result


def gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    # A process that ended but that nobody has waited for yet is gone too.
    status = Path(f"/proc/{process}/stat")
    return status.exists() and status.read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"


class Toy:
    """The toy and the lab in a folder of their own, and the means to hold the toy's trainings at a step."""

    def __init__(self, folder: Path):
        self.folder = folder
        shutil.copytree(ROOT / "lab", folder / "lab", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(TESTS / "toy_training.py", folder)
        (folder / "elsewhere").mkdir()

    def start(self, *arguments, as_module=False):
        """The command, in a session of its own, as from a terminal: from another folder, or with ``python -m``."""
        what, cwd = (["-m", "toy_training"], ".") if as_module else ([self.folder / "toy_training.py"], "elsewhere")
        return subprocess.Popen(
            [sys.executable, "-W", "error", *what, "--outputs", self.folder / "out", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            cwd=self.folder / cwd,
            env={**os.environ, "TOY_FOLDER": str(self.folder)},
            start_new_session=True,
        )

    @contextmanager
    def held_at(self, step, count=1):
        """The processes, ``count`` of them, of trainings that are held at a step."""
        stop = self.folder / f"stop-{step}"
        stop.touch()

        def held():
            processes = [int(path.name.split()[0]) for path in self.folder.glob(f"* at {step}")]
            return len(processes) == count and processes

        try:
            yield lambda: wait_until(held)
        finally:
            stop.unlink()

    def saved(self):
        return json.loads((self.folder / "out" / "toy_training.json").read_text(encoding="utf-8"))["results"]["runs"]


def test_a_command_that_is_killed_again_and_again_ends_with_the_same_bits(tmp_path, expected):
    """SIGKILL, then Ctrl-C, then SIGKILL of one of its processes: nothing goes on by itself, and no bit changes."""
    toy = Toy(tmp_path)
    with toy.held_at(5) as held:
        command = toy.start("--jobs", "1", as_module=True)
        processes = held()
        command.kill()
        assert command.communicate() == ("", "")
        wait_until(lambda: all(map(gone, processes)))
    with toy.held_at(12, count=2) as held:
        command = toy.start("--jobs", "2")
        processes = held()
        os.killpg(command.pid, signal.SIGINT)
        output, messages = command.communicate()
        assert (command.returncode, output) == (130, "")
        assert messages.splitlines() == [
            "seed 0: going on from step 4",
            "0 of 3 trainings are done; the same command goes on from here",
            "toy_training.py: interrupted",
        ]
        wait_until(lambda: all(map(gone, processes)))
    assert not (tmp_path / "out").exists()
    with toy.held_at(20) as held:
        command = toy.start("--jobs", "1", as_module=True)
        os.kill(held()[0], signal.SIGKILL)
        wait_until(lambda: gone(held()[0]))
    output, messages = command.communicate()
    assert command.returncode == 0, messages
    assert messages.count("a training's process died (killed, or out of memory?): going on") == 1
    for line in "seed 0: going on from step 11", "seed 0: going on from step 19", "ended: 0", "ended: 1", "ended: 2":
        assert line in messages.splitlines()
    assert toy.saved() == expected
    assert [line.split(":")[0] for line in output.splitlines()] == ["seed 0", "seed 1", "seed 2"]
    assert not list((tmp_path / "work").iterdir())


@pytest.fixture
def work(tmp_path, monkeypatch):
    """A command's work in progress, in this process; calling it makes that of another run of the same command."""
    monkeypatch.setattr(results, "WORK", tmp_path / "work")
    monkeypatch.setattr(sources, "ROOT", TESTS)
    made = []

    def make(**arguments):
        made.append(results.Work("toy_training", "toy", Namespace(**arguments), set()))
        return made[-1]

    yield make
    for work in made:
        work.release()


def run(work, configs=CONFIGS, jobs=1, cluster=None, line=None):
    return trainings.run(toy_training.train, configs, Namespace(jobs=jobs, cluster=cluster, work=work), line)


def test_what_one_training_found_can_ask_for_more_and_so_it_does_when_its_record_is_stored(
    work, expected, in_this_process
):
    def more(config, record):
        asked.append(config.seed)
        return CONFIGS[config.seed + 1 :][:1] + CONFIGS[:1]  # the next, and one that is there already

    kept, found = work(), []
    for _ in range(2):
        asked = []
        trainings.run(toy_training.train, CONFIGS[:1], Namespace(jobs=1, cluster=None, work=kept), more=more)
        found.append(asked)
    assert found == [[0, 1, 2]] * 2
    assert run(kept) == expected  # nothing is left to train


def test_what_is_trained_is_kept_until_the_results_are_saved(work, expected, in_this_process, monkeypatch, capsys):
    first, second = work(), work()
    configs = [Config(0, steps=5), Config(1, steps=5)]
    records = run(first, configs[:1])
    first.release()  # the command ended before it had saved its results
    train = toy_training.train
    trained = []
    monkeypatch.setattr(
        toy_training, "train", lambda config, checkpoint: (trained.append(config), train(config, checkpoint))[1]
    )
    assert run(second, configs)[0] == records[0]
    assert trained == configs[1:]
    assert capsys.readouterr().err == "1 of 2 trainings are done already: going on\n"
    second.clear()
    assert not second.folder.parent.exists()


def test_the_same_command_twice_at_once_is_refused_and_another_one_is_not(work, in_this_process):
    configs = [Config(0, steps=1)]
    run(work(), configs)
    with pytest.raises(UserError, match="the same command is running already"):
        run(work(), configs)
    run(work(cap=7), configs)


def test_a_diverging_training_stops_no_other(work, in_this_process, capsys):
    configs = [Config(0, steps=9), Config(1, steps=9, diverges_at=7), Config(2, steps=3), Config(0, steps=9)]
    records = run(first := work(), configs, line=lambda record: f"ended: {record['seed']}")
    alone = [toy_training.train(config, Checkpoint()) for config in (configs[0], configs[2])]
    assert records == [alone[0], asdict(configs[1]) | {"diverged_at_step": 7}, alone[1], alone[0]]
    told = "seed 1: the loss is not finite at step 7; a smaller learning rate usually cures it"
    assert sorted(capsys.readouterr().err.splitlines()) == ["ended: 0", "ended: 2", told]
    first.release()
    assert run(work(), configs) == records
    assert capsys.readouterr().err.splitlines() == ["3 of 3 trainings are done already: going on", told]


def test_the_longest_start_first_and_records_keep_their_order(work, in_this_process, monkeypatch):
    order = []
    monkeypatch.setattr(toy_training, "train", lambda config, _: order.append(config.steps) or asdict(config))
    records = run(work(), [Config(0, steps=steps) for steps in (3, 9, 5)])
    assert order == [9, 5, 3]
    assert [record["steps"] for record in records] == [3, 9, 5]


def test_three_hundred_trainings_need_no_more_files_than_one(work, in_this_process, monkeypatch):
    def train(config, checkpoint):
        checkpoint.tick(1, 2)
        return asdict(config)

    monkeypatch.setattr(toy_training, "train", train)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/dev/fd")) + 20, before[1]))
    try:
        assert len(run(work(), [Config(seed) for seed in range(300)])) == 300
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_an_edited_script_starts_afresh_and_says_so(work, in_this_process, monkeypatch, capsys, tmp_path):
    run(first := work(), [Config(0, steps=2)])
    first.release()
    shutil.copy(TESTS / "toy_training.py", tmp_path)
    with open(tmp_path / "toy_training.py", "a", encoding="utf-8") as file:
        file.write("# edited\n")
    monkeypatch.setattr(sources, "ROOT", tmp_path)
    second = work()
    assert second.folder != first.folder
    run(second, [Config(0, steps=2)])
    assert "holds work of other arguments or of other code: this starts afresh" in capsys.readouterr().err


def test_a_command_that_began_nothing_leaves_nothing(work, tmp_path):
    refused = work()
    refused.hold()
    refused.release()
    assert not (tmp_path / "work" / "toy").exists()


# Checkpoints and records


def interrupted(folder) -> Path:
    """A checkpoint as an interrupted training leaves it."""
    optimizer = torch.optim.Adam([torch.ones(3, requires_grad=True)])
    optimizer.param_groups[0]["params"][0].square().sum().backward()
    optimizer.step()
    Checkpoint(folder, every=0).save_if_due(
        lambda: {"step": 3, "curve": [1.5], "optimizer": optimizer.state_dict(), "weights": torch.arange(500)}
    )
    return folder / "checkpoint.pt"


def test_what_is_kept_loads_with_weights_only_and_comes_back(tmp_path, capsys):
    path = interrupted(tmp_path)
    assert set(torch.load(path, weights_only=True)) == {"step", "curve", "optimizer", "weights"}
    state = Checkpoint(tmp_path, "seed 0").load()
    assert (state["step"], state["curve"]) == (3, [1.5])
    assert torch.equal(state["weights"], torch.arange(500))
    assert capsys.readouterr().err == "seed 0: going on from step 3\n"


@pytest.mark.parametrize("damage", ["empty", "truncated", "one byte", "other file"])
def test_a_damaged_checkpoint_is_said_and_its_training_starts_afresh(tmp_path, capsys, damage):
    path = interrupted(tmp_path)
    content = bytearray(path.read_bytes())
    if damage == "one byte":  # inside the weights: torch itself would load it without a word
        content[content.index(torch.arange(500).numpy().tobytes()) + 800] ^= 1
    path.write_bytes({"empty": b"", "truncated": content[:-300], "one byte": content, "other file": b"PK" * 99}[damage])
    assert Checkpoint(tmp_path, "seed 0").load() is None
    assert capsys.readouterr().err == f"{path} is damaged: seed 0 starts afresh\n"


@pytest.mark.parametrize("damage", [b"", b"{", b'["sum", {"seed": 1}]', b"[1]", b"5", b"null", b"\xff"])
def test_a_damaged_record_is_said_and_trained_once_more(work, in_this_process, capsys, damage):
    records = run(first := work(), [Config(0, steps=3)])
    first.release()
    (path,) = first.folder.glob("*/record.json")
    path.write_bytes(damage)
    assert run(work(), [Config(0, steps=3)]) == records
    assert capsys.readouterr().err == f"{path} is damaged: this training starts afresh\n"


def test_a_full_disk_leaves_the_checkpoint_before_and_the_training_goes_on(tmp_path, monkeypatch, capsys):
    path = interrupted(tmp_path)
    before = path.read_bytes()
    checkpoint = Checkpoint(tmp_path, every=0)
    for function in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, function, full)
            checkpoint.save_if_due(lambda: {"step": 4})
        assert path.read_bytes() == before
        assert [p.name for p in tmp_path.iterdir()] == ["checkpoint.pt"]
    assert capsys.readouterr().err.count("No space left on device") == 1
    checkpoint.save_if_due(lambda: {"step": 4})
    assert Checkpoint(tmp_path).load() == {"step": 4}


def full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_disk_that_is_full_all_the_time_changes_no_record(work, in_this_process, monkeypatch, expected, capsys):
    monkeypatch.setattr(os, "replace", full)
    assert run(work(), CONFIGS[:1]) == expected[:1]
    messages = capsys.readouterr().err.splitlines()
    assert [message.partition("(No space left on device): ")[2] for message in messages] == [
        "training goes on all the same",
        "an interrupted run would train this once more",
    ]


def test_checkpoints_and_reports_are_rare(tmp_path, monkeypatch):
    """10,000 steps of 0.01 s each: a report every half second, 200 of them, and five checkpoints, 20 s apart."""
    now, reports, saves = [0.0], [], []
    monkeypatch.setattr(trainings.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(Path, "write_text", lambda path, text, encoding: reports.append(json.loads(text)))
    checkpoint = Checkpoint(tmp_path)
    for step in range(1, 10_001):
        now[0] += 0.01
        checkpoint.tick(step, 10_000, loss=1.0)
        checkpoint.save_if_due(lambda step=step: saves.append(step) or {"step": step})
    assert 190 <= len(reports) <= 201 and reports[0] == [1, 10_000, {"loss": 1.0}]
    assert 4 <= len(saves) <= 5


def test_a_training_that_nobody_waits_for_ends_itself(tmp_path):
    """On a cluster it outlives its command; another one may have begun since."""
    checkpoint = Checkpoint(tmp_path / "training", wanted="1 2")
    checkpoint.tick(1, 9)  # there is no such file where the worker shares no folder with the command
    for text in ("", "1 3"):
        (tmp_path / "lock").write_text(text, encoding="utf-8")
        with pytest.raises(RuntimeError, match="nobody waits for this training"):
            Checkpoint(tmp_path / "training", wanted="1 2").tick(1, 9)
    (tmp_path / "lock").write_text("1 2", encoding="utf-8")
    Checkpoint(tmp_path / "training", wanted="1 2").tick(1, 9)


def test_without_a_folder_nothing_is_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    checkpoint = Checkpoint(every=0)
    assert checkpoint.load() is None
    checkpoint.save_if_due(pytest.fail)
    checkpoint.tick(1, 2)
    assert list(tmp_path.iterdir()) == []


@dataclass(frozen=True)
class Other:
    seed: int


def test_a_key_stands_for_one_configuration():
    keys = {trainings.key_of(config) for config in [Config(0), Config(1), Config(0, steps=1), Config(0, clip=None)]}
    assert len(keys) == 4 and trainings.key_of(Config(0)) in keys
    assert trainings.key_of(Other(0)) not in keys


# Pools


def test_a_pool_that_dies_again_and_again_ends_in_one_line(work, monkeypatch, capsys):
    class Dying(Executor):
        def submit(self, *call):
            raise BrokenExecutor

    @contextmanager
    def processes(jobs, devices):
        yield Dying()

    monkeypatch.setattr(pools, "processes", processes)
    with pytest.raises(UserError, match=r"^processes died 4 times \(out of memory\?\): .* fewer --jobs$"):
        run(work())
    assert capsys.readouterr().err.count("going on from the checkpoints") == trainings.RESTARTS


def test_progress_counts_all_trainings_by_their_cost_and_names_what_runs(tmp_path, monkeypatch, capsys):
    """a is done (cost 1), b at a quarter (cost 2), c not begun (cost 3): 1.5 of 6 is 25%. Then b is done, d is new."""
    monkeypatch.setattr("lab.progress.LOG_SECONDS", 0)

    class Costly(str):
        cost = property(lambda self: "ABCD".index(self) + 1)

    Checkpoint(tmp_path / "b").tick(50, 200, loss=1.25)
    configs, records = {key: Costly(key.upper()) for key in "abc"}, {"a": {}}
    bar = Bar(tmp_path, configs, records)
    bar.show()
    records["b"] = {}
    configs["d"] = Costly("D")
    bar.show()
    bar.close()
    output, messages = capsys.readouterr()
    first, second = messages.splitlines()
    assert output == ""
    assert re.fullmatch(r" 25% \d\d:\d\d, \S+ left, B 50/200 loss 1.25", first)
    assert re.fullmatch(r" 30% \d\d:\d\d, \S+ left", second)  # 3 of 10


class Full(io.StringIO):
    def write(self, text):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("stream", [None, Full()])
def test_progress_that_nobody_can_be_told_ends_nothing(work, in_this_process, monkeypatch, stream, expected):
    monkeypatch.setattr("lab.progress.LOG_SECONDS", 0)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", stream)
        assert run(work(), CONFIGS[:1], line=str) == expected[:1]


def test_a_worker_that_shares_no_folder_leaves_nothing_there_and_its_record_here(work, monkeypatch, tmp_path, expected):
    class There:
        def submit(self, function, *arguments):
            future = Future()
            with monkeypatch.context() as patch:
                patch.setattr(trainings, "ROOT", tmp_path / "there")
                future.set_result(function(*arguments))
            return future

    @contextmanager
    def cluster(address, made_of, module):
        assert (module, made_of) == ("toy_training", sources.made_of("toy_training"))
        yield There()

    monkeypatch.setattr(pools, "cluster", cluster)
    monkeypatch.setattr(trainings, "ROOT", tmp_path)
    first = work()
    assert run(first, cluster="there:1") == expected
    assert not list((tmp_path / "there").rglob("*.*"))
    first.release()
    monkeypatch.setattr(pools, "cluster", pytest.fail)
    assert run(work(), cluster="there:1") == expected


def test_a_dask_worker_killed_in_the_middle_loses_nothing(start_cluster, tmp_path, expected):
    toy = Toy(tmp_path)
    with toy.held_at(20, count=2) as held:
        command = toy.start("--cluster", start_cluster(tmp_path, tmp_path))
        os.kill(held()[0], signal.SIGKILL)
        wait_until(lambda: gone(held()[0]))
    _, messages = command.communicate()
    assert command.returncode == 0, messages
    assert toy.saved() == expected


@pytest.mark.parametrize("what", ["code", pytest.param("torch", marks=pytest.mark.slow)])
def test_a_worker_that_has_other_code_or_another_torch_trains_nothing(start_cluster, tmp_path, what):
    """It stands in a copy of its own: with an edited module far below the script, or with another version of torch."""
    there = tmp_path / "there"
    there.mkdir()
    Toy(there)
    toy = Toy(tmp_path)
    if what == "code":
        with open(there / "lab" / "descent.py", "a", encoding="utf-8") as file:
            file.write("# edited\n")
    else:
        (there / "torch-1.0.dist-info").mkdir()
        (there / "torch-1.0.dist-info" / "METADATA").write_text("Name: torch\nVersion: 1.0\n", encoding="utf-8")
    command = toy.start("--cluster", start_cluster(there))
    output, messages = command.communicate()
    *before, last = messages.splitlines()
    assert (command.returncode, output) == (2, "") and all("no workers yet" in note for note in before), messages
    other = f"torch 1.0, here it is {torch.__version__}: start it anew" if what == "torch" else "code "
    assert f"the worker in {there} on {socket.gethostname()} has {other}" in last
    assert not list(tmp_path.glob("work/*")) and not (tmp_path / "out").exists()


def test_a_server_that_is_no_scheduler_is_refused(work, monkeypatch):
    """A web page, for one, such as the scheduler's own: it waits to be asked."""
    pytest.importorskip("distributed")
    monkeypatch.setattr(pools, "CLUSTER_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(UserError, match="no Dask scheduler at"):
        run(work(), cluster=f"127.0.0.1:{server.getsockname()[1]}")


@pytest.mark.parametrize(
    "address, said",
    [
        ("", "no Dask scheduler at 'tcp://'"),
        ("nowhere", "no Dask scheduler at 'tcp://nowhere'"),
        ("tcp://127.0.0.1", "no Dask scheduler at"),
        ("127.0.0.1:9", "no Dask scheduler at"),
        ("tls://127.0.0.1:9", "needs certificates"),
    ],
)
def test_a_cluster_that_does_not_answer_is_refused_in_one_line(work, monkeypatch, capsys, address, said):
    pytest.importorskip("distributed")
    monkeypatch.setattr(pools, "CLUSTER_SECONDS", 0.1)
    with pytest.raises(UserError, match=said) as error:
        run(work(), cluster=address)
    assert "\n" not in str(error.value)
    assert capsys.readouterr() == ("", "")
