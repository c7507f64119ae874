"""Hidden Markov models of characters (beyond/hmm.py)."""

import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from commands import ROOT, record_of

import corpus
import ngram
from beyond import hmm
from lab import script
from lab.errors import UserError
from lab.trainings import Checkpoint
from layers import hidden_markov
from layers.hidden_markov import Pieces, from_lists

TRAIN, VALIDATION = "the cat sat on the mat. " * 40 + "A dog!", "the dog sat; a zzz"


@pytest.fixture
def folder(write_corpus):
    return write_corpus(TRAIN, VALIDATION)


def config(folder, states, seed=0, **changed):
    return hmm.Config(states, seed, corpus.load(folder).fingerprint, str(folder), **changed)


def trained(folder, states, seed=0):
    return hmm.train(config(folder, states, seed), Checkpoint())


def test_one_state_is_the_unigram_model_exactly(folder):
    text = corpus.load(folder)
    (N,) = ngram.count(text.encode(TRAIN), text.encode(VALIDATION), text.size, 0)
    unigram = -np.log2((N[1, 1:] + 1) / (N[0, 1:] + text.size)).mean()
    assert trained(folder, 1)["validation_bits_per_char"] == pytest.approx(unigram, rel=1e-12)
    assert hmm.add_one(text)[0] == pytest.approx(unigram, rel=1e-12)
    # By hand: 40 times 24 characters and 6 more; "z", the last one, never; "t" five times in each 24.
    assert N[:, -1].tolist() == [966, 0] and N[:, VALIDATION.index("t", 1)].tolist() == [966, 200]


def test_training_adds_one_to_each_character_and_ends_by_the_share_of_ten_iterations(folder, monkeypatch):
    iterate, given = hmm.baum_welch, []

    def noted(model, pieces, *settings):
        given.append(settings)
        return iterate(model, pieces, *settings)

    monkeypatch.setattr(hmm, "baum_welch", noted)
    trained(folder, 4)
    assert given == [(1 / 4, 10, 1e-4, [])]  # one is divided among four states


def test_all_characters_but_the_first_are_scored(folder):
    """Bits are those of the whole text, given its first character, which is only context."""
    record = trained(folder, 3)
    model, x = from_lists(record["model"]), corpus.load(folder).encode(VALIDATION)
    whole, first = (hidden_markov.log_probability(model, Pieces([part])) for part in (x, x[:1]))
    bits = (first - whole) / np.log(2) / (len(x) - 1)
    assert record["validation_bits_per_char"] == pytest.approx(bits, rel=1e-12)
    assert hidden_markov.bits_per_character(model, x) == record["validation_bits_per_char"]  # nothing is carried over


def test_training_depends_on_nothing_but_its_configuration(folder):
    once, again = (trained(folder, 4, seed=1) for _ in range(2))
    other = trained(folder, 4, seed=2)
    assert once.pop("seconds") > 0 and again.pop("seconds") > 0
    assert once == again
    assert once["model"] != other["model"]


def test_a_killed_training_goes_on_to_the_same_bits(folder, tmp_path):
    straight = trained(folder, 4)

    class Killed(Exception):
        pass

    class Fragile(Checkpoint):
        def tick(self, step, total, **shown):
            steps.append(step)
            if len(steps) == 9:
                raise Killed

    steps = []
    with pytest.raises(Killed):
        hmm.train(config(folder, 4), Fragile(tmp_path / "work", every=0))
    resumed = hmm.train(config(folder, 4), Fragile(tmp_path / "work"))
    assert steps == [*range(1, 10), *range(8, straight["iterations"] + 1)]  # 8 was kept, and its objective comes again
    assert resumed | {"seconds": 0} == straight | {"seconds": 0}


def test_the_script_prints_and_saves_its_results(folder, tmp_path, monkeypatch, in_this_process):
    monkeypatch.setattr(hmm, "STATES", [1, 2, 8])
    monkeypatch.setattr(hmm, "SEEDS", range(2))
    monkeypatch.setattr(hmm, "Config", partial(hmm.Config, most_iterations=5))
    record = record_of(hmm, tmp_path / "out", "--data", folder)
    found, printed = record["results"], record["printed"]
    assert [(run["states"], run["seed"]) for run in found["runs"]] == [(N, s) for N in (1, 2, 8) for s in (0, 1)]
    assert max(run["iterations"] for run in found["runs"]) == 5
    fittest = min(found["runs"][4:], key=lambda run: run["train_bits_per_char"])  # of 8 states, the most of all
    assert f"what 8 states learned (seed {fittest['seed']}, the one that fits the training text best)" in printed
    assert f"what 8 states write (seed {fittest['seed']})" in printed
    assert sum(found["share_of_text"]) == pytest.approx(1)
    np.testing.assert_allclose(np.sum(found["transition"], axis=1), 1)
    assert len(found["sample"]) == hmm.WRITTEN
    assert (tmp_path / "out" / "hmm.png").stat().st_size > 10_000


def test_a_sample_is_written_on_demand(folder, tmp_path, capsys, in_this_process):
    one = script.experiment(hmm)
    arguments = ["--sample", "40", "--states", "3", "--seed", "5", "--data", str(folder)]
    assert script.perform(one, arguments) == 0
    first = capsys.readouterr().out
    assert len(first) == 41
    assert script.perform(one, [*arguments, "--outputs", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out == first
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["hmm_sample.json", "hmm_sample.txt"]


def test_importing_needs_no_torch():
    code = "import sys, beyond.hmm; sys.exit('torch' in sys.modules or 'matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


def test_a_text_that_is_too_short_or_another_one_is_refused(tmp_path, write_corpus):
    with pytest.raises(UserError, match="1 character"):
        record_of(hmm, tmp_path / "out", "--data", write_corpus(TRAIN, "a"))
    with pytest.raises(UserError, match="the text has changed"):
        hmm.train(hmm.Config(1, 0, corpus.Corpus("ab", "ab").fingerprint), Checkpoint())
