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

    def __init__(self, folders: dict[str, Path], names: dict[str, str], costs: dict[str, float], todo: list[str]):
        self.folders, self.names, self.costs = folders, names, costs
        self.running = dict.fromkeys(todo, 0.0)
        self.terminal = bool(sys.stderr) and sys.stderr.isatty()
        self.period = 0.0 if self.terminal else LOG_SECONDS
        self.shown = time.monotonic() + min(FIRST_SECONDS, self.period) - self.period
        done, _ = self._look()
        self.bar = tqdm(
            total=sum(costs.values()),
            initial=done,
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
        self.bar.n, text = self._look()
        self.bar.set_postfix_str(text, refresh=self.terminal)
        if not self.terminal:
            note(str(self.bar))

    def finish(self, key: str):
        """Count a training as done, and clear the line for what is printed about it."""
        del self.running[key]
        self.bar.clear()

    def close(self):
        """Take the bar away."""
        self.bar.leave = False
        self.bar.close()

    def _look(self) -> tuple[float, str]:
        """The cost of all that is done, and the trainings that are running."""
        texts = []
        for key in self.running:
            try:
                step, total, shown = json.loads((self.folders[key] / "progress.json").read_text(encoding="utf-8"))
            except (OSError, ValueError):  # not begun, or read while being written
                continue
            self.running[key] = step / total
            texts.append(
                " ".join([f"{self.names[key]} {step:,}/{total:,}", *(f"{k} {v:.4g}" for k, v in shown.items())])
            )
        left = sum(self.costs[key] * (1 - done) for key, done in self.running.items())
        return sum(self.costs.values()) - left, "; ".join(texts)
