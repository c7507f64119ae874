"""Add-one n-grams: the counts by hand and by brute force, what they sum to, and what is scored."""

import json
import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from commands import record_of

import corpus
import ngram
from lab.errors import UserError
from reruns import comparing


def plain_probability(train: str, V: int, context: str, character: str) -> float:
    """(N(context c) + 1) / (N(context) + V), each count by looking at every position of the text."""
    followed = [train[i + len(context)] for i in range(len(train) - len(context)) if train.startswith(context, i)]
    return (followed.count(character) + 1) / (len(followed) + V)


def plain_nats(text: corpus.Corpus, context: int) -> float:
    """Nats per character over all validation characters after the first."""
    V = len(set(text.train)) + 1
    total = 0.0
    for t in range(1, len(text.validation)):
        p = plain_probability(text.train, V, text.validation[max(0, t - context) : t], text.validation[t])
        total -= math.log(p)
    return total / (len(text.validation) - 1)


def counts(text: corpus.Corpus, longest: int):
    return list(ngram.count(text.encode(text.train), text.encode(text.validation), text.size, longest))


def nats(text: corpus.Corpus, longest: int) -> list[float]:
    return [-np.log((N[1, 1:] + 1) / (N[0, 1:] + text.size)).mean() for N in counts(text, longest)]


def test_counts_by_hand():
    # abacab: a 3, b 2, c 1. Followed by a character: a 3 times (b, c, b), b once (a), c once (a); ab once, ba once, ac
    # once, ca once. In validation, z is unseen.
    empty, one, two = counts(corpus.Corpus("abacab", "abaz"), 2)
    assert empty.tolist() == [[6, 6, 6, 6], [3, 2, 3, 0]]
    assert one.tolist() == [[6, 3, 1, 3], [3, 2, 1, 0]]  # "", a, b, a; then a, ab, ba, az
    assert two.tolist() == [[6, 3, 1, 1], [3, 2, 1, 0]]  # "", a, ab, ba; then a, ab, aba, baz


def test_probabilities_by_hand():
    # V = 4. From the counts above, the three scored characters have (2+1)/(3+4), (1+1)/(1+4), (0+1)/(3+4) with one
    # character of context, and with two the last becomes (0+1)/(1+4).
    _, one, two = nats(corpus.Corpus("abacab", "abaz"), 2)
    assert one == pytest.approx(-(math.log(3 / 7) + math.log(2 / 5) + math.log(1 / 7)) / 3, rel=1e-12)
    assert two == pytest.approx(-(math.log(3 / 7) + math.log(2 / 5) + math.log(1 / 5)) / 3, rel=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_equals_brute_force(seed):
    rng = np.random.default_rng(seed)
    # Few letters, so that long contexts occur; validation has two more, and one of them an emoji.
    train, validation = ("".join(rng.choice(list(letters), size)) for letters, size in (("abc", 60), ("abcd😀", 30)))
    text = corpus.Corpus(train, validation)
    assert nats(text, 7) == pytest.approx([plain_nats(text, context) for context in range(8)], rel=1e-12)


@pytest.mark.parametrize(
    ("train", "validation"),
    [("a", "aa"), ("a", "bb"), ("ab", "abab"), ("aaaaaaaa", "aaaa"), ("abc", "xyz"), ("xq" * 50 + "abcacb", "qqxxac")],
)
def test_tiny_texts(train, validation):
    """Contexts longer than either text included."""
    text = corpus.Corpus(train, validation)
    assert nats(text, 6) == pytest.approx([plain_nats(text, context) for context in range(7)], rel=1e-12)


def test_nothing_seen_is_an_even_guess():
    # No character of the validation text is in training, and neither is any context: (0+1)/(0+4) from one character on.
    text = corpus.Corpus("abc", "xyxyxy")
    assert nats(text, 3)[1:] == pytest.approx([math.log(4)] * 3, rel=1e-12)


def test_sums_to_one():
    """Over all V characters, unseen included, after contexts seen, unseen, at the end of the text, and none."""
    text = corpus.Corpus("ab" * 20 + "ac", "z")
    for context in "", "a", "b", "c", "ab", "ac", "ba", "z", "az", "za", "aba", "bac", "zzzz":
        total = 0.0
        for character in "abcz":
            train, scored = text.encode(text.train), text.encode(context + character)
            *_, N = ngram.count(train, scored, text.size, len(context))
            total += (N[1, -1] + 1) / (N[0, -1] + text.size)
        assert total == pytest.approx(1, abs=1e-12), context


def test_counting_twice_and_a_longer_limit_change_nothing():
    text = corpus.Corpus("the cat sat on the mat. " * 5, "the rat sat.")
    for a, b in zip(counts(text, 3), counts(text, 5), strict=False):
        assert (a == b).all()


def test_a_large_alphabet():
    # 20,000 different characters: numbers of whole 5-grams would not fit in 64 bits.
    train = "".join(map(chr, range(0x4E00, 0x4E00 + 20_000)))
    text = corpus.Corpus(train, train[-8:] + "\U0001f600")
    N = counts(text, 4)[-1]
    assert N[0].tolist() == [20_000] + [1] * 7 + [0]  # the last context, the end of the text, has nothing after it
    assert N[1].tolist() == [1] * 8 + [0]


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    return record_of(ngram, tmp_path_factory.mktemp("ngram"))


def test_default_run(record):
    results = record["results"]
    # Two characters of context once more, with dictionaries; the first scored character has only one.
    text = corpus.load()
    train, validation = text.train, text.validation
    seen = Counter(map("".join, pairwise(train[:-1])))
    pairs = Counter(map("".join, zip(train, train[1:], train[2:], strict=False)))
    likelihoods = [plain_probability(train, text.size, validation[0], validation[1])]
    for t in range(2, len(validation)):
        likelihoods.append((pairs[validation[t - 2 : t + 1]] + 1) / (seen[validation[t - 2 : t]] + text.size))
    assert results["nats_per_char"][2] == pytest.approx(-np.log(likelihoods).mean(), rel=1e-12)
    assert results["scored_characters"] == len(likelihoods) == len(validation) - 1
    for in_nats, in_bits in zip(results["nats_per_char"], results["bits_per_char"], strict=True):
        assert math.exp(in_nats) == pytest.approx(2**in_bits, rel=1e-12)
    published = json.loads((corpus.DATA / "published.json").read_text(encoding="utf-8"))["ngram"]
    assert published.keys() - set(comparing.NO_FIGURES) <= results.keys()
    assert record["printed"][0] == "previous 0 characters: validation 3.458 nats/char = 4.989 bits/char"


def test_the_smallest_texts(tmp_path, write_corpus):
    with pytest.raises(UserError, match="validation text has 1 character; it takes 2"):
        record_of(ngram, tmp_path / "out", "--data", write_corpus("abc", "a"))
    printed = record_of(ngram, tmp_path / "out", "--data", write_corpus("abc", "ab"))["printed"]
    # V = 4: b is one of three characters, (1+1)/(3+4) without context and (1+1)/(1+4) with one or as much as there is.
    assert printed[0].startswith(f"previous 0 characters: validation {math.log(7 / 2):.3f} nats/char")
    assert printed[4].startswith(f"previous 4 characters: validation {math.log(5 / 2):.3f} nats/char")


def test_distinct_contexts_never_seen_by_hand():
    # In "abcab" a character follows a, b and c, and ab, bc and ca; "abzab" asks for a, b and z, and for ab, bz and za.
    text = corpus.Corpus("abcab", "abzab")
    assert ngram.never_seen(text, 0) == 0
    assert ngram.never_seen(text, 1) == pytest.approx(1 / 3)
    assert ngram.never_seen(text, 2) == pytest.approx(2 / 3)
    assert ngram.never_seen(text, 5) is None  # no whole context of five has a character after it
    assert ngram.never_seen(corpus.Corpus("ab", "xb"), 1) == 1
    assert ngram.never_seen(corpus.Corpus("ax", "xb"), 1) == 1  # x ends the training text: nothing follows it


def test_the_listing_s_way_of_scoring(record):
    """Every character with a whole context before it, the very first one too where there is none."""
    text = corpus.load()
    train, validation = text.encode(text.train), text.encode(text.validation)
    *_, N = ngram.count(train, validation, text.size, 0)
    first = -np.log((N[1] + 1) / (N[0] + text.size))
    listed, ours = record["results"]["nats_per_char_as_listed"], record["results"]["nats_per_char"]
    assert listed[0] == pytest.approx(first.mean(), rel=1e-12)
    assert listed[1] == ours[1] and all(0 < abs(a - b) < 2e-4 for a, b in zip(listed[2:], ours[2:], strict=True))
    assert record["printed"][-1].endswith("at most 0.0002 bits/char apart")


@pytest.mark.parametrize(
    ("bits", "line", "title"),
    [
        ([5, 4, 3, 3.5, 4], "why more context than 2 isn't better: the rarer", "Add-one: best with 2 characters"),
        ([5, 4, 3, 2, 1], "more context is better up to 4, the longest here, although the rarer", "best with 4 char"),
        ([5, 4, 3, 4, 1], "best with 4, the longest here, although the rarer", "best with 4 char"),
        ([5, 4, 4, 2, 1], "best with 4, the longest here, although the rarer", "best with 4 char"),
        ([1, 2, 3, 4, 5], "why more context than 0 isn't better: the rarer", "best with 0 characters"),
    ],
)
def test_the_conclusion_is_what_the_figures_say(record, bits, line, title):
    found = record["results"] | {"bits_per_char": bits}
    assert list(ngram.tell(found))[6].startswith(line)
    assert title in ngram.draw(found).axes[0].get_title("left")
