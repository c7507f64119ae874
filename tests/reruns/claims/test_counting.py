"""Claims about counting: each figure that a sentence names decides it."""

import pytest
from claim_cases import Case, check, posts, verdict

MODIFIED = {
    "kneser_ney": {
        "context": list(range(1, 8)),
        "bits_per_char": [4.1, 3.4, 2.8, 2.6, 2.55, 2.56, 2.57],
        "modified": {
            "context": list(range(1, 17)),
            "bits_per_char": [4.0 - 0.1 * n for n in range(12)] + [2.9] * 4,  # 2.9 from 12 on
        },
    }
}
NEW = {
    "ngram": {
        "context": [0, 1, 2, 3, 4],
        "context_never_seen": [0, 0, 0.1, 0.3, 0.6],
        "distinct_contexts_never_seen": [0, 0, 0.2, 0.5, 0.8],
    }
}


def hidden(**bits):
    runs = [{"states": int(n[1:]), "validation_bits_per_char": b} for n, values in bits.items() for b in values]
    return {"hmm": {"runs": runs, "add_one": {"bits_per_char": [5.0, 4.0, 3.0]}}}


def of_states(states, bits):
    return ("hmm", ("runs", {"states": states}, "validation_bits_per_char"), bits)


STATES = hidden(n1=[5.0, 5.0], n8=[4.3, 4.4], n64=[3.5, 3.6])

CASES = {
    "add_one_stops": Case(
        posts("ngram"),
        named=[("ngram", ("bits_per_char", n), bits) for n, bits in enumerate((3.0, 6.0, 4.2, 3.0, 3.7))],
    ),
    "most_contexts_are_new": Case(
        NEW,
        named=[("ngram", (what, 4), 0.12) for what in ("context_never_seen", "distinct_contexts_never_seen")],
        fails=[("ngram", (what, 4), 0.12) for what in ("context_never_seen", "distinct_contexts_never_seen")],
        undecided=[("ngram", ("context_never_seen", 4), 0.12)],
    ),
    "backing_off_is_better": Case(
        posts("kneser_ney", "ngram"),
        named=[("kneser_ney", ("bits_per_char", n - 1), 5.0) for n in (2, 3, 4)]
        + [("ngram", ("bits_per_char", n), 2.0) for n in (2, 3, 4)],
        fails=[("kneser_ney", ("bits_per_char", ...), 5.0)],
        undecided=[("kneser_ney", ("bits_per_char", 1), 5.0)],
    ),
    "kneser_ney_goes_on": Case(
        posts("kneser_ney"),
        named=[("kneser_ney", ("bits_per_char", at), bits) for at, bits in ((6, 2.5), (3, 2.5), (2, 3.5), (0, 2.55))],
        fails=[("kneser_ney", ("bits_per_char", 6), 2.5)],
    ),
    "modified_goes_further": Case(
        MODIFIED,
        named=[
            ("kneser_ney", ("modified", "bits_per_char", 6), 2.904),  # less than a difference
            ("kneser_ney", ("modified", "bits_per_char", 11), 3.4),
            ("kneser_ney", ("modified", "bits_per_char", 15), 2.894),
            ("kneser_ney", ("modified", "bits_per_char", 15), 2.906),
        ],
    ),
    "counts_see_a_few": Case(posts("kneser_ney"), named=[("kneser_ney", ("bits_per_char", 6), 2.4)]),
    "one_state_is_counting": Case(STATES, named=[of_states(1, 5.001)]),
    "states_help": Case(
        STATES,
        named=[of_states(64, 2.9), of_states(64, 4.8), of_states(8, 5.1), of_states(1, 3.0), of_states(8, 4.9997)],
        fails=[of_states(64, 2.9)],
        undecided=[("hmm", ("runs", 2, "validation_bits_per_char"), 3.55)],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_every_figure_that_is_named_decides(name):
    check(name, CASES[name])


def test_the_modified_kind_decides_too_where_it_is_there():
    """Of the post's figures only the fixed discount is known; here the modified kind uses what lies further back."""
    assert verdict("counts_see_a_few", MODIFIED) == "does not hold"
    flat = ("kneser_ney", ("modified", "bits_per_char", ...), 2.7)
    assert verdict("counts_see_a_few", MODIFIED, flat) == "holds"
