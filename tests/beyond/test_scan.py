"""beyond/scan.py: gaps between forms are rounding, and a gap that is more than that shows."""

import pytest
import torch
from commands import record_of

from beyond import scan
from layers import scans


def test_all_gaps_that_are_printed_are_rounding(monkeypatch, tmp_path):
    for name, value in {"LONGEST": 300, "LENGTH": 70, "WIDTH": 6, "TRAINED": 5}.items():
        monkeypatch.setattr(scan, name, value)
    record = record_of(scan, tmp_path)
    found = record["results"]
    assert len(found["gaps"]) == 1 + len(scan.PAIRS)
    gaps = [gap for pair in found["gaps"].values() for gap in pair.values()] + [found["trained_both_ways"]["weights"]]
    assert all(0 <= gap < 1e-12 for gap in gaps)
    assert record["printed"][0].endswith("(70 steps, width 6)")


def test_a_gap_between_forms_that_differ_shows():
    function, inputs = scan.forms(20, 4, dtype=torch.float64)["minGRU, loop"]
    assert scan.gaps((function, inputs), (function, inputs)) == {"values": 0, "gradients": 0}
    off = scan.gaps((lambda: 1.001 * function(), inputs), (function, inputs))
    assert off == pytest.approx({"values": 0.001, "gradients": 0.001})


def test_a_min_gru_trained_both_ways_ends_with_the_same_weights(monkeypatch):
    """After 15 steps of Adam in float64 within 1e-10, weights being of size 1; another loop is farther away."""
    monkeypatch.setattr(scan, "TRAINED", 15)
    (by_loop, losses), (by_scan, _) = scan.trained(scans.loop), scan.trained(scans.scan)
    assert by_loop.shape == (2 * (32 + 32) + 32 + 1,) and losses[-1] < losses[0]
    assert (by_loop - by_scan).abs().max() < 1e-10

    def almost(a, b, h0):
        return scans.loop(a * (1 + 1e-8), b, h0)

    assert (by_loop - scan.trained(almost)[0]).abs().max() > 1e-10
