"""What the post concludes from its figures, and what is claimed beyond it, as code that judges the saved outputs.

    python rerun.py --claims

Each claim names the outputs it needs and returns a verdict with the figures it rests on. A claim about trained models
holds if it holds for every seed, does not hold if the opposite holds for every seed, and cannot be told otherwise;
spans are from the lowest to the highest of the seeds. The same code judges the figures that the post printed: where the
two verdicts differ and the claim is about models of text, it is the text that differs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from lab import results
from lab.errors import SAVED, UserError

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "cannot be told"
CLAIMS = []


@dataclass(frozen=True)
class Claim:
    """A sentence of the post, the experiments whose outputs it needs, and the function that judges their results."""

    sentence: str
    needs: tuple[str, ...]
    judge: Callable[..., tuple[str, str]]

    def verdict(self, folder: Path = SAVED) -> tuple[str, str]:
        """The verdict on what ``folder`` holds, and the figures behind it."""
        try:
            found = [results.load(name, folder)["results"] for name in self.needs]
        except UserError as error:
            return UNDECIDED, str(error)
        with results.understood(*(Path(folder) / f"{name}.json" for name in self.needs)):
            return self.judge(*found)

    def on_published(self, published: dict) -> tuple[str, str] | None:
        """The same for the figures that the post printed, or None where it printed less than the claim looks at."""
        try:
            return self.judge(*(published[name] for name in self.needs))
        except KeyError:
            return None

    def reads_the_text(self, published: dict) -> bool:
        """Whether it rests on figures that another text changes."""
        return any(published.get(name, {}).get("kind") == "corpus" for name in self.needs)


def tell(folder: Path, published: dict):
    """Print each claim with its verdict and the figures behind it, ours and the post's."""
    for claim in CLAIMS:
        verdict, figures = claim.verdict(folder)
        print(f"{claim.sentence}\n    {verdict}: {figures}")
        if posts := claim.on_published(published):
            own = "the post, on its own text" if claim.reads_the_text(published) else "the post"
            print(f"    {own}: {posts[0]}: {posts[1]}")


def claim(sentence: str, *needs: str):
    """Declare the decorated function, which takes the results of ``needs``, as a claim's judge."""

    def declare(judge):
        CLAIMS.append(Claim(sentence, needs, judge))
        return judge

    return declare


def decided(always: bool, never: bool) -> str:
    """The verdict where something is true of every seed, of none, or of some."""
    return HOLDS if always else FAILS if never else UNDECIDED


def apart(low: list[float], high: list[float]) -> str:
    """Whether every number of ``low`` is below every one of ``high``."""
    return decided(max(low) < min(high), min(low) >= max(high))


def span(values: list[float], form: str = ".3f") -> str:
    """``2.694`` for one value, ``2.690 to 2.696`` for several."""
    low, high = format(min(values), form), format(max(values), form)
    return low if low == high else f"{low} to {high}"


@claim("A linear network's gradient vanishes below radius 1, stays at 1 and explodes above it.", "vanishing")
def radius_decides(vanishing):
    ends = {c["radius"]: c["sizes"][-1] for c in vanishing["gradient_size"] if c["activation"] == "linear"}
    right = ends[0.9] < 0.1 and abs(ends[1.0] - 1) < 1e-6 and ends[1.1] > 10
    return decided(right, not right), "after 50 steps " + ", ".join(f"{end:.1e} at {r}" for r, end in ends.items())


@claim("It is the inputs that make a tanh network's gradient vanish, not tanh alone.", "vanishing")
def inputs_decide(vanishing):
    driven, free = (
        next(
            c["sizes"][-1]
            for c in vanishing["gradient_size"]
            if (c["radius"], c["activation"], c.get("inputs", True)) == (1.1, "tanh", inputs)
        )
        for inputs in (True, False)
    )
    right = driven < 1e-3 < 0.1 < free
    return decided(right, not right), f"at radius 1.1 after 50 steps {driven:.1e} with inputs, {free:.1e} without"


@claim("The head start of gated cells is set by one bias.", "gates")
def bias_decides(gates):
    ends = [gates["gradient_size"][f"LSTM, forget bias {bias}"][-1] for bias in (0, 1, 3)]
    right = ends[0] * 1000 < ends[1] and ends[1] * 1000 < ends[2]
    return decided(right, not right), "50 steps back {:.1e} / {:.1e} / {:.1e} at forget bias 0 / 1 / 3".format(*ends)


@claim("Add-one smoothing stops improving at two characters of context.", "ngram")
def add_one_stops(ngram):
    bits = ngram["bits_per_char"]
    right = min(bits) == bits[ngram["context"].index(2)]
    figures = " / ".join(f"{b:.3f}" for b in bits)
    return decided(right, not right), f"{figures} bits/char at contexts 0 to {ngram['context'][-1]}"


@claim("Kneser–Ney goes on improving to five or six characters.", "kneser_ney")
def kneser_ney_goes_on(kneser_ney):
    bits = dict(zip(kneser_ney["context"], kneser_ney["bits_per_char"], strict=True))
    best = min(bits, key=bits.get)
    right = best in (5, 6)
    figures = " / ".join(f"{b:.3f}" for b in bits.values())
    return decided(right, not right), f"best at {best}: {figures} bits/char at contexts 1 to {max(bits)}"


@claim(
    "Kneser–Ney beats every recurrent model, as long as those are trained for 3,000 steps.", "kneser_ney", "char_models"
)
def counting_beats_training(kneser_ney, char_models):
    counted = min(kneser_ney["bits_per_char"])
    trained = of_cells(char_models, "validation_bits_per_char")
    each = [apart([counted], bits) for bits in trained.values()]
    verdict = decided(set(each) == {HOLDS}, FAILS in each)  # one cell that is always better is enough
    figures = f"{counted:.3f} bits/char; {cell_by_cell(trained)}"
    if "best_step" in char_models["runs"][0]:  # the post printed the last step alone
        figures += f"; at the best step {cell_by_cell(of_cells(char_models, 'best_validation_bits_per_char'))}"
    return verdict, figures


@claim("A hidden Markov model with one state is counting without context.", "hmm")
def one_state_is_counting(hmm):
    one = [run["validation_bits_per_char"] for run in hmm["runs"] if run["states"] == 1]
    counted = hmm["add_one"]["bits_per_char"][0]
    gap = max(abs(bits - counted) for bits in one)
    return decided(gap < 1e-9, gap >= 1e-9), f"{counted:.6f} bits/char, {gap:.0e} apart"


@claim("More hidden states are better, and still 64 of them know less than two characters tell.", "hmm")
def states_help(hmm):
    """A gain too small for hmm.py to go on training for it is none: states that are still alike can have it."""
    tolerance = hmm["runs"][0]["tolerance"]
    bits = {}
    for run in hmm["runs"]:
        bits.setdefault(run["states"], []).append(run["validation_bits_per_char"])
    two = hmm["add_one"]["bits_per_char"][2]
    falls = [apart([b + tolerance for b in bits[more]], bits[fewer]) for fewer, more in pairwise(sorted(bits))]
    verdict = decided(set(falls) == {HOLDS} and min(bits[64]) > two, FAILS in falls or max(bits[64]) <= two)
    figures = ", ".join(f"{span(values)} with {states}" for states, values in bits.items())
    return verdict, f"{figures}; two characters, add-one: {two:.3f} bits/char"


def of_cells(results: dict, name: str) -> dict[str, list[float]]:
    """A figure of all seeds, cell by cell."""
    cells = {}
    for run in results["runs"]:
        cells.setdefault(run["cell"], []).append(run[name])
    return cells


def cell_by_cell(figures: dict[str, list[float]]) -> str:
    return ", ".join(f"{cell} {span(values)}" for cell, values in figures.items())


@claim("After 3,000 steps the LSTM leads.", "char_models")
def lstm_leads(char_models):
    bits = of_cells(char_models, "validation_bits_per_char")
    others = [value for cell, values in bits.items() if cell != "LSTM" for value in values]
    return apart(bits["LSTM"], others), f"validation {cell_by_cell(bits)} bits/char"


@claim("All three cells overfit.", "char_models")
def all_overfit(char_models):
    runs = char_models["runs"]
    past = [run["best_step"] < run["steps"] for run in runs]
    gaps = of_cells(
        {"runs": [run | {"gap": run["validation_bits_per_char"] - run["train_bits_per_char"]} for run in runs]}, "gap"
    )
    steps = {cell: span(values, ",.0f") for cell, values in of_cells(char_models, "best_step").items()}
    figures = f"validation above training by {cell_by_cell(gaps)} bits/char; best at step " + ", ".join(
        f"{cell} {step}" for cell, step in steps.items()
    )
    return decided(all(past), not any(past)), figures


@claim("Longer training makes each of them worse on new text.", "char_models", "char_models_long")
def longer_is_worse(char_models, char_models_long):
    short, long = (of_cells(found, "validation_bits_per_char") for found in (char_models, char_models_long))
    verdicts = {apart(short[cell], long[cell]) for cell in long}
    figures = "; ".join(f"{cell} {span(short[cell])} then {span(long[cell])}" for cell in long)
    return verdicts.pop() if len(verdicts) == 1 else UNDECIDED, f"{figures} bits/char at 3,000 then 12,000 steps"


def whole(results: dict, attention: bool, length: int, name: str = "sequences_right") -> list[float]:
    """The shares of whole sequences right, one for each seed."""
    return [
        run[name]
        for run in results["runs"]
        if (run["attention"], run["length"]) == (attention, length) and "diverged_at_step" not in run
    ]


def of_attention(results: dict, name: str) -> list[float]:
    """A figure of all the seeds with attention."""
    return [run[name] for run in results["runs"] if run["attention"]]


@claim("At length 5 both models reverse almost everything.", "reverse")
def short_is_easy(reverse):
    without, having = whole(reverse, False, 5), whole(reverse, True, 5)
    share = [*without, *having]
    figures = f"whole sequences right {span(without)} without attention, {span(having)} with"
    return decided(min(share) > 0.9, max(share) <= 0.9), figures


@claim("Without attention, whole-sequence accuracy collapses with length.", "reverse")
def bottleneck(reverse):
    shares = {length: whole(reverse, False, length) for length in (5, 10, 20, 40)}
    falls = all(min(shares[a]) > max(shares[b]) for a, b in ((5, 10), (10, 20), (20, 40)))
    figures = ", ".join(f"{span(values)} at {length}" for length, values in shares.items())
    return decided(falls and max(shares[40]) < 0.1, min(shares[40]) > 0.5), f"whole sequences right {figures}"


@claim("At its better learning rate attention wins by far at 40 digits.", "reverse_40_lr", "reverse_40_6000")
def attention_wins(reverse_40_lr, reverse_40_6000):
    having = whole(reverse_40_lr, True, 40)
    without = whole(reverse_40_6000, False, 40)
    figures = (
        f"whole sequences right {span(having)}, against {span(without)} without attention at its best (6,000 steps)"
    )
    return decided(min(having) > max(without) + 0.5, max(having) <= min(without)), figures


@claim(
    "Attention fails at 40 digits because the learning rate of 3e-3 is too high for it.",
    *(f"reverse_40_{how}" for how in ("lr", "longer", "unclipped")),
)
def rate_spoils_attention(lr, longer, unclipped):
    low, high, wild = (of_attention(found, "digits_right") for found in (lr, longer, unclipped))
    figures = (
        f"digits right {span(low)} at 1e-3; at 3e-3 {span(high)}, and {span(wild)} where the gradient isn't clipped"
    )
    return decided(min(low) > max(high), max(low) <= min(high)), figures


@claim("Through one state the digits read last are the easy ones, whatever is to be written.", "reverse_copy")
def last_read_is_easy(reverse_copy):
    halves = {"reverse": [], "copy": []}
    for run, detail in zip(reverse_copy["runs"], reverse_copy["details"], strict=True):
        if not run["attention"]:
            right = detail["right_by_position"]
            read = right if run["task"] == "copy" else right[::-1]  # in the order in which they were read
            middle = len(read) // 2
            halves[run["task"]].append((fmean(read[:middle]), fmean(read[middle:])))
    later = {task: [late > early for early, late in pairs] for task, pairs in halves.items()}
    figures = "; ".join(
        f"{task}: {span([early for early, _ in pairs])} of the first half read right,"
        f" {span([late for _, late in pairs])} of the second"
        for task, pairs in halves.items()
    )
    return decided(all(map(all, later.values())), not all(map(any, later.values()))), figures


@claim("Through one state it is easier to reverse than to copy.", "reverse_copy")
def reversing_is_easier(reverse_copy):
    digits = {}
    for run in reverse_copy["runs"]:
        if not run["attention"]:
            digits.setdefault(run["length"], {}).setdefault(run["task"], []).append(run["digits_right"])
    verdicts = {apart(tasks["copy"], tasks["reverse"]) for tasks in digits.values()}
    figures = "; ".join(
        f"length {length}: " + ", ".join(f"{task} {span(right)}" for task, right in tasks.items())
        for length, tasks in digits.items()
    )
    return verdicts.pop() if len(verdicts) == 1 else UNDECIDED, f"digits right, {figures}"


@claim("CTC transcribes in the order of the sound only; attention also writes the string reversed.", "ctc_digits")
def alignment_is_monotonic(ctc_digits):
    """Fewer than one label in five wrong counts as transcribed, more than every second as failed."""
    errors = {}
    for run in ctc_digits["runs"]:
        errors.setdefault(f"{run['model']} {run['order']}", []).append(run["error"]["greedy"][-1])
    able = [
        error < 0.2 for case in ("CTC forwards", "attention forwards", "attention reversed") for error in errors[case]
    ]
    failing = [error > 0.5 for error in errors["CTC reversed"]]
    figures = ", ".join(f"{case} {span(error)}" for case, error in errors.items())
    return decided(
        all(able + failing), not any(failing)
    ), f"label error rate {figures}; chance {ctc_digits['chance']:.3f}"


@claim("A GRU takes longer than attention, though it computes less.", "parallel")
def serial_costs(parallel):
    gru, attention = parallel["GRU"], parallel["attention"]
    right = gru["GFLOPs"] < attention["GFLOPs"] and gru["ms"] > attention["ms"]
    figures = (
        f"{gru['GFLOPs']:.2f} GFLOPs in {gru['ms']:.1f} ms against {attention['GFLOPs']:.2f} in {attention['ms']:.1f}"
    )
    return decided(right, not right), figures


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
    return decided(right, not right), f"measured {', '.join(told)}; by the fitted models {' and '.join(fitted)}"


@claim("The next token costs an RNN the same after any context; what attention's cache costs grows.", "generation")
def a_token_stays_cheap(generation):
    slopes = {batch: generation[f"batch_{batch}"]["slopes"] for batch in generation["batches"]}
    right = [s["GRU"]["ms"] < 0.2 and s["cached attention"]["ms"] > 0.5 for s in slopes.values()]
    told = [f"{s['GRU']['ms']:.2f} and {s['cached attention']['ms']:.2f} at batch {b}" for b, s in slopes.items()]
    return decided(all(right), not any(right)), f"time grows with the context to the power of {', '.join(told)}"


@claim("A scan shortens the way through the computation, not the gradient's; attention shortens both.", "path_length")
def no_short_cut_for_gradients(path_length):
    length, powers = path_length["length"], path_length["at_token_1"]
    operations = path_length["steps"]["recurrence, by a scan"]["operations"]
    right = operations <= 2 * length.bit_length() and max(powers["minGRU"]) < -45 and min(powers["attention"]) > -4
    figures = ", ".join(f"{name} 10^{min(p):.0f} to 10^{max(p):.0f}" for name, p in powers.items())
    return decided(right, not right), f"{operations} operations by a scan; at token 1 of {length:,}: {figures}"


@claim("A recurrence whose gates read the input alone is the same step by step and as a parallel scan.", "scan")
def scan_is_the_loop(scan):
    gaps = [gap for pair in scan["gaps"].values() for gap in pair.values()]
    weights = scan["trained_both_ways"]["weights"]
    right = max(*gaps, weights) < 1e-10
    return decided(right, not right), f"forms at most {max(gaps):.0e} apart, trained weights {weights:.0e} (float64)"


@claim("A scan trains faster than a GRU's serial steps, and than attention on long sequences.", "scan_lengths")
def scan_is_faster(scan_lengths):
    lengths, ms = scan_lengths["lengths"], scan_lengths["forward and backward"]["ms"]
    ours, rivals = ms["minGRU, scan"], [ms[name] for name in ("GRU", "attention", "fused attention")]
    right = all(a < b for a, b in zip(ours, rivals[0], strict=True)) and all(ours[-1] < rival[-1] for rival in rivals)
    last = f"{ours[-1]:.0f} ms against " + " / ".join(f"{rival[-1]:.0f}" for rival in rivals)
    return decided(right, not right), f"{last} (GRU / attention / fused) at {lengths[-1]:,} steps, forward and backward"


@claim(
    "What trains in parallel pays for it: as one layer it models characters worse than any recurrent cell.",
    "scan_models",
    "char_models",
)
def parallel_pays(scan_models, char_models):
    new, old = (of_cells(found, "best_validation_bits_per_char") for found in (scan_models, char_models))
    recurrent = [bits for values in old.values() for bits in values]
    each = [apart(recurrent, values) for values in new.values()]
    verdict = decided(set(each) == {HOLDS}, set(each) == {FAILS})
    return verdict, f"{cell_by_cell(new)} bits/char at the best step, against {cell_by_cell(old)}"


@claim("A plain RNN remembers for 10 to 20 steps, gated cells for several hundred.", "recall")
def gates_remember(recall):
    """Several hundred: a delay of 320 or more. What a cell remembers are the delays below the one at which it drops."""
    drops = recall["drops_to_chance_at"]
    gated = ["GRU", "LSTM", "LSTM, forget bias 1", "LSTM, forget bias 3"]
    far = [drops[cell] is None or drops[cell] > 320 for cell in gated]
    right = drops["RNN"] in (20, 40) and all(far)
    figures = ", ".join(f"{cell} {drops[cell]:,}" if drops[cell] else f"{cell} none tried" for cell in ["RNN", *gated])
    return decided(right, not right), f"at chance from a delay of: {figures}"


@claim("Reading both ways shows a tagger what comes after; it carries no gradient any further.", "bidirectional")
def both_ways_cure_blindness(bidirectional):
    """Right by guessing alone: at most four standard deviations of 2,000 tests above a forward reader's ceiling."""
    task = "what comes after"
    runs = [run for run in bidirectional["runs"] if run["task"] == task]
    guessing = bidirectional["ceiling"][task]["forward"] + 4 * (0.25 / 2000) ** 0.5

    def right(cell, reader, distance):
        return [r["accuracy"] for r in runs if (r["cell"], r["reader"], r["distance"]) == (cell, reader, distance)]

    forward = [run["accuracy"] for run in runs if run["reader"] == "forward"]
    near, far = right("RNN", "both", 5), right("RNN", "both", 80)
    each = [share <= guessing for share in forward + far] + [share > 0.9 for share in near]
    figures = f"forwards {span(forward)}; a plain RNN both ways {span(near)} five words away, {span(far)} eighty away"
    return decided(all(each), max(near) <= guessing or min(far) > guessing), figures
