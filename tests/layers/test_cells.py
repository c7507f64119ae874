"""The hand-written cells against torch's own layers, and against finite differences."""

import pytest
import torch
from torch import nn

from layers import cells

TIME, BATCH, WIDTH, IN, VOCABULARY = 5, 2, 3, 4, 6  # all different, so that a mixed-up axis shows
LAYERS = {"RNN": nn.RNN, "GRU": nn.GRU, "LSTM": nn.LSTM}
every_cell = pytest.mark.parametrize("cell", LAYERS)


def build(cell, seed=0):
    """A layer in float64, an input and a state that isn't zero."""
    torch.manual_seed(seed)
    layer = LAYERS[cell](IN, WIDTH).double()
    with torch.no_grad():
        for p in layer.parameters():
            p.normal_(0, 0.7)  # wider than torch's own draw, so that every term counts
    x = torch.randn(TIME, BATCH, IN, dtype=torch.float64, requires_grad=True)
    h0, c0 = (torch.randn(1, BATCH, WIDTH, dtype=torch.float64, requires_grad=True) for _ in range(2))
    return layer, x, (h0, c0) if cell == "LSTM" else h0


def tensors(state):
    return list(state) if isinstance(state, tuple) else [state]


def leaves(layer, x, state):
    return [*layer.parameters(), x, *tensors(state)]


def objective(result):
    """A weighted sum of everything that a layer returns, with the final state counted once more."""
    generator = torch.Generator().manual_seed(1)
    parts = [result[0], *tensors(result[1])]
    return sum((p * torch.randn(p.shape, dtype=p.dtype, generator=generator)).sum() for p in parts)


def gradients(result, wanted):
    return torch.autograd.grad(objective(result), wanted)


def assert_same(ours, theirs, atol=1e-10):
    for a, b in zip(ours, theirs, strict=True):
        assert a.shape == b.shape
        assert torch.allclose(a, b, rtol=0, atol=atol), (a - b).abs().max()


def assert_finite_differences(function, leaves, gradients, eps=1e-5, relative=1e-6, floor=1e-2):
    """Every entry of every leaf, moved up and down. The floor: below it the difference's own rounding shows.

    A value near 10 is known to 1e-15 of itself, so the quotient to about 1e-14 / 1e-5 = 1e-9, far inside 1e-6 · 1e-2;
    what the third derivative adds is of the order of eps² = 1e-10.
    """
    for leaf, gradient in zip(leaves, gradients, strict=True):
        flat, expected = leaf.detach().view(-1), gradient.reshape(-1)
        for i in range(len(flat)):
            kept = flat[i].item()
            up, down = (flat.__setitem__(i, kept + d) or function().item() for d in (eps, -eps))
            flat[i] = kept
            assert abs((up - down) / (2 * eps) - expected[i]) < relative * max(abs(expected[i].item()), floor)


@every_cell
def test_values_and_gradients_are_torchs(cell):
    layer, x, state = build(cell)
    ours, theirs = cells.run(layer, x, state), layer(x, state)
    assert_same([ours[0], *tensors(ours[1])], [theirs[0], *tensors(theirs[1])])
    assert_same(*(gradients(result, leaves(layer, x, state)) for result in (ours, theirs)))


@every_cell
def test_without_a_state_it_begins_at_zero(cell):
    layer, x, _ = build(cell)
    wanted = [*layer.parameters(), x]
    assert_same(*(gradients(result, wanted) for result in (cells.run(layer, x), layer(x))))


@every_cell
def test_rows_looked_up_are_the_inputs_that_they_stand_for(cell):
    layer, _, state = build(cell)
    rows = torch.randn(VOCABULARY, IN, dtype=torch.float64, requires_grad=True)
    ids = torch.tensor([[0, 3], [3, 3], [1, 0], [5, 3], [0, 1]])  # some rows often, some never
    ours, theirs = cells.run(layer, rows, state, ids), layer(rows[ids], state)
    assert_same([ours[0]], [theirs[0]])
    assert_same(*(gradients(result, leaves(layer, rows, state)) for result in (ours, theirs)))


@every_cell
def test_a_cell_may_be_used_twice_before_it_is_differentiated(cell):
    """The buffers of one pass are not those of another, nor are those of a pass that is over needed again."""
    layer, x, state = build(cell)
    wanted = leaves(layer, x, state)
    for _ in range(2):  # the second time, buffers lie ready
        ours = cells.run(layer, cells.run(layer, x, state)[0] @ torch.ones(WIDTH, IN, dtype=x.dtype), state)
        theirs = layer(layer(x, state)[0] @ torch.ones(WIDTH, IN, dtype=x.dtype), state)
        assert_same(gradients(ours, wanted), gradients(theirs, wanted))


def test_buffers_given_back_do_not_pile_up():
    like = torch.empty(3, 5, 7)
    for _ in range(100):
        cells.give(torch.empty_like(like))
    assert len(cells._spare[(3, 5, 7), like.dtype, like.device]) <= 8


@every_cell
@pytest.mark.parametrize("seed", range(10))
def test_gradients_are_finite_differences(cell, seed):
    layer, x, state = build(cell, seed)
    wanted = leaves(layer, x, state)
    analytic = gradients(cells.run(layer, x, state), wanted)
    with torch.no_grad():
        assert_finite_differences(lambda: objective(cells.run(layer, x, state)), wanted, analytic)


@every_cell
def test_the_last_step_alone_reaches_the_first_input_and_the_initial_state(cell):
    """Backpropagation that forgets to hand its gradient on has zeros here."""
    layer, x, state = build(cell)
    ours, theirs = (
        torch.autograd.grad(result[0][-1].sum(), [x, *tensors(state)])
        for result in (cells.run(layer, x, state), layer(x, state))
    )
    assert ours[0][0].abs().min() > 0 and all(g.abs().min() > 0 for g in ours[1:])
    assert_same(ours, theirs)


@every_cell
def test_the_first_input_reaches_the_last_output(cell):
    layer, x, state = build(cell)
    moved = x.detach().clone()
    moved[0] += 0.1
    assert (cells.run(layer, x, state)[0][3] - cells.run(layer, moved, state)[0][3]).abs().min() > 0


@every_cell
def test_upstream_gradients_and_arguments_are_left_alone(cell):
    layer, x, state = build(cell)
    before = [leaf.detach().clone() for leaf in leaves(layer, x, state)]
    out, last = cells.run(layer, x, state)
    grad_outputs = [torch.randn_like(part) for part in (out, *tensors(last))]
    kept = [g.clone() for g in grad_outputs]
    torch.autograd.backward([out, *tensors(last)], grad_outputs)
    for a, b in zip([*grad_outputs, *leaves(layer, x, state)], [*kept, *before], strict=True):
        assert torch.equal(a, b)


@every_cell
def test_gradients_that_share_their_memory_with_others_are_read_rightly(cell):
    """A sum's gradient is one number seen from everywhere, strides of 0."""
    layer, x, state = build(cell)
    wanted = leaves(layer, x, state)
    ours, theirs = (torch.autograd.grad(r[0].sum(), wanted) for r in (cells.run(layer, x, state), layer(x, state)))
    assert_same(ours, theirs)


@pytest.mark.parametrize("cell", ["GRU", "LSTM"])
def test_a_second_backward_pass_is_refused(cell):
    layer, x, state = build(cell)
    total = objective(cells.run(layer, x, state))
    total.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="differentiated already"):
        total.backward()


def in_windows(layer, x, state, K):
    """All outputs of truncated backpropagation: the state passes every K steps, its gradient doesn't."""
    outs = []
    for part in x.split(K):
        out, state = cells.run(layer, part, state)
        state = tuple(s.detach() for s in state) if isinstance(state, tuple) else state.detach()
        outs.append(out)
    return torch.cat(outs)


@every_cell
def test_truncation_gives_the_gradient_of_the_windows_own_objectives(cell):
    """detach() changes what is differentiated: each window's loss, with the state that comes in held constant."""
    K, (layer, x, state) = 2, build(cell)
    weights = torch.randn(TIME, BATCH, WIDTH, dtype=torch.float64)
    wanted = list(layer.parameters())
    truncated = torch.autograd.grad((in_windows(layer, x, state, K) * weights).sum(), wanted)
    with torch.no_grad():
        incoming, s = [], state
        for part in x.split(K):
            incoming.append(s)
            _, s = cells.run(layer, part, s)

        def of_windows():
            parts = zip(x.split(K), incoming, weights.split(K), strict=True)
            return sum((cells.run(layer, part, s)[0] * w).sum() for part, s, w in parts)

        assert_finite_differences(of_windows, wanted, truncated)
    full = torch.autograd.grad((cells.run(layer, x, state)[0] * weights).sum(), wanted)
    assert max((a - b).abs().max() for a, b in zip(truncated, full, strict=True)) > 1e-3
    for K in (TIME, TIME + 1):
        assert_same(torch.autograd.grad((in_windows(layer, x, state, K) * weights).sum(), wanted), full)


def test_derivatives_as_the_docstring_gives_them():
    """tanh' = 1 - h² = 0.75 and σ' = s (1 - s) = 0.25 where the value is 0.5: arguments atanh 0.5 and 0."""
    for function, argument, right in ((torch.tanh, 0.5493061443340548, 0.75), (torch.sigmoid, 0.0, 0.25)):
        a = torch.tensor(argument, dtype=torch.float64)
        assert abs(function(a) - 0.5) < 1e-15
        assert abs((function(a + 1e-6) - function(a - 1e-6)) / 2e-6 - right) < 1e-9
    one, half, out = torch.ones(1).double(), torch.full((1,), 0.5).double(), torch.empty(1).double()
    assert cells.d_tanh(one, half, grad_input=out).item() == 0.75
    assert cells.d_sigmoid(one, half, grad_input=out).item() == 0.25


def test_the_gru_resets_after_the_product_and_u_keeps_the_old_state():
    """One step, one unit, by hand.

    z = (ln 3, ln 3, 0), h0 = 0.5, W = (0, 0, 1), b_n = 0.5: r = u = σ(ln 3) = 0.75, q = 1 · 0.5 + 0.5 = 1,
    n = tanh(0 + 0.75 · 1), h = 0.25 tanh 0.75 + 0.75 · 0.5.
    """
    ln3 = torch.tensor(3.0).double().log()
    z = torch.stack([ln3, ln3, torch.zeros_like(ln3)]).view(1, 1, 3)
    W, b_n = torch.tensor([[0.0], [0.0], [1.0]]).double(), torch.tensor([0.5]).double()
    h = cells.gru(z, torch.tensor([[0.5]]).double(), W, b_n)
    assert abs(h.item() - (0.25 * 0.635148952387287 + 0.375)) < 1e-15  # tanh 0.75 = 0.635148952387287


def test_a_forget_bias_of_10_carries_a_bit_over_1000_steps():
    """An LSTM set by hand: i opens for the first input alone; f = σ(10), so c keeps e^(-1000 · 4.5e-5) = 0.956."""
    bits = torch.tensor([0.0, 1.0] * 8).double()
    x = torch.zeros(1001, 16, 2, dtype=torch.float64)
    x[0, :, 0], x[0, :, 1] = 2 * bits - 1, 1.0  # the bit as ±1, and a mark that says so
    x[1:, :, 0] = torch.randn(1000, 16, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    layer = nn.LSTM(2, 1).double()
    with torch.no_grad():
        for p in layer.parameters():
            p.zero_()
        layer.weight_ih_l0[0, 1], layer.bias_ih_l0[0] = 40.0, -20.0  # i: +20 with the mark, -20 without
        layer.bias_ih_l0[1] = 10.0
        layer.weight_ih_l0[2, 0] = 5.0  # g
        layer.bias_ih_l0[3] = 10.0
        out, _ = cells.run(layer, x)
    assert torch.equal(out[-1, :, 0] > 0, bits > 0)
    assert (out[-1, :, 0].abs() > 0.7).all()  # tanh 0.956 = 0.74


SHARED_OPTIONS = {"num_layers": 2, "bidirectional": True, "batch_first": True, "bias": False}
OPTIONS = [(cell, option, value) for cell in LAYERS for option, value in SHARED_OPTIONS.items()]
OPTIONS += [("RNN", "nonlinearity", "relu"), ("LSTM", "proj_size", 2)]


@pytest.mark.parametrize("cell, option, value", OPTIONS)
def test_a_layer_of_another_kind_is_refused_not_run_as_something_else(cell, option, value):
    with pytest.raises(ValueError, match=option):
        cells.run(LAYERS[cell](IN, WIDTH, **{option: value}), torch.randn(TIME, BATCH, IN))


@every_cell
def test_float32_stays_float32(cell):
    layer, x, state = build(cell)
    right = cells.run(layer, x, state)[0]
    state = tuple(s.float() for s in state) if isinstance(state, tuple) else state.float()
    ours = cells.run(layer.float(), x.float(), state)[0]
    assert ours.dtype == torch.float32 and torch.allclose(ours.double(), right, rtol=0, atol=1e-5)


@pytest.mark.parametrize("cell", [nn.LSTM, nn.GRU])
def test_every_layer_and_direction_gets_the_bias(cell):
    net = cell(4, 6, num_layers=3, bidirectional=True)
    cells.set_gate_bias(net, 2.5)
    for layer in range(3):
        for end in f"l{layer}", f"l{layer}_reverse":
            assert (getattr(net, f"bias_ih_{end}")[6:12] == 2.5).all()
            assert (getattr(net, f"bias_hh_{end}")[6:12] == 0).all()


def test_a_network_without_that_bias_is_refused():
    with pytest.raises(ValueError, match="bias=False"):
        cells.set_gate_bias(nn.LSTM(4, 6, bias=False), 1)
    with pytest.raises(ValueError, match="RNN_TANH has no gates"):
        cells.set_gate_bias(nn.RNN(4, 6), 1)
