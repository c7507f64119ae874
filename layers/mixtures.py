"""Mixtures of models that give probabilities to the same characters, and text packed by general compressors.

What is mixed are the probabilities of the characters that came, one list for each model: that is all it takes, because
the mixture Σ w_i p_i gives probabilities to all characters if each of its parts does. The weights are fitted on a text
that no part was trained on, by expectation maximisation: how much of each character's probability is each part's, and
the mean of that, again and again. It can't miss the best weights, since the likelihood has one maximum only.

A character that training never showed is one symbol for all of them, "unseen", and nothing in the training text says
how often to expect it: a network learns that it never comes. The posts of the training text say it: each has characters
that no other one has. ``share_of_its_own`` is how many, and ``expecting`` gives the symbol that much more.

Source: Jelinek and Mercer, "Interpolated estimation of Markov source parameters from sparse data" (1980).
"""

import base64
import bz2
import lzma
import zlib
from collections import Counter

import numpy as np

ROUNDS = 200  # of expectation maximisation, at most
ENOUGH = 1e-9  # change of every weight at which it ends
COMPRESSORS = {  # at their strongest
    "zlib": lambda data: zlib.compress(data, 9),
    "bz2": lambda data: bz2.compress(data, 9),
    "xz": lambda data: lzma.compress(data, preset=9 | lzma.PRESET_EXTREME),
}


def fit(parts):
    """The weights (models,) with which probabilities (models, characters) give a text the fewest bits."""
    p = np.asarray(parts)
    w = np.full(len(p), 1 / len(p))
    for _ in range(ROUNDS):
        shares = w[:, None] * p
        before, w = w, (shares / shares.sum(0)).mean(1)
        if abs(w - before).max() < ENOUGH:
            break
    return w


def mix(parts, weights):
    """The probabilities (characters,) of a mixture."""
    return np.asarray(weights) @ np.asarray(parts)


def bits_per_char(p):
    return -np.log2(p).mean()


def fitted(models):
    """The mixture of models by name, each [fitted on, scored]: its weights by the first text, its bits on both."""
    first, second = zip(*models.values(), strict=True)
    weights = fit(first)
    return {
        "weights": dict(zip(models, weights.tolist(), strict=True)),
        "set_aside_bits_per_char": bits_per_char(mix(first, weights)),
        "bits_per_char": bits_per_char(mix(second, weights)),
    }


def share_of_its_own(texts):
    """The share of a text's characters that none of the others shows, on average over all their characters."""
    counts = [Counter(text) for text in texts]
    texts_with = Counter(character for count in counts for character in count)
    own = sum(many for count in counts for character, many in count.items() if texts_with[character] == 1)
    return own / sum(map(len, texts))


def expecting(p, unseen, share):
    """The probabilities of characters, of which some are the unseen symbol (True), where that is given a share more.

    (1 - share) p + share · [unseen]: over all symbols they still sum to 1.
    """
    return (1 - share) * np.asarray(p) + share * np.asarray(unseen)


def pack(bits):
    """Bits of many characters as a text that JSON can hold, in float32."""
    return base64.b64encode(np.asarray(bits, "<f4").tobytes()).decode()


def unpack(text):
    """The probabilities of characters whose bits were packed."""
    return 2.0 ** -np.frombuffer(base64.b64decode(text), "<f4").astype(np.float64)


def compressed(train, text):
    """Bits per character that each compressor takes more for both texts than for the training text alone."""
    before, after = train.encode(), (train + text).encode()
    return {name: 8 * (len(press(after)) - len(press(before))) / len(text) for name, press in COMPRESSORS.items()}
