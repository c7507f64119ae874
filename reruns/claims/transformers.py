"""Why Transformers won: what the post concludes from parallel.py, and what it says without measuring it."""

from statistics import fmean

from reruns.claims.base import COURSE, ON, POST, apart, claim, decided, each, exactly, span, together
from reruns.claims.character_models import cell_by_cell, every, of_cells


@claim(
    "Token 1 reaches token 1,024 of a recurrent layer by 1,023 steps and its gradient comes to nothing on the way back;"
    " attention takes one step, and the gradient arrives.",
    "path_length",
    source=POST,
    where=("transformers 1", "takeaway 6", "course 8.3", "lesson 6"),
)
def attention_is_one_step(path_length):
    """Nothing: less than 1e-30 in each seed. Arrives: more than 1e-4."""
    length, steps, powers = path_length["length"], path_length["steps"], path_length["at_token_1"]
    serial, direct = (steps[name]["operations"] for name in ("recurrence, step by step", "attention"))
    right = (serial, direct) == (length - 1, 1) and max(powers["GRU"]) < -30 and min(powers["attention"]) > -4
    figures = ", ".join(
        f"{name} 10^{min(powers[name]):.0f} to 10^{max(powers[name]):.0f}" for name in ("GRU", "attention")
    )
    told = f"{serial:,} steps and {direct}"
    return exactly(right), f"{told}; gradient at token 1 {figures}", told


@claim("A scan shortens the way through the computation, not the gradient's; attention shortens both.", "path_length")
def no_short_cut_for_gradients(path_length):
    length, powers = path_length["length"], path_length["at_token_1"]
    operations = path_length["steps"]["recurrence, by a scan"]["operations"]
    right = operations <= 2 * length.bit_length() and max(powers["minGRU"]) < -45 and min(powers["attention"]) > -4
    figures = ", ".join(f"{name} 10^{min(p):.0f} to 10^{max(p):.0f}" for name, p in powers.items())
    return exactly(right), f"{operations} operations by a scan; at token 1 of {length:,}: {figures}"


@claim(
    "A recurrent layer keeps as much however long the text is; attention keeps keys and values of every token.",
    "generation",
    source=POST,
    where=("transformers 2", "takeaway 6", "course 6.4"),
)
def state_is_fixed(generation):
    """In bytes, for one sequence: the same after any context, against proportional to it."""
    rows = generation["batch_1"]["rows"]
    sizes = {name: [row["state_bytes"] for row in rows[name]] for name in ("GRU", "cached attention")}
    tokens = [row["context"] for row in rows["cached attention"]]
    a_token = {size / n for size, n in zip(sizes["cached attention"], tokens, strict=True)}
    right = len(set(sizes["GRU"])) == 1 and len(a_token) == 1
    figures = f"GRU {span(sizes['GRU'], ',')} bytes; keys and values {span(sizes['cached attention'], ',')}"
    return exactly(right), f"{figures} after {tokens[0]:,} to {tokens[-1]:,} tokens"


@claim(
    "A GRU takes longer than attention for 1,024 steps, though it computes less: 0.81 GFLOPs against 1.48.",
    "parallel",
    source=POST,
    where=("transformers 3", "takeaway 6", "lesson 5"),
)
def serial_costs(parallel):
    gru, attention = parallel["GRU"], parallel["attention"]
    counts = [round(rival["GFLOPs"], 2) for rival in (gru, attention)]
    figures = f"{counts[0]:.2f} GFLOPs in {gru['ms']:.1f} ms against {counts[1]:.2f} in {attention['ms']:.1f}"
    right = together(exactly(counts == [0.81, 1.48]), exactly(gru["ms"] > attention["ms"]))
    return right, figures, figures


@claim("The GRU takes six times as long as attention.", "parallel", source=POST, where="transformers 3")
def six_times_as_long(parallel):
    """Six: 5.5 to 6.5, by the sixth of ten passes. It is the machine's: cannot be told where some pairs of passes say
    so and the sixth ones don't.
    """
    ratio = parallel["GRU"]["ms"] / parallel["attention"]["ms"]
    runs = [parallel[name].get("every_run_ms", [parallel[name]["ms"]]) for name in ("GRU", "attention")]
    least, most = min(runs[0]) / max(runs[1]), max(runs[0]) / min(runs[1])
    figures = f"{ratio:.1f} times, {least:.1f} to {most:.1f} from its fastest pass against the slowest to the opposite"
    return decided(5.5 <= ratio <= 6.5, most < 5.5 or least > 6.5), figures, f"{ratio:.1f} times on our CPU"


@claim(
    "Attention's few large products are computed at more than twice the rate of a GRU's many small ones.",
    "parallel",
    source=POST,
    where="transformers 4",
)
def large_products_are_faster(parallel):
    """In operations a second. What the hardware can do, the post's full speed, isn't measured."""
    rates = [parallel[name]["GFLOPs"] / parallel[name]["ms"] * 1000 for name in ("GRU", "attention")]
    figures = f"{rates[0]:.0f} GFLOP/s against {rates[1]:.0f}"
    return decided(rates[1] > 2 * rates[0], rates[1] <= rates[0]), figures


@claim(
    "Only the product with the state has to wait: the input side of a GRU can be computed for all steps at once.",
    "parallel_lengths",
    source=POST,
    where="transformers 5",
)
def input_side_is_parallel(parallel_lengths):
    """At 1,024 steps: all at once it takes less than a quarter of the GRU's time, and what waits more than half."""
    at = parallel_lengths["lengths"].index(1024)
    parts = [parallel_lengths["parts"][name][at]["ms"] for name in ("input side at once", "serial part")]
    whole = parallel_lengths["forward"]["rows"]["GRU"][at]["ms"]
    shares = [part / whole for part in parts]
    figures = f"{parts[0]:.1f} and {parts[1]:.1f} ms of {whole:.1f} at 1,024 steps"
    return decided(shares[0] < 0.25 and shares[1] > 0.5, shares[0] > 0.5 or shares[1] < 0.25), figures


@claim(
    "On a GPU the GRU is further behind, since each step starts a kernel.",
    f"parallel{ON}cuda",
    "parallel",
    source=POST,
    where="transformers 6",
)
def gap_grows_on_a_gpu(cuda, cpu):
    """Further behind: by half as much again."""
    ratios = [found["GRU"]["ms"] / found["attention"]["ms"] for found in (cuda, cpu)]
    figures = f"{ratios[0]:.1f} times as long on {cuda['device']}, {ratios[1]:.1f} on {cpu['device']}"
    return decided(ratios[0] > 1.5 * ratios[1], ratios[0] <= ratios[1]), figures


@claim(
    "Attention's cost grows with the square of the length, a GRU's with the length.",
    "parallel_lengths",
    source=POST,
    where="transformers 7",
)
def cost_is_square(parallel_lengths):
    """The power that time grows with over the last four lengths, forward: 1.7 to 2.3, and 0.8 to 1.2."""
    slopes = parallel_lengths["forward"]["slopes"]
    right = [1.7 <= slopes["attention"] <= 2.3, 0.8 <= slopes["GRU"] <= 1.2]
    return exactly(all(right)), f"attention to the power of {slopes['attention']:.2f}, the GRU of {slopes['GRU']:.2f}"


@claim("Attention's square cost catches up with the GRU's serial one, reading forward.", "parallel_lengths")
def square_catches_up(parallel_lengths):
    kinds = {kind: parallel_lengths[kind]["crossovers"]["attention"] for kind in ("forward", "forward and backward")}
    right = kinds["forward"]["measured"] is not None
    longest = max(parallel_lengths["lengths"])
    told = [
        f"{kind} at {c['measured']:,.0f} steps" if c["measured"] else f"{kind} not up to {longest:,}"
        for kind, c in kinds.items()
    ]
    fitted = [f"{c['fitted']:,.0f}" if c["fitted"] else "nowhere" for c in kinds.values()]
    return exactly(right), f"measured {', '.join(told)}; by the fitted models {' and '.join(fitted)}"


@claim(
    "The next token costs an RNN the same after any context; what attention's cache costs grows.",
    "generation",
    source=POST,
    where=("transformers 8", "takeaway 6", "course 6.4"),
)
def a_token_stays_cheap(generation):
    slopes = {batch: generation[f"batch_{batch}"]["slopes"] for batch in generation["batches"]}
    right = [s["GRU"]["ms"] < 0.2 and s["cached attention"]["ms"] > 0.5 for s in slopes.values()]
    told = [f"{s['GRU']['ms']:.2f} and {s['cached attention']['ms']:.2f} at batch {b}" for b, s in slopes.items()]
    figures = f"time grows with the context to the power of {', '.join(told)}"
    last = slopes[max(slopes)]
    powers = f"GRU {last['GRU']['ms']:.2f}, cached attention {last['cached attention']['ms']:.2f}"
    return each(right), figures, f"to the power of: {powers}"


@claim(
    "Linear attention and state spaces are recurrent again, but training needn't go step by step; the state of linear"
    " attention is of fixed size.",
    "generation",
    "scan",
    source=POST,
    where=("transformers 9", "takeaway 6"),
)
def recurrences_again(generation, scan):
    """The forms of each layer, step by step and in parallel, give the same in float64; linear attention's state is of
    the same size after any context. That of a state space isn't measured.
    """
    sizes = [row["state_bytes"] for row in generation["batch_1"]["rows"]["linear attention"]]
    gaps = {name: max(gap.values()) for name, gap in scan["gaps"].items()}
    right = len(set(sizes)) == 1 and max(gaps.values()) < 1e-10
    figures = f"linear attention's state {span(sizes, ',')} bytes; forms at most {max(gaps.values()):.0e} apart"
    return exactly(right), figures


@claim("A recurrence whose gates read the input alone is the same step by step and as a parallel scan.", "scan")
def scan_is_the_loop(scan):
    gaps = [gap for pair in scan["gaps"].values() for gap in pair.values()]
    weights = scan["trained_both_ways"]["weights"]
    right = max(*gaps, weights) < 1e-10
    return exactly(right), f"forms at most {max(gaps):.0e} apart, trained weights {weights:.0e} (float64)"


@claim("A scan trains faster than a GRU's serial steps, and than attention on long sequences.", "scan_lengths")
def scan_is_faster(scan_lengths):
    lengths, ms = scan_lengths["lengths"], scan_lengths["forward and backward"]["ms"]
    ours, rivals = ms["minGRU, scan"], [ms[name] for name in ("GRU", "attention", "fused attention")]
    right = all(a < b for a, b in zip(ours, rivals[0], strict=True)) and all(ours[-1] < rival[-1] for rival in rivals)
    last = f"{ours[-1]:.0f} ms against " + " / ".join(f"{rival[-1]:.0f}" for rival in rivals)
    return exactly(right), f"{last} (GRU / attention / fused) at {lengths[-1]:,} steps, forward and backward"


@claim(
    "One bare layer of minGRU, or of linear attention without positions, models characters worse than any recurrent"
    " cell.",
    "scan_models",
    "char_models",
)
def bare_layers_pay(scan_models, char_models):
    """Of these two layers alone. That what trains in parallel pays for it was concluded from them before, which they
    can't show: stacked, with positions, they are other models.
    """
    new, old = (of_cells(found, "best_validation_bits_per_char") for found in (scan_models, char_models))
    verdicts = [apart(every(old), values) for values in new.values()]
    return together(*verdicts), f"{cell_by_cell(new)} bits/char at the best step, against {cell_by_cell(old)}"


@claim(
    "CTC transcribes in the order of the sound only; attention also writes the string reversed.",
    "ctc_digits",
    source=COURSE,
    where="course 7.7",
)
def alignment_is_monotonic(ctc_digits):
    """Fewer than one label in five wrong counts as transcribed, more than every second as failed. What failed must have
    stopped getting better, or more training might do it: the mean of its last fifth of epochs is within 0.02 of that of
    the fifth before. (Single epochs, which were compared until the first full run, differ by more than that by chance.)
    """
    errors, falling = {}, []
    for run in ctc_digits["runs"]:
        case, curve = f"{run['model']} {run['order']}", run["error"]["greedy"]
        errors.setdefault(case, []).append(curve[-1])
        if case == "CTC reversed":
            fifth = max(1, len(curve) // 5)
            falling.append(fmean(curve[-2 * fifth : -fifth]) - fmean(curve[-fifth:]) > 0.02)
    able = [e < 0.2 for case in ("CTC forwards", "attention forwards", "attention reversed") for e in errors[case]]
    failing = [error > 0.5 for error in errors["CTC reversed"]]
    figures = ", ".join(f"{case} {span(error)}" for case, error in errors.items())
    figures += ", still falling" * any(falling)
    verdict = decided(all(able + failing) and not any(falling), not any(failing))
    ctc, attention = (span(errors[f"{model} reversed"], ".2f") for model in ("CTC", "attention"))
    short = f"reversed {ctc} wrong, attention {attention}"
    return verdict, f"label error rate {figures}; chance {ctc_digits['chance']:.3f}", short
