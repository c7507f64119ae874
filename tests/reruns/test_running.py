"""Running again (reruns/running.py): interrupted anywhere, the same command goes on and ends with the same files."""

import os
import shutil
import signal
import time
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import pytest
import toy_training

from reruns import catalogue, running

NAMES = ["first", "long", "short", "last"]


def told(out: str) -> list[str]:
    """The experiments that have a line."""
    return [line.split()[0] for line in out.split("\n\n")[0].splitlines()]


def begun(house) -> list[str]:
    return [name for what, name, *_ in house.notes() if what == "begins"]


def wait_until(true):
    end = time.monotonic() + 120  # only where something is broken
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


def test_a_rerun_that_is_interrupted_again_and_again_ends_with_the_same_files(house, tmp_path):
    """While the first runs, while both sweeps run, while one of them does, and while the last one runs."""
    house.add(*NAMES)
    moments = [
        (["first"], signal.SIGKILL, []),
        (["long", "short"], signal.SIGTERM, ["first"]),
        (["short"], signal.SIGKILL, ["first", "long"]),
        (["last"], signal.SIGINT, ["first", "long", "short"]),
    ]
    command = ["rerun.py", "--all", "--jobs", "2", "--outputs", tmp_path / "out"]
    for held, number, done in moments:
        for name in held:
            (house.toys / f"hold-{name}").touch()
        before = len(house.notes())
        process = house.start(*command)
        lines = [process.stdout.readline() for _ in done]  # until all that runs before and beside it is done
        wait_until(lambda before=before, held=held: {*held} <= {n for _, n, *_ in house.notes()[before:]})
        process.send_signal(number)
        out, errors = process.communicate()
        assert process.returncode == (-number if number == signal.SIGKILL else 128 + number)
        assert told("".join(lines)) == done and out == ""
        if number != signal.SIGKILL:
            assert f"{len(done)} of 4 experiments are done; the same command goes on from here" in errors
        for _, _, pid, *_ in house.notes():
            wait_until(lambda pid=pid: is_gone(int(pid)))  # none goes on by itself
        for name in held:
            (house.toys / f"hold-{name}").unlink()
    done = house.run(*command)
    assert done.returncode == 0 and told(done.stdout) == NAMES, done.stderr
    assert "3 of 4 experiments are there already" in done.stderr
    made = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert made == sorted(f"{name}.{suffix}" for name in NAMES for suffix in ("json", "txt"))
    assert [house.results(name, tmp_path / "out")["name"] for name in NAMES] == NAMES
    # Each once, and once more for each time that it was interrupted.
    assert sorted(begun(house)) == sorted([*NAMES * 2, "short"])


def test_sweeps_run_side_by_side_and_what_is_timed_alone(house):
    house.add(*reversed(NAMES))
    for name in ("long", "short"):
        (house.toys / f"hold-{name}").touch()
    process = house.start("rerun.py", "--all", "--jobs", "3")
    wait_until(lambda: len(house.notes()) == 4)
    for name in ("long", "short"):
        (house.toys / f"hold-{name}").unlink()
    out, errors = process.communicate()
    assert process.returncode == 0 and sorted(told(out)) == sorted(NAMES), errors
    notes = [note[:2] for note in house.notes()]
    assert notes[:2] == [["begins", "first"], ["ends", "first"]]
    assert sorted(notes[2:4]) == [["begins", "long"], ["begins", "short"]]
    assert notes[6:] == [["begins", "last"], ["ends", "last"]]
    # Half of the three trainings each, rounded up; the others have no --jobs.
    assert [note[3] for note in house.notes() if note[0] == "begins"] == ["None", "2", "2", "None"]
    assert not list((house.folder / "work").glob("*/*")) and not list(house.outputs.iterdir())


def entry(name, is_sweep=True, reads=()):
    return SimpleNamespace(entry=SimpleNamespace(name=name, is_sweep=is_sweep, reads=reads))


def test_one_that_reads_others_starts_when_they_have_ended():
    """A quick one reads a sweep that reads another; one that none reads takes the place beside."""
    quick, second = entry("quick", is_sweep=False, reads=("second",)), entry("second", reads=("first", "elsewhere"))
    first, other = entry("first"), entry("other")
    assert running._next([quick, second, first, other], []) is first
    assert running._next([quick, second, other], [first]) is other
    assert running._next([quick, second], [first]) is None
    assert running._next([quick, second], [other]) is second  # first has ended
    assert running._next([quick], [other]) is None  # which is no sweep, so that it runs alone
    assert running._next([quick], []) is quick
    assert running._next([], []) is None


def test_those_that_read_each_other_are_run_all_the_same():
    one, other = entry("one", reads=("other",)), entry("other", reads=("one",))
    assert running._next([one, other], []) is one


def test_what_a_script_reads_is_made_first(house):
    """By its place in the chapter it would be before; what isn't among those that are run isn't waited for."""
    house.add("first", "second")
    with open(house.folder / "first.py", "a", encoding="utf-8") as file:
        file.write('READS = ("second", "third")\n')
    assert house.run("rerun.py", "--outputs", "there").returncode == 0
    assert begun(house) == ["second", "first"]


@pytest.mark.parametrize("outputs", [[], ["--outputs", "out"]])
def test_only_what_is_kept_is_not_run_again(house, outputs):
    house.add("first")
    for _ in range(2):
        done = house.run("rerun.py", *outputs)
        assert done.returncode == 0 and told(done.stdout) == ["first"], done.stderr
    assert begun(house) == ["first"] * (1 if outputs else 2)
    assert not list((house.folder / "work").glob("*"))


def test_what_other_code_made_or_is_not_whole_is_run_again(house):
    house.add("first", "second")
    command = ["rerun.py", "--outputs", "out"]
    assert house.run(*command).returncode == 0
    with open(house.folder / "first.py", "a", encoding="utf-8") as file:
        file.write("# edited\n")
    assert house.run(*command).returncode == 0
    assert begun(house) == ["first", "second", "first"]
    (house.folder / "out" / "second.txt").unlink()
    assert house.run(*command).returncode == 0
    assert begun(house) == ["first", "second", "first", "second"]
    with open(house.folder / "lab" / "script.py", "a", encoding="utf-8") as file:
        file.write("# edited\n")
    assert house.run(*command).returncode == 0
    assert begun(house)[4:] == ["first", "second"]


def test_one_that_fails_stops_no_other_and_the_next_rerun_runs_only_that(house):
    house.add(*NAMES)
    (house.toys / "fail-long").touch()
    command = ["rerun.py", "--all", "--jobs", "1", "--outputs", "out"]
    done = house.run(*command)
    assert done.returncode == 1 and begun(house) == ["first", "short", "last"]
    assert "long: long.py: told to fail" in done.stderr
    assert f"{'long':<20} failed with exit status 2" in done.stdout
    assert "0 of 1 experiments agree; not long; nothing of first was compared" in done.stdout
    (house.toys / "fail-long").unlink()
    assert house.run(*command).returncode == 0
    assert begun(house) == ["first", "short", "last", "long"]


def test_the_time_left_is_what_the_reference_machine_took_until_this_one_is_known(monkeypatch, capsys):
    monkeypatch.setattr(running.results, "available_cores", lambda: 2)
    a, b, c = (SimpleNamespace(entry=SimpleNamespace(name=name, core_seconds=3600)) for name in "abc")
    # 10,800 seconds of a core are 90 minutes of two as fast as those.
    running._tell(3, [b, c], [a], seconds=0, work=0)
    # One of three after 1,140 s: (1,140 + 60) / (3,600 + 60 * 2) seconds a second of work, times 7,200: 2,323 s.
    running._tell(3, [c], [b], seconds=1140, work=3600)
    # The last took no time here, so what is left takes about none: nothing to wait for, nothing to tell.
    running._tell(3, [], [c], seconds=0, work=36e4)
    assert capsys.readouterr().err.splitlines() == [
        "0 of 3 done, about 1.5 h left; now a",
        "1 of 3 done, about 39 min left; now b",
    ]


@pytest.mark.parametrize("device, cluster, jobs", [("cuda", None, 3), ("cpu", "tcp://host:8786", None)])
def test_every_script_is_handed_the_shared_options_that_it_takes(device, cluster, jobs, tmp_path):
    arguments = Namespace(device=device, cluster=cluster, data=tmp_path)
    for entry in catalogue.entries().values():
        _, *command = running.Rerun(entry, arguments, tmp_path, None).command(jobs)
        command = command[2:] if command[0] == "-m" else command[1:]
        parsed = entry.script().parser().parse_args(command)
        expected = {"device": device, "cluster": cluster, "data": tmp_path, "jobs": jobs if entry.is_sweep else None}
        assert {name: getattr(parsed, name) for name in entry.takes} == {name: expected[name] for name in entry.takes}


def test_a_sweep_has_all_of_the_trainings_where_there_is_no_other_and_a_gpu_or_a_cluster_decides_itself(monkeypatch):
    monkeypatch.setattr(running.results, "available_cores", lambda: 6)

    def shares(sweeps, device="cpu", cluster=None, jobs=None):
        return running._shares(Namespace(device=device, cluster=cluster, jobs=jobs), sweeps)

    assert shares(1) == (6, 1) and shares(5) == (3, 2)
    assert shares(5, jobs=1) == (1, 1) and shares(5, jobs=3) == (2, 2)
    assert shares(5, device="cuda") == (None, 1) and shares(5, device="cuda", jobs=4) == (2, 2)
    assert shares(5, cluster="tcp://host:8786") == (None, 2)


def test_a_rerun_that_replaces_what_was_saved_is_compared_with_what_was_there(house):
    house.add("first")
    assert house.run("first.py").returncode == 0
    path = house.outputs / "first.json"
    path.write_text(path.read_text(encoding="utf-8").replace("[1, 2, 4]", "[1, 3, 4]"), encoding="utf-8")
    with open(house.folder / "first.py", "a", encoding="utf-8") as file:
        file.write("# edited\n")
    done = house.run("rerun.py", "--outputs", "outputs")
    assert done.returncode == 1 and "    saved: curve.1: 2 here, 3 there\n" in done.stdout
    assert house.results("first")["curve"] == [1, 2, 4]


@pytest.mark.slow
def test_one_cluster_trains_for_all_sweeps(house, start_cluster):
    """Two sweeps at a time, with the results of one that trains alone, here."""
    for name in ("one", "two"):
        shutil.copy(toy_training.__file__, house.folder / f"{name}.py")
    with open(house.folder / "reruns" / "catalogue.py", "a", encoding="utf-8") as file:
        file.write("\nCHAPTERS = {'Toys': ['one', 'two']}\n")
    done = house.run("rerun.py", "--all", "--cluster", start_cluster(house.folder, house.folder), "--outputs", "there")
    assert done.returncode == 0, done.stderr
    assert [line.split()[:2] for line in sorted(done.stdout.splitlines()) if "cluster" in line] == [
        ["one", "cluster"],
        ["two", "cluster"],
    ]
    assert house.run("one.py").returncode == 0
    for name in ("one", "two"):
        assert house.results(name, house.folder / "there") == house.results("one")
