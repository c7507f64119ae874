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
    parts = [path.read_bytes() for path in sorted(files_of(module))]
    parts += [sys.version.encode(), *(metadata.version(name).encode() for name in LIBRARIES)]
    return hashlib.sha256(b"\0".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()[:16]


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
