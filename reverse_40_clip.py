"""Forty digits at the first learning rate with the gradient clipped: is it the learning rate that spoils attention?

The post blames attention's failure at length 40 on a learning rate of 3e-3, and mends it with 1e-3. Here the learning
rate stays, and a gradient whose norm is above 1 is shortened to 1 before the step (Pascanu et al., 2013); 3,000 steps
as in reverse_40_longer.py, which is the same without clipping. The norms that are printed are those before it.

    python reverse_40_clip.py

No full run is saved in outputs/ yet: see reverse.py, "Open".

Sources: Pascanu, Mikolov and Bengio (2013) for clipping; else as seq2seq.py.
"""

from lab import script
from reverse import SEEDS, sweep
from reverse import draw_models as draw
from seq2seq import configuration

STEPS, CLIP = 3_000, 1.0
CONFIGS = [configuration(40, attends, seed, STEPS, clip=CLIP) for attends in (False, True) for seed in SEEDS]


def main(argv=None):
    """Length 40 at the first learning rate, the gradient clipped."""
    sweep("reverse_40_clip", __doc__, CONFIGS, draw, argv)


if __name__ == "__main__":
    script.run(main)
