"""Running a script as a user does."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def run(script: str, *arguments, cwd: Path = ROOT, **environment) -> subprocess.CompletedProcess:
    """``python script arguments`` with warnings as errors; output as text. Environment variables by keyword."""
    return subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / script), *map(str, arguments)],
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
