"""The GPT as a character model: its size, its windows, its scores in every way of reading, and what it writes."""

import math

import pytest
import torch

from layers import char_gpt, char_rnn
from layers.char_gpt import GPT, Size

V = 30
WINDOW = 32  # of the small model: halves of 16


def drawn(count, vocabulary=V):
    return torch.randint(vocabulary, (count,), generator=torch.Generator().manual_seed(0))


@pytest.fixture
def model():
    """One whose blocks add something, as if it had learnt it."""
    torch.manual_seed(0)
    model = GPT(V, Size(width=16, blocks=2, heads=2), window=WINDOW)
    for block in model.blocks:
        block.attention.output.reset_parameters()
        block.narrow.reset_parameters()
    return model


@pytest.mark.parametrize("name, count", [("GPT", 118_676), ("larger GPT", 363_124)])
def test_the_models_have_as_many_parameters_as_their_equations(name, count):
    """Embedding and readout 2 · 148 d + 148, last norm 2 d; a block 3d² + d² + 4d² + 4d + 4d² + d + 2 · 2d = 12d² + 9d.

    d = 64: 19,220 + 2 · 49,728 = 118,676, beside the RNN's 129,940. d = 96: 28,756 + 3 · 111,456 = 363,124, beside the
    LSTM's 377,236.
    """
    d, blocks, _ = char_gpt.SIZES[name]
    model = char_gpt.build(name, 0, 148)
    assert sum(p.numel() for p in model.parameters()) == count == 298 * d + 148 + blocks * (12 * d**2 + 9 * d)


def test_weights_are_the_seed_s_and_disturb_no_other_draws():
    torch.manual_seed(9)
    expected = torch.rand(3)
    torch.manual_seed(9)
    one, other, third = (char_gpt.build("GPT", seed, V) for seed in (1, 1, 2))
    assert torch.equal(torch.rand(3), expected)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    assert not torch.equal(one.linear.weight, third.linear.weight)


def test_at_the_start_embeddings_are_small_and_blocks_add_nothing():
    model = char_gpt.build("larger GPT", 0, 148)
    embedded = model.embedding.weight  # 14,208 numbers: their deviation is known to about 0.6 %
    assert 0.0195 < embedded.std().item() < 0.0205
    x = torch.randn(1, 5, 96)
    assert all(torch.equal(block(x), x) for block in model.blocks)
    assert all(p.std() > 0.01 for name, p in model.named_parameters() if "qkv" in name or "widen.weight" in name)


def test_the_same_numbers_are_dropped_in_all_of_a_window():
    """Of 40 windows of 30 numbers about half, those left doubled; and another mask each time."""
    dropout, x = char_gpt.WindowDropout(0.5), torch.ones(40, 7, 30)
    y = dropout(x)
    dropped = y == 0
    assert torch.equal(dropped, dropped[:, :1].expand_as(dropped)) and 480 < dropped[:, 0].sum() < 720
    assert set(y.unique().tolist()) == {0.0, 2.0} and not torch.equal(dropout(x), y)
    assert dropout.eval()(x) is x and char_gpt.WindowDropout(0.0)(x) is x
    model = GPT(V, Size(16, 2, 2), WINDOW, dropout=0.3)
    assert [part.p for part in (model.dropout, *(block.dropout for block in model.blocks))] == [0.3] * 3


def test_the_products_of_a_step_are_counted():
    """Width 4, 1 block, window 16, 10 characters known: 12 · 16 + 40 weights; 8.5 tokens read, 2 · 4 products each."""
    model = GPT(10, Size(width=4, blocks=1, heads=1), window=16)
    assert model.flops(100) == 100 * 6 * (12 * 16 + 40 + 2 * 4 * 8.5)


# Reading


def of_windows(model, ids):
    """Logits after each character by the rule: from the half before its own half on."""
    half = model.window // 2
    rows = []
    for t in range(len(ids)):
        begin = max(0, t // half - 1) * half
        rows.append(model.of_window(ids[begin : t + 1, None])[-1])
    return torch.stack(rows)  # (time, 1, vocabulary)


@pytest.mark.parametrize("count", [1, 16, 31, 32, 33, 48, 100])
def test_a_text_is_read_by_the_rule_however_it_is_cut(model, count):
    ids = drawn(count)
    with torch.no_grad():
        expected = of_windows(model, ids)
        assert torch.allclose(model(ids[:, None])[0], expected, atol=1e-5)
        for chunk in (1, 16, 23):
            state, parts = None, []
            for part in ids[:, None].split(chunk):
                logits, state = model(part, state)
                parts.append(logits)
            assert torch.allclose(torch.cat(parts), expected, atol=1e-5)
            assert WINDOW // 2 * (count >= WINDOW) <= len(state) < WINDOW


@pytest.mark.parametrize("count", [2, 17, 32, 33, 34, 48, 49, 50, 65, 100, 161])
def test_a_text_scored_in_batches_of_windows_is_the_text_read_from_end_to_end(model, count):
    ids = drawn(count)
    with torch.no_grad():
        x, y = ids[:-1, None], ids[1:, None]
        expected = char_rnn.score(model, x, y, chunk=16)[:, 0]
        for at_once in (1, 3, 64):
            bits = char_gpt.score_text(model, ids, at_once)
            assert bits.shape == (count - 1,) and torch.allclose(bits, expected, atol=1e-5)
    assert char_rnn.evaluate(model, ids)[0] == pytest.approx(expected.mean().item(), abs=1e-5)


def test_knowing_nothing_costs_the_logarithm_of_the_vocabulary(model):
    """All logits 0: log2 30 = 4.9069 bits per character."""
    for p in model.linear.parameters():
        torch.nn.init.zeros_(p)
    assert abs(char_gpt.score_text(model, drawn(300)).mean().item() - math.log2(30)) < 1e-6


def test_no_character_is_predicted_from_itself_or_later(model):
    """With one character changed, all logits before it stay, and those after it change as far as a window reaches."""
    ids = drawn(100)
    changed = ids.clone()
    changed[40] = (ids[40] + 1) % V
    with torch.no_grad():
        gaps = (model(ids[:, None])[0] - model(changed[:, None])[0]).abs().amax((1, 2))
    assert not gaps[:40].any() and (gaps[40:64] > 0).all()  # 40 is in the half of 32 to 47, which 48 to 63 still read
    assert not gaps[64:].any()


def test_the_weights_of_attention_are_of_all_blocks_and_heads(model):
    weights = model.attention_weights(drawn(20)[:, None])
    assert weights.shape == (2, 1, 2, 20, 20) and torch.allclose(weights.sum(4), torch.ones(()), atol=1e-5)
    assert not weights.triu(1).any()


def test_a_model_learns_what_can_only_be_known_from_the_character_before(model):
    """Each character is the one before it, plus 7: after a few steps hardly anything is left of log2 30 bits."""
    ids = torch.arange(WINDOW + 1)[:, None] * 7 % V
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(60):
        batch = (ids + torch.arange(8)) % V
        loss = torch.nn.functional.cross_entropy(model(batch[:-1])[0].flatten(0, 1), batch[1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.1


# Writing


def logits_while_writing(model, ids, cached):
    """The logits of the last character of a prompt of 5, and of each character after it, given one by one."""
    writer, state, rows = char_gpt.Writer(model, cached), None, []
    with torch.inference_mode():
        for part in (ids[:5], *ids[5:].split(1)):
            logits, state = writer(part[:, None], state)
            rows.append(logits[-1, 0])
    return torch.stack(rows)


def test_kept_keys_and_values_give_the_same_bits(model):
    """Over more than three windows; and they are the logits that reading gives, up to rounding."""
    ids = drawn(110)
    cached, uncached = (logits_while_writing(model, ids, kept) for kept in (True, False))
    assert torch.equal(cached, uncached)
    with torch.no_grad():
        assert torch.allclose(cached, of_windows(model, ids)[4:, 0], atol=1e-5)


@pytest.mark.parametrize("prompt", [1, 8, 31, 32, 33, 90])
def test_cached_and_uncached_writing_write_the_same(model, prompt):
    with torch.no_grad():
        model.linear.weight *= 5.0  # as if it had learnt something
    written = [
        char_gpt.generate(model, drawn(prompt), 70, 1.0, torch.Generator().manual_seed(1), cached)
        for cached in (True, False)
    ]
    assert written[0] == written[1] and len(set(written[0])) > 3
    slow = char_rnn.generate(model, drawn(prompt), 70, 0.0, torch.Generator())
    assert char_gpt.generate(model, drawn(prompt), 70, 0.0, torch.Generator()) == slow


def test_kept_keys_and_values_save_work(model, monkeypatch):
    read, blocks = model.read, []
    monkeypatch.setattr(model, "read", lambda ids, kept, begin: blocks.append(begin) or read(ids, kept, begin))
    for cached in (True, False):
        blocks.clear()
        logits_while_writing(model, drawn(32), cached)
        assert len(blocks) == (28 if cached else 1 * 4 + 8 * 2 + 8 * 3 + 8 * 4)  # blocks of 8, of 5 to 32 characters


def test_a_writer_leaves_the_mode_as_it_was(model):
    model.train()
    char_gpt.generate(model, drawn(3), 2, 1.0, torch.Generator().manual_seed(0))
    assert model.training


def test_a_window_that_can_t_be_halved_is_refused():
    with pytest.raises(ValueError, match="two halves of whole blocks of 8, not 40"):
        GPT(V, Size(16, 1, 2), window=40)
