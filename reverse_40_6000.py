"""Forty digits through one state, with three times the steps.

reverse.py at length 40 without attention, with 6,000 steps instead of 2,000 at the same learning rate of 3e-3.

    python reverse_40_6000.py          3 min

Prints, first:

    length 40, no attention, seed 0, 6,000 steps, learning rate 0.003: digits right 0.732, whole sequences right 0.015
    length 40, no attention, seed 1, 6,000 steps, learning rate 0.003: digits right 0.728, whole sequences right 0.009

Sources: as seq2seq.py.
"""

from functools import partial

import reverse
from lab import script
from reverse import SEEDS
from seq2seq import Config

STEPS = 6_000
CONFIGS = [Config(40, False, seed, STEPS) for seed in SEEDS]

measure = partial(reverse.sweep, CONFIGS)
tell, draw, options, KINDS = reverse.tell, reverse.draw_models, reverse.options, reverse.KINDS

if __name__ == "__main__":
    script.run(measure, tell, draw, options)
