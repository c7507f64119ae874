"""An experiment that computes next to nothing, for the tests of rerun.py: copies of it are experiments of their own.

Each notes in the folder of TOYS when it begins and ends, and waits as long as there is a file hold-NAME. Those called
long and short are sweeps, one called last is timed.
"""

import os
import time
from pathlib import Path

from lab import plots, script
from lab.errors import UserError

NAME = Path(__file__).stem
KINDS = {"*": "exact"} | ({"ms": "timing"} if NAME == "last" else {})


def options(parser):
    parser.add_device()
    if NAME in ("long", "short"):
        parser.add_jobs()


def measure(arguments):
    folder = Path(os.environ["TOYS"])
    if (folder / f"fail-{NAME}").exists():
        raise UserError("told to fail")
    note(folder, "begins", getattr(arguments, "jobs", None))
    while (folder / f"hold-{NAME}").exists():
        time.sleep(0.02)
    note(folder, "ends", None)
    return {"name": NAME, "curve": [1, 2, 4], "ms": time.time_ns() % 10**9}


def note(folder, what, jobs):
    with open(folder / "notes", "a", encoding="utf-8") as file:
        file.write(f"{what} {NAME} {os.getpid()} {jobs}\n")


def tell(found):
    yield f"this is {found['name']}"


if NAME == "drawn":

    def draw(found):
        figure, axes = plots.subplots()
        axes.plot(found["curve"])
        return figure


if __name__ == "__main__":
    script.run(measure, tell, globals().get("draw"), options)
