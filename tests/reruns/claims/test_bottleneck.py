"""Claims about reversing digits: each figure that a sentence names decides it, whatever the trainings will give."""

import copy

import pytest
from claim_cases import LEFT_OUT, Case, check, posts, verdict

from reruns.comparing import RERUN

REVERSE = posts("reverse")
LONGER, LOWER, TWICE = (f"reverse_40_{how}" for how in ("longer", "lr", "6000"))


def of(attention, name="sequences_right", of_what=LONGER, length=40):
    return (of_what, ("runs", {"attention": attention, "length": length}, name))


def reverse(attention, length, name="sequences_right"):
    return of(attention, name, "reverse", length)


def seed(attention, length, name="sequences_right", of_what="reverse"):
    return (of_what, ("runs", {"attention": attention, "length": length, "seed": 0}, name))


def detailed(reverse_copy=False):
    """Four models without attention that lose more the later the position, and two with attention."""
    runs, details = [], []
    for length in (6, 12):
        for task in ("reverse", "copy") if reverse_copy else ("reverse",) * 2:
            free = [1 - 0.05 * n for n in range(length)]
            forced = [1 - 0.02 * n for n in range(length)]
            right = 0.9 if task == "reverse" else 0.8
            about = {"attention": False, "length": 2 * length if not reverse_copy else length, "task": task}
            runs.append(about | {"digits_right": right})
            details.append({"right_by_position": free, "teacher_forced_right_by_position": forced})
        runs.append({"attention": True, "length": length, "task": "reverse", "weight_on_answer": 0.9})
        details.append({"right_by_position": [1.0] * length, "teacher_forced_right_by_position": [1.0] * length})
    return {"runs": runs, "details": details}


DETAILED, COPIED = {"reverse": detailed()}, {"reverse_copy": detailed(reverse_copy=True)}
# At 40 digits and the first rate attention learns nothing: it says nothing of where it looks.
LOOKING = {
    "reverse": {"runs": [*DETAILED["reverse"]["runs"], {"attention": True, "length": 40, "weight_on_answer": 0.1}]},
    LOWER: {"runs": [{"attention": True, "length": 40, "weight_on_answer": 0.95}, {"attention": False, "length": 40}]},
}
UNCLIPPED = {"runs": [run | {"sequences_right": run["sequences_right"] / 2} for run in REVERSE["reverse"]["runs"]]}
CLIPPING = {"reverse": {"runs": posts("reverse")["reverse"]["runs"]}, "reverse_unclipped": UNCLIPPED}
CLIPPING |= {"published: reverse": REVERSE["reverse"]}
FORTY = posts(LONGER, LOWER, TWICE)
WILD = {"reverse_40_unclipped": posts(LONGER)[LONGER]}
BAHDANAU = {
    "reverse_bahdanau": {"runs": [{"attention": True, "length": length, "digits_right": 0.95} for length in (20, 40)]}
}
BACKWARDS = [0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
# What a reversal writes first was read last: it loses from the first position written on, a copy from the last one.
COPIES = [i for i, run in enumerate(COPIED["reverse_copy"]["runs"]) if run["task"] == "copy"]
COPIES_TURNED = [("reverse_copy", ("details", i, "right_by_position"), lambda shares: shares[::-1]) for i in COPIES]
LAST_READ = copy.deepcopy(COPIED)
for i in COPIES:
    LAST_READ["reverse_copy"]["details"][i]["right_by_position"].reverse()


def curves(losses):
    """Two models with attention, whose losses these are, and one without."""
    return {
        "runs": [{"attention": attention, "length": 40} for attention in (True, True, False)],
        "details": [{"curve": {"mean_loss": [2.3, *losses]}} for _ in range(2)]
        + [{"curve": {"mean_loss": [2.3, 0.5]}}],
    }


CURVES = {LONGER: curves([0.5, 2.2]), LOWER: curves([0.5, 0.1])}


def curve(of_what, losses, n=...):
    return (of_what, ("details", n, "curve", "mean_loss"), losses)


def positions(task, shares, name="right_by_position"):
    """Of the shorter models of a task."""
    at = [i for i, run in enumerate(COPIED["reverse_copy"]["runs"]) if (run["task"], run["length"]) == (task, 6)]
    return [
        ("reverse_copy", ("details", i, name), shares) for i in at if not COPIED["reverse_copy"]["runs"][i]["attention"]
    ]


CASES = {
    "short_is_easy": Case(
        REVERSE,
        named=[(*reverse(attention, 5), 0.5) for attention in (False, True)],
        fails=[(*reverse(True, 5), 0.5)],  # one model
        undecided=[(*seed(False, 5), 0.5)],
    ),
    "bottleneck": Case(
        REVERSE,
        named=[
            (*reverse(False, 5), 0.5),
            (*reverse(False, 10), 0.5),
            (*reverse(False, 20), 0.8),
            (*reverse(False, 40), 0.9),
            (*seed(False, 40), 0.001),  # one sequence of a thousand isn't none
            ("reverse", (RERUN, "whole sequences right, no attention", "10"), [0.5, 0.5]),
            ("reverse", (RERUN, "whole sequences right, no attention", "20"), [0.5, 0.5]),
            ("reverse", (RERUN, "whole sequences right, no attention", "40"), [0.5, 0.5]),
        ],
        fails=[(*reverse(False, 5), 0.1)],
        undecided=[(*seed(False, 20), 0.5)],
    ),
    "attention_falls_slowly": Case(
        REVERSE,
        named=[
            (*reverse(True, 10), 0.8),
            (*reverse(True, 20), 0.2),
            [
                (*reverse(False, 20), 0.8),
                ("reverse", (RERUN, "whole sequences right, no attention", "20"), [0.8, 0.8]),
            ],
            [
                (*reverse(False, 10), 0.3),
                ("reverse", (RERUN, "whole sequences right, no attention", "10"), [0.3, 0.3]),
            ],
            ("reverse", (RERUN, "whole sequences right, attention", "10"), [0.5, 0.5]),
            ("reverse", (RERUN, "whole sequences right, attention", "20"), [0.2, 0.2]),
        ],
        fails=[
            (*reverse(True, 20), 0.2),
            ("reverse", (RERUN, "whole sequences right, attention", "20"), [0.2, 0.2]),
        ],
        undecided=[(*seed(True, 10), 0.8)],
    ),
    "unstable_at_forty": Case(
        REVERSE | FORTY,
        named=[
            [
                (*reverse(True, 40, "digits_right"), 0.3),
                ("reverse", (RERUN, "length 40, attention, two seeds", "digits_right"), [0.3, 0.3]),
            ],
            (*of(True, "digits_right"), 0.97),
            (*seed(True, 40, "digits_right", LONGER), 0.3),
        ],
        fails=[(*of(True, "digits_right"), 0.97)],
        undecided=[("reverse", (RERUN,), {}), ("reverse", ("runs", 15, "digits_right"), 0.4)],
    ),
    "most_digits_never_all": Case(
        FORTY,
        named=[(*of(False, "digits_right", TWICE), 0.3), (*of(False, "sequences_right", TWICE), 0.5)],
        fails=[(*of(False, "digits_right", TWICE), 0.3)],
        undecided=[(*seed(False, 40, "digits_right", TWICE), 0.3)],
    ),
    "errors_add_up": Case(
        DETAILED,
        named=[
            ("reverse", ("details", i, "right_by_position"), lambda shares: [1.0] * len(shares)) for i in (0, 1, 3, 4)
        ]
        + [
            (
                "reverse",
                ("details", i, "teacher_forced_right_by_position"),
                lambda s: [1 - 0.05 * n for n in range(len(s))],
            )
            for i in (0, 1)
        ],
        fails=[("reverse", ("details", ..., "right_by_position"), lambda shares: [1.0] * len(shares))],
        undecided=[("reverse", ("details", 0, "right_by_position"), lambda shares: [1.0] * len(shares))],
    ),
    "last_read_is_easy": Case(
        LAST_READ,
        named=positions("reverse", BACKWARDS) + positions("copy", BACKWARDS[::-1]),
        fails=[("reverse_copy", ("details", ..., "right_by_position"), lambda shares: shares[::-1])],
        undecided=COPIES_TURNED,
    ),
    "last_read_is_easy_in_both_tasks": Case(
        LAST_READ,
        named=positions("reverse", BACKWARDS) + positions("copy", BACKWARDS[::-1]),
        fails=COPIES_TURNED,
        undecided=positions("copy", BACKWARDS[::-1]),
    ),
    "first_written_is_easy": Case(
        COPIED,
        named=positions("reverse", BACKWARDS) + positions("copy", BACKWARDS),
        fails=[("reverse_copy", ("details", ..., "right_by_position"), lambda shares: shares[::-1])],
        undecided=positions("copy", BACKWARDS),
    ),
    "reversing_is_easier": Case(
        COPIED,
        named=[
            ("reverse_copy", ("runs", {"attention": False, "task": task, "length": length}, "digits_right"), share)
            for length in (6, 12)
            for task, share in (("reverse", 0.7), ("copy", 0.95))
        ],
        fails=[("reverse_copy", ("runs", {"attention": False, "task": "reverse"}, "digits_right"), 0.7)],
        undecided=[
            ("reverse_copy", ("runs", {"attention": False, "task": "reverse", "length": 6}, "digits_right"), 0.7)
        ],
    ),
    "attention_looks_at_its_digit": Case(
        LOOKING,
        named=[
            (of_what, ("runs", {"attention": True, "length": n}, "weight_on_answer"), 0.1)
            for of_what, n in (("reverse", 6), ("reverse", 12), (LOWER, 40))
        ],
        fails=[(of_what, ("runs", {"attention": True}, "weight_on_answer"), 0.1) for of_what in LOOKING],
        undecided=[(LOWER, ("runs", 0, "weight_on_answer"), 0.1)],
    ),
    "the_post_clips": Case(
        CLIPPING,
        named=[
            ("reverse", ("runs", ..., "sequences_right"), 0.2),
            ("reverse_unclipped", ("runs",), REVERSE["reverse"]["runs"]),
            ("reverse_unclipped", ("runs", {"attention": True, "length": 10}, "sequences_right"), 0.96),
            ("published: reverse", ("runs", ..., "sequences_right"), 0.1),
        ],
        fails=[
            ("reverse", ("runs", ..., "sequences_right"), 0.1),
            ("reverse_unclipped", ("runs",), REVERSE["reverse"]["runs"]),
        ],
        undecided=[("reverse_unclipped", ("runs", {"attention": True, "length": 10}, "sequences_right"), 0.962)],
    ),
    "attention_does_worse_at_first": Case(
        FORTY | WILD,
        named=[
            (*of(True, "digits_right"), 0.97),
            (*of(False, "digits_right"), 0.1),
            (*of(True, "digits_right", "reverse_40_unclipped"), 0.97),
            (*of(False, "digits_right", "reverse_40_unclipped"), 0.1),
        ],
        fails=[(*of(True, "digits_right", "reverse_40_unclipped"), 0.97)],
        undecided=[(*seed(True, 40, "digits_right", LONGER), 0.97)],
    ),
    "rate_spoils_attention": Case(
        FORTY | WILD,
        named=[
            (*of(True, "digits_right", LOWER), 0.2),
            (*of(True, "digits_right"), 0.97),
            (*of(True, "digits_right", "reverse_40_unclipped"), 1.0),
        ],
        fails=[(*of(True, "digits_right", "reverse_40_unclipped"), 1.0)],
        undecided=[(*seed(True, 40, "digits_right", "reverse_40_unclipped"), 1.0)],
    ),
    "bahdanau_is_ahead_at_that_rate": Case(
        REVERSE | BAHDANAU,
        named=[(*of(True, "digits_right", "reverse_bahdanau"), 0.2), (*reverse(True, 40, "digits_right"), 0.97)],
        fails=[(*of(True, "digits_right", "reverse_bahdanau"), 0.2)],
        undecided=[(*seed(True, 40, "digits_right"), 0.97)],
    ),
    "attention_diverges_at_that_rate": Case(
        CURVES,
        named=[curve(LONGER, [2.3, 0.5, 0.6]), curve(LOWER, [2.3, 0.5, 2.2])],
        fails=[curve(LOWER, [2.3, 0.5, 2.2])],
        undecided=[curve(LONGER, [2.3, 0.5, 0.6], 0)],
    ),
    "own_best_rates": Case(
        FORTY,
        named=[
            (*of(True, "digits_right"), 0.99),
            (*of(True, "digits_right", LOWER), 0.1),
            (*of(False, "digits_right"), 0.1),
            (*of(False, "digits_right", LOWER), 0.9),
        ],
        fails=[(*of(False, "digits_right"), 0.1)],
        undecided=[(*seed(False, 40, "digits_right", LONGER), 0.1)],
    ),
    "attention_wins": Case(
        FORTY,
        named=[
            (*of(True, of_what=LOWER), 0.01),
            (*of(True, of_what=LOWER), 0.9),
            (*of(False), 0.001),
            (*of(False, of_what=TWICE), 0.9),
        ],
        fails=[(*of(True, of_what=LOWER), 0.01)],
        undecided=[(*seed(True, 40, of_what=LOWER), 0.5)],
    ),
    "still_improving": Case(
        FORTY,
        named=[(*of(False, "digits_right"), 0.75), (*of(False, "digits_right", TWICE), 0.5)],
        fails=[(*of(False, "digits_right", TWICE), 0.5)],
        undecided=[(*seed(False, 40, "digits_right", TWICE), 0.5)],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_every_figure_that_is_named_decides(name):
    check(name, CASES[name])


def test_without_the_unclipped_runs_the_rate_is_judged_by_the_others():
    """As the post's figures are, which has no such runs."""
    for name in "rate_spoils_attention", "attention_does_worse_at_first":
        assert verdict(name, FORTY) == "holds"


def test_the_post_s_second_machine_is_a_third_and_a_fourth_seed():
    from reruns.claims import bottleneck

    assert bottleneck.right(REVERSE["reverse"], True, 10) == [0.958, 0.958, 0.96, 0.97]
    assert bottleneck.digits(REVERSE["reverse"], True) == [0.479, 0.25, 0.74, 0.35]
    assert bottleneck.right(REVERSE["reverse"], False, 5) == [0.972, 0.979]  # it tells none of five digits


def test_a_diverged_run_is_left_out():
    gone = ("reverse", ("runs", 12), {"attention": False, "length": 40, "diverged_at_step": 7})
    assert verdict("bottleneck", REVERSE, gone) == "holds"
    assert verdict("bottleneck", REVERSE, ("reverse", (RERUN,), LEFT_OUT)) == "holds"
