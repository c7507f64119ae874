"""What the course ("Sequence Modeling Pre-Transformer", KnowML) and the lesson ("RNNs and LSTMs, the pre-transformer
world") say of gradients and of the cells side by side. course_memory.py and course_sequences.py go on.

Sentences of theirs that the post has too are judged where the post's are: radius_decides, inputs_decide (vanishing),
last_read_is_easy (reversers), serial_costs (parallel), a_token_stays_cheap (generation), no_short_cut_for_gradients
(path_length), both_ways_cure_blindness (bidirectional).
"""

from statistics import fmean

from reruns.claims.base import COURSE, LESSON, apart, claim, each, exactly, span, together


@claim(
    "A weight of 0.5 leaves about a millionth of a gradient after twenty steps, one of 1.5 makes it 3,325 times.",
    "decay",
    source=COURSE,
)
def twenty_steps(decay):
    """About a millionth: within a factor of two."""
    small = dict(zip(decay["steps_back"], decay["gradient"], strict=True))[20]
    large = decay["weight_1.5_after_20_steps"]
    return exactly(0.5e-6 < small < 2e-6 and round(large) == 3325), f"{small:.7f} and {large:,.0f} after 20 steps"


@claim("If the dominant eigenvalue of W_h is greater than 1, gradients explode.", "vanishing", source=COURSE)
def above_one_explodes(vanishing):
    """In the course's network, which has tanh and reads inputs: more than ten times as large after fifty steps."""
    ends = {
        f"{case['activation']} at {case['radius']}": case["sizes"][-1]
        for case in vanishing["gradient_size"]
        if case["radius"] > 1 and case.get("inputs", True)
    }
    figures = ", ".join(f"{name} {end:.1e}" for name, end in ends.items())
    return exactly(all(end > 10 for end in ends.values())), f"after 50 steps {figures}"


@claim("In practice gradients vanish far more often than they explode.", "gates_trained", "explosions", source=COURSE)
def vanishing_is_common(gates_trained, explosions):
    """A thousandth of what comes from one step back, or less, in untrained and trained RNNs; none comes apart."""
    fallen = {"untrained": [], "trained": []}
    for run in gates_trained["runs"]:
        if run["cell"] == "RNN" and "trained" in run:
            for state, ratios in fallen.items():
                ratios.append(run[state]["gradient"][49] / run[state]["gradient"][0])
    ended = endings(explosions, "tanh", clipped=False) + endings(explosions, "tanh", clipped=True)
    vanished = [each([ratio < 1e-3 for ratio in ratios]) for ratios in fallen.values()]
    figures = ", ".join(f"{state} {span(ratios, '.0e')}" for state, ratios in fallen.items())
    told = f"of the gradient one step back arrives from fifty: {figures}; {count(ended)} tanh networks came apart"
    return together(*vanished, exactly(not any(ended))), told


def endings(explosions: dict, units: str, clipped: bool) -> list[int | None]:
    """The steps at which trainings of these units ended with a loss that wasn't finite, None where they didn't."""
    runs = explosions["plain"]
    return [run["not_finite_at_step"] for run in runs if run["units"] == units and (run["clip"] is not None) == clipped]


def count(ended: list) -> str:
    return f"{sum(map(bool, ended))} of {len(ended)}"


@claim(
    "A plain RNN can come apart, its loss no number any more, and clipping the gradient saves the same seed.",
    "explosions",
)
def clipping_saves(explosions):
    """Rectified units. Saved: the loss of the seed that is shown falls by a nat with clipping, and no seed ends."""
    bare, clipped = (endings(explosions, "rectified", clips) for clips in (False, True))
    shown = next(run for run in explosions["shown"] if run["clip"] is not None)
    fall = shown["losses"][0] - fmean(shown["losses"][-50:])
    figures = f"{count(bare)} seeds end without clipping, {count(clipped)} with it"
    return (
        exactly(any(bare) and not any(clipped) and fall > 1),
        f"{figures}; seed {shown['seed']} clipped falls by {fall:.2f} nats",
    )


@claim("Exploding gradients show up, with tanh, as loss suddenly spiking to NaN.", "explosions", source=COURSE)
def tanh_ends_in_nan(explosions):
    bare = endings(explosions, "tanh", clipped=False)
    return exactly(any(bare)), f"{count(bare)} seeds ended, none of them clipped"


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
    return paths[path][steps - 1]


def of_paths(cell_path: dict, state: str) -> dict[str, dict]:
    """Name → paths of the networks in a state: untrained as in gates.py, or trained on text."""
    if state == "untrained":
        return cell_path["every_step"]
    return {name: states[state] for name, states in cell_path["on_text"].items() if state in states}


@claim("The dependence of the gates themselves on C_{t-1} is comparatively minor.", "cell_path", source=COURSE)
def gates_are_minor(cell_path):
    """Cut, it changes what arrives from fifty steps back by less than a factor of two: LSTMs, untrained and trained."""
    ratios = {
        state: [
            back(paths, "gates cut") / back(paths, "full")
            for name, paths in of_paths(cell_path, state).items()
            if "LSTM" in name
        ]
        for state in ("untrained", "trained")
    }
    figures = ", ".join(f"{state} {span(values, '.2f')}" for state, values in ratios.items())
    minor = [0.5 < ratio < 2 for values in ratios.values() for ratio in values]
    return each(minor), f"of the gradient 50 steps back, with the gates' part cut: {figures}"


def carried_by_the_cell(cell_path: dict, state: str) -> tuple[str, str]:
    """At least half of what arrives from fifty steps back comes along c_t = f_t c_{t-1}, or h_t = u_t h_{t-1}."""
    shares = {name: back(p, "cell alone") / back(p, "full") for name, p in of_paths(cell_path, state).items()}
    figures = ", ".join(f"{name} {share:.3g}" for name, share in shares.items())
    return each([share > 0.5 for share in shares.values()]), f"the share of the cell alone, 50 steps back: {figures}"


@claim("∂C_t/∂C_{t-1} ≈ f_t, just the forget gate: so it is in untrained networks.", "cell_path", source=COURSE)
def the_cell_carries_untrained(cell_path):
    return carried_by_the_cell(cell_path, "untrained")


@claim("∂C_t/∂C_{t-1} ≈ f_t, just the forget gate: so it is in networks trained on text.", "cell_path", source=COURSE)
def the_cell_carries_trained(cell_path):
    return carried_by_the_cell(cell_path, "trained")


@claim(
    "With gates held open the gradient neither shrinks nor grows: a constant error carousel.",
    "cell_path",
    source=LESSON,
)
def constant_carousel(cell_path):
    """Forget bias 3, fifty steps back against one: within a factor of two along the cell, which is the carousel."""
    paths = cell_path["every_step"]["LSTM, forget bias 3"]
    alone, full = (back(paths, path) / back(paths, path, 1) for path in ("cell alone", "full"))
    return exactly(0.5 < alone < 2), f"{alone:.3f} of it is left along the cell alone, {full:.3f} along all paths"


@claim(
    "An LSTM has about four times the parameters of a plain RNN, a GRU about three times.",
    "cells_table",
    source=COURSE,
)
def three_and_four(cells_table):
    ratios = {name: cells_table["layers"][name]["relative_to_RNN"] for name in ("LSTM", "GRU")}
    right = abs(ratios["LSTM"] - 4) < 0.1 and abs(ratios["GRU"] - 3) < 0.1
    return exactly(right), ", ".join(f"{name} {ratio:.2f} ×" for name, ratio in ratios.items())


@claim(
    "A GRU has fewer parameters and fewer multiplications per step than an LSTM, and less to carry.",
    "cells_table",
    source=COURSE,
)
def gru_is_lighter(cells_table):
    gru, lstm = (cells_table["layers"][name] for name in ("GRU", "LSTM"))
    what = {"parameters": "parameters", "multiply_adds": "multiply-adds", "state_bytes": "bytes of state"}
    figures = ", ".join(f"{gru[name]:,} against {lstm[name]:,} {told}" for name, told in what.items())
    return exactly(all(gru[name] < lstm[name] for name in what)), figures


@claim("A GRU trains faster than an LSTM.", "char_models", source=COURSE)
def gru_is_faster(char_models):
    runs = [run for run in char_models["runs"] if "diverged_at_step" not in run]
    seconds = {cell: [run["seconds"] for run in runs if run["cell"] == cell] for cell in ("GRU", "LSTM")}
    figures = ", ".join(f"{cell} {span(values, '.0f')} s" for cell, values in seconds.items())
    return apart(seconds["GRU"], seconds["LSTM"]), f"{figures} for the same steps"


@claim(
    "Across a sequence RNN, LSTM and GRU can't be computed in parallel, a Transformer can.",
    "cells_table",
    source=COURSE,
)
def only_transformers_are_parallel(cells_table):
    steps = {name: row["sequential_steps"] for name, row in cells_table["layers"].items()}
    length = cells_table["characters"]
    cells, transformer = [steps[name] for name in ("RNN", "LSTM", "GRU")], steps["Transformer, token 1"]
    figures = f"{span(cells, ',.0f')} steps in a row and {transformer} for {length} characters"
    return exactly(set(cells) == {length} and transformer == 1), figures


@claim("There's no way to compute all timesteps of a recurrence at once.", "path_length", "scan", source=COURSE)
def no_recurrence_at_once(path_length, scan):
    """One whose gates read the input alone can be, by a scan that computes the same: that refutes it as a rule."""
    operations, length = path_length["steps"]["recurrence, by a scan"]["operations"], path_length["length"]
    gap = max(gap for pair in scan["gaps"].values() for gap in pair.values())
    refuted = operations <= 2 * length.bit_length() and gap < 1e-10
    told = f"{operations} operations in a row for {length:,} steps by a scan, at most {gap:.0e} from the loop"
    return exactly(not refuted), told
