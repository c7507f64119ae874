"""Files of character models: what comes back is what went in, and nothing else passes for one."""

import math
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from lab.errors import UserError
from layers import char_files, char_rnn

SETTINGS = {"cell": "LSTM", "seed": 3, "steps": 7, "hidden": 5, "forget_bias": 1.5}
TEXT = SimpleNamespace(characters=list("\nabcï😀"), fingerprint="this")


@pytest.fixture
def model():
    """Output weights that aren't those it began with."""
    made = char_rnn.build(SimpleNamespace(**SETTINGS), 7)
    torch.nn.init.ones_(made.linear.weight)
    return made


@pytest.fixture
def path(model, tmp_path):
    (tmp_path / "model.pt").write_bytes(char_files.pack(SETTINGS, TEXT, {"step": 4, "model": model.state_dict()}))
    return tmp_path / "model.pt"


def test_a_model_comes_back_with_what_is_needed_to_use_it(path, model):
    loaded, settings = char_files.load(path, TEXT)
    assert vars(settings) == {
        "cell": "LSTM",
        "hidden": 5,
        "seed": 3,
        "forget_bias": 1.5,
        "step": 4,
        "other_text": False,
    }
    for a, b in zip(loaded.parameters(), model.parameters(), strict=True):
        assert torch.equal(a, b)
    _, settings = char_files.load(path, SimpleNamespace(characters=TEXT.characters, fingerprint="other"))
    assert settings.other_text
    again, _ = char_files.unpack(path.read_bytes(), TEXT)
    assert all(torch.equal(a, b) for a, b in zip(again.parameters(), model.parameters(), strict=True))


def test_what_is_no_model_is_refused(path, model, tmp_path):
    with pytest.raises(UserError, match=r"can't read .*nowhere\.pt: No such file"):
        char_files.load(tmp_path / "nowhere.pt", TEXT)
    whole = path.read_bytes()
    middle = len(whole) // 2  # among the weights, where only a checksum can tell
    foreign = tmp_path / "foreign.pt"
    torch.save({"step": 3}, foreign)
    with torch.no_grad():
        model.linear.bias[2] = math.nan
    not_finite = char_files.pack(SETTINGS, TEXT, {"step": 4, "model": model.state_dict()})
    flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    for content in whole[:-500], b"", b"not a model", flipped, foreign.read_bytes(), not_finite:
        path.write_bytes(content)
        with pytest.raises(UserError, match=r"model\.pt is damaged, or not a model"):
            char_files.load(path, TEXT)


def test_a_model_of_other_characters_is_refused(path):
    with pytest.raises(UserError, match=r"model\.pt was trained on a text of other characters"):
        char_files.load(path, SimpleNamespace(characters=[*TEXT.characters, "€"], fingerprint="this"))


def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in tmp_path / "pipe", Path("/dev/zero"), tmp_path:
        with pytest.raises(UserError, match=r"can't read .*: it is not a file"):
            char_files.load(path, TEXT)
