"""A small experiment for the tests of lab.reruns, under any name that a copy of it has; and, as a command, a rerun.

Copies of this file are experiments: each notes in the folder of --notes when it began and ended and with which process,
and holds still as long as there is a file hold-NAME. ``python toy_experiment.py FOLDER OUTPUTS`` reruns four of them.
"""

import os
import sys
import time
from pathlib import Path

sys.path.insert(0, os.environ.get("TOY_ROOT", str(Path(__file__).resolve().parent.parent)))

from lab import reruns, script
from lab.results import Results


def experiment(name):
    """Note the beginning, wait, save, note the end."""
    parser = script.Arguments("A toy.")
    parser.add_argument("--notes", type=Path)
    parser.add_argument("--jobs", type=int)
    arguments = parser.parse_args()
    if (arguments.notes / f"fail-{name}").exists():
        raise script.UserError("told to fail")
    results = Results(name, arguments)
    note(arguments.notes, "begins", name, os.getpid(), arguments.jobs)
    while (arguments.notes / f"hold-{name}").exists():
        time.sleep(0.02)
    time.sleep(0.1)
    results.print(f"this is {name}")
    results.record(name=name)
    results.save()
    note(arguments.notes, "ends", name, os.getpid())


def note(folder, *words):
    with open(folder / "notes", "a", encoding="utf-8") as file:
        file.write(" ".join(map(str, words)) + "\n")


def experiments(folder):
    """Two sweeps and two others, one before and one after."""
    arguments = ("--notes", str(folder))
    return [
        reruns.Experiment(folder / f"{name}.py", arguments, cost, sweep)
        for name, cost, sweep in (("first", 1, False), ("long", 5, True), ("short", 3, True), ("last", 1, False))
    ]


def main():
    """A rerun of the toys in FOLDER."""
    folder, outputs = map(Path, sys.argv[1:])
    reruns.available_cores = lambda: 4
    made = []
    for one, status, _ in reruns.run(experiments(folder), folder / "waiting"):
        print(one.name, status, flush=True)
        made += [one] * (status == 0)
    reruns.finish(made, folder / "waiting", outputs)


if __name__ == "__main__":
    own = Path(sys.argv[0]).stem
    script.run(main if own == "toy_experiment" else lambda: experiment(own))
