"""Remembering one bit (layers/one_bit.py): a cell set by hand, the models' shortcuts, the measurements, a guesser."""

import math

import pytest
import torch
from hand_set import remember_first
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

from layers import one_bit, scans
from layers.cells import keeping_gate
from layers.one_bit_training import share_right


class Asked:
    """As much of a configuration as a test of a model asks for."""

    device = "cpu"

    def __init__(self, delay, noise=1.0):
        self.delay, self.noise = delay, noise


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def new_model(cell, delay=20, width=32, seed=0):
    torch.manual_seed(seed)
    return one_bit.new_model(cell, width, delay)


def hand_set(forget_bias):
    model = new_model("LSTM", width=3)
    remember_first(model.layer, forget_bias)
    with torch.no_grad():
        model.readout.weight.copy_(torch.tensor([[1.0, 0.0, 0.0]]))
        model.readout.bias.zero_()
    return model


# A guesser is right in 1,000 fair answers 500 ± 16 times: outside of ± 50 about once in 600 times, and seeds are fixed.
def is_chance(share):
    return 0.45 < share < 0.55


def test_weights_set_by_hand_solve_a_delay_of_1000():
    """The cell is right before training is blamed. With the forget gate at ½ the same weights know nothing."""
    assert share_right(hand_set(10.0), seeded(), Asked(1000), 200) == 1.0
    assert is_chance(share_right(hand_set(0.0), seeded(), Asked(1000), 1000))


def test_zeroing_the_bit_leaves_nothing_to_go_by():
    """Leak test: the model that is right in all 2,000 has nothing but the first input."""
    assert share_right(hand_set(10.0), seeded(), Asked(20), 2000) == 1.0
    assert is_chance(share_right(hand_set(10.0), seeded(), Asked(20), 2000, bit_is_shown=False))


def test_only_the_bit_is_zeroed():
    """With the noise gone as well, nobody would see a bit that had leaked into it."""

    def model(x):
        seen.append(x)
        return torch.zeros(x.shape[1])

    seen = []
    share_right(model, seeded(), Asked(20), 300, bit_is_shown=False)
    assert len(seen) == 3 and all(not x[0].any() and x[1:].all() for x in seen)


def test_noise_from_other_sequences_changes_no_answer_of_a_model_that_remembers():
    x, bit = one_bit.sequences(seeded(), 20, 500)
    x[1:] = x[1:, torch.randperm(500, generator=seeded(1))]
    assert torch.equal(hand_set(10.0)(x) > 0, bit == 1)


def test_the_bit_stands_first_and_nothing_later_depends_on_it():
    delay, count = 12, 40_000
    x, bit = one_bit.sequences(seeded(), delay, count, noise=0.5)
    assert x.shape == (1 + delay, count, 1)
    assert torch.equal(x[0, :, 0], bit) and set(bit.tolist()) == {0, 1}
    assert abs(bit.mean().item() - 0.5) < 4 * 0.5 / math.sqrt(count)
    assert x[1:].std().item() == pytest.approx(0.5, rel=0.01)
    # A correlation of independent numbers has a standard deviation of 1/√count: twelve of them within four of those.
    correlations = torch.corrcoef(torch.cat([bit[None], x[1:, :, 0]]))[0, 1:]
    assert correlations.abs().max().item() < 4 / math.sqrt(count)


@pytest.mark.parametrize("cell", one_bit.MODELS)
def test_an_untrained_model_is_at_chance(cell):
    """50 ± 3 % of 4,000 fresh sequences: 3 % are 3.8 standard deviations."""
    right = [share_right(new_model(cell, seed=seed), seeded(9), Asked(20, 0.1), 2000) for seed in (0, 1)]
    assert abs(sum(right) / 2 - 0.5) < 0.03


def test_only_the_answer_is_scored():
    """The last state alone makes the logit, so an untrained loss is ln 2 and not a sum over steps."""
    model = new_model("GRU")
    x, bit = one_bit.sequences(seeded(), 30, 200)
    states, _ = model.layer(x)
    assert torch.allclose(model(x), model.readout(states[-1]).flatten(), atol=1e-6)
    assert binary_cross_entropy_with_logits(model(x), bit).item() == pytest.approx(math.log(2), abs=0.05)


@pytest.mark.parametrize("cell", one_bit.MODELS)
def test_a_model_goes_on_from_what_the_first_step_left(cell):
    model = new_model(cell)
    x, _ = one_bit.sequences(seeded(), 9, 5)
    assert torch.allclose(model(x[1:], model.first(x)), model(x), atol=1e-6)


def test_the_transformer_s_last_token_is_that_of_the_whole_block():
    model = new_model("Transformer")
    v = torch.randn(13, 3, 32, generator=seeded())  # (time, batch, width)
    assert torch.allclose(model.last(v), model.block(v.transpose(0, 1))[:, -1], atol=1e-5)


def test_the_state_space_is_the_convolution_and_the_recurrence():
    """The last step alone, against all steps of scans.py's two forms, in float64."""
    model = new_model("state space").double()
    v = torch.randn(17, 3, 32, generator=seeded()).double()
    log_A, C = model.parts()
    for form in scans.convolved, scans.recurred:
        assert torch.allclose(model.last(v), nn.functional.gelu(form(v, log_A, C)[-1]), atol=1e-10)


@pytest.mark.parametrize(
    "cell, bias", [("LSTM, forget bias 1", 1), ("LSTM, forget bias 3", 3), ("LSTM, forget bias -5", -5)]
)
def test_the_effective_forget_bias_is_the_one_asked_for(cell, bias):
    layer, plain = (new_model(name).layer for name in (cell, "LSTM"))
    H = layer.hidden_size
    forget = slice(H, 2 * H)  # torch's order: input, forget, cell, output
    assert (layer.bias_ih_l0 + layer.bias_hh_l0)[forget].tolist() == [bias] * H
    for name, parameter in plain.named_parameters():  # the rest is drawn as without it
        other = dict(layer.named_parameters())[name]
        keep = torch.ones(len(parameter), dtype=torch.bool)
        keep[forget] = not name.startswith("bias")
        assert torch.equal(parameter[keep], other[keep])


def test_chrono_biases_are_spread_over_the_delay():
    """b_f = log u with u uniform in 1 … T - 1, so that Σ e^b has the mean T / 2; an LSTM's b_i is the opposite."""
    lstm, gru = (new_model(f"{cell}, chrono", delay=100, width=1000).layer for cell in ("LSTM", "GRU"))
    for layer in lstm, gru:
        u = (layer.bias_ih_l0 + layer.bias_hh_l0)[keeping_gate(layer)].exp()
        assert 1 <= u.min().item() < 3 and 97 < u.max().item() <= 99.01
        assert u.mean().item() == pytest.approx(50, abs=4 * 28.3 / math.sqrt(1000))  # 98 / √12 = 28.3
    both = lstm.bias_ih_l0 + lstm.bias_hh_l0
    assert torch.equal(both[:1000], -both[1000:2000])


def test_the_identity_cell_starts_as_le_jaitly_and_hinton_say():
    layer = new_model("RNN, identity").layer
    assert torch.equal(layer.weight_hh_l0, torch.eye(32))
    assert not layer.bias_ih_l0.any() and not layer.bias_hh_l0.any()
    assert 0.0005 < layer.weight_ih_l0.std().item() < 0.0015


@pytest.mark.parametrize("cell", ["RNN", "GRU", "LSTM", "minGRU", "linear attention", "state space"])
def test_the_gradient_at_the_first_state_agrees_with_finite_differences(cell):
    """Of each sequence's own loss, in float64; for an LSTM with respect to h_1 and c_1."""
    model = new_model(cell, width=4, seed=3).double()
    x, bit = (tensor.double() for tensor in one_bit.sequences(seeded(2), 6, 5))

    def losses(first):
        return binary_cross_entropy_with_logits(model(x[1:], first), bit, reduction="none")

    with torch.no_grad():
        first = model.first(x)  # (1, batch, hidden) each, or (1, batch, key, value)
        squares = torch.zeros(5, dtype=torch.float64)
        for number, part in enumerate(first):
            for unit in range(part[0, 0].numel()):
                step = torch.zeros_like(part)
                step[0].flatten(1)[:, unit] = 1e-5  # of all sequences at once: each loss depends on its own alone
                up, down = ([*first[:number], part + s, *first[number + 1 :]] for s in (step, -step))
                squares += ((losses(up) - losses(down)) / 2e-5) ** 2
    assert one_bit.gradient_at_first_state(model, x, bit) == pytest.approx(squares.sqrt().mean().item(), rel=1e-6)


def test_a_gradient_below_the_range_of_float32_is_0():
    """A forget gate of σ(-5) = 0.0067 takes 200 steps to 10^-400 or so. Squares of 10^-30 must not make a norm of 0."""
    model = new_model("LSTM, forget bias -5")
    assert one_bit.gradient_at_first_state(model, *one_bit.sequences(seeded(), 200, 8)) == 0.0
    tiny = one_bit.gradient_at_first_state(model, *one_bit.sequences(seeded(), 36, 8))
    exact = one_bit.gradient_at_first_state(model.double(), *(t.double() for t in one_bit.sequences(seeded(), 36, 8)))
    assert 0 < tiny < 1e-28 and tiny == pytest.approx(exact, rel=1e-3)


def test_the_share_of_the_bit():
    """A model that sees the bit alone: z = w b, at w = 0. A model that doesn't see it has no share at all.

    ∂L/∂w = (σ(0) - y) b. Over right pairs, bits 0 and 1, that is (0 - ½) / 2 in the mean, over wrong ones the
    opposite: ¼ is about the bit. A step's gradient is Σ (½ - y) b / n, over the n bits and answers drawn.
    """

    class Sees(nn.Module):
        def __init__(self, first):
            super().__init__()
            self.first, self.w = first, nn.Parameter(torch.zeros(()))

        def forward(self, x):
            return self.w * (x[0, :, 0] if self.first else x[-1, :, 0])

    x, _ = one_bit.sequences(seeded(), 5, 40)
    share = one_bit.share_of_the_bit(Sees(True), x, seeded(1))
    bits, answers = torch.randint(2, (2, 40), generator=seeded(1)).double()
    assert share == pytest.approx(0.25 / abs(((0.5 - answers) * bits).mean().item()))
    assert one_bit.share_of_the_bit(Sees(False), x, seeded(1)) < 1e-12


def test_the_mean_of_the_gate_that_keeps():
    """All weights 0 and a bias of 1: σ(1) everywhere. Other models have no such gate."""
    x, _ = one_bit.sequences(seeded(), 9, 5)
    for cell in "LSTM, forget bias 1", "GRU":
        model = new_model(cell)
        with torch.no_grad():
            for parameter in model.layer.parameters():
                parameter.zero_()
            model.layer.bias_ih_l0[keeping_gate(model.layer)] = 1.0
        assert one_bit.kept(model, x) == pytest.approx(0.7310586)
    assert one_bit.kept(new_model("RNN"), x) is None and one_bit.kept(new_model("Transformer"), x) is None


def test_the_fewest_right_answers_above_chance():
    """P(X >= k) for a fair coin, summed here from logarithms of factorials."""

    def tail(k, n):
        return math.fsum(
            math.exp(math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) - n * math.log(2))
            for i in range(k, n + 1)
        )

    for count in (14, 100, 1000, 6000):
        bound = one_bit.fewest_above_chance(count)
        assert tail(bound, count) * 10_000 < 1 <= tail(bound - 1, count) * 10_000
    assert one_bit.fewest_above_chance(10) == 11  # all right by guessing: once in 1,024 times, so it can't be shown
