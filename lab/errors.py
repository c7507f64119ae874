"""What can go wrong, in words for the user; where the repository is; what isn't a result goes to standard error."""

import sys
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SAVED = ROOT / "outputs"


class UserError(Exception):
    """A mistake in what the user gave. The message says, in one line, what is wrong, where, and what would be right."""


class Diverged(ArithmeticError):
    """A training whose loss is no longer a finite number. ``step`` counts from 1."""

    def __init__(self, step: int):
        super().__init__(step)
        self.step = step

    def __str__(self):
        return f"the loss is not finite at step {self.step:,}; a smaller learning rate usually cures it"


def note(text: str):
    """Tell the user something that isn't a result: nothing ends because nobody can be told."""
    if sys.stderr:  # None where the user closed it
        with suppress(OSError):
            print(text, file=sys.stderr, flush=True)


def shown(path: Path) -> Path:
    """A path as a message names it: from the repository's root, where it lies below that."""
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
