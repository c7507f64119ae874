"""Every script on a device that isn't the CPU, as far as that can be held to something without one.

torch's meta device has shapes and no values: a tensor that was left on the CPU doesn't fit to one that is there, and
nothing can be asked for. What a script fetches when it scores is 1 everywhere; a step of training may fetch nothing.
"""

import sys
from argparse import Namespace
from dataclasses import replace
from importlib import import_module

import pytest
import torch

import charlm
import corpus
import parallel
import seq2seq
from beyond import (
    bidirectional,
    ctc_digits,
    explosions,
    gates_trained,
    generation,
    latency,
    parallel_lengths,
    scan_lengths,
    teacher_forcing,
)
from lab import devices, pools, results, script, timing
from lab.descent import Descent
from lab.errors import UserError
from lab.trainings import Checkpoint
from layers import char_lm, ctc, one_bit, one_bit_training
from reruns import catalogue

META = torch.device("meta")
SINGLE = {"charlm": ["GRU", "0"], "seq2seq": ["5", "none", "0"]}  # one training each, in no catalogue
SCRIPTS = {entry.module: [] for entry in catalogue.entries().values()} | SINGLE
EXPERIMENTS = {name: script.experiment(import_module(name)) for name in SCRIPTS}  # before anything is made short
TRAININGS = {
    **{f"charlm {cell}": (charlm, charlm.Config(cell, 0, "", steps=2, hidden=8)) for cell in char_lm.CELLS},
    "seq2seq": (seq2seq, seq2seq.Config(4, False, 0, steps=2)),
    "seq2seq with attention": (seq2seq, seq2seq.Config((3, 5), True, 0, steps=2)),
    "seq2seq as Bahdanau's": (seq2seq, seq2seq.Config((3, 5), True, 0, steps=2, bahdanau=True)),
    **{
        f"one bit, {cell}": (one_bit_training, one_bit_training.Config(cell, 5, 0, 0.001, 2)) for cell in one_bit.MODELS
    },
    **{
        f"bidirectional {cell}": (bidirectional, bidirectional.Config(cell, "both sides", "both", 3, 0, steps=2))
        for cell in bidirectional.CELLS
    },
    "gates_trained on text": (gates_trained, charlm.Config("LSTM", 0, "", steps=2, hidden=8)),
    "gates_trained on bits": (gates_trained, one_bit_training.Config("GRU", 5, 0, 0.001, 2)),
    **{model: (ctc_digits, ctc_digits.Config(model, "forwards", 0, epochs=1)) for model in ctc_digits.MODELS},
    "teacher forcing": (teacher_forcing, teacher_forcing.Config(4, True, "scheduled", 0, 2)),
    "explosions, plain": (explosions, explosions.Plain("tanh", 0.5, 1.0, 0, "", "", 2)),
    "explosions, characters": (explosions, charlm.Config("RNN", 0, "", steps=2, hidden=8)),
    "latency": (latency, latency.Config("one way", 0, 2)),
}
SECONDS = {"CTC", "framewise", "latency", "gates_trained on text"}  # of which others share most of the code
# Which not every device has: these train on the CPU.
IN_FLOAT64 = {"beyond.hmm", "beyond.cell_path", "beyond.ten_words_back"}
TIMED = [parallel, parallel_lengths, generation, scan_lengths]


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Few and short sequences: on the meta device a recurrent layer takes Python's time for each step."""
    small = {
        charlm: {"BATCH": 3, "WINDOW": 6, "TRAIN_SAMPLE": 6, "VALIDATION_SAMPLE": 6},
        gates_trained: {"LENGTH": 52, "COUNT": 2},
        ctc_digits: {"STEPS": 2, "TESTED": 2, "LONGEST": 2, "EXAMPLE": "21"},
        seq2seq: {"TEST_SEQUENCES": 20, "LONGEST_TEST": 6},
        one_bit_training: {"TESTED": 100},
        teacher_forcing: {"TEST_SEQUENCES": 20, "LOOKED": 10},
        latency: {"TESTED": 2, "LONGEST": 2},
        bidirectional: {"TESTED": 100},
        parallel: {"LENGTH": 8, "RUNS": 1},
        parallel_lengths: {"LENGTHS": [2, 4, 8, 16], "WARM_UP": 0, "RUNS": 1},
        scan_lengths: {"LENGTHS": [2, 4, 8, 16], "WARM_UP": 0, "RUNS": 1},
        generation: {"CONTEXTS": [4, 8, 16, 32], "TURNS": 1, "TOKENS": 2},
    }
    for module, settings in small.items():
        for name, value in settings.items():
            monkeypatch.setattr(module, name, value)


@pytest.fixture
def training_of(write_corpus):
    """A module and a configuration, by name; character models read a short text."""
    folder = write_corpus("A cat sat on a mat. " * 10, "That cat ate the bat. " * 3)

    def of(name):
        module, config = TRAININGS[name]
        if isinstance(config, charlm.Config | explosions.Plain):
            config = replace(config, text=corpus.load(folder).fingerprint, data=str(folder))
        return module, config

    return of


@pytest.fixture
def on_meta(monkeypatch):
    """The meta device is what every name of a device stands for, and values are there to be had between steps only."""
    in_step = [False]

    def within(value, function):
        def call(*args):
            before, in_step[0] = in_step[0], value
            try:
                return function(*args)
            finally:
                in_step[0] = before

        return call

    def fetching(function):
        def fetch(tensor):
            if tensor.device == META:
                assert not in_step[0], "a step asked the device for a value"
                tensor = torch.ones(tensor.shape, dtype=tensor.dtype)
            return function(tensor)

        return fetch

    for name in ("cpu", "item", "tolist"):
        monkeypatch.setattr(torch.Tensor, name, fetching(getattr(torch.Tensor, name)))
    monkeypatch.setattr(Descent, "_descend", within(True, Descent._descend))
    monkeypatch.setattr(Descent, "_fetch", within(False, Descent._fetch))
    monkeypatch.setattr(devices, "trusted", lambda name: META)
    monkeypatch.setattr(ctc, "check_probabilities", lambda *_: None)  # ones aren't any
    monkeypatch.setattr(torch, "get_device_module", lambda device: torch)
    monkeypatch.setattr(timing, "wait", lambda device: None)
    for name in ("Adam", "AdamW"):  # which aren't fused there
        real = getattr(torch.optim, name)
        monkeypatch.setattr(torch.optim, name, lambda *args, real=real, fused=None, **more: real(*args, **more))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SECONDS)) for name in TRAININGS]
)
def test_a_training_leaves_nothing_on_the_cpu_and_its_steps_ask_for_nothing(on_meta, training_of, name):
    module, config = training_of(name)
    assert module.train(config, Checkpoint())["seed"] == config.seed


@pytest.mark.parametrize("cell", char_lm.CELLS)
def test_a_model_writes_on_the_device_that_it_is_on(on_meta, cell):
    model = char_lm.build(TRAININGS[f"charlm {cell}"][1], 30).to(META)
    prompt = torch.arange(5, device=META)
    assert len(char_lm.generate(model, prompt, 3, 1.0, torch.Generator().manual_seed(0))) == 3


@pytest.mark.parametrize("module", TIMED, ids=[module.__name__ for module in TIMED])
def test_what_is_timed_is_on_the_device(on_meta, module):
    found = module.measure(Namespace(device="meta"))
    assert found["device"] == "meta"


def test_a_step_that_asks_for_a_value_is_found(on_meta, training_of, monkeypatch):
    real = seq2seq.mean_loss
    monkeypatch.setattr(seq2seq, "mean_loss", lambda *args: (loss := real(*args), loss.item())[0])
    module, config = training_of("seq2seq")
    with pytest.raises(AssertionError, match="a step asked"):
        module.train(config, Checkpoint())


@pytest.mark.parametrize("name", TRAININGS)
def test_a_second_device_is_checked_and_gives_the_same_record(monkeypatch, training_of, name):
    """It is the CPU once more, by another name."""
    module, config = training_of(name)
    expected, checked = module.train(config, Checkpoint()), []
    monkeypatch.setattr(devices, "available", lambda: ["cpu", "cpu:1"])
    monkeypatch.setattr(devices, "check_recurrent", checked.append)
    found = module.train(replace(config, device="cpu:1"), Checkpoint())
    assert set(map(str, checked)) == {"cpu:1"}
    assert {**found, "seconds": 0} == {**expected, "seconds": 0}


# What every script takes, and what it refuses


@pytest.mark.parametrize("module", SCRIPTS)
def test_what_is_trained_or_timed_takes_a_device_and_many_trainings_take_jobs(module):
    one = EXPERIMENTS[module]
    taken = vars(one.parser().parse_args(SCRIPTS[module]))
    trains = any(name in vars(sys.modules[module]) for name in ("trainings", "charlm", "sweep")) or "jobs" in taken
    assert ("jobs" in taken) == ("cluster" in taken) == trains
    repeats = hasattr(sys.modules[module], "READS")
    times = not repeats and any(k == "timing" and not path.endswith("seconds") for path, k in one.kinds.items())
    assert ("device" in taken) == ((trains or times) and module not in IN_FLOAT64)


@pytest.mark.parametrize("module", SCRIPTS)
def test_a_place_that_is_not_there_is_refused_before_anything_is_written(module, monkeypatch, tmp_path):
    monkeypatch.setattr(pools, "CLUSTER_SECONDS", 0.1)
    one = EXPERIMENTS[module]
    taken = vars(one.parser().parse_args(SCRIPTS[module]))
    refused = {"--device=abacus": "no device 'abacus' here: there is cpu"} if "device" in taken else {}
    if "cluster" in taken:
        pytest.importorskip("distributed")
        refused |= {"--cluster=": "no Dask scheduler at", "--cluster=127.0.0.1:9": "no Dask scheduler at"}
        refused |= {"--cluster=tls://127.0.0.1:9": "needs certificates"}
    for option, said in refused.items():
        with pytest.raises(UserError, match=said) as error:
            script.perform(one, [*SCRIPTS[module], option, f"--outputs={tmp_path}"])
        assert "\n" not in str(error.value)
    assert not list(tmp_path.iterdir()) and not results.WORK.exists()
