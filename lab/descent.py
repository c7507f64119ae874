"""The one loop of every training by gradient descent: step, finite check, clipping, curve, clock, checkpoint, resume.

    training = Descent(model, optimizer, loss_on, generator, config, checkpoint)
    for step in training:                               # after each step, from 1 or from where it was interrupted
        if step in points:
            training.log(step=step, validation=estimate(model))
            training.keep_best("validation")            # the weights of the lowest so far
    return trainings.settings(config) | {"seconds": training.seconds, "curve": training.curve, ...}

``loss_on(generator)`` draws a batch and returns its mean loss. ``config`` says ``steps`` and ``clip``, the largest norm
that a gradient may have (None: any).
"""

import math
import time
from collections.abc import Callable, Iterator

import torch
from torch import nn

from lab.errors import Diverged
from lab.trainings import Checkpoint

FETCHED_AT_ONCE = 50  # losses of steps on a device other than the CPU: to ask for each would wait for each


class Descent:
    """A training that goes on where an interrupted one stopped, and ends with the same bits.

    ``losses`` and ``norms`` (of the gradient, before clipping) hold a number for each step; ``curve`` what was logged;
    ``best`` the weights kept, with their ``step``; ``seconds`` is what the steps took, and what was done between them.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        loss_on: Callable[[torch.Generator], torch.Tensor],
        generator: torch.Generator,
        config,
        checkpoint: Checkpoint,
    ):
        self.model, self.optimizer, self.loss_on, self.generator = model, optimizer, loss_on, generator
        self.config, self.checkpoint = config, checkpoint
        self.device = next(model.parameters()).device
        # On the CPU what else the processor had to do doesn't count.
        self._clock = time.process_time if self.device.type == "cpu" else time.perf_counter
        self._waiting = []  # (loss, norm) of the last steps, not yet fetched
        self._noise = torch if self.device.type == "cpu" else torch.get_device_module(self.device)  # dropout's
        self.step, self.seconds, self.losses, self.norms, self.curve, self.best = 0, 0.0, [], [], {}, None

    def __iter__(self) -> Iterator[int]:
        self._resume()
        began = self._clock() - self.seconds
        while self.step < self.config.steps:
            self.step += 1
            self._descend()
            yield self.step
            self.seconds = self._clock() - began
            self.checkpoint.tick(self.step, self.config.steps, loss=self.losses[-1] if self.losses else math.nan)
            self.checkpoint.save_if_due(self._state)

    def _descend(self):
        loss = self.loss_on(self.generator)
        self.optimizer.zero_grad()
        loss.backward()
        limit = math.inf if self.config.clip is None else self.config.clip
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), limit)
        self._waiting.append(torch.stack([loss.detach(), norm]))
        if self.device.type == "cpu" or len(self._waiting) == FETCHED_AT_ONCE or self.step == self.config.steps:
            self._fetch()
        self.optimizer.step()

    def _fetch(self):
        """Raise Diverged at the first step whose loss or gradient isn't finite."""
        for loss, norm in torch.stack(self._waiting).tolist():
            if not math.isfinite(loss + norm):
                raise Diverged(len(self.losses) + 1)
            self.losses.append(loss)
            self.norms.append(norm)
        self._waiting = []

    def log(self, **values: float):
        """Add a point to the learning curve."""
        for name, value in values.items():
            self.curve.setdefault(name, []).append(value)

    def keep_best(self, name: str):
        """Keep the weights if the last point of this curve is its lowest."""
        if self.curve[name][-1] == min(self.curve[name]):
            weights = {key: value.clone() for key, value in self.model.state_dict().items()}
            self.best = {"step": self.step, "model": weights}

    def _state(self) -> dict:
        if self._waiting:
            self._fetch()
        kept = {name: getattr(self, name) for name in ("step", "seconds", "losses", "norms", "curve", "best")}
        parts = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        return kept | parts | {"generator": self.generator.get_state(), "noise": self._noise.get_rng_state()}

    def _resume(self):
        self._noise.manual_seed(self.generator.initial_seed())
        if state := self.checkpoint.load():
            for name in "step", "seconds", "losses", "norms", "curve", "best":
                setattr(self, name, state[name])
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.generator.set_state(state["generator"])
            self._noise.set_rng_state(state["noise"])
