"""What the course says of counting, of teacher forcing and of CTC, beside its cells."""

from statistics import fmean

from reruns.claims.base import COURSE, FAILS, UNDECIDED, claim, decided, each, span, together

LEAST_WANTED = 0.9  # of the digits, where it is asked when a reverser has learned
BLIND = 1e-6  # of the probability: what can't be seen in any figure of these models
FORCED, OWN = "true digits", "own digits"


def moved(ten_words_back: dict, words: int, *models: str) -> list[float]:
    """How much probability moves when the character so many words back is replaced, in models whose name starts so."""
    distance = str(ten_words_back["words_take"][str(words)])
    counted = [own[distance] for name, own in ten_words_back["counting"].items() if name.startswith(models)]
    runs = [run for run in ten_words_back["runs"] if run["model"].startswith(models) and "moved" in run]
    return counted + [run["moved"][distance] for run in runs]


@claim(
    "n-grams and HMMs could not use context from ten words back, let alone a hundred.",
    "ten_words_back",
    source=COURSE,
    where="course 2.1",
)
def counting_is_short_sighted(ten_words_back):
    """Less than a millionth of the probability moves."""
    found = {
        (words, model): moved(ten_words_back, words, model) for words in (10, 100) for model in ("Kneser–Ney", "HMM")
    }
    figures = ", ".join(f"{model} {span(shares, '.0e')} {words} words back" for (words, model), shares in found.items())
    verdicts = [each([share < BLIND for share in shares]) for shares in found.values()]
    return together(*verdicts), f"probability that moves: {figures}"


@claim(
    "With gates long-range memory works in practice: an LSTM of text reacts to the tenth word back, far more than a"
    " plain RNN does.",
    "ten_words_back",
    source=COURSE,
    where="course 2.2",
)
def lstm_looks_back(ten_words_back):
    """A thousandth of the probability or more moves, and a hundred times what moves in the plain RNN. They had a fifth
    of the post's training: that too little moves is no refutation, that as much moves in every plain RNN is.
    """
    lstm, rnn = (moved(ten_words_back, 10, cell) for cell in ("LSTM", "RNN"))
    figures = f"probability that moves: LSTM {span(lstm, '.0e')}, RNN {span(rnn, '.0e')}"
    if not lstm or not rnn:
        return UNDECIDED, figures
    far = min(lstm) > 1e-3 and min(lstm) > 100 * max(rnn)
    return decided(far, min(rnn) > 1e-3 and max(lstm) <= min(rnn)), figures


def by_way(teacher_forcing: dict) -> list[dict]:
    """Way → record, for each length, model and seed of which all ways ended."""
    cases = {}
    for run in teacher_forcing["runs"]:
        if "diverged_at_step" not in run:
            cases.setdefault((run["length"], run["attention"], run["seed"]), {})[run["way"]] = run
    return [ways for ways in cases.values() if len(ways) == 3]


def learned_at(run: dict) -> float:
    """The first look at which so many digits were right, infinity where there is none."""
    looks = zip(run["curve"]["step"], run["curve"]["right"], strict=True)
    return next((step for step, right in looks if right >= LEAST_WANTED), float("inf"))


@claim("Teacher forcing makes training converge much faster.", "teacher_forcing", source=COURSE, where="course 7.1")
def forcing_is_faster(teacher_forcing):
    """Half the steps that a decoder takes on its own digits, or fewer, until 90% of its own writing is right. One that
    never gets there takes at least all the steps that it was given.
    """
    pairs = [(learned_at(ways[FORCED]), learned_at(ways[OWN]), ways[OWN]["steps"]) for ways in by_way(teacher_forcing)]
    pairs = [pair for pair in pairs if min(pair[:2]) < float("inf")]
    if not pairs:
        return UNDECIDED, "none got 90% of its digits right"
    figures = ", ".join(f"{forced:g} and {own:g}" for forced, own, _ in pairs)
    half = all(2 * forced <= min(own, steps) for forced, own, steps in pairs)
    return decided(half, all(forced >= own for forced, own, _ in pairs)), f"steps on true and on own digits: {figures}"


@claim(
    "Under teacher forcing a decoder's states can be computed in parallel across timesteps.",
    "cells_table",
    source=COURSE,
    where="course 7.2",
)
def forcing_is_parallel(cells_table):
    """With all inputs known beforehand fewer operations wait for one another than there are timesteps. A recurrent
    decoder's input side and its outputs can be computed at once (input_side_is_parallel): counted are its states.
    """
    steps = {name: row["sequential_steps"] for name, row in cells_table["layers"].items()}
    cells, length = [steps[name] for name in ("RNN", "GRU", "LSTM")], cells_table["characters"]
    told = f"{span(cells, ',.0f')} operations in a row for {length} known inputs, {steps['Transformer, token 1']}"
    return each([own < length for own in cells]), f"{told} in a Transformer"


@claim(
    "Teacher forcing makes a step of training cheaper: nothing has to be written first.",
    "teacher_forcing",
)
def forcing_spares_the_writing(teacher_forcing):
    pairs = [[ways[way]["seconds"] / ways[way]["steps"] for way in (FORCED, OWN)] for ways in by_way(teacher_forcing)]
    figures = ", ".join(f"{1000 * forced:.0f} and {1000 * own:.0f}" for forced, own in pairs)
    return each([forced < own for forced, own in pairs]), f"ms a step on true and on own digits: {figures}"


@claim(
    "A model trained on true digits does worse on its own, and practice on its own cures that.",
    "teacher_forcing",
    source=COURSE,
    where="course 7.3",
)
def exposure_bias(teacher_forcing):
    """Digits right reading true ones less those reading its own: above 0 after teacher forcing, less after practice.
    Practice cures nothing where less was learned by it: then both figures are low.
    """
    gaps, as_good = [], []
    for ways in by_way(teacher_forcing):
        gaps.append([ways[way]["forced_digits_right"] - ways[way]["digits_right"] for way in (FORCED, OWN)])
        as_good.append(ways[OWN]["digits_right"] >= ways[FORCED]["digits_right"])
    figures = ", ".join(f"{forced:.3f} and {own:.3f}" for forced, own in gaps)
    less = [own < forced for forced, own in gaps]
    cured = decided(bool(gaps) and all(less) and all(as_good), bool(gaps) and not any(less))
    told = f"gap after training on true and on own digits: {figures}; own digits taught as much {sum(as_good)} times"
    return together(each([forced > 0 for forced, _ in gaps]), cured), f"{told} of {len(gaps)}"


@claim("Small errors early in generation can compound.", "teacher_forcing", source=COURSE, where="course 7.4")
def errors_compound(teacher_forcing):
    """After teacher forcing a wrong digit is put in the place of the first one read: of the digits from the third on
    one in a hundred more is wrong than without. The second reads the wrong one itself.
    """
    later = [
        [1 - fmean(ways[FORCED][name][2:]) for name in ("right_after_a_wrong_first", "right_by_position")]
        for ways in by_way(teacher_forcing)
    ]
    figures = ", ".join(f"{put:.3f} and {free:.3f}" for put, free in later)
    compounds = [put > free + 0.01 for put, free in later]
    return each(compounds), f"wrong from the third digit on, after a wrong first and without: {figures}"


@claim("CTC needs no frame-level labels to learn to transcribe.", "ctc_digits", source=COURSE, where="course 7.6")
def no_frame_labels(ctc_digits):
    """At the last epoch at most two labels in a hundred more are wrong than with a label for each frame."""
    runs = [run for run in ctc_digits["runs"] if run["order"] == "forwards" and "diverged_at_step" not in run]
    error = {m: [run["error"]["greedy"][-1] for run in runs if run["model"] == m] for m in ("CTC", "framewise")}
    figures = ", ".join(f"{model} {span(values)}" for model, values in error.items())
    return each([ours <= max(error["framewise"]) + 0.02 for ours in error["CTC"]]), f"label error rate {figures}"


@claim(
    "CTC's single forward pass has the lower latency, no decoder generating token by token.",
    "latency",
    source=COURSE,
    where="course 7.8",
)
def one_pass_is_faster(latency):
    both, attention = (latency["ms"][name] for name in ("CTC, both ways", "attention"))
    figures = ", ".join(
        f"{a:.1f} and {b:.1f} at {n}" for a, b, n in zip(both, attention, latency["lengths"], strict=True)
    )
    verdict = each([a < b for a, b in zip(both, attention, strict=True)])
    return verdict, f"ms after the last frame, CTC both ways and attention, by digits: {figures}"


@claim("CTC serves real-time recognition: it can write while it hears.", "latency", source=COURSE, where="course 7.8")
def ctc_streams(latency):
    """Hearing one way: a digit is written within 14 frames of its end, a digit's mean length, fewer than 10% wrong. It
    can't be told where this fails while the last fifth of the epochs still made 0.02 of the labels right.
    """
    runs = [run for run in latency["runs"] if run["hears"] == "one way" and "label_error" in run]
    waits, errors = ([run[name] for run in runs] for name in ("written_after_frames", "label_error"))
    prompt = [wait is not None and wait <= 14 for wait in waits]  # None: no string was right
    verdict = together(each(prompt), each([error < 0.1 for error in errors]))
    falling = any(map(still_falls, runs))
    figures = (
        f"{span([wait for wait in waits if wait is not None], '.0f')} frames after a digit's end, label error rate"
    )
    figures += f" {span(errors)}{', still falling' * falling}"
    left = latency["frames_to_wait"]["mean"]
    return UNDECIDED if verdict == FAILS and falling else verdict, f"{figures}; waiting for the end {left:.0f}"


def still_falls(run: dict) -> bool:
    """Whether more training might do: the last fifth of the epochs made the error smaller by more than 0.02."""
    errors = run["error_by_epoch"]
    return len(errors) < 2 or errors[-1 - max(1, len(errors) // 5)] - errors[-1] > 0.02
