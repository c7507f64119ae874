"""Printing an experiment's results and keeping them: the text as printed, the numbers unrounded, the figure.

    results = Results("bptt", arguments)
    results.print(f"prediction y = h_3 . w_out = {y:.4f}")
    results.record(y=y)
    results.save(draw)

``outputs/bptt.txt`` is then exactly what was printed, ``outputs/bptt.json`` holds the recorded numbers by name with
everything needed to judge them, and ``outputs/bptt.png`` is ``draw(numbers)``, drawn from what the JSON file says.
"""

import io
import json
import os
import platform
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: nothing then stops two processes from doing the same work side by side
    fcntl = None

from lab.script import NOT_PART_OF_THE_RESULT, ROOT, SAVED, UserError, note

STARTED = time.perf_counter()


class Results:
    """The results of one run of one script.

    ``arguments`` come from ``script.Arguments``; ``corpus`` is the fingerprint of the text that was read, if any;
    ``seeds`` are those of all random draws; ``device`` is where the arithmetic ran. Raises ``UserError`` at once, not
    after an hour, if the results could not be saved in the end.
    """

    def __init__(self, name: str, arguments: Namespace, *, corpus: str | None = None, seeds=(), device="cpu"):
        self.name = name
        self.arguments = arguments
        self.corpus = corpus
        self.seeds = list(seeds)
        self.device = str(device)
        self.lines = []
        self.values = {}
        self.folder = arguments.outputs or (None if arguments.changed else SAVED)
        if self.folder:
            check_writable(self.folder)

    def print(self, text: str = ""):
        """Print a line, or several, of results on standard output."""
        print(text, flush=True)
        self.lines.append(text)

    def record(self, **values):
        """Keep results by name: numbers, strings, arrays, and lists and dictionaries of them."""
        self.values |= {name: _plain(value) for name, value in values.items()}

    def save(self, draw: Callable[[dict], object] | None = None):
        """Write the files, each whole or not at all. ``draw`` takes the recorded values and returns a figure."""
        if self.folder is None:
            changed = ", ".join(sorted(self.arguments.changed))
            note(f"not saved ({changed} given): outputs/ keeps default runs only; --outputs DIR saves this one")
            return
        arguments = {
            name: str(value) if isinstance(value, Path) else value
            for name, value in sorted(vars(self.arguments).items())
            if name not in NOT_PART_OF_THE_RESULT | {"changed"}
        }
        record = {
            "experiment": self.name,
            "arguments": arguments,
            "seeds": self.seeds,
            "corpus": self.corpus,
            "environment": environment(self.device),
            "seconds": round(time.perf_counter() - STARTED, 2),
            "results": self.values,
        }
        path = self.folder / self.name
        numbers = to_json(record)
        picture = png(draw(json.loads(numbers)["results"])) if draw else None  # before anything is replaced
        write_whole(path.with_suffix(".txt"), "".join(line + "\n" for line in self.lines).encode())
        write_whole(path.with_suffix(".json"), numbers.encode())
        if picture:
            write_whole(path.with_suffix(".png"), picture)


def load(name: str, folder: Path = SAVED) -> dict:
    """What a run of the script ``name`` saved in ``folder``: experiment, arguments, seeds, environment, results."""
    path = Path(folder) / f"{name}.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{_shown(path)} is not there: run {name}.py first") from None
    except ValueError as error:
        raise UserError(f"{_shown(path)} is not a results file ({error}): run {name}.py again") from None


def _shown(path: Path) -> Path:
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


def environment(device: str = "cpu") -> dict:
    """The machine and the libraries that a result came from."""
    torch = sys.modules.get("torch")
    libraries = [name for name in ("numpy", "torch") if name in sys.modules]
    return {
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in libraries},
        "system": f"{platform.system()} {platform.machine()}",
        "processor": processor(),
        "cores": available_cores(),
        "threads": torch.get_num_threads() if torch else available_cores(),
        "device": device,
    }


def processor() -> str:
    """The processor's name as the system gives it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def available_cores() -> int:
    """The number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def claim(file) -> bool:
    """Hold an open file until it is closed or this process ends, however it ends; False where another one holds it."""
    try:
        if fcntl:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def core_seconds(record: dict) -> float:
    """About how many seconds of one core a run took: of all of them, or its trainings', if it went on with those."""
    runs = record["results"].get("runs", [])
    trained = sum(run.get("seconds", 0) for run in runs if isinstance(run, dict))
    return max(trained, record["seconds"] * record["environment"]["cores"])


def save_figure(figure, path: Path):
    """Write a matplotlib figure as a PNG file, whole or not at all."""
    write_whole(path, png(figure))


def png(figure) -> bytes:
    """A matplotlib figure as a PNG file's content: the same bytes for the same figure."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def write_whole(path: Path, content: bytes):
    """Write a file aside, then rename it into place: whoever looks sees the old file or the new one, never a part."""
    handle, aside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes a file that only its owner can read; saved results are for everybody the umask allows.
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(aside, 0o666 & ~umask)
        os.replace(aside, path)
    except BaseException:
        os.unlink(aside)
        raise


def to_json(value, indent: str = "") -> str:
    """JSON that people can read: one line for each name, a list of plain numbers or words on one line."""
    inner = indent + " "
    if isinstance(value, dict) and value:
        rows = [
            f"{inner}{json.dumps(str(key), ensure_ascii=False)}: {to_json(item, inner)}" for key, item in value.items()
        ]
        text = "{\n" + ",\n".join(rows) + f"\n{indent}}}"
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        text = "[\n" + ",\n".join(inner + to_json(item, inner) for item in value) + f"\n{indent}]"
    else:
        # NaN and infinity are not JSON. A result that isn't a number has to be reported as what it is, in words.
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return text if indent else text + "\n"


def _plain(value):
    """The same value without numpy's or torch's types."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def check_writable(folder: Path):
    """Raise UserError if nothing can be saved in a folder, which is made if it isn't there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UserError(f"can't write in {folder}: {error.strerror}; name a folder that can be written") from None
