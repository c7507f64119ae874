"""Every character model by the same calls."""

from types import SimpleNamespace

import pytest
import torch

from layers import char_gpt, char_lm, char_rnn, heads
from layers.char_gpt import GPT, Size

V = 20


def settings(cell):
    return SimpleNamespace(cell=cell, seed=0, hidden=8, forget_bias=None)


def drawn(count):
    return torch.randint(V, (count,), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("cell", ["LSTM", "minGRU", "GPT"])
def test_a_model_is_built_scored_and_written_from(cell, monkeypatch):
    monkeypatch.setitem(char_gpt.SIZES, "GPT", Size(8, 1, 2))
    model, ids = char_lm.build(settings(cell), V), drawn(300)
    assert isinstance(model, GPT) == (cell == "GPT")
    bits, scored = char_lm.evaluate(model, ids)
    assert scored == 299 and bits == pytest.approx(char_rnn.evaluate(model, ids)[0], abs=1e-5)
    written = char_lm.generate(model, ids[:5], 10, 1.0, torch.Generator().manual_seed(0))
    assert len(written) == 10 and set(written) <= set(range(V - 1)) and model.training
    assert char_lm.flops(model, 100) > 0


@pytest.mark.parametrize("cell, own, of_the_input", [("LSTM", 32 * 8, 32 * 64), ("minGRU", 0, 16 * 64)])
def test_the_operations_of_a_recurrent_step_are_counted(cell, own, of_the_input):
    """8 units on embeddings of 64, ten characters: the product with the input is looked up from 20 rows."""
    model = char_lm.build(settings(cell), V)
    assert char_lm.flops(model, 10) == 6 * (10 * (own + 20 * 8) + 20 * of_the_input)


def test_heads_that_copy_are_found():
    """A head that is made to look at what followed the same character before is the one pictured."""
    ids = torch.tensor([1, 2, 3, 4] * 8)
    weights = torch.zeros(1, 1, 2, 32, 32)
    time = torch.arange(32)
    weights[0, 0, 0, time, (time - 1).clamp(min=0)] = 1.0  # the character before
    weights[0, 0, 1, time, (time - 3).clamp(min=0)] = 1.0  # what followed the same, four characters ago
    model = GPT(V, Size(8, 1, 2), window=32)
    model.attention_weights = lambda ids: weights
    (first, second), alike, picture = heads.look(model, ids)
    assert (first["characters_back"], second["characters_back"]) == pytest.approx((1, 3))
    assert first["at_what_followed_the_same"] == 0 and second["at_what_followed_the_same"] == pytest.approx(1)
    # Queries t from 16 to 31 look t / 2 back if they look at all alike; of those t + 1, every fourth before t followed.
    assert alike["characters_back"] == pytest.approx(sum(t / 2 for t in range(16, 32)) / 16)
    expected = sum((t // 4) / (t + 1) for t in range(16, 32)) / 16
    assert alike["at_what_followed_the_same"] == pytest.approx(expected)
    assert picture["head"] == 2 and picture["ids"] == ids.tolist() and len(picture["weights"]) == 32


def test_what_heads_do_is_averaged_over_windows():
    """A head that looks at the character before in one window and two back in the other."""
    model = GPT(V, Size(8, 1, 1), window=16)
    time, weights = torch.arange(16), torch.zeros(1, 2, 1, 16, 16)
    for window, back in enumerate((1, 2)):
        weights[0, window, 0, time, (time - back).clamp(min=0)] = 1.0
    seen = []
    model.attention_weights = lambda ids: seen.append(ids) or weights
    ids = drawn(40)
    (head,), _, picture = heads.look(model, ids, windows=2)
    assert head["characters_back"] == pytest.approx(1.5) and picture["ids"] == ids[:16].tolist()
    assert torch.equal(seen[0], torch.stack([ids[:16], ids[24:]], 1))
