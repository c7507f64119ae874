"""@@@"""

from lab import script
from reverse import SEEDS, draw_models, sweep
from seq2seq import configuration

MODELS = [(10, False), (20, False), (20, True)]  # length, whether there is attention
CONFIGS = [
    configuration(length, attends, seed, task=task)
    for length, attends in MODELS
    for task in ("reverse", "copy")
    for seed in SEEDS
]


def main(argv=None):
    """Copying beside reversing."""
    sweep("reverse_copy", __doc__, CONFIGS, draw, argv)


draw = draw_models

if __name__ == "__main__":
    script.run(main)
