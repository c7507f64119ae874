"""The course's table of the RNN, the LSTM, the GRU and the Transformer, each cell with what was measured for it.

The table compares the four in five rows: whether they can be computed in parallel across the sequence, how far back
they can make use of something, what the gradient's way is, how many parameters a cell has, and what a token costs in
use. Nothing is computed here: each figure comes from what a script has saved, and is followed by that script's name.
Where a script has saved nothing yet, the table says so.

    python -m beyond.course_table          0.1 s

Prints, second:

    useful range
      vanilla RNN  10 to 20 steps
                     RNN: 2,560 and more; RNN, identity: 80, perhaps more (recall)

Source: KnowML's course page "Sequence Modeling Pre-Transformer", section 6.
"""

from inspect import signature

from lab import results, script
from lab.errors import UserError

MODELS = ["vanilla RNN", "LSTM", "GRU", "Transformer"]
COURSE = {  # what the course's table says, in short
    "parallel across the sequence": ["no", "no", "no", "yes, fully"],
    "useful range": ["10 to 20 steps", "several hundred steps", "several hundred steps", "any distance"],
    "the gradient's way": ["W_h and tanh' at each step", "additive cell", "additive state", "direct, O(1)"],
    "parameters of a cell": ["1 ×", "about 4 ×", "about 3 ×", "with the square of the width"],
    "cost of a token": ["O(1)", "O(1)", "O(1)", "grows with the cache"],
}
LAYERS = ["RNN", "LSTM", "GRU", "Transformer, token 1"]  # as cells_table.py names them
READERS = {  # the models of recall.py that each column is about
    "vanilla RNN": ["RNN", "RNN, identity"],
    "LSTM": ["LSTM", "LSTM, forget bias 1", "LSTM, forget bias 3", "LSTM, chrono"],
    "GRU": ["GRU", "GRU, chrono"],
    "Transformer": ["Transformer"],
}

READS = ("cells_table", "parallel", "recall", "gates", "cell_path", "path_length", "generation")
WANTED = {  # the scripts whose results are looked at, and what of them
    "cells_table": ["characters", "layers"],
    "parallel": ["GRU", "attention"],
    "recall": ["reach"],
    "gates": ["steps_back", "gradient_size"],
    "cell_path": ["steps_back", "every_step", "on_text"],
    "path_length": ["length", "steps"],
    "generation": ["batches", "batch_32"],
}

KINDS = {"*": "exact", "parallel.*": "timing", "generation.*": "timing", "recall.*": "trained"}
KINDS |= {"cell_path.on_text.*": "trained"}


def parallel(cells_table, parallel):
    """Steps that wait for one another, and what reading 1,024 vectors takes."""
    layers, length = cells_table["layers"], cells_table["characters"]
    told = []
    for name in LAYERS:
        steps = script.counted(layers[name]["sequential_steps"], "step")
        told.append(f"{steps} in a row for {length} characters (cells_table)")
    for model, name in (("GRU", "GRU"), ("Transformer", "attention")):
        figures = f"{parallel[name]['GFLOPs']:.2f} GFLOPs in {parallel[name]['ms']:.1f} ms (parallel)"
        told[MODELS.index(model)] += f"; {figures}"
    return told


def useful_range(recall):
    """The longest delay over which one bit was learned, by how the cell starts."""
    reach = recall["reach"]
    return ["; ".join(f"{name}: {told_reach(reach[name])}" for name in own) + " (recall)" for own in READERS.values()]


def told_reach(reach):
    if reach["not_learned"] is None:
        return f"{reach['delay']:,} and more"
    return f"{reach['delay']:,}" + (", perhaps more" if reach["budget_may_be_why"] else "")


def gradients_way(gates, cell_path, path_length):
    """What arrives fifty steps back in full and by the direct path alone, and how many factors there are."""
    back = cell_path["steps_back"][-1]
    told = [f"{gates['gradient_size']['RNN'][-1]:.1e} arrives {back} steps back (gates)"]
    for untrained, trained in (("LSTM, forget bias 1", "LSTM, forget bias 1"), ("GRU, update bias +1", "GRU")):
        full, alone = (cell_path["every_step"][untrained][path][back - 1] for path in ("full", "cell alone"))
        on_text = cell_path["on_text"][trained]["trained"]
        share = on_text["cell alone"][back - 1] / on_text["full"][back - 1]
        told.append(
            f"{untrained}: {full:.1e} arrives {back} steps back, {alone:.1e} by the direct path alone; "
            f"trained on text that path's share is {share:.2f} (cell_path)"
        )
    factors = script.counted(path_length["steps"]["attention"]["factors"], "factor")
    return [*told, f"{factors} from token {path_length['length']:,} to token 1 (path_length)"]


def parameters(cells_table):
    rows = (cells_table["layers"][name] for name in LAYERS)
    return [f"{row['parameters']:,}, {row['relative_to_RNN']:.2f} × (cells_table)" for row in rows]


def cost(cells_table, generation):
    """What is kept between tokens, and how the time of one grows with the context."""
    layers, slopes = cells_table["layers"], generation["batch_32"]["slopes"]
    told = [f"{layers[name]['state_bytes']:,} bytes kept (cells_table)" for name in LAYERS[:-1]]
    kept = [f"{row['state_bytes']:,}" for name, row in layers.items() if name.startswith("Transformer")]
    told.append(f"{' / '.join(kept)} bytes kept (cells_table)")
    for model, name in (("GRU", "GRU"), ("Transformer", "cached attention")):
        told[MODELS.index(model)] += (
            f"; time grows with the context to the power of {slopes[name]['ms']:.2f} (generation)"
        )
    return told


ROWS = dict(zip(COURSE, (parallel, useful_range, gradients_way, parameters, cost), strict=True))


def load(name, folder):
    """What a script has saved where this run's results go or else in outputs/."""
    own = folder and (folder / f"{name}.json").exists()
    return results.load(name, folder if own else results.SAVED)["results"]


def measure(arguments):
    found, missing = {}, []
    for name, parts in WANTED.items():
        try:
            saved = load(name, arguments.outputs)
            found[name] = {part: saved[part] for part in parts}
        except UserError as error:
            missing.append(str(error))
        except KeyError as error:
            missing.append(f"what {name} has saved has no {error}: run it again")
    return found | {"missing": missing}


def tell(found):
    for row, fill in ROWS.items():
        wanted = signature(fill).parameters.keys()
        measured = fill(*(found[name] for name in wanted)) if wanted <= found.keys() else ["not measured"] * len(MODELS)
        yield row
        for model, course, figures in zip(MODELS, COURSE[row], measured, strict=True):
            yield f"  {model:<12} {course}"
            yield f"  {'':<12}   {figures}"
    if found["missing"]:
        yield ""
        yield from found["missing"]


if __name__ == "__main__":
    script.run(measure, tell)
