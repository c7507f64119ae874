"""How a script starts and how it ends: its arguments, its one-line errors and its exit status.

A script's last lines are always

    if __name__ == "__main__":
        script.run(main)

and its ``main(argv=None)`` starts with ``script.Arguments(__doc__)``. Nothing here imports numpy or torch.
"""

import argparse
import errno
import math
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SAVED = ROOT / "outputs"
ENDS_WITH_STDIN = "BEFORE_ATTENTION_ENDS_WITH_STDIN"  # in the environment of an experiment that rerun.py started
# Where results go and how fast they come can't change what they are, so these don't make a run "not the default one".
NOT_PART_OF_THE_RESULT = {"outputs", "jobs", "cluster"}


class UserError(Exception):
    """A mistake in what the user gave. The message says, in one line, what is wrong, where, and what would be right."""


class Diverged(ArithmeticError):
    """A training whose loss is no longer a finite number. ``step`` counts from 1."""

    def __init__(self, step: int):
        super().__init__(step)
        self.step = step

    def __str__(self):
        return f"the loss is not finite at step {self.step:,}; a smaller learning rate usually cures it"


class Arguments(argparse.ArgumentParser):
    """An argument parser whose help is the script's docstring and whose errors are one line.

    Every script takes ``--outputs``. ``parse_args`` adds ``changed``: the arguments that differ from their defaults,
    apart from those that can't change a result. ``experiment=False`` is for a command that has no results of its own.
    """

    def __init__(self, description: str, *, experiment: bool = True, **options):
        super().__init__(description=description, formatter_class=_Help, **options)
        self.experiment = experiment
        self.add_argument(
            "--outputs",
            metavar="DIR",
            type=Path,
            help="save text, numbers and figures in DIR (default: outputs/, if no other argument is given)",
        )

    def parse_args(self, args=None, namespace=None):
        parsed = super().parse_args(args, namespace)
        parsed.changed = {
            name: value
            for name, value in vars(parsed).items()
            if name not in NOT_PART_OF_THE_RESULT and value != self.get_default(name)
        }
        if self.experiment and parsed.outputs and parsed.changed and parsed.outputs.resolve() == SAVED.resolve():
            names = ", ".join(sorted(parsed.changed))
            self.error(f"outputs/ keeps runs with default arguments only ({names} changed): name another --outputs DIR")
        return parsed

    def error(self, message):
        self.exit(2, f"{self.prog}: {' '.join(message.split())} (see {self.prog} --help)\n")


class _Help(argparse.RawDescriptionHelpFormatter, argparse.ArgumentDefaultsHelpFormatter):
    """The docstring as it is written, and each option's default after its help text."""

    def _get_help_string(self, action):
        if action.default is None or action.default is False:
            return action.help
        return super()._get_help_string(action)


def positive_int(text: str) -> int:
    """A whole number of at least 1, as an argument's type."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, not {text!r}")
    return int(text)


def utf8(text: str) -> str:
    """A text as an argument's type: what the terminal sent has to be UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise argparse.ArgumentTypeError(f"must be UTF-8 text: its character {error.start + 1} isn't") from None
    return text


def seed(text: str) -> int:
    """The seed of a random generator, a whole number of at least 0, as an argument's type."""
    if not text.isdecimal() or int(text) >= 2**63:
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to 2**63 - 1, not {text!r}")
    return int(text)


def positive_float(text: str) -> float:
    """A finite number above 0, as an argument's type."""
    value = _number(text)
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"must be a number above 0, not {text!r}")
    return value


def non_negative_float(text: str) -> float:
    """A finite number of at least 0, as an argument's type."""
    value = _number(text)
    if not (math.isfinite(value) and value >= 0):
        raise argparse.ArgumentTypeError(f"must be a number of at least 0, not {text!r}")
    return value


def finite_float(text: str) -> float:
    """A finite number of either sign, as an argument's type."""
    value = _number(text)
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"must be a finite number, not {text!r}")
    return value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def counted(number: int, noun: str) -> str:
    """``1 character``, ``1,000 characters``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def note(text: str):
    """Tell the user something that isn't a result."""
    print(text, file=sys.stderr, flush=True)


def run(main: Callable[[], int | None]):
    """Run a script: exit status 2 with one line for a user's mistake, 1 for a diverged training, 130 for Ctrl-C.

    SIGTERM ends a script as Ctrl-C does, so that what it started is put away; its status is 143.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    if os.environ.pop(ENDS_WITH_STDIN, ""):
        threading.Thread(target=_end_with_stdin, daemon=True).start()
    # A terminal that can't show a character gets an escape for it: printing a sample must not end a run.
    for stream in sys.stdout, sys.stderr:
        if stream:  # None where the user closed it
            stream.reconfigure(errors="backslashreplace")
    prog = Path(sys.argv[0]).name
    try:
        status = main() or 0
        if sys.stdout:
            sys.stdout.flush()
    except UserError as error:
        note(f"{prog}: {error}")
        status = 2
    except Diverged as error:
        note(f"{prog}: {error}")
        status = 1
    except KeyboardInterrupt as error:
        note(f"{prog}: interrupted")
        status = 128 + (error.args[0] if error.args else signal.SIGINT)
    except BrokenPipeError:  # the reader (head, less) has gone
        _say_no_more()
        status = 141
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        note(f"{prog}: no space left on the disk; what was saved before is still there")
        _say_no_more()
        status = 1
    sys.exit(status)


def _interrupt(number, frame):
    raise KeyboardInterrupt(number)


def _end_with_stdin():
    """Nothing is ever sent: when the read returns, whoever started this process is gone, and so is its reader."""
    os.read(0, 1)
    os._exit(1)


def _say_no_more():
    """Standard output takes nothing any more, and Python's own flush at exit must not try."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
