"""What the course ("Sequence Modeling Pre-Transformer", KnowML) and the lesson ("RNNs and LSTMs, the pre-transformer
world") say of gradients and of the cells side by side. course_memory.py and course_sequences.py go on.

Sentences of theirs that the post has too are the post's, here or where its own are; outline.py has the places of each.
"""

from statistics import fmean

from reruns.claims.base import COURSE, POST, UNDECIDED, apart, claim, decided, each, exactly, span


@claim(
    "A weight of 0.5 leaves about a millionth of a gradient after twenty steps, one of 1.5 makes it 3,325 times.",
    "decay",
    source=COURSE,
    where="course 1.3",
)
def twenty_steps(decay):
    """About a millionth: within a factor of two."""
    small = dict(zip(decay["steps_back"], decay["gradient"], strict=True))[20]
    large = decay["weight_1.5_after_20_steps"]
    return exactly(0.5e-6 < small < 2e-6 and round(large) == 3325), f"{small:.7f} and {large:,.0f} after 20 steps"


@claim(
    "If the dominant eigenvalue of W_h is greater than 1, gradients explode.",
    "vanishing",
    source=COURSE,
    where="course 4.2",
)
def above_one_explodes(vanishing):
    """In the course's network, which has tanh and reads inputs: more than ten times as large after fifty steps."""
    ends = {
        f"{case['activation']} at {case['radius']}": case["sizes"][-1]
        for case in vanishing["gradient_size"]
        if case["radius"] > 1 and case.get("inputs", True)
    }
    figures = ", ".join(f"{name} {end:.1e}" for name, end in ends.items())
    return exactly(all(end > 10 for end in ends.values())), f"after 50 steps {figures}"


@claim(
    "In practice gradients vanish far more often than they explode.",
    "gates_trained",
    "explosions",
    source=COURSE,
    where=("course 0.2", "course 4.4"),
)
def vanishing_is_common(gates_trained, explosions):
    """Far more: as shares they are more than a half apart, so that one network of ten doesn't decide.

    Vanished: in an RNN of text, untrained or trained, a thousandth or less of what comes from one step back arrives
    from fifty. Exploded: more arrives than from one, or a tanh RNN, not clipped and at the lowest rate, comes apart.
    """
    fallen = {"untrained": [], "trained": []}
    for run in gates_trained["runs"]:
        if run["cell"] == "RNN" and "trained" in run:
            for state, ratios in fallen.items():
                ratios.append(run[state]["gradient"][49] / run[state]["gradient"][0])
    tanh = plain(explosions, "tanh", clipped=False)
    usual = [run for run in tanh if run["rate"] == min(run["rate"] for run in tanh)]
    every = [ratio for ratios in fallen.values() for ratio in ratios]
    if not every or not usual:
        return UNDECIDED, "no network was trained to its end"
    vanished = fmean(ratio < 1e-3 for ratio in every)
    exploded = max(fmean(ratio > 1 for ratio in every), fmean(map(came_apart, usual)))
    figures = ", ".join(f"{state} {span(ratios, '.0e')}" for state, ratios in fallen.items())
    told = f"of the gradient one step back arrives from fifty: {figures}; {count(usual)} tanh networks came apart"
    return decided(vanished > exploded + 0.5, vanished <= exploded), told


def plain(explosions: dict, units: str, clipped: bool) -> list[dict]:
    """The trainings of plain RNNs of these units."""
    return [run for run in explosions["plain"] if run["units"] == units and (run["clip"] is not None) == clipped]


def came_apart(run: dict) -> bool:
    """Whether it ended with a loss that wasn't finite."""
    return run["not_finite_at_step"] is not None


def count(runs: list[dict]) -> str:
    return f"{sum(map(came_apart, runs))} of {len(runs)}"


@claim(
    "A plain RNN's loss can end in NaN, and clipping the gradient saves the same seed.",
    "explosions",
    source=POST,
    where="vanishing 6",
)
def clipping_saves(explosions):
    """Rectified units. Saved: clipped, the seed doesn't end, and its last losses are a nat below the first of the seed
    that is shown. Where no seed comes apart it can't be told.
    """
    bare, clipped = (plain(explosions, "rectified", clips) for clips in (False, True))
    first = explosions["shown"][0]["losses"][0]
    ended = [run["seed"] for run in bare if came_apart(run)]
    saved = [not came_apart(run) and first - run["loss"] > 1 for run in clipped if run["seed"] in ended]
    figures = f"{count(bare)} seeds end without clipping, {count(clipped)} with it; of those {sum(saved)} are saved"
    return each(saved), f"{figures}: {first:.2f} nats in the beginning, clipped {losses(clipped)} in the end"


def losses(runs: list[dict]) -> str:
    return span([run["loss"] for run in runs if not came_apart(run)], ".2f")


@claim(
    "Exploding gradients show up, with tanh, as loss suddenly spiking to NaN.",
    "explosions",
    source=COURSE,
    where="course 4.3",
)
def tanh_ends_in_nan(explosions):
    """At the usual rate of learning or at a larger one, not clipped. It is refuted only by gradients that did explode,
    with a norm above 100, of which none showed up so.
    """
    bare = plain(explosions, "tanh", clipped=False)
    rates = dict.fromkeys(run["rate"] for run in bare)
    figures = ", ".join(f"{count([run for run in bare if run['rate'] == rate])} at {rate:g}" for rate in rates)
    largest = max(run["largest_norm"] for run in bare)
    ended = any(map(came_apart, bare))
    return decided(ended, not ended and largest > 100), f"seeds that ended: {figures}; norms up to {largest:.1e}"


@claim(
    "At forty digits clipping costs the reverser without attention accuracy.",
    "reverse_40_longer",
    "reverse_40_unclipped",
)
def clipping_costs(longer, unclipped):
    with_it, without = (
        [run["digits_right"] for run in found["runs"] if not run["attention"] and "digits_right" in run]
        for found in (longer, unclipped)
    )
    return apart(with_it, without), f"digits right {span(with_it)} clipped at 1, {span(without)} not clipped"


def back(paths: dict, path: str, steps: int = 50) -> float:
    """What comes along a path from so many steps back."""
    return paths[path][steps - 1]


def of_paths(cell_path: dict, state: str) -> dict[str, dict]:
    """Name → paths of the networks in a state: untrained as in gates.py, or trained on text."""
    if state == "untrained":
        return cell_path["every_step"]
    return {name: states[state] for name, states in cell_path["on_text"].items() if state in states}


@claim(
    "The dependence of the gates themselves on C_{t-1} is comparatively minor, over fifty steps.",
    "cell_path",
    source=COURSE,
    where="course 5.1",
)
def gates_are_minor(cell_path):
    """What comes by it from fifty steps back, the difference of the gradients with it and without, is less than half
    the size of all that comes: LSTMs, untrained and trained.
    """
    shares = {
        state: [back(paths, "difference") for name, paths in of_paths(cell_path, state).items() if "LSTM" in name]
        for state in ("untrained", "trained")
    }
    figures = ", ".join(f"{state} {span(values, '.2f')}" for state, values in shares.items())
    minor = [share < 0.5 for values in shares.values() for share in values]
    return each(minor), f"the gates' part of the gradient 50 steps back, by its size: {figures}"


def carried_by_the_cell(cell_path: dict, states: tuple[str, ...], steps: int, most: float = 0.5) -> tuple[str, str]:
    """At least half of what arrives from so many steps back comes along c_t = f_t c_{t-1}, or h_t = u_t h_{t-1}."""
    shares = {
        f"{name}, {state}": back(p, "cell alone", steps) / back(p, "full", steps)
        for state in states
        for name, p in of_paths(cell_path, state).items()
    }
    figures = ", ".join(f"{name} {share:.3g}" for name, share in shares.items())
    return each([share > most for share in shares.values()]), f"the share of the cell alone, {steps} back: {figures}"


@claim(
    "∂C_t/∂C_{t-1} ≈ f_t, just the forget gate: so it is over one step.", "cell_path", source=COURSE, where="course 5.2"
)
def the_cell_carries_one_step(cell_path):
    """The input two steps back: one step lies between the cell that has read it and the last. Nine tenths are meant by
    "≈", which was a half until the figures were seen: that would have held with 0.62.
    """
    return carried_by_the_cell(cell_path, ("untrained", "trained"), 2, most=0.9)


@claim(
    "∂C_t/∂C_{t-1} ≈ f_t, just the forget gate: so it is over fifty steps in untrained networks.",
    "cell_path",
    source=COURSE,
    where=("course 0.3", "course 5.2"),
)
def the_cell_carries_untrained(cell_path):
    return carried_by_the_cell(cell_path, ("untrained",), 50)


@claim(
    "∂C_t/∂C_{t-1} ≈ f_t, just the forget gate: so it is over fifty steps in networks trained on text.",
    "cell_path",
    source=COURSE,
    where=("course 0.3", "course 5.2"),
)
def the_cell_carries_trained(cell_path):
    return carried_by_the_cell(cell_path, ("trained",), 50)


@claim(
    "With f near 1 the gradient along the cell neither shrinks nor grows: a constant error carousel.",
    "cell_path",
    source=POST,
    where=("cells 1", "gates 3", "course 5.3", "lesson 3"),
)
def constant_carousel(cell_path):
    """Near 1: a forget bias of 7, f = 0.999. Along the cell, which is the carousel, as much comes from fifty steps back
    as from two, to a factor of two; what comes from one step back goes through the output gate besides.
    """
    paths = cell_path["every_step"]["LSTM, forget bias 7"]
    alone, full = (back(paths, path) / back(paths, path, 2) for path in ("cell alone", "full"))
    return exactly(0.5 < alone < 2), f"{alone:.3f} of it is left along the cell alone, {full:.3f} along all paths"


@claim(
    "An LSTM has about four times the parameters of a plain RNN, a GRU about three times.",
    "cells_table",
    source=COURSE,
    where="course 6.3",
)
def three_and_four(cells_table):
    ratios = {name: cells_table["layers"][name]["relative_to_RNN"] for name in ("LSTM", "GRU")}
    right = abs(ratios["LSTM"] - 4) < 0.1 and abs(ratios["GRU"] - 3) < 0.1
    return exactly(right), ", ".join(f"{name} {ratio:.2f} ×" for name, ratio in ratios.items())


@claim(
    "A GRU has fewer parameters and fewer multiplications per step than an LSTM, and less to carry.",
    "cells_table",
    source=POST,
    where=("cells 2", "course 4.7", "course 8.2"),
)
def gru_is_lighter(cells_table):
    gru, lstm = (cells_table["layers"][name] for name in ("GRU", "LSTM"))
    what = {"parameters": "parameters", "multiply_adds": "multiply-adds", "state_bytes": "bytes of state"}
    figures = ", ".join(f"{gru[name]:,} against {lstm[name]:,} {told}" for name, told in what.items())
    return exactly(all(gru[name] < lstm[name] for name in what)), figures


@claim("A GRU trains faster than an LSTM.", "char_models", source=COURSE, where="course 8.2")
def gru_is_faster(char_models):
    runs = [run for run in char_models["runs"] if "diverged_at_step" not in run]
    seconds = {cell: [run["seconds"] for run in runs if run["cell"] == cell] for cell in ("GRU", "LSTM")}
    figures = ", ".join(f"{cell} {span(values, '.0f')} s" for cell, values in seconds.items())
    return apart(seconds["GRU"], seconds["LSTM"]), f"{figures} for the same steps"


@claim(
    "Across a sequence RNN, LSTM and GRU can't be computed in parallel, a Transformer can.",
    "cells_table",
    source=COURSE,
    where=("course 3.1", "course 6.1"),
)
def only_transformers_are_parallel(cells_table):
    steps = {name: row["sequential_steps"] for name, row in cells_table["layers"].items()}
    length = cells_table["characters"]
    cells, transformer = [steps[name] for name in ("RNN", "LSTM", "GRU")], steps["Transformer, token 1"]
    figures = f"{span(cells, ',.0f')} steps in a row and {transformer} for {length} characters"
    return exactly(set(cells) == {length} and transformer == 1), figures


@claim(
    "There's no way to compute all timesteps of h_t = tanh(W h_{t-1} + …) at once.",
    "cells_table",
    "path_length",
    source=COURSE,
    where="course 3.1",
)
def no_recurrence_at_once(cells_table, path_length):
    """Counted: as many operations wait for one another as there are steps. A scan is for other recurrences."""
    steps, length = cells_table["layers"]["RNN"]["sequential_steps"], cells_table["characters"]
    scan, longer = path_length["steps"]["recurrence, by a scan"]["operations"], path_length["length"]
    told = f"{steps:,} operations in a row for {length:,} steps; {scan:,} for {longer:,} by a scan"
    return exactly(steps >= length), f"{told}, of a recurrence whose gates read the input alone"
