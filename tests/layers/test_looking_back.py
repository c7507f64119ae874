"""How far back a model looks, of a model that looks exactly three characters back; and of real ones."""

import math
from itertools import permutations
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from corpus import Corpus
from lab.errors import UserError
from layers import char_gpt, char_rnn, looking_back

V = 7
HISTORIES = [1, 2, 4, 8, 16]


class ThreeBack(nn.Module):
    """Certain that the next character is the third one back plus one; before it has read three, it knows nothing."""

    def __init__(self, certainty=30):
        super().__init__()
        self.embedding = nn.Embedding(V, V)
        self.embedding.weight = nn.Parameter(certainty * torch.eye(V).roll(1, 1))

    def forward(self, ids, state=None):
        read = torch.cat([ids[:0] if state is None else state, ids])
        logits = self.embedding(read)
        unknown = torch.zeros(min(2, len(read)), *logits.shape[1:])
        return torch.cat([unknown, logits[: len(read) - 2]])[-len(ids) :], read


@pytest.fixture
def text():
    """Random characters, each the third one back plus one."""
    ids = torch.randint(V, (200,), generator=torch.Generator().manual_seed(0))
    for t in range(3, len(ids)):
        ids[t] = (ids[t - 3] + 1) % V
    return ids


def test_the_past_is_worth_what_lies_in_it(text):
    """Given one or two characters it knows nothing, log2 7 = 2.807 bits; given the third it is certain."""
    bits = looking_back.by_history(ThreeBack(), text, HISTORIES)
    assert bits == pytest.approx([math.log2(7)] * 2 + [0] * 3, abs=1e-5)


def test_order_is_worth_what_lies_beyond(text):
    """With each character a word, two in order leave the third anywhere: wrong guesses cost 30 / ln 2 bits."""
    generator = torch.Generator().manual_seed(0)
    bits = looking_back.by_order(ThreeBack(), text, HISTORIES, generator, list(range(V)), shuffled=16)
    assert bits[0] > 10 and bits[1] > 10 and bits[2:] == pytest.approx([0] * 3, abs=1e-5)


def test_order_within_words_stays(text):
    """Where nothing is a space all is one word, and nothing is lost; nor where there is no more than is in order."""
    for spaces, shuffled in (([], 16), ([0], 2)):
        bits = looking_back.by_order(ThreeBack(), text, [2, 4, 16], torch.Generator(), spaces, shuffled=shuffled)
        expected = looking_back.by_history(ThreeBack(), text, [16 if shuffled == 16 else 2])
        assert bits == pytest.approx(expected * len(bits), abs=1e-5)


def test_words_are_shuffled_whole():
    """ "ab c de " ends with a space; of "ab c def" the last word hasn't ended, and stays."""
    generator, seen = torch.Generator().manual_seed(0), set()
    ids = torch.tensor([[ord(character) for character in line] for line in ("ab c de ", "ab c def")]).t()
    for _ in range(60):
        order = looking_back.words_shuffled(ids, [ord(" ")], generator)
        seen |= {(n, "".join(map(chr, line))) for n, line in enumerate(ids.gather(0, order).t().tolist())}
    assert seen == {(0, a + b + c) for a, b, c in permutations(["ab ", "c ", "de "])} | {
        (1, "ab c def"), (1, "c ab def")
    }  # fmt: skip


def test_the_gradient_arrives_where_it_comes_from(text):
    sizes = looking_back.by_gradient(ThreeBack(certainty=1), text, [1, 2, 3, 4, 8])
    assert [size > 0.1 for size in sizes] == [False, False, True, False, False]
    assert sizes[0] == sizes[1] == sizes[3] == sizes[4] == 0


def test_the_table_is_put_back(text):
    model = ThreeBack()
    table = model.embedding
    looking_back.by_gradient(model, text, [1, 2])
    assert model.embedding is table and table.weight.grad is None and model.training


@pytest.mark.parametrize("cell", ["RNN", "LSTM", "minGRU"])
def test_the_gradient_of_a_recurrent_model_is_that_of_its_embeddings(cell):
    """One character of a text: the gradient at each embedding that was read, by hand through the layer."""
    settings = SimpleNamespace(cell=cell, seed=0, hidden=5, forget_bias=None)
    model, ids = char_rnn.build(settings, V), torch.arange(9) % V
    x = model.embedding(ids[:-1, None]).detach().requires_grad_()
    logits = model.linear(model.rnn(x)[0][-1])
    (gradient,) = torch.autograd.grad(nn.functional.cross_entropy(logits, ids[-1:]), x)
    ours = looking_back.by_gradient(model, ids, [1, 2, 8], count=1)
    assert ours == pytest.approx(gradient.norm(dim=2).flatten()[[-1, -2, -8]].tolist(), rel=1e-4)


def test_a_window_holds_no_more(text, monkeypatch):
    monkeypatch.setattr(looking_back, "HISTORIES", [1, 2, 16, 32])
    torch.manual_seed(0)
    model = char_gpt.GPT(V, char_gpt.Size(8, 1, 1), window=16)
    model.blocks[0].attention.output.reset_parameters()  # it begins at 0
    corpus = Corpus("abcd f", "x" * len(text))
    found = looking_back.measure(model, corpus, text, 0)
    assert found["history"] == [1, 2, 16, 32]
    assert found["bits_per_char"][2] == found["bits_per_char"][3] and found["gradient"][3] is None
    assert all(size > 0 for size in found["gradient"][:3])
    assert len(found["bits_per_char_where_the_rest_is_shuffled"]) == 4
    assert looking_back.measure(model, corpus, text, 0) == found


@pytest.mark.parametrize("length, histories", [(4, [1]), (5, [1]), (6, [1, 2]), (300, [1, 2, 4, 8, 16, 32, 64, 128])])
def test_short_texts_are_looked_at_as_far_as_they_go(length, histories):
    """In each all three ways; the last too, where fewer than 128 characters can be given."""
    torch.manual_seed(0)
    ids = torch.arange(length) % V
    found = looking_back.measure(char_gpt.GPT(V, char_gpt.Size(8, 1, 1), 16), Corpus("ab", "a" * length), ids, 0)
    assert found["history"] == histories and {len(values) for values in found.values()} == {len(histories)}


def test_too_short_a_text_is_refused():
    with pytest.raises(UserError, match="has 3 characters: to see how far"):
        looking_back.histories_of(Corpus("ab", "abc"))


def test_every_place_has_a_whole_history():
    at = looking_back.positions(100, 50, [1, 64])
    assert at[0] == 64 and at[-1] == 99 and len(at) == 36
    assert looking_back.before(torch.arange(100), at[:2], 3).tolist() == [[61, 62], [62, 63], [63, 64]]
    with pytest.raises(ValueError, match="64 characters has none with 64 before"):
        looking_back.positions(64, 1, [64])
