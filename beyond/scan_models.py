"""Character models whose state depends on the input alone: three seeds each, beside the recurrent ones and counting.

minGRU and linear attention (layers/scans.py) take the place of the recurrent layer of charlm.py; everything else is as
in char_models.py: width, windows, steps, optimizer, seeds, and the validation text read from end to end with the state
carried along. Neither layer has to go from step to step, because what a character does to the state is the same
whatever was read before it.

Linear attention has the largest loss by far. Its output is a weighted mean of all characters read so far, and the
weights don't depend on where a character stands: this layer knows no positions, so it can't tell the last character
from the first one. With the state carried along through the whole text, more and more characters share the weight. (On
the stretches of 512 characters that the learning curve is made of, it ends at 3.94 to 3.96 bits per character.)

    python -m beyond.scan_models          19 min

Prints, at the end:

    beyond the post: the best step of each learning curve, and models that only count
                                      best step   bits/char there  at the last step
    RNN, 3,000 steps                1,979 ± 274     2.579 ± 0.008     2.597 ± 0.013
    GRU, 3,000 steps                1,082 ± 130     2.455 ± 0.016     2.569 ± 0.003
    LSTM, 3,000 steps               2,253 ± 177     2.469 ± 0.005     2.489 ± 0.016
    minGRU, 3,000 steps             2,871 ± 258     2.806 ± 0.009     2.806 ± 0.009
    linear attention, 3,000 steps   2,214 ± 589     4.125 ± 0.004     4.123 ± 0.006
    add-one, context 2                                      3.494
    Kneser–Ney, context 5                                   2.554
    modified Kneser–Ney, context 19                         2.463
    All score the same 57,279 characters. The best step was chosen on them: that flatters it a little.

The rows of RNN, GRU and LSTM are those saved by char_models.py, those that count by ngram.py and kneser_ney.py.

Departures: the sources stack such layers, with more around each (residual connections, normalisation, feed-forward
layers, a short convolution or positions); here the one layer stands alone, as the recurrent ones do.

Sources: Feng et al., "Were RNNs all we needed?" (2024); Katharopoulos et al., "Transformers are RNNs" (2020).
"""

from char_models import JUDGED, KINDS, SEEDS, options, sweep, tell
from charlm import STEPS
from lab import plots, script

READS = ("ngram", "kneser_ney", "char_models")
CELLS = ["minGRU", "linear attention"]
RUNS = [(cell, seed, STEPS) for cell in CELLS for seed in SEEDS]


def measure(arguments):
    return sweep(arguments, RUNS, beside="char_models")


def draw(found):
    """Learning curves of the six models; beside them every model's best and last figure, with counting as lines."""
    figure, (left, right) = plots.subplots(1, 2, size=(11, 4.4), sharey=True)
    finished = [run for run in found["runs"] if "diverged_at_step" not in run]
    for run, curve in zip(finished, filter(None, found["curves"]), strict=True):
        style = {"color": plots.COLOURS[CELLS.index(run["cell"])], "linewidth": 1.2}
        for part, dash in ("validation", "-"), ("train", "--"):
            label = f"{run['cell']}, {part}" if run["seed"] == SEEDS[0] else None
            left.plot(curve["step"], curve[f"{part}_bits_per_char"], dash, label=label, **style)
    left.set(xscale="log", xlim=(100, None), ylim=(1.4, 4.6), title="While training")
    left.set(xlabel="step", ylabel="bits per character")
    models = found["beside"] + finished
    cells = list(dict.fromkeys(run["cell"] for run in models))
    for name, mark, label in zip(JUDGED[1:], ("o", "x"), ("best step", "last step"), strict=True):
        right.plot([cells.index(run["cell"]) for run in models], [run[name] for run in models], mark, label=label)
    for (name, best), dash in zip(found["counting"].items(), ("--", ":", "-."), strict=False):
        label = f"{name} {best['bits_per_char']:.3f}"
        right.axhline(best["bits_per_char"], color="black", linewidth=1, linestyle=dash, label=label)
    right.set_xticks(range(len(cells)), cells)
    right.set(xlim=(-0.5, len(cells) - 0.5), title="On the validation text, each seed a mark")
    for axes in left, right:
        axes.legend()
    return figure


__all__ = ["KINDS", "draw", "measure", "options", "tell"]

if __name__ == "__main__":
    script.run(measure, tell, draw, options)
