"""Every character model by its name, recurrent or GPT: built, scored and written from by the same calls.

What differs is how a text is read. A recurrent model carries its state from the first character to the last. A GPT
reads windows, many side by side (layers/char_gpt.py).
"""

from layers import char_gpt, char_rnn
from layers.char_gpt import GPT, SIZES
from layers.char_rnn import estimate, evaluating

CELLS = [*char_rnn.LAYERS, *SIZES]


def build(settings, vocabulary):
    """The untrained model of ``settings.cell`` and ``seed``; the other settings are those of char_rnn.build."""
    if settings.cell in SIZES:
        return char_gpt.build(settings.cell, settings.seed, vocabulary)
    return char_rnn.build(settings, vocabulary)


def score_text(model, ids):
    """Bits of each character of a text after the first, in float64: (time,)."""
    with evaluating(model):
        if isinstance(model, GPT):
            return char_gpt.score_text(model, ids)
        return char_rnn.score(model, ids[:-1, None], ids[1:, None])[:, 0]


def evaluate(model, ids):
    """Exact bits per character of a text, read from end to end, and how many were scored: all but the first."""
    bits = score_text(model, ids)
    return bits.mean().item(), len(bits)


def generate(model, prompt, count, temperature, generator):
    """The ids of a continuation, see char_rnn.generate; a GPT keeps its keys and values."""
    of_kind = char_gpt if isinstance(model, GPT) else char_rnn
    return of_kind.generate(model, prompt, count, temperature, generator)


def flops(model, characters):
    """What the products of a training step on so many characters take, a multiply-add counted as two.

    Each weight of a product is used once forward and twice backward: for each character, but that of the input only for
    each of the vocabulary, since on a CPU what it makes of an embedding is looked up (layers/cells.py). A GPT's
    attention has products beside those.
    """
    if isinstance(model, GPT):
        return model.flops(characters)
    vocabulary, total = model.embedding.weight.shape[0], model.linear.weight.numel() * characters
    for name, p in model.rnn.named_parameters():
        if "weight" in name:
            total += p.numel() * (vocabulary if "_ih_" in name or "input" in name else characters)
    return 3 * 2 * total


__all__ = ["CELLS", "build", "estimate", "evaluate", "flops", "generate", "score_text"]
