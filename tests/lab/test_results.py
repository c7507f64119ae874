"""Saved sets of results, work in progress, JSON (lab/results.py)."""

import errno
import json
import os
import stat
import subprocess
import sys
import threading
from argparse import Namespace
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from lab import plots, results, sources
from lab.errors import ROOT, UserError


def record(found, **options):
    return results.record("some", Namespace(steps=10), found, kinds={"*": "exact"}, takes=["jobs"], **options)


def draw(found):
    figure, axes = plots.subplots()
    axes.plot(found["curve"])
    return figure


def files(folder):
    return sorted(os.listdir(folder))


def test_a_record_holds_the_numbers_unrounded_and_what_they_are_from(tmp_path):
    arguments = Namespace(steps=10, data=Path("text"), outputs=tmp_path, jobs=2, cluster=None, changed={}, work=None)
    found = {"y": np.float64(1 / 3), "curve": np.arange(3), "named": {"a": (1, np.float32(0.5))}, "yes": True}
    found |= {"none": None, "seeds": range(3), "corpus": "abc"}
    made = results.record("some", arguments, found, kinds={"*": "exact"}, takes=["jobs"])
    results.save(tmp_path, made, [f"y = {1 / 3:.2f}", "naïve – 1", ""], draw)
    assert (tmp_path / "some.txt").read_bytes().decode() == "y = 0.33\nnaïve – 1\n\n"
    saved = results.load("some", tmp_path)
    assert saved == results.as_saved(made)
    assert saved["results"] == {"y": 1 / 3, "curve": [0, 1, 2], "named": {"a": [1, 0.5]}, "yes": True, "none": None}
    assert saved["experiment"] == "some" and saved["arguments"] == {"data": "text", "steps": 10}
    assert saved["seeds"] == [0, 1, 2] and saved["corpus"] == "abc"
    assert saved["kinds"] == {"*": "exact"} and saved["takes"] == ["jobs"]
    assert {"python", "numpy", "processor", "cores", "threads", "device"} <= set(saved["environment"])
    assert (tmp_path / "some.png").read_bytes().startswith(b"\x89PNG")
    assert files(tmp_path) == ["some.json", "some.png", "some.txt"]


def test_a_figure_drawn_again_from_the_numbers_is_the_same_file(tmp_path):
    results.save(tmp_path, record({"curve": [1.0, 4.0, 9.0]}), [], draw)
    first = (tmp_path / "some.png").read_bytes()
    assert results.png(draw(results.load("some", tmp_path)["results"])) == first


class Ended(BaseException):
    """The end of a process, in the middle of what it was doing."""


@pytest.mark.parametrize("last", range(8))
def test_an_end_at_any_moment_leaves_no_text_or_figure_beside_other_numbers(tmp_path, monkeypatch, last):
    """Each rename and each removal once is the last thing that the process did."""
    done = []

    def counted(function):
        def call(*arguments, **options):
            if len(done) == last:
                raise Ended
            done.append(function)
            return function(*arguments, **options)

        return call

    results.save(tmp_path, record({"curve": [1, 2]}), ["old"], lambda found: draw({"curve": [1]}))
    old = results.png(draw({"curve": [1]}))
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", counted(os.replace))
        patch.setattr(os, "unlink", counted(os.unlink))
        patch.setattr(Path, "unlink", counted(Path.unlink))
        with suppress(Ended):
            results.save(tmp_path, record({"curve": [3, 4]}), ["new"], draw)
    assert len(done) == last or last > 5
    is_new = results.load("some", tmp_path)["results"] == {"curve": [3, 4]}
    there = {path.suffix: path.read_bytes() for path in tmp_path.glob("some.*")}
    if is_new:
        assert there.get(".txt") in (None, b"new\n") and there.get(".png") in (
            None,
            results.png(draw({"curve": [3, 4]})),
        )
    else:
        assert there.get(".txt") in (None, b"old\n") and there.get(".png") in (None, old)


def test_numbers_that_are_no_numbers_leave_what_was_there(tmp_path):
    (tmp_path / "some.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ValueError, match="not JSON compliant"):
        results.save(tmp_path, record({"loss": float("nan")}), [])
    assert files(tmp_path) == ["some.json"] and (tmp_path / "some.json").read_text(encoding="utf-8") == "{}"


def test_a_figure_that_cannot_be_drawn_loses_nothing_else(tmp_path):
    results.save(tmp_path, record({"curve": [1]}), ["old"], draw)
    with pytest.raises(KeyError, match="curve"):
        results.save(tmp_path, record({"loss": 1.0}), ["new"], draw)
    assert results.load("some", tmp_path)["results"] == {"loss": 1.0}
    assert (tmp_path / "some.txt").read_text(encoding="utf-8") == "new\n"
    assert files(tmp_path) == ["some.json", "some.txt"]


@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_set_and_no_part_of_the_new(tmp_path, monkeypatch, function):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    results.save(tmp_path, record({"curve": [1]}), ["old"], draw)
    monkeypatch.setattr(os, function, full)
    with pytest.raises(OSError, match="No space left"):
        results.save(tmp_path, record({"curve": [2]}), ["new"], draw)
    assert results.load("some", tmp_path)["results"] == {"curve": [1]}
    # A rename needs no space: what it fails for can only be found out after the text and figure are gone.
    assert files(tmp_path) == ["some.json", "some.png", "some.txt"] if function == "fsync" else ["some.json"]


def test_what_a_killed_process_was_writing_is_removed_by_the_next(tmp_path):
    for name, age in (("old", 120), ("new", 0)):
        path = tmp_path / f".some.{name}.aside"
        path.touch()
        os.utime(path, (path.stat().st_mtime - age,) * 2)
    (tmp_path / ".some_other.old.aside").touch()
    results.save(tmp_path, record({"curve": [1]}), [])
    assert files(tmp_path) == [".some.new.aside", ".some_other.old.aside", "some.json", "some.txt"]


def test_saved_files_can_be_read_by_others(tmp_path):
    previous = os.umask(0o022)
    try:
        results.write_whole(tmp_path / "some.txt", b"new")
    finally:
        os.umask(previous)
    assert stat.S_IMODE((tmp_path / "some.txt").stat().st_mode) == 0o644


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(UserError, match="can't write in"):
        results.check_writable(tmp_path / "file" / "below")
    results.check_writable(tmp_path / "new" / "below")
    assert files(tmp_path) == ["file"]


@pytest.mark.parametrize(
    "content", [b"", b"{", b"nothing", b"[]", b"5", b"{}", b'{"experiment": 1}', b"\xff", b"[" * 9999]
)
def test_a_broken_results_file_is_named(tmp_path, content):
    (tmp_path / "some.json").write_bytes(content)
    with pytest.raises(UserError, match=r"some\.json is not a results file \(.*\): run some again"):
        results.load("some", tmp_path)
    with pytest.raises(UserError, match=r"other\.json is not there: run python -m beyond\.other first"):
        results.load("other", tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"takes": None},
        {"kinds": {"*": 3}},
        {"kinds": {"*": ""}},
        {"environment": {}},
        {"experiment": "other"},
        {"corpus": 1},
        {"seconds": "1"},
        {"results": []},
        {"environment": {"cores": "two"}},
    ],
)
def test_a_record_of_another_form_is_named(tmp_path, change):
    made = record({"y": 1})
    results.save(tmp_path, made, [])
    assert results.load("some", tmp_path) == json.loads(json.dumps(made))
    (tmp_path / "some.json").write_text(json.dumps(made | change), encoding="utf-8")
    with pytest.raises(UserError, match=r"some\.json is not a results file"):
        results.load("some", tmp_path)


def test_a_pipe_or_a_folder_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "some.json")
    (tmp_path / "other.json").mkdir()
    for name in "some", "other":
        with pytest.raises(UserError, match=rf"can't read .*{name}\.json: it is not a file"):
            results.load(name, tmp_path)


def test_a_file_with_the_longest_name_can_be_written(tmp_path):
    path = tmp_path / ("é" * 127)  # 254 bytes
    results.check_file(path)
    results.write_whole(path, b"new")
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize(
    "value",
    [{}, [], {"a": []}, [[]], {"a": {"b": [1, 2.5, "é\n[ x"]}, "c": [[1], {"d": None}]}, "x", 3, [True, None]],
)
def test_readable_json_is_json(value):
    assert json.loads(results.to_json(value)) == value


def test_a_list_of_numbers_takes_one_line():
    assert results.to_json({"a": [1, 2], "b": [[1], [2]]}) == '{\n "a": [1, 2],\n "b": [\n  [1],\n  [2]\n ]\n}\n'


def test_diverged_trainings_are_found_wherever_they_are():
    found = {"a": {"b": [{"x": 1}, {"diverged_at_step": 7}]}, "c": {"diverged_at_step": 3}, "d": "diverged_at_step"}
    assert [run["diverged_at_step"] for run in results.diverged(found)] == [7, 3]


# Work in progress


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A script that imports another one, and work in progress beside them."""
    (tmp_path / "some.py").write_text("import other\n", encoding="utf-8")
    (tmp_path / "other.py").write_text("import numpy\nfrom lab import script\n", encoding="utf-8")
    monkeypatch.setattr(sources, "ROOT", tmp_path)
    monkeypatch.setattr(results, "WORK", tmp_path / "work")
    return tmp_path


def work(**arguments):
    sources._imported.cache_clear()
    sources._sum_of_file.cache_clear()
    return results.Work("some", "some", Namespace(**arguments), {"outputs", "jobs"})


def test_work_is_that_of_the_arguments_and_the_code(tree):
    first = work(steps=1, outputs=None, jobs=None).folder
    assert first.parent == tree / "work" / "some"
    assert work(steps=1, outputs=Path("there"), jobs=3).folder == first
    assert work(steps=2, outputs=None, jobs=None).folder != first
    (tree / "unrelated.py").touch()
    assert work(steps=1, outputs=None, jobs=None).folder == first
    (tree / "other.py").write_text("import numpy\nfrom lab import script\n# edited\n", encoding="utf-8")
    assert work(steps=1, outputs=None, jobs=None).folder != first


def test_work_is_held_by_one_command_at_a_time(tree, capsys):
    first, second, other = work(), work(), work(steps=1)
    assert first.hold() == first.hold()
    with pytest.raises(UserError, match="the same command is running already"):
        second.hold()
    assert other.hold() != first.token
    assert (first.folder / "lock").read_text(encoding="utf-8") == first.token
    (first.folder / "training").mkdir()
    (first.folder / "training" / "progress.json").touch()
    first.release()
    assert (first.folder / "lock").read_text(encoding="utf-8") == ""
    capsys.readouterr()
    assert second.hold() != first.token
    assert capsys.readouterr().err == ""  # other work lies there, but this goes on
    second.release()
    other.release()


def test_work_goes_away_when_it_is_cleared_and_other_work_stays(tree):
    one, other = work(), work(steps=1)
    for each in one, other:
        each.hold()
        (each.folder / "training").mkdir()
    one.clear()
    one.release()
    assert [path.name for path in (tree / "work" / "some").iterdir()] == [other.folder.name]
    other.clear()
    other.release()
    assert not (tree / "work" / "some").exists()


def test_commands_that_end_together_disturb_each_other_with_nothing_but_a_refusal(tree):
    """Threads stand for processes: a lock is of the open file, not of the process."""
    refused, held, errors = [], [], []

    def command():
        for _ in range(40):
            one = work()
            try:
                one.hold()
                held.append(one.folder.stat())
                one.clear()
            except UserError as error:
                refused.append(str(error))
            except BaseException as error:
                errors.append(error)
            finally:
                one.release()

    threads = [threading.Thread(target=command) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and held and len(held) + len(refused) == 160
    assert {line.split(":")[0] for line in refused} <= {
        "the same command is running already",
        "the same command is ending just now",
    }
    assert not (tree / "work" / "some").exists()


def test_work_that_cannot_be_kept_is_one_line(tree):
    (tree / "work").touch()
    with pytest.raises(UserError, match=r"can't keep work in progress in .*: Not a directory"):
        work().hold()


# What a script imports


@pytest.mark.parametrize("name", ["bptt", "beyond.decay", "vanishing", "corpus", "ngram", "kneser_ney"])
def test_a_numpy_script_imports_neither_torch_nor_matplotlib(name):
    code = f"import sys, {name}; print([module for module in ('torch', 'matplotlib') if module in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout == "[]\n", done.stderr
