"""Running a script as a user does: as a command, or in this process."""

import json
import os
import subprocess
import sys
from pathlib import Path

from lab import results, script

ROOT = Path(__file__).resolve().parent.parent


def run(name: str, *arguments, cwd: Path = ROOT, **environment) -> subprocess.CompletedProcess:
    """``python name.py arguments``, or ``python -m name`` where it is of a package, with warnings as errors.

    Output as text; environment variables by keyword.
    """
    what = ["-m", name] if "." in name and not name.endswith(".py") else [str(ROOT / name)]
    return subprocess.run(
        [sys.executable, "-W", "error", *what, *map(str, arguments)],
        capture_output=True,
        encoding="utf-8",
        cwd=cwd,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **environment},
    )


def assert_refused(done: subprocess.CompletedProcess, *words: str):
    """A user's mistake: one line on standard error with these words in it, status 2, nothing on standard output."""
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
    for word in words:
        assert word in done.stderr, done.stderr


def record_of(module, folder: Path, *arguments, status: int = 0) -> dict:
    """What a script saves when it runs, in this process, with ``--outputs folder``; ``printed`` are its lines.

    Its trainings take place in processes of their own unless a test asks for the fixture ``in_this_process``.
    """
    one = script.experiment(module)
    assert script.perform(one, ["--outputs", str(folder), *map(str, arguments)]) == status
    printed = (folder / f"{one.name}.txt").read_text(encoding="utf-8").splitlines()
    return json.loads((folder / f"{one.name}.json").read_text(encoding="utf-8")) | {"printed": printed}


def measured(module, *arguments) -> tuple[dict, list[str]]:
    """What a script finds, as it is read again from what it saves, and its lines. Nothing is saved or drawn."""
    one = script.experiment(module)
    parsed = one.parser().parse_args([*map(str, arguments)])
    found = results.as_saved(results.record(one.name, parsed, one.measure(parsed), kinds={}, takes=[]))["results"]
    return found, list(one.tell(found))
