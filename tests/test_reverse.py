"""The sweeps of models that reverse: what is told and drawn of them (reverse.py and the pages that use it)."""

import json
from functools import partial
from importlib import import_module
from types import SimpleNamespace

import pytest
import torch
from commands import record_of

import reverse
import seq2seq
from lab import results
from seq2seq import Config

PAGES = ["reverse", "reverse_40_longer", "reverse_40_lr", "reverse_40_6000"]
PAGES += [f"beyond.reverse_{name}" for name in ("40_unclipped", "seeds", "copy", "bahdanau", "mixed")]


def page(configs, name="reverse"):
    """A script like the thirty-line ones, of other models."""
    parts = {"tell": reverse.tell, "draw": reverse.draw_models, "options": reverse.options, "KINDS": reverse.KINDS}
    return SimpleNamespace(__name__=name, __doc__="A sweep.", measure=partial(reverse.sweep, configs), **parts)


@pytest.fixture(autouse=True)
def fewer_test_sequences(monkeypatch):
    monkeypatch.setattr(seq2seq, "TEST_SEQUENCES", 100)


def test_a_sweep_tells_and_saves_what_it_measured(tmp_path, in_this_process):
    configs = [Config(n, attends, 0, 6, 0.01) for n in (3, 4) for attends in (False, True)]
    record = record_of(page(configs), tmp_path)
    assert (tmp_path / "reverse.png").stat().st_size > 10_000
    saved, printed = record["results"], record["printed"]
    assert record["seeds"] == [0] and record["takes"] == ["device", "jobs", "cluster"]
    for text, run, config in zip(printed, saved["runs"], configs, strict=False):
        assert {name: run[name] for name in ("length", "attention", "seed", "steps", "clip", "task")} == {
            name: getattr(config, name) for name in ("length", "attention", "seed", "steps", "clip", "task")
        }
        name = "attention   " if run["attention"] else "no attention"
        assert text == (
            f"length {run['length']}, {name}, seed 0, 6 steps, learning rate 0.01: digits right"
            f" {run['digits_right']:.3f}, whole sequences right {run['sequences_right']:.3f}"
        )
    assert [len(detail["right_by_position"]) for detail in saved["details"]] == [3, 3, 4, 4]
    for row, run, detail in zip(printed[-4:], saved["runs"], saved["details"], strict=True):
        right, weight = detail["right_by_position"], run.get("weight_on_answer")
        others = run["unseen_sequences_right"]
        numbers = [run["teacher_forced_digits_right"], run["digits_right"]]
        numbers += [right[0], right[len(right) // 2], right[-1], run["seen_in_training"], others, weight]
        shown = ["-" if number is None else f"{number:.3f}" for number in numbers]
        shown += [f"{run[name]:.2f}" for name in ("median_gradient_norm", "largest_gradient_norm")]
        assert row.partition("learning rate 0.01")[2].split() == shown


def test_a_diverging_run_lets_the_others_finish_and_be_told(tmp_path, in_this_process, capsys):
    configs = [Config(3, False, 0, 4, 1e38), Config(3, False, 0, 4)]
    record = record_of(page(configs), tmp_path, status=1)
    first, second, _, *table = record["printed"]
    assert first.endswith("the loss is not finite at step 2") and "whole sequences right" in second
    assert len(table) == len(reverse.CAPTION.splitlines()) + 3 + 1
    assert "1 training diverged" in capsys.readouterr().err
    assert (tmp_path / "reverse.png").stat().st_size > 10_000


def test_the_task_is_named_where_there_are_several():
    run = {"digits_right": 0.5, "sequences_right": 0.25, "diverged_at_step": 3}
    one, other = (vars(Config(3, False, 0, task=task)) | run for task in ("reverse", "copy"))
    details = [{}, {}]
    assert next(reverse.tell({"runs": [one, one], "details": details})).startswith("length 3")
    first, second, *_ = reverse.tell({"runs": [one, other], "details": details})
    assert first.startswith("reverse, length 3") and second.startswith("copy   , length 3")


@pytest.mark.parametrize("name", PAGES)
def test_every_model_of_a_page_is_saved_as_it_is_configured(name):
    module = import_module(name)
    saved = results.load(name.removeprefix("beyond."))
    asked = ["length", "attention", "seed", "steps", "learning_rate", "clip", "task", "bahdanau"]
    for run, config in zip(saved["results"]["runs"], module.CONFIGS, strict=True):
        assert [run[field] for field in asked] == json.loads(json.dumps([getattr(config, field) for field in asked]))


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_drawn_where_every_model_but_one_diverged(name):
    module = import_module(name)
    found = results.load(name.removeprefix("beyond."))["results"]
    last = len(found["runs"]) - 1
    runs = [run if i == last else run | {"diverged_at_step": 7} for i, run in enumerate(found["runs"])]
    module.draw(found | {"runs": runs})
    printed = "\n".join(module.tell(found | {"runs": runs}))
    assert printed.count("the loss is not finite at step 7") == last


def test_the_figure_shows_what_is_saved():
    found = results.load("reverse")["results"]
    found["details"] = [
        detail | {"example": detail["example"] | {"weights": torch.eye(run["length"]).flip(1).tolist()}}
        if run["attention"]
        else detail
        for run, detail in zip(found["runs"], found["details"], strict=True)
    ]
    figure = reverse.draw(found)
    (image,) = [image for axes in figure.axes for image in axes.get_images()]
    assert image.get_array().tolist() == torch.eye(20).flip(1).tolist()
    by_length, by_position, _, _ = figure.axes
    mean_without = by_length.get_lines()[0].get_ydata()
    assert mean_without[0] == pytest.approx((0.984 + 0.992) / 2)  # the lines of length 5 in outputs/reverse.txt
    shown = [run for run in reverse.with_details(found) if (run["length"], run["seed"]) == (20, 0)]
    for k, run in enumerate(shown):
        assert list(by_position.get_lines()[2 * k].get_ydata()) == run["right_by_position"]
        assert list(by_position.get_lines()[2 * k + 1].get_ydata()) == run["teacher_forced_right_by_position"]
