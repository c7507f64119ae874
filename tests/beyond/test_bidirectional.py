"""Reading from both ends (beyond/bidirectional.py): ceilings, what each reader sees, torch's bidirectional layer."""

from collections import Counter
from dataclasses import asdict
from itertools import product

import pytest
import torch
from commands import measured, record_of
from hand_set import remember_first
from torch import nn

from beyond import bidirectional as b
from lab import trainings
from lab.trainings import Checkpoint


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def tagger(cell, reader, seed=0):
    torch.manual_seed(seed)
    return b.Tagger(cell, reader)


def test_ceilings():
    """By hand: a reader that sees one of the two words that a tag tells has a fair coin for the other."""
    assert {task: [b.ceiling(task, reader) for reader in ("forward", "backward", "both")] for task in b.TASKS} == {
        "what comes after": [0.5, 1, 1],
        "what came before": [1, 0.5, 1],
        "both sides": [0.5, 0.5, 1],
    }


@pytest.mark.parametrize("task, reader", list(product(b.TASKS, b.READERS)))
def test_nobody_who_sees_what_a_reader_sees_is_right_more_often(task, reader):
    """The best answer to everything that can be seen, counted in 40,000 sentences: a standard deviation of 0.0025."""
    _, words = b.sentences(seeded(), 2, 40_000)
    seen = [position for position, reads in enumerate([reader != "backward", True, reader != "forward"]) if reads]
    tags = {}
    for one, told in zip(words[seen].T.tolist(), b.tag(task, words).tolist(), strict=True):
        tags.setdefault(tuple(one), Counter())[told] += 1
    best = sum(max(counts.values()) for counts in tags.values()) / 40_000
    assert best == pytest.approx(float(b.ceiling(task, reader)), abs=0.02)


def test_the_tag_tells_both_of_its_words():
    words = torch.tensor([[0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]])  # (word, sentence)
    assert b.tag("both sides", words).tolist() == [0, 1, 2, 3]
    assert b.tag("what comes after", words).tolist() == [2, 1, 2, 1]
    assert b.tag("what came before", words).tolist() == [2, 0, 3, 1]


def test_the_second_task_is_the_first_one_in_a_mirror():
    """The same weights, reading the reversed sentence from the other end, give the same answers to the same tags."""
    x, words = b.sentences(seeded(), 4, 30)
    mirrored = words.flip(0)
    assert torch.equal(b.tag("what comes after", words), b.tag("what came before", mirrored))
    for cell in b.CELLS:
        backward, forward = tagger(cell, "backward"), tagger(cell, "forward")
        assert torch.equal(backward(x), forward(x.flip(0)))


@pytest.mark.parametrize("cell", b.CELLS)
def test_a_reader_sees_its_side_and_no_other(cell):
    """Other words and other noise on the unseen side change no bit of the answer; on the seen side they do."""
    distance = 4
    x, _ = b.sentences(seeded(1), distance, 7)
    other, _ = b.sentences(seeded(2), distance, 7)
    changed_after, changed_before = x.clone(), x.clone()
    changed_after[distance + 1 :], changed_before[:distance] = other[distance + 1 :], other[:distance]
    for reader in b.READERS:
        model = tagger(cell, reader)
        assert torch.equal(model(x), model(changed_after)) == (reader == "forward")
        assert torch.equal(model(x), model(changed_before)) == (reader == "backward")


def test_both_directions_are_torchs_bidirectional_layer():
    """At the tagged word the states of nn.RNN(bidirectional=True) over the whole sentence are the same."""
    distance, count = 3, 5
    model = tagger("RNN", "both")
    reference = nn.RNN(1, b.WIDTH, bidirectional=True)
    with torch.no_grad():
        for layer, suffix in zip(model.layers, ("", "_reverse"), strict=True):
            for name, parameter in layer.named_parameters():
                getattr(reference, name + suffix).copy_(parameter)
    x, _ = b.sentences(seeded(), distance, count)
    states, _ = reference(x)
    assert torch.allclose(model(x), model.readout(states[distance]), atol=1e-6)


def test_the_blind_spot_is_all_that_keeps_a_forward_reader_from_it():
    """An LSTM set by hand to remember its first word for 80 steps tags everything right, read from the other end."""
    distance = 80
    x, words = b.sentences(seeded(), distance, 500)

    def right(task, reader):
        model = tagger("LSTM, forget bias 3", reader)
        one, other = b.TASKS[task]
        with torch.no_grad():
            for layer in model.layers:
                remember_first(layer)
            model.readout.weight.zero_()
            # Each layer's unit 0 holds the end it started from, and unit 2 the word in the middle: ± 0.76 or nothing.
            for number, direction in enumerate(model.directions):
                end = b.FIRST if direction == "forward" else b.LAST
                for unit, position in ((0, end), (2, b.MIDDLE)):
                    for tag in range(4):
                        value = {one: tag // 2, other: tag % 2}.get(position)
                        if value is not None:
                            model.readout.weight[tag, number * b.WIDTH + unit] = 1.0 if value else -1.0
            model.readout.bias.zero_()
            return (model(x).argmax(dim=1) == b.tag(task, words)).float().mean().item()

    for task, reader in product(b.TASKS, b.READERS):
        assert right(task, reader) == pytest.approx(float(b.ceiling(task, reader)), abs=0.1)
        if b.ceiling(task, reader) == 1:
            assert right(task, reader) == 1


def test_the_gradient_at_the_needed_words():
    """Zero where the reader is blind; else what autograd says through torch's own layer, and less at more distance."""
    config = b.Config("RNN", "what comes after", "forward", 5, 0)
    assert b.gradient_at_needed(tagger("RNN", "forward"), config, seeded()) == 0.0
    sizes = []
    for distance in (5, 20):
        config = b.Config("RNN", "what comes after", "backward", distance, 0)
        model = tagger("RNN", "backward")
        sizes.append(b.gradient_at_needed(model, config, seeded()))
        x, words = b.sentences(seeded(), distance, b.BATCH)
        x.requires_grad_()
        states, _ = model.layers[0](x.flip(0)[: distance + 1])
        loss = nn.functional.cross_entropy(
            model.readout(states[-1]), b.tag("what comes after", words), reduction="none"
        )
        loss.sum().backward()
        expected = min(x.grad[position].abs().mean().item() for position in (distance, 2 * distance))
        assert sizes[-1] == pytest.approx(expected, rel=1e-4)
    assert 0 < sizes[1] < sizes[0] / 10


def test_words_stand_at_both_ends_and_in_the_middle():
    x, words = b.sentences(seeded(), 6, 50)
    assert x.shape == (13, 50, 1)
    assert torch.equal(x[[0, 6, 12], :, 0], words.float())
    assert not torch.isin(x[[1, 5, 7, 11]], torch.tensor([0.0, 1.0])).any()
    assert not set(b.SEEDS) & {b.TEST_SEED + seed for seed in b.SEEDS}


def test_a_few_steps_teach_the_nearest_distance():
    """The measurement works from end to end: 60 steps reach more than the forward reader's ceiling, and repeat."""
    config = b.Config("RNN", "what comes after", "backward", 1, 0, steps=60)
    record = b.train(config, Checkpoint())
    assert record == b.train(config, Checkpoint())
    assert record["accuracy"] == record["right"] / b.TESTED > 0.9


@pytest.fixture
def told(monkeypatch):
    """The lines, and the results, of trainings that take no time."""

    def run_with(outcome):
        def run(train, configs, arguments, line):
            return [asdict(config) | outcome(config) for config in configs]

        monkeypatch.setattr(trainings, "run", run)
        return measured(b)

    return run_with


def ended(config):
    return {"right": 1000, "accuracy": config.distance / 1000, "gradient": 2 / config.distance}


def test_every_line_stands_beside_its_ceiling(told):
    _, lines = told(ended)
    assert lines.count("forward , at most 0.500: 0.005 / 0.020 / 0.080; 4.0e-01 / 1.0e-01 / 2.5e-02") == 4
    assert lines.count("forward , at most 1.000: 0.005 / 0.020 / 0.080; 4.0e-01 / 1.0e-01 / 2.5e-02") == 2


def test_the_seeds_that_did_not_diverge_are_told(told):
    """At a distance of 5 one seed diverges, at 20 all of them do."""

    def outcome(config):
        diverges = config.distance == 20 or (config.distance == 5 and config.seed == 1)
        return {"diverged_at_step": 7} if diverges else ended(config)

    found, lines = told(outcome)
    assert lines.count("forward , at most 0.500: 0.005 / nan / 0.080; 4.0e-01 / nan / 2.5e-02") == 4
    b.draw(found)


def test_the_command_trains_what_it_tells(tmp_path, in_this_process, monkeypatch):
    monkeypatch.setattr(b, "DISTANCES", [1])
    monkeypatch.setattr(b, "TESTED", 20)
    saved = record_of(b, tmp_path, "--steps", "1")
    runs = saved["results"]["runs"]
    assert len(runs) == 2 * 3 * 3 * 3 and saved["seeds"] == [0, 1, 2]
    assert runs[3] == b.train(b.Config("RNN", "what comes after", "backward", 1, 0, steps=1), Checkpoint())
