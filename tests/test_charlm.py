"""charlm.py: its training, its records, what it saves and writes, and what it refuses."""

import errno
import json
import math
from dataclasses import asdict
from itertools import pairwise

import pytest
import torch
from commands import record_of, run

import charlm
import corpus
from lab import results, script
from lab.errors import Diverged, UserError
from lab.trainings import Checkpoint
from layers import char_files, char_rnn
from plain import charlm as plain

every_cell = pytest.mark.parametrize("cell", char_rnn.CELLS)
every_layer = pytest.mark.parametrize("cell", char_rnn.LAYERS)
TRAIN = "A cat sat on a naïve mat; the hat was flat. 😀\n" * 40  # 1,840 characters
VALIDATION = "That cat ate the bat, ζ that is.\n" * 6  # ζ and the comma's neighbours: some never seen


@pytest.fixture
def data(write_corpus):
    return write_corpus(TRAIN, VALIDATION)


def small(cell, data, seed=0, steps=4, hidden=8, **changed):
    text = corpus.load(data)
    return charlm.Config(cell, seed, text.fingerprint, steps, data=str(data), hidden=hidden, **changed)


def ids_of(data):
    text = corpus.load(data)
    return torch.from_numpy(text.encode(text.train)), torch.from_numpy(text.encode(text.validation)), text.size


# Training


@every_cell
def test_training_is_the_plain_listings(cell, data):
    ids, _, V = ids_of(data)
    reference, plain_step = plain.trainer(ids, V, cell, seed=1, hidden=8, dtype=torch.float64)
    training, *_ = charlm.set_up(small(cell, data, seed=1, steps=6), Checkpoint())
    training.model.double()
    before = [p.detach().clone() for p in training.model.parameters()]
    for _ in training:
        loss, expected = training.losses[-1], plain_step()
        assert abs(loss - expected) < 1e-10
        assert abs(loss - expected * (1 + 1e-8)) > 1e-10  # the comparison sees a millionth of a percent
    for a, b, c in zip(training.model.parameters(), reference.parameters(), before, strict=True):
        # Adam makes steps of rounding errors where gradients are that small.
        assert torch.allclose(a, b, rtol=0, atol=1e-8)
        assert (a != c).any()  # everything that can be trained is


@every_layer
def test_the_loss_is_that_of_embedding_layer_and_readout_whose_parameters_all_learn(cell, data):
    training, _, ids, _ = charlm.set_up(small(cell, data, steps=1), Checkpoint())
    model = training.model
    batch = charlm.windows(ids, torch.Generator().manual_seed(0))
    logits = model.linear(model.rnn(model.embedding(batch[:-1]))[0])
    expected = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch[1:].flatten()).item()
    before = [p.detach().clone() for p in model.parameters()]
    assert list(training) == [1]
    assert training.losses == [pytest.approx(expected, abs=1e-5)]
    assert all((p != was).any() for p, was in zip(model.parameters(), before, strict=True))


def test_every_legal_window_is_drawn_and_no_other():
    ids = torch.arange(charlm.WINDOW + 3)  # 131 characters: windows of 129 start at 0, 1 and 2
    drawn = charlm.windows(ids, torch.Generator().manual_seed(0), batch=200)
    assert drawn.shape == (charlm.WINDOW + 1, 200)
    assert set(drawn[0].tolist()) == {0, 1, 2}
    assert torch.equal(drawn - drawn[0], torch.arange(charlm.WINDOW + 1)[:, None].expand_as(drawn))


class Stopped(Exception):
    pass


class Stopping(Checkpoint):
    """Keeps every step, and is killed after some."""

    def __init__(self, folder, stop):
        super().__init__(folder, every=0)
        self.stop = stop

    def tick(self, step, total, **shown):
        assert math.isfinite(shown["loss"])
        if step == self.stop:
            raise Stopped


@every_layer
def test_an_interrupted_training_ends_with_the_same_bits(cell, data, tmp_path):
    config = small(cell, data, steps=7, with_weights=True)
    expected = charlm.train(config, Checkpoint())
    for stop in (2, 6):
        with pytest.raises(Stopped):
            charlm.train(config, Stopping(tmp_path / "work", stop))
    record = charlm.train(config, Checkpoint(tmp_path / "work"))
    assert record.pop("seconds") > 0 and expected.pop("seconds") > 0
    assert record == expected


def test_the_record_is_json_and_says_what_was_asked(data):
    record = charlm.train(small("RNN", data, seed=3, steps=2), Checkpoint())
    assert json.loads(json.dumps(record)) == record
    assert (record["cell"], record["seed"], record["steps"], record["hidden"]) == ("RNN", 3, 2, 8)
    assert (record["learning_rate"], record["clip"], record["forget_bias"]) == (2e-3, 1.0, None)
    assert not record.keys() & {"text", "data", "device", "with_weights", "weights"}
    assert charlm.train(small("LSTM", data, forget_bias=2.5), Checkpoint())["forget_bias"] == 2.5


def test_the_curve_is_denser_early_and_the_best_step_is_its_lowest(data):
    training, _, ids, validation = charlm.set_up(small("GRU", data, steps=60, learning_rate=0.05), Checkpoint())
    charlm.learn(training, ids, validation)
    steps, bits = training.curve["step"], training.curve["validation_bits_per_char"]
    assert 20 <= len(steps) <= charlm.POINTS and steps[-1] == 60
    gaps = [b - a for a, b in pairwise(steps)]
    assert gaps == sorted(gaps) or max(abs(a - b) for a, b in zip(gaps, sorted(gaps), strict=True)) <= 1  # rounding
    assert training.best["step"] == steps[bits.index(min(bits))] < 60  # so fast a training gets worse before it ends


def test_the_curve_costs_under_3_percent():
    """In characters read: a step's forward and backward pass are three forward passes' worth of products."""
    curve = charlm.POINTS * char_rnn.STREAMS * (charlm.TRAIN_SAMPLE + charlm.VALIDATION_SAMPLE)
    assert curve < 0.03 * charlm.STEPS * charlm.BATCH * charlm.WINDOW * 3


def test_a_learning_rate_far_too_high_stops_the_training(data):
    with pytest.raises(Diverged) as caught:
        charlm.train(small("GRU", data, steps=200, learning_rate=1e6), Checkpoint())
    assert 1 < caught.value.step < 30


def test_a_last_step_that_leaves_numbers_behind_is_noticed_too(data):
    """Its loss is taken before the step, and still finite."""
    with pytest.raises(Diverged, match="step 1;"):
        charlm.train(small("RNN", data, steps=1, learning_rate=1e38), Checkpoint())


def test_a_text_that_changed_under_a_training_stops_it(data, write_corpus):
    config = small("GRU", data)
    write_corpus(TRAIN + "!", VALIDATION)
    with pytest.raises(UserError, match="changed"):
        charlm.train(config, Checkpoint())


def test_unseen_characters_are_scored(data):
    text = corpus.load(data)
    unseen = sum(character not in text.characters for character in text.validation)
    assert unseen >= 6
    record = charlm.train(small("RNN", data, steps=1), Checkpoint())
    assert record["scored_characters"] == len(text.validation) - 1 == 197


# The command


def test_a_training_prints_the_posts_line_and_writes_from_its_best_step(data, tmp_path, in_this_process):
    asked = ["LSTM", 0, 3, "--hidden", 8, "--data", data, "--sample", 20, "--save", tmp_path / "model.pt"]
    record = record_of(charlm, tmp_path / "out", *asked)
    (one,) = record["results"]["runs"]
    first, blank, heading, best, blank, title, *sample = record["printed"]
    assert first == charlm.line(one) and charlm.line(one).startswith(
        f"LSTM seed 0, 3 steps: {one['parameters']:,} parameters, {one['seconds']:.0f} s; "
        f"train {one['train_bits_per_char']:.3f}, validation {one['validation_bits_per_char']:.3f} bits/char"
    )
    assert (blank, heading) == ("", "beyond the post")
    judged = f"{one['best_validation_bits_per_char']:.3f} bits/char (197 characters scored)"
    assert best == f"best step {one['best_step']}: validation {judged}"
    assert title == f"LSTM seed 0, step {one['best_step']}, at temperature 1:" and sample[0].startswith("The ")
    assert "weights" not in one and (record["seeds"], record["arguments"]["steps"]) == ([0], 3)
    text = corpus.load(data)
    model, settings = char_files.load(tmp_path / "model.pt", text)
    assert settings.step == one["best_step"]
    assert char_rnn.evaluate(model, ids_of(data)[1])[0] == one["best_validation_bits_per_char"]
    written = char_rnn.generate(model, ids_of_prompt(text, "The "), 20, 1.0, torch.Generator().manual_seed(0))
    assert record["results"]["sample"] == "The " + text.decode(written)


def ids_of_prompt(text, prompt):
    return torch.from_numpy(text.encode(prompt))


def test_weights_are_kept_only_where_they_were_asked_for(data, tmp_path, in_this_process, monkeypatch):
    asked = []

    def train(config, checkpoint):
        asked.append(config)
        return trained(config, checkpoint)

    trained = charlm.train
    monkeypatch.setattr(charlm, "train", train)
    for more in [], ["--sample", 3], ["--save", tmp_path / "m.pt"]:
        record_of(charlm, tmp_path / "out", "RNN", 0, 1, "--hidden", 2, "--data", data, *more)
    assert [config.with_weights for config in asked] == [False, True, True]
    assert asked[0] == charlm.Config("RNN", 0, corpus.load(data).fingerprint, 1, hidden=2, data=str(data.resolve()))


def test_a_file_that_can_t_be_written_costs_neither_the_results_nor_the_training(
    data, tmp_path, in_this_process, monkeypatch, capsys
):
    asked = ["RNN", 0, 2, "--hidden", 2, "--data", data, "--save", tmp_path / "model.pt"]

    def full(path, content):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(results, "write_whole", full)
        first = record_of(charlm, tmp_path / "out", *asked, status=1)
    assert "model.pt: No space left on device; the same command" in capsys.readouterr().err
    monkeypatch.setattr(charlm, "train", None)  # nothing is trained any more
    again = record_of(charlm, tmp_path / "out", *asked)
    assert again["printed"] == first["printed"] and again["results"] == first["results"]
    assert char_files.load(tmp_path / "model.pt", corpus.load(data))


def test_a_training_that_diverges_is_told_and_spares_the_saved_weights(data, tmp_path, in_this_process):
    (tmp_path / "m.pt").write_bytes(b"before")
    asked = ["GRU", 0, 50, "--hidden", 8, "--lr", 1e6, "--data", data, "--save", tmp_path / "m.pt", "--sample", 3]
    record = record_of(charlm, tmp_path / "out", *asked, status=1)
    (one,) = record["results"]["runs"]
    assert record["printed"] == [f"GRU seed 0, 50 steps: the loss was not finite at step {one['diverged_at_step']}"]
    assert str(data) not in json.dumps(record["results"])
    assert (tmp_path / "m.pt").read_bytes() == b"before"


def test_a_line_has_the_posts_form():
    record = {"cell": "LSTM", "seed": 0, "steps": 3000, "parameters": 377236, "seconds": 263.2}
    record |= {"train_bits_per_char": 1.714, "validation_bits_per_char": 2.694}
    assert charlm.line(record) == (
        "LSTM seed 0, 3,000 steps: 377,236 parameters, 263 s; train 1.714, validation 2.694 bits/char"
    )


@pytest.fixture
def saved(data, tmp_path):
    """A model's file, and its record."""
    text, path = corpus.load(data), tmp_path / "model.pt"
    training, *_ = charlm.set_up(config := small("GRU", data, steps=3), Checkpoint())
    list(training)
    weights = {"step": 2, "model": training.model.state_dict()}
    path.write_bytes(char_files.pack(charlm.recorded(asdict(config)), text, weights))
    return path, char_rnn.evaluate(training.model, ids_of(data)[1])[0]


def test_a_sample_says_which_step_it_is_from_and_how_much_of_the_prompt_is_unknown(saved, data, tmp_path, capsys):
    path, bits = saved
    asked = ["--load", path, "--data", data, "--sample", 30, "--prompt", "Привет"]
    printed = record_of(charlm, tmp_path / "out", *asked)["printed"]
    assert printed[0] == f"GRU seed 0, step 2: validation {bits:.3f} bits/char (197 characters scored)"
    assert printed[2] == "GRU seed 0, step 2, at temperature 1:" and printed[3].startswith("Привет")
    assert capsys.readouterr().err.splitlines()[0] == "of the prompt's 6 characters training never showed 6"


def test_the_same_seed_writes_the_same_text_on_any_terminal(saved, data, tmp_path):
    path, _ = saved
    out = tmp_path / "out"
    arguments = ["--load", path, "--data", data, "--sample", 60, "--seed", 4, "--prompt", "naïve 😀"]
    done = run("charlm.py", *arguments, "--outputs", out, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert "na\\xefve" in done.stdout
    text = corpus.load(data)
    model, _ = char_files.load(path, text)
    written = text.decode(
        char_rnn.generate(model, ids_of_prompt(text, "naïve 😀"), 60, 1.0, torch.Generator().manual_seed(4))
    )
    assert (out / "charlm.txt").read_text(encoding="utf-8").endswith("naïve 😀" + written + "\n")
    found = json.loads((out / "charlm.json").read_text(encoding="utf-8"))
    assert found["results"]["sample"] == "naïve 😀" + written and found["seeds"] == [4]


# Bad input


def refusal(*arguments):
    with pytest.raises(UserError) as caught:
        script.perform(script.experiment(charlm), list(map(str, arguments)))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("length", [0, 1, charlm.WINDOW, charlm.WINDOW + 1])
def test_texts_too_short_are_refused_and_others_trained_on(length, tmp_path, in_this_process, write_corpus):
    data = write_corpus("x" * length, VALIDATION)
    arguments = ["RNN", 0, 1, "--hidden", 2, "--data", data]
    if length > charlm.WINDOW:
        (one,) = record_of(charlm, tmp_path / "out", *arguments)["results"]["runs"]
        assert math.isfinite(one["train_bits_per_char"])
    else:
        assert ("129" if length else "empty") in refusal(*arguments)


@pytest.mark.parametrize("length", [0, 1, 2, 3])
def test_validation_texts_need_two_characters(length, saved, tmp_path, in_this_process, write_corpus):
    data = write_corpus(TRAIN, "cat"[:length], name="short")
    arguments = ["RNN", 0, 1, "--hidden", 2, "--data", data]
    if length >= 2:
        (one,) = record_of(charlm, tmp_path / "out", *arguments)["results"]["runs"]
        assert one["scored_characters"] == length - 1 and math.isfinite(one["validation_bits_per_char"])
    else:
        for asked in arguments, ["--load", saved[0], "--data", data]:
            assert ("1 character" if length else "empty") in refusal(*asked)


def test_a_model_of_another_text_is_refused(saved, write_corpus):
    other = write_corpus(TRAIN + "€", VALIDATION, name="other")
    assert "other characters" in refusal("--sample", 5, "--data", other, "--load", saved[0])


def test_a_model_of_another_text_of_the_same_characters_is_judged_and_that_is_said(saved, write_corpus, tmp_path):
    """Its validation text may be what the model was trained on."""
    other = write_corpus(TRAIN + TRAIN, VALIDATION, name="other")
    record = record_of(charlm, tmp_path / "out", "--load", saved[0], "--data", other)
    assert record["printed"][0].startswith(
        "GRU seed 0, step 2, trained on another text, which may hold some of this: validation"
    )
    assert record["results"]["model"]["other_text"]


def test_places_that_are_not_there_are_refused_before_training(data, tmp_path):
    assert "no device 'tpu'" in refusal("GRU", 0, "--data", data, "--device", "tpu")
    assert "nowhere" in refusal("GRU", 0, "--data", tmp_path / "nowhere")
    assert "can't write in" in refusal("GRU", 0, "--data", data, "--save", tmp_path / "nowhere" / "m.pt")
    assert "what is there is not a file" in refusal("GRU", 0, "--data", data, "--save", tmp_path)
