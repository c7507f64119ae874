"""Kneser–Ney n-grams (kneser_ney.py)."""

import copy
import json
import math
from fractions import Fraction
from itertools import pairwise

import nltk.lm
import numpy as np
import pytest
from commands import record_of, run
from nltk.util import everygrams
from odd_texts import CAT, TEXTS

import corpus
import kneser_ney
from kneser_ney import continuation_counts, levels, of_context
from lab import script
from lab.errors import UserError
from layers.ngrams import count_ngrams, find, probabilities, score
from plain import kneser_ney as plain
from reruns import comparing

FROZEN = corpus.load()
KINDS = {
    "fixed": (kneser_ney.fixed_discounts, plain.fixed_discounts),
    "modified": (kneser_ney.modified_discounts, plain.modified_discounts),
}


def trained(text, kind="fixed", longest=8):
    """A corpus of nothing but this text, and its levels."""
    alphabet = corpus.Corpus(text, "")
    return alphabet, levels(count_ngrams(alphabet.encode(text), alphabet.size, longest), KINDS[kind][0], alphabet.size)


def scores(text, validation, kind, longest=8):
    """Fast and plain: (contexts, characters) each."""
    alphabet, model = trained(text, kind, longest)
    reference = plain.KneserNey(text, alphabet.size, longest, KINDS[kind][1])
    fast = np.array(list(score(*model, alphabet.encode(validation), alphabet.size)))
    return fast, np.array([reference.probabilities(validation, context) for context in range(longest)])


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
@pytest.mark.parametrize("text", TEXTS)
def test_every_probability_of_an_odd_text_equals_the_plain_ones(text, kind):
    fast, reference = scores(text, text[-40:] + "?" + text[:40] + "the cab?", kind)
    np.testing.assert_allclose(fast, reference, rtol=1e-12, atol=0)


@pytest.mark.parametrize("fault", ["a count", "a continuation", "a discount", "the vocabulary"])
def test_a_reference_with_a_small_fault_is_noticed(fault):
    text, validation = FROZEN.train[:10_000], FROZEN.validation[:1_000]
    alphabet, model = trained(text)
    reference = plain.KneserNey(text, alphabet.size + (fault == "the vocabulary"), 8, plain.fixed_discounts)
    if fault == "a count":
        reference.longest[3].count["the "] += 1
    elif fault == "a continuation":
        reference.below[3].total["the"] -= 1
    elif fault == "a discount":
        reference.below[0].discount[3] += 1e-6
    fast = np.array(list(score(*model, alphabet.encode(validation), alphabet.size)))
    with pytest.raises(AssertionError):
        wrong = [reference.probabilities(validation, context) for context in range(8)]
        np.testing.assert_allclose(fast, wrong, rtol=1e-12, atol=0)


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


@pytest.mark.parametrize("text", TEXTS)
def test_discounts_are_in_their_bounds(text):
    alphabet = corpus.Corpus(text, "")
    ngrams = count_ngrams(alphabet.encode(text), alphabet.size, 8)
    for count in [*continuation_counts(ngrams), *(count for _, count, _ in ngrams)]:
        D = kneser_ney.modified_discounts(count)
        assert D[0] == 0 and all(0 < D[c] <= c for c in (1, 2, 3))


# Sums to one.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", [*TEXTS, FROZEN.train[:2_000]])
def test_probabilities_sum_to_one_everywhere(text, kind):
    """After every history of up to 7 characters of the text, at its start and its end, and after ones never seen."""
    alphabet, model = trained(text, kind)
    V = alphabet.size
    positions = range(0, len(text) + 1, max(1, len(text) // 30))
    seen = {text[max(0, i - length) : i] for i in [*positions, len(text)] for length in range(8)}
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


# The score.


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
@pytest.mark.parametrize("text", [*TEXTS, "aab"])
def test_unseen_characters_cost_a_finite_number_of_bits(text, kind):
    alphabet = corpus.Corpus(text, "")
    ids = alphabet.encode("aaz" + text[:5] + "z")
    bits = kneser_ney.bits_per_char(alphabet.encode(text), ids, alphabet.size, discounts=KINDS[kind][0])
    assert np.isfinite(bits).all() and (np.array(bits) > 0).all()


# The script.


def test_results_have_the_posts_names_and_lines(record):
    published = json.loads((corpus.DATA / "published.json").read_text(encoding="utf-8"))["kneser_ney"]
    results, lines = record["results"], record["printed"]
    assert published.keys() - set(comparing.NO_FIGURES) <= results.keys()
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
    assert (np.array(modified[:7]) < fixed).all()
    assert abs(modified[5] - 2.481) < 0.02 and abs(modified[6] - 2.473) < 0.02


def test_among_letters_drawn_evenly_it_is_the_context_that_hurts(record):
    """Without context all count the same; with one character all are worse, and the modified kind the least."""
    drawn = record["results"]["drawn_evenly"]
    none, one = zip(*drawn.values(), strict=True)
    assert math.log2(27) < min(none) and max(none) < min(one) and max(none) - min(none) < 1e-3
    assert drawn["modified"][1] < drawn["add_one"][1] < drawn["fixed"][1]


def test_the_modified_kind_s_context_is_chosen_on_training_text_set_aside(record):
    """Scored there once more, at the chosen context and beside it; and nothing of the validation text is in it."""
    modified = record["results"]["modified"]
    choice, aside = modified["chosen"], corpus.set_aside()
    assert len(aside.train) + 2 + len(aside.validation) - 1 == len(FROZEN.train)  # a blank line, one newline too many
    assert choice["set_aside_characters"] == len(aside.validation)
    best = choice["context"]
    assert modified["context"] == list(range(1, 21)) and 1 < best < 20  # not at an end of what is tried
    bits = choice["bits_per_char_set_aside"]
    assert bits[best - 1] == min(bits)
    assert choice["bits_per_char"] == modified["bits_per_char"][best - 1]
    ids = aside.encode(aside.train), aside.encode(aside.validation)
    assert kneser_ney.bits_per_char(*ids, aside.size, [best]) == pytest.approx([bits[best - 1]], rel=1e-12)
    shared = aside.validation.splitlines()
    assert sum(line in FROZEN.validation for line in shared if len(line) > 60) == 0


def test_a_frequent_character_in_few_places_by_hand():
    """In "xq" · 50 + "abcacb", q is second of five by count, and x and q have one predecessor, the others two."""
    text = corpus.Corpus("xq" * 50 + "abcacb", "")
    found = kneser_ney.frequent_in_few_places(text, count_ngrams(text.encode(text.train), text.size, 2))
    # By count q, x (50 each, in alphabetical order), a, b, c (2 each); by continuations a, b, c, q, x.
    assert found == {
        "character": "q", "occurs": 50, "follows": 1, "place_by_count": 1, "place_by_continuations": 4,
    }  # fmt: skip


def test_the_docstring_s_example_is_the_measured_one(record):
    few = record["results"]["frequent_in_few_places"]
    preceding = {a for a, b in pairwise(FROZEN.train) if b == few["character"]}
    assert (few["character"], few["follows"]) == ("#", 5) == ("#", len(preceding))
    assert few["occurs"] == FROZEN.train.count("#")
    assert '"#" is' in kneser_ney.__doc__ and "no more than five different characters" in kneser_ney.__doc__


def test_the_title_says_what_the_figures_say(record):
    found = copy.deepcopy(record["results"])
    assert kneser_ney.draw(found).axes[0].get_title("left") == "Best context: 5 (fixed discount), 14 (modified)"
    found["bits_per_char"] = [7, 6, 5, 4, 3, 2, 1]
    found["modified"]["bits_per_char"][2] = 0
    assert kneser_ney.draw(found).axes[0].get_title("left") == "Best context: 7 (fixed discount), 3 (modified)"


def test_discounts_that_stood_in_are_named(tmp_path, write_corpus):
    printed = record_of(kneser_ney, tmp_path / "out", "--data", write_corpus(CAT, "the cat ate"))["printed"]
    (line,) = [line for line in printed if "stood in" in line]
    assert "(0.5, 1.0, 1.5)" in line and "1-grams below longer ones" in line and "2-grams as the longest" in line


@pytest.mark.parametrize("train", ["a", "ab", "\n", "naïve café 🎈"])
def test_the_smallest_texts_work(train, tmp_path, write_corpus):
    printed = "\n".join(record_of(kneser_ney, tmp_path / "out", "--data", write_corpus(train, "ab"))["printed"])
    assert "scored: 1 characters" in printed and "nan" not in printed and "inf" not in printed


def test_a_sample_is_printed_after_its_prompt_and_saved_beside_the_results(tmp_path, capsys):
    one = script.experiment(kneser_ney)
    arguments = ["--sample", "1000", "--prompt", "The gradient", "--seed", "3", "--outputs", str(tmp_path)]
    assert script.perform(one, arguments) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("The gradient") and len(printed) == len("The gradient") + 1000 + len("\n")
    record = json.loads((tmp_path / "kneser_ney_sample.json").read_text(encoding="utf-8"))
    assert record["seeds"] == [3] and record["results"] == {"text": printed[:-1]}
    assert {path.name for path in tmp_path.iterdir()} == {"kneser_ney_sample.json", "kneser_ney_sample.txt"}


def test_a_prompt_of_unseen_characters_is_taken_with_a_note(capsys):
    script.perform(script.experiment(kneser_ney), ["--sample", "20", "--prompt", "Жж"])
    captured = capsys.readouterr()
    assert captured.out.startswith("Жж") and "'Ж' 'ж'" in captured.err.splitlines()[0]


def test_a_terminal_that_lacks_a_character_gets_an_escape_and_the_file_is_whole(tmp_path):
    arguments = ["--sample", "5", "--prompt", "é∂", "--outputs", tmp_path]
    done = run("kneser_ney.py", *arguments, PYTHONIOENCODING="ascii")
    assert done.returncode == 0 and done.stdout.startswith(r"\xe9\u2202"), done.stderr
    assert (tmp_path / "kneser_ney_sample.txt").read_text(encoding="utf-8").startswith("é∂")


def test_a_validation_text_of_one_character_is_refused(tmp_path, write_corpus):
    with pytest.raises(UserError, match="validation text has 1 character"):
        record_of(kneser_ney, tmp_path / "out", "--data", write_corpus("abc", "a"))
