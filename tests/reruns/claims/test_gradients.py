"""Claims about gradients through time: each figure that a sentence names decides it."""

import pytest
from claim_cases import Case, check, posts


def sizes(radius, activation="tanh", **more):
    return ("gradient_size", {"radius": radius, "activation": activation, **more}, "sizes", -1)


def of_cell(cell, at=-1):
    return ("gradient_size", cell, at)


VANISHING, GATES = posts("vanishing"), posts("gates")
# Published cases have "inputs" only where there are none.
DRIVEN = ("vanishing", ("gradient_size", 5, "sizes", -1))
GENERAL = {
    "vanishing": {
        "general_matrix": [
            {"largest_singular_value": sigma, "gains": [1.0, gain]}
            for sigma, gain in ((0.9, 1e-16), (0.9, 1e-20), (1.7, 1e-2), (2.0, 200.0))
        ]
    }
}
TRAINED = {
    "gates_trained": {
        "quantiles": [0.25, 0.5, 0.75],
        "medians": {
            "text": {
                f"{cell}, {state}": {"gate": [0.1, middle, 0.9]}
                for cell, before, after in (("GRU", 0.5, 0.02), ("LSTM", 0.5, 0.87))
                for state, middle in (("untrained", before), ("trained", after))
            }
        },
    }
}
RECALL = {
    "recall": {
        "reach": {
            cell: {"delay": delay, "not_learned": 2 * delay, "budget_may_be_why": []}
            for cell, delay in (("RNN", 10), ("GRU", 40), ("LSTM, forget bias 1", 40))
        },
        "runs": [
            {"cell": cell, "delay": d, "steps": 6000}
            for cell in ("RNN", "GRU", "LSTM, forget bias 1")
            for d in (20, 80)
        ],
    }
}
BOTH_WAYS = {
    "bidirectional": {
        "ceiling": {"what comes after": {"forward": 0.5}},
        "runs": [
            {"task": "what comes after", "cell": "RNN", "reader": reader, "distance": distance, "accuracy": share}
            for reader, distance, share in (("forward", 5, 0.51), ("both", 5, 1.0), ("both", 80, 0.49))
        ],
    }
}

CASES = {
    "shares_add_up": Case(
        posts("bptt"),
        named=[
            ("bptt", ("dy_dW_h", 0, 1), 0.9888),
            ("bptt", ("gradient_reaching_h", "2", 1), 0.9208),
            ("bptt", ("h", 1, 0), -0.5691),
            ("bptt", ("largest_gap_to_finite_differences",), 0.1),
        ],
    ),
    "each_step_back_shrinks": Case(
        posts("bptt"),
        named=[
            ("bptt", ("gradient_reaching_h", "0"), [0.04, 0.44]),
            ("bptt", ("gradient_reaching_h", "1"), [2.0, 2.0]),
            ("bptt", ("gradient_reaching_h", "2"), [2.0, 2.0]),
        ],
        fails=[("bptt", ("gradient_reaching_h", "0", 1), -44.0)],
        undecided=[("bptt", ("gradient_reaching_h", "1"), [2.0, 2.0])],
    ),
    "radius_decides": Case(
        VANISHING,
        named=[("vanishing", sizes(r, "linear"), end) for r, end in ((0.9, 117.0), (1.0, 0.005), (1.1, 0.005))],
    ),
    "tanh_shrinks_faster": Case(
        VANISHING,
        named=[
            ("vanishing", sizes(0.9), 0.01),
            ("vanishing", sizes(1.0), 1.0),
            ("vanishing", sizes(1.0), 1e-4),
            (*DRIVEN, 1.0),
            ("vanishing", sizes(1.1, "linear"), 0.005),
        ],
    ),
    "inputs_decide": Case(VANISHING, named=[(*DRIVEN, 0.87), ("vanishing", sizes(1.1, inputs=False), 2.8e-5)]),
    "tanh_can_explode": Case(VANISHING, named=[("vanishing", sizes(2.0), 0.01), ("vanishing", sizes(2.0), 1e4)]),
    "singular_value_bounds": Case(
        GENERAL,
        named=[
            ("vanishing", ("general_matrix", 0, "gains", -1), 10.0),
            ("vanishing", ("general_matrix", 3, "largest_singular_value"), 0.9),
        ],
    ),
    "plain_cell_loses_all": Case(GATES, named=[("gates", of_cell("RNN"), 0.5)]),
    "no_head_start_no_lead": Case(
        GATES, named=[("gates", of_cell("LSTM, forget bias 0"), 1e-5), ("gates", of_cell("GRU, default"), 1e-17)]
    ),
    "bias_decides": Case(
        GATES,
        named=[
            ("gates", of_cell("LSTM, forget bias 0"), 0.46),
            ("gates", of_cell("LSTM, forget bias 1"), 8e-12),
            ("gates", of_cell("LSTM, forget bias 3"), 8e-12),
            ("gates", of_cell("GRU, default"), 3e-6),
            ("gates", of_cell("GRU, update bias +1"), 6e-11),
        ],
    ),
    "same_start_same_reach": Case(
        GATES,
        named=[
            ("gates", of_cell("GRU, update bias +1"), 6e-11),
            ("gates", of_cell("LSTM, forget bias 1"), 8e-12),
            ("gates", of_cell("GRU, default"), 3e-6),
            ("gates", of_cell("LSTM, forget bias 0"), 1e-5),
        ],
    ),
    "training_moves_gates": Case(
        TRAINED,
        named=[
            ("gates_trained", ("medians", "text", f"{cell}, {state}", "gate", 1), value)
            for cell, moved in (("GRU", 0.02), ("LSTM", 0.87))
            for state, value in (("untrained", moved), ("trained", 0.5))
        ],
        fails=[("gates_trained", ("medians", "text", f"{cell}, trained", "gate", 1), 0.5) for cell in ("GRU", "LSTM")],
        undecided=[("gates_trained", ("medians", "text", "GRU, trained", "gate", 1), 0.5)],
    ),
    "plain_never_looks_far_back": Case(
        RECALL | GATES,
        named=[("recall", ("reach", "RNN", "delay"), 2560), ("gates", of_cell("RNN"), 0.5)],
        undecided=[("recall", ("reach", "RNN", "budget_may_be_why"), ["a reason"])],
    ),
    "gates_reach_dozens": Case(
        RECALL | GATES,
        named=[
            *(("recall", ("reach", cell, "delay"), 20) for cell in ("GRU", "LSTM, forget bias 1")),
            ("recall", ("reach", "RNN", "delay"), 2560),
            ("gates", of_cell("LSTM, forget bias 1"), 2.0),
        ],
        fails=[("recall", ("reach", "RNN", "delay"), 2560)],
        undecided=[("recall", ("reach", "RNN", "budget_may_be_why"), ["a reason"])],  # it may go as far yet
    ),
    "both_ways_cure_blindness": Case(
        BOTH_WAYS,
        named=[
            ("bidirectional", ("runs", 0, "accuracy"), 1.0),
            ("bidirectional", ("runs", 1, "accuracy"), 0.5),
            ("bidirectional", ("runs", 2, "accuracy"), 0.95),
        ],
        fails=[("bidirectional", ("runs", 2, "accuracy"), 0.95)],
        undecided=[("bidirectional", ("runs", 0, "accuracy"), 0.6)],  # better than it can be
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_every_figure_that_is_named_decides(name):
    check(name, CASES[name])
