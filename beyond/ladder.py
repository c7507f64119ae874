"""One text, every model: what each of them makes of the same validation posts, by its size and by its training time.

Nothing is trained here. All figures are those that the other experiments saved for this text:

    counting              ngram.py, kneser_ney.py
    hidden Markov model   beyond/hmm.py
    recurrent             char_models.py, and those that scan: beyond/scan_models.py, beyond/ladder_models.py
    GPT                   beyond/gpt.py
    regularised, mixed    beyond/beat_counting.py

    python -m beyond.ladder          1 s

Prints, first:

                                     parameters   seconds       bits/char  chosen by
    linear attention                     97,428       341   4.125 ± 0.004  its best step
    hidden Markov, 64 states             13,503       271   3.639 ± 0.008  as fitted
    add-one, context 2                        –         1           3.494  best context
    fading attention                     97,428       308           3.211  its best step
    selective state space                82,588       266   2.833 ± 0.016  its best step
    minGRU                               80,788       135   2.806 ± 0.009  its best step
    RNN                                 129,940       150   2.579 ± 0.008  its best step
    Kneser–Ney, context 5                     –         4           2.554  best context
    GPT                                 118,676       362   2.519 ± 0.017  its best step
    LSTM                                377,236       489   2.469 ± 0.005  its best step
    LSTM, as in the post                377,236       439           2.463  set aside
    modified Kneser–Ney, context 19           –         4           2.463  set aside
    GRU                                 294,804       385   2.455 ± 0.016  its best step
    larger GPT                          363,124       962   2.447 ± 0.023  its best step
    LSTM, regularised                   377,236       243           2.388  set aside
    GPT, regularised                    829,332       879   2.331 ± 0.010  set aside
    LSTM, regularised, wide           1,269,140       692   2.296 ± 0.007  set aside
    both and Kneser–Ney               6,295,416     4,712           2.166  set aside

A figure is the mean of the seeds ± the largest distance from it. "its best step" and "best context" were chosen on the
validation text, which flatters a model a little; "set aside" means that the step, the rate, the context and a mixture's
weights were chosen on a text set aside from training. Seconds are those of one training on one core, of the mixture
those of all six, of the processors that the outputs' .json name, which aren't equally fast; for models that count, of
the whole script. A counting model's parameters are the text itself, so it has no place on that axis.

Source: the experiments named above.
"""

from char_models import spread
from lab import plots, results, script
from lab.errors import UserError

COUNTING = {
    "add-one": ("ngram", ()),
    "Kneser–Ney": ("kneser_ney", ()),
    "modified Kneser–Ney": ("kneser_ney", ("modified",)),
}
READS = ("ngram", "kneser_ney", "hmm", "char_models", "scan_models", "ladder_models", "gpt", "beat_counting")
SWEEPS = {"char_models": "recurrent", "scan_models": "scanned", "ladder_models": "scanned", "gpt": "GPT"}
BEST_STEP, SET_ASIDE, COUNTED, LAST = "its best step", "set aside", "best context", "as fitted"
FAMILIES = {"counting": "k", "hidden Markov": 5, "recurrent": 0, "scanned": 2, "GPT": 1, "set aside": 3}

KINDS = {"*": "trained", "rows.*.parameters": "exact", "rows.*.seeds": "setting", "scored_characters": "corpus"}


def saved(name, folder):
    """What an experiment saved in the folder of this run, or else in outputs/."""
    there = folder and (folder / f"{name}.json").exists()
    return results.load(name, folder if there else results.SAVED)


def row(model, family, chosen, bits, *, parameters=None, seconds=None):
    about = {"model": model, "family": family, "chosen": chosen, "parameters": parameters}
    return about | {"seconds": seconds, "bits_per_char": list(bits)}


def counted(records):
    for model, (name, path) in COUNTING.items():
        found = records[name]["results"]
        for part in path:
            found = found[part]
        context, chosen = found["context"][found["bits_per_char"].index(min(found["bits_per_char"]))], COUNTED
        if found.get("chosen"):
            context, chosen = found["chosen"]["context"], SET_ASIDE
        bits = found["bits_per_char"][found["context"].index(context)]
        yield row(f"{model}, context {context}", "counting", chosen, [bits], seconds=[records[name]["seconds"]])


def hidden(found, V):
    """The hidden Markov models of as many states as are best: free are all probabilities but the last of each row."""
    runs = {}
    for run in found["runs"]:
        runs.setdefault(run["states"], []).append(run)
    bits = {states: [run["validation_bits_per_char"] for run in own] for states, own in runs.items()}
    best = min(bits, key=lambda states: sum(bits[states]) / len(bits[states]))
    parameters = (best - 1) + best * (best - 1) + best * (V - 1)
    seconds = [run["seconds"] for run in runs[best]]
    yield row(
        f"hidden Markov, {best} states", "hidden Markov", LAST, bits[best], parameters=parameters, seconds=seconds
    )


def grouped(runs, name):
    """The trainings that reached their end, by what ``name`` says of them."""
    groups = {}
    for run in runs:
        if "diverged_at_step" not in run:
            groups.setdefault(run[name], []).append(run)
    return groups.items()


def trained(model, family, chosen, runs, bits):
    parameters, took = runs[0]["parameters"], [run["seconds"] for run in runs]
    return row(model, family, chosen, [run[bits] for run in runs], parameters=parameters, seconds=took)


def tuned(found):
    """The rows of beat_counting.py: each alone, then the mixture, which has taken the seconds of all its parts."""
    groups = dict(grouped(found["runs"], "row"))
    for name, runs in groups.items():
        yield trained(name, "set aside", SET_ASIDE, runs, "validation_bits_per_char")
    parts = [run for name in found["all"]["weights"] for run in groups.get(name, [])]  # Kneser–Ney's is no training
    parameters, seconds = (sum(run[what] for run in parts) for what in ("parameters", "seconds"))
    bits = [found["all"]["bits_per_char"]]
    yield row("both and Kneser–Ney", "set aside", SET_ASIDE, bits, parameters=parameters, seconds=[seconds])


def measure(arguments):
    records = {name: saved(name, arguments.outputs) for name in READS}
    if len({record.get("corpus") for record in records.values()}) > 1:
        raise UserError("what was saved is not all of one text: run the experiments named above on the same one")
    found = {name: record["results"] for name, record in records.items()}
    rows = [*counted(records), *hidden(found["hmm"], found["kneser_ney"]["V"])]
    for name, family in SWEEPS.items():
        for cell, runs in grouped(found[name]["runs"], "cell"):
            rows.append(trained(cell, family, BEST_STEP, runs, "best_validation_bits_per_char"))
    rows += tuned(found["beat_counting"])
    return {
        "rows": sorted(rows, key=lambda one: -mean(one["bits_per_char"])),
        "scored_characters": found["kneser_ney"]["scored_characters"],
    }


def mean(values):
    return sum(values) / len(values)


def tell(found):
    yield f"{'':32}{'parameters':>11}{'seconds':>10}{'bits/char':>16}  chosen by"
    for one in found["rows"]:
        parameters = f"{one['parameters']:,}" if one["parameters"] else "–"
        seconds = f"{mean(one['seconds']):,.0f}"
        yield f"{one['model']:32}{parameters:>11}{seconds:>10}{spread(one['bits_per_char']):>16}  {one['chosen']}"
    yield f"All score the same {found['scored_characters']:,} characters."


def draw(found):
    """Bits per character against parameters, and against seconds; the models by their numbers in a list beside."""
    figure, (left, right, names) = plots.subplots(1, 3, size=(14, 6), width_ratios=[1, 1, 0.55])
    colours = {name: c if c == "k" else plots.COLOURS[c] for name, c in FAMILIES.items()}
    for number, one in enumerate(found["rows"], 1):
        bits, colour = mean(one["bits_per_char"]), colours[one["family"]]
        style = {"color": colour, "marker": plots.MARKERS[list(FAMILIES).index(one["family"])], "markersize": 5}
        if not one["parameters"]:
            left.axhline(bits, color=colour, linewidth=0.8, linestyle=":")
        for axes, x in (left, one["parameters"]), (right, max(0.1, mean(one["seconds"]))):
            if x:
                place = {"xytext": (6 if number % 2 else -6, 0), "textcoords": "offset points", "va": "center"}
                axes.plot(x, bits, **style)
                axes.annotate(
                    number, (x, bits), **place, ha="left" if number % 2 else "right", fontsize=8, color=colour
                )
        at = 1 - number / (len(found["rows"]) + 1)
        names.plot(0, at, **style)
        names.text(0.08, at, f"{number}  {one['model']}  {bits:.3f}", color=colour, fontsize=9, va="center")
    for axes, label in (left, "parameters"), (right, "seconds of one core"):
        axes.set(xscale="log", xlabel=label, yscale="log", ylabel="validation bits per character")
        ticks = [2.2, 2.4, 2.6, 2.8, 3.0, 3.5, 4.0]
        axes.set_yticks(ticks, [f"{tick:.1f}" for tick in ticks])
        axes.minorticks_off()
    left.set_title("By size; dotted: counting")
    right.set_title("By training time")
    names.set(xlim=(-0.05, 1), ylim=(0, 1))
    names.axis("off")
    return figure


if __name__ == "__main__":
    script.run(measure, tell, draw)
