"""Two layers that scan and know what stands where, as character models: a selective state space, and fading attention.

The layers of layers/selective.py take the place of the recurrent layer of charlm.py; everything else is as in
char_models.py and beyond/scan_models.py: width, windows, steps, optimizer, seeds, and the validation text read from end
to end with the state carried along.

    python -m beyond.ladder_models          12 min

Prints, at the end:

                                           best step   bits/char there  at the last step
    minGRU, 3,000 steps                  2,871 ± 258     2.806 ± 0.009     2.806 ± 0.009
    linear attention, 3,000 steps        2,214 ± 589     4.125 ± 0.004     4.123 ± 0.006
    selective state space, 3,000 steps   3,000 ± 197     2.833 ± 0.016     2.833 ± 0.016
    fading attention, 3,000 steps        3,000 ± 197             3.211             3.211
    add-one, context 2                                           3.494
    Kneser–Ney, context 5                                        2.554
    modified Kneser–Ney, context 19                              2.463

To fade is worth nine tenths of a bit to linear attention; to select is worth nothing here. Both layers are best at
their last step: with more of them they would get further.

The state space is trained with three seeds. Of fading attention there is one: it is compared with linear attention,
from which it is expected to be a whole bit apart, many times what lies between seeds.

Linear attention as beyond/scan_models.py trains it knows no positions: it sees a bag of characters. Fading attention is
the same layer with as many parameters, in eight heads whose weights halve with every 1, 2, 4, … 128 characters. Here
that stands for positions: layers/selective.py says why, and not rotary ones.

Departures: Mamba puts a convolution over four characters before its state space, a gate beside it, and stacks dozens of
such layers; here one layer stands alone, as the others do.

Sources: Gu and Dao, "Mamba" (2023); Sun et al., "Retentive network" (2023).
"""

from char_models import KINDS, SEEDS, options, sweep, tell
from charlm import STEPS
from lab import plots, script
from layers.selective import LAYERS

CELLS = list(LAYERS)
READS = ("ngram", "kneser_ney", "scan_models")
RUNS = [("selective state space", seed, STEPS) for seed in SEEDS] + [("fading attention", SEEDS[0], STEPS)]


def measure(arguments):
    return sweep(arguments, RUNS, beside="scan_models")


def draw(found):
    """Learning curves of both layers; dotted, the best of each layer that they are compared with."""
    figure, axes = plots.subplots(size=(8, 4.6))
    for run, curve in zip(found["runs"], found["curves"], strict=True):
        if not curve:
            continue
        style = {"color": plots.COLOURS[CELLS.index(run["cell"])], "linewidth": 1.2}
        for part, dash in ("validation", "-"), ("train", "--"):
            label = f"{run['cell']}, {part}" if run["seed"] == SEEDS[0] else None
            axes.plot(curve["step"], curve[f"{part}_bits_per_char"], dash, label=label, **style)
    for number, cell in enumerate(dict.fromkeys(run["cell"] for run in found["beside"])):
        best = min(run["best_validation_bits_per_char"] for run in found["beside"] if run["cell"] == cell)
        style = {"color": plots.COLOURS[len(CELLS) + number], "linestyle": ":", "linewidth": 1}
        axes.axhline(best, label=f"{cell} {best:.3f}", **style)
    axes.set(xscale="log", xlim=(100, None), ylim=(1.4, 4.6), xlabel="step", ylabel="bits per character")
    axes.set_title("While training, each seed a line")
    axes.legend()
    return figure


__all__ = ["KINDS", "draw", "measure", "options", "tell"]

if __name__ == "__main__":
    script.run(measure, tell, draw, options)
