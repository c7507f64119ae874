"""How many steps a cell learns to remember one bit for, each given enough training to solve it, or plainly not to.

The first input is 0 or 1, noise follows for a delay of T steps, and the last output has to say which it was
(layers/one_bit.py has the task and the models). The delay doubles from 5 to 2,560, for each model until one isn't
learned any more. At each delay are tried:

    1   two seeds at the learning rate that served at the delay before (at the first one: at 0.001, 0.003 and 0.01)
    2   where not both solve it, two seeds at each of the other rates
    3   where any has solved it, three seeds more at the best rate

Solved is: 90% of 100 fresh sequences right, three times in a row, looked at every 25 steps; the training ends there.
Else it ends with its budget, 6,000 steps of 32 sequences up to a delay of 160, fewer beyond, as each line says. A delay
is learned if most of the five seeds solve it. Where the budget may be why a delay isn't learned, the answer is that it
can't be told: where some seed did solve it, where one that didn't was above chance in the end, where the delay before
took some seed more than half of the budget, or where four times the budget is enough (up to a delay of 80 that is
tried with one seed at each rate).

    python -m beyond.recall          49 min
    python -m beyond.recall --cap 20 --budget 200          less to try than the whole sweep

Prints, at the end:

    the longest delay that was learned
    RNN                 : 2,560, and none longer was tried
    RNN, identity       : 80; whether 160 can't be told
    GRU                 : 80; whether 160 can't be told
    GRU, chrono         : 1,280; whether 2,560 can't be told
    LSTM                : 10; whether 20 can't be told
    LSTM, forget bias 1 : 40, but not 80
    LSTM, forget bias 3 : 160; whether 320 can't be told
    LSTM, chrono        : 640; whether 1,280 can't be told
    LSTM, forget bias -5: 5; whether 10 can't be told
    minGRU              : 40; whether 80 can't be told
    linear attention    : 1,280; whether 2,560 can't be told
    state space         : 1,280; whether 2,560 can't be told
    Transformer         : 2,560, and none longer was tried

The first edition of this experiment gave every model 600 steps at a rate of 0.001, and took for memory what was its
budget and its rate: the GRU learns 80 steps, given 0.01 and 4,400. Of the LSTM as torch draws it the budget decides
still: one training of three solved 20 steps, after 12,125. What moves the limit is the start: at chrono biases 640 to
1,280 steps take a few hundred, a Transformer learns any delay in about a hundred. And a plain RNN learns them all at a
rate of 0.01, most seeds of five, though from 320 steps on no gradient arrives at the bit that float32 could hold. It
tells the bit, but it hardly holds it: asked a step later, most can't (recall_cut.py). recall_why.py looks at the LSTM's
bias and at what remembering does to the gradient.

This script is longer than others because what it tries next depends on what it has found, and because "it can't" has to
be told from "it wasn't given enough".

Sources: KnowML's course page "Sequence Modeling Pre-Transformer", section 7, for the task and its sweep; Bengio, Simard
and Frasconi (1994); Hochreiter and Schmidhuber (1997); Gers, Schmidhuber and Cummins (2000); Cho et al. (2014); Le,
Jaitly and Hinton (2015); Tallec and Ollivier (2018) for chrono. The course leaves open how large the noise is.
"""

from statistics import median

from lab import plots, script, searches
from layers.one_bit import MODELS, fewest_above_chance
from layers.one_bit_training import SETTINGS, TESTED, Config, train

DELAYS = [5 * 2**doublings for doublings in range(10)]  # steps between the bit and the end: 5 to 2,560
BUDGET = 6000  # steps of a training at most …
FEWER = {320: 1600, 640: 1000, 1280: 700, 2560: 500}  # … but at these delays, where a step takes so long
PATIENCE, PATIENT = 4, 80  # how many budgets are tried where no rate solves it, and up to which delay
RATES = [0.001, 0.003, 0.01]
SEEDS = range(3, 8)  # 0 to 2 served to choose noise, batch and rates, in short trainings
FIRST = 2  # seeds that are tried before the others
UNDERFLOW = 1e-46  # where the figure shows a gradient that float32 can't hold


KINDS = {"*": "trained", **{f"runs.*.{name}": "setting" for name in SETTINGS}}


def search(cell, delays, budget, device):
    """Which trainings of a model come next: yields lists of configurations, and is sent their records."""

    def configs(rates, seeds, times=1):
        steps = times * min(budget, FEWER.get(delay, budget))
        return [Config(cell, delay, seed, rate, steps, device=device) for rate in rates for seed in seeds]

    served = None
    for delay in delays:
        runs = yield configs([served] if served else RATES, SEEDS[:FIRST])
        if served and len(solved(runs)) < FIRST:
            runs = runs + (yield configs([rate for rate in RATES if rate != served], SEEDS[:FIRST]))
        if solved(runs):
            served = best_rate(runs)
            runs = runs + (yield configs([served], SEEDS[FIRST:]))
        elif delay <= PATIENT:
            yield configs(RATES, SEEDS[:1], PATIENCE)
        if not is_learned(runs):
            return


def solved(runs):
    return [run for run in runs if run.get("solved_at")]


def best_rate(runs):
    """The rate at which most seeds solved it, of several such rates the one that took the fewest steps."""

    def merit(rate):
        steps = [run["solved_at"] for run in solved(runs) if run["learning_rate"] == rate]
        return len(steps), -median(steps or [0])

    return max(dict.fromkeys(run["learning_rate"] for run in runs), key=merit)


def at_best_rate(runs):
    rate = best_rate(runs)
    return [run for run in runs if run["learning_rate"] == rate]


def is_learned(runs):
    """Whether most of all the seeds have solved it at the best rate."""
    return 2 * len(solved(at_best_rate(runs))) > len(SEEDS)


def of_cell(runs, cell):
    """A model's runs at each delay, and those with more than the usual budget: two dictionaries by delay."""
    usual, patient = {}, {}
    for run in runs:
        if run["cell"] == cell:
            budget = usual.get(run["delay"], [run])[0]["steps"]
            (usual if run["steps"] == budget else patient).setdefault(run["delay"], []).append(run)
    return usual, patient


def reach_of(runs, cell):
    """The longest delay that a model learned (0: none), the first that it didn't (None: none), and why that may be."""
    usual, patient = of_cell(runs, cell)
    longest = max((delay for delay, own in usual.items() if is_learned(own)), default=0)
    failed = min((delay for delay in usual if delay > longest), default=None)
    why = []
    if failed:
        own = usual[failed]
        if ended_well := solved(own):
            why.append(f"{len(ended_well)} of {len(own)} trainings solved it")
        if any(run.get("accuracy", 0) * TESTED >= fewest_above_chance(TESTED) for run in own if run not in ended_well):
            why.append("one that didn't solve it was above chance")
        if longest and 2 * max(run["solved_at"] for run in solved(at_best_rate(usual[longest]))) > own[0]["steps"]:
            why.append("the delay before took more than half of the budget")
        if more := solved(patient.get(failed, [])):
            why.append(f"{len(more)} of {len(patient[failed])} with {more[0]['steps']:,} steps solved it")
    return {"delay": longest, "not_learned": failed, "budget_may_be_why": why}


def measure(arguments):
    delays = [delay for delay in DELAYS if delay <= arguments.cap]
    asking = [search(cell, delays, arguments.budget, arguments.device) for cell in MODELS]
    runs = searches.run(train, asking, arguments, line=briefly)
    return {"seeds": SEEDS, "reach": {cell: reach_of(runs, cell) for cell in MODELS}, "runs": runs}


def briefly(run):
    """What is told of a training as soon as it ends."""
    name = f"{run['cell']}, delay {run['delay']:,}, rate {run['learning_rate']:g}, seed {run['seed']}"
    return f"{name}: " + (f"solved at step {run['solved_at']:,}" if run["solved_at"] else "not solved")


def tell(found):
    yield "seeds that solved it at the best rate, after how many steps (median, range), the rate, the budget of steps;"
    yield "gradient at h_1 before -> after training; how much of a step's gradient is about the bit, before training"
    for cell in found["reach"]:
        usual, patient = of_cell(found["runs"], cell)
        for delay, runs in usual.items():
            yield line(runs)
            if delay in patient:
                yield line(patient[delay])
    yield ""
    for cell, reach in found["reach"].items():
        if reach["budget_may_be_why"]:
            yield f"{cell:<20}: {reach['not_learned']:,} can't be told; {'; '.join(reach['budget_may_be_why'])}"
    yield ""
    blind = [run["accuracy_without_the_bit"] for run in found["runs"] if "accuracy" in run]
    bound = fewest_above_chance(TESTED) / TESTED
    if blind:
        yield f"with the bit set to 0 in the test: {min(blind):.3f} to {max(blind):.3f} right in {len(blind)} models"
    yield f"a guesser is between {1 - bound:.3f} and {bound:.3f} all but twice in 10,000 times"
    yield ""
    yield "the longest delay that was learned"
    for cell, reach in found["reach"].items():
        yield f"{cell:<20}: {told_reach(reach)}"


def line(runs):
    """One model at one delay."""
    first, own, rates = runs[0], at_best_rate(runs), len({run["learning_rate"] for run in runs})
    steps = sorted(run["solved_at"] for run in solved(own))
    result = f"0 of {len(runs)}, at {rates} rates"
    if steps:
        taken = f"{median(steps):,.0f} steps ({steps[0]:,} to {steps[-1]:,})"
        result = f"{len(steps)} of {len(own)}, {taken}, rate {own[0]['learning_rate']:g}"
    return f"{first['cell']:<20} delay {first['delay']:>5,}: {result:<46} of {first['steps']:>6,}; {sizes(own)}"


def sizes(runs):
    """The gradient at h_1 and the bit's share, medians of the models. What is exactly 0 was too small for float32."""
    if not (own := [run for run in runs if "accuracy" in run]):
        return "the loss is not finite"
    each = [median(run[f"gradient_{when}"] for run in own) for when in ("before", "after")]
    told = " -> ".join(f"{size:.1e}" if size else "underflow" for size in each)
    return f"{told}; {median(run['share_of_the_bit'] for run in own):.0e}"


def told_reach(reach):
    longest = f"{reach['delay']:,}" if reach["delay"] else "none"
    if reach["not_learned"] is None:
        return f"{longest}, and none longer was tried"
    if reach["budget_may_be_why"]:
        return f"{longest}; whether {reach['not_learned']:,} can't be told"
    return f"{longest}, but not {reach['not_learned']:,}"


def draw(found):
    """Share of seeds that solve it, and their steps, against the delay; the gradient at the first state beside them."""
    figure, panels = plots.subplots(1, 3, size=(15.0, 5.0))
    for number, cell in enumerate(found["reach"]):
        usual = {delay: at_best_rate(runs) for delay, runs in of_cell(found["runs"], cell)[0].items()}
        again, number = divmod(number, len(plots.COLOURS))
        style = {"color": plots.COLOURS[number], "marker": plots.MARKERS[number], "fillstyle": ("full", "none")[again]}
        points = [{}, {}, {}]
        for delay, runs in usual.items():
            points[0][delay] = len(solved(runs)) / len(SEEDS)
            if solved(runs):
                points[1][delay] = median(run["solved_at"] for run in solved(runs))
            if sizes := [run["gradient_before"] for run in runs if "accuracy" in run]:
                points[2][delay] = median(sizes) or UNDERFLOW
        for axes, curve in zip(panels, points, strict=True):
            axes.plot(list(curve), list(curve.values()), label=cell, markersize=4.5, **style)
    share, steps, gradient = panels
    for axes in panels:
        axes.set(xscale="log", xlabel="delay (steps)", xlim=(DELAYS[0] / 1.3, DELAYS[-1] * 1.3))
        axes.set_xticks(DELAYS, [f"{delay:,}" for delay in DELAYS], minor=False, fontsize=7)
        axes.minorticks_off()
    share.set(ylabel="share of five seeds that solve it, at the best rate", title="One bit remembered")
    steps.set(yscale="log", ylabel="steps until it is solved (median)", title="How long that took to learn")
    steps.set_ylim(10, BUDGET)
    gradient.set(yscale="log", ylabel="size of the gradient at the first state", ylim=(UNDERFLOW / 10, 10))
    gradient.set_title("What reaches it, untrained (bottom: underflow)")
    gradient.legend(fontsize=7, ncols=2)
    return figure


def options(parser):
    parser.add_argument("--budget", type=script.positive_int, default=BUDGET, metavar="N", help="steps of a training")
    parser.add_argument("--cap", type=int, choices=DELAYS, default=DELAYS[-1], help="the longest delay to try")
    parser.add_jobs()
    parser.add_device()


if __name__ == "__main__":
    script.run(measure, tell, draw, options)
