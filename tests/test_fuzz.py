"""Command lines at random, made from what each parser takes: no traceback, no hang, nothing written on a refusal.

    pytest tests/test_fuzz.py               some lines of each command
    pytest tests/test_fuzz.py -m slow       many times as many

Nothing is trained: a command that gets as far as its trainings, or computes for a moment, has accepted its arguments.
"""

import argparse
import functools
import os
import random
import shutil
import signal
import sys
from importlib import import_module
from types import SimpleNamespace

import pytest

import charlm
import corpus
import rerun
from lab import results, script, trainings
from layers import char_files, char_rnn
from reruns import catalogue, machine, telling

LINES, MANY = 3, 60  # for each command
MOMENT = 0.1  # seconds of computing that are enough; a tenth of it lies between two looks at what goes on
PATIENCE = 200  # looks
SCRIPTS = [entry.module for entry in catalogue.entries().values()]
COMMANDS = [*SCRIPTS, "charlm", "seq2seq", "rerun"]

NUMBERS = ["0", "1", "2", "3", "5", "17", "1000000", "1000000000", "4294967295", "4294967296", "-1", "1.5", "1e-3"]
NUMBERS += ["1e39", "-1e39", "1e-400", "nan", "inf", "1_0", "5-20", "9" * 31]
WORDS = ["", " ", "-", "--", "x", "é", "😀", "١٢", "\udcff", "a,b", "x\ny", "9" * 5000, "x" * 300, "RNN", "GRU"]
PATHS = ["text", "nowhere", "nowhere/below", "file", "file/below", "pipe", "loop", "model.pt", "damaged.pt", "saved"]
PATHS = [*(f"{{tmp}}/{name}" for name in PATHS), "{tmp}/new", "/dev/null", "/dev/zero", "/proc", "/proc/x", ".", "/"]
PLACES = ["cpu", "cuda", "cuda:9", "mps", "meta", "abacus", "tcp://127.0.0.1:9", "127.0.0.1:9", "tls://127.0.0.1:9"]
PLACES += [":::"]
ANY = NUMBERS + WORDS + PATHS + PLACES


class Accepted(BaseException):
    """The command has begun to compute."""


@pytest.fixture(scope="module")
def things(tmp_path_factory):
    """What paths can name: a text, a model, saved results, and what is none of these."""
    folder = tmp_path_factory.mktemp("things")
    shutil.copytree(corpus.DATA, folder / "data")
    (folder / "text").mkdir()
    (folder / "text" / corpus.TRAIN).write_text("A cat sat on a mat. " * 40, encoding="utf-8")
    (folder / "text" / corpus.VALIDATION).write_text("A rat sat on a cat. " * 10, encoding="utf-8")
    text = corpus.load(folder / "text")
    settings = {"cell": "GRU", "seed": 0, "hidden": 4, "forget_bias": None}
    model = char_rnn.build(SimpleNamespace(**settings), text.size)
    weights = {"step": 1, "model": model.state_dict()}
    (folder / "model.pt").write_bytes(char_files.pack(settings, text, weights))
    (folder / "damaged.pt").write_bytes(b"not a model")
    (folder / "file").touch()
    (folder / "loop").symlink_to("loop")
    os.mkfifo(folder / "pipe")
    (folder / "saved").mkdir()
    for name in "bptt", "gates":
        for path in results.SAVED.glob(f"{name}.*"):
            shutil.copy(path, folder / "saved")
    return folder


@pytest.fixture
def fuzzed(things, monkeypatch):
    """Runs a command line; returns its status, or None if it was accepted."""

    def accept(*_, **__):
        raise Accepted

    waited = []  # the frame of a file's reading, for each signal that has found it there

    def stop(*_):
        """Where our own code runs: a module half imported, or a library half told, would stay so for other tests."""
        frame = sys._getframe(1)
        if "pathlib" in frame.f_code.co_filename:
            waited[:] = [seen for seen in waited if seen is frame] + [frame]
            assert len(waited) < PATIENCE, "waits for a file"
        name = frame.f_code.co_filename
        ours = name.startswith(str(script.ROOT)) and name != __file__
        while ours and (frame := frame.f_back):
            ours = "importlib" not in frame.f_code.co_filename
        if ours:
            raise Accepted

    monkeypatch.setattr(trainings, "run", accept)
    monkeypatch.setattr(telling, "rerun", accept)
    monkeypatch.setattr(machine, "check", accept)
    monkeypatch.setattr(corpus, "DATA", things / "data")
    monkeypatch.chdir(things)
    for module in script, rerun:
        monkeypatch.setattr(module, "SAVED", things / "saved")
    before = signal.signal(signal.SIGALRM, stop)
    monkeypatch.setattr(signal, "signal", lambda *_: None)

    def run(module, arguments):
        monkeypatch.setattr(sys, "argv", [module])
        main = rerun.main if module == "rerun" else lambda given: script.perform(script.experiment(loaded), given)
        loaded = None if module == "rerun" else import_module(module)
        try:
            signal.setitimer(signal.ITIMER_REAL, MOMENT, MOMENT / 10)
            script.run_command(lambda: main(arguments))
        except SystemExit as ended:
            return ended.code
        except Accepted:
            return None
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            waited.clear()

    yield run
    monkeypatch.undo()
    signal.signal(signal.SIGALRM, before)


def actions_of(module):
    if module != "rerun":
        return script.experiment(import_module(module)).parser()._actions
    made = []
    with pytest.MonkeyPatch.context() as patched, pytest.raises(SystemExit):
        patched.setattr(script.Arguments, "parse_args", lambda parser, _: made.append(parser) or sys.exit())
        rerun.parse([], catalogue.entries())
    return made[0]._actions


def line(actions, draws):
    """Some of a command's arguments, each with a value: mostly one that could be meant."""
    positional = [action for action in actions if not action.option_strings]
    options = [action for action in actions if action.option_strings and not isinstance(action, argparse._HelpAction)]
    chosen = positional[: draws.choice([0, len(positional), len(positional), 3])]
    chosen += draws.sample(options, min(len(options), draws.choice([0, 1, 1, 2, 2, 3, 4])))
    words = []
    for action in chosen:
        words += action.option_strings[:1]
        if action.nargs == 0:
            continue
        likely = [*map(str, action.choices or []), *SCRIPTS[:2] * (action.dest == "names")]
        likely = likely or {"device": PLACES, "cluster": PLACES}.get(action.dest)
        likely = likely or (PATHS if action.metavar in ("DIR", "FILE") else NUMBERS)
        for _ in range(draws.choice([1, 1, 1, 1, 2]) if action.nargs in ("*", "+") else 1):
            good = [word for word in likely if is_taken(word, action.type or str)] or likely
            words.append(draws.choice(draws.choice([good, good, good, good, likely, *[ANY] * (draws.random() < 0.2)])))
    return words


@functools.cache
def is_taken(word, kind):
    try:
        kind(word)
    except (ValueError, argparse.ArgumentTypeError):
        return False
    return True


def tree(folder):
    return {path: path.lstat().st_mtime_ns for path in folder.rglob("*")}


def check(module, count, seed, fuzzed, things, capsys):
    actions, draws, accepted = actions_of(module), random.Random(f"{module} {seed}"), 0
    for _ in range(count):
        arguments = [word.replace("{tmp}", str(things)) for word in line(actions, draws)]
        before = tree(things)
        try:
            status = fuzzed(module, arguments)
        except Exception as error:
            raise AssertionError(f"{module} {arguments}") from error
        out, error = capsys.readouterr()
        about = f"{module} {arguments}: {status} {error}"
        assert status in (None, 0, 1, 2) and "Traceback" not in error, about
        if status == 2:
            assert (out, error.count("\n")) == ("", 1) and len(error) < 1000, about
            assert tree(things) == before and not list(results.WORK.rglob("*")), about
        else:
            accepted += 1
        for made in tree(things).keys() - before.keys():
            shutil.rmtree(made) if made.is_dir() else made.unlink(missing_ok=True)
    return accepted


@pytest.mark.parametrize("module", COMMANDS)
def test_no_command_line_ends_in_a_traceback_or_leaves_something(module, fuzzed, things, capsys):
    check(module, LINES, 0, fuzzed, things, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("module", COMMANDS)
def test_nor_do_many(module, fuzzed, things, capsys):
    assert check(module, MANY, 1, fuzzed, things, capsys) > 0


def test_arguments_are_refused_and_accepted(fuzzed, things, capsys):
    """The fuzzer itself: it tells one from the other."""
    assert fuzzed("charlm", ["GRU", "0", "--data", str(things / "text")]) is None
    assert fuzzed("charlm", ["GRU", "--data", str(things / "text")]) == 2
    assert fuzzed("charlm", ["--load", str(things / "model.pt"), "--data", str(things / "text")]) == 0


@pytest.mark.slow
def test_a_wait_for_a_pipe_is_told_from_computing(fuzzed, things, monkeypatch):
    """However busy the machine is: the moment begins with the wait."""

    def read(_):
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.01)
        (things / "pipe").read_bytes()

    monkeypatch.setattr(sys.modules[__name__], "MOMENT", 600)
    monkeypatch.setattr(charlm, "measure", read)
    with pytest.raises(AssertionError, match="waits for a file"):
        fuzzed("charlm", ["GRU", "0"])
