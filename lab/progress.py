"""Progress of many trainings on standard error: how much of all is done, the time left, what is running."""

import io
import json
import sys
import time
from functools import partial
from pathlib import Path

from tqdm import tqdm

from lab.script import note

TRUSTED_AFTER = 60  # seconds of work, before which the time left is rather what another machine took
LOG_SECONDS = 60  # between lines of progress where standard error isn't a terminal


class Overview:
    """Progress of experiments, as Bar shows that of one's trainings: all of it, the time left, and what is running.

    ``costs`` are seconds of a core that each took elsewhere. How fast this machine gets through them is measured; until
    it has been for a while, ``cores`` of them a second are expected.
    """

    def __init__(self, costs: dict[str, float], done: list[str], cores: int, lines: int):
        self.costs, self.cores = costs, cores
        self.done = self.before = sum(costs[name] for name in done)
        self.finished = len(done)
        self.started = self.shown = time.monotonic()
        self.terminal = sys.stderr.isatty()
        bar = partial(tqdm, file=sys.stderr if self.terminal else io.StringIO(), leave=False, dynamic_ncols=True)
        form = "{percentage:3.0f}%" + "|{bar}|" * self.terminal + " {elapsed}{postfix}"
        self.bar = bar(total=sum(costs.values()), initial=self.done, bar_format=form)
        self.lines = [bar(position=1 + line, bar_format="  {desc}") for line in range(lines)]

    def left(self, running: dict[str, float]) -> float:
        """Seconds that the rest takes, of experiments that are running the share not done."""
        rest = sum(self.costs.values()) - self.now(running)
        elapsed = time.monotonic() - self.started
        return rest * (elapsed + TRUSTED_AFTER) / (self.now(running) - self.before + TRUSTED_AFTER * self.cores)

    def now(self, running: dict[str, float]) -> float:
        return self.done + sum(self.costs[name] * share for name, share in running.items())

    def show(self, running: dict[str, float]):
        """Show how far everything is, given the share that is done of each experiment that is running."""
        if time.monotonic() - self.shown < (1 if self.terminal else LOG_SECONDS):
            return
        self.shown = time.monotonic()
        self.bar.n = self.now(running)
        count = f"{self.finished} of {len(self.costs)} experiments done"
        left = tqdm.format_interval(self.left(running))
        texts = [f"{name} {share:.0%}" for name, share in running.items()]
        self.bar.set_postfix_str(
            f"about {left} left, {count}" + "".join(f"; {text}" for text in texts) * (not self.terminal)
        )
        for line, text in zip(self.lines, [*texts, *[""] * len(self.lines)], strict=False):
            line.set_description_str(text)
        if not self.terminal:
            note(str(self.bar))

    def finish(self, name: str):
        """Count an experiment as done, and clear the screen for what is printed about it."""
        self.done += self.costs[name]
        self.finished += 1
        for bar in (*self.lines, self.bar):
            bar.clear()

    def close(self):
        """Take the lines away."""
        for bar in (*self.lines, self.bar):
            bar.close()


class Bar:
    """A bar on a terminal, a line a minute elsewhere. Reads the files that Keeper.tick writes."""

    def __init__(self, folders: dict[str, Path], names: dict[str, str], costs: dict[str, float], todo: list[str]):
        self.folders, self.names, self.costs = folders, names, costs
        self.running = dict.fromkeys(todo, 0.0)
        self.terminal = sys.stderr.isatty()
        self.period, self.shown = (0.0, 0.0) if self.terminal else (LOG_SECONDS, time.monotonic())
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
