"""The models that hear spoken digits, alone and in a batch, and how their mistakes are counted."""

import math

import pytest
import torch
from torch.nn import functional as F

from layers import ctc, transcribers
from layers.spoken_digits import LABELS, Speech, random_strings, speak
from layers.transcribers import CTC, HIDDEN, Framewise, Writer, edit_distance, error_rate


@pytest.fixture(autouse=True)
def narrow_beam(monkeypatch):
    monkeypatch.setattr(transcribers, "BEAM", 2)


def heard(count=5, length=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    strings = random_strings(count, length, generator)
    return speak(strings, generator), strings


def build(model):
    torch.manual_seed(0)
    return model()


def alone(speech, i):
    T = speech.frames[i]
    return Speech(speech.sound[i : i + 1, :T], T[None], speech.segments[i : i + 1, :T], speech.path[i : i + 1, :T])


@pytest.mark.parametrize("model", [Framewise, CTC, Writer])
def test_an_item_does_not_depend_on_its_batch_nor_on_the_padding(model):
    speech, strings = heard()
    speech.sound[torch.arange(speech.sound.shape[1]) >= speech.frames[:, None]] = 99.0
    model = build(model)
    together = model.transcribe(speech)
    weight = speech.frames if isinstance(model, Framewise) else torch.ones(len(strings))  # a mean over frames
    losses = torch.stack([model.loss(alone(speech, i), strings[i : i + 1]) for i in range(len(strings))])
    assert model.loss(speech, strings).item() == pytest.approx(
        ((losses * weight).sum() / weight.sum()).item(), rel=1e-5
    )
    for i in range(len(strings)):
        assert {name: [written[i]] for name, written in together.items()} == model.transcribe(alone(speech, i))


def test_attention_gives_padding_no_weight():
    speech, _ = heard()
    _, weights = build(Writer).write(speech, steps=3)  # (step, batch, time)
    assert torch.allclose(weights.sum(2), torch.ones(3, len(speech.frames)))
    assert (weights[:, torch.arange(weights.shape[2]) >= speech.frames[:, None]] == 0).all()


def test_the_decoder_is_a_gru_cell_with_additive_attention():
    """The decoder written out plainly, with torch's own cell: the same logits and the same gradients."""
    speech, strings = heard(count=2)
    model = build(Writer)
    names, parameters = zip(*model.named_parameters(), strict=True)
    assert {"W_dec.bias", "W_enc.bias"} < set(names)
    previous = strings.t()  # (step, batch)
    ours, _, _ = model(previous, torch.zeros(2, HIDDEN), model.read(speech))
    weight = torch.randn(ours.shape, generator=torch.Generator().manual_seed(0))
    gradients = torch.autograd.grad((ours * weight).sum(), parameters)
    h, plain = torch.zeros(2, HIDDEN), []
    states = model.read(speech)[0].transpose(0, 1)  # (batch, time, 2 hidden)
    for label in previous:
        scores = model.v(torch.tanh(model.W_enc(states) + model.W_dec(h)[:, None]))[:, :, 0]
        scores = scores.masked_fill(torch.arange(scores.shape[1]) >= speech.frames[:, None], -math.inf)
        context = (scores.softmax(1)[:, :, None] * states).sum(1)
        h = model.decoder(torch.cat([model.embed(label), context], 1), h)
        plain.append(model.output(torch.cat([h, context], 1)))
    plain = torch.stack(plain)
    assert torch.allclose(plain, ours, atol=1e-5)
    expected = torch.autograd.grad((plain * weight).sum(), parameters)
    for name, a, b in zip(names, gradients, expected, strict=True):
        assert b.abs().max() > 0 and (a - b).abs().max() < 1e-4 * b.abs().max(), name


def test_the_teacher_reads_what_stands_before_and_the_end_is_scored():
    """Loss of "12": it reads blank, 1, 2 and is to write 1, 2, blank."""
    speech, strings = heard(count=1, length=2)
    model = build(Writer)
    (a, b), border = strings[0].tolist(), ctc.BLANK
    logits, _, _ = model(torch.tensor([[border], [a], [b]]), torch.zeros(1, HIDDEN), model.read(speech))
    expected = F.cross_entropy(logits[:, 0], torch.tensor([a, b, border]))
    assert model.loss(speech, strings).item() == pytest.approx(expected.item(), rel=1e-6)


def test_free_running_reads_its_own_labels():
    speech, _ = heard(count=2)
    model = build(Writer)
    with torch.no_grad():
        model.output.weight.mul_(20)  # an untrained model's favourite would be the same label at every step
    labels, _ = model.write(speech, steps=6)  # (batch, step)
    previous = torch.cat([torch.full((2, 1), ctc.BLANK), labels[:, :-1]], 1).t()
    logits, _, _ = model(previous, torch.zeros(2, HIDDEN), model.read(speech))
    assert torch.equal(logits.argmax(2).t(), labels)


def test_what_a_decoder_writes_ends_at_the_first_blank(monkeypatch):
    model = build(Writer)
    labels = torch.tensor([[3, 0, 2], [1, 2, 3], [0, 4, 4]])  # (batch, step)
    monkeypatch.setattr(model, "write", lambda speech: (labels, None))
    assert model.transcribe(None) == {"greedy": [[3], [1, 2, 3], []]}


def test_greedy_is_the_best_path_and_a_beam_sums_over_paths():
    """Decoded item by item, and the frames with a label counted one by one; padding has neither."""
    speech, _ = heard()
    model = build(CTC)
    with torch.no_grad():
        model.output.weight.mul_(8)  # an untrained model would prefer one label everywhere
        items = [rows[:T].double() for rows, T in zip(model(speech), speech.frames, strict=True)]  # (time, label) each
    paths = [[max(range(LABELS), key=row.__getitem__) for row in rows.tolist()] for rows in items]
    written = model.transcribe(speech)
    assert written["greedy"] == [ctc.collapse(path) for path in paths]
    assert written["beam"] == [ctc.beam_search(rows, transcribers.BEAM)[0] for rows in items]
    assert written["greedy"] != written["beam"]
    labelled = sum(label != ctc.BLANK for path in paths for label in path)
    assert model.frames_labelled(speech) == labelled < speech.frames.sum()


def test_ctc_sums_over_more_than_the_one_path_of_framewise_supervision():
    speech, strings = heard()
    framewise = build(Framewise)
    summed = build(CTC)
    assert all(torch.equal(a, b) for a, b in zip(framewise.parameters(), summed.parameters(), strict=True))
    one_path = framewise.loss(speech, strings) * speech.frames.sum()
    all_paths = summed.loss(speech, strings) * strings.numel()
    assert all_paths < one_path


@pytest.mark.parametrize(
    ("a", "b", "distance"),
    [("", "", 0), ("abc", "", 3), ("", "ab", 2), ("kitten", "sitting", 3), ("12345", "2345", 1), ("12", "21", 2)],
)
def test_edit_distance(a, b, distance):
    assert edit_distance(a, b) == edit_distance(b, a) == distance


def test_error_rate_weighs_strings_by_their_length_and_can_exceed_one():
    assert error_rate([[1], [2, 3]], [[1, 1], [2, 3]]) == 1 / 4
    assert error_rate([[1, 2, 3]], [[4]]) == 3
