"""Forty digits through one state, with three times the steps.

reverse.py at length 40 without attention, with 6,000 steps instead of 2,000 at the same learning rate of 3e-3.

    python reverse_40_6000.py

No full run is saved in outputs/ yet.

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
