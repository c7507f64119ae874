"""Kneser–Ney smoothing of character n-grams: the strongest model here that does nothing but count.

How likely is c after a history h? Take a discount D off every count of an n-gram hc, and let the shorter history h'
(h without its first character) share out what that frees:

    p(c | h) = max(count(hc) - D, 0) / count(h·)  +  D · kinds(h·) / count(h·) · p(c | h')

where count(h·) sums over all c, and kinds(h·) is how many different c were seen after h. Below the empty history every
one of the V characters has 1/V. A history never seen leaves everything to h'.

Kneser and Ney's idea is what to count for shorter histories. They are only asked where a longer one had no answer, that
is, in a new place. There it matters less how often h'c occurs than how many different characters it follows: "u" is
frequent, but nearly always follows "q", so it is a poor guess anywhere else. Only the model's longest n-grams are
counted as they occur; all others have continuation counts, count(h'c) = how many different x have xh'c in the text.

The modified kind takes three discounts for each length of n-gram, for counts of 1, of 2, and of 3 or more. They are
estimated from how many n-grams have each count. On small or odd texts an estimate can be missing, or make no sense (not
above 0, or more than the count itself); that length then takes 0.5, 1 and 1.5, and the output says so.

    python kneser_ney.py          1 s, and 1 s for the figure
    python kneser_ney.py --sample 500 --prompt "The gradient" --seed 1

Prints, at the end:

    previous 6 characters: 2.481 bits/char
    previous 7 characters: 2.473 bits/char
    probabilities over all characters sum to 1.000000 after 'the'
    scored: 57,279 characters, all after the first; 148 possible, one of them unseen

    where it loses: 27 letters drawn evenly, 3,000 to train on, 20,000 to score
    add-one, no context: 4.762 bits/char; nothing can do better than 4.755
    previous 1 characters: 4.963 bits/char with the fixed discount, 4.870 modified

The last lines show where Kneser–Ney loses to add-one: in letters drawn evenly a history tells nothing, and what the
model takes for habits of the text is chance.

The first character of the validation text is history only; every other one is scored. Near the start the history is
what there is. ``--sample`` writes from the modified model with the longest context; U+FFFD stands for the unseen
character, which has a probability like any other.

Sources: Kneser and Ney, "Improved backing-off for m-gram language modeling" (1995); Chen and Goodman, "An empirical
study of smoothing techniques for language modeling" (1998), for the interpolated and the modified form. Departure from
the latter: no symbols for start and end, so the n-grams at the start of the text have no continuation to count there.

Over 150 lines because two kinds of discount, an example where they lose and a sampler are shown; how n-grams are stored
and found is in layers/ngrams.py.
"""

from itertools import pairwise

import numpy as np

import corpus
from lab import plots, script
from lab.errors import UserError, note
from layers.ngrams import Level, count_ngrams, probabilities, sample, score

CONTEXTS = [1, 2, 3, 4, 5, 6, 7]  # characters
DISCOUNT = 0.75
FALLBACK = (0.5, 1.0, 1.5)  # where the counts don't give three discounts
SUM_AFTER = "the"
LETTERS, DRAWN, SCORED = 27, 3_000, 20_000  # an alphabet; characters drawn evenly from it to train on, and to score
SEED = 0

KINDS = {"*": "corpus .3f", "discount": "corpus .2f"}


def continuation_counts(ngrams):
    """How many different characters each n-gram was seen after, for all lengths but the longest."""
    return [np.bincount(longer.suffix, minlength=len(shorter.key)) for shorter, longer in pairwise(ngrams)]


def fixed_discounts(count):
    """What is taken off a count of 0, 1, 2, and 3 or more."""
    return np.array([0, DISCOUNT, DISCOUNT, DISCOUNT])


def modified_discounts(count):
    """The same, estimated from how many n-grams have a count of 1, 2, 3 and 4."""
    n = np.bincount(np.minimum(count, 5), minlength=6)
    D = FALLBACK
    if n[1] and n[2] and n[3]:
        Y = n[1] / (n[1] + 2 * n[2])
        estimates = [c - (c + 1) * Y * n[c + 1] / n[c] for c in (1, 2, 3)]
        if all(0 < estimate <= c for c, estimate in enumerate(estimates, 1)):
            D = estimates
    return np.array([0, *D])


def level(key, count, size, discounts, V):
    """The level of n-grams with these counts; ``size`` is the number of their histories."""
    D = discounts(count)[np.minimum(count, 3)]  # (n-grams,)
    history = key // V
    total = np.bincount(history, count, size)  # (histories,)
    freed = np.bincount(history, D, size)
    at_least_1 = np.maximum(total, 1)  # at the very start or end of a text a history may have nothing counted after it
    alpha = (count - D) / at_least_1[history]
    gamma = np.where(total > 0, freed / at_least_1, 1)
    return Level(key, np.append(alpha, 0), np.append(gamma, 1))


def levels(ngrams, discounts, V):
    """For each length of n-gram a level for where it is the longest, and one for where it is below longer ones."""
    keys = [key for key, _, _ in ngrams]
    sizes = [1, *map(len, keys)]
    counts, continuations = [count for _, count, _ in ngrams], continuation_counts(ngrams)
    return [
        [level(key, count, size, discounts, V) for key, count, size in zip(keys, counts, sizes, strict=False)]
        for counts in (counts, continuations)
    ]


def of_context(longest, below, context):
    """The levels of the model with that many characters of context, the empty history's first."""
    return [*below[:context], longest[context]]


def bits_per_char(train, validation, V, contexts=CONTEXTS, discounts=modified_discounts):
    """For each number of context characters, what a character of a validation text costs, the first one left out."""
    model = levels(count_ngrams(train, V, max(contexts) + 1), discounts, V)
    bits = [-np.log2(p[1:]).mean() for p in score(*model, validation, V)]
    return [bits[context] for context in contexts]


def measure(arguments):
    if arguments.sample:
        return write(arguments)
    if arguments.changed.keys() & {"prompt", "seed"}:
        raise UserError("--prompt and --seed belong to --sample N")
    text = corpus.load_to_score(arguments.data)
    train, validation, V = text.encode(text.train), text.encode(text.validation), text.size
    ngrams = count_ngrams(train, V, max(CONTEXTS) + 1)

    def scores(discounts):
        model = of_context(*levels(ngrams, discounts, V), max(CONTEXTS))
        return {
            "context": CONTEXTS,
            "bits_per_char": bits_per_char(train, validation, V, discounts=discounts),
            "probabilities_sum_after_the": probabilities(model, text.encode(SUM_AFTER), V).sum(),
        }

    counts = {f"{n}-grams below longer ones": count for n, count in enumerate(continuation_counts(ngrams), 1)}
    counts |= {f"{n}-grams as the longest": count for n, (_, count, _) in enumerate(ngrams, 1) if n - 1 in CONTEXTS}
    discounts = {name: modified_discounts(count)[1:] for name, count in sorted(counts.items())}
    stood_in = [name for name, D in discounts.items() if tuple(D) == FALLBACK]
    return {
        "corpus": text.fingerprint,
        "seeds": [SEED],
        "discount": DISCOUNT,
        **scores(fixed_discounts),
        "modified": {**scores(modified_discounts), "discounts": discounts, "stood_in": stood_in},
        "scored_characters": len(validation) - 1,
        "V": V,
        "drawn_evenly": lose(),
    }


def lose():
    """Bits per character of letters drawn evenly: of add-one without context, and of Kneser–Ney with one character."""
    rng = np.random.default_rng(SEED)
    train, validation = rng.integers(LETTERS, size=DRAWN), rng.integers(LETTERS, size=SCORED)
    V = LETTERS + 1
    p = (np.bincount(train, minlength=V) + 1) / (DRAWN + V)
    (fixed,) = bits_per_char(train, validation, V, [1], fixed_discounts)
    (modified,) = bits_per_char(train, validation, V, [1], modified_discounts)
    return {"add_one": -np.log2(p[validation[1:]]).mean(), "fixed": fixed, "modified": modified}


def write(arguments):
    """--sample: what the modified model with the longest context writes after the prompt."""
    text = corpus.load(arguments.data)
    if unseen := sorted(set(arguments.prompt) - set(text.characters)):
        note(f"never seen in training, so read as the unseen character: {' '.join(map(repr, unseen))}")
    ngrams = count_ngrams(text.encode(text.train), text.size, max(CONTEXTS) + 1)
    model = of_context(*levels(ngrams, modified_discounts, text.size), max(CONTEXTS))
    rng = np.random.default_rng(arguments.seed)
    (written,) = sample(model, text.encode(arguments.prompt), text.size, 1, arguments.sample, rng)
    about = {"saved_as": "kneser_ney_sample", "corpus": text.fingerprint, "seeds": [arguments.seed]}
    return {**about, "text": arguments.prompt + text.decode(written)}


def tell(found):
    if "text" in found:  # a sample
        yield found["text"]
        return
    modified, lost = found["modified"], found["drawn_evenly"]
    yield from tell_scores(found)
    yield ""
    yield "modified Kneser–Ney: discounts for counts of 1, 2, and 3 or more"
    for name, D in modified["discounts"].items():
        yield f"{name:<25}: " + ", ".join(f"{d:.3f}" for d in D)
    stood_in = "; ".join(modified["stood_in"]) or "none"
    yield f"counts that give no usable estimate, so that {FALLBACK} stood in: {stood_in}"
    yield from tell_scores(modified)
    yield (
        f"scored: {found['scored_characters']:,} characters, all after the first;"
        f" {found['V']} possible, one of them unseen"
    )
    yield ""
    yield f"where it loses: {LETTERS} letters drawn evenly, {DRAWN:,} to train on, {SCORED:,} to score"
    yield f"add-one, no context: {lost['add_one']:.3f} bits/char; nothing can do better than {np.log2(LETTERS):.3f}"
    yield (
        f"previous 1 characters: {lost['fixed']:.3f} bits/char with the fixed discount, {lost['modified']:.3f} modified"
    )


def tell_scores(scores):
    for context, bits in zip(scores["context"], scores["bits_per_char"], strict=True):
        yield f"previous {context} characters: {bits:.3f} bits/char"
    yield f"probabilities over all characters sum to {scores['probabilities_sum_after_the']:.6f} after {SUM_AFTER!r}"


def draw(found):
    """Bits per character against the context, for both kinds."""
    figure, axes = plots.subplots()
    for name, scores, marker in ("fixed discount", found, "o"), ("modified", found["modified"], "s"):
        axes.plot(scores["context"], scores["bits_per_char"], label=name, marker=marker)
    axes.set(xlabel="context (characters)", ylabel="validation bits per character")
    axes.set_title("Three discounts keep longer contexts from hurting")
    plots.label_ends(axes)
    return figure


def options(parser):
    corpus.add_argument(parser)
    parser.add_argument("--sample", metavar="N", type=script.positive_int, help="write N characters")
    parser.add_argument("--prompt", metavar="TEXT", type=script.utf8, default="", help="what the sample goes on from")
    parser.add_argument("--seed", metavar="S", type=script.seed, default=0, help="of the sample")


if __name__ == "__main__":
    script.run(measure, tell, draw, options)
