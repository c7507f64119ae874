"""The scan against a plain loop, each layer's forms against each other and against sums written out."""

import math

import pytest
import torch
from torch.autograd import gradcheck
from torch.overrides import TorchFunctionMode

from layers import scans

LENGTHS = [1, 2, 3, 5, 8, 17, 100]  # powers of two and others


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
    grad_output = drawn(*y.shape, seed=9, dtype=torch.complex128 if y.is_complex() else torch.float64).to(y.dtype)
    return y.detach(), *torch.autograd.grad(y, inputs, grad_output)


def largest_gap(one, other):
    return max((a - b).abs().max().item() for a, b in zip(one, other, strict=True))


# The scan


def test_a_recurrence_worked_out_by_hand():
    """h_1 = 0.5·4 + 1 = 3, h_2 = 0·3 + 2 = 2, h_3 = -2·2 + 3 = -1."""
    a, b = torch.tensor([0.5, 0.0, -2.0]), torch.tensor([1.0, 2.0, 3.0])
    for form in scans.scan, scans.loop:
        assert form(a, b, torch.tensor(4.0)).tolist() == [3.0, 2.0, -1.0]


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_scan_and_loop_are_the_plain_recurrence_values_and_gradients(length, dtype):
    inputs = recurrence(length, dtype)
    reference = with_gradients(plain, inputs)
    for form in scans.scan, scans.loop:
        assert largest_gap(with_gradients(form, inputs), reference) < 1e-12
    for changed in range(4):  # values, gradients at a, b and h_0: the comparison sees each of them
        perturbed = [part * (1 + 1e-6 * (number == changed)) for number, part in enumerate(reference)]
        assert largest_gap(with_gradients(scans.scan, inputs), perturbed) > 1e-12


@pytest.mark.parametrize("length", [1, 2, 7])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_gradients_agree_with_finite_differences(length, dtype):
    assert gradcheck(scans.scan, recurrence(length, dtype))


def test_a_gate_of_exactly_0_forgets_exactly():
    a, b, h0 = (tensor.detach() for tensor in recurrence(20))
    a[7] = 0
    a, b, h0 = (tensor.requires_grad_() for tensor in (a, b, h0))
    h = scans.scan(a, b, h0)
    assert torch.equal(h[7], b[7])
    gradients = torch.autograd.grad(h[7:].sum(), (b, h0))
    assert not gradients[0][:7].any() and not gradients[1].any()
    zeros = torch.zeros(20, 3, 4, dtype=torch.float64)
    assert torch.equal(scans.scan(zeros, b, h0), b)


def test_gates_of_1_add_up():
    b = drawn(1000, 2)
    ours = scans.scan(torch.ones_like(b), b, torch.zeros(2, dtype=torch.float64))
    assert (ours - b.cumsum(0)).abs().max() < 1e-11


@pytest.mark.parametrize("low, high", [(0, 1e-38), (0, 1e-3), (0, 1), (1 - 1e-6, 1), (1, 1)])
def test_8192_steps_in_float32_are_finite_and_right(low, high):
    """From gates that are denormal numbers to gates of 1, where the product of all of them is 0 or 1."""
    a = torch.rand(8192, 2, 3, generator=torch.Generator().manual_seed(0)) * (high - low) + low
    inputs = [tensor.requires_grad_() for tensor in (a, drawn(8192, 2, 3).float(), drawn(2, 3).float())]
    exact = with_gradients(scans.loop, [tensor.detach().double().requires_grad_() for tensor in inputs])
    for ours, reference in zip(with_gradients(scans.scan, inputs), exact, strict=True):
        assert ours.isfinite().all()
        assert (ours - reference).abs().max() <= 1e-5 * reference.abs().max()


def test_inputs_and_upstream_gradients_are_left_alone():
    inputs = recurrence(10)
    before = [tensor.detach().clone() for tensor in inputs]
    h = scans.scan(*inputs)
    states, grad_output = h.detach().clone(), drawn(10, 3, 4, seed=5)
    kept = grad_output.clone()
    first = torch.autograd.grad(h, inputs, grad_output, retain_graph=True)
    second = torch.autograd.grad(h, inputs, grad_output)
    assert torch.equal(grad_output, kept) and torch.equal(h, states)
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
        scans.prefix(torch.ones(length), torch.ones(length))
    assert counting.products < 3 * length
    assert counting.rounds <= 3 * math.ceil(math.log2(length))


# minGRU


def test_min_gru_is_its_equations():
    layer, x, h = scans.MinGRU(3, 5).double(), drawn(7, 2, 3), drawn(2, 5, seed=1)
    (W_u, W_n), (b_u, b_n) = layer.input_product.weight.chunk(2), layer.input_product.bias.chunk(2)
    ours, last = layer(x, h[None])
    for t in range(7):
        u = 1 / (1 + torch.exp(-(x[t] @ W_u.T + b_u)))
        h = u * h + (1 - u) * (x[t] @ W_n.T + b_n)
        assert (ours[t] - h).abs().max() < 1e-12
    assert last.shape == (1, 2, 5) and torch.equal(last[0], ours[-1])


def both(width=5):
    torch.manual_seed(0)
    return scans.MinGRU(3, width).double(), scans.LinearAttention(3, width, chunk=4).double()


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
    k = scans.feature_map(k)
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
    for form in scans.recurred, scans.convolved:
        ours = with_gradients(form, inputs)
        assert largest_gap(ours, exact) < 1e-12 < largest_gap(ours, [part * (1 + 1e-6) for part in exact])


def test_a_convolution_doesn_t_come_round_to_the_beginning():
    x, log_A, C = (tensor.detach() for tensor in state_space())
    x[:-1] = 0
    y = scans.convolved(x, log_A, C)
    assert y[:-1].abs().max() < 1e-13 and (y[-1] - x[-1] * C.sum(-1).real).abs().max() < 1e-13


def test_a_kernel_worked_out_by_hand():
    """One state with A = ½ and C = 3: an impulse is worth 3, 1.5, 0.75. With A = i, C = 1: Re 1, i, -1 = 1, 0, -1."""
    log_A = torch.tensor([[0.5], [1j]], dtype=torch.complex128).log()
    C = torch.tensor([[3], [1]], dtype=torch.complex128)
    expected = torch.tensor([[3.0, 1], [1.5, 0], [0.75, -1]], dtype=torch.float64)
    assert (scans.kernel(log_A, C, 3) - expected).abs().max() < 1e-15


def test_no_step_at_all_is_refused():
    for form in scans.loop, scans.scan:
        with pytest.raises(ValueError, match="at least"):
            form(torch.ones(0, 3), torch.ones(0, 3), torch.ones(3))
    with pytest.raises(ValueError, match="as many a as b"):
        scans.scan(torch.ones(2, 3), torch.ones(3, 3), torch.ones(3))
