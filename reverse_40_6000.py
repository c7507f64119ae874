"""Forty digits through one state, with three times the steps.

reverse.py at length 40 without attention, with 6,000 steps instead of 2,000 at the same learning rate of 3e-3.

    python reverse_40_6000.py          3 min

Prints, first:

    length 40, no attention, seed 0, 6,000 steps, learning rate 0.003: digits right 0.732, whole sequences right 0.015
    length 40, no attention, seed 1, 6,000 steps, learning rate 0.003: digits right 0.728, whole sequences right 0.009

Sources: as seq2seq.py.
"""

from lab import script
from reverse import SEEDS, sweep
from reverse import draw_models as draw
from seq2seq import configuration

STEPS = 6_000
CONFIGS = [configuration(40, False, seed, STEPS) for seed in SEEDS]


def main(argv=None):
    """Length 40 without attention, three times as many steps."""
    sweep("reverse_40_6000", __doc__, CONFIGS, draw, argv)


if __name__ == "__main__":
    script.run(main)
