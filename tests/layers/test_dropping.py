"""The LSTM that drops, and learning while reading, against what they are without it and a step by hand."""

import copy
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from layers import char_rnn, dropping
from layers.dropping import DroppingLSTM

V, HIDDEN = 9, 6


def model(**options):
    torch.manual_seed(0)
    return DroppingLSTM(V, HIDDEN, **options)


def drawn(*shape):
    return torch.randint(V, shape, generator=torch.Generator().manual_seed(0))


def test_without_dropping_it_is_the_post_s_model():
    """In training as in evaluation, from a state of zero and with one carried along; the weights are drawn alike."""
    usual = char_rnn.build(SimpleNamespace(cell="LSTM", seed=0, hidden=HIDDEN, forget_bias=None), V)
    ids = drawn(8, 3)
    for ours in (model(), model().eval(), model(dropout=0.5, weight_dropout=0.5).eval()):
        (first, state), (expected, usual_state) = ours(ids[:5]), usual(ids[:5])
        assert torch.allclose(first, expected, atol=1e-6)
        assert torch.allclose(ours(ids[5:], state)[0], usual(ids[5:], usual_state)[0], atol=1e-6)


def test_the_same_outputs_are_dropped_at_every_step():
    ours = model(dropout=0.5)
    ours.linear = nn.Identity()
    h, _ = ours(drawn(8, 40))
    dropped = h == 0
    assert torch.equal(dropped, dropped[:1].expand_as(dropped)) and 60 < dropped[0].sum() < 180  # of 240, about half
    kept = ours.eval()(drawn(8, 40))[0]
    assert torch.allclose(h[~dropped], 2 * kept[~dropped], atol=1e-6)


def test_dropped_weights_show_from_the_second_step_on():
    ours = model(weight_dropout=0.5)
    a, b = ours(drawn(4, 3))[0], ours(drawn(4, 3))[0]
    assert torch.equal(a[0], b[0]) and not torch.equal(a[1], b[1])


def test_reading_without_learning_is_reading():
    ours, ids = model().eval(), drawn(200)
    sizes = dropping.usual_sizes(ours, ids)
    bits = dropping.score_learning(ours, ids, sizes, rate=0.0)
    expected = char_rnn.score(ours, ids[:-1, None], ids[1:, None])[:, 0]
    assert torch.allclose(bits, expected, atol=1e-5)


def test_a_step_of_learning_worked_out():
    """The second segment is scored by weights moved by rate · g / (size + ε) from those that scored the first."""
    ours, ids = model().eval(), drawn(129)
    sizes = [torch.full_like(p, 0.5) for p in ours.parameters()]
    bits = dropping.score_learning(ours, ids, sizes, rate=0.1)
    moved = copy.deepcopy(ours)
    logits, state = moved(ids[:64, None])
    nn.functional.cross_entropy(logits[:, 0], ids[1:65]).backward()
    with torch.no_grad():
        for p in moved.parameters():
            p -= 0.1 * p.grad / (0.5 + dropping.EPSILON)
        state = tuple(part.detach() for part in state)
        expected = char_rnn.score(moved, ids[64:128, None], ids[65:129, None], state)[:, 0]
    assert torch.allclose(bits[64:], expected, atol=1e-5)
    assert torch.equal(ours.linear.weight, model().linear.weight)  # the model itself learns nothing


def test_the_usual_size_is_the_root_of_the_mean_square():
    ours, ids = model().eval(), drawn(129)
    gradients, state = [], None
    for x, y in dropping.segments(ids):
        _, state, gradient = dropping.differentiated(ours, x, y, state)
        gradients.append(gradient[0])
    expected = torch.stack(gradients).square().mean(0).sqrt()
    assert len(gradients) == 2 and torch.allclose(dropping.usual_sizes(ours, ids)[0], expected, atol=1e-7)


def test_learning_pays_where_a_text_repeats_itself():
    ours, ids = model().eval(), torch.arange(1500) * 2 % V
    sizes = dropping.usual_sizes(ours, ids)
    slow, fast = (dropping.score_learning(ours, ids, sizes, rate) for rate in (1e-5, 1e-2))
    assert fast.mean() < slow.mean() and fast[-200:].mean() < 0.8 * fast[:64].mean()


def test_the_rate_rises_then_falls_to_0():
    """Of 200 steps with 10 to warm up: half at step 5 (times a cosine of nearly 1), ½ at the middle, 0 at the end."""
    shares = [dropping.cosine(step, 200, 10) for step in (5, 100, 200)]
    assert shares == pytest.approx([0.5 * 0.99846, 0.5, 0.0], abs=1e-5)
