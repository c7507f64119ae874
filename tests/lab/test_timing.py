"""What a computation takes (lab/timing.py): turns, clocks, growth, memory. Times themselves are never asserted."""

import math

import numpy as np
import pytest
import torch

from lab import timing

CPU = torch.device("cpu")
FLOAT = 4  # bytes
LENGTHS = [64, 128, 256, 512, 1024, 2048, 4096, 8192]


def test_the_clock_is_read_after_the_device_has_finished(monkeypatch):
    events = []
    monkeypatch.setattr(torch.accelerator, "synchronize", lambda device: events.append("wait"))
    monkeypatch.setattr(timing.time, "perf_counter", lambda: events.append("clock") or len(events))
    timing.seconds(lambda: events.append("work"), torch.device("cuda"))
    assert events == ["wait", "clock", "work", "wait", "clock"]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_s_own_clock_agrees():
    """Within 10%, for some tens of ms of products."""
    device = torch.device("cuda")
    x = torch.randn(4096, 4096, device=device)
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def work():
        start.record()
        for _ in range(20):
            x @ x
        end.record()

    timing.seconds(work, device)  # a warm-up
    ours = 1000 * timing.seconds(work, device)
    assert start.elapsed_time(end) == pytest.approx(ours, rel=0.1)


def test_rivals_take_turns_and_the_warm_up_is_not_counted(monkeypatch):
    clock, calls = [0.0], []

    def rival(name):
        def run():
            calls.append(name)
            clock[0] += len(calls)  # call number n takes n seconds

        return run

    monkeypatch.setattr(timing.time, "perf_counter", lambda: clock[0])
    ms = timing.take_turns({"a": rival("a"), "b": rival("b")}, CPU, warm_up=2, runs=3)
    assert calls == ["a", "b"] * 5
    assert ms == {"a": [5000, 7000, 9000], "b": [6000, 8000, 10000]}


def test_slope_is_the_power_that_a_cost_grows_with():
    x = [64, 128, 256, 1000]
    assert timing.slope(x, [3 * value**1.5 for value in x]) == pytest.approx(1.5)
    assert timing.slope(x, [7.0] * 4) == pytest.approx(0, abs=1e-12)
    # Twice as long and three times as slow: log 3 / log 2. A slope of the values themselves would be 2.
    assert timing.slope([1, 2], [1, 3]) == pytest.approx(1.5849625007)


def test_fit_finds_the_terms_of_times_that_have_them():
    T = np.array(LENGTHS, float)
    found = timing.fit(T, 0.3 + 0.002 * T + 1e-5 * T**2, (0, 1, 2))
    assert found == pytest.approx({0: 0.3, 1: 0.002, 2: 1e-5})
    assert timing.fit(T, 0.02 * T, (0, 1)) == pytest.approx({0: 0, 1: 0.02}, abs=1e-9)


def test_fit_never_makes_a_term_negative():
    """T² - 1,000 T + 10⁶ bends down first; the best without negative terms is no worse than any single one."""
    T = np.array(LENGTHS, float)
    ms = T**2 - 1000 * T + 1e6
    found = timing.fit(T, ms, (0, 1, 2))
    assert min(found.values()) >= 0

    def error(c):
        return np.square(sum(c[p] * T**p for p in c) / ms - 1).sum()

    for power in range(3):
        terms = T**power / ms
        assert error(found) <= error({power: terms.sum() / np.square(terms).sum()}) + 1e-12


def test_crossovers_of_synthetic_times():
    T = [64, 128, 256, 512, 1024, 2048]
    gru, attention = [0.02 * n for n in T], [1e-5 * n**2 for n in T]
    # Equal at T = 0.02 / 1e-5 = 2,000; pure powers are straight lines between logarithms, so it is found exactly.
    assert timing.measured_crossover(T, gru, attention) == pytest.approx(2000)
    assert timing.fitted_crossover({0: 0, 1: 0.02}, {0: 0, 1: 0, 2: 1e-5}) == pytest.approx(2000)
    # 1e-5 T² + (0.001 - 0.02) T + (0.5 - 1) = 0: T = (0.019 + √(0.019² + 4 · 1e-5 · 0.5)) / 2e-5
    root = (0.019 + math.sqrt(0.019**2 + 2e-5)) / 2e-5
    assert timing.fitted_crossover({0: 1, 1: 0.02}, {0: 0.5, 1: 0.001, 2: 1e-5}) == pytest.approx(root)


def test_no_crossover_where_one_is_always_ahead():
    T = [64, 128, 256]
    assert timing.measured_crossover(T, [1, 2, 4], [0.1, 0.2, 0.4]) is None
    assert timing.measured_crossover(T, [1, 2, 4], [2, 4, 8]) is None
    assert timing.fitted_crossover({0: 1, 1: 0.02}, {0: 0, 1: 0.001, 2: 0}) is None  # never catches up
    assert timing.fitted_crossover({0: 0, 1: 0.02}, {0: 5, 1: 0.03, 2: 1e-5}) is None  # always behind
    # Ahead, behind by noise, ahead, behind for good: the last change counts.
    times = [1.0, 2.0, 1.0, 2.0]
    assert 256 < timing.measured_crossover([64, 128, 256, 512], [1.5] * 4, times) < 512


def test_memory_is_what_is_held_at_one_time():
    def three_one_after_the_other():
        for _ in range(3):
            torch.ones(1000)

    def three_at_once():
        return [torch.ones(1000) for _ in range(3)]

    assert timing.peak_bytes(three_one_after_the_other, CPU) == 1000 * FLOAT
    assert timing.peak_bytes(three_at_once, CPU) == 3000 * FLOAT


def test_views_and_what_was_there_before_take_no_memory():
    x = torch.ones(100, 10)

    def views():
        y = x.t()[3:].unbind()  # views of what was there
        x.mul_(2)
        z = x + 1  # the only new one: 1,000 numbers
        return y, z.view(-1), z[5:], z.add_(1), x.expand(7, 100, 10)

    assert timing.peak_bytes(views, CPU) == 1000 * FLOAT


def test_memory_counts_what_is_kept_for_the_backward_pass():
    x = torch.ones(1000, requires_grad=True)

    def forward():
        return x.exp().exp().exp().sum()  # each keeps its result for its derivative

    with torch.no_grad():
        # One exp's result and the next one's are there at the same time.
        assert timing.peak_bytes(forward, CPU) == 2000 * FLOAT
    # Three results and the sum; backward, the gradient at the sum, spread over the 1,000 as a view of it, then the
    # gradient at the last exp's argument beside those three.
    assert timing.peak_bytes(forward, CPU) == (3000 + 1) * FLOAT
    assert timing.peak_bytes(lambda: torch.autograd.grad(forward(), x), CPU) >= (4000 + 1) * FLOAT
