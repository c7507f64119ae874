"""Every experiment, by the chapter of the post that it belongs to, and what its saved results say about it.

A new experiment is a script, a line in CHAPTERS and a row in beyond/README.md. How long it takes, whether it reads the
text and whether anything may run beside it is known from what it saved; before it has, its module is asked. One that
looks at what others have saved names them in a constant READS, so that a rerun starts it when they have ended.
"""

import ast
from functools import cached_property
from importlib import import_module

from lab import results, script, sources
from lab.errors import ROOT

CHAPTERS = {
    "Gradients through time": [
        "bptt",
        "beyond.decay",
        "vanishing",
        "gates",
        "beyond.cell_path",
        "beyond.cells_table",
        "beyond.recall",
        "beyond.recall_why",
        "beyond.recall_cut",
        "beyond.explosions",
        "beyond.bidirectional",
    ],
    "Counting": ["corpus", "ngram", "kneser_ney", "beyond.hmm", "beyond.ten_words_back"],
    "Recurrent language models": ["char_models", "char_models_long", "beyond.evaluation", "beyond.gates_trained"],
    "The bottleneck, and attention": [
        "reverse",
        "reverse_40_longer",
        "reverse_40_lr",
        "reverse_40_6000",
        "beyond.reverse_unclipped",
        "beyond.reverse_40_unclipped",
        "beyond.reverse_seeds",
        "beyond.reverse_copy",
        "beyond.reverse_bahdanau",
        "beyond.reverse_mixed",
        "beyond.teacher_forcing",
        "beyond.ctc",
        "beyond.ctc_digits",
        "beyond.latency",
    ],
    "Why Transformers won": [
        "parallel",
        "beyond.parallel_lengths",
        "beyond.generation",
        "beyond.path_length",
        "beyond.scan",
        "beyond.scan_lengths",
        "beyond.scan_models",
        "beyond.ladder_models",
        "beyond.course_table",
        "beyond.gpt",
        "beyond.beat_counting_settings",
        "beyond.beat_counting",
        "beyond.horizon",
        "beyond.ladder",
    ],
}
QUICK_SECONDS = 30  # of one core: what takes less is rerun without being asked for


class Entry:
    """An experiment: ``module`` is what is run, ``name`` that of its files, ``record`` what is saved of it, if any."""

    def __init__(self, module: str):
        self.module, self.name = module, module.removeprefix("beyond.").replace("benchmarks.", "benchmark_")

    @cached_property
    def record(self) -> dict | None:
        return results.load(self.name) if (results.SAVED / f"{self.name}.json").exists() else None

    def script(self) -> script.Experiment:
        """Its code, imported only now."""
        return script.experiment(import_module(self.module))

    @cached_property
    def takes(self) -> list[str]:
        """The shared options that it understands: some of data, device, jobs and cluster."""
        if self.record:
            return self.record["takes"]
        return [name for name in script.SHARED if hasattr(self.script().parser().parse_args([]), name)]

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """The experiments whose results it looks at: the words of its READS, for which nothing is imported."""
        code = ast.parse(sources.path_of(self.module).read_bytes())
        assigned = {ast.unparse(node.targets[0]): node.value for node in code.body if isinstance(node, ast.Assign)}
        return ast.literal_eval(assigned["READS"]) if "READS" in assigned else ()

    @cached_property
    def is_timed(self) -> bool:
        """Whether it takes times, so that nothing may run beside it. A training's own seconds are told, not judged; and
        what repeats times that others took is computed on no device.
        """
        kinds = self.record["kinds"] if self.record else self.script().kinds
        return "device" in self.takes and any(
            kind.split()[0] == "timing" and not path.endswith("seconds") for path, kind in kinds.items()
        )

    @property
    def is_sweep(self) -> bool:
        """Whether it is many trainings, which run side by side, and itself beside another sweep."""
        return "jobs" in self.takes and not self.is_timed

    @property
    def turn(self) -> tuple:
        """What a rerun is sorted by: quick ones in their order, sweeps from the longest, then what takes times."""
        return self.is_timed, self.is_sweep, -self.core_seconds * self.is_sweep

    @property
    def is_quick(self) -> bool:
        return self.core_seconds < QUICK_SECONDS

    @cached_property
    def core_seconds(self) -> float:
        """About how many seconds of one core its saved run took: all of them, or its trainings' where it went on."""
        if not self.record:
            return 1.0
        trained = sum(run.get("seconds", 0) for run in runs(self.record))
        return max(trained, self.record["seconds"] * self.record["environment"]["cores"])


def entries() -> dict[str, Entry]:
    """All experiments by name, in the order of the chapters."""
    found = [Entry(module) for modules in CHAPTERS.values() for module in modules]
    return {entry.name: entry for entry in found}


def benchmarks() -> list[Entry]:
    """What is measured beside the experiments, and never rerun with them."""
    return [Entry(f"benchmarks.{path.stem}") for path in sorted((ROOT / "benchmarks").glob("[!_]*.py"))]


def runs(record: dict) -> list[dict]:
    """The trainings of a record."""
    return [run for run in record["results"].get("runs", []) if isinstance(run, dict)]
