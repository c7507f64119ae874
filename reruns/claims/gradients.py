"""Gradients through time: what the post concludes from bptt.py, vanishing.py and gates.py, and what training adds."""

from itertools import pairwise
from math import hypot, log10

from reruns.claims.base import COURSE, FAILS, HOLDS, POST, agreed, claim, decided, each, exactly, span, together
from reruns.claims.reach import goes_as_far_as, goes_further, reach_of, reaches

ROUNDED = 0.03  # relative: the post prints two digits, 1.2e+02 for 1.1^50 = 117


@claim(
    "The gradient of a weight that every step uses is the sum of the steps' shares, as finite differences confirm.",
    "bptt",
    source=POST,
    where=("state 1", "takeaway 1"),
)
def shares_add_up(bptt):
    """Step t's share is h_{t-1} times what reaches h_t through tanh's slope; the first is 0, since h_0 is."""
    reaching = [*(bptt["gradient_reaching_h"][t] for t in ("1", "2")), (1.0, -1.0)]  # h_1, h_2, and h_3 directly
    before = [(0.0, 0.0), *bptt["h"][:2]]
    total = [[0.0, 0.0], [0.0, 0.0]]
    for dh, h, h_before in zip(reaching, bptt["h"], before, strict=True):
        for i in range(2):
            for j in range(2):
                total[i][j] += h_before[i] * dh[j] * (1 - h[j] ** 2)
    gap = max(abs(a - b) for rows in zip(total, bptt["dy_dW_h"], strict=True) for a, b in zip(*rows, strict=True))
    numeric = bptt["largest_gap_to_finite_differences"]
    figures = f"the shares add up to within {gap:.0e} of the gradient, which is {numeric:.1e} from finite differences"
    return together(exactly(gap < 5e-4), exactly(numeric < 1e-6)), figures


@claim(
    "Each step back multiplies the gradient, and here shrinks it: (1, -1) at the last state is (-0.04, -0.44) at the"
    " first.",
    "bptt",
    source=POST,
    where="state 2",
)
def each_step_back_shrinks(bptt):
    path = [(1.0, -1.0), *(bptt["gradient_reaching_h"][t] for t in ("2", "1", "0"))]
    sizes = [hypot(*gradient) for gradient in path]
    arrives = [round(part, 2) for part in path[-1]]
    figures = f"{' / '.join(f'{size:.2f}' for size in sizes)} at h_3 to h_0, where it is ({arrives[0]}, {arrives[1]})"
    falls = each([later < earlier for earlier, later in pairwise(sizes)])
    return together(falls, exactly(arrives == [-0.04, -0.44])), figures


def ends(vanishing: dict, activation: str, inputs: bool = True) -> dict[float, float]:
    """The gradient's size after 50 steps, by radius."""
    cases = vanishing["gradient_size"]
    return {
        c["radius"]: c["sizes"][-1] for c in cases if (c["activation"], c.get("inputs", True)) == (activation, inputs)
    }


@claim(
    "Over 50 steps a linear network's gradient shrinks to 0.9^50 = 0.005 at radius 0.9, stays what it was at 1 and"
    " grows to 120 at 1.1.",
    "vanishing",
    source=POST,
    where=("intro 1", "vanishing 1", "takeaway 2", "course 0.1", "lesson 2"),
)
def radius_decides(vanishing):
    linear = ends(vanishing, "linear")
    right = [abs(linear[radius] / radius**50 - 1) < (ROUNDED if radius != 1 else 1e-6) for radius in (0.9, 1.0, 1.1)]
    return exactly(all(right)), "after 50 steps " + ", ".join(f"{end:.1e} at {r}" for r, end in linear.items())


@claim(
    "With tanh and inputs the gradient shrinks faster: to a millionth at radius 1, and at 1.1 too, where without tanh"
    " it grows.",
    "vanishing",
    source=POST,
    where=("vanishing 2", "takeaway 2", "course 4.1"),
)
def tanh_shrinks_faster(vanishing):
    """A millionth: within a factor of three."""
    tanh, linear = ends(vanishing, "tanh"), ends(vanishing, "linear")
    smaller = [tanh[radius] < linear[radius] for radius in (0.9, 1.0, 1.1)]
    right = all(smaller) and 1e-6 / 3 < tanh[1.0] < 3e-6 and tanh[1.1] < 1e-3 and linear[1.1] > 10
    figures = ", ".join(f"{tanh[r]:.1e} at {r} (linear {linear[r]:.1e})" for r in (0.9, 1.0, 1.1))
    return exactly(right), f"after 50 steps {figures}"


@claim(
    "It is the inputs that make a tanh network's gradient vanish: at radius 1.1 without them 87% of it are left.",
    "vanishing",
    source=POST,
    where="vanishing 2",
)
def inputs_decide(vanishing):
    driven, free = (ends(vanishing, "tanh", inputs)[1.1] for inputs in (True, False))
    right = driven < 1e-3 and round(free, 2) == 0.87
    return exactly(right), f"at radius 1.1 after 50 steps {driven:.1e} with inputs, {free:.1e} without"


@claim(
    "Tanh doesn't prevent explosion: at radius 2 the gradient is a hundred times as large after 50 steps.",
    "vanishing",
    source=POST,
    where=("vanishing 3", "takeaway 2"),
)
def tanh_can_explode(vanishing):
    """A hundred times: within a factor of two."""
    end = ends(vanishing, "tanh")[2.0]
    return exactly(50 < end < 200), f"{end:.1e} after 50 steps"


@claim(
    "A largest singular value below 1 is enough for vanishing, and one above 1 is needed for explosion.",
    "vanishing",
    source=POST,
    where="vanishing aside",
)
def singular_value_bounds(vanishing):
    cases = [(c["largest_singular_value"], c["gains"][-1]) for c in vanishing["general_matrix"]]
    below, above = ([gain for sigma, gain in cases if (sigma > 1) == side] for side in (False, True))
    grown = [sigma for sigma, gain in cases if gain > 1]
    right = max(below) < 1 and bool(grown) and min(grown) > 1
    figures = f"after 50 steps {span(below, '.0e')} where it is below 1"
    figures += f"; {len(grown)} of {len(above)} cases above 1 have grown, the least at {min(grown):.2f}"
    return exactly(right), figures


def at_50(gates: dict) -> dict[str, float]:
    """The gradient at the input 50 steps back, the median of five untrained networks, by cell."""
    return {cell: sizes[-1] for cell, sizes in gates["gradient_size"].items()}


@claim(
    "Fifty steps back nothing arrives of a plain cell's gradient: some 1e-17.",
    "gates",
    source=POST,
    where=("gates 1", "takeaway 2", "course 4.1"),
)
def plain_cell_loses_all(gates):
    """Some 1e-17: of that power of ten."""
    end = at_50(gates)["RNN"]
    return exactly(1e-17 <= end < 1e-16), f"{end:.1e}", f"{end:.1e} fifty steps back"


@claim(
    "With a forget bias of 0 the LSTM is no better than the GRU as it is drawn.", "gates", source=POST, where="gates 2"
)
def no_head_start_no_lead(gates):
    end = at_50(gates)
    lstm, gru = end["LSTM, forget bias 0"], end["GRU, default"]
    return exactly(lstm <= gru), f"50 steps back {lstm:.1e}, the GRU {gru:.1e}"


@claim(
    "One bias sets a gated cell's head start: a forget bias of 1 leaves 2e-5 of the LSTM's gradient, one of 3 almost"
    " half; an update bias of 1 lifts the GRU's to 3.5e-6.",
    "gates",
    source=POST,
    where=("gates 2", "gates 3", "takeaway 3"),
)
def bias_decides(gates):
    """Almost half: 0.4 to 0.5. And each head start is worth a factor of a thousand or more."""
    end = at_50(gates)
    lstm = [end[f"LSTM, forget bias {bias}"] for bias in (0, 1, 3)]
    gru = [end["GRU, default"], end["GRU, update bias +1"]]
    as_said = abs(lstm[1] / 2e-5 - 1) < 0.25 and 0.4 < lstm[2] < 0.5 and abs(gru[1] / 3.5e-6 - 1) < ROUNDED
    lifted = [later > 1000 * earlier for earlier, later in (lstm[:2], lstm[1:], gru)]
    sizes = "{:.1e} / {:.1e} / {:.1e}".format(*lstm)
    figures = f"50 steps back {sizes} at forget bias 0 / 1 / 3; the GRU {gru[0]:.1e}, with update bias 1 {gru[1]:.1e}"
    return exactly(as_said and all(lifted)), figures, f"{sizes} at bias 0 / 1 / 3"


@claim(
    "With the same head start GRU and LSTM are close: the cells differ in how they start more than in what they are.",
    "gates",
    source=POST,
    where=("gates 2", "takeaway 3"),
)
def same_start_same_reach(gates):
    """Close: within a factor of ten, and no more than a third of the powers of ten that a start makes."""
    end = at_50(gates)
    between = abs(log10(end["LSTM, forget bias 1"] / end["GRU, update bias +1"]))
    starts = [
        log10(end["LSTM, forget bias 1"] / end["LSTM, forget bias 0"]),
        log10(end["GRU, update bias +1"] / end["GRU, default"]),
    ]
    figures = f"10^{between:.1f} between the cells with a bias of 1; 10^{starts[0]:.1f} and 10^{starts[1]:.1f}"
    return exactly(between < 1 and 3 * between < min(starts)), f"{figures} by the bias in LSTM and GRU"


@claim("Training changes the gates.", "gates_trained", source=POST, where="gates 3")
def training_moves_gates(gates_trained):
    """The median value of the gate that keeps has moved by more than 0.1 in the models of text."""
    models = next(iter(gates_trained["medians"].values()))
    middle = len(gates_trained["quantiles"]) // 2
    moved = {
        cell: [models[f"{cell}, {state}"]["gate"][middle] for state in ("untrained", "trained")]
        for cell in ("GRU", "LSTM")
    }
    figures = "; ".join(f"{cell} {before:.2f} then {after:.2f}" for cell, (before, after) in moved.items())
    return each([abs(after - before) > 0.1 for before, after in moved.values()]), f"median of the gate: {figures}"


@claim(
    "A plain RNN gets no learning signal from fifty steps back, so it never learns to use what is so far back.",
    "recall",
    "gates",
    source=POST,
    where="vanishing 5",
)
def plain_never_looks_far_back(recall, gates):
    """No signal: less than 1e-12 of what arrives from one step back. A longer delay that it learned refutes the rest,
    although it tells the bit after that one delay only and hardly holds it (plain_holds_its_bit). Written with the
    reaches in view.
    """
    sizes, learns = gates["gradient_size"]["RNN"], goes_as_far_as(50, reach_of(recall, "RNN"))
    never = decided(learns == FAILS, learns == HOLDS)
    figures = f"{sizes[0]:.1e} then {sizes[-1]:.1e} arrives from fifty steps back; {reaches(recall, 'RNN')}"
    return together(exactly(sizes[-1] < 1e-12 * sizes[0]), never), figures


@claim(
    "It is gates that let a model learn from what was dozens of steps back: gated cells reach further than the plain"
    " one, and still their gradient decays.",
    "recall",
    "gates",
    source=POST,
    where=("vanishing 7", "gates 4"),
)
def gates_reach_dozens(recall, gates):
    """Dozens: two. A GRU and an LSTM with the usual head start, forget bias 1, learn such a delay, and both learn a
    longer one than a plain RNN.
    """
    cells = ("GRU", "LSTM, forget bias 1")
    plain, *gated = (reach_of(recall, cell) for cell in ("RNN", *cells))
    end = gates["gradient_size"]["LSTM, forget bias 1"]
    far = agreed(*(goes_as_far_as(24, reach) for reach in gated))
    return (
        together(far, *(goes_further(reach, plain) for reach in gated), exactly(end[-1] < end[0])),
        f"{reaches(recall, 'RNN', *cells)}; the LSTM's gradient, bias 1, {end[0]:.1e} then {end[-1]:.1e}",
    )


@claim(
    "Reading both ways shows a tagger what comes after; it carries no gradient any further.",
    "bidirectional",
    source=COURSE,
    where="course 3.2",
)
def both_ways_cure_blindness(bidirectional):
    """Right by guessing alone: at most four standard deviations of 2,000 tests above a forward reader's ceiling."""
    task = "what comes after"
    runs = [run for run in bidirectional["runs"] if run["task"] == task]
    guessing = bidirectional["ceiling"][task]["forward"] + 4 * (0.25 / 2000) ** 0.5

    def right(cell, reader, distance):
        return [r["accuracy"] for r in runs if (r["cell"], r["reader"], r["distance"]) == (cell, reader, distance)]

    forward = [run["accuracy"] for run in runs if run["reader"] == "forward"]
    near, far = right("RNN", "both", 5), right("RNN", "both", 80)
    all_of_it = [share <= guessing for share in forward + far] + [share > 0.9 for share in near]
    figures = f"forwards {span(forward)}; a plain RNN both ways {span(near)} five words away, {span(far)} eighty away"
    return decided(all(all_of_it), max(near) <= guessing or min(far) > guessing), figures
