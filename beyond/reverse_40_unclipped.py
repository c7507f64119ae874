"""Forty digits at the first learning rate without clipping the gradient: is it the learning rate that spoils attention?

The post blames attention's failure at length 40 on a learning rate of 3e-3, and mends it with 1e-3. All other trainings
of this family shorten a gradient whose norm is above 1 to 1 before the step (Pascanu et al., 2013); these do not. Else
they are those of reverse_40_longer.py.

    python -m beyond.reverse_40_unclipped          8 min

Prints, first:

    length 40, no attention, seed 0, 3,000 steps, learning rate 0.003, not clipped: digits right 0.589, whole sequences right 0.002
    length 40, no attention, seed 1, 3,000 steps, learning rate 0.003, not clipped: digits right 0.565, whole sequences right 0.001
    length 40, attention   , seed 0, 3,000 steps, learning rate 0.003, not clipped: digits right 0.176, whole sequences right 0.000
    length 40, attention   , seed 1, 3,000 steps, learning rate 0.003, not clipped: digits right 0.194, whole sequences right 0.000

It is the learning rate: clipped or not, attention comes to nothing at 3e-3, and at 1e-3 it learns (reverse_40_lr.py).
Clipping only puts it off.

Sources: Pascanu, Mikolov and Bengio (2013) for clipping; else as seq2seq.py.
"""  # noqa: E501

from functools import partial

import reverse
from lab import script
from reverse import SEEDS
from seq2seq import Config

STEPS = 3_000
CONFIGS = [Config(40, attends, seed, STEPS, clip=None) for attends in (False, True) for seed in SEEDS]

measure = partial(reverse.sweep, CONFIGS)
tell, draw, options, KINDS = reverse.tell, reverse.draw_models, reverse.options, reverse.KINDS

if __name__ == "__main__":
    script.run(measure, tell, draw, options)
