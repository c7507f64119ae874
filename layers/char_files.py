"""Character models in files: weights beside all that is needed to use them, the settings and the characters known."""

import io
from types import SimpleNamespace
from zipfile import ZipFile

import torch

from lab import results
from lab.errors import UserError
from layers.char_lm import build

NEEDED = ("cell", "hidden", "seed", "forget_bias")  # settings, to build the model again


def pack(settings, text, weights):
    """A model as a file's content: its settings, the characters it knows, and ``weights``, {"step": …, "model": …}."""
    content = io.BytesIO()
    about = {"config": settings, "characters": "".join(text.characters), "text": text.fingerprint}
    torch.save(about | weights, content)
    return content.getvalue()


def load(path, text):
    """The model in a file and its settings, with the ``step`` of its weights; for a text of the same characters.

    The setting ``other_text`` is whether it learned from another one, of which some may be validated on here.
    """
    return unpack(results.read(path), text, path)


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
        settings.other_text = kept.get("text") != text.fingerprint
        model = build(settings, len(characters) + 1)
        model.load_state_dict(kept["model"])
        if not all(weights.isfinite().all() for weights in model.parameters()):
            raise ValueError
    except Exception:  # a damaged or foreign file can raise anything
        raise UserError(f"{name} is damaged, or not a model that charlm.py saved") from None
    if characters != "".join(text.characters):
        raise UserError(f"{name} was trained on a text of other characters: name that text's folder with --data")
    return model, settings
