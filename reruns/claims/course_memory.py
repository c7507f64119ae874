"""What the course and the lesson say of how long a cell remembers, judged by one bit (beyond/one_bit.py).

A model's reach is the longest delay that it learned. That it learned no longer one counts only where its budget of
steps plainly isn't why.
"""

from statistics import fmean

from reruns.claims.base import COURSE, LESSON, UNDECIDED, claim, decided, each, exactly, span, together

FAR = 320  # steps: what counts as "several hundred"
LONGEST = 2560  # steps: as far as it was tried


def is_told(reach: dict) -> bool:
    """Whether a longer delay was tried, and the budget isn't why it wasn't learned."""
    return reach["not_learned"] is not None and not reach["budget_may_be_why"]


def goes_far(reach: dict) -> str:
    far = reach["delay"] >= FAR
    return decided(far, not far and is_told(reach))


def told(reach: dict) -> str:
    if reach["not_learned"] is None:
        return f"{reach['delay']:,}"
    more = "can't be told" if reach["budget_may_be_why"] else "not learned"
    return f"{reach['delay']:,}, {reach['not_learned']:,}: {more}"


def reaches(one_bit: dict, *names: str) -> str:
    return "one bit learned over delays up to " + "; ".join(f"{n} {told(one_bit['reach'][n])}" for n in names)


@claim("A vanilla RNN gives up somewhere around 10 to 20 steps.", "one_bit", source=COURSE)
def plain_gives_up(one_bit):
    """The longest delay that it learned is 10 or 20. Further refutes it; shorter does where the budget isn't why."""
    reach = one_bit["reach"]["RNN"]
    right = reach["delay"] in (10, 20) and is_told(reach)
    wrong = reach["delay"] > 20 or (reach["delay"] < 10 and is_told(reach))
    return decided(right, wrong), reaches(one_bit, "RNN")


@claim("Gating stretches that to several hundred steps: LSTM and GRU as torch draws them.", "one_bit", source=COURSE)
def gates_stretch_as_drawn(one_bit):
    """Several hundred: a delay of 320 or more, of both."""
    reach = {name: one_bit["reach"][name] for name in ("LSTM", "GRU")}
    short = ", ".join(f"{name} {found['delay']:,}" for name, found in reach.items())
    return together(*map(goes_far, reach.values())), reaches(one_bit, *reach), f"one bit for {short} steps"


@claim(
    "Gating stretches that to several hundred steps: with the bias of the gate that keeps set for it.",
    "one_bit",
    source=COURSE,
)
def gates_stretch_with_a_bias(one_bit):
    """Each of three ways to set it; cannot be told where some do and some don't."""
    names = ("LSTM, forget bias 3", "LSTM, chrono", "GRU, chrono")
    verdicts = {goes_far(one_bit["reach"][name]) for name in names}
    return verdicts.pop() if len(verdicts) == 1 else UNDECIDED, reaches(one_bit, *names)


@claim(
    "A vanilla RNN has no mechanism to stop the highway closing: no start gives it a longer reach.",
    "one_bit",
    source=COURSE,
)
def plain_cannot_be_helped(one_bit):
    """Started at the identity it learns twice the delay or more: then it can be helped."""
    plain, identity = (one_bit["reach"][name] for name in ("RNN", "RNN, identity"))
    helped = identity["delay"] >= 2 * max(plain["delay"], 1)
    verdict = decided(not helped and is_told(identity), helped and not plain["budget_may_be_why"])
    return verdict, reaches(one_bit, "RNN", "RNN, identity")


@claim("With poor initialisation LSTMs still degrade.", "one_bit", source=COURSE)
def poor_starts_degrade(one_bit):
    """A forget bias of -5 against one of 3: less than half of the reach, and the budget isn't why."""
    poor, good = (one_bit["reach"][f"LSTM, forget bias {bias}"] for bias in (-5, 3))
    less = 2 * poor["delay"] < good["delay"]
    return decided(less and is_told(poor), not less), reaches(one_bit, "LSTM, forget bias -5", "LSTM, forget bias 3")


@claim("Over thousands of steps LSTMs still degrade.", "one_bit", source=COURSE)
def thousands_are_too_far(one_bit):
    """The longest delay tried is 2,560. That the best start learned it refutes the sentence."""
    names = [name for name in one_bit["reach"] if name.startswith("LSTM")]
    best = max(names, key=lambda name: one_bit["reach"][name]["delay"])
    reach = one_bit["reach"][best]
    far = reach["delay"] >= LONGEST
    return decided(not far and is_told(reach), far), reaches(one_bit, best)


@claim(
    "A Transformer's useful range is any distance, by a path of length one.", "one_bit", "path_length", source=COURSE
)
def any_distance(one_bit, path_length):
    """As far as it was tried, 2,560 steps; and what arrives from 1,023 tokens back is above 10^-4 for every seed."""
    reach, powers = one_bit["reach"]["Transformer"], path_length["at_token_1"]["attention"]
    learned = reach["delay"] >= LONGEST
    figures = f"{reaches(one_bit, 'Transformer')}; 10^{min(powers):.1f} or more arrives from token 1"
    return together(decided(learned, not learned and is_told(reach)), exactly(min(powers) > -4)), figures


@claim("A GRU performs roughly as well as an LSTM.", "char_models", "one_bit", source=COURSE)
def gru_is_comparable(char_models, one_bit):
    """Their best bits per character 2% apart or less, and of one bit at most twice the delay, from like starts."""
    runs = [run for run in char_models["runs"] if "diverged_at_step" not in run]
    bits = {c: [run["best_validation_bits_per_char"] for run in runs if run["cell"] == c] for c in ("GRU", "LSTM")}
    close = [abs(fmean(bits["GRU"]) / fmean(bits["LSTM"]) - 1) < 0.02]
    for start in ("", ", chrono"):
        gru, lstm = (one_bit["reach"][f"{cell}{start}"]["delay"] for cell in ("GRU", "LSTM"))
        close.append(max(gru, lstm) <= 2 * min(gru, lstm))
    figures = ", ".join(f"{cell} {span(values)}" for cell, values in bits.items())
    return (
        each(close),
        f"{figures} bits/char at the best step; {reaches(one_bit, 'GRU', 'LSTM', 'GRU, chrono', 'LSTM, chrono')}",
    )


@claim(
    "In an RNN older information simply gets overwritten as the state churns.",
    "one_bit_why",
    source=LESSON,
)
def the_state_forgets(one_bit_why):
    """Started at the identity and trained on one bit: it does if fewer than 99% are right after 80 steps of noise."""
    right = [run["accuracy"] for run in one_bit_why["robust"] if run["delay"] == 80 and "accuracy" in run]
    return each([share < 0.99 for share in right]), f"after 80 steps {span(right)} of the bits are right"


@claim(
    "To store a bit robustly is to contract, and what contracts has no gradient, as Bengio and others proved.",
    "one_bit_why",
)
def dilemma(one_bit_why):
    """Where 99% are right, training has made the gradient at the first state a thousand times as small, or more."""
    falls = [
        run["gradient_after"] / run["gradient_before"]
        for run in one_bit_why["robust"]
        if run.get("accuracy", 0) >= 0.99 and run["delay"] >= 20
    ]
    if not falls:
        return UNDECIDED, "no network remembered 20 steps"
    return each([fall < 1e-3 for fall in falls]), f"{span(falls, '.0e')} of it is left in {len(falls)} networks"


@claim("It is the noise that keeps an LSTM without a forget bias from learning twenty steps.", "one_bit_why")
def noise_is_why(one_bit_why):
    """With noise no training solves it; without any both seeds do at one rate at least."""

    def solved(case):
        by_rate = {}
        for run in one_bit_why["runs"]:
            if run["case"] == case:
                by_rate.setdefault(run["learning_rate"], []).append(bool(run.get("solved_at")))
        return list(by_rate.values())

    noisy, silent = solved("LSTM"), solved("LSTM, no noise")
    right = not any(map(any, noisy)) and any(map(all, silent))
    counts = [f"{sum(map(sum, found))} of {sum(map(len, found))}" for found in (noisy, silent)]
    return exactly(right), "solved {} with noise, {} without".format(*counts)
