"""How a script starts and how it ends: its arguments, what it measured, told and drew, its errors, its exit status.

A script is five parts (see CONTRIBUTING.md), and its last lines are always

    if __name__ == "__main__":
        script.run(measure, tell, draw, options)

``measure(arguments)`` returns one dictionary of results, ``tell(found)`` yields the printed lines from that dictionary
and nothing else, ``draw(found)`` returns the figure, and ``options(parser)`` adds the script's own arguments; the last
two only where there are any. ``KINDS`` says what kind of number each result is. Two entries of what ``measure`` returns
are about the run: ``seeds``, of its random draws, and ``corpus``, the fingerprint of the text that it read. A run that
makes something else than the script's results, such as a sample, names its files with a third, ``saved_as``; it has no
figure.

Nothing here imports numpy, torch or matplotlib.
"""

import argparse
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from lab import results
from lab.errors import ROOT, SAVED, Diverged, UserError, note

ENDS_WITH_STDIN = "BEFORE_ATTENTION_ENDS_WITH_STDIN"  # in the environment of an experiment that rerun.py started
# Where results go and how fast they come can't change what they are, so these don't make a run "not the default one".
NOT_PART_OF_THE_RESULT = {"outputs", "jobs", "cluster"}
SHARED = ("data", "device", "jobs", "cluster")  # options that mean the same in every script, and that rerun.py hands on
LARGEST = 10**9  # count that can be meant
SEEDS = 2**32  # that torch's generators tell apart: they take 32 bits
FLOAT32 = 3.4e38  # about its largest number
OUT_OF_MEMORY = r"can't allocate memory|not enough memory|out of memory|Storage size calculation overflowed"  # torch's


@dataclass(frozen=True)
class Experiment:
    """A script's parts by name. ``module`` is what ``python -m`` runs, ``name`` that of its files in outputs/."""

    module: str
    doc: str
    measure: Callable[[argparse.Namespace], dict]
    tell: Callable[[dict], Iterator[str]]
    draw: Callable[[dict], object] | None = None
    options: Callable[["Arguments"], None] | None = None
    kinds: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        package, _, name = self.module.rpartition(".")
        return f"benchmark_{name}" if package == "benchmarks" else name

    def parser(self) -> "Arguments":
        package = self.module.rpartition(".")[0]
        parser = Arguments(self.doc, prog=f"python -m {self.module}" if package else f"{self.module}.py")
        if self.options:
            self.options(parser)
        return parser


def experiment(module) -> Experiment:
    """The experiment that an imported script is."""
    parts = {name: getattr(module, name, None) for name in ("draw", "options")}
    return Experiment(
        module.__name__, module.__doc__, module.measure, module.tell, kinds=getattr(module, "KINDS", {}), **parts
    )


class Arguments(argparse.ArgumentParser):
    """An argument parser whose help is the script's docstring and whose errors are one line.

    ``parse_args`` adds ``changed``: the arguments that differ from their defaults, apart from those that can't change a
    result. ``saves=False`` is for a command that has no results of its own.
    """

    def __init__(self, description: str, *, saves: bool = True, **options):
        super().__init__(description=description, formatter_class=_Help, allow_abbrev=False, **options)
        self.saves = saves
        self.add_argument(
            "--outputs",
            metavar="DIR",
            type=folder,
            help="save text, numbers and figures in DIR (default: outputs/, if no other argument is given)",
        )

    def add_jobs(self):
        """Add --jobs and --cluster, for a script of many trainings; they can't change a result."""
        self.add_argument(
            "--jobs",
            type=positive_int,
            metavar="N",
            help="trainings side by side (default: one per core; on a GPU 4, as far as there are cores)",
        )
        self.add_argument(
            "--cluster",
            metavar="ADDRESS",
            help="train on the Dask cluster whose scheduler is at ADDRESS, such as tcp://host:8786, instead; its "
            "workers are started with 'dask worker ADDRESS --nworkers N --nthreads 1' where these scripts are",
        )

    def add_device(self):
        """Add --device, for a script whose arithmetic can run elsewhere than on the CPU."""
        self.add_argument("--device", default="cpu", metavar="NAME", help="cpu, cuda, cuda:1 or mps")

    def parse_args(self, args=None, namespace=None):
        parsed = super().parse_args(args, namespace)
        parsed.changed = {
            name: value
            for name, value in vars(parsed).items()
            if name not in NOT_PART_OF_THE_RESULT and value != self.get_default(name)
        }
        if self.saves and parsed.outputs and parsed.changed and parsed.outputs.resolve() == SAVED.resolve():
            names = ", ".join(sorted(parsed.changed))
            self.error(f"outputs/ keeps runs with default arguments only ({names} changed): name another --outputs DIR")
        if getattr(parsed, "jobs", None) and parsed.cluster is not None:
            self.error("--jobs is for this machine: a cluster trains as many side by side as it has workers")
        return parsed

    def error(self, message):
        self.exit(2, f"{self.prog}: {' '.join(message.split())[:500]} (see {self.prog} --help)\n")


class _Help(argparse.RawDescriptionHelpFormatter, argparse.ArgumentDefaultsHelpFormatter):
    """The docstring as it is written, and each option's default after its help text."""

    def _get_help_string(self, action):
        if action.default is None or action.default is False:
            return action.help
        return super()._get_help_string(action)


def folder(text: str) -> Path:
    """A folder's path, as an argument's type."""
    if not text:
        raise argparse.ArgumentTypeError("must be a folder's path, not empty (the current folder is .)")
    return file(text)


def file(text: str) -> Path:
    """A file's path, as an argument's type: one that the system can look for."""
    try:
        os.stat(text)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        pass  # what it takes depends on what it is for
    except OSError as error:
        raise argparse.ArgumentTypeError(f"can't be {text[:100]!r}: {error.strerror}") from None
    return Path(text)


def positive_int(text: str) -> int:
    """A whole number of at least 1, as an argument's type."""
    number = _whole(text)
    if not 1 <= number <= LARGEST:
        raise argparse.ArgumentTypeError(
            f"must be a whole number of at least 1 and at most {LARGEST:,}, not {text[:100]!r}"
        )
    return number


def utf8(text: str) -> str:
    """A text as an argument's type: what the terminal sent has to be UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise argparse.ArgumentTypeError(f"must be UTF-8 text: its character {error.start + 1} isn't") from None
    return text


def seed(text: str) -> int:
    """The seed of a random generator, a whole number of at least 0, as an argument's type."""
    number = _whole(text)
    if not 0 <= number < SEEDS:
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to {SEEDS - 1:,}, not {text[:100]!r}")
    return number


def _whole(text: str) -> int:
    """The whole number that a text of reasonable length is, or -1."""
    return int(text) if text.isdecimal() and len(text) < 40 else -1


def _number(what: str, allowed: Callable[[float], bool]) -> Callable[[str], float]:
    """A type of arguments: finite numbers that are allowed."""

    def number(text: str) -> float:
        with suppress(ValueError):
            if abs(value := float(text)) < FLOAT32 and allowed(value):
                return value
        raise argparse.ArgumentTypeError(f"must be a {what} (and below {FLOAT32:g}), not {text[:100]!r}")

    return number


positive_float = _number("number above 0", lambda value: value > 0)
non_negative_float = _number("number of at least 0", lambda value: value >= 0)
finite_float = _number("finite number", lambda value: True)


def counted(number: int, noun: str) -> str:
    """``1 character``, ``1,000 characters``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def perform(one: Experiment, argv: list[str] | None = None) -> int:
    """Parse the arguments, measure, tell, save and draw. The exit status is 1 if a training diverged or work is left.

    Results are saved where ``--outputs`` says, or in outputs/ if no argument differs from its default; otherwise they
    are only told. Whatever can be found wrong beforehand is: nothing is written then.
    """
    parser = one.parser()
    arguments = parser.parse_args(argv)
    place = arguments.outputs or (None if arguments.changed else SAVED)
    if place:
        for suffix in ".json", ".txt", ".png":
            results.check_file(place / f"{one.name}{suffix}")
    arguments.work = results.Work(one.module, one.name, arguments, NOT_PART_OF_THE_RESULT | {"changed"})
    check_place(arguments)
    made_by = results.made_by(one.module, arguments.changed)  # before it runs: somebody may edit it meanwhile
    try:
        found = one.measure(arguments)
        name = found.pop("saved_as", one.name)
        takes = [option for option in SHARED if hasattr(arguments, option)]
        record = results.record(name, arguments, found, kinds=one.kinds, takes=takes, made_by=made_by)
        found = results.as_saved(record)["results"]
        lines = list(one.tell(found))
        for line in lines:
            print(line, flush=True)
        if place:
            results.save(place, record, lines, one.draw if name == one.name else None)
        else:
            changed = ", ".join(sorted(arguments.changed))
            note(f"not saved ({changed} given): outputs/ keeps default runs only; --outputs DIR saves this one")
        arguments.work.clear()
    finally:
        arguments.work.release()
    diverged = len(list(results.diverged(found)))
    if diverged:
        note(f"{parser.prog}: {counted(diverged, 'training')} diverged")
    return 1 if diverged or arguments.work.unfinished else 0


def check_place(arguments: argparse.Namespace):
    """Find out before anything is written whether the device is there and the cluster answers, with the same code."""
    device, address = getattr(arguments, "device", "cpu"), getattr(arguments, "cluster", None)
    if device == "cpu" and address is None:
        return
    from lab import devices, pools  # and torch, which a script without either may not need

    if address is None:
        devices.trusted(device)
    else:
        work = getattr(arguments, "work", None)  # rerun.py has none: each of its experiments looks itself
        with pools.cluster(address, *((work.made_of, work.module) if work else ())) as workers:
            workers.everywhere(devices.trusted, device)


def run(measure, tell, draw=None, options=None):
    """Run the script whose last line this is, and end the process with its exit status."""
    main = sys.modules["__main__"]
    module = main.__spec__.name if main.__spec__ else Path(main.__file__).stem
    kinds = getattr(main, "KINDS", {})
    run_command(lambda: perform(Experiment(module, main.__doc__, measure, tell, draw, options, kinds)))


def run_command(main: Callable[[], int | None]):
    """Run a command: exit status 2 with one line for a user's mistake, 1 for a divergence, 130 for Ctrl-C.

    SIGTERM ends a command as Ctrl-C does, so that what it started is put away; its status is 143.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    with suppress(OSError):  # where the user closed one of the first three, no file of ours must come in its place
        while (stream := os.open(os.devnull, os.O_RDWR)) < 3:
            os.set_inheritable(stream, True)
        os.close(stream)
    if os.environ.pop(ENDS_WITH_STDIN, ""):
        threading.Thread(target=_end_with_stdin, daemon=True).start()
    # A terminal that can't show a character gets an escape for it: printing a sample must not end a run.
    for stream in sys.stdout, sys.stderr:
        if stream:  # None where the user closed it
            stream.reconfigure(errors="backslashreplace")
    file = Path(sys.argv[0])
    prog = f"python -m {file.parent.name}.{file.stem}" if file.resolve().parent.parent == ROOT else file.name
    try:
        status = main() or 0
        if sys.stdout:
            sys.stdout.flush()
    except UserError as error:
        note(f"{prog}: {' '.join(str(error).splitlines())}")
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
        where = f"{error.filename}: " if error.filename else ""
        note(f"{prog}: {where}{error.strerror or error}: what was saved before is still there")
        _say_no_more()
        status = 1
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not re.search(OUT_OF_MEMORY, str(error)):
            raise
        note(f"{prog}: this takes more memory than there is: ask for something smaller")
        status = 2
    sys.exit(status)


def _interrupt(number, frame):
    raise KeyboardInterrupt(number)


def _end_with_stdin():
    """Nothing is ever sent: when the read returns, whoever started this process is gone, and so is its reader."""
    os.read(0, 1)
    os._exit(1)


def _say_no_more():
    """Standard output takes nothing any more, and Python's own flush at exit must not try."""
    if sys.stdout:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


__all__ = ["ROOT", "SAVED", "Arguments", "Diverged", "Experiment", "UserError", "experiment", "note", "perform", "run"]
