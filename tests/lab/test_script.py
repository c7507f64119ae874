"""Arguments, errors, exit statuses, and what a script does with what it measured (lab/script.py)."""

import argparse
import io
import os
import shutil
import signal
import subprocess
import sys
from importlib import import_module
from types import SimpleNamespace

import pytest
from commands import ROOT, assert_refused

from lab import plots, results, script, sources
from lab.errors import SAVED, Diverged, UserError


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "", "ten", "1e3", "١٢x", "1000000001", "9" * 31, "9" * 5000])
def test_a_count_has_to_be_a_whole_number_of_at_least_one(text):
    with pytest.raises(argparse.ArgumentTypeError, match="at least 1"):
        script.positive_int(text)


@pytest.mark.parametrize("text", ["-1", "1.5", "", "x", str(2**32), "9" * 5000])
def test_a_seed_has_to_be_a_whole_number_that_a_generator_takes(text):
    assert script.seed("0") == 0
    with pytest.raises(argparse.ArgumentTypeError, match="0 to 4,294,967,295, not '"):
        script.seed(text)


def test_seeds_end_where_torch_begins_again():
    torch = pytest.importorskip("torch")

    def drawn(seed):
        return torch.rand(3, generator=torch.Generator().manual_seed(seed)).tolist()

    assert script.seed(str(script.SEEDS - 1)) == script.SEEDS - 1
    assert drawn(script.SEEDS) == drawn(0) != drawn(script.SEEDS - 1)


@pytest.mark.parametrize("module", ["beyond.bidirectional", "beyond.gates_trained"])
def test_no_seed_s_test_stream_is_another_one_s_training_stream(module):
    one = import_module(module)
    assert {one.TEST_SEED + seed for seed in one.SEEDS}.isdisjoint(one.SEEDS)


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "-inf", "", "x", "1e39"])
def test_a_size_has_to_be_a_finite_number_above_zero(text):
    with pytest.raises(argparse.ArgumentTypeError, match="above 0"):
        script.positive_float(text)


@pytest.mark.parametrize("text", ["-1", "nan", "inf", "x"])
def test_a_temperature_may_be_zero_but_not_negative(text):
    assert script.non_negative_float("0") == 0
    with pytest.raises(argparse.ArgumentTypeError, match="at least 0"):
        script.non_negative_float(text)


@pytest.mark.parametrize("text", ["nan", "inf", "x", "1e39", "-1e39"])
def test_a_number_of_either_sign_has_to_be_finite(text):
    assert script.finite_float("-2.5") == -2.5
    with pytest.raises(argparse.ArgumentTypeError, match="finite"):
        script.finite_float(text)


def test_a_text_has_to_be_utf_8():
    assert script.utf8("naïve") == "naïve"
    with pytest.raises(argparse.ArgumentTypeError, match="its character 2 isn't"):
        script.utf8("a\udcff")


def parser(**options):
    made = script.Arguments("What\n  it does.", prog="some.py", **options)
    made.add_argument("--steps", type=script.positive_int, default=10, help="training steps")
    made.add_jobs()
    made.add_device()
    return made


def test_changed_names_what_differs_from_the_defaults_and_can_change_a_result(tmp_path):
    assert parser().parse_args([]).changed == {}
    for place in (["--jobs", "1"], ["--cluster", "here:1"]):
        assert parser().parse_args(place).changed == {}
    given = ["--jobs", "1", "--outputs", str(tmp_path), "--steps", "10", "--device", "cpu"]
    assert parser().parse_args(given).changed == {}
    assert parser().parse_args(["--steps", "11", "--device", "cuda"]).changed == {"steps": 11, "device": "cuda"}


def test_other_arguments_never_write_into_the_saved_outputs(capsys):
    assert parser().parse_args(["--outputs", str(SAVED)]).changed == {}
    with pytest.raises(SystemExit, match="2"):
        parser().parse_args(["--outputs", str(SAVED), "--steps", "3"])
    assert "steps changed" in capsys.readouterr().err
    assert parser(saves=False).parse_args(["--outputs", str(SAVED), "--steps", "3"]).steps == 3


@pytest.mark.parametrize(
    "given, words",
    [
        (["--steps", "-3"], ["--steps", "'-3'"]),
        (["--jobs", "0"], ["--jobs", "'0'"]),
        (["--outputs", ""], ["--outputs", "not empty"]),
        (["--step", "3"], ["--step"]),
        (["more"], ["more"]),
    ],
)
def test_a_wrong_argument_is_one_line_and_status_2(given, words, capsys):
    with pytest.raises(SystemExit, match="2"):
        parser().parse_args(given)
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and error.startswith("some.py: ")
    assert all(word in error for word in words)


def test_help_shows_the_docstring_and_the_defaults(capsys):
    with pytest.raises(SystemExit, match="0"):
        parser().parse_args(["--help"])
    text = capsys.readouterr().out
    assert "What\n  it does." in text and "training steps (default: 10)" in text and "default: None" not in text


def test_numbers_are_counted_in_words():
    assert [script.counted(n, "training") for n in (0, 1, 1000)] == ["0 trainings", "1 training", "1,000 trainings"]


# A command's end


@pytest.fixture
def end_of(monkeypatch):
    """Run a function as a command, on a terminal that knows ASCII: (exit status, output, messages)."""
    handler = signal.getsignal(signal.SIGTERM)

    def run(main):
        monkeypatch.setattr(sys, "argv", ["some.py"])
        for name in "stdout", "stderr":
            monkeypatch.setattr(sys, name, io.TextIOWrapper(io.BytesIO(), encoding="ascii", write_through=True))
        with pytest.raises(SystemExit) as exit:
            script.run_command(main)
        return exit.value.code, *(stream.buffer.getvalue().decode() for stream in (sys.stdout, sys.stderr))

    yield run
    signal.signal(signal.SIGTERM, handler)


@pytest.mark.parametrize(
    "raised, status, said",
    [
        (UserError("no such cell"), 2, "no such cell"),
        (Diverged(17), 1, "step 17"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (KeyboardInterrupt(signal.SIGTERM), 143, "interrupted"),
    ],
)
def test_how_a_run_ends(raised, status, said, end_of):
    def main():
        raise raised

    ended, output, messages = end_of(main)
    assert (ended, output) == (status, "")
    assert messages.startswith("some.py: ") and said in messages and messages.count("\n") == 1


def test_an_error_of_ours_keeps_its_traceback(end_of):
    with pytest.raises(ZeroDivisionError):
        end_of(lambda: 1 // 0)


def test_sigterm_ends_a_command_as_ctrl_c_does(end_of):
    assert end_of(lambda: signal.raise_signal(signal.SIGTERM)) == (143, "", "some.py: interrupted\n")


def test_a_character_that_the_terminal_lacks_is_printed_as_an_escape(end_of):
    assert end_of(lambda: print("café")) == (0, "caf\\xe9\n", "")


# Measuring, telling, saving


def measure(arguments):
    if arguments.steps == 13:
        raise UserError("13 steps are too many")
    runs = [{"seed": 0, "loss": 0.5}, {"seed": 1, "diverged_at_step": 7}][: arguments.steps]
    return {"seeds": [0, 1], "runs": runs, "by_gap": {5: (1, 2)}}


def tell(found):
    yield f"{len(found['runs'])} runs, {found['by_gap']}"


def draw(found):
    figure, axes = plots.subplots()
    axes.plot(found["by_gap"]["5"])
    return figure


def options(parser):
    parser.add_argument("--steps", type=int, default=1)
    parser.add_jobs()


@pytest.fixture
def some(monkeypatch, tmp_path):
    """An experiment that is saved in a folder of its own."""
    monkeypatch.setattr(script, "SAVED", tmp_path / "outputs")
    monkeypatch.setattr(sources, "ROOT", tmp_path)
    (tmp_path / "some.py").touch()
    module = SimpleNamespace(__name__="some", __doc__="Some.", measure=measure, tell=tell, draw=draw, options=options)
    return script.experiment(module)


def test_a_default_run_is_told_and_saved(some, tmp_path, capsys):
    assert script.perform(some, []) == 0
    told = "1 runs, {'5': [1, 2]}\n"
    assert capsys.readouterr() == (told, "")
    saved = tmp_path / "outputs"
    assert sorted(os.listdir(saved)) == ["some.json", "some.png", "some.txt"]
    assert (saved / "some.txt").read_text(encoding="utf-8") == told
    record = results.load("some", saved)
    assert (record["arguments"], record["takes"], record["seeds"]) == ({"steps": 1}, ["jobs", "cluster"], [0, 1])
    # All that was printed and drawn can be made again from what was saved.
    assert list(some.tell(record["results"])) == told.splitlines()
    assert results.png(some.draw(record["results"])) == (saved / "some.png").read_bytes()


def test_a_run_with_other_arguments_is_saved_only_where_it_is_told_to_be(some, tmp_path, capsys):
    assert script.perform(some, ["--steps", "0"]) == 0
    assert not (tmp_path / "outputs").exists()
    assert capsys.readouterr().err.startswith("not saved (steps given)")
    assert script.perform(some, ["--steps", "0", "--outputs", str(tmp_path / "there")]) == 0
    assert (tmp_path / "there" / "some.json").exists() and not (tmp_path / "outputs").exists()


def test_a_training_that_diverged_is_saved_beside_the_others_and_is_status_1(some, tmp_path, capsys):
    assert script.perform(some, ["--steps", "2", "--outputs", str(tmp_path)]) == 1
    assert results.load("some", tmp_path)["results"]["runs"][1] == {"seed": 1, "diverged_at_step": 7}
    assert capsys.readouterr().err == "some.py: 1 training diverged\n"


def test_a_refusal_writes_nothing(some, tmp_path):
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UserError, match="too many"):
        script.perform(some, ["--steps", "13", "--outputs", str(tmp_path / "there")])
    with pytest.raises(UserError, match="can't write in"):
        script.perform(some, ["--outputs", "/dev/null/there"])
    assert sorted(tmp_path.rglob("*")) == before


def test_names_follow_the_module(some):
    def named(module):
        return script.experiment(SimpleNamespace(__name__=module, __doc__="", measure=measure, tell=tell))

    assert (some.name, some.parser().prog) == ("some", "some.py")
    assert (named("beyond.recall").name, named("beyond.recall").parser().prog) == ("recall", "python -m beyond.recall")
    assert named("benchmarks.charlm").name == "benchmark_charlm"
    assert named("bptt").draw is None and named("bptt").kinds == {}


# As a command


PLAIN = '''"""Numbers and a figure."""

import numpy as np

from lab import plots, script

KINDS = {"*": "exact"}


def measure(arguments):
    return {"y": np.arange(3)}


def tell(found):
    yield f"café {found['y']}"


def draw(found):
    figure, axes = plots.subplots()
    axes.plot(found["y"])
    return figure


if __name__ == "__main__":
    script.run(measure, tell, draw)
'''


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Runs a script without torch, in a folder of its own; each time from another one."""
    folder = tmp_path_factory.mktemp("plain")
    shutil.copytree(ROOT / "lab", folder / "lab", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "plain.py").write_text(PLAIN, encoding="utf-8")

    def run(redirected="", cwd=folder, stdout=subprocess.PIPE, **environment):
        shutil.rmtree(folder / "outputs", ignore_errors=True)
        command = f"exec {sys.executable} -W error {folder / 'plain.py'} {redirected}"
        environment = {**os.environ, "PYTHONIOENCODING": "utf-8", **environment}
        how = {"stdout": stdout, "stderr": subprocess.PIPE, "encoding": "utf-8", "cwd": cwd, "env": environment}
        done = subprocess.run(command, shell=True, **how)
        return done, {path.name: path.read_bytes() for path in sorted(folder.glob("outputs/*"))}

    return run


def test_a_command_works_from_another_folder_with_any_backend_and_any_encoding(plain, tmp_path):
    done, saved = plain(cwd=tmp_path, MPLBACKEND="nonsense", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stdout, done.stderr) == (0, "caf\\xe9 [0, 1, 2]\n", "")
    assert list(saved) == ["plain.json", "plain.png", "plain.txt"]
    assert saved["plain.txt"].decode() == "café [0, 1, 2]\n"
    assert not list(tmp_path.iterdir())


def test_a_command_whose_output_is_closed_saves_all_the_same(plain):
    done, saved = plain("<&- >&- 2>&-")
    assert (done.returncode, done.stderr) == (0, "")
    assert list(saved) == ["plain.json", "plain.png", "plain.txt"]


def test_no_file_comes_in_the_place_of_a_stream_that_is_closed():
    """What a library writes to standard error would go into it."""
    code = "import os; from lab import script; script.run_command(lambda: print(os.open(os.devnull, 0)))"
    done = subprocess.run(f"exec {sys.executable} -c '{code}' <&- 2>&-", shell=True, stdout=subprocess.PIPE, cwd=ROOT)
    assert done.returncode == 0 and int(done.stdout) > 2


def test_an_output_that_takes_nothing_is_one_line(plain):
    done, _ = plain(">/dev/full")
    assert (done.returncode, done.stderr) == (
        1,
        "plain.py: No space left on device: what was saved before is still there\n",
    )


def test_a_reader_that_has_gone_is_nothing_to_speak_of(plain):
    reader, writer = os.pipe()
    os.close(reader)
    done, _ = plain(stdout=writer)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_mistake_on_the_command_line(plain):
    done, saved = plain("--steps 3")
    assert_refused(done, "plain.py: unrecognized arguments: --steps 3")
    assert not saved
