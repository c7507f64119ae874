"""All of reverse.py without clipping the gradient, which the post's listing doesn't do: are its figures made so?

The post says of its character models that it clips their gradients, and of those that reverse digits nothing; the
listing that it shows trains neither. All trainings of this family clip at a norm of 1; these do not, and are otherwise
those of reverse.py.

    python -m beyond.reverse_unclipped          9 min

Prints, first:

    length 5, no attention, seed 0, not clipped: digits right 0.994, whole sequences right 0.980
    length 5, no attention, seed 1, not clipped: digits right 0.992, whole sequences right 0.980
    length 5, attention   , seed 0, not clipped: digits right 1.000, whole sequences right 0.998
    length 5, attention   , seed 1, not clipped: digits right 0.998, whole sequences right 0.994
    length 10, no attention, seed 0, not clipped: digits right 0.967, whole sequences right 0.857
    length 10, no attention, seed 1, not clipped: digits right 0.960, whole sequences right 0.842
    length 10, attention   , seed 0, not clipped: digits right 0.886, whole sequences right 0.679
    length 10, attention   , seed 1, not clipped: digits right 0.982, whole sequences right 0.949
    length 20, no attention, seed 0, not clipped: digits right 0.819, whole sequences right 0.200
    length 20, no attention, seed 1, not clipped: digits right 0.881, whole sequences right 0.377
    length 20, attention   , seed 0, not clipped: digits right 0.258, whole sequences right 0.000
    length 20, attention   , seed 1, not clipped: digits right 0.363, whole sequences right 0.001
    length 40, no attention, seed 0, not clipped: digits right 0.468, whole sequences right 0.000
    length 40, no attention, seed 1, not clipped: digits right 0.454, whole sequences right 0.000
    length 40, attention   , seed 0, not clipped: digits right 0.178, whole sequences right 0.000
    length 40, attention   , seed 1, not clipped: digits right 0.168, whole sequences right 0.000

They aren't. Without clipping attention loses what it has at 10 digits with one seed, and at 20 digits with both, where
the post's models with attention have 0.84 and 0.87 of the sequences right; clipped (reverse.py), they come near that.
Without attention it is even better, a little, and with the length the more: clipping costs that model something. So the
post's models were clipped, we take it, whatever its listing shows.

Sources: Pascanu, Mikolov and Bengio (2013) for clipping; else as seq2seq.py.
"""

from dataclasses import replace
from functools import partial

import reverse
from lab import script

CONFIGS = [replace(config, clip=None) for config in reverse.CONFIGS]

measure = partial(reverse.sweep, CONFIGS)
tell, draw, options, KINDS = reverse.tell, reverse.draw, reverse.options, reverse.KINDS

if __name__ == "__main__":
    script.run(measure, tell, draw, options)
