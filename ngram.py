"""Counting which character follows the last few: two are the best guide, and four are worse than one.

    P(c | context) = (N(context c) + 1) / (N(context) + V)

N counts in the training text, a context only where a character follows, so that the probabilities of all V characters
sum to 1. V is the training characters and one more, which stands for all unseen ones. Adding one to each count keeps
every character possible. It costs more the rarer a context is, since V ones join N(context) counts: after a context
that occurred a few times most of the probability goes to characters that never followed it, and after one that never
occurred the guess is 1 / V. Longer contexts say more, but they are rarer.

    python ngram.py          0.9 s, and 1 s for the figure

Prints, at the end:

    previous 0 characters: validation 3.458 nats/char = 4.989 bits/char
    previous 1 characters: validation 2.796 nats/char = 4.033 bits/char
    previous 2 characters: validation 2.422 nats/char = 3.494 bits/char
    previous 3 characters: validation 2.590 nats/char = 3.737 bits/char
    previous 4 characters: validation 3.084 nats/char = 4.449 bits/char

    why more context than 2 isn't better: the rarer it is, the more of the probability the 148 added ones take
    previous 0 characters: seen 599,582 times (median), 0.0% never, 0.2% never before this character; the ones take 0.0%
    previous 1 characters: seen 26,696 times (median), 0.2% never, 0.8% never before this character; the ones take 2.3%
    previous 2 characters: seen 1,882 times (median), 0.8% never, 3.8% never before this character; the ones take 18.8%
    previous 3 characters: seen 192 times (median), 3.8% never, 12.5% never before this character; the ones take 48.2%
    previous 4 characters: seen 38 times (median), 12.5% never, 24.6% never before this character; the ones take 70.6%
    of the different contexts of 4 characters 28.2% were never seen
    scored: 57,279 characters, all after the first; guessing evenly takes 7.209 bits
    scored from the first whole context on, as the post's listing does: at most 0.0002 bits/char apart

Every character of the validation text after the first is scored. Its context is what precedes it there, near the start
whatever there is. The post's listing begins with the first character that has a whole context.

Source: Laplace, "Essai philosophique sur les probabilités" (1814), for the rule of succession: here, for V characters.
"""

from itertools import pairwise

import numpy as np

import corpus
from lab import plots, script

CONTEXTS = [0, 1, 2, 3, 4]  # characters

# All depend on the text; the post prints three decimals.
KINDS = {"*": "corpus .3f"}


def count(train, validation, V, longest):
    """For contexts of 0, 1, …, ``longest`` characters: N(context) and N(context c) of each validation character c."""
    # Each context has a number, the empty one 0. There is a context before each character, and one after the last.
    before_train = np.zeros(len(train) + 1, dtype=int)
    before_validation = np.zeros(len(validation) + 1, dtype=int)
    contexts = 1
    N = np.empty((2, 0), dtype=int)
    for context in range(longest + 1):
        N_context = np.bincount(before_train[:-1], minlength=contexts)[before_validation[:-1]]
        # A context and the character after it make a context one longer: number those of both texts.
        train_pairs = before_train[:-1] * V + train[context:]
        validation_pairs = before_validation[:-1] * V + validation[context:]
        distinct, numbers = np.unique(np.concatenate([train_pairs, validation_pairs]), return_inverse=True)
        before_train, before_validation = np.split(numbers, [len(train_pairs)])
        contexts = len(distinct)
        N_pair = np.bincount(before_train, minlength=contexts)[before_validation]
        # The first few characters have no whole context: the shorter one that they have was counted before.
        N = np.hstack([N[:, :context], [N_context, N_pair]])  # (2, validation)
        yield N


def never_seen(text, context):
    """The share of the validation text's different contexts after which no character follows in training."""
    asked, known = (
        {part[i - context : i] for i in range(context, len(part))} for part in (text.validation, text.train)
    )
    return len(asked - known) / len(asked) if asked else None


def measure(arguments):
    text = corpus.load_to_score(arguments.data)
    train, validation, V = text.encode(text.train), text.encode(text.validation), text.size
    nats, listed, rarity = [], [], []
    for context, N in enumerate(count(train, validation, V, max(CONTEXTS))):
        of_each = -np.log((N[1] + 1) / (N[0] + V))  # (validation,)
        nats.append(of_each[1:].mean())
        listed.append(of_each[context:].mean() if context < len(validation) else None)
        N_context, N_pair = N[:, 1:]  # (validation - 1,): the first character is not scored
        rarity.append(
            [np.median(N_context), (N_context == 0).mean(), (N_pair == 0).mean(), (V / (N_context + V)).mean()]
        )
    median, never, new, ones = zip(*rarity, strict=True)
    return {
        "corpus": text.fingerprint,
        "smoothing": "add-one",
        "context": CONTEXTS,
        "nats_per_char": nats,
        "bits_per_char": [value / np.log(2) for value in nats],
        "context_occurs_median": median,
        "context_never_seen": never,
        "distinct_contexts_never_seen": [never_seen(text, context) for context in CONTEXTS],
        "new_after_context": new,
        "share_of_added_ones": ones,
        "nats_per_char_as_listed": listed,
        "scored_characters": len(validation) - 1,
        "V": V,
        "uniform_bits_per_char": np.log2(V),
    }


def tell(found):
    scored, uniform = found["scored_characters"], found["uniform_bits_per_char"]
    for context, nats, bits in zip(found["context"], found["nats_per_char"], found["bits_per_char"], strict=True):
        yield f"previous {context} characters: validation {nats:.3f} nats/char = {bits:.3f} bits/char"
    yield ""
    yield why(found)
    names = "context", "context_occurs_median", "context_never_seen", "new_after_context", "share_of_added_ones"
    for context, occurrences, never, new, ones in zip(*(found[name] for name in names), strict=True):
        yield (
            f"previous {context} characters: seen {occurrences:,.0f} times (median), {never:.1%} never,"
            f" {new:.1%} never before this character; the ones take {ones:.1%}"
        )
    distinct = found["distinct_contexts_never_seen"]
    if distinct[-1] is not None:
        yield f"of the different contexts of {max(CONTEXTS)} characters {distinct[-1]:.1%} were never seen"
    pairs = zip(found["nats_per_char"], found["nats_per_char_as_listed"], strict=True)
    apart = max(abs(ours - listed) for ours, listed in pairs if listed is not None) / np.log(2)
    yield f"scored: {scored:,} characters, all after the first; guessing evenly takes {uniform:.3f} bits"
    yield f"scored from the first whole context on, as the post's listing does: at most {apart:.4f} bits/char apart"


def best_context(found):
    """The shortest of the contexts that cost the least."""
    return min(zip(found["bits_per_char"], found["context"], strict=True))[1]


def why(found):
    """What the figures say of longer contexts, and the reason, which is in the lines after it."""
    best, reason = best_context(found), f"the rarer it is, the more of the probability the {found['V']} added ones take"
    if best < max(found["context"]):
        return f"why more context than {best} isn't better: {reason}"
    falls = all(longer < shorter for shorter, longer in pairwise(found["bits_per_char"]))
    return f"{'more context is better up to' if falls else 'best with'} {best}, the longest here, although {reason}"


def draw(found):
    """Bits per character against the context, and what an even guess takes."""
    figure, axes = plots.subplots()
    axes.plot(found["context"], found["bits_per_char"], marker="o", label="add-one")
    axes.plot(found["context"], [found["uniform_bits_per_char"] for _ in found["context"]], label="even guess")
    axes.set(xlabel="context (characters)", ylabel="validation bits per character", xticks=found["context"])
    axes.set(ylim=(0, None), title=f"Add-one: best with {best_context(found)} characters of context")
    plots.label_ends(axes)
    return figure


def options(parser):
    corpus.add_argument(parser)


if __name__ == "__main__":
    script.run(measure, tell, draw, options)
