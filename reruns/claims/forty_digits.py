"""Forty digits: which learning rate, which steps, and what attention makes of them (reverse_40_*.py)."""

from reruns.claims.base import OURS, POST, apart, claim, each, span, together
from reruns.claims.bottleneck import digits, right


@claim(
    "At 40 digits, 3,000 steps and the first learning rate attention does worse than the model without it.",
    "reverse_40_longer",
    source=POST,
    where="reverse_40 1",
    also=("reverse_40_unclipped",),
)
def attention_does_worse_at_first(longer, reverse_40_unclipped=None):
    """Where the gradient isn't clipped, too."""
    runs = {"": longer, "not clipped: ": reverse_40_unclipped}
    found = {how: (digits(one, True), digits(one, False)) for how, one in runs.items() if one}
    figures = "; ".join(f"{how}{span(having)} against {span(without)}" for how, (having, without) in found.items())
    return together(*(apart(*shares) for shares in found.values())), f"digits right {figures}"


@claim(
    "It is the learning rate of 3e-3 that spoils attention at 40 digits: at 1e-3 it learns, and all else is the same.",
    "reverse_40_lr",
    "reverse_40_longer",
    source=POST,
    where="reverse_40 2",
    also=("reverse_40_unclipped",),
)
def rate_spoils_attention(lr, longer, reverse_40_unclipped=None):
    """Learns: more than nine digits in ten. Spoilt: less than half, clipped or not, in trainings of 3,000 steps."""
    runs = {"at 3e-3": longer, "at 3e-3, not clipped": reverse_40_unclipped}
    low, high = digits(lr, True), {how: digits(one, True) for how, one in runs.items() if one}
    verdicts = [each([share > 0.9 for share in low])] + [each([s < 0.5 for s in shares]) for shares in high.values()]
    figures = ", ".join(f"{span(shares)} {how}" for how, shares in high.items())
    return together(*verdicts), f"digits right {span(low)} at 1e-3, {figures}"


@claim(
    "That rate isn't too high for attention as such: as Bahdanau et al. had it, it learns 40 digits at 3e-3.",
    "reverse_bahdanau",
    "reverse_40_longer",
    source=OURS,
)
def bahdanau_learns_at_that_rate(bahdanau, longer):
    """Learns: more than nine digits in ten, in 2,000 steps; the simpler form gets less than half in 3,000."""
    theirs, simpler = digits(bahdanau, True), digits(longer, True)
    verdicts = [each([share > 0.9 for share in theirs]), each([share < 0.5 for share in simpler])]
    return together(*verdicts), f"digits right {span(theirs)}; as the post simplifies it {span(simpler)}"


@claim(
    "Each model has a learning rate of its own: without attention 3e-3 is better than 1e-3, with it 1e-3.",
    "reverse_40_longer",
    "reverse_40_lr",
    source=POST,
    where="reverse_40 3",
)
def own_best_rates(longer, lr):
    """Of the two rates that are tried, after 3,000 steps at 40 digits."""
    having, without = ([digits(found, attention) for found in (lr, longer)] for attention in (True, False))
    figures = f"digits right at 1e-3 and 3e-3: without {span(without[0])} and {span(without[1])}"
    figures += f", with attention {span(having[0])} and {span(having[1])}"
    return together(apart(without[0], without[1]), apart(having[1], having[0])), figures


@claim(
    "At its better rate attention reverses more than 85% of the sequences of 40 digits; the model without it none in"
    " 3,000 steps, and at most 2% in 6,000.",
    "reverse_40_lr",
    "reverse_40_longer",
    "reverse_40_6000",
    source=POST,
    where=("reverse_40 4", "takeaway 5", "course 8.4"),
)
def attention_wins(lr, longer, twice):
    """None: less than one in two hundred."""
    having, first, last = right(lr, True, 40), right(longer, False, 40), right(twice, False, 40)
    verdicts = [
        each([share > 0.85 for share in having]),
        each([share < 0.005 for share in first]),
        each([share <= 0.02 for share in last]),
    ]
    figures = f"whole sequences right {span(having)}, against {span(first)} after 3,000 steps, {span(last)} after 6,000"
    return together(*verdicts), figures, f"right {span(having)}, without it {span(last)}"


@claim(
    "The model without attention still improves: half of the digits right after 3,000 steps, 70% or more after 6,000.",
    "reverse_40_longer",
    "reverse_40_6000",
    source=POST,
    where="reverse_40 5",
)
def still_improving(longer, twice):
    """Half: 45% to 60%."""
    first, last = digits(longer, False), digits(twice, False)
    verdicts = [
        each([0.45 < share < 0.6 for share in first]),
        each([share >= 0.695 for share in last]),
        apart(first, last),
    ]
    return together(*verdicts), f"digits right {span(first)} then {span(last)}"
