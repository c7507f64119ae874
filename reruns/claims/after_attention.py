"""Models after attention: a GPT on the same text, what beats counting, how far each model looks back."""

from reruns.claims.base import apart, claim, decided, each, exactly, span, together

EACH_AS_LARGE = {"RNN": "GPT", "LSTM": "larger GPT"}  # about as many parameters
AIMS = {"recurrent": 2.36, "GPT": 2.30, "mixture": 2.15}  # bits per character, set before anything was trained
POSTS, WIDEST, OF_GPT = "LSTM, as in the post", "LSTM, regularised, wide", "GPT, regularised"
CLEARLY = 0.02  # bits per character
AGREE = 4  # times: two distances of which neither is further than so many times the other are the same, roughly
NEAR = 16  # characters: what lies further back is far away
MOST_OF_IT = 0.5  # of what the far past is worth


def finished(results):
    return [run for run in results["runs"] if "diverged_at_step" not in run]


def of(results, key, name):
    """One figure of all finished trainings, by what ``key`` says of them."""
    found = {}
    for run in finished(results):
        found.setdefault(run[key], []).append(run[name])
    return found


def one_by_one(figures, form=".3f"):
    return "; ".join(f"{name} {span(values, form)}" for name, values in figures.items())


@claim(
    "With about as many parameters, steps and characters read, a GPT predicts this text better than the post's RNN, and"
    " a larger one better than its LSTM, each at its best step.",
    "gpt",
    "char_models",
)
def attention_predicts_better(gpt, char_models):
    ours, theirs = (of(found, "cell", "best_validation_bits_per_char") for found in (gpt, char_models))
    verdict = together(*[apart(ours[gpt_], theirs[cell]) for cell, gpt_ in EACH_AS_LARGE.items()])
    return verdict, f"{one_by_one(ours)}; {one_by_one({cell: theirs[cell] for cell in EACH_AS_LARGE})} bits/char"


@claim(
    "A GPT of the LSTM's size, trained until its best, beats modified Kneser–Ney by 0.02 bits per character or more;"
    " the post's LSTM doesn't.",
    "gpt",
    "char_models",
    "kneser_ney",
)
def a_gpt_beats_counting(gpt, char_models, kneser_ney):
    counted = min(kneser_ney["modified"]["bits_per_char"])
    ours = of(gpt, "cell", "longer_best_validation_bits_per_char")["larger GPT"]
    lstm = of(char_models, "cell", "best_validation_bits_per_char")["LSTM"]
    enough = counted - CLEARLY
    beaten = decided(max(ours) <= enough, min(ours) > enough), decided(min(lstm) > enough, max(lstm) <= enough)
    return together(*beaten), f"larger GPT {span(ours)}, LSTM {span(lstm)}, modified Kneser–Ney {counted:.3f} bits/char"


@claim(
    "A GPT pays for that in arithmetic: each step takes more operations than the recurrent layer of about its size.",
    "gpt",
)
def attention_costs_arithmetic(gpt):
    ours = {run["cell"]: run["flops_a_step"] for run in finished(gpt)}
    theirs = {run["cell"]: run["flops_a_step"] for run in gpt["beside"]}
    more = [ours[gpt_] > theirs[cell] for cell, gpt_ in EACH_AS_LARGE.items()]
    pairs = (f"{gpt_} {ours[gpt_] / 1e9:.1f}, {cell} {theirs[cell] / 1e9:.1f}" for cell, gpt_ in EACH_AS_LARGE.items())
    return exactly(all(more)), "; ".join(pairs) + " 10⁹ operations a step"


@claim(
    "What keeps an LSTM from beating counting is overfitting: stopped without a look at the validation text, the post's"
    " is worse than modified Kneser–Ney, a regularised and wider one better.",
    "beat_counting",
)
def regularising_beats_counting(beat_counting):
    bits, counted = of(beat_counting, "row", "validation_bits_per_char"), beat_counting["counting"]["bits_per_char"]
    verdict = together(*[apart([counted], bits[POSTS]), apart(bits[WIDEST], [counted])])
    shown = {row: bits[row] for row in (POSTS, WIDEST)}
    return verdict, f"{one_by_one(shown)}; modified Kneser–Ney {counted:.3f} bits/char"


@claim(
    "Without peeking, one recurrent model reaches 2.36 bits per character, one GPT 2.30, and the best mixture 2.15.",
    "beat_counting",
)
def the_aims_are_met(beat_counting):
    bits = of(beat_counting, "row", "validation_bits_per_char")
    recurrent = min((values for row, values in bits.items() if row != OF_GPT), key=lambda v: sum(v) / len(v))
    mixed = min(found["bits_per_char"] for found in mixtures(beat_counting))
    reached = {"recurrent": recurrent, "GPT": bits[OF_GPT], "mixture": [mixed]}
    verdict = together(*[decided(max(values) <= AIMS[aim], min(values) > AIMS[aim]) for aim, values in reached.items()])
    return verdict, f"{one_by_one(reached)} bits/char"


def mixtures(beat_counting):
    return [beat_counting["all"], *(average["mixed"] for average in beat_counting["averages"].values())]


@claim(
    "Counting and learning know different things: an average of LSTMs or of GPTs is better mixed with Kneser–Ney, and"
    " so is Kneser–Ney.",
    "beat_counting",
)
def each_knows_something_else(beat_counting):
    counted = beat_counting["counting"]["bits_per_char"]
    averages = {row: beat_counting["averages"][row] for row in (WIDEST, OF_GPT)}
    better = [found["mixed"]["bits_per_char"] < min(counted, found["bits_per_char"]) for found in averages.values()]
    shown = (f"{row} {a['bits_per_char']:.3f}, mixed {a['mixed']['bits_per_char']:.3f}" for row, a in averages.items())
    return exactly(all(better)), f"{'; '.join(shown)}; modified Kneser–Ney {counted:.3f} bits/char"


@claim("The average of three seeds is better than the best of them.", "beat_counting")
def three_are_better_than_one(beat_counting):
    bits = of(beat_counting, "row", "validation_bits_per_char")
    averages = {row: found["bits_per_char"] for row, found in beat_counting["averages"].items()}
    better = [averages[row] < min(bits[row]) for row in averages]
    shown = (f"{row} {averages[row]:.3f}, its best seed {min(bits[row]):.3f}" for row in averages)
    return exactly(all(better)), "; ".join(shown) + " bits/char"


@claim("No general compressor takes fewer bits per character than modified Kneser–Ney.", "beat_counting")
def compressors_are_beaten(beat_counting):  # both were known when this rule was written: nothing is trained here
    counted, packed = beat_counting["counting"]["bits_per_char"], beat_counting["compressed"]
    beaten = min(packed.values()) > counted
    shown = ", ".join(f"{name} {bits:.3f}" for name, bits in packed.items())
    return exactly(beaten), f"{shown}; modified Kneser–Ney {counted:.3f} bits/char"


@claim("A GPT uses more of the past than any recurrent layer trained on the same windows.", "horizon")
def attention_looks_further(horizon):
    reaches = by_cell(horizon, reach_of_bits)
    verdict = together(*[apart(own, reaches["larger GPT"]) for cell, own in reaches.items() if "GPT" not in cell])
    return verdict, f"{one_by_one(reaches, ',')} characters, to within 0.05 bits of all"


@claim("How far a model's gradient reaches says how much of the past it uses, to a factor of 4.", "horizon")
def gradients_tell(horizon):
    agree = [
        max(bits, gradient) <= AGREE * min(bits, gradient)
        for model in looked(horizon)
        for bits, gradient in [(reach_of_bits(model), reach_of_gradient(model))]
    ]
    used, reached = by_cell(horizon, reach_of_bits), by_cell(horizon, reach_of_gradient)
    shown = "; ".join(f"{cell} {span(used[cell], ',')}, gradient {span(reached[cell], ',')}" for cell in used)
    return each(agree), f"{shown} characters"


@claim(
    "Sharp nearby, fuzzy far away: of what an LSTM and a GPT gain from the characters more than 16 back they keep more"
    " than half when those are in random order.",
    "horizon",
)
def far_away_is_fuzzy(horizon):
    lost = {}
    for model in looked(horizon):
        if model["cell"] in ("LSTM", "larger GPT"):
            at = model["history"].index
            bits, shuffled = model["bits_per_char"], model["bits_per_char_where_the_rest_is_shuffled"]
            longest = len(shuffled) - 1  # as many characters as were given where some were shuffled
            worth = bits[at(NEAR)] - bits[longest]
            lost.setdefault(model["cell"], []).append(
                (shuffled[at(NEAR)] - bits[longest]) / worth if worth > 0 else 1.0
            )
    fuzzy = [share < MOST_OF_IT for own in lost.values() for share in own]
    return each(fuzzy), f"lost of it: {one_by_one(lost, '.0%')}"


def looked(horizon):
    return [model for model in horizon["models"] if "diverged_at_step" not in model]


def by_cell(horizon, reach):
    found = {}
    for model in looked(horizon):
        found.setdefault(model["cell"], []).append(reach(model))
    return found


def reach_of_bits(model):
    """As beyond/horizon.py tells it: the shortest history that is worth about as much as the longest."""
    bits = model["bits_per_char"]
    return next(d for d, b in zip(model["history"], bits, strict=True) if b <= bits[-1] + 0.05)


def reach_of_gradient(model):
    gradient = model["gradient"]
    return max(d for d, g in zip(model["history"], gradient, strict=True) if g and g >= 0.01 * gradient[0])


@claim(
    "Positions are what linear attention lacked: with weights that fade it needs at least one bit per character less.",
    "ladder_models",
    "scan_models",
)
def positions_were_lacking(ladder_models, scan_models):
    fading = of(ladder_models, "cell", "best_validation_bits_per_char")["fading attention"]
    without = of(scan_models, "cell", "best_validation_bits_per_char")["linear attention"]
    return apart([bits + 1 for bits in fading], without), f"{span(fading)} with, {span(without)} without, bits/char"


@claim(
    "A state that chooses what it takes in beats minGRU's, which is one number a channel.",
    "ladder_models",
    "scan_models",
)
def selecting_pays(ladder_models, scan_models):
    selective = of(ladder_models, "cell", "best_validation_bits_per_char")["selective state space"]
    min_gru = of(scan_models, "cell", "best_validation_bits_per_char")["minGRU"]
    return apart(selective, min_gru), f"selective state space {span(selective)}, minGRU {span(min_gru)} bits/char"
