"""Claims of the course on memory: each reach that a sentence names decides it; a budget too small decides nothing."""

import pytest
from claim_cases import LEFT_OUT, Case, check, verdict

from reruns.claims import FAILS, HOLDS, UNDECIDED
from reruns.claims.reach import goes_as_far_as, goes_further, reach_of, told

UNTOLD = ["a reason"]


def reach(delay, not_learned=..., why=()):
    return {
        "delay": delay,
        "not_learned": 2 * delay if not_learned is ... else not_learned,
        "budget_may_be_why": [*why],
    }


def recall(**reaches):
    """Reaches by a short name, and trainings of 6,000 steps at every delay: budgets that aren't why."""
    names = {
        "rnn": "RNN", "identity": "RNN, identity", "gru": "GRU", "lstm": "LSTM", "gru_chrono": "GRU, chrono",
        "lstm_chrono": "LSTM, chrono", "bias_3": "LSTM, forget bias 3", "poor": "LSTM, forget bias -5",
        "transformer": "Transformer",
    }  # fmt: skip
    runs = [
        {"cell": names[name], "delay": delay, "steps": 6000}
        for name in reaches
        for delay in (5 * 2**n for n in range(10))
    ]
    return {"recall": {"reach": {names[name]: found for name, found in reaches.items()}, "runs": runs}}


def of(name, what, value):
    return ("recall", ("reach", name, what), value)


def few_steps(name, delay):
    return ("recall", ("runs", {"cell": name, "delay": delay}, "steps"), 2400)


def untold(name):
    return of(name, "budget_may_be_why", UNTOLD)


def robust(delay, **changed):
    run = {"cell": "RNN, identity", "delay": delay, "accuracy": 1.0}
    return run | {"logit_before": 0.3, "logit_after": 1e-20} | changed


CONTROL = {"cell": "LSTM, forget bias 3", "logit_after": 0.3}
WHY = {
    "recall_why": {
        "robust": [robust(20), robust(80), robust(10, logit_after=0.3), robust(80, **CONTROL)],
        "runs": [
            {"case": "LSTM", "learning_rate": 0.003, "solved_at": None},
            {"case": "LSTM", "learning_rate": 0.003, "solved_at": None},
            {"case": "LSTM, no noise", "learning_rate": 0.003, "solved_at": 400},
            {"case": "LSTM, no noise", "learning_rate": 0.003, "solved_at": 500},
        ],
    },
    "recall": {"runs": [{"cell": "LSTM", "delay": 20, "steps": steps, "solved_at": None} for steps in (6000, 24000)]},
}
FORGETS = {
    "recall_why": {
        "robust": [
            robust(80, accuracy=0.97),
            robust(80, accuracy=0.98),
            {"cell": "RNN, identity", "delay": 80, "diverged_at_step": 7},
            robust(80, **CONTROL),
        ]
    }
}


def trained(cell, delay=40, seed=3, **more):
    """A training at a delay that was solved at a rate of 0.01 and not at 0.001, unless told otherwise."""
    run = {"cell": cell, "delay": delay, "seed": seed, "steps": 6000, "solved_at": 100, "accuracy": 1.0}
    return run | {"gradient_before": 0.1, "kept_before": 0.5, "kept_after": 0.7} | more


FAILED = {"solved_at": None, "accuracy": 0.51, "gradient_before": 1e-9}
LEARNING = {
    "recall": {
        "reach": {"RNN": reach(20), "RNN, identity": reach(40)},
        "runs": [
            trained("RNN", **FAILED),
            trained("RNN, identity", delay=80, **FAILED),
            trained("GRU"),
            trained("LSTM, forget bias 1"),
            trained("LSTM, forget bias 1", **FAILED | {"gradient_before": 0.1}),  # at another rate
            trained("RNN", **FAILED | {"steps": 24000}),
            trained("Transformer", **FAILED | {"gradient_before": 1.0}),  # not recurrent
        ],
    }
}


def of_run(n, what, value):
    return ("recall", ("runs", n, what), value)


BITS = {
    "char_models": {
        "runs": [{"cell": c, "best_validation_bits_per_char": b} for c, b in (("GRU", 2.45), ("LSTM", 2.47))]
    }
}
CUT = {
    "recall_cut": {
        "runs": [
            {"way": way, "delay": 40, "solved_at": solved, "accuracy": 1.0}
            for way, solved in (("whole", 100), ("last 20 steps", None), ("last step", None), ("readout", None))
        ]
    }
}
LATER = {
    "recall_cut": {
        "runs": [
            {"way": way, "delay": 40, "solved_at": 100, "right_later": [1.0, 0.95, 0.95]}
            for way in ("whole", "LSTM, chrono")
        ]
    }
}
BIASED = ("LSTM, forget bias 3", "LSTM, chrono", "GRU, chrono")

CASES = {
    "plain_gives_up": Case(
        recall(rnn=reach(20)),
        named=[of("RNN", "delay", 40), of("RNN", "delay", 5), untold("RNN"), of("RNN", "not_learned", None)],
        undecided=[of("RNN", "delay", 5), untold("RNN")],
    ),
    "fails_silently": Case(
        LEARNING,
        named=[of_run(0, "accuracy", 0.9), of_run(1, "accuracy", LEFT_OUT)],
        fails=[of_run(n, "accuracy", LEFT_OUT) for n in (0, 1, 5)],
        undecided=[of_run(0, "accuracy", 0.7)],
    ),
    "bit_needs_its_gradient": Case(
        CUT,
        named=[("recall_cut", ("runs", n, "solved_at"), 100) for n in (1, 2)]
        + [("recall_cut", ("runs", 0, "solved_at"), None)],
        fails=[("recall_cut", ("runs", 1, "solved_at"), 100)],
        undecided=[("recall_cut", ("runs", 0, "solved_at"), None)],
    ),
    "plain_holds_its_bit": Case(
        LATER,
        named=[("recall_cut", ("runs", 0, "right_later", 1), 0.0), ("recall_cut", ("runs", 0, "solved_at"), None)],
        fails=[("recall_cut", ("runs", 0, "right_later", 2), 0.0)],
        undecided=[("recall_cut", ("runs", 0, "solved_at"), None)],
    ),
    "no_signal_no_learning": Case(
        LEARNING,
        named=[of_run(0, "gradient_before", 0.2), of_run(2, "gradient_before", 1e-10)],
        fails=[of_run(0, "gradient_before", 0.2)],
        undecided=[of_run(2, "gradient_before", 1e-9)],  # a tie, and one pair as said
    ),
    "gates_learn_to_open": Case(
        LEARNING,
        named=[of_run(2, "kept_after", 0.4), of_run(3, "kept_after", 0.5)],
        fails=[of_run(n, "kept_after", 0.4) for n in (2, 3)],
        undecided=[of_run(3, "kept_after", 0.4)],
    ),
    "gates_stretch_as_drawn": Case(
        recall(lstm=reach(640), gru=reach(320)),
        named=[of("LSTM", "delay", 10), of("GRU", "delay", 160)],
        fails=[of("LSTM", "delay", 10), of("LSTM", "not_learned", 20)],
        undecided=[of("GRU", "delay", 20), untold("GRU")],
    ),
    "gates_stretch_with_a_bias": Case(
        recall(bias_3=reach(320), lstm_chrono=reach(640), gru_chrono=reach(2560, None)),
        named=[of(name, "delay", 40) for name in BIASED],
        fails=[of(name, what, steps) for name in BIASED for what, steps in (("delay", 40), ("not_learned", 80))],
        undecided=[of("LSTM, chrono", "delay", 40)],
    ),
    "plain_cannot_be_helped": Case(
        recall(rnn=reach(20), identity=reach(20)),
        named=[of("RNN, identity", "delay", 80), of("RNN", "delay", 10), untold("RNN, identity")],
        undecided=[of("RNN, identity", "delay", 80), untold("RNN")],
    ),
    "poor_starts_degrade": Case(
        recall(poor=reach(5), bias_3=reach(320)),
        named=[
            of("LSTM, forget bias -5", "delay", 320),
            of("LSTM, forget bias 3", "delay", 10),
            untold("LSTM, forget bias -5"),
            few_steps("LSTM, forget bias -5", 10),
        ],
        undecided=[of("LSTM, forget bias 3", "delay", 10), untold("LSTM, forget bias 3")],
    ),
    "thousands_are_too_far": Case(
        recall(bias_3=reach(320), lstm_chrono=reach(1280)),
        named=[of("LSTM, chrono", "delay", 2560), untold("LSTM, chrono"), few_steps("LSTM, chrono", 2560)],
        undecided=[few_steps("LSTM, forget bias 3", 640)],  # the other start may still go there
    ),
    "any_distance": Case(
        recall(transformer=reach(2560, None)) | {"path_length": {"at_token_1": {"attention": [-2.3, -1.4]}}},
        named=[
            ("recall", ("reach", "Transformer"), reach(640)),
            ("recall", ("reach", "Transformer"), reach(640, why=UNTOLD)),
            ("path_length", ("at_token_1", "attention"), [-2.3, -200.0]),
        ],
        undecided=[("recall", ("reach", "Transformer"), reach(640, why=UNTOLD))],
    ),
    "gru_is_comparable": Case(
        BITS | recall(gru=reach(20), lstm=reach(10), gru_chrono=reach(640), lstm_chrono=reach(1280)),  # alike
        named=[
            ("char_models", ("runs", 0, "best_validation_bits_per_char"), 3.0),
            of("GRU", "delay", 160),
            of("LSTM, chrono", "delay", 40),
            untold("GRU"),  # it may go further
        ],
        fails=[of("GRU", "delay", 160)],
        undecided=[of("GRU", "delay", 160), untold("LSTM")],
    ),
    "the_state_forgets": Case(
        FORGETS,
        named=[("recall_why", ("robust", n, "accuracy"), 1.0) for n in (0, 1)],
        fails=[("recall_why", ("robust", n, "accuracy"), 1.0) for n in (0, 1)],
        undecided=[("recall_why", ("robust", n, "accuracy"), 0.6) for n in (0, 1)],  # 600 steps weren't enough
    ),
    "dilemma": Case(
        WHY,
        named=[("recall_why", ("robust", 0, "logit_after"), 0.3), ("recall_why", ("robust", 1, "logit_before"), 1e-20)],
        fails=[("recall_why", ("robust", ..., "logit_after"), 0.3)],
        undecided=[("recall_why", ("robust", ..., "accuracy"), 0.5)],  # none remembers
    ),
    "noise_is_why": Case(
        WHY,
        named=[
            ("recall_why", ("runs", 0, "solved_at"), 400),
            ("recall_why", ("runs", 2, "solved_at"), None),
            ("recall", ("runs", 1, "solved_at"), 20000),
            ("recall", ("runs", 1, "steps"), 6000),  # more steps weren't tried
        ],
        fails=[("recall", ("runs", 1, "solved_at"), 20000)],  # it was slow
        undecided=[("recall_why", ("runs", 2, "solved_at"), None)],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_every_figure_that_is_named_decides(name):
    check(name, CASES[name])


@pytest.mark.parametrize(
    "name, found, judged",
    [
        ("plain_gives_up", recall(rnn=reach(5)), FAILS),
        ("plain_gives_up", recall(rnn=reach(5, None)), UNDECIDED),  # no longer delay was tried
        ("gates_stretch_as_drawn", recall(lstm=reach(10), gru=reach(640)), FAILS),
        ("gates_stretch_as_drawn", recall(lstm=reach(10, None), gru=reach(640)), UNDECIDED),
        ("plain_cannot_be_helped", recall(rnn=reach(20, why=UNTOLD), identity=reach(20)), HOLDS),
        ("poor_starts_degrade", recall(poor=reach(0, 5), bias_3=reach(0, 5)), UNDECIDED),  # nothing to lose
    ],
)
def test_a_budget_that_may_be_why_leaves_it_open(name, found, judged):
    assert verdict(name, found) == judged


def test_a_delay_that_had_fewer_steps_than_6000_refutes_nothing():
    short = recall(lstm=reach(160), gru=reach(160))
    assert verdict("gates_stretch_as_drawn", short) == FAILS
    assert verdict("gates_stretch_as_drawn", short, few_steps("LSTM", 320), few_steps("GRU", 320)) == UNDECIDED
    assert "160, 320: can't be told, 2,400 steps" in told(
        reach_of(recall(lstm=reach(160))["recall"] | {"runs": [{"cell": "LSTM", "delay": 320, "steps": 2400}]}, "LSTM")
    )


def test_what_lies_between_two_delays_was_not_tried():
    """24 steps: of a model that learned 20 and not 40 it can't be told."""
    assert [goes_as_far_as(24, reach(*tried) | {"steps": 6000}) for tried in ((40,), (20, 40), (10, 20))] == [
        HOLDS,
        UNDECIDED,
        FAILS,
    ]


@pytest.mark.parametrize("one, other, judged", [(40, 20, HOLDS), (20, 20, FAILS), (20, 40, FAILS)])
def test_which_goes_further_is_open_while_the_one_behind_may_go_on(one, other, judged):
    one, other = (reach(delay) | {"steps": 6000} for delay in (one, other))
    behind = other if judged == HOLDS else one
    assert goes_further(one, other) == judged
    behind["budget_may_be_why"] = UNTOLD
    assert goes_further(one, other) == UNDECIDED


def test_noise_is_not_why_where_an_lstm_learns_with_it_or_not_even_without():
    for case in ("LSTM", "LSTM, no noise"):
        changed = ("recall_why", ("runs", {"case": case}, "solved_at"), 400 if case == "LSTM" else None)
        assert verdict("noise_is_why", WHY, changed) == FAILS
