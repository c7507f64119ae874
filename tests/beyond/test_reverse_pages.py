"""What the pages beyond the post's reversal make of their runs: spread over seeds, means of mixed lengths."""

import pytest

from beyond import reverse_mixed, reverse_seeds


def test_five_seeds_are_summed_up_by_their_mean_and_range():
    run = {"teacher_forced_digits_right": 0.5, "unseen_sequences_right": None, "seen_in_training": 0.0}
    run |= {"median_gradient_norm": 1.0, "largest_gradient_norm": 1.0}
    runs = [
        vars(config) | run | {"digits_right": config.length / 100, "sequences_right": config.seed / 10}
        for config in reverse_seeds.CONFIGS
    ]
    *_, last = reverse_seeds.tell({"runs": runs, "details": [{"right_by_position": [0.5]}] * len(runs)})
    # seeds 0 to 4 give 0.0 to 0.4, whose mean is 0.2
    assert last == (
        "length 20, attention   : digits right 0.200 (0.200 to 0.200), whole sequences right 0.200 (0.000 to 0.400)"
    )


def test_mixed_lengths_are_scored_by_the_mean_of_the_seeds():
    runs = [
        {"attention": attends, "by_length": [{"length": 7, "digits_right": right, "sequences_right": right / 2}]}
        for attends, right in [(False, 0.1), (True, 0.6), (False, 0.3), (True, 1.0)]
    ]
    found = {"runs": runs}
    assert reverse_mixed.by_length(found, False)[7] == pytest.approx([0.2, 0.1])
    assert reverse_mixed.by_length(found, True)[7] == pytest.approx([0.8, 0.4])
    *_, row = reverse_mixed.tell(found)
    assert row.split() == ["7", "0.200", "0.100", "0.800", "0.400"]
    lines = [line.get_ydata() for axes in reverse_mixed.draw(found).axes for line in axes.get_lines()]
    assert [list(line) for line in lines] == [[pytest.approx(share)] for share in (0.2, 0.8, 0.1, 0.4)]
