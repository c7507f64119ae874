"""Kneser–Ney smoothing of character n-grams: the strongest model here that does nothing but count.

How likely is c after a history h? Take a discount D off every count of an n-gram hc, and let the shorter history h'
(h without its first character) share out what that frees:

    p(c | h) = max(count(hc) - D, 0) / count(h·)  +  D · kinds(h·) / count(h·) · p(c | h')

where count(h·) sums over all c, and kinds(h·) is how many different c were seen after h. Below the empty history every
one of the V characters has 1/V. A history never seen leaves everything to h'.

Kneser and Ney's idea is what to count for shorter histories. They are only asked where a longer one had no answer, that
is, in a new place. There it matters less how often h'c occurs than how many different characters it follows: "#" is
frequent in this text, but follows no more than five different characters, so it is a poor guess anywhere else. Only the
model's longest n-grams are counted as they occur; all others have continuation counts, count(h'c) = how many different
x have xh'c in the text.

The modified kind takes three discounts for each length of n-gram, for counts of 1, of 2, and of 3 or more. They are
estimated from how many n-grams have each count. On small or odd texts an estimate can be missing, or make no sense (not
above 0, or more than the count itself); that length then takes 0.5, 1 and 1.5, and the output says so.

Contexts of 1 to 7 characters are the post's. The modified kind goes on gaining after them, so it is taken to 20. Which
of its contexts other models are compared with is chosen without the validation text: whole posts of the training text
are set aside, and the context is the one that is best there for a model of the other posts. Of a text of one's own the
last seventh is set aside.

    python kneser_ney.py          3 s, and 1 s for the figure
    python kneser_ney.py --sample 500 --prompt "The gradient" --seed 1

Prints, at the end:

    probabilities over all characters sum to 1.000000 after 'the'
    best on 85,654 characters of the training text set aside: 19 characters, here 2.463 bits/char
    scored: 57,279 characters, all after the first; 148 possible, one of them unseen
    frequent in few places: '#' occurs 673 times (number 62), after 5 different characters (number 99)

    27 letters drawn evenly, 3,000 to train on, 20,000 to score
    bits/char, which can be no less than 4.755
    previous characters       0      1
    add-one               4.762  4.891
    Kneser–Ney, fixed     4.762  4.963
    Kneser–Ney, modified  4.762  4.870

The last lines show where counting a history loses: in letters drawn evenly it tells nothing, and what a model takes for
habits of the text is chance. It is the context that hurts, whatever the smoothing: with one character of it the
modified kind is the best of the three.

The first character of the validation text is history only; every other one is scored. Near the start the history is
what there is. ``--sample`` writes from the modified model with the longest context; U+FFFD stands for the unseen
character, which has a probability like any other.

Sources: Kneser and Ney, "Improved backing-off for m-gram language modeling" (1995); Chen and Goodman, "An empirical
study of smoothing techniques for language modeling" (1998), for the interpolated and the modified form. Departure from
the latter: no symbols for start and end, so the n-grams at the start of the text have no continuation to count there.

Over 150 lines because two kinds of discount, the choice of a context, an example where they lose and a sampler are
shown; how n-grams are stored and found is in layers/ngrams.py.
"""

from itertools import pairwise

import numpy as np

import corpus
import ngram
from lab import plots, script
from lab.errors import UserError, note
from layers.ngrams import Level, count_ngrams, probabilities, sample, score

CONTEXTS = [1, 2, 3, 4, 5, 6, 7]  # characters
MODIFIED_CONTEXTS = [*range(1, 21)]
DISCOUNT = 0.75
FALLBACK = (0.5, 1.0, 1.5)  # where the counts don't give three discounts
SUM_AFTER = "the"
LETTERS, DRAWN, SCORED = 27, 3_000, 20_000  # an alphabet; characters drawn evenly from it to train on, and to score
ONE_IN = 1000  # characters: what is as frequent is looked at for an example of the idea
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
    ngrams = count_ngrams(train, V, max(MODIFIED_CONTEXTS) + 1)

    def scores(contexts, discounts):
        model = of_context(*levels(ngrams[: max(contexts) + 1], discounts, V), max(contexts))
        return {
            "context": contexts,
            "bits_per_char": bits_per_char(train, validation, V, contexts, discounts),
            "probabilities_sum_after_the": probabilities(model, text.encode(SUM_AFTER), V).sum(),
        }

    counts = {f"{n}-grams below longer ones": count for n, count in enumerate(continuation_counts(ngrams), 1)}
    counts |= {f"{n + 1}-grams as the longest": ngrams[n].count for n in MODIFIED_CONTEXTS}
    discounts = {name: modified_discounts(count)[1:] for name, count in counts.items()}
    stood_in = [name for name, D in discounts.items() if tuple(D) == FALLBACK]
    modified = scores(MODIFIED_CONTEXTS, modified_discounts)
    return {
        "corpus": text.fingerprint,
        "seeds": [SEED],
        "discount": DISCOUNT,
        **scores(CONTEXTS, fixed_discounts),
        "modified": modified | {"discounts": discounts, "stood_in": stood_in} | chosen(arguments.data, modified),
        "scored_characters": len(validation) - 1,
        "V": V,
        "frequent_in_few_places": frequent_in_few_places(text, ngrams),
        "drawn_evenly": lose(),
    }


def chosen(folder, modified):
    """The context of the modified kind that is best on training text set aside, and what it gives on the validation."""
    aside = corpus.set_aside(folder)
    if aside is None:
        return {"chosen": None}
    bits = bits_per_char(aside.encode(aside.train), aside.encode(aside.validation), aside.size, MODIFIED_CONTEXTS)
    best = int(np.argmin(bits))
    return {
        "chosen": {
            "context": MODIFIED_CONTEXTS[best],
            "bits_per_char": modified["bits_per_char"][best],
            "set_aside_characters": len(aside.validation),
            "bits_per_char_set_aside": bits,
        }
    }


def frequent_in_few_places(text, ngrams):
    """Of the frequent characters the one that falls furthest when the different characters before it are counted."""
    count, follows = ngrams[0].count, continuation_counts(ngrams[:2])[0]  # (distinct characters,)
    place = np.argsort(np.argsort(-count, kind="stable")), np.argsort(np.argsort(-follows, kind="stable"))
    frequent = np.flatnonzero(count * ONE_IN >= count.sum())
    if not len(frequent):
        return None
    c = frequent[np.argmax((place[1] - place[0])[frequent])]
    about = {"character": text.characters[c], "occurs": count[c], "follows": follows[c]}
    return about | {"place_by_count": place[0][c] + 1, "place_by_continuations": place[1][c] + 1}


def lose():
    """Bits per character of letters drawn evenly, by smoothing, with no context and with one character of it."""
    rng = np.random.default_rng(SEED)
    train, validation = rng.integers(LETTERS, size=DRAWN), rng.integers(LETTERS, size=SCORED)
    V = LETTERS + 1
    add_one = [-np.log2((N[1, 1:] + 1) / (N[0, 1:] + V)).mean() for N in ngram.count(train, validation, V, 1)]
    kinds = {"fixed": fixed_discounts, "modified": modified_discounts}
    return {"add_one": add_one} | {
        name: bits_per_char(train, validation, V, [0, 1], discounts) for name, discounts in kinds.items()
    }


def write(arguments):
    """--sample: what the modified model with the longest context writes after the prompt."""
    text = corpus.load(arguments.data)
    if unseen := sorted(set(arguments.prompt) - set(text.characters)):
        note(f"never seen in training, so read as the unseen character: {' '.join(map(repr, unseen))}")
    ngrams = count_ngrams(text.encode(text.train), text.size, max(MODIFIED_CONTEXTS) + 1)
    model = of_context(*levels(ngrams, modified_discounts, text.size), max(MODIFIED_CONTEXTS))
    rng = np.random.default_rng(arguments.seed)
    (written,) = sample(model, text.encode(arguments.prompt), text.size, 1, arguments.sample, rng)
    about = {"saved_as": "kneser_ney_sample", "corpus": text.fingerprint, "seeds": [arguments.seed]}
    return {**about, "text": arguments.prompt + text.decode(written)}


def tell(found):
    if "text" in found:  # a sample
        yield found["text"]
        return
    modified = found["modified"]
    yield from tell_scores(found)
    yield ""
    yield "modified Kneser–Ney: discounts for counts of 1, 2, and 3 or more"
    yield f"{'':9}{'as the longest':<23}below longer ones"
    for n in range(1, 2 + max(modified["context"])):
        names = (f"{n}-grams {place}" for place in ("as the longest", "below longer ones"))
        triples = (", ".join(f"{d:.3f}" for d in modified["discounts"].get(name, [])) for name in names)
        yield f"{n:2}-grams {''.join(f'{triple:23}' for triple in triples)}".rstrip()
    stood_in = "; ".join(modified["stood_in"]) or "none"
    yield f"counts that give no usable estimate, so that {FALLBACK} stood in: {stood_in}"
    yield from tell_scores(modified)
    if choice := modified["chosen"]:
        set_aside = f"{choice['set_aside_characters']:,} characters of the training text set aside"
        yield f"best on {set_aside}: {choice['context']} characters, here {choice['bits_per_char']:.3f} bits/char"
    yield (
        f"scored: {found['scored_characters']:,} characters, all after the first;"
        f" {found['V']} possible, one of them unseen"
    )
    if few := found["frequent_in_few_places"]:
        yield (
            f"frequent in few places: {few['character']!r} occurs {few['occurs']:,} times"
            f" (number {few['place_by_count']}), after {few['follows']:,} different characters"
            f" (number {few['place_by_continuations']})"
        )
    yield ""
    yield from tell_lost(found["drawn_evenly"])


def tell_scores(scores):
    for context, bits in zip(scores["context"], scores["bits_per_char"], strict=True):
        yield f"previous {context} characters: {bits:.3f} bits/char"
    yield f"probabilities over all characters sum to {scores['probabilities_sum_after_the']:.6f} after {SUM_AFTER!r}"


def tell_lost(lost):
    yield f"{LETTERS} letters drawn evenly, {DRAWN:,} to train on, {SCORED:,} to score"
    yield f"bits/char, which can be no less than {np.log2(LETTERS):.3f}"
    yield "previous characters       0      1"
    names = {"add_one": "add-one", "fixed": "Kneser–Ney, fixed", "modified": "Kneser–Ney, modified"}
    for smoothing, (none, one) in lost.items():
        yield f"{names[smoothing]:20}  {none:.3f}  {one:.3f}"


def draw(found):
    """Bits per character against the context, for both kinds."""
    figure, axes = plots.subplots()
    kinds = {"fixed discount": found, "modified": found["modified"]}
    best = {}
    for (name, scores), marker in zip(kinds.items(), "os", strict=True):
        axes.plot(scores["context"], scores["bits_per_char"], label=name, marker=marker)
        best[name] = min(zip(scores["bits_per_char"], scores["context"], strict=True))[1]
    axes.set(xlabel="context (characters)", ylabel="validation bits per character")
    axes.set_title("Best context: " + ", ".join(f"{context} ({name})" for name, context in best.items()))
    plots.label_ends(axes)
    return figure


def options(parser):
    corpus.add_argument(parser)
    parser.add_argument("--sample", metavar="N", type=script.positive_int, help="write N characters")
    parser.add_argument("--prompt", metavar="TEXT", type=script.utf8, default="", help="what the sample goes on from")
    parser.add_argument("--seed", metavar="S", type=script.seed, default=0, help="of the sample")


if __name__ == "__main__":
    script.run(measure, tell, draw, options)
