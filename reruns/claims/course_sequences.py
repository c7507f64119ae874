"""What the course says of counting, of teacher forcing and of CTC, beside its cells."""

from statistics import fmean

from reruns.claims.base import COURSE, UNDECIDED, claim, decided, each, span, together

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
    "With gates long-range memory works in practice: an LSTM of text uses the tenth word back, far more than a plain"
    " RNN does.",
    "ten_words_back",
    source=COURSE,
)
def lstm_looks_back(ten_words_back):
    """A thousandth of the probability or more moves, and a hundred times what moves in the plain RNN."""
    lstm, rnn = (moved(ten_words_back, 10, cell) for cell in ("LSTM", "RNN"))
    figures = f"probability that moves: LSTM {span(lstm, '.0e')}, RNN {span(rnn, '.0e')}"
    return together(each([share > 1e-3 for share in lstm]), each([share > 100 * max(rnn) for share in lstm])), figures


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


@claim("Teacher forcing makes training converge much faster.", "teacher_forcing", source=COURSE)
def forcing_is_faster(teacher_forcing):
    """Half the steps that a decoder takes on its own digits, or fewer, until 90% of its own writing is right."""
    pairs = [tuple(learned_at(ways[way]) for way in (FORCED, OWN)) for ways in by_way(teacher_forcing)]
    pairs = [pair for pair in pairs if min(pair) < float("inf")]
    if not pairs:
        return UNDECIDED, "none got 90% of its digits right"
    figures = ", ".join(f"{forced:g} and {own:g}" for forced, own in pairs)
    verdict = decided(all(2 * forced <= own for forced, own in pairs), all(forced >= own for forced, own in pairs))
    return verdict, f"steps on true and on own digits: {figures}"


@claim("Teacher forcing is easier to compute in parallel across timesteps.", "teacher_forcing", source=COURSE)
def forcing_is_parallel(teacher_forcing):
    """A step of training takes less time."""
    pairs = [[ways[way]["seconds"] / ways[way]["steps"] for way in (FORCED, OWN)] for ways in by_way(teacher_forcing)]
    figures = ", ".join(f"{1000 * forced:.0f} and {1000 * own:.0f}" for forced, own in pairs)
    return each([forced < own for forced, own in pairs]), f"ms a step on true and on own digits: {figures}"


@claim(
    "A model trained on true digits does worse on its own, and practice on its own cures that.",
    "teacher_forcing",
    source=COURSE,
)
def exposure_bias(teacher_forcing):
    """Digits right reading true ones less those reading its own: above 0 after teacher forcing, less after practice."""
    gaps = [
        [ways[way]["forced_digits_right"] - ways[way]["digits_right"] for way in (FORCED, OWN)]
        for ways in by_way(teacher_forcing)
    ]
    figures = ", ".join(f"{forced:.3f} and {own:.3f}" for forced, own in gaps)
    verdict = together(each([forced > 0 for forced, _ in gaps]), each([own < forced for forced, own in gaps]))
    return verdict, f"gap after training on true and on own digits: {figures}"


@claim("Small errors early in generation can compound.", "teacher_forcing", source=COURSE)
def errors_compound(teacher_forcing):
    """After teacher forcing more are wrong after a wrong digit than after none, also after one that was put there."""
    figures, after_own, after_put = [], [], []
    for ways in by_way(teacher_forcing):
        run = ways[FORCED]
        after, none = run["wrong_after_wrong"], run["wrong_after_all_right"]
        put, free = (1 - fmean(run[name][1:]) for name in ("right_after_a_wrong_first", "right_by_position"))
        if after is not None:  # it made mistakes
            after_own.append(after > none)
            after_put.append(put > free)
            figures.append(f"{after:.3f} and {none:.3f} ({put:.3f} and {free:.3f})")
    if not figures:
        return UNDECIDED, "no model made a mistake"
    told = f"wrong after a wrong digit and after none (after one that was put there, and without): {', '.join(figures)}"
    return together(each(after_own), each(after_put)), told


@claim("CTC needs no frame-level labels to learn to transcribe.", "ctc_digits", source=COURSE)
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
)
def one_pass_is_faster(latency):
    both, attention = (latency["ms"][name] for name in ("CTC, both ways", "attention"))
    figures = ", ".join(
        f"{a:.1f} and {b:.1f} at {n}" for a, b, n in zip(both, attention, latency["lengths"], strict=True)
    )
    verdict = each([a < b for a, b in zip(both, attention, strict=True)])
    return verdict, f"ms after the last frame, CTC both ways and attention, by digits: {figures}"


@claim("CTC serves real-time recognition: it can write while it hears.", "latency", source=COURSE)
def ctc_streams(latency):
    """Hearing one way: a digit is written within 14 frames of its end, a digit's mean length, fewer than 10% wrong."""
    runs = [run for run in latency["runs"] if run["hears"] == "one way" and "label_error" in run]
    waits, errors = ([run[name] for run in runs] for name in ("written_after_frames", "label_error"))
    prompt = [wait is not None and wait <= 14 for wait in waits]  # None: no string was right
    figures = span([wait for wait in waits if wait is not None] or [float("nan")], ".0f")
    left = latency["frames_to_wait"]["mean"]
    return (
        together(each(prompt), each([error < 0.1 for error in errors])),
        f"{figures} frames after a digit's end, label error rate {span(errors)}; waiting for the end {left:.0f}",
    )
