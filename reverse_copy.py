"""Copying beside reversing: through one state, the digits read last are the easy ones.

Sutskever et al. (2014) fed their encoder the source backwards, so that its first word, which the decoder needs first,
was the last one read. Reversing digits has that built in: the first to be written is the last that was read. Copying
hasn't; all else is as in reverse.py. The first place of a reversal holds the digit read last, that of a copy the digit
read first.

    python reverse_copy.py

Sources: Sutskever, Vinyals and Le (2014), section 3.3; else as seq2seq.py.
"""

from lab import script
from reverse import SEEDS, sweep
from reverse import draw_models as draw
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


if __name__ == "__main__":
    script.run(main)
