"""@@@"""

from lab import script
from reverse import SEEDS, draw_models, sweep
from seq2seq import configuration

LENGTHS = [20, 40]
CONFIGS = [configuration(length, True, seed, bahdanau=True) for length in LENGTHS for seed in SEEDS]


def main(argv=None):
    """The post's attention as its inventors had it."""
    sweep("reverse_bahdanau", __doc__, CONFIGS, draw, argv)


draw = draw_models

if __name__ == "__main__":
    script.run(main)
