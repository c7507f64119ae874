"""benchmarks/post.py adds up what the other benchmarks saved."""

import re
from statistics import median

import pytest
from commands import ROOT

from benchmarks import post
from lab import results


def saved_text(name):
    return (ROOT / "outputs" / f"{name}.txt").read_text(encoding="utf-8")


def test_parts_are_the_sums_that_the_benchmarks_made_themselves():
    parts = post.add_up()
    sweep = results.load("benchmark_charlm")["results"]["sweep_seconds"]
    for rival in post.RIVALS:
        assert parts["char_models"][rival] == pytest.approx([seconds[rival] for seconds in sweep])
        # Of each cell one training of 12,000 steps instead of three of 3,000: 4 / 3 of the time.
        assert parts["char_models_long"][rival] == pytest.approx([4 / 3 * seconds[rival] for seconds in sweep])
    plain, _, fast = re.search(
        r"whole of reverse.py, minutes: +(\S+) +(\S+) +(\S+)", saved_text("benchmark_seq2seq")
    ).groups()
    assert f"{median(parts['reverse']['plain']) / 60:.1f}" == plain
    assert f"{median(parts['reverse']['fast']) / 60:.1f}" == fast
    # The same two settings, two seeds each, at another learning rate.
    assert parts["reverse_40_lr"] == parts["reverse_40_longer"]


def test_the_whole_is_what_was_saved_of_it():
    whole, parts = results.load("benchmark_post")["results"]["whole_seconds"], post.add_up().values()
    for rival in post.RIVALS:
        for i, seconds in enumerate(whole[rival]):
            # Quick scripts, whose seconds change whenever they are saved again, are a thousandth of it.
            assert seconds == pytest.approx(sum(part[rival][i] for part in parts), rel=1e-3)
