"""N-grams as sorted arrays (layers/ngrams.py): counts, scores and samples of models that kneser_ney.py makes."""

import tracemalloc
from collections import Counter

import numpy as np
import pytest
from odd_texts import TEXTS

import corpus
import kneser_ney
from kneser_ney import of_context
from layers.ngrams import count_ngrams, find, probabilities, sample, score
from plain import kneser_ney as plain

FROZEN = corpus.load()


def trained(text, discounts=kneser_ney.modified_discounts, longest=8):
    """A corpus of nothing but this text, and its levels."""
    alphabet = corpus.Corpus(text, "")
    return alphabet, kneser_ney.levels(
        count_ngrams(alphabet.encode(text), alphabet.size, longest), discounts, alphabet.size
    )


class Grid:
    """In place of a generator: as many streams as numbers, evenly spread over [0, 1)."""

    def random(self, n):
        return (np.arange(n) + 0.5) / n


def sampled(model, ids, V, streams=200_000):
    """The share of evenly spread random numbers that the sampler turns into each character: its own probabilities."""
    return np.bincount(sample(model, ids, V, streams, 1, Grid())[:, 0], minlength=V) / streams


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


def test_any_alphabet_and_any_order():
    """70,000 symbols, more than 16 bits hold; n-grams of 20, more than the numbers of all of them would fit in 64."""
    rng = np.random.default_rng(0)
    V = 70_001
    phrase = rng.integers(65_000, 70_000, size=40)
    train = np.concatenate([phrase, rng.integers(70_000, size=3_000), phrase, [69_999, 0, 65_536]])
    validation = np.concatenate([phrase, [70_000, 0, 65_536, 1]])
    model = kneser_ney.levels(count_ngrams(train, V, 20), kneser_ney.modified_discounts, V)
    letters = ["".join(map(chr, ids)) for ids in (train, validation)]
    reference = plain.KneserNey(letters[0], V, 20, plain.modified_discounts)
    for context, p in enumerate(score(*model, validation, V)):
        np.testing.assert_allclose(p, reference.probabilities(letters[1], context), rtol=1e-12, atol=0)


def test_a_score_is_the_probability_after_what_precedes():
    """At the start of a text the history is what there is."""
    alphabet, model = trained(FROZEN.train[:5_000])
    ids = alphabet.encode(FROZEN.validation[:30] + "ж" + FROZEN.validation[30:40])
    for context, p in enumerate(score(*model, ids, alphabet.size)):
        chain = of_context(*model, context)
        expected = [probabilities(chain, ids[:i], alphabet.size)[ids[i]] for i in range(len(ids))]
        np.testing.assert_allclose(p, expected, rtol=1e-13)


@pytest.mark.parametrize("discounts", [kneser_ney.fixed_discounts, kneser_ney.modified_discounts])
@pytest.mark.parametrize("text", TEXTS)
def test_the_sampler_draws_with_these_probabilities(text, discounts):
    """What evenly spread random numbers become, first character included, adds up to the same table."""
    alphabet, model = trained(text, discounts)
    V = alphabet.size
    for history in ("", "?", text[:1], text[-3:], text[-7:], text[:3] + "?" + text[:2]):
        for context in (0, 1, 3, 7):
            chain, ids = of_context(*model, context), alphabet.encode(history)
            shares = sampled(chain, ids, V, 20_000)
            assert shares.sum() == pytest.approx(1, abs=1e-12)
            # A character has an interval at each of up to 8 levels, and the share of each is off by up to a step.
            np.testing.assert_allclose(shares, probabilities(chain, ids, V), atol=9 / 20_000)


def test_sampled_texts_have_the_frequencies_of_the_model():
    """Of 200,000 texts of three characters, so many have each form: within 5 standard deviations of what p says."""
    alphabet, model = trained("abcabba abacab")
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
    alphabet, model = trained(FROZEN.train[:20_000])
    chain, prompt = of_context(*model, 7), alphabet.encode("The ")
    texts = [sample(chain, prompt, alphabet.size, 1, 60, np.random.default_rng(seed))[0].tolist() for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]


@pytest.mark.parametrize("steps", [1, 3, 20])
def test_the_sampler_keeps_track_of_what_it_wrote(steps):
    """All streams are given the same numbers and so write the same text; then evenly spread ones, whose outcome must be
    the probabilities after that text."""
    alphabet, model = trained(FROZEN.train[:50_000])
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


def test_the_unseen_character_is_drawn_as_u_fffd():
    alphabet, model = trained("a")
    ids = sample(of_context(*model, 0), np.zeros(0, int), alphabet.size, 1, 200, np.random.default_rng(0))[0]
    assert set(alphabet.decode(ids)) == {"a", "\ufffd"}


def test_memory_is_linear_in_the_text_and_does_not_depend_on_the_alphabet():
    """Evenly drawn symbols: nearly all long n-grams are different, the most that a text can have."""

    def peak(N, V):
        text = np.random.default_rng(0).integers(V - 1, size=N)
        tracemalloc.start()
        kneser_ney.levels(count_ngrams(text, V, 8), kneser_ney.modified_discounts, V)
        bytes_at_most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return bytes_at_most

    assert peak(80_000, 128) < 4.2 * peak(20_000, 128)
    assert peak(20_000, 100_000) < 1.5 * peak(20_000, 128)


def test_a_question_makes_no_array_that_grows_with_the_text():
    """Thirty times the text: a search reads a few numbers more. Reading them all would take thirty times the memory."""
    peaks = []
    for text in FROZEN.train[:20_000], FROZEN.train:
        alphabet, model = trained(text)
        chain, ids = of_context(*model, 7), alphabet.encode("the gradient")
        tracemalloc.start()
        probabilities(chain, ids, FROZEN.size)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]
