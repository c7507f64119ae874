"""Claims of the course on counting, teacher forcing and CTC: each figure that a sentence names decides it."""

import copy

import pytest
from claim_cases import Case, check, verdict

from reruns.claims import HOLDS, UNDECIDED


def way(name, looks, **changed):
    steps = {"step": [50, 100, 150], "right": looks}
    base = {"length": 10, "attention": True, "seed": 0, "way": name, "curve": steps, "seconds": 10.0, "steps": 100}
    base |= {"forced_digits_right": 0.99, "digits_right": 0.95}
    return base | {"right_after_a_wrong_first": [0.0, 0.5, 0.7], "right_by_position": [1.0, 0.9, 0.9]} | changed


def other_seed(found):
    """The same of a second seed too."""
    changed = copy.deepcopy(found)
    changed["teacher_forcing"]["runs"] += [
        run | {"seed": 1} for run in copy.deepcopy(changed["teacher_forcing"]["runs"])
    ]
    return changed


FORCING = other_seed(
    {
        "teacher_forcing": {
            "runs": [
                way("true digits", [0.95, 1.0, 1.0]),
                way("scheduled", [0.5, 0.95, 1.0]),
                way("own digits", [0.5, 0.95, 1.0], seconds=20.0, digits_right=0.98),
            ]
        }
    }
)
TRUE, OWN = 0, 2  # of the first seed


def forced(run, what, value):
    return ("teacher_forcing", ("runs", run, *([what] if isinstance(what, str) else what)), value)


def of_all(way, what, value):
    return forced({"way": way}, what, value)


WORDS = {
    "ten_words_back": {
        "words_take": {"10": 59, "100": 586},
        "counting": {"Kneser–Ney, context 5": {"59": 0.0, "586": 0.0}},
        "runs": [
            {"model": "HMM, 16 states", "moved": {"59": 1e-12, "586": 0.0}},
            {"model": "HMM, 16 states", "moved": {"59": 1e-13, "586": 0.0}},
            {"model": "RNN", "moved": {"59": 1e-9, "586": 0.0}},
            {"model": "LSTM", "moved": {"59": 2e-3, "586": 1e-6}},
            {"model": "LSTM", "diverged_at_step": 7},
        ],
    }
}
HMM, RNN, LSTM = 0, 2, 3
CURVE = [0.9, 0.3, 0.1, 0.06, 0.06]  # a fifth is one epoch
LATENCY = {
    "latency": {
        "lengths": [3, 6],
        "ms": {"CTC, one way": [0.1, 0.1], "CTC, both ways": [1.0, 2.0], "attention": [3.0, 6.0]},
        "frames_to_wait": {"digits": 12, "mean": 97.0},
        "runs": [
            {"hears": "one way", "written_after_frames": 2.0, "label_error": error, "error_by_epoch": CURVE}
            for error in (0.05, 0.06)
        ],
    }
}
CTC = {
    "ctc_digits": {
        "runs": [
            {"model": model, "order": "forwards", "error": {"greedy": [0.9, error]}}
            for model, error in (("CTC", 0.02), ("CTC", 0.01), ("framewise", 0.01))
        ]
    }
}


def moves(run, words, share):
    return ("ten_words_back", ("runs", run, "moved", {10: "59", 100: "586"}[words]), share)


CASES = {
    "counting_is_short_sighted": Case(
        WORDS,
        named=[
            *(("ten_words_back", ("counting", "Kneser–Ney, context 5", d), 0.1) for d in ("59", "586")),
            *(moves(HMM, words, 0.1) for words in (10, 100)),
        ],
        undecided=[moves(HMM, 10, 0.1)],  # one seed of two
    ),
    "lstm_looks_back": Case(
        WORDS,
        named=[moves(LSTM, 10, 1e-6), moves(RNN, 10, 2e-3)],
        fails=[moves(RNN, 10, 2e-3)],
        undecided=[moves(LSTM, 10, 1e-6)],  # after a fifth of the training
    ),
    "forcing_is_faster": Case(
        FORCING,
        named=[
            forced(TRUE, ("curve", "right"), [0.1, 0.95, 1.0]),
            forced(OWN, ("curve", "right"), [0.95, 1.0, 1.0]),
        ],
        fails=[of_all("true digits", ("curve", "right"), [0.1, 0.95, 1.0])],
        undecided=[forced(TRUE, ("curve", "right"), [0.1, 0.95, 1.0])],
    ),
    "forcing_is_parallel": Case(
        {
            "cells_table": {
                "characters": 128,
                "layers": {name: {"sequential_steps": 1} for name in ("RNN", "GRU", "LSTM", "Transformer, token 1")},
            }
        },
        named=[("cells_table", ("layers", name, "sequential_steps"), 128) for name in ("RNN", "GRU", "LSTM")],
        fails=[("cells_table", ("layers", name, "sequential_steps"), 128) for name in ("RNN", "GRU", "LSTM")],
        undecided=[("cells_table", ("layers", "GRU", "sequential_steps"), 128)],
    ),
    "forcing_spares_the_writing": Case(
        FORCING,
        named=[forced(TRUE, "seconds", 30.0), forced(OWN, "seconds", 5.0)],
        fails=[of_all("true digits", "seconds", 30.0)],
        undecided=[forced(TRUE, "seconds", 30.0)],
    ),
    "exposure_bias": Case(
        FORCING,
        named=[forced(TRUE, "digits_right", 0.99), forced(OWN, "digits_right", 0.5)],
        fails=[of_all("own digits", "digits_right", 0.5)],
        undecided=[
            of_all("own digits", name, 0.1) for name in ("digits_right", "forced_digits_right")
        ],  # nothing learned
    ),
    "errors_compound": Case(
        FORCING,
        named=[forced(TRUE, "right_after_a_wrong_first", [0.0, 0.5, 0.9])],  # the next alone was wrong
        fails=[of_all("true digits", "right_after_a_wrong_first", [0.0, 0.5, 0.9])],
        undecided=[forced(TRUE, "right_by_position", [1.0, 0.9, 0.7])],
    ),
    "no_frame_labels": Case(
        CTC,
        named=[
            ("ctc_digits", ("runs", 0, "error", "greedy"), [0.9, 0.3]),
            ("ctc_digits", ("runs", 2, "error", "greedy"), [0.9, -0.1]),
        ],
        fails=[("ctc_digits", ("runs", {"model": "CTC"}, "error", "greedy"), [0.9, 0.3])],
        undecided=[("ctc_digits", ("runs", 0, "error", "greedy"), [0.9, 0.3])],
    ),
    "one_pass_is_faster": Case(
        LATENCY,
        named=[
            ("latency", ("ms", "CTC, both ways"), [4.0, 7.0]),
            ("latency", ("ms", "attention"), [0.5, 1.0]),
        ],
        undecided=[("latency", ("ms", "attention"), [0.5, 6.0])],
    ),
    "ctc_streams": Case(
        LATENCY,
        named=[
            ("latency", ("runs", ..., "written_after_frames"), 80.0),
            ("latency", ("runs", ..., "written_after_frames"), None),
            ("latency", ("runs", ..., "label_error"), 0.5),
        ],
        undecided=[
            ("latency", ("runs", ..., "label_error"), 0.5),
            ("latency", ("runs", 0, "error_by_epoch"), [0.9, 0.8, 0.7, 0.6, 0.5]),
        ],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_every_figure_that_is_named_decides(name):
    check(name, CASES[name])


@pytest.mark.parametrize(
    "name", ["forcing_is_faster", "forcing_spares_the_writing", "exposure_bias", "errors_compound"]
)
def test_a_case_of_which_one_way_diverged_is_left_out(name):
    diverged = ("teacher_forcing", ("runs", OWN, "diverged_at_step"), 7)
    assert verdict(name, FORCING, diverged) == HOLDS
    assert verdict(name, FORCING, ("teacher_forcing", ("runs", ..., "diverged_at_step"), 7)) == UNDECIDED


def test_a_reverser_that_never_gets_there_tells_nothing():
    never = [0.1, 0.2, 0.3]
    assert verdict("forcing_is_faster", FORCING, forced(..., ("curve", "right"), never)) == UNDECIDED
    late = of_all("own digits", ("curve", "right"), never)
    assert verdict("forcing_is_faster", FORCING, late) == HOLDS
    # At step 50 of 90, where the other stopped: it might have learned at step 91.
    assert verdict("forcing_is_faster", FORCING, late, of_all("own digits", "steps", 90)) == UNDECIDED
