"""Claims of the course on gradients and cells: each figure that a sentence names decides it, either way."""

import copy

import pytest
from claim_cases import Case, check, verdict

from reruns.claims import HOLDS


def paths(full, alone, difference=0.1):
    """The gradient at fifty steps back, by path; 1 comes from one step back, half of that from two."""
    ends = (("full", full), ("cell alone", alone), ("difference", difference))
    return {name: [1.0] + [0.5] * 48 + [end] for name, end in ends}


def at(steps, path, *where):
    return ("cell_path", (*where, path, steps - 1))


BIAS_7 = ("every_step", "LSTM, forget bias 7")
UNTRAINED, ON_TEXT = ("every_step", "LSTM, forget bias 3"), ("on_text", "LSTM", "trained")
CELL_PATH = {  # as the course says
    "cell_path": {
        "every_step": {
            "LSTM, forget bias 3": paths(0.5, 0.4),
            "LSTM, forget bias 7": paths(0.5, 0.48),
            "GRU, default": paths(1e-11, 1e-11, difference=0.9),  # of a GRU's gates nothing is said
        },
        "on_text": {
            "LSTM": {"untrained": paths(1e-10, 1e-12, difference=0.9), "trained": paths(1e-5, 0.8e-5)},
            "GRU": {},  # every training diverged
        },
    }
}


def rnn(units, clip=None, ended=None, **more):
    return {"units": units, "rate": 0.5, "clip": clip, "seed": 0, "not_finite_at_step": ended, "loss": 2.5} | more


EXPLOSIONS = {
    "explosions": {
        "plain": [
            rnn("rectified", ended=16, loss=5.0),
            rnn("rectified", clip=1.0),
            rnn("rectified", seed=1),
            rnn("rectified", seed=1, clip=1.0),
            rnn("tanh", largest_norm=3.0),
            rnn("tanh", largest_norm=3.0, seed=1, clip=1.0),
            rnn("tanh", largest_norm=900.0, ended=9, rate=50.0),
        ],
        "shown": [{"clip": None, "seed": 0, "losses": [5.0] * 15}, {"clip": 1.0, "seed": 0, "losses": [5.0, 2.5]}],
    }
}
BARE, CLIPPED, USUAL, PROVOKED = 0, 1, 4, 6


def plain(run, what, value):
    return ("explosions", ("plain", run, what), value)


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
SCAN = {"path_length": {"length": 1024, "steps": {"recurrence, by a scan": {"operations": 10}}}}
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
            plain(USUAL, "not_finite_at_step", 9),
        ],
        undecided=[("gates_trained", ("runs", ..., "trained", "gradient", 49), 0.01)],  # half of them
    ),
    "clipping_saves": Case(
        EXPLOSIONS,
        named=[
            plain(BARE, "not_finite_at_step", None),
            plain(CLIPPED, "not_finite_at_step", 9),
            plain(CLIPPED, "loss", 4.9),
        ],
        fails=[plain(CLIPPED, "loss", 4.9)],
        undecided=[plain({"units": "rectified", "clip": None}, "not_finite_at_step", 9), plain(CLIPPED, "loss", 4.9)],
    ),
    "tanh_ends_in_nan": Case(
        EXPLOSIONS,
        named=[plain(PROVOKED, "not_finite_at_step", None)],
        undecided=[plain(PROVOKED, "not_finite_at_step", None), plain(PROVOKED, "largest_norm", 30.0)],
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
        named=[(*at(50, "difference", *UNTRAINED), 0.9), (*at(50, "difference", *ON_TEXT), 0.9)],
        fails=[(*at(50, "difference", *where), 0.9) for where in (UNTRAINED, BIAS_7, ON_TEXT)],
        undecided=[(*at(50, "difference", *UNTRAINED), 0.9)],
    ),
    "the_cell_carries_one_step": Case(
        CELL_PATH,
        named=[(*at(2, "cell alone", *where), 0.1) for where in (UNTRAINED, ON_TEXT)],
        fails=[
            (*at(2, "cell alone", *where), 0.1)
            for where in (UNTRAINED, BIAS_7, ("every_step", "GRU, default"), ON_TEXT)
        ],
        undecided=[(*at(2, "cell alone", *ON_TEXT), 0.1)],
    ),
    "the_cell_carries_untrained": Case(
        CELL_PATH,
        named=[(*at(50, "cell alone", *UNTRAINED), 0.04), (*at(50, "cell alone", "every_step", "GRU, default"), 1e-14)],
        fails=[(*at(50, "cell alone", "every_step", name), 1e-15) for name in CELL_PATH["cell_path"]["every_step"]],
        undecided=[(*at(50, "cell alone", *UNTRAINED), 0.04)],
    ),
    "the_cell_carries_trained": Case(CELL_PATH, named=[(*at(50, "cell alone", *ON_TEXT), 1e-7)]),
    "constant_carousel": Case(
        CELL_PATH,
        named=[(*at(50, "cell alone", *BIAS_7), end) for end in (0.04, 3.0)],
    ),
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
    "no_recurrence_at_once": Case(LAYERS | SCAN, named=[layer("RNN", "sequential_steps", 7)]),
}


@pytest.mark.parametrize("name", CASES)
def test_every_figure_that_is_named_decides(name):
    check(name, CASES[name])


def test_one_network_of_ten_does_not_decide_what_is_common():
    found = copy.deepcopy(FALLEN | EXPLOSIONS)
    found["explosions"]["plain"] += [rnn("tanh", largest_norm=3.0, seed=seed) for seed in range(2, 11)]
    assert verdict("vanishing_is_common", found, plain(USUAL, "not_finite_at_step", 9)) == HOLDS
