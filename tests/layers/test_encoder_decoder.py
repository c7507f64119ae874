"""The encoder and the decoder against the plain listing, and item by item where there is padding."""

import pytest
import torch
from torch.nn import functional as F

from layers import attention, cells
from layers.encoder_decoder import PAD, START, Seq2Seq, lengths_of, reverse
from plain.seq2seq import PlainSeq2Seq

MODELS = {"none": (False, False), "attention": (True, False), "bahdanau": (True, True)}
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}


def pair(name, dtype=torch.float64):
    """The plain model and ours with the same weights, larger than at the start so that every term counts."""
    torch.manual_seed(0)
    plain, ours = PlainSeq2Seq(name).to(dtype), Seq2Seq(*MODELS[name]).to(dtype)
    with torch.no_grad():
        for parameter in plain.parameters():
            parameter *= 2
    ours.load_state_dict({our_name(name): value for name, value in plain.state_dict().items()})
    return plain, ours


def our_name(name):
    """The plain listing has one encoder for both directions, seq2seq.py one for each."""
    return name.replace("encoder", "backwards").removesuffix("_reverse") if name.endswith("_reverse") else name


def digits(*shape):
    return torch.randint(10, shape)


def padded(lengths):
    """Random digits (batch, longest), padded behind the given lengths."""
    return digits(len(lengths), max(lengths)).masked_fill(
        torch.arange(max(lengths)) >= torch.tensor(lengths)[:, None], PAD
    )


def gradients(loss, model):
    names, parameters = zip(*model.named_parameters(), strict=True)
    return dict(zip(map(our_name, names), torch.autograd.grad(loss, parameters), strict=True))


def relative_gap(a, b):
    return ((a - b).abs().max() / b.abs().max()).item()


# The model is the plain one


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
    assert theirs.keys() == mine.keys()
    assert name == "none" or {"W_dec.bias", "W_enc.bias"} < theirs.keys()
    for parameter, gradient in theirs.items():
        assert gradient.abs().max() > 0
        assert relative_gap(mine[parameter], gradient) < TOLERANCE[dtype], parameter


@pytest.mark.parametrize("name", MODELS)
def test_a_seed_draws_the_weights_that_it_draws_for_the_plain_listing(name):
    """Layers are built in the order of the post's listing, so each gets the same random numbers."""
    torch.manual_seed(3)
    plain = {our_name(name): value for name, value in PlainSeq2Seq(name).named_parameters()}
    torch.manual_seed(3)
    ours = dict(Seq2Seq(*MODELS[name]).named_parameters())
    assert ours.keys() == plain.keys()
    assert all(torch.equal(ours[name], value) for name, value in plain.items())


@pytest.mark.parametrize("name", MODELS)
def test_the_comparison_with_the_plain_listing_notices_a_change_of_any_parameter(name):
    plain, ours = pair(name)
    source, target = digits(3, 4), digits(3, 4)
    b = ours(source, target)
    for parameter in plain.parameters():
        with torch.no_grad():
            parameter += 1e-4
            a = plain(source, target)[0]
            assert (a - b).abs().max() > 1e-8
            parameter -= 1e-4


@pytest.mark.parametrize("name", MODELS)
def test_free_running_equals_the_plain_listing_s_and_sees_no_target(name):
    plain, ours = pair(name)
    source, garbage = digits(6, 5), digits(6, 8)
    logits, weights = plain(source, garbage, free=True)
    written, looked = ours.write(source, 8)
    assert torch.equal(written, logits.argmax(2))
    if name == "none":
        assert looked is None and weights is None
    else:
        assert (looked.permute(2, 0, 1) - weights).abs().max() < 1e-10


@pytest.mark.parametrize("name", MODELS)
def test_training_steps_leave_no_more_buffers_waiting_than_the_first(name):
    _, model = pair(name)
    waiting = []
    for _ in range(4):
        model(digits(3, 4), digits(3, 5)).sum().backward()
        waiting.append(sum(map(len, cells._spare.values())))
    assert waiting[0] == waiting[-1]


@pytest.mark.parametrize("name", MODELS)
def test_a_step_at_a_time_is_what_forward_computes_at_once(name):
    _, model = pair(name)
    source, target = padded([3, 9, 1]), digits(3, 6)
    memory = model.encode(source)
    h, previous, logits = memory.h, torch.full((3,), START), []
    for t in range(6):
        step, h, _ = model.step(previous, h, memory)
        logits.append(step)
        previous = target[:, t]
    assert (torch.stack(logits, 1) - model(source, target)).abs().max() < 1e-12


def test_parameters_of_attention_exist_only_with_attention():
    # 11·32 embeddings; a GRU of 128 on 32 inputs: 3·128·(32 + 128 + 2) = 62,208, twice; output 128·10 + 10
    assert sum(p.numel() for p in Seq2Seq().parameters()) == 352 + 2 * 62_208 + 1_290
    # W_dec and W_enc 128·128 + 128 each, v 128, and 3·128·128 weights more for the context that the decoder reads
    assert sum(p.numel() for p in Seq2Seq(True).parameters()) == 126_058 + 2 * 16_512 + 128 + 49_152
    with_attention = {name.split(".")[0] for name, _ in Seq2Seq(True).named_parameters()}
    assert with_attention - {name.split(".")[0] for name, _ in Seq2Seq().named_parameters()} == {"W_enc", "W_dec", "v"}


# Positions and teacher forcing


@pytest.mark.parametrize("name", MODELS)
def test_a_step_reads_the_digits_before_it_and_no_other(name):
    """For the answer 1 2 the decoder reads START 1; there is no end symbol, since the length is known."""
    _, model = pair(name)
    source, target = digits(1, 4), torch.tensor([[1, 2, 3]])
    logits = model(source, target)
    for position in range(3):
        other = target.clone()
        other[0, position] = 7
        changed = (model(source, other) - logits).abs().amax(2)[0] > 1e-9  # (target,)
        assert changed.tolist() == [step > position for step in range(3)]
    with torch.no_grad():
        model.embed.weight[START] += 1
    assert (model(source, target) - logits).abs().amax(2).min() > 1e-9


# Padding


@pytest.mark.parametrize("name", MODELS)
def test_in_a_padded_batch_every_item_is_what_it_is_alone(name):
    """Source lengths 3, 9, 1 and target lengths 9, 3, 5, so that no mask can be mistaken for the other."""
    plain, ours = pair(name)
    source, target = padded([3, 9, 1]), padded([9, 3, 5])
    logits = ours(source, target)
    loss = F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=PAD, reduction="none").view(3, 9)
    assert (loss[target == PAD] == 0).all()
    expected = 0
    for item in range(3):
        x, y = source[item][source[item] != PAD][None], target[item][target[item] != PAD][None]
        alone = plain(x, y)[0]
        assert (logits[item, : y.shape[1]] - alone[0]).abs().max() < 1e-10
        expected = expected + F.cross_entropy(alone[0], y[0], reduction="sum")
    assert abs(loss.sum() - expected) < 1e-10
    theirs, mine = gradients(expected, plain), gradients(loss.sum(), ours)
    for parameter, gradient in theirs.items():
        assert relative_gap(mine[parameter], gradient) < 1e-10, parameter


@pytest.mark.parametrize("name", ["attention", "bahdanau"])
def test_padding_gets_no_attention_at_all(name):
    _, model = pair(name)
    source = padded([3, 9, 1])
    _, weights = model.write(source, 4)  # (steps, source, batch)
    assert weights.shape == (4, 9, 3)
    assert (weights[:, (source == PAD).t()] == 0).all()
    assert (weights[:, (source != PAD).t()] > 0).all()
    assert (weights.sum(1) - 1).abs().max() < 1e-12
    memory = model.encode(source)
    x = torch.randn(2, 3, 32, dtype=torch.float64)
    z, W_h, b_n, W_c = attention.gru_weights(model.decoder, x)
    W_dec, v = model.W_dec.weight, model.v.weight[0]
    _, _, weights = attention.decode(
        z, memory.h, memory.states, memory.keys + model.W_dec.bias, W_h, b_n, W_c, W_dec, v, padding=memory.padding
    )
    assert (weights[:, source == PAD] == 0).all() and (weights.sum(2) - 1).abs().max() < 1e-12


@pytest.mark.parametrize("name", MODELS)
def test_no_embedding_stands_behind_padding(name):
    """Whatever the embeddings of digits that don't occur, they change nothing: padding isn't one of them either."""
    _, model = pair(name)
    source, target = padded([3, 9, 1]).clamp(max=4), padded([9, 3, 5]).clamp(max=4)
    source[source == 0], target[target == 0] = 1, 1
    logits = model(source, target)
    with torch.no_grad():
        model.embed.weight[0] = 1e3
        model.embed.weight[5:START] = 1e3
    assert torch.equal(model(source, target)[target != PAD], logits[target != PAD])


@pytest.mark.parametrize("source", [[[1, 2], [PAD, PAD]], [[1, 2], [PAD, 2]], [[], []]])
def test_an_empty_source_is_an_error_and_never_nan(source):
    source = torch.tensor(source, dtype=torch.long)
    for name in MODELS:
        _, model = pair(name)
        with pytest.raises(ValueError, match="at least one digit"):
            model(source, digits(2, 3))
        with pytest.raises(ValueError, match="at least one digit"):
            model.write(source, 3)


@pytest.mark.parametrize("lengths", [[3, 9, 1], [4, 4, 4]])
@pytest.mark.parametrize("name", MODELS)
def test_lengths_that_are_known_change_no_bit_and_no_device_is_asked(name, lengths):
    """The meta device has no values: whatever asks it for one raises an error."""
    _, model = pair(name)
    source, target = padded(lengths), padded(lengths)
    known = lengths_of(source)
    assert known.tolist() == lengths
    assert torch.equal(model(source, target, known), model(source, target))
    model = model.to("meta")
    model(source.to("meta"), target.to("meta"), known).sum().backward()
    with pytest.raises(NotImplementedError):
        model(source.to("meta"), target.to("meta"))


def test_reversing_keeps_the_padding_where_it_was():
    x = torch.tensor([[1, 2, 3, 4], [5, 6, PAD, PAD], [7, PAD, PAD, PAD]])
    lengths = torch.tensor([4, 2, 1])
    assert reverse(x, lengths).tolist() == [[4, 3, 2, 1], [6, 5, PAD, PAD], [7, PAD, PAD, PAD]]
    vectors = torch.stack([x, 10 * x], 2)  # (batch, time, 2)
    assert torch.equal(reverse(vectors, lengths), torch.stack([reverse(x, lengths), 10 * reverse(x, lengths)], 2))


@pytest.mark.parametrize("digit", [-2, 10])
def test_what_is_no_digit_is_refused(digit):
    wrong, right = torch.tensor([[1, digit]]), digits(1, 2)
    for name in MODELS:
        _, model = pair(name)
        for source, target in (wrong, right), (right, wrong):
            with pytest.raises(ValueError, match="digits are from 0 to 9"):
                model(source, target)
        with pytest.raises(ValueError, match="digits are from 0 to 9"):
            model.write(wrong, 2)
