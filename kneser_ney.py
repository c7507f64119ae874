"""Kneser–Ney smoothing of character n-grams: the strongest model here that does nothing but count.

How likely is c after a history h? Take a discount D off every count of an n-gram hc, and let the shorter history h'
(h without its first character) share out what that frees:

    p(c | h) = max(count(hc) - D, 0) / count(h·)  +  D · kinds(h·) / count(h·) · p(c | h')

where count(h·) sums over all c, and kinds(h·) is how many different c were seen after h. Below the empty history every
one of the V characters has 1/V; a history never seen leaves everything to h'.

Kneser and Ney's idea is what to count on the way down. A shorter history is only asked where a longer one had no
answer, so there it matters not how often h'c occurred but after how many different characters: "u" is frequent, but
since it follows little else than "q", it is a poor guess in a new place. Only the model's longest n-grams are counted
as they occur; all others have continuation counts, count(h'c) = how many different x have xh'c in the text.

The modified kind takes three discounts for each length of n-gram, for counts of 1, of 2, and of 3 or more, estimated
from how many n-grams have each count. On small or odd texts that gives no number, or one that makes no sense (not above
0, or more than the count itself); that length then takes 0.5, 1 and 1.5, and the output says so.

    python kneser_ney.py          1 s, and 1 s for the figure
    python kneser_ney.py --sample 500 --prompt "The gradient" --seed 1
    python kneser_ney.py --scale          30 s

Prints, at the end:

    previous 6 characters: 2.481 bits/char
    previous 7 characters: 2.473 bits/char
    probabilities over all characters sum to 1.000000 after 'the'
    scored: 57,279 characters, all after the first; 148 possible, one of them unseen

    where it loses: 27 letters drawn evenly, 3,000 to train on, 20,000 to score
    add-one, no context: 4.762 bits/char; nothing can do better than 4.755
    previous 1 characters: 4.963 bits/char with the fixed discount, 4.870 modified

Kneser–Ney loses to add-one where a history tells nothing, as the last lines show: on characters drawn evenly, what it
takes for habits of the text is chance.

Every character of the validation text after the first is scored, the first being history only. At its start the history
is what there is. ``--sample`` writes from the modified model with the longest context; U+FFFD stands for the unseen
character, which has a probability like any other. ``--scale`` repeats the counting on longer texts, the training text
and what the model writes after it, and saves outputs/kneser_ney_scale.*; peak memory is that of all arrays together.

Sources: Kneser and Ney, "Improved backing-off for m-gram language modeling" (1995); Chen and Goodman, "An empirical
study of smoothing techniques for language modeling" (1998), for the interpolated and the modified form. Departure from
the latter: no symbols for start and end, so the n-grams at the start of the text have no continuation to count there.
"""

import time
import tracemalloc
from itertools import pairwise
from typing import NamedTuple

import numpy as np

import corpus
from lab import plots, script
from lab.results import Results
from lab.script import UserError, note

CONTEXTS = [1, 2, 3, 4, 5, 6, 7]  # characters
DISCOUNT = 0.75
FALLBACK = (0.5, 1.0, 1.5)  # where the counts don't give three discounts
SUM_AFTER = "the"
LETTERS, DRAWN, SCORED = 27, 3_000, 20_000  # an alphabet; characters drawn evenly from it to train on, and to score
SCALES = [1, 4, 16]  # times the length of the training text
STREAMS = 4096  # texts that are written side by side to make the longer ones
SEED = 0


class Ngrams(NamedTuple):
    """The n-grams of one length that a text holds, numbered in alphabetical order. Each array is (n-grams,)."""

    key: np.ndarray  # the number of its history (all but its last character) · V + its last character: ascending
    count: np.ndarray  # how often it occurs
    suffix: np.ndarray  # the number of what is left without its first character


def count_ngrams(text, V, longest):
    """The n-grams of a text of numbers below V, for n from 1 to ``longest``, from one sort of its positions."""
    N = len(text)
    padded = np.zeros(N + longest, np.min_scalar_type(V))  # 0 stands beyond the end
    padded[:N] = text
    padded[:N] += 1
    # Sorted stably by each of the following characters, the furthest first, positions end up in the alphabetical order
    # of what follows them, where equal n-grams stand together, for every n.
    order = np.arange(N)
    for n in reversed(range(longest)):
        order = order[np.argsort(padded[n:][order], kind="stable")]
    place = np.zeros(N + 1, np.int64)
    place[order] = np.arange(N)
    place_of_next = place[order + 1]
    ngrams = []
    number = np.zeros(N, np.int64)  # of the n-gram at each place; the empty one, n = 0, has number 0
    differs = np.arange(N) == 0  # from the n-gram at the place before
    for n in range(1, longest + 1):
        last = padded[n - 1 :][order]
        differs[1:] |= last[1:] != last[:-1]
        first = np.flatnonzero(differs)
        count = np.diff(first, append=N)
        inside = last[first] > 0
        first, count = first[inside], count[inside]
        ngrams.append(Ngrams(number[first] * V + last[first] - 1, count, number[place_of_next[first]]))
        starts = np.zeros(N, bool)
        starts[first] = True
        number = np.cumsum(starts) - 1
    return ngrams


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


class Level(NamedTuple):
    """p(c | h) = alpha(hc) + gamma(h) · p(c | h') for all histories h of one length.

    Behind the last n-gram and the last history stand a 0 and a 1: number -1, never seen, leaves everything to h'.
    """

    key: np.ndarray  # (n-grams,)
    alpha: np.ndarray  # (n-grams + 1,)
    gamma: np.ndarray  # (histories + 1,)


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


def find(key, history, character, V):
    """The numbers of n-grams from those of their histories and their last characters; -1 if never seen."""
    wanted = history * V + character
    if not len(key):
        return np.full_like(wanted, -1)
    order = np.argsort(wanted)  # asked in ascending order, a search ends near where the one before did
    at = np.empty_like(order)
    at[order] = np.searchsorted(key, wanted[order])
    at[at == len(key)] = -1
    return np.where(key[at] == wanted, at, -1)


def score(longest, below, text, V):
    """The probability of every character of a text, from the models with contexts of 0, 1, 2, … characters in turn."""
    p = np.full(len(text), 1 / V)  # from the histories so far
    number = np.zeros(len(text) + 1, np.int64)  # of the n-gram that starts at each position
    for n, top in enumerate(longest):
        history, number = number[:-1], find(top.key, number[:-1], text[n:], V)
        yield np.append(p[:n], top.alpha[number] + top.gamma[history] * p[n:])
        if n < len(below):
            p[n:] = below[n].alpha[number] + below[n].gamma[history] * p[n:]


def bits_per_char(train, validation, V, contexts=CONTEXTS, discounts=modified_discounts):
    """For each number of context characters, what a character of a validation text costs, the first one left out."""
    model = levels(count_ngrams(train, V, max(contexts) + 1), discounts, V)
    bits = [-np.log2(p[1:]).mean() for p in score(*model, validation, V)]
    return [bits[context] for context in contexts]


def histories(model, text, V):
    """The numbers of the last 0, 1, 2, … characters of a text, as far back as the model looks; -1 if never seen."""
    number = np.zeros(len(text) + 1, np.int64)
    last = [0]
    for n, (key, _, _) in enumerate(model[:-1]):
        number = find(key, number[:-1], text[n:], V)
        last.append(number[-1] if len(number) else -1)
    return np.array(last)


def probabilities(model, text, V):
    """The probability of each of the V characters after a text."""
    p = np.full(V, 1 / V)
    for (key, alpha, gamma), history in zip(model, histories(model, text, V), strict=True):
        p = alpha[find(key, history, np.arange(V), V)] + gamma[history] * p
    return p


def sample(model, text, V, streams, steps, rng):
    """What the model writes after a text, in several streams side by side: (streams, steps).

    A character takes one uniform number u. If u is below what the longest history's own n-grams share out, it picks one
    of them; otherwise the rest, from there to 1, is stretched to [0, 1) again and asks the next shorter history.
    """
    shares = [np.append(0, np.cumsum(alpha[:-1])) for _, alpha, _ in model]
    starts = [np.searchsorted(key, np.arange(len(gamma)) * V) for key, _, gamma in model]  # of a history's n-grams
    seen = np.repeat(histories(model, text, V)[:, None], streams, axis=1)  # (levels, streams)
    written = np.empty((steps, streams), np.min_scalar_type(V))
    for character in written:
        waiting, u = np.arange(streams), rng.random(streams)
        for n in reversed(range(len(model))):
            key, _, gamma = model[n]
            history = seen[n, waiting]
            own = 1 - gamma[history]
            here = u < own
            start, end = starts[n][history[here]], starts[n][history[here] + 1]
            ngram = np.searchsorted(shares[n], shares[n][start] + u[here], side="right") - 1
            character[waiting[here]] = key[np.minimum(ngram, end - 1)] % V
            waiting, u = waiting[~here], (u - own)[~here] / gamma[history[~here]]
        character[waiting] = np.minimum(u * V, V - 1)
        for n in reversed(range(1, len(model))):
            seen[n] = find(model[n - 1].key, seen[n - 1], character, V)
    return written.T


def main(argv=None):
    arguments = parse(argv)
    text = corpus.load(arguments.data)
    if arguments.sample:
        write_text(arguments, text)
    elif arguments.scale:
        measure_cost(arguments, text)
    else:
        measure_bits(arguments, text)


def measure_bits(arguments, text):
    if len(text.validation) < 2:
        raise UserError("the validation text has 1 character; it takes 2, since the first is only history")
    results = Results("kneser_ney", arguments, corpus=text.fingerprint, seeds=[SEED])
    train, validation, V = text.encode(text.train), text.encode(text.validation), text.size
    ngrams = count_ngrams(train, V, max(CONTEXTS) + 1)

    def report(discounts):
        bits = bits_per_char(train, validation, V, discounts=discounts)
        for context, value in zip(CONTEXTS, bits, strict=True):
            results.print(f"previous {context} characters: {value:.3f} bits/char")
        model = of_context(*levels(ngrams, discounts, V), max(CONTEXTS))
        total = probabilities(model, text.encode(SUM_AFTER), V).sum()
        results.print(f"probabilities over all characters sum to {total:.6f} after {SUM_AFTER!r}")
        return {"context": CONTEXTS, "bits_per_char": bits, "probabilities_sum_after_the": total}

    results.record(discount=DISCOUNT, **report(fixed_discounts))

    results.print()
    results.print("modified Kneser–Ney: discounts for counts of 1, 2, and 3 or more")
    counts = {f"{n}-grams below longer ones": count for n, count in enumerate(continuation_counts(ngrams), 1)}
    counts |= {f"{n}-grams as the longest": count for n, (_, count, _) in enumerate(ngrams, 1) if n - 1 in CONTEXTS}
    discounts = {name: modified_discounts(count)[1:] for name, count in sorted(counts.items())}
    for name, D in discounts.items():
        results.print(f"{name:<25}: " + ", ".join(f"{d:.3f}" for d in D))
    stood_in = [name for name, D in discounts.items() if tuple(D) == FALLBACK]
    results.print(f"counts that give no usable estimate, so that {FALLBACK} stood in: {'; '.join(stood_in) or 'none'}")
    results.record(modified={**report(modified_discounts), "discounts": discounts, "stood_in": stood_in})
    results.print(f"scored: {len(validation) - 1:,} characters, all after the first; {V} possible, one of them unseen")
    results.record(scored_characters=len(validation) - 1)

    results.print()
    results.print(f"where it loses: {LETTERS} letters drawn evenly, {DRAWN:,} to train on, {SCORED:,} to score")
    rng = np.random.default_rng(SEED)
    learnt, judged = rng.integers(LETTERS, size=DRAWN), rng.integers(LETTERS, size=SCORED)
    p = (np.bincount(learnt, minlength=LETTERS + 1) + 1) / (DRAWN + LETTERS + 1)
    add_one = -np.log2(p[judged[1:]]).mean()
    (fixed,) = bits_per_char(learnt, judged, LETTERS + 1, [1], fixed_discounts)
    (modified,) = bits_per_char(learnt, judged, LETTERS + 1, [1], modified_discounts)
    results.print(f"add-one, no context: {add_one:.3f} bits/char; nothing can do better than {np.log2(LETTERS):.3f}")
    results.print(f"previous 1 characters: {fixed:.3f} bits/char with the fixed discount, {modified:.3f} modified")
    results.record(drawn_evenly={"add_one": add_one, "fixed": fixed, "modified": modified})
    results.save(draw)


def write_text(arguments, text):
    """--sample: a text from the modified model with the longest context."""
    results = Results("kneser_ney_sample", arguments, corpus=text.fingerprint, seeds=[arguments.seed])
    unseen = sorted(set(arguments.prompt) - set(text.characters))
    if unseen:
        note(f"never seen in training, so read as the unseen character: {' '.join(map(repr, unseen))}")
    ngrams = count_ngrams(text.encode(text.train), text.size, max(CONTEXTS) + 1)
    model = of_context(*levels(ngrams, modified_discounts, text.size), max(CONTEXTS))
    rng = np.random.default_rng(arguments.seed)
    (written,) = sample(model, text.encode(arguments.prompt), text.size, 1, arguments.sample, rng)
    results.print(arguments.prompt + text.decode(written))
    results.record(text=arguments.prompt + text.decode(written))
    results.save()


def measure_cost(arguments, text):
    """--scale: time and memory of counting, and time of scoring, as the text grows."""
    del arguments.changed["scale"]  # it has results of its own, with saved outputs of their own
    results = Results("kneser_ney_scale", arguments, corpus=text.fingerprint, seeds=[SEED])
    train, validation, V = text.encode(text.train), text.encode(text.validation), text.size

    def build(text):
        ngrams = count_ngrams(text, V, max(CONTEXTS) + 1)
        return ngrams, levels(ngrams, modified_discounts, V)

    model = of_context(*build(train)[1], max(CONTEXTS))
    start = time.perf_counter()
    steps = -(-len(train) * (max(SCALES) - 1) // STREAMS)
    written = sample(model, train, V, STREAMS, steps, np.random.default_rng(SEED))
    results.print(f"written by the model: {written.size:,} characters in {time.perf_counter() - start:.1f} s")
    longest = np.append(train.astype(written.dtype), written)
    del model, written
    runs = []
    for scale in SCALES:
        part = longest[: scale * len(train)]
        tracemalloc.start()
        build(part)
        peak_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        start = time.perf_counter()
        ngrams, model = build(part)
        seconds = time.perf_counter() - start
        start = time.perf_counter()
        for _ in score(*model, validation, V):
            pass
        scoring_seconds = time.perf_counter() - start
        millions = len(part) / 1e6
        kinds = sum(len(key) for key, _, _ in ngrams)
        results.print(
            f"{scale:>2}x the text, {millions:.1f} million characters: {seconds / millions:.2f} s and"
            f" {peak_bytes / 1e6 / millions:.0f} MB for each million; {kinds:,} n-grams;"
            f" {1e6 * scoring_seconds / len(validation):.1f} µs to score a character with every context"
        )
        runs.append(
            {
                "characters": len(part),
                "ngrams": kinds,
                "seconds": seconds,
                "peak_bytes": peak_bytes,
                "scoring": scoring_seconds,
            }
        )
    results.record(scales=SCALES, runs=runs)
    results.save()


def parse(argv):
    parser = script.Arguments(__doc__)
    corpus.add_argument(parser)
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument("--sample", metavar="N", type=script.positive_int, help="write N characters")
    modes.add_argument("--scale", action="store_true", help="measure the cost of counting longer texts")
    parser.add_argument("--prompt", metavar="TEXT", type=script.utf8, default="", help="what the sample goes on from")
    parser.add_argument("--seed", metavar="S", type=script.seed, default=0, help="of the sample")
    arguments = parser.parse_args(argv)
    if not arguments.sample and arguments.changed.keys() & {"prompt", "seed"}:
        parser.error("--prompt and --seed belong to --sample N")
    return arguments


def draw(results):
    """Bits per character against the context, for both kinds."""
    figure, axes = plots.subplots()
    for name, kind in ("fixed discount", results), ("modified", results["modified"]):
        axes.plot(results["context"], kind["bits_per_char"], label=name, marker="o" if kind is results else "s")
    axes.set(xlabel="context (characters)", ylabel="validation bits per character")
    axes.set_title("Three discounts keep longer contexts from hurting")
    plots.label_ends(axes)
    return figure


if __name__ == "__main__":
    script.run(main)
