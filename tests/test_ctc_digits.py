"""The spoken digits, the models that hear them, and how their mistakes are counted."""

import json
import math

import pytest
import torch
from commands import assert_refused, run
from torch.nn import functional as F

import ctc
import ctc_digits as digits
from lab import trainings
from lab.results import load


def draws(seed=0):
    return torch.Generator().manual_seed(seed)


def heard(count=5, length=4, seed=0, order="forwards"):
    generator = draws(seed)
    return digits.hear(digits.random_strings(count, length, generator), order, generator, "cpu")


def config(model, order="forwards", seed=0, epochs=2):
    return {"model": model, "order": order, "seed": seed, "epochs": epochs, "device": "cpu"}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Trainings of seconds, on one thread as trainings are."""
    monkeypatch.setattr(digits, "STEPS", 3)
    monkeypatch.setattr(digits, "BATCH", 4)
    monkeypatch.setattr(digits, "TESTED", 3)
    monkeypatch.setattr(digits, "LONGEST", 3)
    monkeypatch.setattr(digits, "BEAM", 2)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


# --- the sound --------------------------------------------------------------------------------------------------------


def test_every_segment_takes_the_frames_it_may():
    speech, strings = heard(count=50, length=6)
    for T, segments in zip(speech.frames.tolist(), speech.segments.tolist(), strict=True):
        segments = segments[:T]
        assert segments == sorted(segments)
        for segment in range(2 * strings.shape[1] + 1):
            frames = segments.count(segment)
            assert 8 <= frames <= 20 if segment % 2 else frames == 0 or 4 <= frames <= 8


def test_twelve_digits_take_about_200_frames():
    """12 digits of 14 frames and 13 places, half of them with 6 frames of silence: 207 on average."""
    speech, _ = heard(count=400, length=12)
    spread = math.sqrt(12 * (13**2 - 1) / 12 + 13 * (0.5 * (6**2 + 2) - 9))  # of one string, about 17 frames
    assert speech.frames.double().mean().item() == pytest.approx(207, abs=4 * spread / math.sqrt(400))


def test_the_right_path_collapses_to_the_string_repeats_included():
    strings = torch.tensor([[3, 3, 3, 5], [1, 1, 2, 2], [4, 3, 4, 4]]).repeat(20, 1)
    speech = digits.speak(strings, draws())
    for path, T, string in zip(speech.path.tolist(), speech.frames, strings.tolist(), strict=True):
        assert ctc.collapse(path[:T]) == string


def test_a_digit_glides_between_its_two_sounds_and_silence_is_none(monkeypatch):
    monkeypatch.setattr(digits, "NOISE", 0.0)
    speech = digits.speak(torch.tensor([[7]]), draws(3))
    sounds = torch.randn(digits.LABELS, 2, digits.FEATURES, generator=draws(digits.LANGUAGE))[7]
    (frames,) = (speech.segments[0] == 1).nonzero(as_tuple=True)
    n = len(frames)
    for i, t in enumerate(frames):
        assert torch.allclose(speech.sound[0, t], sounds[0] + (sounds[1] - sounds[0]) * i / n, atol=1e-6)
    assert (speech.sound[0, : frames[0]] == 0).all() and (speech.sound[0, frames[-1] + 1 :] == 0).all()


def test_reversed_changes_what_is_wanted_and_not_what_is_heard():
    (speech, forwards), (same, backwards) = heard(), heard(order="reversed")
    assert all(torch.equal(a, b) for a, b in zip(speech, same, strict=True))
    assert backwards.flip(1).tolist() == forwards.tolist() != backwards.tolist()


def test_training_and_test_hear_different_strings():
    seen = {tuple(row) for row in digits.random_strings(100, 12, digits.generator(0, "training")).tolist()}
    assert not seen & {tuple(row) for row in digits.random_strings(100, 12, digits.generator(0, "test")).tolist()}


# --- the models -------------------------------------------------------------------------------------------------------


def alone(speech, i):
    T = speech.frames[i]
    return digits.Speech(
        speech.sound[i : i + 1, :T], T[None], speech.segments[i : i + 1, :T], speech.path[i : i + 1, :T]
    )


@pytest.mark.parametrize("model", [digits.CTC, digits.TOLD, digits.ATTENTION])
def test_an_item_does_not_depend_on_its_batch_nor_on_the_padding(model):
    speech, strings = heard()
    speech.sound[torch.arange(speech.sound.shape[1]) >= speech.frames[:, None]] = 99.0
    model = digits.build(config(model))
    together = model.transcribe(speech)
    weight = speech.frames if getattr(model, "told", False) else torch.ones(len(strings))  # told: a mean over frames
    losses = torch.stack([model.loss(alone(speech, i), strings[i : i + 1]) for i in range(len(strings))])
    assert model.loss(speech, strings).item() == pytest.approx(
        ((losses * weight).sum() / weight.sum()).item(), rel=1e-5
    )
    for i in range(len(strings)):
        assert {name: [written[i]] for name, written in together.items()} == model.transcribe(alone(speech, i))


def test_attention_gives_padding_no_weight():
    speech, _ = heard()
    _, weights = digits.build(config(digits.ATTENTION)).write(speech, steps=3)  # (step, batch, time)
    assert torch.allclose(weights.sum(2), torch.ones(3, len(speech.frames)))
    assert (weights[:, torch.arange(weights.shape[2]) >= speech.frames[:, None]] == 0).all()


def test_the_decoder_is_a_gru_cell_with_additive_attention():
    """The decoder written out plainly, with torch's own cell."""
    speech, strings = heard(count=2)
    model = digits.build(config(digits.ATTENTION))
    memory = model.read(speech)
    previous = strings.t()  # (step, batch)
    logits, _, _ = model(previous, torch.zeros(2, digits.HIDDEN), memory)
    h = torch.zeros(2, digits.HIDDEN)
    states = memory[0].transpose(0, 1)  # (batch, time, 2 hidden)
    for label, ours in zip(previous, logits, strict=True):
        scores = model.v(torch.tanh(model.W_enc(states) + model.W_dec(h)[:, None]))[:, :, 0]
        scores = scores.masked_fill(torch.arange(scores.shape[1]) >= speech.frames[:, None], -math.inf)
        context = (scores.softmax(1)[:, :, None] * states).sum(1)
        h = model.decoder(torch.cat([model.embed(label), context], 1), h)
        assert torch.allclose(model.output(torch.cat([h, context], 1)), ours, atol=1e-5)


def test_the_teacher_reads_what_stands_before_and_the_end_is_scored():
    """Loss of "12": it reads blank, 1, 2 and is to write 1, 2, blank."""
    speech, strings = heard(count=1, length=2)
    model = digits.build(config(digits.ATTENTION))
    (a, b), border = strings[0].tolist(), ctc.BLANK
    logits, _, _ = model(torch.tensor([[border], [a], [b]]), torch.zeros(1, digits.HIDDEN), model.read(speech))
    expected = F.cross_entropy(logits[:, 0], torch.tensor([a, b, border]))
    assert model.loss(speech, strings).item() == pytest.approx(expected.item(), rel=1e-6)


def test_free_running_reads_its_own_labels():
    speech, _ = heard(count=2)
    model = digits.build(config(digits.ATTENTION))
    with torch.no_grad():
        model.output.weight.mul_(20)  # an untrained model's favourite would be the same label at every step
    labels, _ = model.write(speech, steps=6)  # (batch, step)
    previous = torch.cat([torch.full((2, 1), ctc.BLANK), labels[:, :-1]], 1).t()
    logits, _, _ = model(previous, torch.zeros(2, digits.HIDDEN), model.read(speech))
    assert torch.equal(logits.argmax(2).t(), labels)


def test_what_a_decoder_writes_ends_at_the_first_blank(monkeypatch):
    model = digits.build(config(digits.ATTENTION))
    labels = torch.tensor([[3, 0, 2], [1, 2, 3], [0, 4, 4]])  # (batch, step)
    monkeypatch.setattr(model, "write", lambda speech: (labels, None))
    assert model.transcribe(None) == {"greedy": [[3], [1, 2, 3], []]}


def test_greedy_is_the_best_path_and_a_beam_sums_over_paths():
    """Decoded item by item, and the frames with a label counted one by one; padding has neither."""
    speech, _ = heard()
    model = digits.build(config(digits.CTC))
    with torch.no_grad():
        model.output.weight.mul_(8)  # an untrained model would prefer one label everywhere
        items = [rows[:T].double() for rows, T in zip(model(speech), speech.frames, strict=True)]  # (time, label) each
    paths = [[max(range(digits.LABELS), key=row.__getitem__) for row in rows.tolist()] for rows in items]
    written = model.transcribe(speech)
    assert written["greedy"] == [ctc.collapse(path) for path in paths]
    assert written["beam"] == [ctc.beam_search(rows, digits.BEAM)[0] for rows in items]
    assert written["greedy"] != written["beam"]
    labelled = sum(label != ctc.BLANK for path in paths for label in path)
    assert model.frames_labelled(speech) == labelled < speech.frames.sum()


def test_ctc_sums_over_more_than_the_one_path_that_others_are_told():
    speech, strings = heard()
    told = digits.build(config(digits.TOLD))
    untold = digits.build(config(digits.CTC))
    assert all(torch.equal(a, b) for a, b in zip(told.parameters(), untold.parameters(), strict=True))
    one_path = told.loss(speech, strings) * speech.frames.sum()
    all_paths = untold.loss(speech, strings) * strings.numel()
    assert all_paths < one_path


# --- counting mistakes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "distance"),
    [("", "", 0), ("abc", "", 3), ("", "ab", 2), ("kitten", "sitting", 3), ("12345", "2345", 1), ("12", "21", 2)],
)
def test_edit_distance(a, b, distance):
    assert digits.edit_distance(a, b) == digits.edit_distance(b, a) == distance


def test_error_rate_weighs_strings_by_their_length_and_can_exceed_one():
    assert digits.error_rate([[1], [2, 3]], [[1, 1], [2, 3]]) == 1 / 4
    assert digits.error_rate([[1, 2, 3]], [[4]]) == 3


def test_chance_is_what_strings_of_others_score(monkeypatch):
    """Digits compared place by place would be wrong in 0.9 of the places; a shift here and there does better."""
    monkeypatch.setattr(digits, "LONGEST", 12)
    monkeypatch.setattr(digits, "TESTED", 100)
    assert 0.8 < digits.chance(0) < 0.9


# --- training ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", digits.CASES, ids=" ".join)
def test_interrupted_trainings_end_like_others(case, tmp_path):
    class Interrupted(Exception):
        pass

    class Keeper(trainings.Keeper):
        def save_if_due(self, make_state):
            super().save_if_due(make_state)
            if make_state()["step"] == self.stop:
                raise Interrupted

    whole = digits.train(config(*case), trainings.Keeper())
    for stop in 2, 4, None:
        keeper = Keeper(tmp_path, config(*case), every=0)
        keeper.stop = stop
        try:
            record = digits.train(config(*case), keeper)
        except Interrupted:
            continue
    assert record == whole == json.loads(json.dumps(whole))
    assert all(len(errors) == 2 for errors in whole["error"].values())


def test_loss_that_is_no_number_stops_the_training(monkeypatch):
    monkeypatch.setattr(digits, "LEARNING_RATE", math.inf)
    with pytest.raises(digits.script.Diverged, match="step 2"):
        digits.train(config(digits.ATTENTION), trainings.Keeper())


def test_script_prints_and_saves(monkeypatch, tmp_path, capsys):
    def one_by_one(train, configs, **_):
        return (train(config, trainings.Keeper()) for config in configs)

    monkeypatch.setattr(trainings, "run", one_by_one)
    digits.main(["--epochs", "2", "--outputs", str(tmp_path)])
    printed = capsys.readouterr().out
    assert (tmp_path / "ctc_digits.txt").read_text(encoding="utf-8") == printed
    assert (tmp_path / "ctc_digits.png").stat().st_size > 20_000
    runs = load("ctc_digits", tmp_path)["results"]["runs"]
    assert [(run["model"], run["order"], run["seed"]) for run in runs] == [
        (*case, seed) for case in digits.CASES for seed in digits.SEEDS
    ]
    example = runs[3]["example"]  # of CTC, seed 0
    for row in example["posteriors"] + example["occupancy"]:
        assert sum(row) == pytest.approx(1, abs=1e-3)


def test_mistakes_are_refused(tmp_path):
    assert_refused(run("ctc_digits.py", "--epochs", "0", cwd=tmp_path), "--epochs", "at least 1")
    assert_refused(run("ctc_digits.py", "--device", "abacus", cwd=tmp_path), "abacus", "cpu")
