"""The GRU's steps one by one against attention's one pass (parallel.py). Times are never asserted."""

import numpy as np
import pytest
import torch
from commands import record_of
from post import assert_same_as_published
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.flop_counter import FlopCounterMode

import parallel
from reruns.comparing import kind_of

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel, "LENGTH", 48)  # the run is about its results, not about its time
        return record_of(parallel, tmp_path_factory.mktemp("parallel"))


def draw(seed, batch=2, length=9, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(batch, length, parallel.WIDTH, generator=generator, dtype=dtype)
    projections = torch.randn(3, parallel.WIDTH, parallel.WIDTH, generator=generator, dtype=dtype) / parallel.WIDTH**0.5
    return x, projections


def test_attention_equals_torchs():
    x, W = draw(0)
    ours = parallel.attention(x, *W, parallel.causal_mask(9))
    theirs = scaled_dot_product_attention(x @ W[0], x @ W[1], x @ W[2], is_causal=True)
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
    # The reference is the causal one, scaled by √d: neither can be left out unnoticed.
    assert not torch.allclose(ours, scaled_dot_product_attention(x @ W[0], x @ W[1], x @ W[2]), rtol=1e-3)
    assert not torch.allclose(ours, scaled_dot_product_attention(x @ W[0], x @ W[1], x @ W[2], is_causal=True, scale=1))


def test_attention_by_hand():
    """Step 1 sees itself alone, so its output is its own v. Step 2 weighs two values by softmax of two products."""
    x, W = draw(1, batch=1, length=2)
    ours = parallel.attention(x, *W, parallel.causal_mask(2))[0].numpy()
    q, k, v = (x[0] @ W_part for W_part in W)
    np.testing.assert_allclose(ours[0], v[0], rtol=1e-12)
    weights = np.exp([(q[1] @ k[0]) / 16, (q[1] @ k[1]) / 16])  # √256 = 16
    np.testing.assert_allclose(ours[1], (weights @ v.numpy()) / weights.sum(), rtol=1e-10)


@pytest.mark.parametrize("rival", ["GRU", "attention"])
def test_a_later_input_changes_no_earlier_output(rival):
    x, W = draw(2)
    torch.manual_seed(0)
    gru = torch.nn.GRU(parallel.WIDTH, parallel.WIDTH, batch_first=True, dtype=torch.float64)
    function = {"GRU": lambda x: gru(x)[0], "attention": lambda x: parallel.attention(x, *W, parallel.causal_mask(9))}[
        rival
    ]
    changed = x.clone()
    changed[:, 5] += 1
    with torch.inference_mode():
        before, after = function(x), function(changed)
    assert torch.equal(before[:, :5], after[:, :5])
    assert ((before - after)[:, 5:].abs().amax(dim=(0, 2)) > 0).all()  # each later one does change


def test_operations_are_what_the_formulas_say():
    # d = 256, T = 1,024. GRU: W_i x and W_h h give 3 · 256 numbers each from 256, a multiplication and an addition a
    # term: 2 · 2 · 768 · 256 = 786,432 a step. Attention: q, k, v for all steps 3 · 2 · 1024 · 65536 = 402,653,184, and
    # q kᵀ and weights · v 2 · 1024 · 1024 · 256 = 536,870,912 each.
    assert parallel.gru_flops(1024, 256) == 1024 * 786_432 == 805_306_368
    assert parallel.attention_flops(1024, 256) == 402_653_184 + 2 * 536_870_912 == 1_476_395_008


def test_operations_are_what_torch_counts():
    rivals = parallel.build(CPU)
    with FlopCounterMode(display=False) as counter:
        rivals["attention"]()
    assert counter.get_total_flops() == parallel.attention_flops(parallel.LENGTH, parallel.WIDTH)
    # Torch's counter doesn't see into a GRU; a GRU cell's two products, once per step, are the same arithmetic.
    with FlopCounterMode(display=False) as counter:
        x = torch.zeros(1, parallel.WIDTH)
        for weight in dict(torch.nn.GRUCell(parallel.WIDTH, parallel.WIDTH).named_parameters()).values():
            if weight.ndim == 2:
                x @ weight.T
    assert counter.get_total_flops() * parallel.LENGTH == parallel.gru_flops(parallel.LENGTH, parallel.WIDTH)


def test_both_rivals_read_the_same_input_drawn_from_the_seed():
    first, second = parallel.build(CPU), parallel.build(CPU)
    for name in "GRU", "attention":
        with torch.inference_mode():
            assert torch.equal(first[name](), second[name]())
            assert first[name]().shape == (1, parallel.LENGTH, parallel.WIDTH)


def test_each_rival_runs_ten_times_after_one_that_is_not_counted(monkeypatch, tmp_path):
    """As in the listing: no gradients, one rival after the other, and the sixth of the ten sorted times."""
    calls, times = [], iter([9, 3, 7, 1, 8, 2, 6, 4, 10, 5] * 3)  # seconds

    def rival(name):
        return lambda: calls.append((name, torch.is_grad_enabled()))

    def seconds(function, device):
        function()
        return next(times)

    names = ["GRU", "attention", parallel.OURS]
    monkeypatch.setattr(parallel, "build", lambda device: {name: rival(name) for name in names})
    monkeypatch.setattr(parallel.timing, "seconds", seconds)
    results = record_of(parallel, tmp_path)["results"]
    assert calls == [(name, False) for name in names for _ in range(1 + 10)]
    assert [results[name]["ms"] for name in names] == [6000] * 3  # not 5,500, which is the median


def test_the_mask_is_made_in_every_pass_but_ours(monkeypatch):
    made, make = [], parallel.causal_mask
    monkeypatch.setattr(parallel, "causal_mask", lambda *size: made.append(size) or make(*size))
    rivals = parallel.build(CPU)
    assert len(made) == 1
    for _ in range(2):
        rivals[parallel.OURS]()
    assert len(made) == 1
    assert torch.equal(rivals["attention"](), rivals[parallel.OURS]()) and len(made) == 2
    rivals["attention"]()
    assert len(made) == 3


def test_results_hold_the_posts_figures_and_what_timings_belong_to(record):
    results = record["results"]
    assert results["GRU"]["sequential_steps"] == 48 and results["attention"]["parallel_passes"] == 1
    assert record["environment"]["threads"] >= 1 and record["environment"]["processor"]
    for rival in results["GRU"], results["attention"], results[parallel.OURS]:
        assert len(rival["every_run_ms"]) == 10
        assert rival["ms"] == sorted(rival["every_run_ms"])[5]
        assert rival["GFLOP_per_s"] == pytest.approx(rival["GFLOPs"] / (rival["ms"] / 1000))
    assert results["times_as_long"] == results["GRU"]["ms"] / results["attention"]["ms"]
    timings = "GRU.ms", "attention.every_run_ms.0", "GRU.GFLOP_per_s", "device", "times_as_long"
    assert {kind_of(record["kinds"], path) for path in timings} == {"timing"}
    assert kind_of(record["kinds"], "GRU.GFLOPs") == "exact"


def test_counted_figures_are_the_posts():
    operations = {"GRU": parallel.gru_flops, "attention": parallel.attention_flops}
    counts = {name: count(parallel.LENGTH, parallel.WIDTH) / 1e9 for name, count in operations.items()}
    results = {
        "sequence_length": parallel.LENGTH,
        "width": parallel.WIDTH,
        "GRU": {"sequential_steps": parallel.LENGTH, "GFLOPs": counts["GRU"]},
        "attention": {"parallel_passes": 1, "GFLOPs": counts["attention"]},
    }
    assert_same_as_published({"experiment": "parallel", "kinds": parallel.KINDS, "corpus": None, "results": results})


def test_lines_have_the_posts_shape(record):
    assert record["printed"][0].startswith("GRU:       48 sequential steps, 0.04 GFLOPs, ")
    assert record["printed"][1].startswith("attention: 1 parallel pass,      0.02 GFLOPs, ")
    assert record["printed"][2].startswith("the GRU takes ") and record["printed"][2].endswith(" times as long")
    assert record["printed"][3] == ""
