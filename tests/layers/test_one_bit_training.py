"""Training until the task is solved (layers/one_bit_training.py): when it stops; an interruption changes nothing."""

import json
from dataclasses import replace

import pytest
import torch

from lab.trainings import Checkpoint
from layers import one_bit_training
from layers.one_bit_training import LOOK, Config, solved_at, train

EASY = Config("RNN", 3, 0, 0.01, 260)


def without_time(record):
    return {name: value for name, value in record.items() if name != "seconds"}


def test_solved_is_three_looks_in_a_row():
    assert solved_at([]) is None and solved_at([1.0, 1.0]) is None
    assert solved_at([0.9, 0.9, 0.9]) == 3 * LOOK
    assert solved_at([1.0, 1.0, 0.89, 1.0, 1.0, 1.0, 0.5]) == 6 * LOOK  # what comes later takes nothing back
    assert solved_at([1.0, 0.5] * 10) is None


def test_training_stops_when_the_task_is_solved_and_not_before():
    record = train(EASY, Checkpoint())
    assert 3 * LOOK <= record["solved_at"] < EASY.steps and record["accuracy"] > 0.9
    assert 0.4 < record["accuracy_without_the_bit"] < 0.6
    longer = train(replace(EASY, stops=False), Checkpoint())
    assert longer["solved_at"] == record["solved_at"] and longer["curve"]["step"] == [250]
    assert longer["gradient_before"] == record["gradient_before"]
    assert longer["gradient_after"] != record["gradient_after"]
    unsolved = train(replace(EASY, steps=20), Checkpoint())
    assert unsolved["solved_at"] is None and unsolved["curve"] == {"step": [], "gradient": []}


@pytest.mark.parametrize("stops", [True, False])
def test_an_interrupted_training_ends_with_the_same_bits(tmp_path, stops):
    """Interrupted between two looks, after one that was right, and once more when it goes on."""
    config = replace(EASY, stops=stops, steps=200)

    class Interrupted(Checkpoint):
        def tick(self, step, total, **shown):
            if step == self.at:
                raise KeyboardInterrupt

    for at in (60, 70):
        checkpoint = Interrupted(tmp_path, every=0)
        checkpoint.at = at
        with pytest.raises(KeyboardInterrupt):
            train(config, checkpoint)
    assert torch.load(tmp_path / "checkpoint.pt", weights_only=True)["step"] == 69
    assert without_time(train(config, Checkpoint(tmp_path))) == without_time(train(config, Checkpoint()))


def test_one_training_repeats_itself_to_the_bit():
    config = replace(EASY, cell="LSTM, chrono", delay=5, steps=30)
    torch.manual_seed(1)
    first = train(config, Checkpoint())
    torch.manual_seed(2)  # no draw comes from anything but the generators that the configuration seeds
    assert (
        without_time(train(config, Checkpoint())) == without_time(first) == without_time(json.loads(json.dumps(first)))
    )
    assert train(replace(config, seed=2), Checkpoint())["gradient_after"] != first["gradient_after"]


def test_the_gradient_is_clipped():
    """One step of Adam with a gradient of 0 moves nothing; clipped at 1e-30, below Adam's ε, next to nothing."""
    config = replace(EASY, steps=1)
    for clip, moves in ((1.0, True), (1e-30, False)):
        before, after = one_bit_training.build(config), one_bit_training.build(config)
        for _ in one_bit_training.descent(after, replace(config, clip=clip), Checkpoint()):
            pass
        pairs = zip(before.parameters(), after.parameters(), strict=True)
        moved = max((p - q).abs().max().item() for p, q in pairs)
        assert (moved > 0.005) == moves


def test_training_looks_and_tests_read_different_sequences():
    seeds = range(100)
    streams = [{*seeds}, {one_bit_training.TEST_SEED + seed for seed in seeds}]
    looks = {(one_bit_training.LOOK_SEED + seed) * 1_000_003 + step for seed in seeds for step in (LOOK, 24_000)}
    assert not streams[0] & streams[1] and not looks & (streams[0] | streams[1]) and len(looks) == 200
