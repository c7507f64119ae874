"""Encoder and decoder against the plain listing, item by item where there is padding; what is seen, what is saved."""

import pytest
import torch
from plain_seq2seq import PlainSeq2Seq

from seq2seq import Seq2Seq

MODELS = {"none": (False, False), "attention": (True, False), "bahdanau": (True, True)}
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}


def pair(name, dtype=torch.float64, seed=0):
    """A model of ours and the plain one with the same weights, larger than at the start so that all terms count."""
    torch.manual_seed(seed)
    plain, ours = PlainSeq2Seq(name).to(dtype), Seq2Seq(*MODELS[name]).to(dtype)
    with torch.no_grad():
        for parameter in plain.parameters():
            parameter *= 2
    ours.load_state_dict({our_name(name): value for name, value in plain.state_dict().items()})
    return plain, ours


def our_name(name):
    """The plain listing has one bidirectional encoder where seq2seq.py has two that read one way."""
    return name.replace("encoder", "backwards").removesuffix("_reverse") if name.endswith("_reverse") else name


def digits(*shape):
    return torch.randint(10, shape)


def gradients(loss, model):
    return dict(zip(dict(model.named_parameters()), torch.autograd.grad(loss, list(model.parameters())), strict=True))


def relative_gap(a, b):
    return ((a - b).abs().max() / b.abs().max()).item()


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_logits_and_all_gradients_equal_the_plain_listing_s(name, dtype):
    plain, ours = pair(name, dtype)
    source, target = digits(5, 7), digits(5, 9)  # batch, source and target lengths all differ
    a, b = plain(source, target)[0], ours(source, target)
    assert a.shape == b.shape == (5, 9, 10)
    assert (a - b).abs().max() < TOLERANCE[dtype]
    weight = torch.randn(5, 9, 10, dtype=dtype)
    theirs, mine = gradients((a * weight).sum(), plain), gradients((b * weight).sum(), ours)
    assert {our_name(name) for name in theirs} == set(mine)
    for name, gradient in theirs.items():
        assert gradient.abs().max() > 0
        assert relative_gap(mine[our_name(name)], gradient) < TOLERANCE[dtype], name
