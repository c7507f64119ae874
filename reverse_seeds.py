"""Five seeds for the lengths 10 and 20, so that the two that the post printed can be placed among others.

The settings of reverse.py; its seeds 0 and 1 are two of the five, with the same bits on the same machine.

    python reverse_seeds.py

Sources: as seq2seq.py.
"""

from lab import script
from reverse import draw_models as draw
from reverse import sweep
from seq2seq import configuration

LENGTHS = [10, 20]
SEEDS = range(5)
CONFIGS = [configuration(length, attends, seed) for length in LENGTHS for attends in (False, True) for seed in SEEDS]


def main(argv=None):
    """Five seeds for the rows that the post printed two of."""
    sweep("reverse_seeds", __doc__, CONFIGS, draw, argv)


if __name__ == "__main__":
    script.run(main)
