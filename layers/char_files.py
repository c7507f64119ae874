"""Character models in files: weights beside all that is needed to use them, the settings and the characters known."""

import io
from pathlib import Path
from types import SimpleNamespace
from zipfile import ZipFile

import torch

from lab.errors import UserError
from layers.char_lm import build

NEEDED = ("cell", "hidden", "seed", "forget_bias")  # settings, to build the model again


def pack(settings, text, weights):
    """A model as a file's content: its settings, the characters it knows, and ``weights``, {"step": …, "model": …}."""
    content = io.BytesIO()
    torch.save({"config": settings, "characters": "".join(text.characters), **weights}, content)
    return content.getvalue()


def load(path, text):
    """The model in a file and its settings, with the ``step`` of its weights; for a text of the same characters."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise UserError(f"can't read {path}: {error.strerror}") from None
    return unpack(content, text, path)


def unpack(content, text, name="the model"):
    """What `load` returns, from what `pack` packed."""
    content = io.BytesIO(content)
    try:
        if ZipFile(content).testzip():  # torch doesn't look at the checksums
            raise ValueError
        content.seek(0)
        kept = torch.load(content, map_location="cpu", weights_only=True)
        characters = kept["characters"]
        settings = SimpleNamespace(**{key: kept["config"][key] for key in NEEDED}, step=kept["step"])
        model = build(settings, len(characters) + 1)
        model.load_state_dict(kept["model"])
    except Exception:  # a damaged or foreign file can raise anything
        raise UserError(f"{name} is damaged, or not a model that charlm.py saved") from None
    if characters != "".join(text.characters):
        raise UserError(f"{name} was trained on a text of other characters: name that text's folder with --data")
    return model, settings
