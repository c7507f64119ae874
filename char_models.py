"""Three recurrent cells as character models, three seeds each: gates pay, all overfit, and counting is hard to beat.

The post could only say that after 3,000 steps its models were past their best. The learning curves, estimated at thirty
points of each training, say where the best was: the weights of the lowest point are kept and judged as exactly as the
last ones, beside the best add-one and Kneser–Ney models of ngram.py and kneser_ney.py on the same characters.

    python char_models.py          26 min

Prints, at the end:

    beyond the post: the best step of each learning curve, and models that only count
                               best step   bits/char there  at the last step
    RNN, 3,000 steps         1,979 ± 274     2.579 ± 0.008     2.597 ± 0.013
    GRU, 3,000 steps         1,082 ± 121     2.455 ± 0.016     2.569 ± 0.003
    LSTM, 3,000 steps          2,253 ± 0     2.469 ± 0.005     2.489 ± 0.016
    add-one, context 2                               3.494
    Kneser–Ney, context 5                            2.554
    modified Kneser–Ney, context 7                   2.473
    All score the same 57,279 characters. The best step was chosen on them: that flatters it a little.

± is the largest distance of a seed from the mean. A training's seconds are those of its processor's time, the learning
curve included, the final evaluation not. Model, training and sources: charlm.py.
"""

import corpus
from charlm import CELLS, STEPS, check, configuration, cost, describe, line, train
from lab import devices, plots, results, script, trainings
from lab.script import UserError, note

SEEDS = [0, 1, 2]
RUNS = [(cell, seed, STEPS) for cell in CELLS for seed in SEEDS]
COUNTING = {  # the experiment that measured each, and where among its results
    "add-one": ("ngram", lambda results: results),
    "Kneser–Ney": ("kneser_ney", lambda results: results),
    "modified Kneser–Ney": ("kneser_ney", lambda results: results["modified"]),
}
JUDGED = ("best_step", "best_validation_bits_per_char", "validation_bits_per_char")
IN_THE_TABLE = ("cell", "seed", "steps", *JUDGED, "scored_characters")


def main(argv=None):
    """The post's nine models."""
    sweep("char_models", __doc__, RUNS, argv)


def sweep(name, doc, runs, argv=None, beside=None, drawn_by=None):
    """Train models given as (cell, seed, steps), print a line for each, then what their learning curves say.

    ``beside`` is another such experiment, whose saved runs the table begins with.
    """
    parser = script.Arguments(doc)
    corpus.add_argument(parser)
    trainings.add_arguments(parser)
    devices.add_arguments(parser)
    arguments = parser.parse_args(argv)
    devices.pick(arguments.device)
    text = corpus.load(arguments.data)
    seeds = sorted({seed for _, seed, _ in runs})
    saved = results.Results(name, arguments, corpus=text.fingerprint, seeds=seeds, device=arguments.device)
    configs = [configuration(*run[:2], text, run[2], arguments.data, device=arguments.device) for run in runs]
    for config in configs:
        check(text, config)
    counting = counted(text, saved.folder)
    before = found_on(text, saved.folder, beside, "models") if beside else None
    others = [{name: run[name] for name in IN_THE_TABLE} for run in before["runs"]] if before else []
    records = []
    options = {"name": name, "jobs": arguments.jobs, "cluster": arguments.cluster, "describe": describe, "cost": cost}
    for record in trainings.run(train, configs, **options):
        if "diverged_at_step" not in record:
            saved.print(line(record))
            records.append(record)
    saved.print("\nbeyond the post: the best step of each learning curve, and models that only count")
    for row in table(others + records, counting):
        saved.print(row)
    curves = [record.pop("curve") for record in records]
    saved.record(runs=records, curves=curves, counting=counting, **{"beside": others} if beside else {})
    saved.save(drawn_by or draw)


def counted(text, folder):
    """The best of each counting model's contexts, as its script saved them for this text."""
    best = {}
    for name, (experiment, part) in COUNTING.items():
        found = found_on(text, folder, experiment, name)
        if not found:
            continue
        figures = part(found)
        bits, context = min(zip(figures["bits_per_char"], figures["context"], strict=True))
        best[name] = {"context": context, "bits_per_char": bits}
    return best


def found_on(text, folder, experiment, name):
    """What an experiment has saved for this text, in the folder of this run or else in outputs/; None if nothing."""
    for place in (folder, results.SAVED):
        try:
            found = place and results.load(experiment, place)
        except UserError:
            continue
        if found and found["corpus"] == text.fingerprint:
            return found["results"]
    note(f"no {name} to compare with: {experiment}.py has saved nothing on this text")
    return None


def table(records, counting):
    """One row for each cell, the mean of its seeds ± the largest distance from it, and one for each counting model."""
    models = {}
    for record in records:
        models.setdefault(f"{record['cell']}, {record['steps']:,} steps", []).append(record)
    width = max(22, *map(len, models))
    yield f"{'':{width}}{'best step':>14}{'bits/char there':>18}{'at the last step':>18}"
    for model, own in models.items():
        steps, best, last = ([record[name] for record in own] for name in JUDGED)
        yield f"{model:{width}}{spread(steps, ',.0f'):>14}{spread(best):>18}{spread(last):>18}"
    for model, best in counting.items():
        name = f"{model}, context {best['context']}"
        yield f"{name:{width + 14}}{best['bits_per_char']:18.3f}"
    for scored in {record["scored_characters"] for record in records}:
        yield f"All score the same {scored:,} characters. The best step was chosen on them: that flatters it a little."


def spread(values, form=".3f"):
    middle = sum(values) / len(values)
    if len(values) == 1:
        return format(middle, form)
    return f"{middle:{form}} ± {max(abs(value - middle) for value in values):{form}}"


def draw(results):
    """Learning curves of every model, validation and training, with Kneser–Ney's best as a line."""
    figure, axes = plots.subplots(1, len(CELLS), size=(12, 4.4), sharey=True)
    for ax, cell in zip(axes, CELLS, strict=True):
        own = [
            (run, curve) for run, curve in zip(results["runs"], results["curves"], strict=True) if run["cell"] == cell
        ]
        for number, (run, curve) in enumerate(own):
            for part, dash, colour in (("validation", "-", plots.COLOURS[0]), ("train", "--", plots.COLOURS[1])):
                label = part if number == 0 else None
                ax.plot(curve["step"], curve[f"{part}_bits_per_char"], dash, color=colour, linewidth=1.2, label=label)
            ax.plot(run["best_step"], run["best_validation_bits_per_char"], "o", color=plots.COLOURS[0], markersize=5)
        for name, dash in ("Kneser–Ney", ":"), ("modified Kneser–Ney", "-."):
            if name in results["counting"]:
                best = results["counting"][name]["bits_per_char"]
                ax.axhline(best, color="black", linewidth=1, linestyle=dash, label=f"{name} {best:.3f}")
        ax.set(title=cell, xscale="log", xlabel="step", xlim=(100, None), ylim=(1.1, 3.6))
        ax.legend()
    axes[0].set_ylabel("bits per character")
    return figure


if __name__ == "__main__":
    script.run(main)
