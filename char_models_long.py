"""The same three models trained four times as long: better on what they have read, worse on what they haven't.

    python char_models_long.py          @@@

Prints, at the end:

@@@

Model, training and sources: charlm.py; how to read the table: char_models.py.
"""

from char_models import draw, sweep
from charlm import CELLS
from lab import script

SEED = 0
STEPS = 12_000
RUNS = [(cell, SEED, STEPS) for cell in CELLS]


def main(argv=None):
    """One model of each cell, four times as long."""
    sweep("char_models_long", __doc__, RUNS, argv)


__all__ = ["draw", "main"]

if __name__ == "__main__":
    script.run(main)
