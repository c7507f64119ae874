"""@@@"""

from lab import script
from reverse import SEEDS, draw_models, sweep
from seq2seq import configuration

STEPS = 6_000
CONFIGS = [configuration(40, False, seed, STEPS) for seed in SEEDS]


def main(argv=None):
    """Length 40 without attention, three times as many steps."""
    sweep("reverse_40_6000", __doc__, CONFIGS, draw, argv)


draw = draw_models

if __name__ == "__main__":
    script.run(main)
