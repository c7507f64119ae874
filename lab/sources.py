"""What made a result: the code that a script imports, directly or not, and the libraries, as one digest."""

import ast
import functools
import hashlib
import sys
from importlib import metadata
from pathlib import Path

from lab.errors import ROOT

LIBRARIES = ("numpy", "torch")


def digest(module: str) -> str:
    """A few letters that stand for the code of a module, the code it imports and the libraries it runs on."""
    return _sum(sys.version, *made_of(module).values())


def made_of(module: str) -> dict[str, str]:
    """The same apart: letters for the code, and the version of each library."""
    code = _sum(*(_sum_of_file(path) for path in sorted(files_of(module))))
    return {"code": code} | {name: metadata.version(name) for name in LIBRARIES}


@functools.cache
def _sum_of_file(path: Path) -> str:
    """Of the file as it was when it was first asked for: what a process has imported stays as it was, too."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _sum(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def files_of(module: str) -> set[Path]:
    """The files of this repository that a module consists of."""
    found, new = set(), {path_of(module)}
    while new:
        found |= new
        names = {name for source in new for name in _imported(source)}
        new = {path for name in names if (path := path_of(name)).is_file()} - found
    return found


def path_of(module: str) -> Path:
    return ROOT.joinpath(*module.split(".")).with_suffix(".py")


@functools.cache
def _imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
    return found
