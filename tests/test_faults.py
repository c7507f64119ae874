"""Every kind of run ended at every one of its writes: results are whole or absent, never mixed, and can be had again.

ENOSPC and EDQUOT (a full disk, a quota) come at one write and stay, EIO comes once, SIGKILL ends the process. What a
run writes is counted first: files opened for writing, flushes to the disk, folders made, renames, removals.
"""

import errno
import json
import math
import os
import re
import shutil
import signal
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest
import toy_training

import charlm
import corpus
import rerun
from lab import plots, results, script, sources
from lab.errors import UserError
from layers import char_files

NEEDS_SPACE = ("open", "os.mkdir", "fsync")
WRITES = (*NEEDS_SPACE, "os.rename", "os.remove", "os.rmdir")
FAULTS = [errno.ENOSPC, errno.EDQUOT, errno.EIO, "killed"]
SOME = 2  # writes of each kind of run and fault; with -m slow all are tried
spy = None  # what is told of each write of this process: its kind


def listen(event, details):
    """An audit hook, which can't be removed."""
    if (
        spy
        and event in WRITES
        and (event != "open" or (details[2] & (os.O_WRONLY | os.O_RDWR) and details[0] != os.devnull))
    ):
        spy(event)


sys.addaudithook(listen)


@pytest.fixture
def ended(monkeypatch, capsys, in_this_process):
    """Runs a command; with a fault, at its write of that number. Returns its status and the kinds of its writes."""
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["command"])
    monkeypatch.setattr(script, "_say_no_more", lambda: None)  # the test's own output goes on
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (listen("fsync", ()), fsync(file)))

    def run(command, fault=None, at=None):
        global spy
        events, count = [], 0

        def write(kind):
            nonlocal count
            events.append(kind)
            count += 1
            if fault == "killed" and count > at:
                os.kill(os.getpid(), signal.SIGKILL)
            if count == at + 1 if fault == errno.EIO else fault and count > at and kind in NEEDS_SPACE:
                raise OSError(fault, os.strerror(fault))

        def call():
            global spy
            spy = write
            try:
                script.run_command(command)
            except SystemExit as exit:
                return exit.code
            finally:
                spy = None

        if fault != "killed":
            status = call()
            error = capsys.readouterr().err
            assert "Traceback" not in error and len(error.splitlines()) < 20, error
            return status, events
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of threads, which only wait
            child = os.fork()
        if child == 0:
            os._exit(call() or 0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        return None, events

    yield run


def set_of(folder, name):
    """The results in a saved set, its text and its figure."""
    record = folder / f"{name}.json"
    found = json.loads(record.read_bytes())["results"] if record.exists() else None
    rest = [(folder / f"{name}{suffix}") for suffix in (".txt", ".png")]
    return [found, *(path.read_bytes() if path.exists() else None for path in rest)]


def assert_whole_or_absent(found, old, new):
    assert found[0] in (old[0], new[0])
    of = old if found[0] == old[0] else new
    assert all(part in (None, whole) for part, whole in zip(found[1:], of[1:], strict=True))


@pytest.fixture(params=[SOME, pytest.param(None, marks=pytest.mark.slow)])
def most(request):
    """How many of the writes are tried, at even distances; None: all."""
    return request.param


def end_at_every_write(ended, command, prepare, state, tmp_path, fault, most):
    """``prepare`` puts what was there before, ``state`` looks at what is there."""
    prepare()
    old = state()
    status, events = ended(command)
    new = state()
    assert status == 0 and old != new
    writes = [at for at, kind in enumerate(events) if fault in FAULTS[2:] or kind in NEEDS_SPACE]
    apart = math.ceil(len(writes) / (most or len(writes)))
    for at in writes[FAULTS.index(fault) % apart :: apart]:
        shutil.rmtree(results.WORK, ignore_errors=True)
        prepare()
        status, _ = ended(command, fault, at)
        found = state()
        yield found, old, new
        if status == 0:  # what failed wasn't needed
            assert found == new
        status, _ = ended(command)
        assert (status, state()) == (0, new), at
        assert not results.WORK.exists() or not list(results.WORK.iterdir())
        if fault != "killed":
            assert not list(tmp_path.rglob("*.aside"))


@pytest.fixture
def plain(monkeypatch, tmp_path):
    """An experiment that computes nothing and has a figure."""

    def draw(found):
        figure, axes = plots.subplots(size=(1, 1))
        axes.plot(found["curve"])
        return figure

    def options(parser):
        parser.add_argument("--last", type=int, default=1)

    monkeypatch.setattr(sources, "ROOT", tmp_path)
    (tmp_path / "some.py").touch()
    parts = {"measure": lambda arguments: {"curve": [0, arguments.last]}, "tell": lambda found: [str(found["curve"])]}
    return script.experiment(SimpleNamespace(__name__="some", __doc__="", draw=draw, options=options, **parts))


@pytest.mark.parametrize("fault", FAULTS)
def test_a_script_with_a_figure(fault, most, ended, plain, tmp_path):
    out = tmp_path / "out"

    def prepare():
        shutil.rmtree(out, ignore_errors=True)
        script.perform(plain, ["--outputs", str(out), "--last", "2"])

    def command():
        return script.perform(plain, ["--outputs", str(out)])

    for each in end_at_every_write(ended, command, prepare, lambda: set_of(out, "some"), tmp_path, fault, most):
        assert_whole_or_absent(*each)


@pytest.mark.parametrize("fault", FAULTS)
def test_many_trainings(fault, most, ended, tmp_path, monkeypatch):
    out, toy = tmp_path / "out", script.experiment(toy_training)
    monkeypatch.setattr(sources, "ROOT", Path(toy_training.__file__).parent)
    script.perform(toy, ["--outputs", str(tmp_path / "old"), "--steps", "1"])

    def prepare():
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(tmp_path / "old", out)

    def command():
        return script.perform(toy, ["--outputs", str(out), "--steps", "2"])

    for each in end_at_every_write(ended, command, prepare, lambda: set_of(out, "toy_training"), tmp_path, fault, most):
        assert_whole_or_absent(*each)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_model_that_is_saved(fault, most, ended, tmp_path, write_corpus):
    data = write_corpus("A cat sat on a mat. " * 20, "A rat sat. " * 5)
    out, model, one, text = tmp_path / "out", tmp_path / "model.pt", script.experiment(charlm), corpus.load(data)
    asked = ["--outputs", str(out), "--data", str(data), "--hidden", "2", "--save", str(model), "--sample", "3"]
    script.perform(one, ["RNN", "0", "1", *asked])
    before = {path: path.read_bytes() for path in (model, *out.iterdir())}

    def prepare():
        for path, content in before.items():
            path.write_bytes(content)

    def state():
        weights, settings = char_files.load(model, text)
        found, *rest = set_of(out, "charlm")
        for run in found["runs"]:
            del run["seconds"]
        return settings.seed, weights.linear.bias.tolist(), found, *[part and part.split(b" s;")[-1] for part in rest]

    def command():
        return script.perform(one, ["RNN", "1", "1", *asked])

    for found, old, new in end_at_every_write(ended, command, prepare, state, tmp_path, fault, most):
        assert found[:2] in (old[:2], new[:2])
        assert_whole_or_absent(found[2:], old[2:], new[2:])


@pytest.mark.parametrize("mode", ["--report", pytest.param("--redraw", marks=pytest.mark.slow)])
@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_made_from_results(fault, most, mode, ended, tmp_path):
    out = tmp_path / "out"
    names = ["gates.json", "gates.txt", "gates.png", "README.md", "POST.md", "COURSE.md", "1-gradients-through-time.md"]

    def prepare():
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        for name in names:
            (out / name).write_bytes(b"old")
        for suffix in ".json", ".txt" if mode == "--report" else ".json":
            shutil.copy(results.SAVED / f"gates{suffix}", out)

    def state():
        return [(out / name).read_bytes() for name in names]

    def command():
        return rerun.main([mode, "--outputs", str(out)])

    for found, old, new in end_at_every_write(ended, command, prepare, state, tmp_path, fault, most):
        assert all(part in either for part, *either in zip(found, old, new, strict=True))


@pytest.mark.parametrize("fault", FAULTS)
def test_a_text_that_is_made(fault, most, ended, tmp_path):
    """Three files: where a kill came between them, one is missing, and whoever reads them is told."""
    text, own = tmp_path / "text", tmp_path / "posts"
    own.mkdir()
    for name in "one", "two":
        (own / f"{name}.md").write_text(f"The post {name}, as it was.\n", encoding="utf-8")

    def prepare():
        shutil.rmtree(text, ignore_errors=True)
        corpus.write(text, "old train", "old validation")

    def state():
        try:
            return vars(corpus.load(text))
        except UserError as error:
            return str(error)

    def command():
        asked = ["--posts", str(own), "--held-out", "two", "--into", str(text), "--outputs", str(tmp_path / "out")]
        return script.perform(script.experiment(corpus), asked)

    for found, old, new in end_at_every_write(ended, command, prepare, state, tmp_path, fault, most):
        assert found in (old, new) or re.search("can't read .*blog_val.txt: No such file", str(found))
