"""What a computation takes: the time of rivals that take turns, how a cost grows, the memory held at most."""

import statistics
import time
import weakref
from collections.abc import Callable
from functools import partial
from itertools import combinations, pairwise
from math import exp, log

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode


def take_turns(rivals: dict[str, Callable], device: torch.device, *, warm_up: int, runs: int) -> dict[str, list[float]]:
    """How many ms each call took, after ``warm_up`` rounds that aren't counted. In every round each rival runs once."""
    ms = {name: [] for name in rivals}
    for _ in range(warm_up + runs):
        for name, function in rivals.items():
            ms[name].append(1000 * seconds(function, device))
    return {name: times[warm_up:] for name, times in ms.items()}


def seconds(function: Callable, device: torch.device) -> float:
    """How long one call takes, all that it asks of the device included."""
    wait(device)
    start = time.perf_counter()
    function()
    wait(device)
    return time.perf_counter() - start


def wait(device: torch.device):
    if device.type != "cpu":
        torch.accelerator.synchronize(device)


def slope(x: list[float], y: list[float]) -> float:
    """The power of x that y grows with: the slope of a straight line through their logarithms, by least squares."""
    return statistics.linear_regression([log(value) for value in x], [log(value) for value in y]).slope


def fit(x: list[float], y: list[float], powers: tuple[int, ...]) -> dict[int, float]:
    """The coefficients of y = Σ c_p x^p with the least squares of relative errors, none of them negative.

    With so few terms, every choice of those that are above 0 can be tried.
    """
    terms = np.array([[a**power / b for power in powers] for a, b in zip(x, y, strict=True)])
    best, least = None, np.inf
    for size in range(1, len(powers) + 1):
        for kept in map(list, combinations(range(len(powers)), size)):
            c = np.zeros(len(powers))
            c[kept] = np.linalg.lstsq(terms[:, kept], np.ones(len(terms)))[0]
            error = np.square(terms @ c - 1).sum()
            if (c >= 0).all() and error < least:
                best, least = c, error
    return dict(zip(powers, best.tolist(), strict=True))


def fitted_crossover(one: dict[int, float], other: dict[int, float]) -> float | None:
    """The x from which on the other's fit, which has an x², is the greater for good; None if it never is, or always."""
    roots = np.roots([other.get(power, 0) - one.get(power, 0) for power in (2, 1, 0)])
    positive = [root.real for root in roots if root.imag == 0 and root.real > 0]
    return float(max(positive)) if positive and other.get(2, 0) > 0 else None


def measured_crossover(x: list[float], one: list[float], other: list[float]) -> float | None:
    """The same from values, on straight lines between logarithms."""
    gaps = [log(b / a) for a, b in zip(one, other, strict=True)]
    for (low, high), (before, after) in reversed(list(zip(pairwise(x), pairwise(gaps), strict=True))):
        if before < 0 <= after:
            return exp(log(low) - before / (after - before) * log(high / low))
    return None


def peak_bytes(function: Callable, device: torch.device) -> int:
    """The most bytes of tensors that were there at one time during a call and not before it.

    CUDA's allocator counts them itself, with what kernels take for their own use. Elsewhere every tensor is counted as
    an operation returns it, which slows the call down but not what it holds; not in inference mode, where operations
    made of others aren't taken apart.
    """
    if device.type == "cuda":
        wait(device)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        function()
        return torch.cuda.max_memory_allocated(device) - before
    with _Held() as held:
        function()
    return held.peak


class _Held(TorchDispatchMode):
    """Counts the bytes of the tensors that operations make, until nobody holds them any more."""

    def __init__(self):
        super().__init__()
        self.now = self.peak = 0
        self.references = {}  # by the storage's address

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = function(*args, **kwargs)
        known = {storage._cdata for storage in _storages([*args, *kwargs.values()])}
        for storage in _storages([result]):
            address, nbytes = storage._cdata, storage.nbytes()
            if address not in known:  # otherwise a view of an argument, or the argument itself
                known.add(address)
                self.now += nbytes
                self.peak = max(self.peak, self.now)
                self.references[address] = weakref.ref(storage, partial(self._free, address, nbytes))
        return result

    def _free(self, address, nbytes, _):
        self.now -= nbytes
        del self.references[address]


def _storages(values):
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value.untyped_storage()
        elif isinstance(value, list | tuple):
            yield from _storages(value)
