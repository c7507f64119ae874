"""Counting: what the post concludes from ngram.py and kneser_ney.py, and what hidden states add."""

from itertools import pairwise

from reruns.claims.base import COURSE, OURS, POST, apart, claim, decided, each, exactly, span, together
from reruns.claims.character_models import ENOUGH


def by_context(found: dict) -> dict[int, float]:
    return dict(zip(found["context"], found["bits_per_char"], strict=True))


def listed(bits: dict[int, float]) -> str:
    return f"{' / '.join(f'{b:.3f}' for b in bits.values())} bits/char at contexts {min(bits)} to {max(bits)}"


@claim(
    "Counting with one added to each count gets better up to two characters of context, then worse with each more.",
    "ngram",
    source=POST,
    where=("ngram 1", "takeaway 4"),
)
def add_one_stops(ngram):
    bits = by_context(ngram)
    right = all((bits[more] < bits[fewer]) == (more <= 2) for fewer, more in pairwise(sorted(bits)))
    return exactly(right), listed(bits)


@claim(
    "Most of the validation text's contexts of four characters never appear in training.",
    "ngram",
    source=POST,
    where="ngram 2",
)
def most_contexts_are_new(ngram):
    """Most: more than half, in both readings, of the places in the text and of the different contexts."""
    at = ngram["context"].index(4)
    places, distinct = ngram["context_never_seen"][at], ngram["distinct_contexts_never_seen"][at]
    figures = f"{places:.1%} of the contexts as the text has them, {distinct:.1%} of the different ones"
    return each([places > 0.5, distinct > 0.5]), figures


@claim(
    "Backing off to a shorter context is the better smoothing: Kneser–Ney beats added ones from two characters on.",
    "kneser_ney",
    "ngram",
    source=POST,
    where="kneser_ney 1",
)
def backing_off_is_better(kneser_ney, ngram):
    """The post says it of contexts that are rare. After one character, which never is, its own added ones are ahead."""
    ours, theirs = by_context(kneser_ney), by_context(ngram)
    both = sorted(n for n in ours.keys() & theirs.keys() if n >= 2)
    figures = " / ".join(f"{ours[n]:.3f} against {theirs[n]:.3f}" for n in both)
    return each([ours[n] < theirs[n] for n in both]), f"{figures} bits/char at contexts {both[0]} to {both[-1]}"


@claim(
    "Counting with Kneser–Ney's smoothing goes on getting better up to five or six characters of context.",
    "kneser_ney",
    source=POST,
    where=("kneser_ney 2", "takeaway 4"),
)
def kneser_ney_goes_on(kneser_ney):
    """With the post's fixed discount. Up to the best context each character helps."""
    bits = by_context(kneser_ney)
    best = min(bits, key=bits.get)
    helps = all(bits[more] < bits[fewer] for fewer, more in pairwise(range(1, best + 1)))
    return exactly(best in (5, 6) and helps), f"best at {best}: {listed(bits)}"


@claim(
    "With three estimated discounts a dozen characters of context are better than seven, and from about a dozen on more"
    " of them change nothing.",
    "kneser_ney",
    source=OURS,
)
def modified_goes_further(kneser_ney):
    """Better: by 0.005 bits or more, as a difference of less is none. Flat: all contexts from 12 on differ by less."""
    bits = by_context(kneser_ney["modified"])
    gain, on = bits[7] - bits[12], [value for context, value in bits.items() if context >= 12]
    figures = f"{bits[7]:.3f} bits/char at 7, {bits[12]:.3f} at 12, {span(on)} from there to {max(bits)}"
    return together(exactly(gain >= ENOUGH), exactly(max(on) - min(on) < ENOUGH)), figures


@claim("Counts can't use context beyond a few characters.", "kneser_ney", source=POST, where="kneser_ney 4")
def counts_see_a_few(kneser_ney):
    """A few: six, the best context of the post's. Use: a hundredth of a bit, by any of the smoothings."""
    kinds = [kneser_ney, *filter(None, [kneser_ney.get("modified")])]
    gains = [by_context(kind)[6] - min(bits for n, bits in by_context(kind).items() if n > 6) for kind in kinds]
    figures = " and ".join(f"{max(gain, 0):.3f}" for gain in gains)
    return exactly(max(gains) < 0.01), f"more than six characters gain {figures} bits/char (fixed, modified discounts)"


@claim("A hidden Markov model with one state is counting without context.", "hmm")
def one_state_is_counting(hmm):
    one = [run["validation_bits_per_char"] for run in hmm["runs"] if run["states"] == 1]
    counted = hmm["add_one"]["bits_per_char"][0]
    gap = max(abs(bits - counted) for bits in one)
    return exactly(gap < 1e-9), f"{counted:.6f} bits/char, {gap:.0e} apart"


@claim(
    "More hidden states are better, and still 64 of them know less than two characters tell.",
    "hmm",
    source=COURSE,
    where="course 1.2",
)
def states_help(hmm):
    """A gain that three decimals don't show is none."""
    bits = {}
    for run in hmm["runs"]:
        bits.setdefault(run["states"], []).append(run["validation_bits_per_char"])
    two = hmm["add_one"]["bits_per_char"][2]
    falls = [apart([b + 5e-4 for b in bits[more]], bits[fewer]) for fewer, more in pairwise(sorted(bits))]
    figures = ", ".join(f"{span(values)} with {states}" for states, values in bits.items())
    beyond = decided(min(bits[64]) > two, max(bits[64]) <= two)
    return together(*falls, beyond), f"{figures}; two characters, add-one: {two:.3f} bits/char"
