"""Paths that are few enough to list, and one that isn't the best string (beyond/ctc.py)."""

import math

import pytest
from commands import record_of

from beyond import ctc


def test_what_can_be_counted_is_counted_right(tmp_path):
    record = record_of(ctc, tmp_path)
    assert (tmp_path / "ctc.png").stat().st_size > 5000
    found = record["results"]
    # 12 labels without equal neighbours in 200 frames: C(200 + 12, 2 · 12) paths
    assert found["paths_of_speech"] == pytest.approx(math.comb(212, 24), rel=1e-9)
    assert [row["paths"] for row in found["uniform"]] == [5, 1, 1, 0]
    assert [len(row["listed"].split()) for row in found["uniform"][:3]] == [5, 1, 1]
    for row in found["uniform"][:3]:
        assert row["loss"] == pytest.approx(math.log(3 ** row["frames"] / row["paths"]))
    # -- has 0.6 · 0.6; aa, a- and -a together have 1 - 0.36
    assert found["decoded"] == {"best path": "", "beam": "a"}
    assert found["probability"] == {"best path": pytest.approx(0.36), "beam": pytest.approx(0.64)}
    for frame in found["occupancy"]:
        assert sum(frame) == pytest.approx(1)
