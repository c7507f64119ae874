"""Kneser–Ney n-grams (kneser_ney.py)."""

import json
import math
import os
import re
import time
import tracemalloc
from collections import Counter
from fractions import Fraction

import nltk.lm
import numpy as np
import plain_kneser_ney as plain
import pytest
from commands import assert_refused, run
from nltk.util import everygrams
from post import record_of

import corpus
import kneser_ney
from kneser_ney import continuation_counts, count_ngrams, find, levels, of_context, probabilities, sample
from lab.script import UserError

FROZEN = corpus.load()
KINDS = {
    "fixed": (kneser_ney.fixed_discounts, plain.fixed_discounts),
    "modified": (kneser_ney.modified_discounts, plain.modified_discounts),
}
CAT = "the cat sat on the mat. " * 30
DEGENERATE = [
    "a",
    "ab",
    "aaaa",
    "aaaaaa",
    "ab" * 20,
    "abcd" * 50,
    "abcde",
    CAT,
    "ab" * 500 + "ac",
    "xq" * 50 + "abcacb",
]


def trained(text, kind="fixed", longest=8):
    """A corpus of nothing but this text, and its levels."""
    alphabet = corpus.Corpus(text, "")
    return alphabet, levels(count_ngrams(alphabet.encode(text), alphabet.size, longest), KINDS[kind][0], alphabet.size)


def scores(text, validation, kind, longest=8):
    """Fast and plain: (contexts, characters) each."""
    alphabet, model = trained(text, kind, longest)
    reference = plain.PlainKneserNey(text, alphabet.size, longest, KINDS[kind][1])
    fast = np.array(list(kneser_ney.score(*model, alphabet.encode(validation), alphabet.size)))
    return fast, np.array([reference.probabilities(validation, context) for context in range(longest)])


class Grid:
    """In place of a generator: as many streams as numbers, evenly spread over [0, 1)."""

    def random(self, n):
        return (np.arange(n) + 0.5) / n


def sampled(model, ids, V, streams=200_000):
    """The share of evenly spread random numbers that the sampler turns into each character: its own probabilities."""
    return np.bincount(sample(model, ids, V, streams, 1, Grid())[:, 0], minlength=V) / streams


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    return record_of(kneser_ney, tmp_path_factory.mktemp("kneser_ney"))


# The plain implementation.


@pytest.mark.parametrize("kind", KINDS)
def test_every_probability_equals_the_plain_ones(kind):
    fast, reference = scores(FROZEN.train[:20_000], FROZEN.validation[:3_000], kind)
    assert fast.shape == (8, 3_000)
    np.testing.assert_allclose(fast, reference, rtol=1e-12, atol=0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", DEGENERATE)
def test_every_probability_of_an_odd_text_equals_the_plain_ones(text, kind):
    fast, reference = scores(text, text[-40:] + "?" + text[:40] + "the cab?", kind)
    np.testing.assert_allclose(fast, reference, rtol=1e-12, atol=0)


@pytest.mark.parametrize("fault", ["a count", "a continuation", "a discount", "the vocabulary"])
def test_a_reference_with_a_small_fault_is_noticed(fault):
    text, validation = FROZEN.train[:10_000], FROZEN.validation[:1_000]
    alphabet, model = trained(text)
    reference = plain.PlainKneserNey(text, alphabet.size + (fault == "the vocabulary"), 8, plain.fixed_discounts)
    if fault == "a count":
        reference.longest[3].count["the "] += 1
    elif fault == "a continuation":
        reference.below[3].total["the"] -= 1
    elif fault == "a discount":
        reference.below[0].discount[3] += 1e-6
    fast = np.array(list(kneser_ney.score(*model, alphabet.encode(validation), alphabet.size)))
    with pytest.raises(AssertionError):
        wrong = [reference.probabilities(validation, context) for context in range(8)]
        np.testing.assert_allclose(fast, wrong, rtol=1e-12, atol=0)


def test_any_alphabet_and_any_order():
    """70,000 symbols, more than 16 bits hold; n-grams of 20, more than the numbers of all of them would fit in 64."""
    rng = np.random.default_rng(0)
    V = 70_001
    phrase = rng.integers(65_000, 70_000, size=40)
    train = np.concatenate([phrase, rng.integers(70_000, size=3_000), phrase, [69_999, 0, 65_536]])
    validation = np.concatenate([phrase, [70_000, 0, 65_536, 1]])
    model = levels(count_ngrams(train, V, 20), kneser_ney.modified_discounts, V)
    letters = ["".join(map(chr, ids)) for ids in (train, validation)]
    reference = plain.PlainKneserNey(letters[0], V, 20, plain.modified_discounts)
    for context, p in enumerate(kneser_ney.score(*model, validation, V)):
        np.testing.assert_allclose(p, reference.probabilities(letters[1], context), rtol=1e-12, atol=0)


def test_counts_are_those_of_a_dictionary():
    text = FROZEN.train[:5_000]
    alphabet = corpus.Corpus(text, "")
    ids, V = alphabet.encode(text), alphabet.size
    numbers = np.zeros(len(text) + 1, np.int64)
    for n, ngrams in enumerate(count_ngrams(ids, V, 8), 1):
        numbers = find(ngrams.key, numbers[:-1], ids[n - 1 :], V)
        counted = Counter(text[i : i + n] for i in range(len(text) - n + 1))
        assert len(ngrams.key) == len(counted) and (np.diff(ngrams.key) > 0).all()
        ordered = {text[i : i + n]: number for i, number in enumerate(numbers)}
        assert sorted(ordered, key=ordered.get) == sorted(counted)
        assert {ngram: ngrams.count[number] for ngram, number in ordered.items()} == counted


# NLTK, where it is right: of two characters. Its models of three count what follows a history as it occurs while they
# divide by continuations, so that a history's probabilities sum to more than 1; and it has no uniform floor.


def test_bigrams_equal_nltks():
    text = FROZEN.train[:2_000]
    model = nltk.lm.KneserNeyInterpolated(2, discount=0.75)
    model.fit([everygrams(list(text), max_len=2)], vocabulary_text=list(text))
    alphabet, (longest, _) = trained(text, longest=2)
    V = alphabet.size
    continuation = continuation_counts(count_ngrams(alphabet.encode(text), V, 2))[0]
    seen = alphabet.characters[: V - 1]
    for history in "the \n(=":
        h = alphabet.encode(history)[0]
        for c, character in enumerate(seen):
            ours = longest[1].alpha[find(longest[1].key, h, np.array([c]), V)[0]]
            ours += longest[1].gamma[h] * continuation[c] / continuation.sum()
            assert ours == pytest.approx(model.score(character, [history]), rel=1e-12)


# By hand.


def test_a_table_made_by_hand():
    """The text "abcab" over V = 4: a, b, c and what is never seen, "?". D = 3/4.

    Continuations: a is seen after c, b after a, c after b (the first a after nothing): 1 each, together 3. So
      p(a) = p(b) = p(c) = (1 - 3/4)/3 + (3/4 · 3)/3 · 1/4 = 1/12 + 3/16 = 13/48;   p(?) = 3/16.
    One character of context: ab occurs twice, bc and ca once.
      p(b|a) = (2 - 3/4)/2 + (3/4)/2 · 13/48        p(?|a) = (3/4)/2 · 3/16
      p(c|b) = (1 - 3/4)/1 + (3/4)/1 · 13/48        p(a|b) = 3/4 · 13/48
    Two characters: abc, bca, cab once each. Below them ab, bc and ca have one continuation each: c, a, b (the first ab
    is at the start of the text). So below, p'(c|b) = 1/4 + 3/4 · 13/48, p'(b|a) = 1/4 + 3/4 · 13/48, and
      p(c|ab) = 1/4 + 3/4 · p'(c|b)        p(a|ab) = 3/4 · 3/4 · 13/48
    "ac" was never seen: p(b|ac) = p'(b|c) = 3/4 · 13/48, since ca is all that c has.
    """
    alphabet, model = trained("abcab", longest=3)
    unigram, unseen, d = Fraction(13, 48), Fraction(3, 16), Fraction(3, 4)
    below = (1 - d) + d * unigram
    expected = {
        (0, "", "a"): (2 - d) / 5 + d * 3 / 5 / 4,  # alone, single characters are the longest: a occurs 2 times in 5
        (0, "", "c"): (1 - d) / 5 + d * 3 / 5 / 4,
        (1, "", "a"): unigram,
        (1, "", "?"): unseen,
        (1, "a", "b"): (2 - d) / 2 + d / 2 * unigram,
        (1, "a", "?"): d / 2 * unseen,
        (1, "b", "c"): below,
        (1, "b", "a"): d * unigram,
        (1, "?", "b"): unigram,
        (2, "a", "b"): below,
        (2, "ab", "c"): (1 - d) + d * below,
        (2, "ab", "a"): d * d * unigram,
        (2, "ac", "b"): d * unigram,
        (2, "?a", "b"): below,
        (2, "a?", "b"): unigram,
    }
    for (context, history, character), p in expected.items():
        ours = probabilities(of_context(*model, context), alphabet.encode(history), 4)
        assert ours[alphabet.encode(character)[0]] == pytest.approx(float(p), abs=1e-15), (context, history, character)


def test_a_character_that_follows_one_other_counts_once():
    """In "xq" · 50 + "abcacb" the q occurs 50 times, and always after x.

    Continuations: q {x}, x {q}, a {q, c}, b {a, c}, c {b, a}: 8 in all, of 5 kinds, V = 6. With D = 3/4,
    p(q) = (1 - 3/4)/8 + (3/4 · 5)/8 · 1/6 = 0.109375, and p(b) = (2 - 3/4)/8 + 0.078125 = 0.234375.
    """
    alphabet, model = trained("xq" * 50 + "abcacb")
    for context in range(1, 8):
        p = probabilities(of_context(*model, context), alphabet.encode("?"), alphabet.size)
        np.testing.assert_allclose(p[alphabet.encode("qb")], [0.109375, 0.234375], atol=1e-15)


def test_modified_discounts_by_hand():
    """Counts with n1 = 4, n2 = 2, n3 = 1, n4 = 1: Y = 4/(4 + 4) = 1/2.

    D1 = 1 - 2 · 1/2 · 2/4 = 1/2; D2 = 2 - 3 · 1/2 · 1/2 = 5/4; D3 = 3 - 4 · 1/2 · 1/1 = 1.
    """
    counts = np.array([1, 3, 1, 2, 9, 4, 1, 2, 1, 0, 0])
    np.testing.assert_allclose(kneser_ney.modified_discounts(counts), [0, 1 / 2, 5 / 4, 1], atol=1e-15)


def test_discounts_that_make_no_sense_are_replaced():
    """In "the cat sat on the mat. " · 30, h, e, c, s, o, n, m and the stop are seen after 1 character each, t after 2
    (a and the space), a after 3 (c, s, m), the space after 4 (e, t, n and the stop). So n1 = 8, n2 = n3 = n4 = 1,
    Y = 8/10, D2 = 2 - 3 · 0.8 = -0.40, D3 = 3 - 4 · 0.8 = -0.20.

    Of the 17 pairs, "at" is seen after 3 (c, s, m), " t" after 2 (n and the stop), 15 after 1: Y = 15/17 and
    D2 = 2 - 3 · 15/17 = -0.65. In the text's threes, "aaaaaa" and the like, n1 = n2 = 0 leaves nothing to divide by.
    """
    alphabet = corpus.Corpus(CAT, "")
    ngrams = count_ngrams(alphabet.encode(CAT), alphabet.size, 3)
    singles, pairs = continuation_counts(ngrams)
    assert sorted(singles) == [1] * 8 + [2, 3, 4] and sorted(pairs) == [1] * 15 + [2, 3]
    for count in (singles, pairs, ngrams[2].count, np.array([6]), np.array([], dtype=int)):
        assert kneser_ney.modified_discounts(count).tolist() == [0, 0.5, 1, 1.5]


@pytest.mark.parametrize("text", DEGENERATE)
def test_discounts_are_in_their_bounds(text):
    alphabet = corpus.Corpus(text, "")
    ngrams = count_ngrams(alphabet.encode(text), alphabet.size, 8)
    for count in [*continuation_counts(ngrams), *(count for _, count, _ in ngrams)]:
        D = kneser_ney.modified_discounts(count)
        assert D[0] == 0 and all(0 < D[c] <= c for c in (1, 2, 3))


# Sums to one.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", [*DEGENERATE, FROZEN.train[:2_000]])
def test_probabilities_sum_to_one_everywhere(text, kind):
    """After every history of up to 7 characters of the text, at its start and its end, and after ones never seen."""
    alphabet, model = trained(text, kind)
    V = alphabet.size
    places = range(0, len(text) + 1, max(1, len(text) // 30))
    seen = {text[max(0, i - length) : i] for i in [*places, len(text)] for length in range(8)}
    for history in {*seen, "", "?", "??", "a?", "?a", "zzzzzzzz", text[:3] + "?", "?" + text[:3], text[::-1][:7]}:
        for context in range(8):
            p = probabilities(of_context(*model, context), alphabet.encode(history), V)
            assert p.shape == (V,) and (p > 0).all() and abs(p.sum() - 1) < 1e-12, (history, context)


@pytest.mark.parametrize("kind", KINDS)
def test_every_history_of_the_frozen_text_shares_out_everything(kind):
    """alpha over all characters and gamma make 1, so that a sum of 1 below gives a sum of 1 above."""
    _, model = trained(FROZEN.train, kind)
    for level in [*model[0], *model[1]]:
        shared = np.bincount(level.key // FROZEN.size, level.alpha[:-1], len(level.gamma) - 1) + level.gamma[:-1]
        assert np.abs(shared - 1).max() < 1e-12 and level.alpha[-1] == 0 and level.gamma[-1] == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", DEGENERATE)
def test_the_sampler_draws_with_these_probabilities(text, kind):
    """What evenly spread random numbers become, first character included, adds up to the same table."""
    alphabet, model = trained(text, kind)
    V = alphabet.size
    for history in ("", "?", text[:1], text[-3:], text[-7:], text[:3] + "?" + text[:2]):
        for context in (0, 1, 3, 7):
            chain, ids = of_context(*model, context), alphabet.encode(history)
            shares = sampled(chain, ids, V, 20_000)
            assert shares.sum() == pytest.approx(1, abs=1e-12)
            # A character has an interval at each of up to 8 levels, and the share of each is off by up to a step.
            np.testing.assert_allclose(shares, probabilities(chain, ids, V), atol=9 / 20_000)


# The score.


def test_a_score_is_the_probability_after_what_precedes():
    """At the start of a text the history is what there is."""
    alphabet, model = trained(FROZEN.train[:5_000], "modified")
    ids = alphabet.encode(FROZEN.validation[:30] + "ж" + FROZEN.validation[30:40])
    for context, p in enumerate(kneser_ney.score(*model, ids, alphabet.size)):
        chain = of_context(*model, context)
        expected = [probabilities(chain, ids[:i], alphabet.size)[ids[i]] for i in range(len(ids))]
        np.testing.assert_allclose(p, expected, rtol=1e-13)


def test_a_model_that_knows_nothing_costs_log_v():
    for discounts, _ in KINDS.values():
        bits = kneser_ney.bits_per_char(np.zeros(0, int), np.arange(65), 65, discounts=discounts)
        np.testing.assert_allclose(bits, math.log2(65), rtol=1e-15)  # 6.0224


def test_bits_are_the_mean_over_every_character_but_the_first():
    alphabet, (longest, below) = trained("abcab")
    ids = alphabet.encode("abz")
    p = [probabilities(of_context(longest, below, 2), ids[:i], 4)[ids[i]] for i in (1, 2)]
    (bits,) = kneser_ney.bits_per_char(alphabet.encode("abcab"), ids, 4, [2], kneser_ney.fixed_discounts)
    assert bits == pytest.approx(-(math.log2(p[0]) + math.log2(p[1])) / 2)
    assert 2**bits == pytest.approx(math.exp(bits * math.log(2))) == pytest.approx((p[0] * p[1]) ** -0.5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", [*DEGENERATE, "aab"])
def test_unseen_characters_cost_a_finite_number_of_bits(text, kind):
    alphabet = corpus.Corpus(text, "")
    ids = alphabet.encode("aaz" + text[:5] + "z")
    bits = kneser_ney.bits_per_char(alphabet.encode(text), ids, alphabet.size, discounts=KINDS[kind][0])
    assert np.isfinite(bits).all() and (np.array(bits) > 0).all()


# The sampler.


def test_sampled_texts_have_the_frequencies_of_the_model():
    """Of 200,000 texts of three characters, so many have each form: within 5 standard deviations of what p says."""
    alphabet, model = trained("abcabba abacab", "modified")
    chain, V, streams = of_context(*model, 2), alphabet.size, 200_000
    prompt = alphabet.encode("b")
    texts = sample(chain, prompt, V, streams, 3, np.random.default_rng(0)).astype(np.int64)
    shares = np.bincount(texts @ [V * V, V, 1], minlength=V**3).reshape(V, V, V) / streams
    p = np.empty((V, V, V))
    for a in range(V):
        for b in range(V):
            after = [np.concatenate([prompt, ids]).astype(int) for ids in ([], [a], [a, b])]
            first, second, third = (probabilities(chain, ids, V) for ids in after)
            p[a, b] = first[a] * second[b] * third
    assert np.abs(p.sum() - 1) < 1e-12
    assert (np.abs(shares - p) < 5 * np.sqrt(p / streams) + 1e-5).all()


def test_a_sample_depends_on_its_seed_and_on_nothing_else():
    alphabet, model = trained(FROZEN.train[:20_000], "modified")
    chain, prompt = of_context(*model, 7), alphabet.encode("The ")
    texts = [sample(chain, prompt, alphabet.size, 1, 60, np.random.default_rng(seed))[0].tolist() for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]


@pytest.mark.parametrize("steps", [1, 3, 20])
def test_the_sampler_keeps_track_of_what_it_wrote(steps):
    """All streams are given the same numbers and so write the same text; then evenly spread ones, whose outcome must be
    the probabilities after that text."""
    alphabet, model = trained(FROZEN.train[:50_000], "modified")
    chain, prompt, V, streams = of_context(*model, 7), alphabet.encode("The ж"), alphabet.size, 50_000
    numbers = [np.full(streams, u) for u in np.random.default_rng(steps).random(steps)] + [Grid().random(streams)]

    class Scripted:
        def random(self, n):
            return numbers.pop(0)

    written = sample(chain, prompt, V, streams, steps + 1, Scripted())
    assert (written[:, :-1] == written[0, :-1]).all()
    shares = np.bincount(written[:, -1], minlength=V) / streams
    text = np.append(prompt, written[0, :-1]).astype(np.int64)
    np.testing.assert_allclose(shares, probabilities(chain, text, V), atol=9 / streams)


# Cost.


def test_memory_is_linear_in_the_text_and_does_not_depend_on_the_alphabet():
    """Evenly drawn symbols: nearly all long n-grams are different, the most that a text can have."""

    def peak(N, V):
        text = np.random.default_rng(0).integers(V - 1, size=N)
        tracemalloc.start()
        levels(count_ngrams(text, V, 8), kneser_ney.modified_discounts, V)
        bytes_at_most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return bytes_at_most

    assert peak(80_000, 128) < 4.2 * peak(20_000, 128)
    assert peak(20_000, 100_000) < 1.5 * peak(20_000, 128)


def test_a_question_does_not_take_longer_of_a_larger_text():
    """Thirty times the text: searches take a few more steps, reading the tables would take thirty times as long."""
    took = []
    for text in (FROZEN.train[:20_000], FROZEN.train):
        alphabet, model = trained(text)
        chain, ids, seconds = of_context(*model, 7), alphabet.encode("the gradient"), []
        for _ in range(50):
            start = time.process_time()
            probabilities(chain, ids, alphabet.size)
            seconds.append(time.process_time() - start)
        took.append(min(seconds))
    assert took[1] < 5 * took[0]


# The script.


def test_results_have_the_posts_names_and_lines(record):
    published = json.loads((corpus.DATA / "published.json").read_text(encoding="utf-8"))["kneser_ney"]
    results, lines = record["results"], record["printed"]
    assert published.keys() - {"kind"} <= results.keys()
    assert results["discount"] == published["discount"] and results["context"] == published["context"]
    for line, context, bits in zip(lines[:7], results["context"], results["bits_per_char"], strict=True):
        assert line == f"previous {context} characters: {bits:.3f} bits/char"
    assert lines[7] == "probabilities over all characters sum to 1.000000 after 'the'" and lines[8] == ""
    assert results["probabilities_sum_after_the"] == pytest.approx(1, abs=1e-12)
    assert results["scored_characters"] == len(FROZEN.validation) - 1
    assert any(line.startswith(f"scored: {len(FROZEN.validation) - 1:,} characters") for line in lines)


def test_modified_beats_the_fixed_discount_and_is_where_kenlm_is(record):
    """KenLM's lmplz on this text, a token a character, with discount fallback: 2.481 bits at context 6, 2.473 at 7."""
    fixed, modified = record["results"]["bits_per_char"], record["results"]["modified"]["bits_per_char"]
    assert (np.array(modified) < fixed).all()
    assert abs(modified[5] - 2.481) < 0.02 and abs(modified[6] - 2.473) < 0.02


def test_where_it_loses_is_shown(record):
    drawn = record["results"]["drawn_evenly"]
    assert math.log2(27) < drawn["add_one"] < min(drawn["fixed"], drawn["modified"])


def test_discounts_that_stood_in_are_named(tmp_path, capsys):
    write_corpus(tmp_path / "data", CAT, "the cat ate")
    kneser_ney.main(["--data", str(tmp_path / "data")])
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "stood in" in line]
    assert "(0.5, 1.0, 1.5)" in line and "1-grams below longer ones" in line and "2-grams as the longest" in line


def write_corpus(folder, train, validation):
    folder.mkdir()
    (folder / corpus.TRAIN).write_bytes(train.encode())
    (folder / corpus.VALIDATION).write_bytes(validation.encode())


@pytest.mark.parametrize("train", ["a", "ab", "\n", "naïve café 🎈"])
def test_the_smallest_texts_work(train, tmp_path, capsys):
    write_corpus(tmp_path / "data", train, "ab")
    kneser_ney.main(["--data", str(tmp_path / "data")])
    printed = capsys.readouterr().out
    assert "scored: 1 characters" in printed and "nan" not in printed and "inf" not in printed


def test_a_sample_is_printed_after_its_prompt(capsys):
    start = time.process_time()
    kneser_ney.main(["--sample", "1000", "--prompt", "The gradient", "--seed", "3"])
    assert time.process_time() - start < 5
    printed = capsys.readouterr().out
    assert printed.startswith("The gradient") and len(printed) == len("The gradient") + 1000 + len("\n")


def test_a_prompt_of_unseen_characters_is_taken_with_a_note(capsys):
    kneser_ney.main(["--sample", "20", "--prompt", "Жж"])
    captured = capsys.readouterr()
    assert captured.out.startswith("Жж") and "'Ж' 'ж'" in captured.err.splitlines()[0]


def test_the_unseen_character_is_drawn_as_u_fffd():
    alphabet, model = trained("a")
    ids = sample(of_context(*model, 0), np.zeros(0, int), alphabet.size, 1, 200, np.random.default_rng(0))[0]
    assert set(alphabet.decode(ids)) == {"a", "\ufffd"}


def test_a_terminal_that_lacks_a_character_gets_an_escape_and_the_file_is_whole(tmp_path):
    arguments = ["--sample", "5", "--prompt", "é∂", "--outputs", tmp_path]
    done = run("kneser_ney.py", *arguments, PYTHONIOENCODING="ascii")
    assert done.returncode == 0 and done.stdout.startswith(r"\xe9\u2202"), done.stderr
    assert (tmp_path / "kneser_ney_sample.txt").read_text(encoding="utf-8").startswith("é∂")


def test_scale_reports_time_and_memory_by_length(tmp_path, capsys):
    write_corpus(tmp_path / "data", FROZEN.train[:3_000], FROZEN.validation[:500])
    kneser_ney.main(["--scale", "--data", str(tmp_path / "data"), "--outputs", str(tmp_path / "out")])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("x the text")[0].strip() for line in lines[1:]] == ["1", "4", "16"]
    assert all(re.search(r"\d s and \d+ MB for each million", line) for line in lines[1:])
    runs = json.loads((tmp_path / "out" / "kneser_ney_scale.json").read_text(encoding="utf-8"))["results"]["runs"]
    assert [run["characters"] for run in runs] == [3_000, 12_000, 48_000]
    # The text goes on growing: what the model writes isn't the training text over again.
    assert runs[0]["ngrams"] < runs[1]["ngrams"] / 2 < runs[2]["ngrams"] / 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--sample", "-3"], ["--sample", "at least 1", "'-3'"]),
        (["--sample", "0"], ["--sample", "at least 1"]),
        (["--sample", "many"], ["--sample", "'many'"]),
        (["--sample", "5", "--seed", "-1"], ["--seed", "from 0"]),
        (["--sample", "5", "--scale"], ["not allowed with"]),
        (["--prompt", "The"], ["--sample"]),
        (["--seed", "1"], ["--sample"]),
        (["--sample", "5", "--prompt", os.fsdecode(b"ab\xff")], ["--prompt", "UTF-8", "3"]),
        (["--data", "nowhere"], ["nowhere"]),
    ],
)
def test_bad_arguments_are_refused_in_one_line(arguments, words, capsys):
    with pytest.raises((SystemExit, UserError)) as refused:
        kneser_ney.main(arguments)
    captured = capsys.readouterr()
    message = str(refused.value) if refused.type is UserError else captured.err
    assert captured.out == "" and len(message.splitlines()) == 1
    assert all(word in message for word in words), message


def test_a_validation_text_of_one_character_is_refused(tmp_path):
    write_corpus(tmp_path / "data", "abc", "a")
    assert_refused(run("kneser_ney.py", "--data", tmp_path / "data"), "validation", "1 character")
