"""@@@"""

from lab import script
from reverse import SEEDS, draw_models, sweep
from seq2seq import configuration

STEPS = 3_000
CONFIGS = [configuration(40, attends, seed, STEPS) for attends in (False, True) for seed in SEEDS]


def main(argv=None):
    """Length 40, half as many steps again."""
    sweep("reverse_40_longer", __doc__, CONFIGS, draw, argv)


draw = draw_models

if __name__ == "__main__":
    script.run(main)
