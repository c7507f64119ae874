"""rerun.py --all: interrupted anywhere it ends with the same files; and what --check-machine says."""

import os
import shutil
import signal
import subprocess
import sys
import time
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest
import toy_experiment
from commands import ROOT

import machine
import rerun
from lab import compare, progress, reruns, results, script

TOY = Path(toy_experiment.__file__)
NAMES = ["first", "long", "short", "last"]


@pytest.fixture
def toys(tmp_path, monkeypatch):
    """A folder of four experiments."""
    monkeypatch.setenv("TOY_ROOT", str(ROOT))
    monkeypatch.setattr(reruns, "available_cores", lambda: 4)
    for name in NAMES:
        shutil.copy(TOY, tmp_path / f"{name}.py")
    (tmp_path / "out").mkdir()
    return tmp_path


def notes(folder) -> list[list[str]]:
    path = folder / "notes"
    return [line.split() for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def begun(folder) -> list[str]:
    return [name for what, name, *_ in notes(folder) if what == "begins"]


def run(folder) -> dict[str, int]:
    """A whole rerun in this process: the exit status of each experiment."""
    statuses, made = {}, []
    for experiment, status, _ in reruns.run(toy_experiment.experiments(folder), folder / "waiting"):
        statuses[experiment.name] = status
        made += [experiment] * (status == 0)
    reruns.finish(made, folder / "waiting", folder / "out")
    return statuses


def files(folder) -> dict[str, bytes]:
    """What a rerun has put into a folder, without what differs between runs: the time, and where it ran."""
    found = {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix == ".txt"}
    return found | {path.name: results.load(path.stem, folder)["results"] for path in folder.glob("*.json")}


EXPECTED = {f"{name}.txt": f"this is {name}\n".encode() for name in NAMES}
EXPECTED |= {f"{name}.json": {"name": name} for name in NAMES}


def wait_until(true):
    end = time.monotonic() + 120
    while not true():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.02)


def is_gone(process: int) -> bool:
    """Whether a process has ended; one that nobody has waited for yet counts as such."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    status = Path(f"/proc/{process}/stat")
    return status.exists() and status.read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"


def test_a_rerun_that_is_interrupted_again_and_again_ends_with_the_same_files(toys):
    """While the first runs, while both sweeps run, while one of them does, and while the last one runs."""
    moments = [
        (["first"], signal.SIGKILL, []),
        (["long", "short"], signal.SIGTERM, ["first"]),
        (["short"], signal.SIGKILL, ["first", "long"]),
        (["last"], signal.SIGINT, ["first", "long", "short"]),
    ]
    for held, number, done in moments:
        for name in held:
            (toys / f"hold-{name}").touch()
        before = len(notes(toys))
        process = subprocess.Popen(
            [sys.executable, TOY, toys, toys / "out"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        # Until what is held has begun, and all that runs before and beside it is done.
        wait_until(lambda done=done: {*done} <= {p.stem for p in (toys / "waiting").glob("*.done")})
        wait_until(lambda before=before, held=held: {*held} <= {n for _, n, *_ in notes(toys)[before:]})
        process.send_signal(number)
        out, errors = process.communicate(timeout=30)
        assert process.returncode == (-number if number == signal.SIGKILL else 128 + number)
        assert [line.split()[0] for line in out.splitlines()] == done
        if number != signal.SIGKILL:
            assert f"{len(done)} of 4 experiments are done; the same command goes on from here" in errors
        for _, _, pid, *_ in notes(toys):
            wait_until(lambda pid=pid: is_gone(int(pid)))  # none goes on by itself
        for name in held:
            (toys / f"hold-{name}").unlink()
        assert list((toys / "out").iterdir()) == []
    assert run(toys) == dict.fromkeys(NAMES, 0)
    assert files(toys / "out") == EXPECTED
    # Each once, and once more for each time that it was interrupted.
    assert sorted(begun(toys)) == sorted(NAMES * 2 + ["short"])


def test_a_finished_rerun_leaves_nothing_and_the_next_one_starts_afresh(toys, capfd):
    for times in (1, 2):
        assert run(toys) == dict.fromkeys(NAMES, 0)
        assert sorted(begun(toys)) == sorted(NAMES * times)
        assert not (toys / "waiting").exists() and not list(toys.glob("*.over"))
    assert files(toys / "out") == EXPECTED
    assert capfd.readouterr().err == ""
    # Sweeps side by side, on half of the four cores each; nothing beside the others, which run in their order.
    first = notes(toys)[:8]
    assert [note[:2] for note in first[:2]] == [["begins", "first"], ["ends", "first"]]
    assert {note[1] for note in first[2:4]} == {"long", "short"} and {note[0] for note in first[2:4]} == {"begins"}
    assert {note[3] for note in first[2:4]} == {"2"}
    assert [note[:2] for note in first[6:]] == [["begins", "last"], ["ends", "last"]]


def test_one_that_fails_stops_no_other_and_a_place_that_takes_no_results_loses_none(toys, capfd):
    (toys / "fail-long").touch()
    (toys / "out" / "last.txt").mkdir()  # where a file should go
    with pytest.raises(script.UserError, match="the results wait in"):
        run(toys)
    assert "long: long.py: told to fail" in capfd.readouterr().err
    assert begun(toys) == ["first", "short", "last"]
    (toys / "fail-long").unlink()
    (toys / "out" / "last.txt").rmdir()
    assert run(toys) == dict.fromkeys(NAMES, 0)
    assert begun(toys) == ["first", "short", "last", "long"]  # only what had failed
    assert files(toys / "out") == EXPECTED
    assert "3 of 4 experiments were done" in capfd.readouterr().err


def test_what_another_script_another_text_or_other_arguments_made_does_not_count(toys):
    experiment = reruns.Experiment(toys / "first.py", ("--notes", "x"), text="a")
    digest = experiment.made_by()
    assert reruns.Experiment(toys / "first.py", ("--notes", "x"), cost=3.0, text="a").made_by() == digest
    assert reruns.Experiment(toys / "first.py", ("--notes", "y"), text="a").made_by() != digest
    assert reruns.Experiment(toys / "first.py", ("--notes", "x"), text="b").made_by() != digest
    with open(toys / "first.py", "a", encoding="utf-8") as file:
        file.write("# changed\n")
    assert experiment.made_by() != digest


def test_what_a_script_is_made_of():
    """All that it imports and that those import: char_models.py names charlm, which names cells, and so on."""
    names = {path.relative_to(ROOT).as_posix() for path in reruns.sources(ROOT / "char_models.py")}
    assert names >= {"char_models.py", "charlm.py", "cells.py", "corpus.py", "lab/trainings.py", "lab/pools.py"}
    assert not names & {"rerun.py", "claims.py", "seq2seq.py", "lab/report.py"}


def test_the_same_rerun_twice_at_once_is_refused(toys):
    (toys / "waiting").mkdir()
    with open(toys / "waiting" / "lock", "a", encoding="utf-8") as file:
        assert results.claim(file)
        with pytest.raises(script.UserError, match="running already"):
            run(toys)


def test_results_of_other_commands_wait_elsewhere(tmp_path):
    commands = [["--all"], [], ["bptt"], ["--all", "--outputs", str(tmp_path)], ["--all", "--data", str(tmp_path)]]
    folders = [rerun.folder_of(rerun.parse(command)) for command in commands]
    assert len(set(folders)) == len(commands)
    assert rerun.folder_of(rerun.parse(["--all"])) == folders[0]


def test_the_order_is_quick_ones_then_sweeps_from_the_longest_then_what_takes_times():
    text = rerun.corpus.load()
    queue = rerun.queue(list(rerun.EXPERIMENTS), rerun.parse(["--all"]), text)
    assert {experiment.name for experiment in queue} == set(rerun.EXPERIMENTS)
    places = [2 * (experiment.name in rerun.TIMED) + experiment.sweep for experiment in queue]
    assert places == sorted(places)
    assert all(a.cost >= b.cost for a, b in pairwise(e for e in queue if e.sweep))
    order = [experiment.name for experiment in queue]
    assert max(order.index("ngram"), order.index("kneser_ney")) < order.index("char_models")  # which reads theirs
    assert all(("--data" in e.arguments) == (e.name in rerun.READ_THE_TEXT) for e in rerun.queue(
        list(rerun.EXPERIMENTS), rerun.parse(["--data", str(ROOT / "data")]), text))  # fmt: skip


@pytest.mark.parametrize("name", [n for n, long in rerun.EXPERIMENTS.items() if long and n not in rerun.TIMED])
def test_what_is_long_is_a_sweep(name, capsys):
    with pytest.raises(SystemExit, match="0"):
        import_module(name).main(["--jobs", "1", "--help"])


@pytest.mark.parametrize("name", rerun.EXPERIMENTS)
def test_what_saves_times_runs_alone(name):
    """A training's own seconds are told, not judged; where times are the result, nothing may run beside them."""
    record = results.load(name)
    timings = [c.path for c in compare.with_saved(record, record) if compare.kind_of(c.path) == "timing"]
    assert bool([path for path in timings if not path.endswith(".seconds")]) == (name in rerun.TIMED)


def test_the_time_left_is_what_another_machine_took_until_this_one_is_known(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    # 1,000 seconds of a core were done before; 4,000 are left: on two cores as fast 2,000 s.
    board = progress.Overview({"a": 1000.0, "b": 3000.0, "c": 1000.0}, ["a"], cores=2, lines=2)
    assert board.left({}) == 2000
    # After 940 s half of b: (940 + 60) / (1,500 + 60 * 2) seconds a second of work, and 2,500 are left.
    now[0] += 940
    assert board.left({"b": 0.5}) == pytest.approx(2500 * 1000 / 1620)
    board.finish("b")
    board.finish("c")
    assert board.left({}) == 0
    board.close()


def test_progress_is_a_line_a_minute_where_there_is_no_terminal(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    board = progress.Overview({"a": 100.0, "b": 300.0}, [], cores=1, lines=1)
    for _ in range(3):
        board.show({"a": 0.5})
        now[0] += 25
    board.show({"a": 0.5})  # after 75 s
    board.close()
    (line,) = capsys.readouterr().err.splitlines()
    # 50 of 400 done, so 350 left, at (75 + 60) seconds for 50 + 60: 430 s, which are 7:09.
    assert (
        line.startswith(" 12% ")
        and line.endswith(", about 07:09 left, 0 of 2 experiments done; a 50%")
        and ", ," not in line
    )


def test_how_far_an_experiment_is_and_what_it_said_is_read_from_its_log(tmp_path):
    process = object.__new__(reruns.Process)
    process.log = tmp_path / "a.log"
    process.log.write_text("no text to compare with\n  3% 00:59, 31:00 left\n 14% 05:00, 30:00 left; x\n", "utf-8")
    assert process.share() == 0.14
    assert process.said() == ["no text to compare with"]


# --check-machine


PINS = "# the versions\nnumpy==2.4.6\nother-library==1.0\n"


@pytest.mark.parametrize(
    "installed, said",
    [
        ("2.4.6", "numpy 2.4.6: as pinned"),
        ("2.4.6+cpu", "numpy 2.4.6+cpu: as pinned"),
        ("2.4.60", "numpy 2.4.60: differs, the pin is 2.4.6"),
        ("2.5.0", "numpy 2.5.0: differs, the pin is 2.4.6"),
    ],
)
def test_versions_beside_their_pins(installed, said, monkeypatch):
    def version(name):
        if name == "numpy":
            return installed
        raise machine.metadata.PackageNotFoundError

    monkeypatch.setattr(machine.metadata, "version", version)
    assert machine.versions(PINS) == [said, "other-library: not installed, the pin is 1.0"]


def test_every_pin_is_looked_at():
    pins = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    assert len(machine.versions(pins)) == pins.count("==")
    assert machine.python("3.11.9", "3.11.7") == "python 3.11.9: as the saved outputs"
    assert machine.python("3.12.1", "3.11.7") == "python 3.12.1: differs, the saved outputs come from 3.11.7"


@pytest.mark.parametrize("fault", ["", "nn.GRU is wrong on cuda:0 (last state: 1.0e+00 from the CPU's)"])
def test_a_machine_whose_device_fails_its_check_is_told(fault, monkeypatch, capsys):
    def check(device):
        if fault:
            raise script.UserError(fault)

    monkeypatch.setattr(machine.devices, "available", lambda: ["cpu", "cuda", "cuda:0"])
    monkeypatch.setattr(machine.devices, "pick", lambda name: name)
    monkeypatch.setattr(machine.devices, "check_recurrent", check)
    monkeypatch.setattr(machine.results, "available_cores", lambda: 4)
    # Twice as slow in one training and eight times in the other: four times.
    reference = machine.reference_seconds()
    slow = {machine.LSTM: 2 * reference[machine.LSTM], machine.ATTENTION: 8 * reference[machine.ATTENTION]}
    monkeypatch.setattr(machine, "measure", lambda cores: slow)
    assert rerun.main(["--check-machine"]) == (1 if fault else 0)
    out = capsys.readouterr().out
    assert out.count("cuda") == (2 if fault else 1) and (fault or "cuda:0: recurrent layers agree") in out
    work = 4 * sum(results.core_seconds(results.load(name)) for name in rerun.EXPERIMENTS)
    assert f"{machine.duration(work)} of one core's work, 4.00 times" in out
    # The longest training, one of 12,000 steps, takes 2,027 s on the reference machine.
    longest = max(run["seconds"] for run in results.load("char_models_long")["results"]["runs"])
    assert f"--all: about {machine.duration(max(work / 4, 4 * longest))} on 4 cores" in out


def test_a_probe_measures_both_trainings():
    threads = machine.torch.get_num_threads()
    try:
        here = machine.probe(seconds=0)
    finally:
        machine.torch.set_num_threads(threads)
    assert here.keys() == machine.reference_seconds().keys() and min(here.values()) > 0


def test_seconds_of_a_core_are_a_run_s_own_or_those_of_its_trainings():
    record = {"seconds": 10.0, "environment": {"cores": 2}, "results": {}}
    assert results.core_seconds(record) == 20
    record["results"] = {"runs": [{"seconds": 30.0}, {"seconds": 40.0}]}  # interrupted, the last command took 10 s
    assert results.core_seconds(record) == 70
