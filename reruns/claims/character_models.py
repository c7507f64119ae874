"""Recurrent language models: what the post concludes from char_models.py and char_models_long.py."""

from statistics import fmean

from reruns.claims.base import FAILS, HOLDS, POST, UNDECIDED, apart, claim, decided, each, exactly, span, together

BATCH_CHARACTERS = 64 * 128  # that a step reads: windows, characters in each
ENOUGH = 0.005  # bits per character: a difference of less isn't called one


def of_cells(results: dict, name: str) -> dict[str, list[float]]:
    """A figure of all seeds, cell by cell."""
    cells = {}
    for run in finished(results):
        cells.setdefault(run["cell"], []).append(run[name])
    return cells


def finished(results: dict) -> list[dict]:
    return [run for run in results["runs"] if "diverged_at_step" not in run]


def cell_by_cell(figures: dict[str, list[float]], form: str = ".3f") -> str:
    return ", ".join(f"{cell} {span(values, form)}" for cell, values in figures.items())


def every(figures: dict[str, list[float]]) -> list[float]:
    return [value for values in figures.values() for value in values]


def gaps(results: dict) -> dict[str, list[float]]:
    """How much more a character costs on new text than on training text."""
    new, read = (of_cells(results, f"{part}_bits_per_char") for part in ("validation", "train"))
    return {cell: [a - b for a, b in zip(new[cell], read[cell], strict=True)] for cell in new}


@claim(
    "Every network beats counting with one added to each count.",
    "char_models",
    "ngram",
    source=POST,
    where="char_models 1",
)
def networks_beat_add_one(char_models, ngram):
    bits, counted = of_cells(char_models, "validation_bits_per_char"), min(ngram["bits_per_char"])
    verdict = together(*(apart(values, [counted]) for values in bits.values()))
    return verdict, f"{cell_by_cell(bits)} bits/char; added ones {counted:.3f}"


@claim(
    "No network beats Kneser–Ney, as long as they are trained for 3,000 steps.",
    "kneser_ney",
    "char_models",
    source=POST,
    where=("char_models 1", "takeaway 4"),
)
def counting_beats_training(kneser_ney, char_models):
    """With the post's fixed discount, at the context that is best in hindsight, as the post has it."""
    counted = min(kneser_ney["bits_per_char"])
    trained = of_cells(char_models, "validation_bits_per_char")
    verdicts = [apart([counted], bits) for bits in trained.values()]
    verdict = decided(set(verdicts) == {HOLDS}, FAILS in verdicts)  # one cell that is always better is enough
    figures = f"{counted:.3f} bits/char; {cell_by_cell(trained)}"
    if "best_step" in finished(char_models)[0]:  # the post printed the last step alone
        figures += f"; at the best step {cell_by_cell(of_cells(char_models, 'best_validation_bits_per_char'))}"
    best = min(trained, key=lambda cell: fmean(trained[cell]))
    return verdict, figures, f"Kneser–Ney {counted:.3f}, {best} {span(trained[best])} bits"


@claim(
    "The plain RNN and the GRU lie 0.7 bits below what added ones give at best, and 0.2 above Kneser–Ney.",
    "char_models",
    "ngram",
    "kneser_ney",
    source=POST,
    where="char_models 1",
)
def between_the_counts(char_models, ngram, kneser_ney):
    """To a tenth of a bit."""
    bits = of_cells(char_models, "validation_bits_per_char")
    below = {cell: [min(ngram["bits_per_char"]) - b for b in bits[cell]] for cell in ("RNN", "GRU")}
    above = {cell: [b - min(kneser_ney["bits_per_char"]) for b in bits[cell]] for cell in ("RNN", "GRU")}
    as_said = [
        each([abs(bits_apart - said) < 0.1 for bits_apart in of_cell])
        for side, said in ((below, 0.7), (above, 0.2))
        for of_cell in side.values()
    ]
    return together(*as_said), f"{span(every(below))} bits below, {span(every(above))} above"


@claim("After 3,000 steps the LSTM leads.", "char_models", source=POST, where="char_models 2")
def lstm_leads(char_models):
    bits = of_cells(char_models, "validation_bits_per_char")
    others = [value for cell, values in bits.items() if cell != "LSTM" for value in values]
    return apart(bits["LSTM"], others), f"validation {cell_by_cell(bits)} bits/char"


@claim(
    "The LSTM's lead after 3,000 steps is much larger than the seeds' spread.",
    "char_models",
    source=POST,
    where="char_models 2",
)
def lead_is_large(char_models):
    """Much larger: three times the largest spread. No larger than the spread: not so."""
    bits = of_cells(char_models, "validation_bits_per_char")
    lead = min(value for cell, values in bits.items() if cell != "LSTM" for value in values) - max(bits["LSTM"])
    spread = max(max(values) - min(values) for values in bits.values())
    figures = f"{lead:.3f} bits/char between the worst LSTM and the best other; seeds at most {spread:.3f} apart"
    return decided(lead > 3 * spread, lead <= spread), figures


@claim(
    "The same width isn't the same size: the LSTM has nearly three times the plain cell's parameters.",
    "char_models",
    source=POST,
    where="char_models 2",
)
def lstm_is_larger(char_models):
    parameters = {run["cell"]: run["parameters"] for run in finished(char_models)}
    ratio = parameters["LSTM"] / parameters["RNN"]
    figures = f"{parameters['LSTM']:,} against {parameters['RNN']:,}, {ratio:.2f} times"
    return exactly(2.75 < ratio < 3), figures


@claim(
    "After 3,000 steps each network is 0.9 to 1.3 bits better on the text it has read.",
    "char_models",
    source=POST,
    where="char_models 3",
)
def better_on_what_was_read(char_models):
    """To the tenth of a bit."""
    apart_by = gaps(char_models)
    verdicts = [each([0.85 <= gap <= 1.35 for gap in of_cell]) for of_cell in apart_by.values()]
    return together(*verdicts), f"{cell_by_cell(apart_by)} bits/char"


@claim(
    "All three cells overfit: they are better before the last of 3,000 steps than after it, on new text.",
    "char_models",
    source=POST,
    where=("char_models 3", "char_models_long 3", "char_models_long 7", "takeaway 4"),
)
def all_overfit(char_models):
    """Both are exact scores of the same text; a difference of less than 0.005 bits is none."""
    last, best = (of_cells(char_models, f"{when}validation_bits_per_char") for when in ("", "best_"))
    lost = {cell: [a - b for a, b in zip(last[cell], best[cell], strict=True)] for cell in last}
    steps, ends = (of_cells(char_models, name) for name in ("best_step", "steps"))
    verdicts = [
        each([step < end and by > ENOUGH for step, end, by in zip(steps[cell], ends[cell], lost[cell], strict=True)])
        for cell in lost
    ]
    return together(*verdicts), f"best at step {cell_by_cell(steps, ',.0f')}, by {cell_by_cell(lost)} bits/char"


@claim(
    "The GRU fits its training text best, and is no better than the plain RNN on new text.",
    "char_models",
    source=POST,
    where="char_models 4",
)
def gru_gains_nothing(char_models):
    """No better: on average by no more than the seeds' spread. Better: every seed than every one of the RNN's."""
    read, new = (of_cells(char_models, f"{part}_bits_per_char") for part in ("train", "validation"))
    others = [value for cell, values in read.items() if cell != "GRU" for value in values]
    spread = max(max(new[cell]) - min(new[cell]) for cell in ("GRU", "RNN"))
    no_better = fmean(new["GRU"]) > fmean(new["RNN"]) - spread
    verdict = decided(no_better, not no_better and apart(new["GRU"], new["RNN"]) == HOLDS)
    figures = f"training {cell_by_cell(read)}, validation {cell_by_cell(new)} bits/char"
    short = f"GRU {span(new['GRU'])}, RNN {span(new['RNN'])} bits"
    return together(apart(read["GRU"], others), verdict), figures, short


@claim(
    "In 3,000 steps each character of the training text is read about 41 times.",
    "char_models",
    "corpus",
    source=POST,
    where="char_models 5",
)
def read_41_times(char_models, corpus):
    times = {run["steps"] * BATCH_CHARACTERS / corpus["train_characters"] for run in char_models["runs"]}
    return exactly({round(each_time) for each_time in times} == {41}), f"{span(sorted(times), '.1f')} times"


@claim(
    "Training for 12,000 steps makes each of them worse on new text.",
    "char_models",
    "char_models_long",
    source=POST,
    where="char_models_long 1",
)
def longer_is_worse(char_models, char_models_long):
    short, long = (of_cells(found, "validation_bits_per_char") for found in (char_models, char_models_long))
    verdict = together(*(apart(short[cell], long[cell]) for cell in long))
    figures = "; ".join(f"{cell} {span(short[cell])} then {span(long[cell])}" for cell in long)
    return verdict, f"{figures} bits/char at 3,000 then 12,000 steps"


@claim(
    "After 12,000 steps the LSTM is the worst of all on new text, and the best on the text that it has read.",
    "char_models_long",
    source=POST,
    where="char_models_long 2",
)
def lstm_ends_worst(char_models_long):
    read, new = (of_cells(char_models_long, f"{part}_bits_per_char") for part in ("train", "validation"))
    verdicts = [
        apart(read["LSTM"], [b for cell, values in read.items() if cell != "LSTM" for b in values]),
        apart([b for cell, values in new.items() if cell != "LSTM" for b in values], new["LSTM"]),
    ]
    return together(*verdicts), f"training {cell_by_cell(read)}, validation {cell_by_cell(new)} bits/char; a seed each"


@claim(
    "The LSTM is at its best near step 2,000.",
    "char_models",
    "char_models_long",
    source=POST,
    where="char_models_long 4",
)
def lstm_is_best_near_2000(char_models, char_models_long):
    """Near: from 1,500 to 2,500. A learning curve's points are some 200 steps apart there."""
    steps = [*of_cells(char_models, "best_step")["LSTM"], *of_cells(char_models_long, "best_step")["LSTM"]]
    return each([1500 <= step <= 2500 for step in steps]), f"best step {span(steps, ',.0f')}"


@claim(
    "Which cell is best depends on when training stops.",
    "char_models",
    "char_models_long",
    source=POST,
    where=("char_models_long 5", "takeaway 4"),
)
def stopping_decides(char_models, char_models_long):
    """The cell that leads with every seed after 3,000 steps isn't the one that leads after 12,000."""
    leaders = []
    for found in (char_models, char_models_long):
        bits = of_cells(found, "validation_bits_per_char")
        first = min(bits, key=lambda cell: fmean(bits[cell]))
        clear = apart(bits[first], [b for cell in bits if cell != first for b in bits[cell]])
        leaders.append((first, clear, cell_by_cell(bits)))
    (early, early_clear, before), (late, late_clear, after) = leaders
    verdict = exactly(early != late) if {early_clear, late_clear} == {HOLDS} else UNDECIDED
    return verdict, f"{early} after 3,000 steps, {late} after 12,000: {before}; {after} bits/char"


@claim(
    "On a text of this size a well-smoothed count is as good as a small recurrent network.",
    "kneser_ney",
    "char_models",
    source=POST,
    where=("kneser_ney 3", "char_models_long 6"),
)
def counting_is_as_good(kneser_ney, char_models):
    """As good: at most 0.02 bits worse, even than a network at its best step. The count is the modified kind, whose
    context was chosen on training text; of the post's figures the fixed discount and the networks' last step.
    """
    modified = kneser_ney.get("modified")
    counted = modified["chosen"]["bits_per_char"] if modified else min(kneser_ney["bits_per_char"])
    at_best = "best_step" in finished(char_models)[0]
    trained = of_cells(char_models, f"{'best_' * at_best}validation_bits_per_char")
    within = [[counted <= b + 0.02 for b in bits] for bits in trained.values()]
    verdict = decided(all(map(all, within)), any(not any(seeds) for seeds in within))
    when = "at their best step" if at_best else "at the last step"
    return verdict, f"{counted:.3f} bits/char, the networks {when} {cell_by_cell(trained)}"


@claim(
    "The post's scripts train about thirty small models.",
    *("char_models", "char_models_long", "reverse", "reverse_40_longer", "reverse_40_lr", "reverse_40_6000"),
    source=POST,
    where="char_models 6",
)
def about_thirty_trainings(*sweeps):
    """About: 26 to 34."""
    count = sum(len(found["runs"]) for found in sweeps)
    return exactly(26 <= count <= 34), f"{count} trainings"
