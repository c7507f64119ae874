"""How a model that reverses is trained and scored; what is drawn, what is seen, what is told (seq2seq.py)."""

import math
import re
from functools import partial

import pytest
import torch
from commands import record_of
from torch.nn import functional as F

import seq2seq
from lab.errors import Diverged, UserError
from lab.trainings import Checkpoint
from layers.encoder_decoder import PAD
from seq2seq import Config

MODELS = {"none": (False, False), "attention": (True, False), "bahdanau": (True, True)}


@pytest.fixture(autouse=True)
def fewer_test_sequences(monkeypatch):
    monkeypatch.setattr(seq2seq, "TEST_SEQUENCES", 100)


def trained(config):
    """The model of a configuration after its steps."""
    training = seq2seq.set_up(config, Checkpoint())
    for _ in training:
        pass
    return training.model


# The data


def test_the_answer_is_the_source_backwards_with_its_padding_where_it_was():
    source = torch.tensor([[1, 2, 3, 4], [5, 6, PAD, PAD], [7, PAD, PAD, PAD]])
    assert seq2seq.answer(source).tolist() == [[4, 3, 2, 1], [6, 5, PAD, PAD], [7, PAD, PAD, PAD]]
    assert torch.equal(seq2seq.answer(source, "copy"), source)


def test_mixed_lengths_are_drawn_evenly_with_both_ends():
    source = seq2seq.random_digits(9_000, 3, 5, torch.Generator().manual_seed(0))
    counts = torch.bincount((source != PAD).sum(1), minlength=6)
    assert counts[:3].sum() == 0
    # each of 9,000 draws has length 3, 4 or 5 with probability 1/3: standard deviation √(9,000 · 1/3 · 2/3) = 45
    assert (counts[3:] - 3_000).abs().max() < 5 * 45
    assert set(source[source != PAD].tolist()) == set(range(10))


def test_training_and_test_sequences_come_from_streams_of_their_own():
    streams = [seq2seq.generator(seed, draws) for seed in range(5) for draws in seq2seq.DRAWS]
    assert len({tuple(seq2seq.random_digits(1, 40, 40, stream)[0].tolist()) for stream in streams}) == len(streams)
    last = 2**32 // 3 - 1  # the number of the next one's test stream would need more than 32 bits, and be another's
    assert seq2seq.generator(last, "test").initial_seed() == 2**32 - 2
    with pytest.raises(ValueError, match="seeds are from 0 to 1,431,655,764"):
        seq2seq.generator(last + 1, "test")


def test_the_test_sequences_of_a_seed_and_length_are_the_same_at_every_setting():
    configs = [Config(4, True, 3, 2), Config(4, True, 3, 3, 0.1), Config(4, True, 3, 2, task="copy")]
    examples = [seq2seq.train(config, Checkpoint())["example"]["source"] for config in configs]
    assert examples[0] == examples[1] == examples[2]
    assert seq2seq.train(Config(4, True, 4, 2), Checkpoint())["example"]["source"] != examples[0]


@pytest.mark.parametrize("length", [2, 19, (2, 5)])
def test_the_share_seen_in_training_is_counted_exactly(monkeypatch, length):
    """Against a list of everything that training was given."""
    config, given = Config(length, False, 0, 3), []
    original = seq2seq.mean_loss

    def mean_loss(model, source, target):
        given.extend([digit for digit in row if digit != PAD] for row in source.tolist())
        return original(model, source, target)

    monkeypatch.setattr(seq2seq, "mean_loss", mean_loss)
    trained(config)
    assert len(given) == 3 * seq2seq.BATCH
    for n in [length] if isinstance(length, int) else range(2, 7):
        new = seq2seq.random_digits(200, n, n, seq2seq.generator(0, "test"))
        if n == 19:
            new[7] = torch.tensor(given[100])
        assert seq2seq.drawn_in_training(new, config).tolist() == [row in given for row in new.tolist()]


# A training


@pytest.mark.parametrize("length", [4, (2, 4)])
def test_an_interrupted_training_ends_with_the_same_bits(tmp_path, monkeypatch, length):
    monkeypatch.setattr(seq2seq, "LONGEST_TEST", 5)
    config = Config(length, True, 0, 8, clip=0.2)
    whole = seq2seq.train(config, Checkpoint())

    class Interrupted(Exception):
        pass

    class Interrupting(Checkpoint):
        def tick(self, step, total, **shown):
            if step == 6:
                raise Interrupted

    with pytest.raises(Interrupted):
        seq2seq.train(config, Interrupting(tmp_path, str(config), every=0))
    resumed = seq2seq.train(config, Checkpoint(tmp_path, str(config), every=0))
    assert resumed.pop("seconds") > 0 and whole.pop("seconds") > 0
    assert resumed == whole


@pytest.mark.parametrize("name", MODELS)
def test_every_parameter_is_trained(name):
    attends, bahdanau = MODELS[name]
    config = Config(4, attends, 0, 2, bahdanau=bahdanau)
    before, after = seq2seq.build(config), trained(config)
    for (name, a), b in zip(before.named_parameters(), after.parameters(), strict=True):
        assert not torch.equal(a, b), name


@pytest.mark.parametrize("task", ["reverse", "copy"])
def test_a_short_training_learns_and_no_training_is_chance(task):
    untrained = seq2seq.evaluate(seq2seq.build(Config(4, True, 0)), Config(4, True, 0, 1), 4)
    # 100 · 4 guesses among ten digits have a standard deviation of √(0.1 · 0.9 / 400) = 0.015
    assert abs(untrained["digits_right"] - 0.1) < 4 * 0.015
    record = seq2seq.train(Config(2, True, 0, 60, 1e-2, task=task), Checkpoint())
    assert record["digits_right"] > 0.9
    assert record["curve"]["mean_loss"][0] == pytest.approx(math.log(10), rel=0.05)
    assert record["curve"]["mean_loss"][-1] < 0.5


def test_the_loss_is_the_mean_of_the_digits_that_count():
    model = seq2seq.build(Config((2, 4), True, 0)).double()
    source = torch.tensor([[1, 2, 3, 4], [5, 6, PAD, PAD]])
    target = seq2seq.answer(source)
    alone = (source[0], target[0]), (source[1, :2], target[1, :2])
    each = [F.cross_entropy(model(x[None], y[None])[0], y, reduction="sum") for x, y in alone]
    assert abs(seq2seq.mean_loss(model, source, target) - sum(each) / (4 + 2)) < 1e-10


def test_teacher_forcing_and_free_running_score_differently_but_agree_on_whole_sequences():
    """Whole sequences can't differ: as long as the model's own digits are right, it reads what the teacher gives."""
    model = trained(Config(4, False, 0, 30))
    source = seq2seq.random_digits(500, 4, 4, torch.Generator().manual_seed(5))
    target = source.flip(1)
    free = model.write(source, 4)[0] == target
    forced = model(source, target).argmax(2) == target
    assert 0.1 < free.float().mean() < forced.float().mean() < 0.99
    assert torch.equal(free.all(1), forced.all(1)) and 0 < free.all(1).sum() < 500


@pytest.mark.parametrize("task", ["reverse", "copy"])
def test_scores_say_what_a_model_with_known_mistakes_does(monkeypatch, task):
    """Of 100 answers the first 10 are wrong at the last position; teacher-forced, the first 20 in the middle."""
    config = Config(3, True, 4, 2, task=task)
    new = seq2seq.random_digits(100, 3, 3, seq2seq.generator(4, "test"))
    monkeypatch.setattr(seq2seq, "drawn_in_training", lambda source, _: torch.arange(len(source)) < 40)

    class Scripted(torch.nn.Module):
        embed = torch.nn.Embedding(1, 1)

        def write(self, source, steps, lengths):
            assert lengths.tolist() == [3] * 100
            assert torch.equal(source, new) and steps == 3
            written = source.flip(1) if task == "reverse" else source.clone()
            written[:10, 2] += 1
            weights = torch.zeros(3, 3, 100)  # (steps, source, batch)
            for step in range(3):
                position = 2 - step if task == "reverse" else step
                weights[step, position] = 0.5
                if position < 2:
                    weights[step, position + 1] = 0.25
            return written, weights

        def forward(self, source, target, lengths):
            wrong = F.one_hot(target, 12).float()  # (batch, target, digits and more)
            wrong[:20, 1, 11] = 2.0
            return wrong

    scores = seq2seq.evaluate(Scripted(), config, 3)
    assert scores["right_by_position"] == [1, 1, 0.9] and scores["teacher_forced_right_by_position"] == [1, 0.8, 1]
    assert scores["digits_right"] == pytest.approx(290 / 300) and scores["sequences_right"] == 0.9
    assert scores["teacher_forced_digits_right"] == pytest.approx(280 / 300)
    # The 10 mistakes are among the 40 that training had drawn.
    assert (scores["seen_in_training"], scores["unseen_sequences"], scores["unseen_sequences_right"]) == (0.4, 60, 1)
    # 0.5 at each position, 0.25 more one later; the digit read last has none later
    assert scores["weight_on_answer"] == pytest.approx((0.5 + 0.75 + 0.75) / 3)
    assert scores["example"]["source"] == new[0].tolist()


def test_another_seed_has_other_weights_and_other_training_sequences(monkeypatch):
    weights = [seq2seq.build(Config(4, True, seed)).W_enc.weight for seed in (0, 1)]
    assert not torch.equal(*weights)
    first = set()

    def mean_loss(model, source, target):
        first.add(tuple(source[0].tolist()))
        return model.embed.weight.sum()

    monkeypatch.setattr(seq2seq, "mean_loss", mean_loss)
    for seed in range(3):
        trained(Config(20, False, seed, 1))
    assert len(first) == 3


def test_scores_are_shares_of_what_was_scored():
    record = seq2seq.train(Config(3, True, 0, 20), Checkpoint())
    n = seq2seq.TEST_SEQUENCES
    for name, of in [("digits_right", 3 * n), ("teacher_forced_digits_right", 3 * n), ("sequences_right", n)]:
        assert record[name] * of == pytest.approx(round(record[name] * of), abs=1e-9)
    assert sum(record["right_by_position"]) / 3 == pytest.approx(record["digits_right"])
    forced = record["teacher_forced_right_by_position"]
    assert sum(forced) / 3 == pytest.approx(record["teacher_forced_digits_right"])
    assert record["unseen_sequences"] == round(n * (1 - record["seen_in_training"]))
    weights = torch.tensor(record["example"]["weights"])  # (steps, source)
    assert weights.shape == (3, 3) and (weights.sum(1) - 1).abs().max() < 1e-6
    assert record["median_gradient_norm"] <= record["largest_gradient_norm"]
    assert len(record["curve"]["largest_gradient_norm"]) == 20
    assert "device" not in record


def test_clipping_changes_what_is_learned_and_not_the_norm_that_is_recorded():
    records = [seq2seq.train(Config(3, False, 0, 2, clip=clip), Checkpoint()) for clip in (None, 1e-6, 1e6)]
    norms = [record["curve"]["largest_gradient_norm"] for record in records]
    assert norms[0][0] == norms[1][0] == norms[2][0] > 1e-3
    # Adam divides by the gradient's own size, so only a gradient near its epsilon of 1e-8 makes another step.
    assert norms[0] == norms[2] and norms[1][1] != norms[0][1]


def test_a_diverging_training_stops_with_the_step():
    with pytest.raises(Diverged, match="at step 2;"):
        seq2seq.train(Config(3, True, 0, 5, 1e38), Checkpoint())


def test_a_model_of_mixed_lengths_is_scored_on_each_length_s_own_sequences(monkeypatch):
    monkeypatch.setattr(seq2seq, "LONGEST_TEST", 4)
    scored = seq2seq.train(Config((2, 3), True, 0, 1), Checkpoint())["by_length"]
    for length, scores in zip((2, 3, 4), scored, strict=True):
        new = seq2seq.random_digits(100, length, length, seq2seq.generator(0, "test"))
        assert scores["length"] == length == len(scores["right_by_position"])
        assert scores["example"]["source"] == new[0].tolist()


# The script


@pytest.mark.parametrize(
    ("config", "text"),
    [
        (Config(10, True, 0), "length 10, attention   , seed 0"),
        (Config(10, False, 1), "length 10, no attention, seed 1"),
        (Config(40, True, 0, 3_000, 1e-3), "length 40, attention   , seed 0, 3,000 steps, learning rate 0.001"),
        (Config(40, True, 0, 3_000), "length 40, attention   , seed 0, 3,000 steps, learning rate 0.003"),
        (Config(40, True, 0, bahdanau=True, clip=None), "length 40, Bahdanau    , seed 0, not clipped"),
        (Config((5, 20), True, 0, task="copy"), "copy   , length 5-20, attention   , seed 0"),
    ],
)
def test_lines_name_a_model_as_the_post_does(config, text):
    assert str(config) == text


def test_one_model_is_trained_and_told(tmp_path, in_this_process):
    record = record_of(seq2seq, tmp_path, 4, "attention", 3, 2, 0.01)
    assert record["seeds"] == [3]
    (run,) = record["results"]["runs"]
    asked = {"length": 4, "attention": True, "seed": 3, "steps": 2, "learning_rate": 0.01, "clip": 1.0}
    assert asked.items() <= run.items()
    first, _, seen, free, forced = record["printed"]
    assert first == seq2seq.line(run) and re.search(r"digits right \d\.\d{3}, whole sequences right \d\.\d{3}$", first)
    assert f"{run['seen_in_training']:.3f}" in seen
    for text, name in (free, "right_by_position"), (forced, "teacher_forced_right_by_position"):
        assert text.split(":")[1].split() == [f"{right:.3f}" for right in run[name]]


def test_a_diverging_model_is_told(tmp_path, in_this_process):
    record = record_of(seq2seq, tmp_path, 4, "none", 0, 3, 1e38, status=1)
    assert record["printed"] == [
        "length 4, no attention, seed 0, 3 steps, learning rate 1e+38: the loss is not finite at step 2"
    ]


def test_mixed_lengths_are_scored_length_by_length_up_to_thirty(tmp_path, monkeypatch, in_this_process):
    monkeypatch.setattr(seq2seq, "Config", partial(Config, steps=2))
    record = record_of(seq2seq, tmp_path, "--lengths", "28-29")
    first, _, *rows = record["printed"]
    assert first.startswith("trained on lengths 28-29")
    assert [row.split()[0] for row in rows] == ["28", "29", "30"]


def test_a_row_of_mixed_lengths_has_both_models_in_the_order_of_its_heading():
    def record(attends, digits_right, sequences_right):
        one = {"length": 7, "digits_right": digits_right, "sequences_right": sequences_right, "seen_in_training": 0.5}
        return {"length": [5, 20], "attention": attends, "by_length": [one]}

    *_, heading, row = seq2seq.tell({"runs": [record(False, 0.1, 0.2), record(True, 0.3, 0.4)]})
    assert heading.split("  ")[0] == "length" and heading.index("no attention") < heading.index(" attention  ")
    assert row.split() == ["7", "0.100", "0.200", "0.300", "0.400", "0.500"]


@pytest.mark.parametrize("asked", ["10 attention", "", "10 attention 0 --lengths 5-20"])
def test_half_a_question_is_refused_before_anything_is_trained(asked):
    parser = seq2seq.script.experiment(seq2seq).parser()
    with pytest.raises(UserError, match="give LENGTH"):
        seq2seq.measure(parser.parse_args(asked.split()))
