"""What the README and the docstrings say is what the commands do and what the saved outputs hold."""

import ast
import re
import shlex
from importlib import import_module

import pytest
from commands import ROOT, run

import rerun
from lab import results

README = (ROOT / "README.md").read_text(encoding="utf-8")
SCRIPTS = sorted(path.stem for path in ROOT.glob("*.py"))
ROWS = dict(re.findall(r"^\| `(\w+)\.py` \| (.*) \|$", README, re.MULTILINE))
BENCHMARKS = re.findall(r"^\| `benchmarks/(\w+)\.py` \|.*\| `([^`]+)` \|$", README, re.MULTILINE)
SLACK = 1.5  # between a time that is told and the one that was measured: machines are never quite free
START_UP = 3.0  # seconds: importing torch and drawing the figure are told, but happen outside what is measured


def saved_text(name):
    return (ROOT / "outputs" / f"{name}.txt").read_text(encoding="utf-8")


def docstring(name):
    return ast.get_docstring(ast.parse((ROOT / f"{name}.py").read_text(encoding="utf-8")))


def seconds(text):
    """``0.3 s``, ``12 min`` or ``1.5 h`` as seconds."""
    number, unit = re.search(r"([\d.]+) (s|min|h)\b", text).groups()
    return float(number) * {"s": 1, "min": 60, "h": 3600}[unit]


def assert_time_is_true(name, text):
    record = results.load(name)
    runs = [run.get("seconds", 0) for run in record["results"].get("runs", []) if isinstance(run, dict)]
    # A sweep that was interrupted took longer than its last command: as long as its trainings, shared by the cores.
    measured = max(record["seconds"], sum(runs) / record["environment"]["cores"])
    told = seconds(text)
    assert measured / SLACK <= told <= measured * SLACK + START_UP, f"{name}: {text} told, {measured:.1f} s measured"


def command_after(marker):
    return re.search(rf"<!-- {marker} -->\n```sh\n(.*)\n```", README).group(1)


def test_two_commands_do_all_the_set_up():
    set_up = "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt"
    assert command_after("main command") == f"{set_up} && .venv/bin/python rerun.py"
    assert command_after("test command") == f"{set_up} '.[test]' && .venv/bin/pytest"


def test_the_table_has_a_row_for_each_experiment_and_for_nothing_else():
    assert list(ROWS) == list(rerun.EXPERIMENTS)


@pytest.mark.parametrize("name", rerun.EXPERIMENTS)
def test_a_row_of_the_table_is_true(name):
    _question, command, time, headline = ROWS[name].split(" | ")
    assert command == f"`python {name}.py`"
    assert_time_is_true(name, time)
    quotes = re.findall(r"`([^`]+)`", headline)
    assert quotes, "the headline quotes nothing"
    for quote in quotes:
        assert quote in saved_text(name), f"{quote!r} is not in outputs/{name}.txt"


@pytest.mark.parametrize("name, quote", BENCHMARKS)
def test_a_benchmark_s_result_was_printed_by_it(name, quote):
    assert quote in saved_text(f"benchmark_{name}")


@pytest.mark.parametrize("name", rerun.EXPERIMENTS)
def test_a_docstring_quotes_what_was_printed(name):
    """Under a line that starts with "Prints", the indented lines are consecutive lines of outputs/NAME.txt."""
    quoted = re.search(r"^Prints.*:\n\n((?:    .*\n|\n)+)", docstring(name) + "\n", re.MULTILINE)
    assert quoted, f"{name}.py doesn't say what it prints"
    lines = "\n".join(line[4:] for line in quoted.group(1).strip("\n").splitlines())
    assert f"\n{lines}\n" in f"\n{saved_text(name)}"


@pytest.mark.parametrize("name", rerun.EXPERIMENTS)
def test_a_docstring_says_the_command_and_a_true_time(name):
    told = re.search(rf"^    python {name}\.py +(.*)$", docstring(name), re.MULTILINE)
    assert told, f"{name}.py doesn't say its command and time"
    assert_time_is_true(name, told.group(1))


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_script_has_help_and_imports_without_running(name, capsys):
    module = import_module(name)
    assert capsys.readouterr().out == ""
    if hasattr(module, "main"):
        with pytest.raises(SystemExit, match="0"):
            module.main(["--help"])
        assert docstring(name).splitlines()[0] in capsys.readouterr().out


def test_commands_that_the_readme_shows_are_accepted():
    """Each ``python SCRIPT …`` is given to the script with --help added, after its arguments have been understood."""
    commands = re.findall(r"^(?:\.venv/bin/)?python (\w+\.py.*)$", README, re.MULTILINE)
    for command in commands:
        done = run(*shlex.split(command.split("#")[0]), "--help")
        assert done.returncode == 0, done.stderr
