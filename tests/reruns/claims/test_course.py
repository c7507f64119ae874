"""Claims of the course on gradients and cells: each figure that a sentence names decides it, either way."""

import pytest
from claim_cases import Case, check, verdict

from reruns.claims import HOLDS


def paths(full, gates_cut, alone):
    """The gradient at fifty steps back, by path; 1 comes from one step back."""
    return {
        name: [1.0] + [0.5] * 48 + [end]
        for name, end in (("full", full), ("gates cut", gates_cut), ("cell alone", alone))
    }


def at_50(path, *where):
    return ("cell_path", (*where, path, 49))


UNTRAINED, ON_TEXT = ("every_step", "LSTM, forget bias 3"), ("on_text", "LSTM", "trained")
CELL_PATH = {  # as the course says
    "cell_path": {
        "every_step": {"LSTM, forget bias 3": paths(0.5, 0.45, 0.6), "GRU, default": paths(1e-11, 1e-11, 1e-11)},
        "on_text": {
            "LSTM": {"untrained": paths(1e-10, 1e-10, 1e-12), "trained": paths(1e-5, 0.9e-5, 0.8e-5)},
            "GRU": {},  # every training diverged
        },
    }
}
EXPLOSIONS = {
    "explosions": {
        "plain": [
            {"units": "rectified", "clip": None, "not_finite_at_step": 16},
            {"units": "rectified", "clip": 1.0, "not_finite_at_step": None},
            {"units": "tanh", "clip": None, "not_finite_at_step": None},
            {"units": "tanh", "clip": 1.0, "not_finite_at_step": None},
        ],
        "shown": [
            {"clip": None, "seed": 0, "losses": [5.0] * 15},
            {"clip": 1.0, "seed": 0, "losses": [5.0] + [2.5] * 99},
        ],
    }
}
FALLEN = {
    "gates_trained": {
        "runs": [
            {"cell": "RNN", "untrained": {"gradient": [1.0] * 49 + [a]}, "trained": {"gradient": [1.0] * 49 + [b]}}
            for a, b in ((1e-13, 1e-7), (1e-14, 1e-5))
        ]
    }
}
VANISHING = {
    "vanishing": {
        "gradient_size": [
            {"activation": activation, "radius": radius, "sizes": [end]}
            for activation, radius, end in (("linear", 1.1, 117.0), ("tanh", 1.1, 20.0), ("tanh", 2.0, 110.0))
        ]
        + [{"activation": "tanh", "radius": 1.1, "sizes": [0.9], "inputs": False}]
    }
}
LAYERS = {
    "cells_table": {
        "characters": 128,
        "layers": {
            "RNN": {"relative_to_RNN": 1.0, "sequential_steps": 128},
            "GRU": {"relative_to_RNN": 3.0, "parameters": 3, "multiply_adds": 3, "state_bytes": 1},
            "LSTM": {"relative_to_RNN": 4.0, "parameters": 4, "multiply_adds": 4, "state_bytes": 2},
            "Transformer, token 1": {"sequential_steps": 1},
        },
    }
}
for cell in ("GRU", "LSTM"):
    LAYERS["cells_table"]["layers"][cell]["sequential_steps"] = 128
SECONDS = {"char_models": {"runs": [{"cell": c, "seconds": s} for c, s in (("GRU", 100), ("GRU", 110), ("LSTM", 120))]}}
SCAN = {
    "path_length": {"length": 1024, "steps": {"recurrence, by a scan": {"operations": 1023}}},
    "scan": {"gaps": {"a pair": {"values": 1e-15, "gradients": 1e-14}}},
}
DECAY = {"decay": {"steps_back": [1, 20], "gradient": [0.5, 9.5e-7], "weight_1.5_after_20_steps": 3325.26}}


def digits(*right):
    return {"runs": [{"attention": False, "digits_right": share} for share in right] + [{"attention": True}]}


def layer(cell, name, value):
    return ("cells_table", ("layers", cell, name), value)


CASES = {
    "twenty_steps": Case(
        DECAY, named=[("decay", ("gradient", 1), 1e-3), ("decay", ("weight_1.5_after_20_steps",), 30.0)]
    ),
    "above_one_explodes": Case(
        VANISHING, named=[("vanishing", ("gradient_size", n, "sizes", 0), 1e-5) for n in range(3)]
    ),
    "vanishing_is_common": Case(
        FALLEN | EXPLOSIONS,
        named=[
            *(("gates_trained", ("runs", ..., state, "gradient", 49), 2.0) for state in ("untrained", "trained")),
            ("explosions", ("plain", 2, "not_finite_at_step"), 9),
        ],
        undecided=[("gates_trained", ("runs", 0, "trained", "gradient", 49), 2.0)],
    ),
    "clipping_saves": Case(
        EXPLOSIONS,
        named=[
            ("explosions", ("plain", 0, "not_finite_at_step"), None),
            ("explosions", ("plain", 1, "not_finite_at_step"), 9),
            ("explosions", ("shown", 1, "losses"), [5.0] * 100),
        ],
    ),
    "tanh_ends_in_nan": Case(
        {"explosions": {"plain": [{"units": "tanh", "clip": None, "not_finite_at_step": 9}]}},
        named=[("explosions", ("plain", 0, "not_finite_at_step"), None)],
    ),
    "clipping_costs": Case(
        {"reverse_40_longer": digits(0.51, 0.50), "reverse_40_unclipped": digits(0.59, 0.57)},
        named=[
            ("reverse_40_longer", ("runs", 0, "digits_right"), 0.6),
            ("reverse_40_unclipped", ("runs", 1, "digits_right"), 0.4),
        ],
        fails=[("reverse_40_longer", ("runs", {"attention": False}, "digits_right"), 0.6)],
        undecided=[("reverse_40_longer", ("runs", 0, "digits_right"), 0.58)],
    ),
    "gates_are_minor": Case(
        CELL_PATH,
        named=[(*at_50("gates cut", *UNTRAINED), 0.01), (*at_50("gates cut", *ON_TEXT), 1e-7)],
        fails=[(*at_50("gates cut", *UNTRAINED), 0.01), (*at_50("gates cut", *ON_TEXT), 1e-4)],
        undecided=[(*at_50("gates cut", *UNTRAINED), 0.01)],
    ),
    "the_cell_carries_untrained": Case(
        CELL_PATH,
        named=[(*at_50("cell alone", *UNTRAINED), 0.04), (*at_50("cell alone", "every_step", "GRU, default"), 1e-14)],
        fails=[(*at_50("cell alone", "every_step", name), 1e-15) for name in CELL_PATH["cell_path"]["every_step"]],
        undecided=[(*at_50("cell alone", *UNTRAINED), 0.04)],
    ),
    "the_cell_carries_trained": Case(CELL_PATH, named=[(*at_50("cell alone", *ON_TEXT), 1e-7)]),
    "constant_carousel": Case(CELL_PATH, named=[(*at_50("cell alone", *UNTRAINED), end) for end in (0.04, 3.0)]),
    "three_and_four": Case(LAYERS, named=[layer(cell, "relative_to_RNN", 2.0) for cell in ("GRU", "LSTM")]),
    "gru_is_lighter": Case(
        LAYERS, named=[layer("GRU", name, 9) for name in ("parameters", "multiply_adds", "state_bytes")]
    ),
    "gru_is_faster": Case(
        SECONDS,
        named=[("char_models", ("runs", {"cell": "GRU"}, "seconds"), 200)],
        undecided=[("char_models", ("runs", 0, "seconds"), 200)],
    ),
    "only_transformers_are_parallel": Case(
        LAYERS, named=[layer(cell, "sequential_steps", 5) for cell in LAYERS["cells_table"]["layers"]]
    ),
    "no_recurrence_at_once": Case(SCAN, named=[("path_length", ("steps", "recurrence, by a scan", "operations"), 10)]),
}


@pytest.mark.parametrize("name", CASES)
def test_every_figure_that_is_named_decides(name):
    check(name, CASES[name])


def test_a_scan_that_computes_something_else_refutes_nothing():
    few = ("path_length", ("steps", "recurrence, by a scan", "operations"), 10)
    assert verdict("no_recurrence_at_once", SCAN, few, ("scan", ("gaps", "a pair", "values"), 0.1)) == HOLDS
