"""scan.py: the scan against a plain loop, each layer's forms against each other and against sums written out."""

import math

import pytest
import torch
from commands import assert_refused, run
from torch.autograd import gradcheck
from torch.overrides import TorchFunctionMode

import scan
import scan_lengths
from lab import compare, results

LENGTHS = [1, 2, 3, 5, 8, 17, 100]  # powers of two and others


@pytest.fixture(autouse=True, scope="module")
def single_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def drawn(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def recurrence(length, dtype=torch.float64):
    """a, b (time, batch, width) and h_0, with time, batch and width all different, and some a exactly 0."""
    a, b, h0 = (
        drawn(length, 3, 4, dtype=dtype),
        drawn(length, 3, 4, seed=1, dtype=dtype),
        drawn(3, 4, seed=2, dtype=dtype),
    )
    a[length // 2, 0] = 0
    a[0, 1, 2] = 0
    return [(a / 2).requires_grad_(), b.requires_grad_(), h0.requires_grad_()]


def plain(a, b, h0):
    """One number at a time."""
    states = []
    for t in range(len(a)):
        before = states[-1] if t else h0
        states.append(a[t] * before + b[t])
    return torch.stack(states)


def with_gradients(function, inputs):
    y = function(*inputs)
    up = drawn(*y.shape, seed=9, dtype=torch.complex128 if y.is_complex() else torch.float64).to(y.dtype)
    return y.detach(), *torch.autograd.grad(y, inputs, up)


def largest_gap(one, other):
    return max((a - b).abs().max().item() for a, b in zip(one, other, strict=True))


# The scan


def test_a_recurrence_worked_out_by_hand():
    """h_1 = 0.5·4 + 1 = 3, h_2 = 0·3 + 2 = 2, h_3 = -2·2 + 3 = -1."""
    a, b = torch.tensor([0.5, 0.0, -2.0]), torch.tensor([1.0, 2.0, 3.0])
    for form in scan.scan, scan.loop:
        assert form(a, b, torch.tensor(4.0)).tolist() == [3.0, 2.0, -1.0]


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_scan_and_loop_are_the_plain_recurrence_values_and_gradients(length, dtype):
    inputs = recurrence(length, dtype)
    reference = with_gradients(plain, inputs)
    for form in scan.scan, scan.loop:
        assert largest_gap(with_gradients(form, inputs), reference) < 1e-12
    for changed in range(4):  # values, gradients at a, b and h_0: the comparison sees each of them
        perturbed = [part * (1 + 1e-6 * (number == changed)) for number, part in enumerate(reference)]
        assert largest_gap(with_gradients(scan.scan, inputs), perturbed) > 1e-12


@pytest.mark.parametrize("length", [1, 2, 7])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_gradients_agree_with_finite_differences(length, dtype):
    assert gradcheck(scan.scan, recurrence(length, dtype))


def test_a_gate_of_exactly_0_forgets_exactly():
    a, b, h0 = (tensor.detach() for tensor in recurrence(20))
    a[7] = 0
    a, b, h0 = (tensor.requires_grad_() for tensor in (a, b, h0))
    h = scan.scan(a, b, h0)
    assert torch.equal(h[7], b[7])
    gradients = torch.autograd.grad(h[7:].sum(), (b, h0))
    assert not gradients[0][:7].any() and not gradients[1].any()
    zeros = torch.zeros(20, 3, 4, dtype=torch.float64)
    assert torch.equal(scan.scan(zeros, b, h0), b)


def test_gates_of_1_add_up():
    b = drawn(1000, 2)
    ours = scan.scan(torch.ones_like(b), b, torch.zeros(2, dtype=torch.float64))
    assert (ours - b.cumsum(0)).abs().max() < 1e-11


@pytest.mark.parametrize("low, high", [(0, 1e-38), (0, 1e-3), (0, 1), (1 - 1e-6, 1), (1, 1)])
def test_8192_steps_in_float32_are_finite_and_right(low, high):
    """From gates that are denormal numbers to gates of 1, where the product of all of them is 0 or 1."""
    a = torch.rand(8192, 2, 3, generator=torch.Generator().manual_seed(0)) * (high - low) + low
    inputs = [tensor.requires_grad_() for tensor in (a, drawn(8192, 2, 3).float(), drawn(2, 3).float())]
    exact = with_gradients(scan.loop, [tensor.detach().double().requires_grad_() for tensor in inputs])
    for ours, reference in zip(with_gradients(scan.scan, inputs), exact, strict=True):
        assert ours.isfinite().all()
        assert (ours - reference).abs().max() <= 1e-5 * reference.abs().max()


def test_inputs_and_upstream_gradients_are_left_alone():
    inputs = recurrence(10)
    before = [tensor.detach().clone() for tensor in inputs]
    h = scan.scan(*inputs)
    states, up = h.detach().clone(), drawn(10, 3, 4, seed=5)
    kept = up.clone()
    first = torch.autograd.grad(h, inputs, up, retain_graph=True)
    second = torch.autograd.grad(h, inputs, up)
    assert torch.equal(up, kept) and torch.equal(h, states)
    for tensor, was, a, b in zip(inputs, before, first, second, strict=True):
        assert torch.equal(tensor, was) and torch.equal(a, b)


class Counting(TorchFunctionMode):
    """How many products are made, and how many rounds of them."""

    products = rounds = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if function in (torch.addcmul, torch.Tensor.mul):
            self.products += result.numel()
            self.rounds += 1
        return result


@pytest.mark.parametrize("length", [1, 2, 100, 1024, 1000])
def test_the_scan_takes_less_than_3_products_a_step_in_few_rounds(length):
    """Half as many pairs as steps: a·a and a·b for each, then one product for each state between; T + T/2 + T/4 …"""
    with Counting() as counting:
        scan.prefix(torch.ones(length), torch.ones(length))
    assert counting.products < 3 * length
    assert counting.rounds <= 3 * math.ceil(math.log2(length))


# minGRU


def test_min_gru_is_its_equations():
    layer, x, h = scan.MinGRU(3, 5).double(), drawn(7, 2, 3), drawn(2, 5, seed=1)
    (W_u, W_n), (b_u, b_n) = layer.input_product.weight.chunk(2), layer.input_product.bias.chunk(2)
    ours, last = layer(x, h[None])
    for t in range(7):
        u = 1 / (1 + torch.exp(-(x[t] @ W_u.T + b_u)))
        h = u * h + (1 - u) * (x[t] @ W_n.T + b_n)
        assert (ours[t] - h).abs().max() < 1e-12
    assert last.shape == (1, 2, 5) and torch.equal(last[0], ours[-1])


def both(width=5):
    torch.manual_seed(0)
    return scan.MinGRU(3, width).double(), scan.LinearAttention(3, width, chunk=4).double()


@pytest.mark.parametrize("layer", both(), ids=["minGRU", "linear attention"])
def test_a_layer_called_in_parts_carries_its_state_along(layer):
    x = drawn(11, 2, 3)
    whole, last = layer(x)
    first, state = layer(x[:6])
    second, state = layer(x[6:7], state)
    third, state = layer(x[7:], state)
    assert (torch.cat([first, second, third]) - whole).abs().max() < 1e-12
    assert state.shape == last.shape and (state - last).abs().max() < 1e-12


@pytest.mark.parametrize("layer", both(), ids=["minGRU", "linear attention"])
def test_a_step_reads_what_was_before_it_and_nothing_else(layer):
    x = drawn(9, 2, 3)
    changed = x.clone()
    changed[4] += 1
    before, after = layer(x)[0], layer(changed)[0]
    assert torch.equal(before[:4], after[:4]) and (before[4:] != after[4:]).any(-1).all()


@pytest.mark.parametrize("layer", both(), ids=["minGRU", "linear attention"])
def test_rows_looked_up_are_as_good_as_rows_multiplied(layer):
    table, ids, h0 = drawn(6, 3).requires_grad_(), torch.randint(6, (9, 2)), layer(drawn(2, 2, 3, seed=1))[1].detach()
    weights = [table, *layer.parameters()]
    multiplied = with_gradients(lambda table, *_: layer(table[ids], h0)[0], weights)
    assert largest_gap(with_gradients(lambda table, *_: layer(table, h0, ids)[0], weights), multiplied) < 1e-12


def test_a_min_gru_trained_both_ways_ends_with_the_same_weights(monkeypatch):
    """After 15 steps of Adam in float64 within 1e-10, weights being of size 1; another loop is farther away."""
    monkeypatch.setattr(scan, "TRAINED", 15)
    (by_loop, losses), (by_scan, _) = scan.trained(scan.loop), scan.trained(scan.scan)
    assert by_loop.shape == (2 * (32 + 32) + 32 + 1,) and losses[-1] < losses[0]
    assert (by_loop - by_scan).abs().max() < 1e-10

    def almost(a, b, h0):
        return scan.loop(a * (1 + 1e-8), b, h0)

    assert (by_loop - scan.trained(almost)[0]).abs().max() > 1e-10


# Linear attention


def written_out(layer, x):
    """A weighted mean of the values for each step of each sequence, with φ(z) = z + 1 above 0 and exp z below."""
    q, k, v = layer.input_product(x).chunk(3, dim=-1)
    q, k = (torch.where(z > 0, z + 1, z.exp()) for z in (q, k))
    rows = []
    for t in range(len(x)):
        weights = torch.stack([(q[t] * k[s]).sum(-1) for s in range(t + 1)])  # (step, batch)
        rows.append(torch.einsum("sb,sbh->bh", weights / weights.sum(0), v[: t + 1]))
    return torch.stack(rows)


@pytest.mark.parametrize("chunk", [1, 2, 4, 5, 11, 64])
def test_every_form_of_linear_attention_is_the_weighted_mean_written_out(chunk):
    _, layer = both()
    layer.chunk = chunk
    inputs = [drawn(11, 2, 3).requires_grad_(), *layer.parameters()]
    ours = with_gradients(lambda x, *_: layer(x)[0], inputs)
    exact = with_gradients(lambda x, *_: written_out(layer, x), inputs)
    assert largest_gap(ours, exact) < 1e-12 < largest_gap(ours, [part * (1 + 1e-6) for part in exact])


def test_the_state_of_linear_attention_is_the_sum_over_what_was_read():
    """Σ φ(k) vᵀ, and Σ φ(k) in the last column: neither grows with the number of steps, nor depends on their order."""
    _, layer = both()
    x = drawn(11, 2, 3)
    _, k, v = layer.input_product(x).chunk(3, dim=-1)
    k = scan.feature_map(k)
    state = layer(x)[1]
    assert state.shape == (1, 2, 5, 6)
    assert (state[0, ..., :-1] - torch.einsum("tbk,tbv->bkv", k, v)).abs().max() < 1e-12
    assert (state[0, ..., -1] - k.sum(0)).abs().max() < 1e-12
    assert (layer(x.flip(0))[1] - state).abs().max() < 1e-12


# The state-space layer


def state_space():
    log_A = torch.complex(-drawn(4, 3).abs(), drawn(4, 3, seed=1)).requires_grad_()  # (width, state)
    C = drawn(4, 3, seed=2, dtype=torch.complex128).requires_grad_()
    return drawn(13, 2, 4, seed=3).requires_grad_(), log_A, C


def one_state_at_a_time(x, log_A, C):
    h, y = torch.zeros(2, 4, 3, dtype=torch.complex128), []
    for x_t in x:
        h = log_A.exp() * h + x_t[..., None]
        y.append((C * h).sum(-1).real)
    return torch.stack(y)


def test_the_state_space_layer_is_the_same_recurrence_as_scan_and_as_convolution():
    inputs = state_space()
    exact = with_gradients(one_state_at_a_time, inputs)
    for form in scan.recurred, scan.convolved:
        ours = with_gradients(form, inputs)
        assert largest_gap(ours, exact) < 1e-12 < largest_gap(ours, [part * (1 + 1e-6) for part in exact])


def test_a_convolution_doesn_t_come_round_to_the_beginning():
    x, log_A, C = (tensor.detach() for tensor in state_space())
    x[:-1] = 0
    y = scan.convolved(x, log_A, C)
    assert y[:-1].abs().max() < 1e-13 and (y[-1] - x[-1] * C.sum(-1).real).abs().max() < 1e-13


def test_a_kernel_worked_out_by_hand():
    """One state with A = ½ and C = 3: an impulse is worth 3, 1.5, 0.75. With A = i, C = 1: Re 1, i, -1 = 1, 0, -1."""
    log_A = torch.tensor([[0.5], [1j]], dtype=torch.complex128).log()
    C = torch.tensor([[3], [1]], dtype=torch.complex128)
    expected = torch.tensor([[3.0, 1], [1.5, 0], [0.75, -1]], dtype=torch.float64)
    assert (scan.kernel(log_A, C, 3) - expected).abs().max() < 1e-15


# The scripts


def test_all_gaps_that_are_printed_are_rounding(monkeypatch, tmp_path):
    for name, value in {"LONGEST": 300, "LENGTH": 70, "WIDTH": 6, "TRAINED": 5}.items():
        monkeypatch.setattr(scan, name, value)
    scan.main(["--outputs", str(tmp_path)])
    found = results.load("scan", tmp_path)["results"]
    assert len(found["gaps"]) == 1 + len(scan.PAIRS)
    gaps = [gap for pair in found["gaps"].values() for gap in pair.values()] + [found["trained_both_ways"]["weights"]]
    assert all(0 <= gap < 1e-12 for gap in gaps)


def test_a_gap_between_forms_that_differ_shows():
    function, inputs = scan.forms(20, 4, dtype=torch.float64)["minGRU, loop"]
    assert scan.gaps((function, inputs), (function, inputs)) == {"values": 0, "gradients": 0}
    off = scan.gaps((lambda: 1.001 * function(), inputs), (function, inputs))
    assert off == pytest.approx({"values": 0.001, "gradients": 0.001})


def test_times_are_told_for_each_rival_and_length(monkeypatch, tmp_path):
    """Of times themselves only that they are there: the recurrent form isn't differentiated beyond MOST_STATES."""
    for name, value in {"LENGTHS": [4, 8, 16], "LONG": 16, "MOST_STATES": 8}.items():
        monkeypatch.setattr(scan_lengths, name, value)
    scan_lengths.main(["--outputs", str(tmp_path)])
    found = results.load("scan_lengths", tmp_path)["results"]
    assert found["lengths"] == [4, 8, 16]
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
        scan_lengths.measure(length, torch.device("cpu"))
    assert given == [{"warm_up": 3, "runs": 5}, {"warm_up": 3, "runs": 3}]


def test_kinds():
    kinds = {"gaps.minGRU, loop and scan.values": "rounding", "trained_both_ways.weights": "rounding"}
    assert {path: compare.kind_of(f"scan.{path}") for path in kinds} == kinds
    kinds = {"forward.ms.GRU.0": "timing", "forward.every_run_ms.minGRU, scan.2.1": "timing"}
    kinds |= {"forward.slopes.GRU": "timing", "parameters.minGRU": "exact", "lengths.0": "exact", "width": "exact"}
    assert {path: compare.kind_of(f"scan_lengths.{path}") for path in kinds} == kinds


def test_rivals_read_inputs_and_give_outputs_of_the_same_size():
    for function, inputs in scan_lengths.build(12, torch.device("cpu")).values():
        assert function().numel() == inputs[0].numel() == 12 * scan_lengths.WIDTH
        assert all(g.isfinite().all() and g.any() for g in scan_lengths.differentiate(function, inputs))


def test_all_rivals_run_in_the_same_grad_mode(monkeypatch):
    functions = {}
    monkeypatch.setattr(scan_lengths.timing, "take_turns", lambda rivals, *_, **__: functions.update(rivals) or {})
    scan_lengths.measure(8, torch.device("cpu"))
    modes = {}
    for (kind, name), function in functions.items():
        result = function()
        tensors = [result] if kind == "forward" else result
        modes.setdefault(kind, {})[name] = {tensor.is_inference() for tensor in tensors}
    assert list(modes) == list(scan_lengths.PASSES) and modes["forward"].keys() == modes["forward and backward"].keys()
    assert all(mode == {True} for mode in modes["forward"].values())
    assert all(mode == {False} for mode in modes["forward and backward"].values())


def test_slopes_and_shares_are_those_of_the_last_lengths(monkeypatch, tmp_path):
    """Times that fall and then grow as a square: 2. At the end the scan takes a fourth of the loop, four fifths of the
    GRU, and the chunked form twice what fused attention does."""
    at_the_end = {"minGRU, scan": 4, "minGRU, loop": 16, "GRU": 5, "linear attention, chunked": 6, "fused attention": 3}

    def measure(length, device):
        times = {name: [t * (500 if length == 4 else length**2 / 1024)] * 3 for name, t in at_the_end.items()}
        return dict.fromkeys(scan_lengths.PASSES, times)

    monkeypatch.setattr(scan_lengths, "LENGTHS", [4, 8, 16, 32])
    monkeypatch.setattr(scan_lengths, "measure", measure)
    scan_lengths.main(["--outputs", str(tmp_path)])
    found = results.load("scan_lengths", tmp_path)["results"]
    for kind in scan_lengths.PASSES:
        assert found[kind]["slopes"] == pytest.approx(dict.fromkeys(at_the_end, 2))
        assert found[kind]["ms"]["GRU"] == [2500, 0.3125, 1.25, 5]
    lines = (tmp_path / "scan_lengths.txt").read_text(encoding="utf-8").splitlines()
    for line in (
        "at 32 steps minGRU, scan takes 0.250 of the time of minGRU, loop",
        "at 32 steps minGRU, scan takes 0.800 of the time of GRU",
        "at 32 steps linear attention, chunked takes 2.000 of the time of fused attention",
    ):
        assert lines.count(line) == len(scan_lengths.PASSES)


def test_a_device_that_isn_t_there_is_refused():
    assert_refused(run("scan_lengths.py", "--device", "abacus"), "abacus")
