"""Three ways to train a decoder (beyond/teacher_forcing.py): what it reads, its gradient, and what is counted."""

import math

import pytest
import torch
from commands import record_of
from torch.nn import functional as F

import seq2seq
from beyond import teacher_forcing
from beyond.teacher_forcing import FORCED, OWN, SCHEDULED, WAYS, Config, digits_read, probability_of_the_true_digit
from lab.trainings import Checkpoint
from layers.encoder_decoder import START


def trained_a_little(attention, length=6):
    """A model whose choices aren't all the same digit, and a batch with its answers."""
    config = Config(length, attention, FORCED, 0, steps=3)
    model = seq2seq.build(config)
    for parameter in model.parameters():
        parameter.data *= 3
    source = seq2seq.random_digits(20, length, length, torch.Generator().manual_seed(1))
    return model, source, seq2seq.answer(source)


def test_the_chance_of_a_true_digit():
    """k / (k + e^(step / k)) with k = 2,000 / 8 = 250: at step 1 250 / 251.004, at 2,000 250 / (250 + e^8)."""
    assert {probability_of_the_true_digit(FORCED, step, 2000) for step in (1, 2000)} == {1.0}
    assert {probability_of_the_true_digit(OWN, step, 2000) for step in (1, 2000)} == {0.0}
    falling = [probability_of_the_true_digit(SCHEDULED, step, 2000) for step in (1, 1380, 2000)]
    assert falling == pytest.approx([250 / 251.004, 0.5, 250 / (250 + math.e**8)], abs=2e-3)


@pytest.mark.parametrize("attention", [False, True])
def test_the_digits_read_are_the_true_ones_its_own_or_some_of_each(attention):
    model, source, target = trained_a_little(attention)
    true = torch.rand(target.shape, generator=torch.Generator().manual_seed(2)) < 0.5
    assert torch.equal(digits_read(model, source, target, torch.ones_like(true)), target)
    own = digits_read(model, source, target, torch.zeros_like(true))
    assert torch.equal(own, model.write(source, target.shape[1])[0]) and len(own.unique()) > 2
    mixed = digits_read(model, source, target, true)
    assert torch.equal(mixed[true], target[true])
    with torch.no_grad():  # where it isn't the true one, it is what the model says after what it has read
        assert torch.equal(mixed[~true], model(source, mixed).argmax(2)[~true])


@pytest.mark.parametrize("attention", [False, True])
def test_all_steps_at_once_have_the_gradient_of_steps_one_by_one(attention):
    model, source, target = trained_a_little(attention)

    def gradient(logits):
        loss = F.cross_entropy(logits.flatten(0, 1), target.flatten())
        return torch.cat([g.flatten() for g in torch.autograd.grad(loss, [*model.parameters()])])

    at_once = gradient(model(source, digits_read(model, source, target, torch.zeros_like(target).bool())))
    memory = model.encode(source)
    digit, h, logits = torch.full_like(source[:, 0], START), memory.h, []
    for _ in range(target.shape[1]):
        row, h, _ = model.step(digit, h, memory)
        digit = row.argmax(1)
        logits.append(row)
    one_by_one = gradient(torch.stack(logits, 1))
    assert torch.allclose(at_once, one_by_one, atol=1e-6 * one_by_one.abs().max().item() + 1e-6)


def test_all_ways_see_the_same_sequences(monkeypatch):
    seen, coins = {way: [] for way in WAYS}, {way: [] for way in WAYS}
    monkeypatch.setattr(teacher_forcing, "TEST_SEQUENCES", 40)
    answering, reading = teacher_forcing.answer, teacher_forcing.digits_read
    for way in WAYS:

        def noted(source, way=way):
            if len(source) == seq2seq.BATCH:
                seen[way].append(source)
            return answering(source)

        def counted(model, source, target, true, way=way):
            if len(source) == seq2seq.BATCH:
                coins[way].append(true.float().mean().item())
            return reading(model, source, target, true)

        with monkeypatch.context() as patched:
            patched.setattr(teacher_forcing, "answer", noted)
            patched.setattr(teacher_forcing, "digits_read", counted)
            teacher_forcing.train(Config(4, False, way, 0, steps=3), Checkpoint())
    for forced, scheduled, own in zip(*seen.values(), strict=True):
        assert torch.equal(forced, scheduled) and torch.equal(forced, own)
    assert coins[FORCED] == [] and set(coins[OWN]) == {0.0}  # true digits need no writing
    assert coins[SCHEDULED][0] > coins[SCHEDULED][-1]  # k is 3 / 8: from 0.03 on it falls to 0.0001


def test_errors_after_an_error_and_after_none():
    """Rows of right (1) and wrong (0) digits. After a wrong one, a digit is wrong in rows 1 and 4, right in 2 and 4.

    After digits that are all right: right and wrong in row 1, wrong in row 2, right three times in row 3.
    """
    right = torch.tensor([[1, 1, 0, 0], [1, 0, 1, 1], [1, 1, 1, 1], [0, 0, 1, 1]]).bool()
    counted = teacher_forcing.wrong_after(right)
    assert counted == {"wrong_after_wrong": 2 / 4, "wrong_after_all_right": 2 / 6}
    assert teacher_forcing.wrong_after(torch.ones(2, 3).bool()) == {
        "wrong_after_wrong": None,
        "wrong_after_all_right": 0.0,
    }


def test_a_wrong_first_digit_is_read_and_not_scored(monkeypatch):
    """A decoder that repeats what it has read, of digits that are alike: right by itself, wrong after a wrong one."""

    class Repeats:
        def write(self, source, steps):
            return source.clone(), None

        def encode(self, source, lengths=None):
            return type("Memory", (), {"h": source[:, 0]})

        def step(self, digit, h, memory):
            digit = torch.where(digit == START, h, digit)
            return F.one_hot(digit, 10).float(), digit * 0 + h, None

        def __call__(self, source, target):
            return F.one_hot(source, 10).float()

    monkeypatch.setattr(teacher_forcing, "random_digits", lambda count, *lengths: torch.full((count, 5), 3))
    found = teacher_forcing.evaluate(Repeats(), Config(5, False, OWN, 0))
    assert found["digits_right"] == found["forced_digits_right"] == 1.0
    assert found["right_after_a_wrong_first"] == [0.0] * 5  # the first is the wrong one that was put there


def test_the_first_step_that_was_good_enough():
    run = {"curve": {"step": [50, 100, 150], "right": [0.4, 0.6, 0.95]}}
    assert [teacher_forcing.first_step(run, wanted) for wanted in (0.5, 0.9, 0.99)] == [100, 150, None]


def test_the_command_trains_what_it_tells(tmp_path, in_this_process, monkeypatch):
    monkeypatch.setattr(teacher_forcing, "LENGTHS", [3])
    monkeypatch.setattr(teacher_forcing, "EVERY", 1)
    monkeypatch.setattr(teacher_forcing, "TEST_SEQUENCES", 40)
    saved = record_of(teacher_forcing, tmp_path, "--steps", 2)
    runs = saved["results"]["runs"]
    assert len(runs) == 2 * len(WAYS) * 2 and saved["seeds"] == [0, 1]
    assert all(run["curve"]["step"] == [1, 2] for run in runs) and (tmp_path / "teacher_forcing.png").exists()
    first = {run["way"]: run["curve"]["right"][0] for run in runs if run["seed"] == 0 and not run["attention"]}
    assert first[FORCED] != first[OWN] or runs[0]["digits_right"] != runs[4]["digits_right"]
    assert sum(line.startswith("length 3, ") for line in saved["printed"]) == 3 * len(runs)
