"""@@@"""

from lab import script
from reverse import SEEDS, draw_models, sweep
from seq2seq import configuration

STEPS, CLIP = 3_000, 1.0
CONFIGS = [configuration(40, attends, seed, STEPS, clip=CLIP) for attends in (False, True) for seed in SEEDS]


def main(argv=None):
    """Length 40 at the first learning rate, the gradient clipped."""
    sweep("reverse_40_clip", __doc__, CONFIGS, draw, argv)


draw = draw_models

if __name__ == "__main__":
    script.run(main)
