"""Progress of many trainings on standard error: how much of all is done, the time left, what is running."""

import io
import json
import sys
import time
from pathlib import Path

from tqdm import tqdm

from lab.errors import note

LOG_SECONDS = 60  # between lines of progress where standard error isn't a terminal
FIRST_SECONDS = 5  # until the first one


class Bar:
    """A bar on a terminal, a line a minute elsewhere. Reads the files that Checkpoint.tick writes."""

    def __init__(self, folder: Path, trainings: dict[str, object], records: dict[str, dict]):
        """Configurations by the names of their folders, and the records of those that are done: both grow."""
        self.folder, self.trainings, self.records = folder, trainings, records
        self.terminal = bool(sys.stderr) and sys.stderr.isatty()
        self.period = 0.0 if self.terminal else LOG_SECONDS
        self.shown = time.monotonic() + min(FIRST_SECONDS, self.period) - self.period
        self.bar = tqdm(
            initial=self._look()[0],
            file=sys.stderr if self.terminal else io.StringIO(),
            bar_format="{percentage:3.0f}%" + "|{bar}|" * self.terminal + " {elapsed}, {remaining} left{postfix}",
            dynamic_ncols=True,
            smoothing=0,
        )

    def show(self):
        """Show how far everything is."""
        if time.monotonic() - self.shown < self.period:
            return
        self.shown = time.monotonic()
        self.bar.n, self.bar.total, text = self._look()
        self.bar.set_postfix_str(text, refresh=self.terminal)
        if not self.terminal:
            note(str(self.bar))

    def clear(self):
        """Clear the line for what is printed about a training that is done."""
        self.bar.clear()

    def close(self):
        """Take the bar away."""
        self.bar.leave = False
        self.bar.close()

    def _look(self) -> tuple[float, float, str]:
        """The cost of all that is done, that of everything, and the trainings that are running."""
        done, total, texts = 0.0, 0.0, []
        for key, config in self.trainings.items():
            cost = getattr(config, "cost", 1)
            total += cost
            if key in self.records:
                done += cost
                continue
            try:
                step, steps, shown = json.loads((self.folder / key / "progress.json").read_text(encoding="utf-8"))
            except (OSError, ValueError):  # not begun, or read while being written
                continue
            done += cost * step / steps
            texts.append(" ".join([f"{config} {step:,}/{steps:,}", *(f"{k} {v:.4g}" for k, v in shown.items())]))
        return done, total, "; ".join(texts)
