"""Printing and saving (lab/results.py)."""

import json
import os
import stat
import subprocess
import sys

import numpy as np
import pytest

from lab import plots, results, script


def arguments(folder, *more):
    parser = script.Arguments("What it does.")
    parser.add_argument("--steps", type=int, default=10)
    return parser.parse_args(["--outputs", str(folder), *more])


def draw(values):
    figure, axes = plots.subplots()
    axes.plot(values["curve"])
    return figure


def test_the_text_is_what_was_printed_and_the_numbers_are_unrounded(tmp_path, capsys):
    run = results.Results("some", arguments(tmp_path), seeds=range(3), corpus="abc")
    run.print(f"y = {1 / 3:.2f}")
    run.print("naïve – 1\n2")
    run.record(y=np.float64(1 / 3), curve=np.arange(3), named={"a": (1, np.float32(0.5))}, yes=True, none=None)
    run.save(draw)
    assert (tmp_path / "some.txt").read_bytes().decode() == capsys.readouterr().out == "y = 0.33\nnaïve – 1\n2\n"
    saved = results.load("some", tmp_path)
    assert saved["results"] == {"y": 1 / 3, "curve": [0, 1, 2], "named": {"a": [1, 0.5]}, "yes": True, "none": None}
    assert saved["experiment"] == "some" and saved["arguments"] == {"steps": 10}
    assert saved["seeds"] == [0, 1, 2] and saved["corpus"] == "abc"
    assert {"python", "numpy", "processor", "cores", "threads", "device"} <= set(saved["environment"])
    assert (tmp_path / "some.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(os.listdir(tmp_path)) == ["some.json", "some.png", "some.txt"]


def test_a_figure_drawn_again_from_the_numbers_is_the_same_file(tmp_path, capsys):
    run = results.Results("some", arguments(tmp_path))
    run.record(curve=[1.0, 4.0, 9.0])
    run.save(draw)
    first = (tmp_path / "some.png").read_bytes()
    results.save_figure(draw(results.load("some", tmp_path)["results"]), tmp_path / "some.png")
    assert (tmp_path / "some.png").read_bytes() == first


def test_a_run_with_other_arguments_is_not_saved_without_being_told_where(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(results, "SAVED", tmp_path / "outputs")
    parser = script.Arguments("What it does.")
    parser.add_argument("--steps", type=int, default=10)
    results.Results("some", parser.parse_args(["--steps", "3"])).save()
    assert not (tmp_path / "outputs").exists() and "not saved" in capsys.readouterr().err
    results.Results("some", parser.parse_args([])).save()
    assert (tmp_path / "outputs" / "some.json").exists()


def test_a_failed_run_leaves_what_was_there(tmp_path, capsys):
    (tmp_path / "some.json").write_text("{}", encoding="utf-8")
    run = results.Results("some", arguments(tmp_path))
    run.record(loss=float("nan"))
    with pytest.raises(ValueError, match="not JSON compliant"):
        run.save()
    run.record(loss=1.0)
    with pytest.raises(KeyError, match="curve"):
        run.save(draw)
    assert os.listdir(tmp_path) == ["some.json"] and (tmp_path / "some.json").read_text(encoding="utf-8") == "{}"


def test_a_write_that_fails_leaves_the_old_file_and_no_part_of_the_new(tmp_path, monkeypatch):
    path = tmp_path / "some.txt"
    path.write_bytes(b"old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError):
        results.write_whole(path, b"new")
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["some.txt"]


def test_saved_files_can_be_read_by_others(tmp_path):
    previous = os.umask(0o022)
    try:
        results.write_whole(tmp_path / "some.txt", b"new")
    finally:
        os.umask(previous)
    assert stat.S_IMODE((tmp_path / "some.txt").stat().st_mode) == 0o644


def test_a_folder_that_cannot_be_written_is_told_before_the_work(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(script.UserError, match="can't write in"):
        results.Results("some", arguments(tmp_path / "file" / "below"))


@pytest.mark.parametrize("content", ["", "{", "nothing"])
def test_a_broken_results_file_is_named(tmp_path, content):
    (tmp_path / "some.json").write_text(content, encoding="utf-8")
    with pytest.raises(script.UserError, match=r"some\.json is not a results file"):
        results.load("some", tmp_path)
    with pytest.raises(script.UserError, match=r"other\.json is not there: run other\.py first"):
        results.load("other", tmp_path)


@pytest.mark.parametrize(
    "value",
    [{}, [], {"a": []}, [[]], {"a": {"b": [1, 2.5, "é\n[ x"]}, "c": [[1], {"d": None}]}, "x", 3, [True, None]],
)
def test_readable_json_is_json(value):
    assert json.loads(results.to_json(value)) == value


def test_a_list_of_numbers_takes_one_line():
    assert results.to_json({"a": [1, 2], "b": [[1], [2]]}) == '{\n "a": [1, 2],\n "b": [\n  [1],\n  [2]\n ]\n}\n'


@pytest.mark.parametrize("name", ["bptt", "decay", "vanishing", "corpus", "ngram", "kneser_ney"])
def test_a_numpy_script_imports_neither_torch_nor_matplotlib(name):
    code = f"import sys, {name}; print([module for module in ('torch', 'matplotlib') if module in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=script.ROOT)
    assert done.stdout == "[]\n", done.stderr
