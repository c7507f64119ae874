"""@@@"""

from lab import script
from reverse import draw_models, sweep
from seq2seq import configuration

LENGTHS = [10, 20]
SEEDS = range(5)
CONFIGS = [configuration(length, attends, seed) for length in LENGTHS for attends in (False, True) for seed in SEEDS]


def main(argv=None):
    """Five seeds for the rows that the post printed two of."""
    sweep("reverse_seeds", __doc__, CONFIGS, draw, argv)


draw = draw_models

if __name__ == "__main__":
    script.run(main)
