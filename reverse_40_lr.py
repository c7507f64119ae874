"""@@@"""

from lab import script
from reverse import SEEDS, draw_models, sweep
from seq2seq import configuration

STEPS, LEARNING_RATE = 3_000, 1e-3
CONFIGS = [configuration(40, attends, seed, STEPS, LEARNING_RATE) for attends in (False, True) for seed in SEEDS]


def main(argv=None):
    """Length 40 at a third of the learning rate."""
    sweep("reverse_40_lr", __doc__, CONFIGS, draw, argv)


draw = draw_models

if __name__ == "__main__":
    script.run(main)
