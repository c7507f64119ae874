"""Arguments, errors and exit statuses (lab/script.py)."""

import argparse
import io
import signal
import sys

import pytest

from lab import script


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "", "ten", "1e3", "١٢x"])
def test_a_count_has_to_be_a_whole_number_of_at_least_one(text):
    with pytest.raises(argparse.ArgumentTypeError, match="at least 1"):
        script.positive_int(text)


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "-inf", "", "x"])
def test_a_size_has_to_be_a_finite_number_above_zero(text):
    with pytest.raises(argparse.ArgumentTypeError, match="above 0"):
        script.positive_float(text)


@pytest.mark.parametrize("text", ["-1", "nan", "inf", "x"])
def test_a_temperature_may_be_zero_but_not_negative(text):
    assert script.non_negative_float("0") == 0
    with pytest.raises(argparse.ArgumentTypeError, match="at least 0"):
        script.non_negative_float(text)


def test_changed_names_what_differs_from_the_defaults_and_can_change_a_result(tmp_path):
    parser = script.Arguments("What it does.")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--steps", type=int, default=10)
    assert parser.parse_args([]).changed == {}
    assert parser.parse_args(["--jobs", "1", "--outputs", str(tmp_path), "--steps", "10"]).changed == {}
    assert parser.parse_args(["--steps", "11"]).changed == {"steps": 11}


def test_other_arguments_never_write_into_the_saved_outputs(capsys):
    parser = script.Arguments("What it does.")
    parser.add_argument("--steps", type=int, default=10)
    assert parser.parse_args(["--outputs", str(script.SAVED)]).changed == {}
    with pytest.raises(SystemExit, match="2"):
        parser.parse_args(["--outputs", str(script.SAVED), "--steps", "3"])
    assert "steps changed" in capsys.readouterr().err


def test_a_wrong_argument_is_one_line_and_status_2(capsys):
    parser = script.Arguments("What it does.", prog="some.py")
    parser.add_argument("--steps", type=script.positive_int)
    with pytest.raises(SystemExit, match="2"):
        parser.parse_args(["--steps", "-3"])
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and error.startswith("some.py: ") and "--steps" in error and "'-3'" in error


def test_help_shows_the_docstring_and_the_defaults(capsys):
    parser = script.Arguments("What\n  it does.")
    parser.add_argument("--steps", type=int, default=10, help="training steps")
    with pytest.raises(SystemExit, match="0"):
        parser.parse_args(["--help"])
    text = capsys.readouterr().out
    assert "What\n  it does." in text and "training steps (default: 10)" in text and "default: None" not in text


@pytest.mark.parametrize(
    "raised, status, said",
    [
        (script.UserError("no such cell"), 2, "no such cell"),
        (script.Diverged(17), 1, "step 17"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (KeyboardInterrupt(signal.SIGTERM), 143, "interrupted"),
    ],
)
def test_how_a_run_ends(raised, status, said, capsys, monkeypatch):
    def main():
        raise raised

    monkeypatch.setattr(sys, "argv", ["some.py"])
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    monkeypatch.setattr(sys, "stderr", errors := io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    with pytest.raises(SystemExit) as exit:
        script.run(main)
    errors.flush()
    text = errors.buffer.getvalue().decode()
    assert exit.value.code == status
    assert said in text and text.count("\n") == 1 and "Traceback" not in text


def test_an_error_of_ours_keeps_its_traceback(monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    with pytest.raises(ZeroDivisionError):
        script.run(lambda: 1 // 0)


def test_a_character_that_the_terminal_lacks_is_printed_as_an_escape(monkeypatch):
    monkeypatch.setattr(sys, "stdout", out := io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    with pytest.raises(SystemExit, match="0"):
        script.run(lambda: print("café"))
    assert out.buffer.getvalue() == b"caf\\xe9\n"
