"""A house with nothing in it but lab/, reruns/, rerun.py and experiments that a test moves in."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import toy_experiment
from commands import ROOT


class House:
    """A copy of the repository without its experiments, in a folder."""

    def __init__(self, folder: Path):
        self.folder, self.toys, self.outputs = folder, folder / "toys", folder / "outputs"
        for name in ("lab", "reruns"):
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        for made in (self.toys, self.outputs, folder / "data"):
            made.mkdir()
        for name in "rerun.py", "README.md":
            shutil.copy(ROOT / name, folder)
        for name in "published.json", "SHA256SUMS":
            shutil.copy(ROOT / "data" / name, folder / "data")
        self.experiments = []

    def add(self, *names: str):
        """Move toys in: a script and a line of the catalogue for each."""
        self.experiments += names
        for name in names:
            shutil.copy(toy_experiment.__file__, self.folder / f"{name}.py")
        with open(self.folder / "reruns" / "catalogue.py", "a", encoding="utf-8") as file:
            file.write(f"\nCHAPTERS = {{'Toys': {self.experiments}}}\n")

    def start(self, *command) -> subprocess.Popen:
        """Start a script of the house."""
        return subprocess.Popen(
            [sys.executable, "-W", "error", *map(str, command)],
            cwd=self.folder,
            env=os.environ | {"TOYS": str(self.toys), "PYTHONIOENCODING": "utf-8"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )

    def run(self, *command) -> subprocess.CompletedProcess:
        """Run a script of the house to its end."""
        process = self.start(*command)
        out, errors = process.communicate()
        return subprocess.CompletedProcess(command, process.returncode, out, errors)

    def notes(self) -> list[list[str]]:
        """What the toys have noted: (begins or ends, name, process, jobs)."""
        path = self.toys / "notes"
        return [line.split() for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []

    def results(self, name: str, folder: Path | None = None) -> dict:
        return json.loads(((folder or self.outputs) / f"{name}.json").read_text(encoding="utf-8"))["results"]


@pytest.fixture
def house(tmp_path) -> House:
    return House(tmp_path / "house")
