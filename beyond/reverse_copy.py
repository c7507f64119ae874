"""Copying beside reversing: through one state, are the digits read last the easy ones, or those written first?

Sutskever et al. (2014) fed their encoder the source backwards, so that its first word, which the decoder needs first,
was the last one read. Reversing digits has that built in: the first digit to be written is the last that was read.
Copying hasn't; all else is as in reverse.py. So the first position of a reversal holds the digit read last, the first
position of a copy the digit read first.

    python -m beyond.reverse_copy          6 min

Prints, first:

    reverse, length 10, no attention, seed 0: digits right 0.952, whole sequences right 0.789
    reverse, length 10, no attention, seed 1: digits right 0.973, whole sequences right 0.868
    copy   , length 10, no attention, seed 0: digits right 0.955, whole sequences right 0.814
    copy   , length 10, no attention, seed 1: digits right 0.967, whole sequences right 0.870
    reverse, length 20, no attention, seed 0: digits right 0.802, whole sequences right 0.171
    reverse, length 20, no attention, seed 1: digits right 0.828, whole sequences right 0.206
    copy   , length 20, no attention, seed 0: digits right 0.713, whole sequences right 0.072
    copy   , length 20, no attention, seed 1: digits right 0.683, whole sequences right 0.065
    reverse, length 20, attention   , seed 0: digits right 0.952, whole sequences right 0.864
    reverse, length 20, attention   , seed 1: digits right 0.925, whole sequences right 0.828
    copy   , length 20, attention   , seed 0: digits right 0.972, whole sequences right 0.919
    copy   , length 20, attention   , seed 1: digits right 1.000, whole sequences right 1.000

Through one state twenty digits are more easily reversed than copied, as Sutskever et al. would have it; but the easy
digits are those written first, in a copy those read first. With attention copying is learned better.

Sources: Sutskever, Vinyals and Le (2014), section 3.3; else as seq2seq.py.
"""

from functools import partial
from statistics import mean

import reverse
from lab import plots, script
from reverse import SEEDS, with_details
from seq2seq import Config

MODELS = [(10, False), (20, False), (20, True)]  # length, whether there is attention
TASKS = ["reverse", "copy"]
CONFIGS = [Config(length, attends, seed, task=task) for length, attends in MODELS for task in TASKS for seed in SEEDS]

measure = partial(reverse.sweep, CONFIGS)
tell, options, KINDS = reverse.tell, reverse.options, reverse.KINDS


def draw(found):
    """Digits right by the position at which they were read, mean of the seeds, a panel for each model."""
    figure, panels = plots.subplots(1, len(MODELS), size=(12, 4), sharey=True)
    for axes, (length, attends) in zip(panels, MODELS, strict=True):
        for task in TASKS:
            case = (length, attends, task)
            own = [run for run in with_details(found) if (run["length"], run["attention"], run["task"]) == case]
            read = range(1, length + 1) if task == "copy" else range(length, 0, -1)
            right = [mean(seeds) for seeds in zip(*(run["right_by_position"] for run in own), strict=True)]
            axes.plot(read if right else [], right, label=task)
        axes.set(title=f"length {length}, {'attention' if attends else 'no attention'}")
        axes.set(xlabel="position in the source")
        axes.legend()
    panels[0].set(ylabel=f"digits right, mean of {len(SEEDS)} seeds", ylim=(0, 1.03))
    return figure


if __name__ == "__main__":
    script.run(measure, tell, draw, options)
