"""charlm.py and its sweeps: the model, its training, its evaluation, its samples, and what it refuses."""

import json
import math
from collections import Counter
from itertools import pairwise

import plain_charlm
import pytest
import torch
from commands import run

import char_models
import char_models_long
import charlm
import corpus
from lab import results, script, trainings
from lab.trainings import Keeper

every_cell = pytest.mark.parametrize("cell", charlm.CELLS)
TRAIN = "A cat sat on a naïve mat; the hat was flat. 😀\n" * 40  # 1,840 characters
VALIDATION = "That cat ate the bat, ζ that is.\n" * 6  # ζ and the comma's neighbours: some never seen


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def write_text(folder, train=TRAIN, validation=VALIDATION):
    folder.mkdir(exist_ok=True)
    (folder / corpus.TRAIN).write_text(train, encoding="utf-8")
    (folder / corpus.VALIDATION).write_text(validation, encoding="utf-8")
    return folder


@pytest.fixture
def data(tmp_path):
    return write_text(tmp_path / "data")


@pytest.fixture
def here(monkeypatch):
    """Trainings in this process: tests of lab.trainings start others."""

    def run(train, configs, **_):
        for config in configs:
            yield train(config, Keeper())

    monkeypatch.setattr(trainings, "run", run)


def small(cell, data, seed=0, steps=4, hidden=8, **changed):
    return charlm.configuration(cell, seed, corpus.load(data), steps, data, hidden=hidden, **changed)


def ids_of(data):
    text = corpus.load(data)
    return torch.from_numpy(text.encode(text.train)), torch.from_numpy(text.encode(text.validation)), text.size


# The model


@pytest.mark.parametrize("cell, parameters", [("RNN", 129_940), ("GRU", 294_804), ("LSTM", 377_236)])
def test_the_models_have_as_many_parameters_as_the_posts(cell, parameters):
    """148 · 64 + G · 256 · (64 + 256 + 2) + 148 · (256 + 1) = 47,508 + 82,432 G, for G = 1, 3, 4."""
    assert sum(p.numel() for p in charlm.CharRNN(148, cell).parameters()) == parameters
    assert parameters == 47_508 + 82_432 * {"RNN": 1, "GRU": 3, "LSTM": 4}[cell]


@every_cell
def test_the_cells_by_hand_compute_what_the_layer_does(cell):
    torch.manual_seed(0)
    model = charlm.CharRNN(20, cell, hidden=7).double()
    ids, state = torch.randint(20, (5, 3)), torch.randn(1, 3, 7, dtype=torch.float64)
    state = (state, state.flip(0)) if cell == "LSTM" else state
    h, last = model.rnn(model.embedding(ids), state)
    ours, ours_last = model(ids, state)
    assert torch.allclose(ours, model.linear(h), rtol=0, atol=1e-10)
    for a, b in zip(ours_last, last, strict=True):
        assert a.shape == b.shape and torch.allclose(a, b, rtol=0, atol=1e-10)


@every_cell
def test_weights_begin_as_the_plain_listings_and_disturb_no_other_draws(cell, data):
    plain, _ = plain_charlm.trainer(ids_of(data)[0], 30, cell, seed=5, hidden=8)
    torch.manual_seed(9)
    expected = torch.rand(3)
    torch.manual_seed(9)
    model = charlm.build(small(cell, data, seed=5), 30)
    assert torch.equal(torch.rand(3), expected)
    for a, b in zip(model.parameters(), plain.parameters(), strict=True):
        assert torch.equal(a, b)


def test_the_forget_bias_is_what_was_asked_for_and_nothing_else_changes(data):
    """torch adds two biases: both at 2.5 would make 5, one alone leaves the other's random draw."""
    model, usual = (charlm.build(small("LSTM", data, forget_bias=b), 30) for b in (2.5, None))
    total = model.rnn.bias_ih_l0 + model.rnn.bias_hh_l0
    assert torch.equal(total[8:16], torch.full((8,), 2.5))
    other = [i for i in range(32) if not 8 <= i < 16]
    assert torch.equal(total[other], (usual.rnn.bias_ih_l0 + usual.rnn.bias_hh_l0)[other])
    assert charlm.train(small("LSTM", data, forget_bias=2.5), Keeper())["forget_bias"] == 2.5


# Training


@every_cell
def test_training_is_the_plain_listings(cell, data):
    ids, _, V = ids_of(data)
    plain, plain_step = plain_charlm.trainer(ids, V, cell, seed=1, hidden=8, dtype=torch.float64)
    model = charlm.build(small(cell, data, seed=1), V).double()
    optimizer = torch.optim.AdamW(model.parameters(), lr=charlm.LEARNING_RATE, fused=True)
    generator = torch.Generator().manual_seed(1)
    before = [p.detach().clone() for p in model.parameters()]
    for _ in range(6):
        loss, _ = charlm.train_step(model, optimizer, charlm.windows(ids, generator))
        expected = plain_step()
        assert abs(loss - expected) < 1e-10
        assert abs(loss - expected * (1 + 1e-8)) > 1e-10  # the comparison sees a millionth of a percent
    for a, b, c in zip(model.parameters(), plain.parameters(), before, strict=True):
        assert torch.allclose(
            a, b, rtol=0, atol=1e-8
        )  # Adam makes steps of rounding errors where gradients are that small
        assert (a != c).any()  # everything that can be trained is


def test_every_legal_window_is_drawn_and_no_other():
    ids = torch.arange(charlm.WINDOW + 3)  # 131 characters: windows of 129 start at 0, 1 and 2
    drawn = charlm.windows(ids, torch.Generator().manual_seed(0), batch=200)
    assert drawn.shape == (charlm.WINDOW + 1, 200)
    assert set(drawn[0].tolist()) == {0, 1, 2}
    assert torch.equal(drawn - drawn[0], torch.arange(charlm.WINDOW + 1)[:, None].expand_as(drawn))


def test_the_gradient_is_clipped_to_its_norm(data):
    ids, _, V = ids_of(data)
    steps = {}
    for clip in (1e-3, 1e9):
        model = charlm.build(small("GRU", data), V)
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        before = torch.cat([p.detach().flatten() for p in model.parameters()])
        _, norm = charlm.train_step(model, optimizer, charlm.windows(ids, torch.Generator().manual_seed(0)), clip)
        steps[clip] = (torch.cat([p.detach().flatten() for p in model.parameters()]) - before).norm().item()
    assert abs(steps[1e-3] - 1e-3) < 1e-5 and abs(steps[1e9] - norm) < 1e-5 * norm


class Stopped(Exception):
    pass


class Stopping(Keeper):
    """Keeps every step, and is killed after some."""

    def __init__(self, folder, config, stop):
        super().__init__(folder, config, every=0)
        self.stop = stop

    def tick(self, step, total, **shown):
        assert math.isfinite(shown["bits"])
        if step == self.stop:
            raise Stopped


@every_cell
def test_an_interrupted_training_ends_with_the_same_bits(cell, data, tmp_path):
    whole, stopped = (small(cell, data, steps=9, save=tmp_path / f"{name}.pt") for name in ("whole", "stopped"))
    expected = charlm.train(whole, Keeper())
    for stop in (2, 6, 8):
        with pytest.raises(Stopped):
            charlm.train(stopped, Stopping(tmp_path / "work", stopped, stop))
        kept = torch.load(tmp_path / "work" / "checkpoint.pt", weights_only=True)
        assert kept["state"]["step"] == stop - 1
    record = charlm.train(stopped, Keeper(tmp_path / "work", stopped))
    assert record["seconds"] > 0
    del expected["seconds"], record["seconds"]
    assert record == expected
    text = corpus.load(data)
    (a, _, step), (b, _, _) = (charlm.load(tmp_path / f"{name}.pt", text) for name in ("whole", "stopped"))
    assert step == record["best_step"]
    for x, y in zip(a.parameters(), b.parameters(), strict=True):
        assert torch.equal(x, y)
    a, b = (charlm.generate(m, torch.tensor([0]), 20, 1.0, torch.Generator().manual_seed(0)) for m in (a, b))
    assert a == b


def test_the_record_is_json_and_says_what_was_asked(data):
    record = charlm.train(small("RNN", data, seed=3, steps=2), Keeper())
    assert json.loads(json.dumps(record)) == record
    assert (record["cell"], record["seed"], record["steps"], record["hidden"]) == ("RNN", 3, 2, 8)
    assert (record["learning_rate"], record["clip"], record["forget_bias"]) == (2e-3, 1.0, None)
    assert str(data) not in json.dumps(record)


def test_the_curve_is_denser_early_and_the_best_step_is_its_lowest(data, tmp_path):
    record = charlm.train(small("GRU", data, steps=60, learning_rate=0.05, save=tmp_path / "m.pt"), Keeper())
    steps, bits = record["curve"]["step"], record["curve"]["validation_bits_per_char"]
    assert 20 <= len(steps) <= charlm.POINTS and steps[-1] == 60
    gaps = [b - a for a, b in pairwise(steps)]
    assert gaps == sorted(gaps) or max(abs(a - b) for a, b in zip(gaps, sorted(gaps), strict=True)) <= 1  # rounding
    assert record["best_step"] == steps[bits.index(min(bits))] < 60  # so fast a training gets worse before it ends
    model, config, step = charlm.load(tmp_path / "m.pt", corpus.load(data))
    assert (config["cell"], step) == ("GRU", record["best_step"])
    assert charlm.evaluate(model, ids_of(data)[1]) == (
        record["best_validation_bits_per_char"],
        record["scored_characters"],
    )
    assert record["validation_bits_per_char"] > record["best_validation_bits_per_char"]


def test_the_curve_costs_under_3_percent():
    """In characters read: a step's forward and backward pass are three forward passes' worth of products."""
    curve = charlm.POINTS * charlm.STREAMS * (charlm.TRAIN_SAMPLE + charlm.VALIDATION_SAMPLE)
    assert curve < 0.03 * charlm.STEPS * charlm.BATCH * charlm.WINDOW * 3


def test_a_learning_rate_far_too_high_stops_and_spares_the_saved_weights(data, tmp_path):
    (tmp_path / "m.pt").write_bytes(b"before")
    with pytest.raises(script.Diverged) as caught:
        charlm.train(small("GRU", data, steps=200, learning_rate=1e6, save=tmp_path / "m.pt"), Keeper())
    assert 1 < caught.value.step < 30
    assert (tmp_path / "m.pt").read_bytes() == b"before"


def test_a_last_step_that_leaves_numbers_behind_is_noticed_too(data):
    """Its loss is taken before the step, and still finite."""
    with pytest.raises(script.Diverged, match="step 1;"):
        charlm.train(small("RNN", data, steps=1, learning_rate=1e38), Keeper())


# Evaluation


@every_cell
def test_bits_per_character_are_those_of_one_character_after_the_other(cell, data):
    _, ids, V = ids_of(data)
    plain, _ = plain_charlm.trainer(ids, V, cell, seed=0, hidden=8)
    model = charlm.build(small(cell, data), V)
    expected, scored = plain_charlm.bits_per_char(plain, ids)
    assert scored == len(ids) - 1 == 197
    for chunk in (7, 64, len(ids)):
        bits, count = charlm.evaluate(model, ids, chunk)
        assert count == scored and abs(bits - expected) < 1e-5
        assert charlm.evaluate(model, ids, chunk) == (bits, count)  # nothing is left over from the first time
    reset = sum(plain_charlm.bits_per_char(plain, part)[0] for part in ids.split(99)) / 2
    assert abs(reset - expected) > 1e-5  # what a state that isn't carried along would give is something else


def test_knowing_nothing_costs_the_logarithm_of_the_vocabulary():
    """All 65 logits 0: log2 65 = 6.0224 bits per character, whatever the text."""
    model = charlm.CharRNN(65, "GRU", hidden=4)
    for p in model.linear.parameters():
        torch.nn.init.zeros_(p)
    bits, count = charlm.evaluate(model, torch.randint(65, (300,)))
    assert abs(bits - 6.022367813) < 1e-6 and count == 299
    assert abs(charlm.estimate(model, torch.randint(65, (300,)), 100) - 6.022367813) < 1e-6


def test_unseen_characters_are_scored(data):
    text = corpus.load(data)
    unseen = sum(character not in text.characters for character in text.validation)
    assert unseen >= 6
    ids = torch.from_numpy(text.encode(text.validation))
    assert (ids == text.size - 1).sum() == unseen and len(ids) == len(text.validation)


@pytest.mark.parametrize("training", [True, False])
def test_evaluation_leaves_the_mode_as_it_was(training):
    model = charlm.CharRNN(5, "RNN", hidden=4).train(training)
    charlm.evaluate(model, torch.tensor([0, 1, 2]))
    charlm.estimate(model, torch.tensor([0, 1, 2]), 2)
    assert model.training == training


@pytest.mark.parametrize("length", [2, 3, 33, 70, 5000])
def test_an_estimate_reads_all_of_the_text_that_it_can(length):
    """The last window ends with the text, the first begins with it; a short text is read whole."""
    seen = []

    def forward(ids, state=None):
        seen.append(ids)
        return torch.zeros(*ids.shape, 9), None

    model = charlm.CharRNN(9, "RNN", hidden=4)
    model.forward = forward
    assert abs(charlm.estimate(model, torch.arange(length) % 9, 512) - math.log2(9)) < 1e-6
    read = torch.cat(seen)
    assert read.shape == (min(512, length - 1), charlm.STREAMS)
    assert read[0, 0] == 0 and read[-1, -1] == (length - 2) % 9


# Sampling


def test_higher_temperatures_give_more_surprising_text(data):
    """The entropy of what is written, in bits per character, grows from temperature 0.2 over 1 to 2."""
    ids, _, V = ids_of(data)
    model = charlm.build(small("GRU", data), V)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    generator = torch.Generator().manual_seed(0)
    for _ in range(15):
        charlm.train_step(model, optimizer, charlm.windows(ids, generator))
    entropies = []
    for temperature in (0.2, 1.0, 2.0):
        written = charlm.generate(model, ids[:3], 400, temperature, torch.Generator().manual_seed(0))
        shares = [n / 400 for n in Counter(written).values()]
        entropies.append(-sum(p * math.log2(p) for p in shares))
    assert entropies[0] + 0.2 < entropies[1] < entropies[2] - 0.2
    greedy = [charlm.generate(model, ids[:3], 30, 0.0, torch.Generator().manual_seed(seed)) for seed in (0, 1)]
    tiny = charlm.generate(model, ids[:3], 30, 5e-324, torch.Generator().manual_seed(0))
    assert greedy[0] == greedy[1] == tiny
    logits, _ = model(ids[:3, None])
    assert greedy[0][0] == logits[-1, 0, :-1].argmax()


def test_the_character_that_stands_for_others_is_never_written():
    model = charlm.CharRNN(4, "RNN", hidden=4)
    with torch.no_grad():
        model.linear.bias[-1] = 100.0
    assert set(charlm.generate(model, torch.tensor([3]), 100, 1.0, torch.Generator().manual_seed(0))) <= {0, 1, 2}


@pytest.fixture
def saved(data, tmp_path):
    """A model's file, and its record."""
    path = tmp_path / "model.pt"
    return path, charlm.train(small("GRU", data, steps=12, learning_rate=0.05, save=path), Keeper())


def test_a_sample_says_which_step_it_is_from_and_how_much_of_the_prompt_is_unknown(saved, data, capsys):
    path, record = saved
    charlm.main(["--load", str(path), "--data", str(data), "--sample", "30", "--prompt", "Привет"])
    out, err = capsys.readouterr()
    assert f"GRU seed 0, step {record['best_step']:,}, at temperature 1:\nПривет" in out
    assert f"validation {record['best_validation_bits_per_char']:.3f} bits/char (197 characters scored)" in out
    assert err.splitlines()[0] == "of the prompt's 6 characters training never showed 6"


def test_the_same_seed_writes_the_same_text_on_any_terminal(saved, data, tmp_path):
    path, _ = saved
    out = tmp_path / "out"
    arguments = ["--load", path, "--data", data, "--sample", 60, "--seed", 4, "--prompt", "naïve 😀"]
    done = run("charlm.py", *arguments, "--outputs", out, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert "na\\xefve" in done.stdout
    model, _, _ = charlm.load(path, corpus.load(data))
    text = corpus.load(data)
    prompt = torch.from_numpy(text.encode("naïve 😀"))
    written = text.decode(charlm.generate(model, prompt, 60, 1.0, torch.Generator().manual_seed(4)))
    assert (out / "charlm.txt").read_text(encoding="utf-8").endswith("naïve 😀" + written + "\n")
    assert results.load("charlm", out)["results"]["sample"] == "naïve 😀" + written


# The commands


def test_a_training_prints_the_posts_line_and_writes_from_its_best_step(data, tmp_path):
    done = run("charlm.py", "LSTM", 0, 3, "--hidden", 8, "--data", data, "--sample", 20, "--outputs", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    record = results.load("charlm", tmp_path / "out")["results"]["runs"][0]
    first, blank, heading, best, *_ = done.stdout.splitlines()
    assert first == (
        f"LSTM seed 0, 3 steps: {record['parameters']:,} parameters, {record['seconds']:.0f} s; "
        f"train {record['train_bits_per_char']:.3f}, validation {record['validation_bits_per_char']:.3f} bits/char"
    )
    assert (blank, heading) == ("", "beyond the post")
    assert best == f"best step {record['best_step']}: validation " + (
        f"{record['best_validation_bits_per_char']:.3f} bits/char (197 characters scored)"
    )
    assert f"\nLSTM seed 0, step {record['best_step']}, at temperature 1:\nThe " in done.stdout


def test_models_that_are_only_sampled_from_share_no_file(data, monkeypatch):
    """Each of two commands that differ only in the steps writes from its own weights, which are then taken away."""
    files = []
    monkeypatch.setattr(charlm, "write_text", lambda results, arguments, text, weights: files.append(weights))
    for steps in ("1", "2"):
        charlm.main(["GRU", "0", steps, "--hidden", "4", "--data", str(data), "--sample", "1"])
    first, second = files
    assert first != second and first.parent == second.parent == script.ROOT / "work"
    assert not first.exists() and not second.exists()


def test_a_line_has_the_posts_form():
    record = {"cell": "LSTM", "seed": 0, "steps": 3000, "parameters": 377236, "seconds": 263.2}
    record |= {"train_bits_per_char": 1.714, "validation_bits_per_char": 2.694}
    assert charlm.line(record) == (
        "LSTM seed 0, 3,000 steps: 377,236 parameters, 263 s; train 1.714, validation 2.694 bits/char"
    )


@pytest.mark.parametrize("module, runs", [(char_models, 9), (char_models_long, 3)])
def test_a_sweep_trains_what_the_post_did_and_sets_it_beside_counting(module, runs, data, tmp_path, here, monkeypatch):
    asked = []

    def train(config, keeper):
        asked.append((config["cell"], config["seed"], config["steps"]))
        return charlm.train(config | {"hidden": 4, "steps": 2}, keeper)

    monkeypatch.setattr(char_models, "train", train)
    out = tmp_path / "out"
    out.mkdir()
    for name, bits, modified in (("ngram", [4.0, 3.4567], []), ("kneser_ney", [2.9, 2.4567], [2.3456, 2.5])):
        figures = {"context": [1, 2], "bits_per_char": bits}
        figures |= {"modified": {"context": [1, 2], "bits_per_char": modified}}
        kept = {"corpus": corpus.load(data).fingerprint, "results": figures}
        (out / f"{name}.json").write_text(json.dumps(kept), encoding="utf-8")
    module.main(["--data", str(data), "--outputs", str(out)])
    steps, seeds = (12_000, [0]) if runs == 3 else (3000, [0, 1, 2])
    assert asked == [(cell, seed, steps) for cell in ("RNN", "GRU", "LSTM") for seed in seeds]
    saved = results.load(module.__name__, out)
    lines = (out / f"{module.__name__}.txt").read_text(encoding="utf-8").splitlines()
    assert lines[:runs] == [charlm.line(r) for r in saved["results"]["runs"]]
    best = [" ".join(row.split()) for row in lines[-4:-1]]
    assert best == ["add-one, context 2 3.457", "Kneser–Ney, context 2 2.457", "modified Kneser–Ney, context 1 2.346"]
    assert "the same 197 characters" in lines[-1]
    assert (out / f"{module.__name__}.png").stat().st_size > 10_000


def test_a_spread_is_the_largest_distance_from_the_mean():
    assert char_models.spread([2.69, 2.70, 2.74]) == "2.710 ± 0.030"
    assert char_models.spread([1000, 1200], ",.0f") == "1,100 ± 100"
    assert char_models.spread([2.5]) == "2.500"


def test_counting_models_of_another_text_are_left_out_with_a_note(data, tmp_path, capsys):
    assert char_models.counted(corpus.load(data), tmp_path) == {}
    assert "kneser_ney.py has saved nothing on this text" in capsys.readouterr().err


# Bad input


@pytest.mark.parametrize(
    "arguments, words",
    [
        ("Elman 0", ["CELL", "'Elman'", "RNN", "GRU", "LSTM"]),
        ("GRU", ["SEED"]),
        ("", ["CELL", "--load"]),
        ("GRU -1", ["SEED"]),
        ("GRU 0.5", ["SEED"]),
        ("GRU 99999999999999999999", ["SEED"]),
        ("GRU 0 0", ["STEPS"]),
        ("GRU 0 -5", ["STEPS"]),
        ("GRU 0 --hidden 0", ["--hidden"]),
        ("GRU 0 --clip 0", ["--clip", "above 0"]),
        ("GRU 0 --clip -1", ["--clip"]),
        ("GRU 0 --clip nan", ["--clip"]),
        ("GRU 0 --lr 0", ["--lr"]),
        ("GRU 0 --lr inf", ["--lr"]),
        ("GRU 0 --forget-bias 1", ["--forget-bias", "LSTM"]),
        ("LSTM 0 --forget-bias nan", ["--forget-bias"]),
        ("GRU 0 --sample 0", ["--sample"]),
        ("GRU 0 --sample 5 --temperature -1", ["--temperature"]),
        ("GRU 0 --sample 5 --temperature nan", ["--temperature"]),
        ("GRU 0 --sample 5 --prompt=", ["--prompt"]),
        ("GRU 0 --temperature 0.5 --prompt A", ["--prompt, --temperature", "--sample"]),
        ("--load FILE --seed 1", ["--seed", "--sample"]),
        ("GRU 0 --load FILE", ["--load"]),
    ],
)
def test_arguments_that_make_no_sense_are_refused_in_one_line(arguments, words, capsys):
    with pytest.raises(SystemExit) as caught:
        charlm.main(arguments.split())
    out, err = capsys.readouterr()
    assert caught.value.code == 2 and out == "" and len(err.splitlines()) == 1
    assert all(word in err for word in words), err


def refusal(*arguments):
    with pytest.raises(script.UserError) as caught:
        charlm.main(list(map(str, arguments)))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("length", [0, 1, 2, charlm.WINDOW, charlm.WINDOW + 1])
def test_texts_too_short_are_refused_and_others_trained_on(length, tmp_path, here):
    data = write_text(tmp_path / "data", train="x" * length)
    arguments = ["RNN", 0, 1, "--hidden", 2, "--data", data, "--outputs", tmp_path / "out"]
    if length > charlm.WINDOW:
        charlm.main(list(map(str, arguments)))
        assert math.isfinite(results.load("charlm", tmp_path / "out")["results"]["runs"][0]["train_bits_per_char"])
    else:
        message = refusal(*arguments)
        assert ("129" in message) if length else ("empty" in message)


@pytest.mark.parametrize("length", [0, 1, 2, 3])
def test_validation_texts_need_two_characters(length, tmp_path, here):
    data = write_text(tmp_path / "data", validation="cat"[:length])
    arguments = ["RNN", 0, 1, "--hidden", 2, "--data", data, "--outputs", tmp_path / "out"]
    if length >= 2:
        charlm.main(list(map(str, arguments)))
        run = results.load("charlm", tmp_path / "out")["results"]["runs"][0]
        assert run["scored_characters"] == length - 1 and math.isfinite(run["validation_bits_per_char"])
    else:
        assert ("1 character" if length else "empty") in refusal(*arguments)


def test_models_that_cannot_be_used_are_refused(saved, data, tmp_path):
    path, _ = saved
    load = ["--sample", 5, "--data", data, "--load"]
    assert "no such file" in refusal(*load, tmp_path / "nowhere.pt").lower()
    damaged = tmp_path / "damaged.pt"
    whole = path.read_bytes()
    middle = len(whole) // 2  # among the weights, where only a checksum can tell
    for part in (whole[:-500], b"", whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]):
        damaged.write_bytes(part)
        assert f"{damaged} is damaged" in refusal(*load, damaged)
    foreign = tmp_path / "foreign.pt"
    torch.save({"step": 3}, foreign)
    assert f"{foreign} is damaged, or not a model" in refusal(*load, foreign)
    other = write_text(tmp_path / "other", train=TRAIN + "€")
    assert "other characters" in refusal("--sample", 5, "--data", other, "--load", path)


def test_places_that_are_not_there_are_refused_before_training(data, tmp_path):
    assert "no device 'tpu'" in refusal("GRU", 0, "--data", data, "--device", "tpu")
    assert "nowhere" in refusal("GRU", 0, "--data", tmp_path / "nowhere")
    assert "can't write in" in refusal("GRU", 0, "--data", data, "--save", tmp_path / "nowhere" / "m.pt")


def test_a_text_that_changed_under_a_training_stops_it(data):
    config = small("GRU", data)
    write_text(data, train=TRAIN + "!")
    with pytest.raises(script.UserError, match="changed"):
        charlm.train(config, Keeper())


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["GRU", "0", "--save", "."], ["--save", "folder"]),
        (["--load", "model.pt", "--save", "again.pt"], ["--save", "isn't trained"]),
        (["--load", "model.pt", "--lr", "5"], ["--lr", "isn't trained"]),
        (["GRU", "0", "--prompt", "\udcff"], ["--prompt", "UTF-8"]),
    ],
)
def test_arguments_that_cannot_be_meant_are_refused_before_training(arguments, words, capsys):
    with pytest.raises(SystemExit, match="2"):
        charlm.main(arguments)
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and all(word in error for word in words)
