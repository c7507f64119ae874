"""Weights of mixtures against a search, and against cases worked out by hand; text packed by compressors."""

import zlib

import numpy as np
import pytest

from layers import mixtures


def test_the_weights_are_the_best_there_are():
    """Of two models on 500 characters: no other of 1,001 weights takes fewer bits."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.01, 1, (2, 500))
    w = mixtures.fit(p)
    tried = [mixtures.bits_per_char(mixtures.mix(p, [share, 1 - share])) for share in np.linspace(0, 1, 1001)]
    assert mixtures.bits_per_char(mixtures.mix(p, w)) <= min(tried) + 1e-9 and w.sum() == pytest.approx(1)
    assert abs(w[0] - np.argmin(tried) / 1000) < 0.002


def test_weights_worked_out_by_hand():
    """Two models, each certain of one half of 4 characters and without an idea of the other: half the weight each.

    With 3 of 4 for the first, it gets 3/4: the mixture then gives 3/4 to three characters and 1/4 to one.
    """
    assert mixtures.fit([[1, 1, 0, 0], [0, 0, 1, 1]]) == pytest.approx([0.5, 0.5])
    found = mixtures.fitted({"one": ([1, 1, 1, 0], [0.5, 1.0]), "other": ([0, 0, 0, 1], [0.5, 0.0])})
    assert found["weights"] == pytest.approx({"one": 0.75, "other": 0.25})
    assert found["bits_per_char"] == pytest.approx((1 - np.log2(0.75)) / 2)
    assert found["set_aside_bits_per_char"] == pytest.approx((-3 * np.log2(0.75) - np.log2(0.25)) / 4)


def test_what_is_never_better_gets_nothing():
    w = mixtures.fit([[0.5] * 50, [0.1] * 50, [0.4] * 50])
    assert w == pytest.approx([1, 0, 0], abs=1e-6)


def test_the_share_of_characters_that_no_other_text_shows():
    """Of "aabz" only z, of "abc" only c, of "ab" none: 2 of 9. A text alone has all of its characters to itself."""
    assert mixtures.share_of_its_own(["aabz", "abc", "ab"]) == pytest.approx(2 / 9)
    assert mixtures.share_of_its_own(["abc"]) == 1 and mixtures.share_of_its_own(["ab", "ba"]) == 0


def test_the_unseen_symbol_is_given_its_share():
    """A tenth: 0.9 · 0.5 of a character seen, 0.9 · 0.001 + 0.1 of one that wasn't. A whole vocabulary sums to 1."""
    assert mixtures.expecting([0.5, 0.001], [False, True], 0.1) == pytest.approx([0.45, 0.1009])
    vocabulary = mixtures.expecting([0.2, 0.3, 0.4, 0.1], np.arange(4) == 3, 0.05)
    assert vocabulary.sum() == pytest.approx(1) and vocabulary[3] == pytest.approx(0.095 + 0.05)


def test_bits_packed_are_probabilities_unpacked():
    bits = [0.0, 1.0, 3.5, 20.25]
    assert mixtures.unpack(mixtures.pack(bits)) == pytest.approx([1, 0.5, 2**-3.5, 2**-20.25])


def test_compressors_are_charged_for_what_the_text_adds():
    train, text = "all that glitters is not gold\n" * 40, "all that glitters is not gold, é\n" * 3
    expected = 8 * (len(zlib.compress((train + text).encode(), 9)) - len(zlib.compress(train.encode(), 9))) / len(text)
    found = mixtures.compressed(train, text)
    assert found.keys() == {"zlib", "bz2", "xz"} and found["zlib"] == expected
    rng = np.random.default_rng(0)
    noise = "".join(map(chr, rng.integers(97, 113, 4000)))  # 16 letters drawn evenly: 4 bits each, and a little more
    assert all(4 < bits < 5.5 for bits in mixtures.compressed("", noise).values())
