"""Forty digits and half as many steps again: does more training help?

reverse.py at length 40, with 3,000 steps instead of 2,000 at the same learning rate of 3e-3.

    python reverse_40_longer.py          7 min

Prints, first:

    length 40, no attention, seed 0, 3,000 steps, learning rate 0.003: digits right 0.527, whole sequences right 0.000
    length 40, no attention, seed 1, 3,000 steps, learning rate 0.003: digits right 0.505, whole sequences right 0.000
    length 40, attention   , seed 0, 3,000 steps, learning rate 0.003: digits right 0.201, whole sequences right 0.000
    length 40, attention   , seed 1, 3,000 steps, learning rate 0.003: digits right 0.197, whole sequences right 0.000

It helps without attention. With it, training has come apart: after 2,000 of these steps reverse.py's models had 0.525
and 0.730 of the digits right.

Sources: as seq2seq.py. reverse_40_lr.py, reverse_40_6000.py and beyond/reverse_40_unclipped.py change something else.
"""

from functools import partial

import reverse
from lab import script
from reverse import SEEDS
from seq2seq import Config

STEPS = 3_000
CONFIGS = [Config(40, attends, seed, STEPS) for attends in (False, True) for seed in SEEDS]

measure = partial(reverse.sweep, CONFIGS)
tell, draw, options, KINDS = reverse.tell, reverse.draw_models, reverse.options, reverse.KINDS

if __name__ == "__main__":
    script.run(measure, tell, draw, options)
