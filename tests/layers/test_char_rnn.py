"""The character model: the layers inside it, bits per character against the plain listing, and what it writes."""

import math
from collections import Counter
from types import SimpleNamespace

import pytest
import torch

from layers import char_rnn
from layers.char_rnn import CharRNN
from plain import charlm as plain

every_cell = pytest.mark.parametrize("cell", char_rnn.CELLS)
every_layer = pytest.mark.parametrize("cell", char_rnn.LAYERS)
V = 30


def settings(cell, seed=0, hidden=8, forget_bias=None):
    return SimpleNamespace(cell=cell, seed=seed, hidden=hidden, forget_bias=forget_bias)


def drawn(*shape, vocabulary=V):
    return torch.randint(vocabulary, shape, generator=torch.Generator().manual_seed(0))


def parameters(model):
    return sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("cell, count", [("RNN", 129_940), ("GRU", 294_804), ("LSTM", 377_236)])
def test_the_models_have_as_many_parameters_as_the_posts(cell, count):
    """148 · 64 + G · 256 · (64 + 256 + 2) + 148 · (256 + 1) = 47,508 + 82,432 G, for G = 1, 3, 4."""
    assert parameters(CharRNN(148, cell)) == count == 47_508 + 82_432 * {"RNN": 1, "GRU": 3, "LSTM": 4}[cell]


@pytest.mark.parametrize("cell, products", [("minGRU", 2), ("linear attention", 3)])
def test_the_scanned_models_have_as_many_parameters_as_their_equations(cell, products):
    """148 · 64 + G · 256 · (64 + 1) + 148 · (256 + 1) = 47,508 + 16,640 G: u and n for minGRU; q, k and v."""
    assert parameters(CharRNN(148, cell)) == 47_508 + 16_640 * products


@every_cell
def test_the_cells_by_hand_compute_what_the_layer_does(cell):
    torch.manual_seed(0)
    model = CharRNN(20, cell, hidden=7).double()
    ids, state = drawn(5, 3, vocabulary=20), torch.randn(1, 3, 7, dtype=torch.float64)
    state = (state, state.flip(0)) if cell == "LSTM" else state
    h, last = model.rnn(model.embedding(ids), state)
    ours, ours_last = model(ids, state)
    assert torch.allclose(ours, model.linear(h), rtol=0, atol=1e-10)
    for a, b in zip(ours_last, last, strict=True):
        assert a.shape == b.shape and torch.allclose(a, b, rtol=0, atol=1e-10)


@every_cell
def test_weights_begin_as_the_plain_listings_and_disturb_no_other_draws(cell):
    reference, _ = plain.trainer(drawn(200), V, cell, seed=5, hidden=8)
    torch.manual_seed(9)
    expected = torch.rand(3)
    torch.manual_seed(9)
    model = char_rnn.build(settings(cell, seed=5), V)
    assert torch.equal(torch.rand(3), expected)
    for a, b in zip(model.parameters(), reference.parameters(), strict=True):
        assert torch.equal(a, b)


def test_the_forget_bias_is_what_was_asked_for_and_nothing_else_changes():
    """torch adds two biases: both at 2.5 would make 5, one alone leaves the other's random draw."""
    model, usual = (char_rnn.build(settings("LSTM", forget_bias=bias), V) for bias in (2.5, None))
    total = model.rnn.bias_ih_l0 + model.rnn.bias_hh_l0
    assert torch.equal(total[8:16], torch.full((8,), 2.5))
    other = [i for i in range(32) if not 8 <= i < 16]
    assert torch.equal(total[other], (usual.rnn.bias_ih_l0 + usual.rnn.bias_hh_l0)[other])


# Evaluation


@every_cell
def test_bits_per_character_are_those_of_one_character_after_the_other(cell):
    ids = drawn(198)
    reference, _ = plain.trainer(ids, V, cell, seed=0, hidden=8)
    model = char_rnn.build(settings(cell), V)
    expected, scored = plain.bits_per_char(reference, ids)
    assert scored == len(ids) - 1 == 197
    for chunk in (7, 64, len(ids)):
        bits, count = char_rnn.evaluate(model, ids, chunk)
        assert count == scored and abs(bits - expected) < 1e-5
        assert char_rnn.evaluate(model, ids, chunk) == (bits, count)  # nothing is left over from the first time
    reset = sum(plain.bits_per_char(reference, part)[0] for part in ids.split(99)) / 2
    assert abs(reset - expected) > 1e-5  # what a state that isn't carried along would give is something else


@pytest.mark.parametrize("cell", ["minGRU", "linear attention"])
def test_bits_don_t_depend_on_how_the_text_is_cut(cell):
    ids, model = drawn(198), char_rnn.build(settings(cell), V)
    exact, scored = char_rnn.evaluate(model, ids, chunk=len(ids))
    for chunk in 1, 7, 64:
        assert char_rnn.evaluate(model, ids, chunk) == (pytest.approx(exact, abs=1e-5), scored)


def test_knowing_nothing_costs_the_logarithm_of_the_vocabulary():
    """All 65 logits 0: log2 65 = 6.0224 bits per character, whatever the text."""
    model, ids = CharRNN(65, "GRU", hidden=4), drawn(300, vocabulary=65)
    for p in model.linear.parameters():
        torch.nn.init.zeros_(p)
    bits, count = char_rnn.evaluate(model, ids)
    assert abs(bits - 6.022367813) < 1e-6 and count == 299
    assert abs(char_rnn.estimate(model, ids, 100) - 6.022367813) < 1e-6


@pytest.mark.parametrize("training", [True, False])
def test_evaluation_leaves_the_mode_as_it_was(training):
    model = CharRNN(5, "RNN", hidden=4).train(training)
    char_rnn.evaluate(model, torch.tensor([0, 1, 2]))
    char_rnn.estimate(model, torch.tensor([0, 1, 2]), 2)
    assert model.training == training


@pytest.mark.parametrize("length", [2, 3, 33, 70, 5000])
def test_an_estimate_reads_all_of_the_text_that_it_can(length):
    """The last window ends with the text, the first begins with it; a short text is read whole."""
    seen = []

    def forward(ids, state=None):
        seen.append(ids)
        return torch.zeros(*ids.shape, 9), None

    model = CharRNN(9, "RNN", hidden=4)
    model.forward = forward
    assert abs(char_rnn.estimate(model, torch.arange(length) % 9, 512) - math.log2(9)) < 1e-6
    read = torch.cat(seen)
    assert read.shape == (min(512, length - 1), char_rnn.STREAMS)
    assert read[0, 0] == 0 and read[-1, -1] == (length - 2) % 9


@pytest.mark.parametrize("length, scored", [(160, 128), (40, 20), (1, 1)])
def test_what_only_warms_the_state_up_is_not_scored(length, scored):
    """A model sure of the right answer from character 32 on, and indifferent before: no bit of that counts.

    A window of 40 is scored from its half on, where 20 characters have been read; 12 of those 20 still cost log2 9.
    """
    model = CharRNN(9, "RNN", hidden=4)

    def forward(ids, state=None):
        read = state or 0
        logits = torch.zeros(*ids.shape, 9)
        sure = (torch.arange(len(ids)) + read >= char_rnn.WARM_UP)[:, None, None]
        following = torch.nn.functional.one_hot((ids + 1) % 9, 9)
        return logits + 100.0 * sure * following, read + len(ids)

    model.forward = forward
    indifferent = scored - max(0, length - char_rnn.WARM_UP)
    expected = math.log2(9) * indifferent / scored
    assert char_rnn.estimate(model, torch.arange(5000) % 9, length) == pytest.approx(expected, abs=1e-6)


# Writing


def test_higher_temperatures_give_more_surprising_text():
    """The entropy of what is written, in bits per character, grows from temperature 0.2 over 1 to 2."""
    model, prompt = char_rnn.build(settings("GRU"), V), torch.tensor([0, 1, 2])
    with torch.no_grad():
        model.linear.bias.copy_(torch.linspace(-3, 3, V))  # some characters are likelier than others
    entropies = []
    for temperature in (0.2, 1.0, 2.0):
        written = char_rnn.generate(model, prompt, 400, temperature, torch.Generator().manual_seed(0))
        shares = [n / 400 for n in Counter(written).values()]
        entropies.append(-sum(p * math.log2(p) for p in shares))
    assert entropies[0] + 0.2 < entropies[1] < entropies[2] - 0.2
    greedy = [char_rnn.generate(model, prompt, 30, 0.0, torch.Generator().manual_seed(seed)) for seed in (0, 1)]
    tiny = char_rnn.generate(model, prompt, 30, 5e-324, torch.Generator().manual_seed(0))
    assert greedy[0] == greedy[1] == tiny
    logits, _ = model(prompt[:, None])
    assert greedy[0][0] == logits[-1, 0, :-1].argmax()


@every_layer
def test_the_character_that_stands_for_others_is_never_written(cell):
    model = CharRNN(4, cell, hidden=8)
    with torch.no_grad():
        model.linear.bias[-1] = 100.0
    assert set(char_rnn.generate(model, torch.tensor([3]), 40, 1.0, torch.Generator().manual_seed(0))) <= {0, 1, 2}
