"""The price of the next token (beyond/generation.py). Times are never asserted."""

from argparse import Namespace

import numpy as np
import pytest
import torch
from commands import record_of
from torch.utils.flop_counter import FlopCounterMode

import parallel
from beyond import generation
from layers.scans import LinearAttention
from reruns.comparing import kind_of

CPU = torch.device("cpu")
D = generation.WIDTH
CONTEXTS, BATCHES = [2, 4, 8, 16], [1, 3]


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generation, "CONTEXTS", CONTEXTS)
        patch.setattr(generation, "BATCHES", BATCHES)
        patch.setattr(generation, "MOST", 3 * parallel.attention_flops(8 + 1, D))  # batch 3 stops at 8 tokens
        return record_of(generation, tmp_path_factory.mktemp("generation"))


def build(n, batch, dtype=torch.float32):
    torch.manual_seed(1)
    layers = {"GRU": torch.nn.GRU(D, D).to(dtype), "linear attention": LinearAttention(D, D).to(dtype)}
    W, x = torch.randn(3, D, D, dtype=dtype) / D**0.5, torch.randn(n + 1, batch, D, dtype=dtype)
    with torch.inference_mode():
        states = {name: generation.read(layer, x[:-1]) for name, layer in layers.items()}
        return generation.build(x, layers, states, W), layers, W, x


def test_token_by_token_with_a_cache_is_attention_over_all():
    _, _, W, x = build(11, 3, torch.float64)
    K, V = torch.full((2, 3, 12, D), torch.nan, dtype=x.dtype)  # what hasn't been written must not be read
    outputs = torch.stack([generation.cached_attention(x_t, K, V, n, *W) for n, x_t in enumerate(x)])
    whole = parallel.attention(x.transpose(0, 1), *W, parallel.causal_mask(12)).transpose(0, 1)
    torch.testing.assert_close(outputs, whole, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("batch", [1, 3])
@torch.inference_mode()
def test_cached_and_uncached_attention_agree(batch):
    rivals, _, W, x = build(200, batch)
    cached, uncached = (rivals[f"{how} attention"][0]() for how in ("cached", "uncached"))
    assert cached.shape == (batch, D)

    def gap(output):
        return ((cached - output).abs().max() / output.abs().max()).item()

    assert gap(uncached) < 1e-5
    # Everything is read: with another first token of 201 the output is another one.
    changed = torch.cat([x[:1] + 1, x[1:]])
    assert gap(generation.fused_attention(changed.transpose(0, 1), *W)[:, -1]) > 1e-4


def test_every_rival_goes_on_from_what_it_has_read():
    """One token after a context gives what a layer gives at the end of the whole."""
    rivals, layers, W, x = build(50, 2, torch.float64)
    with torch.inference_mode():
        whole = {name: layer(x)[0][-1] for name, layer in layers.items()}
        attended = parallel.attention(x.transpose(0, 1), *W, parallel.causal_mask(51))[:, -1]
        whole |= {"cached attention": attended, "uncached attention": attended}
        assert set(whole) == set(generation.RIVALS)
        for name, (make_token, _) in rivals.items():
            torch.testing.assert_close(make_token(), whole[name], rtol=1e-10, atol=1e-10)
            torch.testing.assert_close(make_token(), whole[name], rtol=1e-10, atol=1e-10)  # again: nothing moved on


def test_reading_in_parts_is_reading(monkeypatch):
    monkeypatch.setattr(generation, "READ_AT_ONCE", 7)
    _, layers, _, x = build(50, 2, torch.float64)
    with torch.inference_mode():
        for layer in layers.values():
            whole = layer(x)[1]
            torch.testing.assert_close(generation.read(layer, x), whole, rtol=1e-10, atol=1e-10)
            begun = generation.read(layer, x[:20])
            torch.testing.assert_close(generation.read(layer, x[20:], begun), whole, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("n", [5, 40])
def test_bytes_of_state(n):
    """Float32, d = 256, batch 3: one state of d; sums of k vᵀ and of k: d (d + 1); a key and a value of n tokens; or
    the input of n tokens."""
    rivals = build(n, 3)[0]
    assert {name: kept for name, (_, kept) in rivals.items()} == {
        "GRU": 3 * 256 * 4,
        "linear attention": 3 * 256 * 257 * 4,
        "cached attention": 3 * n * 2 * 256 * 4,
        "uncached attention": 3 * n * 256 * 4,
    }


def test_operations_are_what_torch_counts():
    n = 40
    rivals, _, W, x = build(n, 3)
    counted = generation.flops(n)
    for name in "linear attention", "cached attention":
        with torch.inference_mode(), FlopCounterMode(display=False) as counter:
            rivals[name][0]()
        assert counter.get_total_flops() == 3 * counted[name], name
    with FlopCounterMode(display=False) as counter:
        parallel.attention(x.transpose(0, 1), *W, parallel.causal_mask(n + 1))
    assert counter.get_total_flops() == 3 * counted["uncached attention"]
    assert counted["GRU"] == 2 * 2 * 3 * 256 * 256  # W_i and W_h of three gates, as test_parallel.py has it


def test_operations_grow_only_with_attention():
    few, many = generation.flops(16), generation.flops(16_384)
    for name in "GRU", "linear attention":
        assert few[name] == many[name]
    assert few["cached attention"] < many["cached attention"] < many["uncached attention"]


def test_the_first_of_a_turn_and_the_first_turn_are_not_counted(monkeypatch):
    clock, calls = iter(range(1000)), []
    monkeypatch.setattr(generation.timing, "seconds", lambda function, device: function() or next(clock) / 1000)
    monkeypatch.setattr(generation, "TURNS", 2)
    ms = generation.token_times({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, CPU)
    assert calls == (["a"] * 5 + ["b"] * 5) * 3
    # Calls 0 to 4 and 5 to 9 are the first turns of a and b; then a has 10 to 14 and 20 to 24, b the others.
    assert ms["a"] == pytest.approx([11, 12, 13, 14, 21, 22, 23, 24])
    assert ms["b"] == pytest.approx([16, 17, 18, 19, 26, 27, 28, 29])


def test_all_rivals_run_in_inference_mode(monkeypatch):
    modes = []

    def look(function, device):
        modes.append(function().is_inference())
        return 0.001

    monkeypatch.setattr(generation.timing, "seconds", look)
    monkeypatch.setattr(generation, "CONTEXTS", [3])
    generation.after_contexts(2, CPU)
    assert modes == [True] * len(generation.RIVALS) * (1 + generation.TURNS) * generation.TOKENS


def test_results_hold_every_token_and_where_uncached_attention_stops(record):
    results = record["results"]
    for batch in BATCHES:
        for name, rows in results[f"batch_{batch}"]["rows"].items():
            stops = batch == 3 and name == "uncached attention"
            assert [row["context"] for row in rows] == (CONTEXTS[:-1] if stops else CONTEXTS)
            for row in rows:
                assert len(row["every_token_ms"]) == generation.TURNS * (generation.TOKENS - 1) == 20
                assert row["ms"] == pytest.approx(np.median(row["every_token_ms"]))
                assert row["MFLOPs"] == pytest.approx(batch * generation.flops(row["context"])[name] / 1e6)
    assert 0 < results["largest_gap"] < 1e-5
    assert record["environment"]["threads"] >= 1


def test_state_grows_as_the_context_or_not_at_all(record):
    for batch in BATCHES:
        slopes = record["results"][f"batch_{batch}"]["slopes"]
        grown = {name: slope["state_bytes"] for name, slope in slopes.items()}
        assert grown == pytest.approx(dict(zip(generation.RIVALS, [0, 0, 1, 1], strict=True)), abs=1e-9)
        assert slopes["GRU"]["MFLOPs"] == pytest.approx(0, abs=1e-9)


def test_lines_say_what_stops_and_what_is_flat(record):
    lines = record["printed"]
    assert "    16" in lines[5] and not lines[5].endswith("-")
    (last,) = [line for line in lines if line.startswith("batch  3, uncached")]
    assert last.endswith("measured up to 8 tokens")
    assert record["printed"][-1].startswith("cached and uncached attention give the same output, at most ")


def test_flat_or_growing_is_told_from_the_last_five_contexts(monkeypatch):
    """What a rival's times do before doesn't count. A power of 0.15 is flat, one of 0.25 isn't."""
    powers = dict(zip(generation.RIVALS, [-0.1, 0.15, 0.25, 2], strict=True))

    def rows(power):
        times = [7 / n for n in generation.CONTEXTS[:-5]] + [0.001 * n**power for n in generation.CONTEXTS[-5:]]
        return [
            {"context": n, "ms": ms, "every_token_ms": [ms], "state_bytes": n, "MFLOPs": 1}
            for n, ms in zip(generation.CONTEXTS, times, strict=True)
        ]

    measured = {name: rows(power) for name, power in powers.items()}, 1e-7
    monkeypatch.setattr(generation, "after_contexts", lambda batch, device: measured)
    found = generation.measure(Namespace(device="cpu"))
    for batch in generation.BATCHES:
        slopes = found[f"batch_{batch}"]["slopes"]
        assert {name: slope["ms"] for name, slope in slopes.items()} == pytest.approx(powers)
        told = [line for line in generation.tell(found) if line.startswith(f"batch {batch:2}, ")]
        assert [line.split(": ")[2].split(",")[0] for line in told] == ["flat", "flat", "growing", "growing"]


def test_kinds(record):
    kinds = {"batch_1.rows.GRU.0.ms": "timing", "batch_32.rows.GRU.2.every_token_ms.7": "timing"}
    kinds |= {"batch_1.slopes.GRU.ms": "timing", "largest_gap": "rounding"}
    kinds |= {"batch_1.rows.GRU.0.state_bytes": "exact", "batch_1.rows.GRU.0.MFLOPs": "exact", "width": "exact"}
    assert {path: kind_of(record["kinds"], path) for path in kinds} == kinds
