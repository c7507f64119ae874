"""beyond/scan_lengths.py: who is timed, how often, and what is told of the times."""

import pytest
import torch
from commands import record_of

from beyond import scan_lengths


def test_times_are_told_for_each_rival_and_length(monkeypatch, tmp_path):
    """Of times themselves only that they are there: the recurrent form isn't differentiated beyond MOST_STATES."""
    for name, value in {"LENGTHS": [4, 8, 16], "LONG": 16, "MOST_STATES": 8}.items():
        monkeypatch.setattr(scan_lengths, name, value)
    found = record_of(scan_lengths, tmp_path)["results"]
    assert (found["lengths"], found["device"]) == ([4, 8, 16], "cpu")
    for kind in scan_lengths.PASSES:
        counts = {name: [len(runs) for runs in series] for name, series in found[kind]["every_run_ms"].items()}
        assert len(counts) == 10
        recurrent = counts.pop("linear attention, recurrent")
        assert recurrent == ([5, 5, 3] if kind == "forward" else [5, 5])
        assert all(count == [5, 5, 3] for count in counts.values())
    assert (tmp_path / "scan_lengths.png").stat().st_size > 10_000
    # d = 256: 3 gates of W_i, W_h and two biases; q, k, v; two products with a bias, three with one; for each channel
    # four complex A and C.
    d = 256
    counts = {"GRU": 6 * d * d + 6 * d, "attention": 3 * d * d, "minGRU": 2 * d * d + 2 * d}
    counts |= {"linear attention": 3 * d * d + 3 * d, "state space": d * 4 * 2 * 2}
    assert found["parameters"] == counts


def test_three_rounds_come_before_those_that_count(monkeypatch):
    given = []
    monkeypatch.setattr(scan_lengths, "build", lambda length, device: {})
    monkeypatch.setattr(scan_lengths.timing, "take_turns", lambda rivals, device, **rounds: given.append(rounds) or {})
    for length in 2048, 4096:
        scan_lengths.times(length, torch.device("cpu"))
    assert given == [{"warm_up": 3, "runs": 5}, {"warm_up": 3, "runs": 3}]


def test_rivals_read_inputs_and_give_outputs_of_the_same_size():
    for function, inputs in scan_lengths.build(12, torch.device("cpu")).values():
        assert function().numel() == inputs[0].numel() == 12 * scan_lengths.WIDTH


def test_slopes_and_shares_are_those_of_the_times(monkeypatch, tmp_path):
    """Times of t · length² from the second length on, so a slope of 2. At the end a scan takes a quarter of the loop's
    time and four fifths of the GRU's, and the chunked form twice what fused attention does."""
    at_the_end = {"minGRU, scan": 4, "minGRU, loop": 16, "GRU": 5, "linear attention, chunked": 6, "fused attention": 3}

    def times(length, device):
        ms = {name: [t * (500 if length == 4 else length**2 / 1024)] * 3 for name, t in at_the_end.items()}
        return dict.fromkeys(scan_lengths.PASSES, ms)

    monkeypatch.setattr(scan_lengths, "LENGTHS", [4, 8, 16, 32])
    monkeypatch.setattr(scan_lengths, "times", times)
    record = record_of(scan_lengths, tmp_path)
    for kind in scan_lengths.PASSES:
        found = record["results"][kind]
        assert found["slopes"] == pytest.approx(dict.fromkeys(at_the_end, 2))
        assert found["ms"]["GRU"] == [2500, 0.3125, 1.25, 5]
    for line in (
        "at 32 steps minGRU, scan takes 0.250 of the time of minGRU, loop",
        "at 32 steps minGRU, scan takes 0.800 of the time of GRU",
        "at 32 steps linear attention, chunked takes 2.000 of the time of fused attention",
    ):
        assert record["printed"].count(line) == len(scan_lengths.PASSES)
