"""Attention and GRU against the length (beyond/parallel_lengths.py). Times are never asserted."""

import numpy as np
import pytest
import torch
from commands import record_of
from torch.utils.flop_counter import FlopCounterMode

import parallel
from beyond import parallel_lengths
from lab import timing
from layers import cells
from reruns.comparing import kind_of

CPU = torch.device("cpu")
LENGTHS = [4, 8, 16, 32]


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel_lengths, "LENGTHS", LENGTHS)
        patch.setattr(parallel_lengths, "LONG", 16)
        return record_of(parallel_lengths, tmp_path_factory.mktemp("lengths"))


@pytest.fixture(scope="module")
def compared():
    return parallel_lengths.build(40, CPU)


def test_fused_attention_is_the_same_function(compared):
    """Values and gradients; the reference is parallel.py's, which has tests of its own."""
    (ours, inputs), (theirs, _) = compared["fused attention"], compared["attention"]
    torch.testing.assert_close(ours(), theirs(), rtol=1e-4, atol=1e-5)
    grad_output = torch.randn(1, 40, parallel.WIDTH)
    for a, b in zip(*(torch.autograd.grad(f(), inputs, grad_output) for f in (ours, theirs)), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)


def test_the_two_parts_of_a_gru_are_all_of_it(compared):
    """The input side of all steps, then the steps: put together by layers/cells.py they give what torch's GRU does."""
    whole, (x, W_i, W_h, b_i, b_h) = compared["GRU"]
    H = parallel.WIDTH
    z = compared[parallel_lengths.INPUT_SIDE][0]()  # (batch, time, gates)
    assert torch.equal(z, torch.nn.functional.linear(x, W_i, b_i))
    b_h = torch.cat([b_h[: 2 * H], torch.zeros(H)]), b_h[2 * H :]
    states = cells.gru((z + b_h[0]).transpose(0, 1), torch.zeros(1, H), W_h, b_h[1])
    torch.testing.assert_close(states.transpose(0, 1), whole(), rtol=1e-4, atol=1e-5)
    # The serial part alone: as many steps and states of the same width, and a 256th of the input side's product.
    serial, (narrow, *weights) = compared[parallel_lengths.SERIAL]
    assert serial().shape == whole().shape and narrow.shape == (1, 40, 1)
    assert [tuple(w.shape) for w in weights] == [(3 * H, 1), (3 * H, H), (3 * H,), (3 * H,)]


def test_a_backward_pass_has_twice_the_operations_of_a_forward_one(compared):
    functions = parallel_lengths.passes(compared, CPU)
    for kind, times in parallel_lengths.PASSES.items():
        with FlopCounterMode(display=False) as counter:
            functions[kind, "attention"]()
        assert counter.get_total_flops() == times * parallel.attention_flops(40, parallel.WIDTH)


def test_passes_differentiate_by_the_input_and_every_weight(compared):
    functions = parallel_lengths.passes(compared, CPU)
    for name, parts in {"GRU": 1 + 4, "attention": 2, "fused attention": 2}.items():
        gradients = functions["forward and backward", name]()
        assert len(gradients) == parts and all(g.abs().max() > 0 for g in gradients)
    for name in compared:
        assert functions["forward", name]().is_inference()


def test_attention_holds_two_squares_and_fused_attention_none():
    """Of T = 512, d = 256: while weights meet values, q, k, v and the result of d · T numbers each, scores and weights
    of T². Fused, q, k, v and the result, and a number for each row."""
    T, d = 512, parallel.WIDTH
    compared = parallel_lengths.build(T, CPU)
    with torch.no_grad():
        peaks = {name: timing.peak_bytes(compared[name][0], CPU) for name in parallel_lengths.FLOPS}
    assert peaks["attention"] == 4 * (4 * T * d + 2 * T * T)
    assert peaks["fused attention"] == 4 * (4 * T * d + T)


def test_a_gru_holds_three_gates_of_every_step():
    peaks = []
    for T in (64, 128):
        function = parallel_lengths.build(T, CPU)["GRU"][0]
        with torch.no_grad():
            peaks.append(timing.peak_bytes(function, CPU))
    # From one to the other 64 steps more: 3 gates' input side, the state, and the state once more in the stack of all.
    assert peaks[1] - peaks[0] == 64 * 5 * parallel.WIDTH * 4


def test_results_hold_every_run_of_every_length(record):
    results = record["results"]
    assert results["lengths"] == LENGTHS
    for kind, times in parallel_lengths.PASSES.items():
        assert set(results[kind]["rows"]) == set(parallel_lengths.FLOPS)
        for name, rows in results[kind]["rows"].items():
            assert [len(row["every_run_ms"]) for row in rows] == [10, 10, 5, 5]
            for length, row in zip(LENGTHS, rows, strict=True):
                assert row["ms"] == pytest.approx(np.median(row["every_run_ms"]))
                flops = times * parallel_lengths.FLOPS[name](length, parallel.WIDTH)
                assert row["GFLOP_per_s"] == pytest.approx(flops / 1e9 / (row["ms"] / 1e3))
                assert row["peak_bytes"] > 4 * length * parallel.WIDTH
    for rows in results["parts"].values():
        assert len(rows) == len(LENGTHS)


def test_forward_passes_hold_nothing_for_a_backward_one(record):
    function, _ = parallel_lengths.build(LENGTHS[-1], CPU)["GRU"]
    with torch.no_grad():
        expected = timing.peak_bytes(function, CPU)
    assert record["results"]["forward"]["rows"]["GRU"][-1]["peak_bytes"] == expected
    assert record["results"]["forward and backward"]["rows"]["GRU"][-1]["peak_bytes"] > 2 * expected


def test_growth_is_that_of_the_last_lengths_and_attention_meets_the_gru():
    """GRU 0.02 T ms, attention 1e-5 T², even at 2,000. The first times of fused attention, 1 / T, don't enter a slope;
    0.01 T at the end stays below the GRU's."""
    T = parallel_lengths.LENGTHS
    ms = {"GRU": [0.02 * n for n in T], "attention": [1e-5 * n**2 for n in T]}
    ms["fused attention"] = [1 / n for n in T[:-4]] + [0.01 * n for n in T[-4:]]
    found = parallel_lengths.growth(T, ms)
    assert found["slopes"] == pytest.approx({"GRU": 1, "attention": 2, "fused attention": 1})
    assert found["models"]["GRU"] == pytest.approx({0: 0, 1: 0.02}, abs=1e-9)
    assert found["crossovers"]["attention"] == pytest.approx({"measured": 2000, "fitted": 2000})
    assert found["crossovers"]["fused attention"]["measured"] is None
    lines = list(parallel_lengths.tell_growth(T, ms, found))
    assert lines[3] == "attention      : as slow as the GRU at 2,000 steps (measured), at 2,000 (fitted)"
    assert lines[4].startswith("fused attention: as slow as the GRU nowhere from 64 to 8,192 steps (measured), ")


def test_rows_of_the_table_are_printed(record):
    lines = record["printed"]
    row = record["results"]["forward"]["rows"]["GRU"][0]
    assert lines[2].split()[:3] == ["4", f"{row['ms']:.2f}", f"{row['GFLOP_per_s']:.0f}"]
    assert sum("as slow as the GRU" in line for line in lines) == 4


def test_kinds(record):
    kinds = {"forward.rows.GRU.0.ms": "timing", "forward and backward.rows.attention.3.peak_bytes": "timing"}
    kinds |= {"forward.crossovers.attention.fitted": "timing", "parts.serial part.0.every_run_ms.4": "timing"}
    kinds |= {"forward.rows.GRU.0.GFLOPs": "exact", "lengths.0": "exact", "width": "exact"}
    assert {path: kind_of(record["kinds"], path) for path in kinds} == kinds
