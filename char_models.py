"""Three recurrent cells as character models, three seeds each: all overfit, and counting is hard to beat.

The post could only say that after 3,000 steps its models were past their best. The learning curves, estimated at thirty
points of each training, say where the best was: the weights of the lowest point are kept and judged as exactly as the
last ones, beside the best add-one and Kneser–Ney models of ngram.py and kneser_ney.py on the same characters.

    python char_models.py          26 min

Prints, at the end:

    beyond the post: the best step of each learning curve, and models that only count
                               best step   bits/char there  at the last step
    RNN, 3,000 steps         1,979 ± 274     2.579 ± 0.008     2.597 ± 0.013
    GRU, 3,000 steps         1,082 ± 130     2.455 ± 0.016     2.569 ± 0.003
    LSTM, 3,000 steps        2,253 ± 177     2.469 ± 0.005     2.489 ± 0.016
    add-one, context 2                               3.494
    Kneser–Ney, context 5                            2.554
    modified Kneser–Ney, context 19                  2.463
    All score the same 57,279 characters. The best step was chosen on them: that flatters it a little.

± is the largest distance of a seed from the mean. A best step is a point of its learning curve and known no better than
to the next point, so its ± is at least that distance. Add-one and Kneser–Ney have the context that is best on these
characters, the modified kind the one that kneser_ney.py chose on training text. A training's seconds are those of its
processor's time, the learning curve included, the final evaluation not. Model, training and sources: charlm.py. (This
script is longer than others because char_models_long.py and beyond/scan_models.py train, tell and draw by its
functions.)
"""

import charlm
import corpus
from charlm import STEPS
from lab import plots, results, script
from lab.errors import UserError, note
from layers.char_rnn import CELLS

READS = ("ngram", "kneser_ney")
SEEDS = [0, 1, 2]
RUNS = [(cell, seed, STEPS) for cell in CELLS for seed in SEEDS]
COUNTING = {  # the experiment that measured each, and which context among its results
    "add-one": ("ngram", lambda found: best(found)),
    "Kneser–Ney": ("kneser_ney", lambda found: best(found)),
    "modified Kneser–Ney": ("kneser_ney", lambda found: found["modified"]["chosen"] or best(found["modified"])),
}
JUDGED = ("best_step", "best_validation_bits_per_char", "validation_bits_per_char")
IN_THE_TABLE = ("cell", "seed", "steps", *JUDGED, "scored_characters")

KINDS = charlm.KINDS | {"runs.*_bits_per_char": "trained .3f", "counting.*": "corpus"}


def measure(arguments):
    return sweep(arguments, RUNS)


def sweep(arguments, models, beside=None):
    """Train models given as (cell, seed, steps), and say what their learning curves and models that count are worth.

    ``beside`` is another such experiment, whose saved runs the table begins with.
    """
    text, where = charlm.read(arguments)
    counting = best_of_counting(text, arguments.outputs)
    before = saved_for(text, arguments.outputs, beside, "models") if beside else None
    settings = {"device": arguments.device, **where}
    configs = [charlm.Config(cell, seed, steps=steps, **settings) for cell, seed, steps in models]
    runs = charlm.trained(configs, arguments, charlm.line)
    curves = [run.pop("curve", None) for run in runs]
    found = {"seeds": sorted({config.seed for config in configs}), "corpus": text.fingerprint}
    found |= {"runs": runs, "curves": curves, "counting": counting}
    if beside:
        finished = [run for run in before["runs"] if "diverged_at_step" not in run] if before else []
        found["beside"] = [{name: run[name] for name in IN_THE_TABLE} for run in finished]
    return found


def best_of_counting(text, folder):
    """Each counting model at one context, as its script saved them for this text."""
    counting = {}
    for name, (experiment, pick) in COUNTING.items():
        if found := saved_for(text, folder, experiment, name):
            picked = pick(found)
            counting[name] = {what: picked[what] for what in ("context", "bits_per_char")}
    return counting


def best(figures):
    """The context that costs the least on the validation text itself."""
    bits, context = min(zip(figures["bits_per_char"], figures["context"], strict=True))
    return {"context": context, "bits_per_char": bits}


def saved_for(text, folder, experiment, name):
    """What an experiment has saved for this text, in the folder of this run or else in outputs/; None if nothing."""
    for where in (folder, results.SAVED):
        try:
            found = where and results.load(experiment, where)
        except UserError:
            continue
        if found and found["corpus"] == text.fingerprint:
            return found["results"]
    note(f"no {name} to compare with: {experiment}.py has saved nothing on this text")
    return None


def tell(found):
    yield from map(charlm.line, found["runs"])
    yield ""
    yield "beyond the post: the best step of each learning curve, and models that only count"
    finished = [run for run in found["runs"] if "diverged_at_step" not in run]
    yield from table(found.get("beside", []) + finished, found["counting"])


def table(runs, counting):
    """One row for each cell, the mean of its seeds ± the largest distance from it, and one for each counting model."""
    models = {}
    for run in runs:
        models.setdefault(f"{run['cell']}, {run['steps']:,} steps", []).append(run)
    width = max([22, *map(len, models)])
    yield f"{'':{width}}{'best step':>14}{'bits/char there':>18}{'at the last step':>18}"
    for model, own in models.items():
        steps, lowest, last = ([run[name] for run in own] for name in JUDGED)
        at = spread(steps, ",.0f", max(to_the_next_point(run) for run in own))
        yield f"{model:{width}}{at:>14}{spread(lowest):>18}{spread(last):>18}"
    for model, one in counting.items():
        name = f"{model}, context {one['context']}"
        yield f"{name:{width + 14}}{one['bits_per_char']:18.3f}"
    for scored in {run["scored_characters"] for run in runs}:
        yield f"All score the same {scored:,} characters. The best step was chosen on them: that flatters it a little."


def to_the_next_point(run):
    """How far the best step is from the points of its learning curve beside it: it is known no better than that."""
    points, at = charlm.curve_points(run.get("first", run["steps"])), run["best_step"]
    beside = [max((p for p in points if p < at), default=at), min((p for p in points if p > at), default=at)]
    return max(abs(point - at) for point in beside)


def spread(values, form=".3f", least=0):
    """The mean ± the largest distance from it, which is at least ``least``; a single value alone where that is 0."""
    middle = sum(values) / len(values)
    if len(values) == 1 and not least:
        return format(middle, form)
    return f"{middle:{form}} ± {max(least, *(abs(value - middle) for value in values)):{form}}"


def draw(found):
    """Learning curves of every model, validation and training, with Kneser–Ney's best as a line."""
    figure, axes = plots.subplots(1, len(CELLS), size=(12, 4.4), sharey=True)
    for ax, cell in zip(axes, CELLS, strict=True):
        runs = zip(found["runs"], found["curves"], strict=True)
        own = [(run, curve) for run, curve in runs if run["cell"] == cell and curve]
        for number, (run, curve) in enumerate(own):
            for part, dash, colour in (("validation", "-", plots.COLOURS[0]), ("train", "--", plots.COLOURS[1])):
                label = part if number == 0 else None
                ax.plot(curve["step"], curve[f"{part}_bits_per_char"], dash, color=colour, linewidth=1.2, label=label)
            ax.plot(run["best_step"], run["best_validation_bits_per_char"], "o", color=plots.COLOURS[0], markersize=5)
        for name, dash in ("Kneser–Ney", ":"), ("modified Kneser–Ney", "-."):
            if name in found["counting"]:
                best = found["counting"][name]["bits_per_char"]
                ax.axhline(best, color="black", linewidth=1, linestyle=dash, label=f"{name} {best:.3f}")
        ax.set(title=cell, xscale="log", xlabel="step", xlim=(100, None), ylim=(1.1, 3.6))
        if ax.get_legend_handles_labels()[0]:  # none where all trainings diverged
            ax.legend()
    axes[0].set_ylabel("bits per character")
    return figure


def options(parser):
    corpus.add_argument(parser)
    parser.add_jobs()
    parser.add_device()


if __name__ == "__main__":
    script.run(measure, tell, draw, options)
