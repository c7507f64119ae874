"""Remembering one bit (beyond/recall.py, layers/memory.py): a cell set by hand, references, and the sweep's logic."""

import json
import math
from dataclasses import asdict, replace

import pytest
import torch
from commands import measured, record_of
from hand_set import remember_first
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

from beyond import recall
from beyond.recall import Config
from lab import trainings
from lab.trainings import Checkpoint
from layers import memory


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def hand_set(forget_bias):
    model = memory.Model("LSTM", width=3)
    remember_first(model.layer, forget_bias)
    with torch.no_grad():
        model.readout.weight.copy_(torch.tensor([[1.0, 0.0, 0.0]]))
        model.readout.bias.zero_()
    return model


LONG, SHORT = (Config("LSTM", delay, 0, noise=1.0) for delay in (1000, 20))
# A guesser is right in 2,000 fair answers 1,000 ± 22 times: outside of ± 100 once in 100,000 times.
CHANCE = range(900, 1101)


def test_weights_set_by_hand_solve_a_delay_of_1000():
    """The cell is right before training is blamed. With the forget gate at ½ the same weights know nothing."""
    assert recall.count_right(hand_set(10.0), seeded(), LONG) == recall.TESTED == 2000
    assert recall.count_right(hand_set(0.0), seeded(), LONG) in CHANCE


def test_zeroing_the_bit_leaves_nothing_to_go_by():
    """Leak test: the model that is right in all 2,000 has nothing but the first input."""
    assert recall.count_right(hand_set(10.0), seeded(), SHORT) == 2000
    assert recall.count_right(hand_set(10.0), seeded(), SHORT, bit_is_shown=False) in CHANCE


def test_only_the_bit_is_zeroed():
    """With the noise gone as well, nobody would see a bit that had leaked into it."""

    def model(x):
        seen.append(x)
        return torch.zeros(x.shape[1])

    seen = []
    recall.count_right(model, seeded(), SHORT, bit_is_shown=False)
    assert len(seen) == 20 and all(not x[0].any() and x[1:].all() for x in seen)


def test_noise_from_other_sequences_changes_no_answer_of_a_model_that_remembers():
    x, bit = memory.sequences(seeded(), 20, 500)
    x[1:] = x[1:, torch.randperm(500, generator=seeded(1))]
    assert torch.equal(hand_set(10.0)(x) > 0, bit == 1)


def test_the_bit_stands_first_and_nothing_later_depends_on_it():
    delay, count = 12, 40_000
    x, bit = memory.sequences(seeded(), delay, count, noise=0.5)
    assert x.shape == (1 + delay, count, 1)
    assert torch.equal(x[0, :, 0], bit) and set(bit.tolist()) == {0, 1}
    assert abs(bit.mean().item() - 0.5) < 4 * 0.5 / math.sqrt(count)
    assert x[1:].std().item() == pytest.approx(0.5, rel=0.01)
    # A correlation of independent numbers has a standard deviation of 1/√count: twelve of them within four of those.
    correlations = torch.corrcoef(torch.cat([bit[None], x[1:, :, 0]]))[0, 1:]
    assert correlations.abs().max().item() < 4 / math.sqrt(count)


def test_training_and_test_read_different_sequences():
    seeds = set(recall.SEEDS)
    assert not seeds & {recall.TEST_SEED + seed for seed in seeds}
    first, second = (memory.sequences(seeded(seed), 20, 64)[0][1:] for seed in (0, recall.TEST_SEED))
    assert not torch.isin(first, second).any()


@pytest.mark.parametrize("cell", memory.CELLS)
def test_an_untrained_model_is_at_chance(cell):
    """50 ± 3 % of 4,000 fresh sequences: 3 % are 3.8 standard deviations."""
    right = sum(recall.count_right(recall.build(Config(cell, 20, seed)), seeded(9), SHORT) for seed in (0, 1))
    assert abs(right / 4000 - 0.5) < 0.03


def test_only_the_answer_is_scored():
    """The last state alone makes the logit, so an untrained loss is ln 2 and not a sum over steps."""
    model = recall.build(Config("GRU", 30, 0))
    x, bit = memory.sequences(seeded(), 30, 200)
    states, _ = model.layer(x)
    expected = model.readout(states[-1]).flatten()
    assert torch.allclose(model(x), expected, atol=1e-6)
    assert binary_cross_entropy_with_logits(model(x), bit).item() == pytest.approx(math.log(2), abs=0.05)


@pytest.mark.parametrize(
    "cell, bias", [("LSTM, forget bias 1", 1), ("LSTM, forget bias 3", 3), ("LSTM, forget bias -5", -5)]
)
def test_the_effective_forget_bias_is_the_one_asked_for(cell, bias):
    layer, plain = (recall.build(Config(name, 5, 0)).layer for name in (cell, "LSTM"))
    H = layer.hidden_size
    forget = slice(H, 2 * H)  # torch's order: input, forget, cell, output
    assert (layer.bias_ih_l0 + layer.bias_hh_l0)[forget].tolist() == [bias] * H
    for name, parameter in plain.named_parameters():  # the rest is drawn as without it
        other = dict(layer.named_parameters())[name]
        keep = torch.ones(len(parameter), dtype=torch.bool)
        keep[forget] = not name.startswith("bias")
        assert torch.equal(parameter[keep], other[keep])


def test_the_identity_cell_starts_as_le_jaitly_and_hinton_say():
    layer = recall.build(Config("RNN, identity", 5, 0)).layer
    assert torch.equal(layer.weight_hh_l0, torch.eye(recall.WIDTH))
    assert not layer.bias_ih_l0.any() and not layer.bias_hh_l0.any()
    assert 0.0005 < layer.weight_ih_l0.std().item() < 0.0015


@pytest.mark.parametrize("cell", ["RNN", "GRU", "LSTM", "minGRU", "linear attention"])
def test_the_gradient_at_the_first_state_agrees_with_finite_differences(cell):
    """Of each sequence's own loss, by torch's own layer in float64; for an LSTM with respect to h_1 and c_1."""
    torch.manual_seed(3)
    model = memory.Model(cell, width=4).double()
    x, bit = (tensor.double() for tensor in memory.sequences(seeded(2), 6, 5))
    is_lstm = isinstance(model.layer, nn.LSTM)
    with torch.no_grad():
        _, state = model.layer(x[:1])
        parts = torch.stack(state if is_lstm else (state,))  # (part, 1, batch, hidden), or (part, 1, batch, key, value)

        def losses(parts):
            states, _ = model.layer(x[1:], tuple(parts) if is_lstm else parts[0])
            return binary_cross_entropy_with_logits(model.readout(states[-1]).flatten(), bit, reduction="none")

        squares = torch.zeros(5, dtype=torch.float64)
        for part in range(len(parts)):
            for unit in range(parts[0, 0, 0].numel()):
                step = torch.zeros_like(parts)
                step[part, 0].flatten(1)[:, unit] = (
                    1e-5  # of all sequences at once: each loss depends on its own state only
                )
                squares += ((losses(parts + step) - losses(parts - step)) / 2e-5) ** 2
    assert memory.gradient_at_first_state(model, x, bit) == pytest.approx(squares.sqrt().mean().item(), rel=1e-6)


def test_a_gradient_below_the_range_of_float32_is_said_to_be_so():
    """A forget gate of σ(-5) = 0.0067 takes 200 steps to 10^-400 or so. Squares of 10^-30 must not make a norm of 0."""
    model = recall.build(Config("LSTM, forget bias -5", 200, 0))
    assert memory.gradient_at_first_state(model, *memory.sequences(seeded(), 200, 8)) == 0.0
    tiny = memory.gradient_at_first_state(model, *memory.sequences(seeded(), 36, 8))
    exact = memory.gradient_at_first_state(model.double(), *(t.double() for t in memory.sequences(seeded(), 36, 8)))
    assert 0 < tiny < 1e-28 and tiny == pytest.approx(exact, rel=1e-3)
    runs = [
        {
            "cell": "LSTM",
            "delay": 200,
            "accuracy": 0.5,
            "gradient_before_training": 0.0,
            "gradient_after_training": 1e-9,
        }
    ]
    assert recall.line(runs).endswith("underflow -> 1.0e-09")


def test_clipping_and_the_optimizer_do_what_their_names_say():
    """One step of SGD at rate 1 moves the weights by the gradient: by 0.25 at most where that is the largest norm."""
    for clip in (None, 1e-4):
        config = Config("RNN", 5, 0, steps=1, clip=clip, optimizer="SGD", learning_rate=1.0)
        before, after = recall.build(config), recall.build(config)
        recall.learn(after, config, Checkpoint())
        x, bit = memory.sequences(seeded(0), 5, config.batch, config.noise)
        binary_cross_entropy_with_logits(before(x), bit).backward()
        gradient = torch.cat([p.grad.flatten() for p in before.parameters()])
        moved = torch.cat(
            [(p - q).detach().flatten() for p, q in zip(before.parameters(), after.parameters(), strict=True)]
        )
        scale = 1.0 if clip is None else clip / gradient.norm().item()
        assert torch.allclose(moved, scale * gradient, atol=1e-7)


def test_the_fewest_right_answers_above_chance():
    """P(X >= k) for a fair coin, summed here from logarithms of factorials."""

    def tail(k, n):
        return math.fsum(
            math.exp(math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) - n * math.log(2))
            for i in range(k, n + 1)
        )

    for count in (14, 100, 2000, 6000):
        bound = recall.fewest_above_chance(count)
        assert tail(bound, count) * recall.ODDS < 1 <= tail(bound - 1, count) * recall.ODDS
    assert recall.fewest_above_chance(10) == 11  # all right by guessing: once in 1,024 times, so it can't be shown


def runs_of(*right):
    return [{"right": count, "accuracy": count / recall.TESTED} for count in right]


def test_a_cell_has_dropped_where_it_stays_at_chance():
    chance, sure = runs_of(1010, 990, 1000), runs_of(2000, 2000, 2000)
    assert recall.drops_to_chance_at({5: sure, 10: sure, 20: chance, 40: chance}) == 20
    assert recall.drops_to_chance_at({5: sure, 10: chance, 20: sure, 40: chance}) == 40
    assert recall.drops_to_chance_at({5: chance, 10: chance}) == 5
    assert recall.drops_to_chance_at({5: sure, 10: sure}) is None
    # One of three seeds that remembers is above chance: 4,000 of 6,000. 3,144 of 6,000 is not, 3,145 is.
    assert recall.drops_to_chance_at({5: runs_of(2000, 1000, 1000)}) is None
    assert recall.drops_to_chance_at({5: runs_of(1048, 1048, 1048)}) == 5
    assert recall.drops_to_chance_at({5: runs_of(1048, 1048, 1049)}) is None


DIVERGED = {"diverged_at_step": 7}


@pytest.fixture
def swept(monkeypatch):
    """What is found and told of trainings that take no time, and the settings that were trained together.

    ``reach`` says up to which delay each cell remembers, ``changed`` what else a cell's trainings find.
    """

    def run_with(reach, *arguments, **changed):
        def run(train, configs, arguments, line):
            trained.append([(config.cell, config.delay, config.training) for config in configs[:: len(recall.SEEDS)]])
            return [asdict(config) | changed.get(config.cell, found(config)) for config in configs]

        def found(config):
            right = 2000 if config.delay <= reach.get(config.cell, 0) else 1000
            return {
                "right": right,
                "accuracy": right / 2000,
                "accuracy_without_the_bit": 0.5,
                "gradient_before_training": 0.0 if config.delay > 40 else 1e-3,
                "gradient_after_training": 1e-2,
            }

        trained = []
        monkeypatch.setattr(trainings, "run", run)
        return *measured(recall, *arguments), trained

    return run_with


def test_delays_are_doubled_for_the_cells_that_still_remember(swept):
    found, lines, trained = swept({"RNN": 20, "GRU": 320, "LSTM, forget bias 3": 9999}, "--cap", "2560")
    how = recall.TRAINING
    assert len(trained[0]) == len(memory.CELLS) * 6
    assert trained[1] == [("GRU", 320, how), ("LSTM, forget bias 3", 320, how)]
    assert trained[2] == [("GRU", 640, how), ("LSTM, forget bias 3", 640, how)]
    assert trained[3:5] == [[("LSTM, forget bias 3", delay, how)] for delay in (1280, 2560)]
    together = [setting for settings in trained for setting in settings]
    assert len(trained) == 6 and len(together) == len(set(together)) == len(found["runs"]) / 3
    assert found["drops_to_chance_at"] == {
        "RNN": 40,
        "RNN, identity": 5,
        "GRU": 640,
        "LSTM": 5,
        "LSTM, forget bias 1": 5,
        "LSTM, forget bias 3": None,
        "LSTM, forget bias 6": 5,
        "LSTM, forget bias -5": 5,
        "minGRU": 5,
        "linear attention": 5,
    }
    assert lines[0] == "chance: 0.500 right, a loss of ln 2 = 0.693"
    assert "RNN                  delay    80: 0.500 (0.500 0.500 0.500); underflow -> 1.0e-02" in lines
    assert "LSTM, forget bias 3 : none up to 2,560" in lines and "GRU                 : 640" in lines
    assert "RNN                 rate 0.01                : 1.000 (3) / 0.500 (0) / 0.500 (0)" in lines


def test_every_training_has_the_same_budget(swept):
    found, _, _ = swept({}, "--cap", "40", "--steps", "7")
    for run in found["runs"]:
        assert (run["steps"], run["batch"], run["width"]) == (7, recall.BATCH, recall.WIDTH)
        assert run["delay"] <= 40
    ways = {
        (run["training"], run["optimizer"], run["learning_rate"], run["clip"], run["noise"]) for run in found["runs"]
    }
    assert len(ways) == len(recall.TRAININGS) == 7
    assert {("as above", "Adam", 0.001, 1.0, 0.1), ("not clipped", "Adam", 0.001, None, 0.1)} <= ways
    assert {("SGD, rate 1", "SGD", 1.0, 1.0, 0.1), ("noise of size 1", "Adam", 0.001, 1.0, 1.0)} <= ways


@pytest.mark.parametrize("cap", ["5", "20"])
def test_trainings_that_diverge_are_said_and_the_others_count(swept, cap):
    found, lines, _ = swept({"GRU": 5}, "--cap", cap, RNN=DIVERGED)
    assert "RNN                  delay     5: the loss is not finite" in lines
    assert "GRU                  delay     5: 1.000 (1.000 1.000 1.000); 1.0e-03 -> 1.0e-02" in lines
    assert found["drops_to_chance_at"]["RNN"] == 5
    recall.draw(found)


def test_what_the_seeds_that_did_not_diverge_find_decides():
    assert recall.remembers([*runs_of(2000), DIVERGED]) and recall.remembers(runs_of(1100))
    assert not recall.remembers([DIVERGED]) and not recall.remembers([*runs_of(1000), DIVERGED])


def test_one_training_repeats_itself_to_the_bit():
    config = Config("LSTM, forget bias 1", 5, 1, steps=3)
    torch.manual_seed(1)
    first = recall.train(config, Checkpoint())
    torch.manual_seed(2)  # no draw comes from anything but the generators that the configuration seeds
    assert recall.train(config, Checkpoint()) == first == json.loads(json.dumps(first))
    assert first["right"] == round(first["accuracy"] * 2000)
    assert (
        recall.train(replace(config, seed=2), Checkpoint())["gradient_after_training"]
        != first["gradient_after_training"]
    )


def test_the_command_trains_what_it_tells(tmp_path, in_this_process, monkeypatch):
    monkeypatch.setattr(recall, "TESTED", 100)
    saved = record_of(recall, tmp_path, "--cap", "5", "--steps", "1")
    runs = saved["results"]["runs"]
    assert len(runs) == len(memory.CELLS) * 3 and saved["seeds"] == [3, 4, 5]
    assert runs[3] == recall.train(Config("RNN, identity", 5, 3, steps=1), Checkpoint())
