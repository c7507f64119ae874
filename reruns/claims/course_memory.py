"""What the course and the lesson say of how long a cell remembers, judged by one bit (beyond/recall.py): how far cells
reach, what keeps them from learning more, what remembering takes.
"""

from statistics import fmean

from reruns.claims.base import COURSE, LESSON, POST, UNDECIDED, agreed, claim, decided, each, exactly, span, together
from reruns.claims.reach import ENOUGH, alike, goes_as_far_as, is_told, reach_of, reaches

FAR = 320  # steps: what counts as "several hundred"
LONGEST = 2560  # steps: as far as it was tried
IDENTITY = "RNN, identity"
SOLVED = 0.9  # of the bits: from there on recall calls the task solved


@claim("A vanilla RNN gives up somewhere around 10 to 20 steps.", "recall", source=COURSE, where="course 4.6")
def plain_gives_up(recall):
    """The longest delay that it learned is 10 or 20. Further refutes it; shorter does where the budget isn't why."""
    reach = reach_of(recall, "RNN")
    right = reach["delay"] in (10, 20) and is_told(reach)
    wrong = reach["delay"] > 20 or (reach["delay"] < 10 and is_told(reach))
    return decided(right, wrong), reaches(recall, "RNN"), f"one bit told {reach['delay']:,} steps later"


@claim(
    "It fails silently: a vanilla RNN that learns nothing doesn't crash.", "recall", source=COURSE, where="course 4.5"
)
def fails_silently(recall):
    """Where the delay wasn't learned, every training that didn't solve it ends with a finite loss, and guesses: at most
    four standard deviations of 1,000 tests above a half are right.
    """
    failed = [
        run
        for name in ("RNN", IDENTITY)
        for run in recall["runs"]
        if run["cell"] == name and run["delay"] == recall["reach"][name]["not_learned"] and not run.get("solved_at")
    ]
    right = [run["accuracy"] for run in failed if "accuracy" in run]
    guessing = 0.5 + 4 * (0.25 / 1000) ** 0.5
    verdict = together(each(["accuracy" in run for run in failed]), each([share <= guessing for share in right]))
    return verdict, f"{len(right)} of {len(failed)} trainings end with a finite loss, {span(right)} right"


@claim(
    "A network can't learn long-range dependencies because the learning signal never arrives intact.",
    "recall",
    source=COURSE,
    where=("course 1.4", "course 8.1"),
)
def no_signal_no_learning(recall):
    """Then it is what arrives that tells who learns. Recurrent cells and seeds of one delay, one of which solves it at
    some rate within 6,000 steps and one doesn't: in nine pairs of ten more arrives at the first state of the first
    before training. Refuted where it is no more than every second.
    """
    cases = {}
    for run in recall["runs"]:
        if run["cell"].startswith(("RNN", "GRU", "LSTM")) and "gradient_before" in run and run["steps"] == ENOUGH:
            case = cases.setdefault((run["delay"], run["cell"], run["seed"]), {"solved": False})
            case["gradient"] = run["gradient_before"]
            case["solved"] |= bool(run["solved_at"])
    pairs = [
        (one["gradient"], other["gradient"])
        for (delay, *_), one in cases.items()
        for (same, *_), other in cases.items()
        if delay == same and one["solved"] and not other["solved"]
    ]
    if not pairs:
        return UNDECIDED, "no delay was solved by some and not by others"
    share = fmean(1.0 if one > other else 0.5 if one == other else 0.0 for one, other in pairs)
    figures = f"in {share:.0%} of {len(pairs):,} pairs of one delay more arrives at the one that learns"
    return decided(share >= 0.9, share <= 0.5), figures


@claim("What holds a bit comes about by the bit's own gradient: cut off, it isn't learned.", "recall_cut")
def bit_needs_its_gradient(recall_cut):
    """Refuted where most seeds of a delay of 40 or more solve it although their gradient ends before. Holds where none
    does at any such delay that most solve with all of it. Written after eight trainings of one seed were seen.
    """
    solved = {}
    for run in recall_cut["runs"]:
        if run["delay"] >= 40 and "accuracy" in run:
            solved.setdefault((run["way"], run["delay"]), []).append(bool(run["solved_at"]))
    most = [key for key, seeds in solved.items() if 2 * sum(seeds) > len(seeds)]
    whole = [delay for way, delay in most if way == "whole"]
    cut = {key: seeds for key, seeds in solved.items() if key[0].startswith("last") and key[1] in whole}
    told = {key: seeds for key, seeds in solved.items() if key in cut or (key in most and key[0].startswith("last"))}
    figures = "; ".join(f"{way}, delay {delay} {sum(seeds)} of {len(seeds)}" for (way, delay), seeds in told.items())
    refuted = any(way.startswith("last") for way, _ in most)
    return decided(bool(cut) and not any(map(any, cut.values())), refuted), f"seeds that solve it: {figures}"


@claim("A plain RNN that has learned to tell a bit after a delay holds that bit.", "recall_cut")
def plain_holds_its_bit(recall_cut):
    """Then it has it one and two steps later: nine of ten answers are right, as an LSTM's are. Refuted where most of
    those that solved a delay of 40 or more have fewer. Written when eighteen such networks had been looked at.
    """
    right = {"whole": [], "LSTM, chrono": []}
    for run in recall_cut["runs"]:
        if run["way"] in right and run["delay"] >= 40 and run.get("solved_at"):
            right[run["way"]].append(min(run["right_later"][1:]))
    plain, control = ([share >= SOLVED for share in own] for own in right.values())
    figures = ", ".join(f"{way} {sum(s >= SOLVED for s in own)} of {len(own)}" for way, own in right.items())
    held = 2 * sum(plain) > len(plain)
    verdict = decided(bool(plain) and held, bool(plain) and not held and all(control) and bool(control))
    return verdict, f"networks that are right one and two steps later, too: {figures}"


@claim("The network can learn to keep the highway open.", "recall", source=COURSE, where="course 5.4")
def gates_learn_to_open(recall):
    """Of the cells whose gate that keeps isn't set near 1 beforehand, those that learned 20 steps or more have opened
    it: its mean over units and steps is 0.05 higher. Refuted where it is lower in all of them.
    """
    cells = ("GRU", "LSTM", "LSTM, forget bias 1", "LSTM, forget bias -5")
    moved = {}
    for run in recall["runs"]:
        if run["cell"] in cells and run["delay"] >= 20 and run.get("solved_at"):
            moved.setdefault(run["cell"], []).append(run["kept_after"] - run["kept_before"])
    every = [by for own in moved.values() for by in own]
    figures = "; ".join(f"{cell} {span(own, '+.2f')}" for cell, own in moved.items()) or "none of them learned it"
    verdict = decided(bool(every) and min(every) > 0.05, bool(every) and max(every) < 0)
    return verdict, f"the gate's mean after less before: {figures}"


@claim(
    "Gating stretches that to several hundred steps: LSTM and GRU as torch draws them.",
    "recall",
    source=COURSE,
    where=("course 5.8", "lesson 4"),
)
def gates_stretch_as_drawn(recall):
    """Several hundred: a delay of 320 or more, of both."""
    reach = {name: reach_of(recall, name) for name in ("LSTM", "GRU")}
    verdicts = [goes_as_far_as(FAR, found) for found in reach.values()]
    short = ", ".join(f"{name} {found['delay']:,}" for name, found in reach.items())
    return together(*verdicts), reaches(recall, *reach), f"one bit for {short} steps"


@claim(
    "Gating stretches that to several hundred steps: with the bias of the gate that keeps set for it.",
    "recall",
    source=COURSE,
    where=("course 5.8", "lesson 4"),
)
def gates_stretch_with_a_bias(recall):
    """Each of three ways to set it; cannot be told where some do and some don't."""
    names = ("LSTM, forget bias 3", "LSTM, chrono", "GRU, chrono")
    return agreed(*(goes_as_far_as(FAR, reach_of(recall, name)) for name in names)), reaches(recall, *names)


@claim(
    "A vanilla RNN has no mechanism to stop the highway closing: started at the identity it has no longer reach.",
    "recall",
    source=COURSE,
    where="course 5.5",
)
def plain_cannot_be_helped(recall):
    """Longer: twice the delay, or more. One start that helps refutes it; other starts weren't tried."""
    plain, identity = (reach_of(recall, name) for name in ("RNN", IDENTITY))
    helped = identity["delay"] >= 2 * max(plain["delay"], 1)
    verdict = decided(not helped and is_told(identity), helped and is_told(plain))
    return verdict, reaches(recall, "RNN", IDENTITY)


@claim("With poor initialisation LSTMs still degrade.", "recall", source=COURSE, where="course 5.6")
def poor_starts_degrade(recall):
    """A forget bias of -5 against one of 3: less than half of the reach, and the budget isn't why. It is refuted only
    where the good start learned something, and would plainly not have learned more.
    """
    poor, good = (reach_of(recall, f"LSTM, forget bias {bias}") for bias in (-5, 3))
    less = 2 * poor["delay"] < good["delay"]
    verdict = decided(less and is_told(poor), not less and good["delay"] > 0 and is_told(good))
    return verdict, reaches(recall, "LSTM, forget bias -5", "LSTM, forget bias 3")


@claim("Over thousands of steps LSTMs still degrade.", "recall", source=COURSE, where="course 5.7")
def thousands_are_too_far(recall):
    """The longest delay tried is 2,560. One start that learned it refutes the sentence; it holds if none does, of which
    every start has to be told.
    """
    starts = {name: reach_of(recall, name) for name in recall["reach"] if name.startswith("LSTM")}
    far = any(reach["delay"] >= LONGEST for reach in starts.values())
    return decided(not far and all(map(is_told, starts.values())), far), reaches(recall, *starts)


@claim(
    "A Transformer's useful range is any distance, by a path of length one.",
    "recall",
    "path_length",
    source=COURSE,
    where="course 6.2",
)
def any_distance(recall, path_length):
    """As far as it was tried, 2,560 steps; and what arrives from 1,023 tokens back is above 10^-4 for every seed."""
    reach, powers = reach_of(recall, "Transformer"), path_length["at_token_1"]["attention"]
    learned = reach["delay"] >= LONGEST
    figures = f"{reaches(recall, 'Transformer')}; 10^{min(powers):.1f} or more arrives from token 1"
    return together(decided(learned, not learned and is_told(reach)), exactly(min(powers) > -4)), figures


@claim("A GRU performs roughly as well as an LSTM.", "char_models", "recall", source=COURSE, where="course 4.8")
def gru_is_comparable(char_models, recall):
    """Their best bits per character 2% apart or less, whatever the seeds; and of one bit neither learns more than twice
    the other's delay, as torch draws them and with chrono.
    """
    runs = [run for run in char_models["runs"] if "diverged_at_step" not in run]
    bits = {c: [run["best_validation_bits_per_char"] for run in runs if run["cell"] == c] for c in ("GRU", "LSTM")}
    close = each([abs(gru / lstm - 1) < 0.02 for gru in bits["GRU"] for lstm in bits["LSTM"]])
    pairs = [(f"GRU{start}", f"LSTM{start}") for start in ("", ", chrono")]
    verdicts = [alike(*(reach_of(recall, name) for name in pair)) for pair in pairs]
    figures = ", ".join(f"{cell} {span(values)}" for cell, values in bits.items())
    return (
        together(close, *verdicts),
        f"{figures} bits/char at the best step; {reaches(recall, *pairs[0], *pairs[1])}",
    )


@claim(
    "In an RNN older information simply gets overwritten as the state churns.",
    "recall_why",
    source=LESSON,
    where=("course 1.1", "lesson 1"),
)
def the_state_forgets(recall_why):
    """Started at the identity and trained on one bit: it does if those that have solved the task, 90% right or more,
    still lose one bit in a hundred over 80 steps of noise. Those that haven't in their 600 steps tell nothing.
    """
    runs = [run for run in recall_why["robust"] if (run["cell"], run["delay"]) == (IDENTITY, 80)]
    right = [run["accuracy"] for run in runs if run.get("accuracy", 0) >= SOLVED]
    figures = f"{len(right)} of {len(runs)} solved it; after 80 steps {span(right)} of their bits are right"
    return each([share < 0.99 for share in right]), figures


def logit_falls(recall_why: dict, cell: str) -> list[float]:
    """What training leaves of the logit's gradient at the first state, where a model remembers 20 steps or more.

    Of the logit, not of the loss: that of a solved task is small because nothing is left to learn.
    """
    return [
        run["logit_after"] / run["logit_before"]
        for run in recall_why["robust"]
        if run["cell"] == cell and run["delay"] >= 20 and run.get("accuracy", 0) > 0.99 and run["logit_before"]
    ]


@claim(
    "To store a bit robustly is to contract, and what contracts has no gradient, as Bengio and others proved.",
    "recall_why",
    source=POST,
    where="vanishing 4",
)
def dilemma(recall_why):
    """Where an RNN, started at the identity, has solved the task, training has made how much the answer depends on the
    first state less than a thousandth of what it was. The LSTM beside it decides nothing.
    """
    falls, control = (logit_falls(recall_why, cell) for cell in (IDENTITY, "LSTM, forget bias 3"))
    figures = f"{span(falls, '.0e')} of d logit / d h_1 is left in {len(falls)} networks"
    figures += f"; in an LSTM with forget bias 3 {span(control, '.0e')} ({len(control)})"
    return each([fall < 1e-3 for fall in falls]), figures


@claim("It is the noise that keeps an LSTM without a forget bias from learning twenty steps.", "recall_why", "recall")
def noise_is_why(recall_why, recall):
    """With noise no training solves it, nor does one of recall's with four times the steps; without any both seeds do
    at one rate at least. If it takes no more than more steps, noise makes the LSTM slow and doesn't keep it from it.
    """

    def solved(case):
        by_rate = {}
        for run in recall_why["runs"]:
            if run["case"] == case:
                by_rate.setdefault(run["learning_rate"], []).append(bool(run.get("solved_at")))
        return list(by_rate.values())

    noisy, silent = solved("LSTM"), solved("LSTM, no noise")
    tried = [run for run in recall["runs"] if (run["cell"], run["delay"]) == ("LSTM", 20)]
    patient = [bool(run.get("solved_at")) for run in tried if run["steps"] > ENOUGH]
    never = bool(patient) and not any(patient) and not any(map(any, noisy))
    wrong = any(patient) or any(map(all, noisy)) or not any(map(any, silent))
    counts = [f"{sum(map(sum, found))} of {sum(map(len, found))}" for found in (noisy, [patient], silent)]
    figures = "solved {} with noise, {} with noise and more steps, {} without".format(*counts)
    return decided(never and any(map(all, silent)), wrong), figures
