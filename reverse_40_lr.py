"""Forty digits at a third of the learning rate, with which the post's attention reverses them.

reverse.py at length 40, with 3,000 steps and a learning rate of 1e-3 instead of 3e-3.

    python reverse_40_lr.py          7 min

Prints, first:

    length 40, no attention, seed 0, 3,000 steps, learning rate 0.001: digits right 0.235, whole sequences right 0.000
    length 40, no attention, seed 1, 3,000 steps, learning rate 0.001: digits right 0.240, whole sequences right 0.000
    length 40, attention   , seed 0, 3,000 steps, learning rate 0.001: digits right 0.968, whole sequences right 0.922
    length 40, attention   , seed 1, 3,000 steps, learning rate 0.001: digits right 0.971, whole sequences right 0.945

Sources: as seq2seq.py.
"""

from functools import partial

import reverse
from lab import script
from reverse import SEEDS
from seq2seq import Config

STEPS, LEARNING_RATE = 3_000, 1e-3
CONFIGS = [Config(40, attends, seed, STEPS, LEARNING_RATE) for attends in (False, True) for seed in SEEDS]

measure = partial(reverse.sweep, CONFIGS)
tell, draw, options, KINDS = reverse.tell, reverse.draw_models, reverse.options, reverse.KINDS

if __name__ == "__main__":
    script.run(measure, tell, draw, options)
