"""Keeping an experiment's results: the numbers unrounded, the text as printed, the figure; and reading them again.

``outputs/gates.json`` holds what ``measure`` returned with everything needed to judge it, ``outputs/gates.txt`` is what
was printed, to the byte, and ``outputs/gates.png`` is drawn from the numbers in the JSON file.
"""

import hashlib
import io
import json
import os
import platform
import shutil
import stat
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: nothing then stops two processes from doing the same work side by side
    fcntl = None

from lab import sources
from lab.errors import ROOT, SAVED, UserError, note, shown

WORK = ROOT / "work"
STARTED = time.perf_counter()
STRAY_SECONDS = 60  # after which a file that was being written and never renamed belongs to a process that was killed
# What every saved record has, and of which type.
RECORD = {
    "experiment": str, "arguments": dict, "takes": list, "kinds": dict, "corpus": str | None, "environment": dict,
    "seconds": float | int, "results": dict,
}  # fmt: skip


def record(
    name: str, arguments: Namespace, found: dict, *, kinds: dict[str, str], takes: list[str], made_by: str = ""
) -> dict:
    """What is saved of a run: ``found`` is what it measured, ``takes`` are the shared options that it understands."""
    ignored = {"outputs", "jobs", "cluster", "changed", "work"}
    given = {key: _plain(value) for key, value in sorted(vars(arguments).items()) if key not in ignored}
    about = {key: _plain(found[key]) if key in found else default for key, default in (("seeds", []), ("corpus", None))}
    return {
        "experiment": name,
        "arguments": given,
        "made_by": made_by,
        "takes": takes,
        "kinds": kinds,
        **about,
        "environment": environment(getattr(arguments, "device", "cpu")),
        "seconds": round(time.perf_counter() - STARTED, 2),
        "results": {key: _plain(value) for key, value in found.items() if key not in about},
    }


def made_by(module: str, changed: dict) -> str:
    """A few letters for the code, the libraries and the arguments that make a result; its text has a fingerprint."""
    given = {name: str(value) for name, value in sorted(changed.items()) if name != "data"}
    return hashlib.sha256(json.dumps([given, sources.digest(module)]).encode()).hexdigest()[:16]


def as_saved(record: dict) -> dict:
    """A record as it will be read again: keys are words, tuples are lists."""
    return json.loads(to_json(record))


def save(folder: Path, record: dict, lines: list[str], draw: Callable[[dict], object] | None = None):
    """Replace the saved set of an experiment: numbers and text first, then the figure, each file whole or not at all.

    What belongs to other numbers is taken away before the numbers are replaced: a kill can leave a file missing, which
    ``rerun.py --redraw`` makes again, but never one beside numbers that it isn't from.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / record["experiment"]
    for stray in folder.glob(f".{path.name}.*.aside"):
        with suppress(OSError):
            if time.time() - stray.stat().st_mtime > STRAY_SECONDS:
                stray.unlink()
    text = "".join(line + "\n" for line in lines).encode()
    numbers = to_json(record).encode()
    with aside(path.with_suffix(".json"), numbers) as put_numbers, aside(path.with_suffix(".txt"), text) as put_text:
        for suffix in ".png", ".txt":
            path.with_suffix(suffix).unlink(missing_ok=True)
        put_numbers()
        put_text()
    if draw:
        write_whole(path.with_suffix(".png"), png(draw(as_saved(record)["results"])))


def command(name: str) -> str:
    """What is typed to run the experiment of this name."""
    return f"python {name}.py" if (ROOT / f"{name}.py").exists() else f"python -m beyond.{name}"


def load(name: str, folder: Path = SAVED) -> dict:
    """What a run of the experiment ``name`` saved in ``folder``, as ``record`` made it."""
    path = Path(folder) / f"{name}.json"
    if not path.exists():
        raise UserError(f"{shown(path)} is not there: run {command(name)} first")
    try:
        found = json.loads(read(path))
        for key, kind in RECORD.items():
            if not isinstance(found[key], kind):
                raise ValueError(f"its {key} is of another type")
        if found["experiment"] != name:
            raise ValueError(f"it is of {found['experiment']}")
        if not all(kind and isinstance(kind, str) for kind in found["kinds"].values()):
            raise ValueError("its kinds are not words")
        if not (isinstance(found["environment"]["cores"], int) and isinstance(found["environment"]["device"], str)):
            raise ValueError("its environment is of another form")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(f"{shown(path)} is not a results file ({error}): run {name} again") from None
    return found


@contextmanager
def understood(*paths: Path):
    """For whatever is made of the results that were loaded from these files: if it can't be, that is a file's fault."""
    try:
        yield
    except (UserError, OSError, MemoryError):
        raise
    except Exception as error:
        names = " or ".join(str(shown(path)) for path in paths)
        raise UserError(f"{names} holds other results than this version saves ({error!r}): run it again") from error


def published() -> dict:
    """The figures that the post printed: data/published.json, held to its checksum."""
    path = ROOT / "data" / "published.json"
    content = read(path)
    if hashlib.sha256(content).hexdigest() not in read(path.with_name("SHA256SUMS")).decode(errors="replace"):
        raise UserError(f"{shown(path)} is not as SHA256SUMS says: restore what was")
    return json.loads(content)


def read(path: Path) -> bytes:
    """A file's content. A pipe or an endless device is refused and not waited for."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise UserError(f"can't read {shown(path)}: it is not a file")
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"can't read {shown(path)}: {error.strerror}") from None


def diverged(found) -> Iterator[dict]:
    """The records of trainings that diverged, wherever they are among the results."""
    if isinstance(found, dict) and "diverged_at_step" in found:
        yield found
    elif isinstance(found, dict | list):
        for item in found.values() if isinstance(found, dict) else found:
            yield from diverged(item)


class Work:
    """Where a command keeps its work in progress until its results are saved: work/NAME/KEY/ at the repository's root.

    KEY stands for the arguments that matter, for the code and for the libraries: the same command goes on where it was
    interrupted, and an edited one starts afresh.
    """

    def __init__(self, module: str, name: str, arguments: Namespace, ignored: set[str]):
        given = {key: str(value) for key, value in sorted(vars(arguments).items()) if key not in ignored}
        self.module, self.made_of = module, sources.made_of(module)
        key = hashlib.sha256(json.dumps([given, sources.digest(module)]).encode()).hexdigest()[:12]
        self.folder = WORK / name / key
        self.lock = None
        self.unfinished = False  # set by an experiment that couldn't do all it was asked: the work stays, to go on from

    def hold(self) -> str:
        """Make the folder and hold it against other processes; returns a token that stands for this command's run."""
        if self.lock is None:
            self.token = f"{os.getpid()} {time.time_ns()}"
            try:
                self.lock = self._locked()
                others = [path for path in self.folder.parent.iterdir() if path != self.folder]
                begun = any(path.is_dir() for path in self.folder.iterdir())
                self.lock.truncate(0)
                self.lock.write(self.token.encode())
            except OSError as error:
                raise UserError(f"can't keep work in progress in {shown(self.folder)}: {error.strerror}") from None
            if others and not begun:
                note(f"{shown(self.folder.parent)} holds work of other arguments or of other code: this starts afresh")
        return self.token

    def _locked(self):
        """The lock, held. The folder can go while it is looked for: another command ends and clears it."""
        for _ in range(4):
            with suppress(FileNotFoundError, FileExistsError):
                self.folder.mkdir(parents=True, exist_ok=True)
                lock = open(self.folder / "lock", "ab", buffering=0)  # noqa: SIM115
                claimed = claim(lock)
                if claimed and self._is_ours(lock):
                    return lock
                lock.close()
                if not claimed:
                    raise UserError("the same command is running already: wait for it, or stop it")
        raise UserError("the same command is ending just now: give it again")

    def _is_ours(self, lock) -> bool:
        """Whether the folder is the one that the lock lies in, and not another command's, made since."""
        try:
            return os.path.samestat(os.fstat(lock.fileno()), (self.folder / "lock").stat())
        except FileNotFoundError:
            return False

    def clear(self):
        """Remove all of it, once results are saved."""
        if self.lock and not self.unfinished and self._is_ours(self.lock):
            shutil.rmtree(self.folder, ignore_errors=True)
            with suppress(OSError):  # it holds other work
                self.folder.parent.rmdir()

    def release(self):
        """Let go of the folder: nobody waits for what is still being trained in it."""
        if self.lock:
            with suppress(OSError):
                self.lock.truncate(0)
                if not any(path.is_file() for path in self.folder.glob("*/*")):  # no training has begun
                    self.clear()
            self.lock.close()
            self.lock = None


def environment(device: str = "cpu") -> dict:
    """The machine and the libraries that a result came from."""
    torch = sys.modules.get("torch")
    libraries = [name for name in ("numpy", "torch") if name in sys.modules]
    devices = sys.modules.get("lab.devices")
    return {
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in libraries},
        "system": f"{platform.system()} {platform.machine()}",
        "processor": processor(),
        "cores": available_cores(),
        "threads": torch.get_num_threads() if torch else available_cores(),
        "device": device,
        **(devices.about(device) if devices else {}),
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


def png(figure) -> bytes:
    """A matplotlib figure as a PNG file's content: the same bytes for the same figure."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


@contextmanager
def aside(path: Path, content: bytes) -> Iterator[Callable[[], None]]:
    """Write a file's content beside it. Calling what this gives puts it in place; otherwise it is removed again."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem[:40]}.", suffix=".aside")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes a file that only its owner can read; results are for everybody the umask allows.
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)
        yield lambda: os.replace(name, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)


def write_whole(path: Path, content: bytes):
    """Write a file aside, then rename it into place: whoever looks sees the old file or the new one, never a part."""
    with aside(path, content) as put:
        put()


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
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | range):
        return [_plain(item) for item in value]
    return value


def check_writable(folder: Path):
    """Raise UserError if nothing can be saved in a folder. It isn't made yet: a refusal later on leaves nothing."""
    there = folder
    try:
        while not there.exists():
            there = there.parent
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise UserError(f"can't write in {folder}: {error.strerror}; name a folder that can be written") from None


def check_file(path: Path):
    """Raise UserError if a file can't be written there, or if what would be lost is a pipe, a device or a folder."""
    check_writable(path.parent)
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise UserError(f"can't write {path}: what is there is not a file; name another")
    except FileNotFoundError:
        pass
    except OSError as error:
        raise UserError(f"can't write {path}: {error.strerror}") from None
