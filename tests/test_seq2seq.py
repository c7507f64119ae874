"""Encoder and decoder against the plain listing, item by item where there is padding; what is seen, what is saved."""

import json
import math
import re
from importlib import import_module

import pytest
import torch
from plain_seq2seq import PlainSeq2Seq
from torch.nn import functional as F

import attention
import cells
import reverse
import reverse_mixed
import reverse_seeds
import seq2seq
from lab import trainings
from lab.script import Diverged, UserError
from lab.trainings import Keeper
from seq2seq import PAD, START, Seq2Seq, configuration

MODELS = {"none": (False, False), "attention": (True, False), "bahdanau": (True, True)}
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}
torch.set_num_threads(1)  # as in a training; on arrays this small more threads only get in each other's way


@pytest.fixture(autouse=True)
def fewer_test_sequences(monkeypatch):
    monkeypatch.setattr(seq2seq, "TEST_SEQUENCES", 100)


@pytest.fixture
def in_this_process(monkeypatch):
    """Sweeps without a pool of processes, which tests/test_trainings.py has its own tests for."""

    def run(train, configs, **_options):
        return (train(config, Keeper()) for config in configs)

    monkeypatch.setattr(trainings, "run", run)


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
    for parameter, gradient in theirs.items():
        assert gradient.abs().max() > 0
        assert relative_gap(mine[parameter], gradient) < TOLERANCE[dtype], parameter


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


@pytest.mark.parametrize("looked_up", [True, False])
def test_attention_by_hand_has_the_gradients_of_finite_differences(looked_up):
    """Every single number that goes in, padding and a row that is looked up twice in one step included."""
    torch.manual_seed(1)
    steps, source, batch, hidden, width, ε = 3, 4, 2, 2, 3, 1e-5
    ids = torch.tensor([[0, 4], [2, 2], [0, 1]]) if looked_up else None  # (steps, batch)
    z = (5, 3 * hidden) if looked_up else (steps, batch, 3 * hidden)
    padding = torch.tensor([[False, False], [False, False], [False, True], [False, True]])  # (source, batch)
    shapes = {
        "z": z,
        "h0": (batch, hidden),
        "e": (source, batch, width),
        "k": (source, batch, hidden),
        "W_h": (3 * hidden, hidden),
        "b_n": (hidden,),
        "W_c": (3 * hidden, width),
        "W_dec": (hidden, hidden),
        "v": (hidden,),
    }
    values = {name: torch.randn(shape, dtype=torch.float64, requires_grad=True) for name, shape in shapes.items()}
    weight_h, weight_c = torch.randn(steps, batch, hidden).double(), torch.randn(steps, batch, width).double()

    def loss():
        h, contexts, _ = attention.decode(**values, ids=ids, padding=padding)
        return (h * weight_h).sum() + (contexts * weight_c).sum()

    loss().backward()
    for name, value in values.items():
        differences = torch.empty_like(value).flatten()
        for i in range(value.numel()):
            with torch.no_grad():
                entry = value.view(-1)[i : i + 1]
                entry += ε
                above = loss()
                entry -= 2 * ε
                differences[i] = (above - loss()) / (2 * ε)
                entry += ε
        assert (value.grad.flatten() - differences).abs().max() < 1e-8 * max(1, differences.abs().max()), name


def test_parameters_of_attention_exist_only_with_attention():
    # 11·32 embeddings; a GRU of 128 on 32 inputs: 3·128·(32 + 128 + 2) = 62,208, twice; output 128·10 + 10
    assert sum(p.numel() for p in Seq2Seq().parameters()) == 352 + 2 * 62_208 + 1_290
    # W_enc and W_dec 128·128 each, v 128, and 3·128·128 weights more for the context that the decoder reads
    assert sum(p.numel() for p in Seq2Seq(True).parameters()) == 126_058 + 2 * 16_384 + 128 + 49_152
    with_attention = {name.split(".")[0] for name, _ in Seq2Seq(True).named_parameters()}
    assert with_attention - {name.split(".")[0] for name, _ in Seq2Seq().named_parameters()} == {"W_enc", "W_dec", "v"}


# Positions and teacher forcing


@pytest.mark.parametrize("name", MODELS)
def test_a_step_reads_the_digits_before_it_and_no_other(name):
    """For the answer 1 2 the decoder reads START 1; there is no end symbol, since the length is known."""
    _, model = pair(name)
    source, target = digits(1, 4), torch.tensor([[1, 2, 3]])
    logits = model(source, target)
    for place in range(3):
        other = target.clone()
        other[0, place] = 7
        changed = (model(source, other) - logits).abs().amax(2)[0] > 1e-9  # (target,)
        assert changed.tolist() == [step > place for step in range(3)]
    with torch.no_grad():
        model.embed.weight[START] += 1
    assert (model(source, target) - logits).abs().amax(2).min() > 1e-9


def test_teacher_forcing_and_free_running_score_differently_but_agree_on_whole_sequences():
    """Whole sequences can't differ: as long as the model's own digits are right, it reads what the teacher gives."""
    config = configuration(4, False, 0, 30)
    model = trained(config)
    source = seq2seq.random_digits(500, 4, 4, torch.Generator().manual_seed(5))
    target = source.flip(1)
    free = model.write(source, 4)[0] == target
    taught = model(source, target).argmax(2) == target
    assert 0.1 < free.float().mean() < taught.float().mean() < 0.99
    assert torch.equal(free.all(1), taught.all(1)) and 0 < free.all(1).sum() < 500


def trained(config):
    """The model of a configuration after its steps."""
    kept = {}

    class Kept(Keeper):
        def save_if_due(self, make_state):
            kept.update(make_state())

    seq2seq.train(config, Kept())
    model = seq2seq.build(config)
    model.load_state_dict(kept["model"])
    return model


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
    step_loss, _ = seq2seq.train_step(ours, torch.optim.SGD(ours.parameters()), source, target)
    assert abs(step_loss - expected.item() / (9 + 3 + 5)) < 1e-10  # the mean of the digits that count


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
    z = torch.randn(2, 3, 3 * 128, dtype=torch.float64)
    cell, width = model.decoder, memory.states.shape[2]
    _, _, weights = attention.decode(
        z,
        memory.h,
        memory.states,
        memory.keys,
        cell.weight_hh,
        cell.bias_hh[-128:],
        cell.weight_ih[:, -width:],
        model.W_dec.weight,
        model.v.weight[0],
        padding=memory.padding,
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


def test_the_test_sequences_of_a_seed_and_length_are_the_same_at_every_setting():
    configs = [
        configuration(4, True, 3, 2),
        configuration(4, True, 3, 3, 0.1),
        configuration(4, True, 3, 2, task="copy"),
    ]
    examples = [seq2seq.train(config, Keeper())["example"]["source"] for config in configs]
    assert examples[0] == examples[1] == examples[2]
    assert seq2seq.train(configuration(4, True, 4, 2), Keeper())["example"]["source"] != examples[0]


@pytest.mark.parametrize("length", [2, 19, [2, 5]])
def test_the_share_seen_in_training_is_counted_exactly(monkeypatch, length):
    """Against a list of everything that training was given."""
    config, given = configuration(length, False, 0, 3), []
    original = seq2seq.train_step

    def train_step(model, optimizer, source, target, clip):
        given.extend([digit for digit in row if digit != PAD] for row in source.tolist())
        return original(model, optimizer, source, target, clip)

    monkeypatch.setattr(seq2seq, "train_step", train_step)
    monkeypatch.setattr(seq2seq, "LONGEST_TEST", 6)
    seq2seq.train(config, Keeper())
    assert len(given) == 3 * seq2seq.BATCH
    for n in [length] if isinstance(length, int) else range(2, 7):
        new = seq2seq.random_digits(200, n, n, seq2seq.generator(0, "test"))
        if n == 19:
            new[7] = torch.tensor(given[100])
        assert seq2seq.drawn_in_training(new, config).tolist() == [row in given for row in new.tolist()]


# A training


@pytest.mark.parametrize("length", [4, [2, 4]])
def test_an_interrupted_training_ends_with_the_same_bits(tmp_path, monkeypatch, length):
    monkeypatch.setattr(seq2seq, "LONGEST_TEST", 5)
    config = configuration(length, True, 0, 8, clip=0.2)
    whole = seq2seq.train(config, Keeper())

    class Interrupted(Exception):
        pass

    class Interrupting(Keeper):
        def tick(self, step, total, **shown):
            if step == 6:
                raise Interrupted

    with pytest.raises(Interrupted):
        seq2seq.train(config, Interrupting(tmp_path, config, every=0))
    resumed = seq2seq.train(config, Keeper(tmp_path, config, every=0))
    assert resumed.pop("seconds") > 0 and whole.pop("seconds") > 0
    assert resumed == whole


def test_every_parameter_is_trained():
    for attends, bahdanau in MODELS.values():
        config = configuration(4, attends, 0, 2, bahdanau=bahdanau)
        before, after = seq2seq.build(config), trained(config)
        for (name, a), b in zip(before.named_parameters(), after.parameters(), strict=True):
            assert not torch.equal(a, b), name


@pytest.mark.parametrize("task", ["reverse", "copy"])
def test_a_short_training_learns_and_no_training_is_chance(task):
    untrained = seq2seq.evaluate(seq2seq.build(configuration(4, True, 0)), configuration(4, True, 0, 1), 4)
    # 100 · 4 guesses among ten digits have a standard deviation of √(0.1 · 0.9 / 400) = 0.015
    assert abs(untrained["digits_right"] - 0.1) < 4 * 0.015
    record = seq2seq.train(configuration(2, True, 0, 60, 1e-2, task=task), Keeper())
    assert record["digits_right"] > 0.9
    assert record["curve"]["mean_loss"][0] == pytest.approx(math.log(10), rel=0.05)
    assert record["curve"]["mean_loss"][-1] < 0.5


@pytest.mark.parametrize("task", ["reverse", "copy"])
def test_scores_say_what_a_model_with_known_mistakes_does(monkeypatch, task):
    """Of 100 answers the first 10 are wrong at the last place, and if taught, the first 20 in the middle."""
    config = configuration(3, True, 4, 2, task=task)
    new = seq2seq.random_digits(100, 3, 3, seq2seq.generator(4, "test"))
    monkeypatch.setattr(seq2seq, "drawn_in_training", lambda source, _: torch.arange(len(source)) < 40)

    class Scripted(torch.nn.Module):
        embed = torch.nn.Embedding(1, 1)

        def write(self, source, steps):
            assert torch.equal(source, new) and steps == 3
            written = source.flip(1) if task == "reverse" else source.clone()
            written[:10, 2] += 1
            weights = torch.zeros(3, 3, 100)  # (steps, source, batch)
            for step in range(3):
                place = 2 - step if task == "reverse" else step
                weights[step, place] = 0.5
                if place < 2:
                    weights[step, place + 1] = 0.25
            return written, weights

        def forward(self, source, target):
            wrong = F.one_hot(target, 12).float()  # (batch, target, digits and more)
            wrong[:20, 1, 11] = 2.0
            return wrong

    scores = seq2seq.evaluate(Scripted(), config, 3)
    assert scores["right_by_position"] == [1, 1, 0.9] and scores["taught_right_by_position"] == [1, 0.8, 1]
    assert scores["digits_right"] == pytest.approx(290 / 300) and scores["sequences_right"] == 0.9
    assert scores["taught_digits_right"] == pytest.approx(280 / 300)
    # The 10 mistakes are among the 40 that training had drawn.
    assert (scores["seen_in_training"], scores["unseen_sequences"], scores["unseen_sequences_right"]) == (0.4, 60, 1)
    # 0.5 at each place, 0.25 more one later; the digit read last has none later
    assert scores["weight_on_answer"] == pytest.approx((0.5 + 0.75 + 0.75) / 3)
    assert scores["example"]["source"] == new[0].tolist()


def test_another_seed_has_other_weights_and_other_training_sequences(monkeypatch):
    assert not torch.equal(
        seq2seq.build(configuration(4, True, 0)).W_enc.weight, seq2seq.build(configuration(4, True, 1)).W_enc.weight
    )
    first = {}

    def train_step(model, optimizer, source, target, clip):
        first[tuple(source[0].tolist())] = model
        return 0.0, 0.0

    monkeypatch.setattr(seq2seq, "train_step", train_step)
    for seed in range(3):
        seq2seq.train(configuration(20, False, seed, 1), Keeper())
    assert len(first) == 3


def test_scores_are_shares_of_what_was_scored():
    record = seq2seq.train(configuration(3, True, 0, 20), Keeper())
    n = seq2seq.TEST_SEQUENCES
    for name, of in [("digits_right", 3 * n), ("taught_digits_right", 3 * n), ("sequences_right", n)]:
        assert record[name] * of == pytest.approx(round(record[name] * of), abs=1e-9)
    assert sum(record["right_by_position"]) / 3 == pytest.approx(record["digits_right"])
    assert sum(record["taught_right_by_position"]) / 3 == pytest.approx(record["taught_digits_right"])
    assert record["unseen_sequences"] == round(n * (1 - record["seen_in_training"]))
    weights = torch.tensor(record["example"]["weights"])  # (steps, source)
    assert weights.shape == (3, 3) and (weights.sum(1) - 1).abs().max() < 1e-6
    assert record["median_gradient_norm"] <= record["largest_gradient_norm"]
    assert len(record["curve"]["largest_gradient_norm"]) == 20


def test_clipping_bounds_the_step_and_reports_the_norm_before_it():
    config = configuration(4, False, 0)
    source = digits(8, 4)
    norms, steps = [], []
    for clip in None, 1e-3:
        model = seq2seq.build(config)
        before = [p.detach().clone() for p in model.parameters()]
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        norms.append(seq2seq.train_step(model, optimizer, source, source.flip(1), clip)[1])
        moved = [(p - b).flatten() for p, b in zip(model.parameters(), before, strict=True)]
        steps.append(torch.cat(moved).norm().item())
    assert norms[0] == norms[1] > 1e-3
    assert steps == [pytest.approx(norms[0], rel=1e-4), pytest.approx(1e-3, rel=1e-2)]


def test_a_diverging_training_stops_with_the_step():
    with pytest.raises(Diverged, match="at step 2;"):
        seq2seq.train(configuration(3, True, 0, 5, 1e38), Keeper())


# The scripts


def test_a_sweep_prints_and_saves_what_it_measured(tmp_path, capsys, in_this_process):
    configs = [configuration(n, attends, 0, 6, 0.01) for n in (3, 4) for attends in (False, True)]
    reverse.sweep("reverse", "doc", configs, reverse.draw_models, ["--outputs", str(tmp_path)])
    printed = capsys.readouterr().out
    assert printed == (tmp_path / "reverse.txt").read_text(encoding="utf-8")
    assert (tmp_path / "reverse.png").stat().st_size > 10_000
    saved = json.loads((tmp_path / "reverse.json").read_text(encoding="utf-8"))["results"]
    lines = printed.splitlines()[:4]
    for text, run, config in zip(lines, saved["runs"], configs, strict=True):
        assert {name: run[name] for name in config} == config
        name = "attention   " if run["attention"] else "no attention"
        assert text == (
            f"length {run['length']}, {name}, seed 0, 6 steps, learning rate 0.01: digits right"
            f" {run['digits_right']:.3f}, whole sequences right {run['sequences_right']:.3f}"
        )
    assert [len(detail["right_by_position"]) for detail in saved["details"]] == [3, 3, 4, 4]
    rows = printed.splitlines()[-4:]
    for row, run, detail in zip(rows, saved["runs"], saved["details"], strict=True):
        places, weight = detail["right_by_position"], run.get("weight_on_answer")
        others = run["unseen_sequences_right"]
        numbers = [run["taught_digits_right"], run["digits_right"], places[0], places[len(places) // 2], places[-1]]
        numbers += [run["seen_in_training"], others, weight]
        shown = ["-" if number is None else f"{number:.3f}" for number in numbers]
        shown += [f"{run[name]:.2f}" for name in ("median_gradient_norm", "largest_gradient_norm")]
        assert row.partition("learning rate 0.01")[2].split() == shown


def made_up(config):
    """A run and its details as a sweep saves them, with weights on the anti-diagonal."""
    n = config["length"]
    falling = [1 - place / (2 * n) for place in range(n)]
    run = config | {"digits_right": 0.75, "sequences_right": 1 / n}
    detail = {
        "right_by_position": falling,
        "taught_right_by_position": falling,
        "curve": {"steps_per_point": 20, "mean_loss": [1.0] * 100, "largest_gradient_norm": [0.5, 2.0] * 50},
        "example": {"source": [3] * n, "written": [3] * n, "weights": torch.eye(n).flip(1).tolist()},
    }
    return run, detail


@pytest.mark.parametrize("script", ["reverse", "reverse_40_lr", "reverse_copy", "reverse_bahdanau", "reverse_seeds"])
def test_figures_are_drawn_from_what_is_saved(script):
    module = import_module(script)
    runs, details = zip(*map(made_up, module.CONFIGS), strict=True)
    figure = module.draw({"runs": list(runs), "details": list(details)})
    drawn = [line.get_ydata() for axes in figure.axes for line in axes.get_lines()]
    assert len(drawn) >= 4 and all(len(values) for values in drawn)
    if script == "reverse":
        (image,) = [image for axes in figure.axes for image in axes.get_images()]
        assert image.get_array().tolist() == torch.eye(20).flip(1).tolist()


def test_five_seeds_are_summed_up_by_their_mean_and_range():
    runs = [
        config | {"digits_right": config["length"] / 100, "sequences_right": config["seed"] / 10}
        for config in reverse_seeds.CONFIGS
    ]
    *_, last = reverse_seeds.spread(runs)
    # seeds 0 to 4 give 0.0 to 0.4, whose mean is 0.2
    assert last == (
        "length 20, attention   : digits right 0.200 (0.200 to 0.200), whole sequences right 0.200 (0.000 to 0.400)"
    )


def test_mixed_lengths_are_scored_by_the_mean_of_the_seeds():
    runs = [
        {"attention": attends, "by_length": [{"length": 7, "digits_right": right, "sequences_right": right / 2}]}
        for attends, right in [(False, 0.1), (True, 0.6), (False, 0.3), (True, 1.0)]
    ]
    assert reverse_mixed.by_length(runs, False)[7] == pytest.approx([0.2, 0.1])
    assert reverse_mixed.by_length(runs, True)[7] == pytest.approx([0.8, 0.4])
    lines = [line.get_ydata() for axes in reverse_mixed.draw({"runs": runs}).axes for line in axes.get_lines()]
    assert [list(line) for line in lines] == [[pytest.approx(share)] for share in (0.2, 0.8, 0.1, 0.4)]


def test_a_diverging_run_lets_the_others_finish_and_nothing_is_saved(tmp_path, capfd):
    configs = [configuration(3, False, 0, 4, 1e38), configuration(3, False, 0, 4)]
    with pytest.raises(Diverged, match=r"no attention.*at step 2"):
        reverse.sweep("reverse_diverging", "doc", configs, None, ["--jobs", "1", "--outputs", str(tmp_path)])
    first, second = capfd.readouterr().out.splitlines()[:2]
    assert "the loss is not finite at step 2" in first
    assert re.search(r"digits right \d\.\d{3}, whole sequences right \d\.\d{3}$", second)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("config", "text"),
    [
        (configuration(10, True, 0), "length 10, attention   , seed 0"),
        (configuration(10, False, 1), "length 10, no attention, seed 1"),
        (configuration(40, True, 0, 3_000, 1e-3), "length 40, attention   , seed 0, 3,000 steps, learning rate 0.001"),
        (configuration(40, True, 0, 3_000), "length 40, attention   , seed 0, 3,000 steps, learning rate 0.003"),
    ],
)
def test_lines_name_a_model_as_the_post_does(config, text):
    assert seq2seq.describe(config) == text


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("0 attention 0", "LENGTH: must be a whole number of at least 1, not '0'"),
        ("-3 attention 0", ""),
        ("10 transformer 0", "choose from 'attention', 'none'"),
        ("10 attention -1", ""),
        ("10 attention 0 0", "STEPS: must be a whole number of at least 1, not '0'"),
        ("10 attention 0 100 0", "LR: must be a number above 0, not '0'"),
        ("10 attention 0 100 nan", "LR: must be a number above 0, not 'nan'"),
        ("10 attention", "give LENGTH"),
        ("", "give LENGTH"),
        ("--lengths 5", "two lengths"),
        ("--lengths 20-5", "two lengths"),
        ("--lengths 0-5", "two lengths"),
        ("10 attention 0 --lengths 5-20", "without them"),
        ("10 attention 0 --device abacus", "no device 'abacus'"),
    ],
)
def test_bad_input_is_refused_in_one_line(arguments, complaint, capsys):
    with pytest.raises((SystemExit, UserError)) as refused:
        seq2seq.main(arguments.split())
    message = capsys.readouterr().err.strip() if refused.type is SystemExit else str(refused.value)
    assert refused.type is not SystemExit or refused.value.code == 2
    assert complaint in message and len(message.splitlines()) == 1


def test_mixed_lengths_are_scored_length_by_length_up_to_thirty(monkeypatch, capsys, in_this_process):
    monkeypatch.setattr(seq2seq, "STEPS", 2)
    seq2seq.main(["--lengths", "28-29"])
    first, _, *rows = capsys.readouterr().out.splitlines()
    assert first.startswith("trained on lengths 28-29")
    assert [row.split()[0] for row in rows] == ["28", "29", "30"]


def test_a_row_of_mixed_lengths_has_both_models_in_the_order_of_its_heading():
    def record(digits_right, sequences_right):
        one = {"length": 7, "digits_right": digits_right, "sequences_right": sequences_right, "seen_in_training": 0.5}
        return {"length": [5, 20], "by_length": [one]}

    *_, heading, row = seq2seq.by_length(record(0.1, 0.2), record(0.3, 0.4))
    assert heading.split("  ")[0] == "length" and heading.index("no attention") < heading.index(" attention  ")
    assert row.split() == ["7", "0.100", "0.200", "0.300", "0.400", "0.500"]


def test_a_model_of_mixed_lengths_is_scored_on_each_length_s_own_sequences(monkeypatch):
    monkeypatch.setattr(seq2seq, "LONGEST_TEST", 4)
    scored = seq2seq.train(configuration([2, 3], True, 0, 1), Keeper())["by_length"]
    for length, scores in zip((2, 3, 4), scored, strict=True):
        new = seq2seq.random_digits(100, length, length, seq2seq.generator(0, "test"))
        assert scores["length"] == length == len(scores["right_by_position"])
        assert scores["example"]["source"] == new[0].tolist()
