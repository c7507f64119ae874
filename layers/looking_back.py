"""How far back a character model looks, measured in three ways on the same characters of a text.

    by history     how many bits a character costs when the model is given only the last d characters before it,
                   beginning with a state of zero
    by order       the same where all SHUFFLED characters before it are given, the words beyond the last d in random
                   order
    by gradient    how large the gradient of a character's loss is at the embedding of the character d before it

The first says what the past is worth, the second whether its order matters, the third what the weights are moved by.
A GPT is given no more than its window holds. A word goes up to the space after it; one that reaches into the last d
characters stays where it is.

Sources: Khandelwal et al., "Sharp nearby, fuzzy far away: how neural language models use context" (2018).
"""

import math
from contextlib import contextmanager

import torch
from torch import nn
from torch.nn import functional as F

from lab import script
from lab.errors import UserError
from layers.char_rnn import CHUNK, evaluating

HISTORIES = [2**n for n in range(11)]  # characters: 1 to 1,024
SHUFFLED = 128  # characters before one, as many as every model was trained on at once
SCORED = 1024  # characters whose bits are measured, and whose gradients are
DIFFERENTIATED = 256
AT_ONCE = 32  # characters whose gradients are taken side by side


def positions(length, count, histories):
    """So many positions in a text, at even distances, each with a whole history before it."""
    first = max(histories)
    if length <= first:
        raise ValueError(f"a text of {length} characters has none with {first} before it")
    return torch.linspace(first, length - 1, min(count, length - first)).long()


def before(ids, at, distance):
    """The characters before each position: (distance, positions)."""
    return ids[(at - distance + torch.arange(distance)[:, None]).to(ids.device)]


def mean_bits(model, read, y):
    """Bits per character of y (positions,) after read (time, positions), from a state of zero."""
    bits, at_once = [], 512
    with evaluating(model):
        for given, expected in zip(read.split(at_once, 1), y.split(at_once), strict=True):
            state = None
            for part in given.split(getattr(model, "window", CHUNK)):
                logits, state = model(part, state)
            bits.append(F.cross_entropy(logits[-1], expected, reduction="none").cpu().double() / math.log(2))
    return torch.cat(bits).mean().item()


def by_history(model, ids, histories, count=SCORED):
    """Bits for each history; what a window can't hold changes nothing."""
    at = positions(len(ids), count, histories)
    given = [min(distance, getattr(model, "window", distance)) for distance in histories]
    bits = {distance: mean_bits(model, before(ids, at, distance), ids[at.to(ids.device)]) for distance in set(given)}
    return [bits[distance] for distance in given]


def by_order(model, ids, histories, generator, spaces, count=SCORED, shuffled=SHUFFLED):
    """Bits for each history up to ``shuffled``: the words further back than that are in random order."""
    shuffled = min(shuffled, max(histories))
    at = positions(len(ids), count, histories)
    given, y = before(ids, at, shuffled), ids[at.to(ids.device)]
    bits = []
    for distance in (d for d in histories if d <= shuffled):
        far = shuffled - distance
        moved = given[:far].gather(0, words_shuffled(given[:far].cpu(), spaces, generator).to(ids.device))
        bits.append(mean_bits(model, torch.cat([moved, given[far:]]), y))
    return bits


def words_shuffled(ids, spaces, generator):
    """The order of characters (time, texts) in which each text's words are shuffled, but not one that hasn't ended."""
    ends = torch.isin(ids, torch.tensor(spaces, dtype=ids.dtype))
    word = ends.cumsum(0) - ends.long()  # the number of each character's word
    place = torch.rand(ids.shape, generator=generator).gather(0, word)
    place[word == ends.sum(0)] = 1.0  # behind all others
    return place.argsort(dim=0, stable=True)


@contextmanager
def rows_of_their_own(model, ids):
    """For a while the model's table of embeddings has a row for each of ids; gives their numbers, and the table."""
    table = model.embedding
    model.embedding = nn.Embedding.from_pretrained(table.weight.detach()[ids.flatten()], freeze=False)
    try:
        yield torch.arange(ids.numel(), device=ids.device).view_as(ids), model.embedding.weight
    finally:
        model.embedding = table


def by_gradient(model, ids, histories, count=DIFFERENTIATED, at_once=AT_ONCE):
    """The mean size of the gradient of a character's loss, in nats, at the embedding d characters back, d in histories.

    None where the model can't be given so much: nothing arrives there.
    """
    at = positions(len(ids), count, histories)
    longest = min(max(histories), getattr(model, "window", max(histories)))
    sizes = []
    training = model.training
    model.eval()
    for some in at.split(at_once):
        given, y = before(ids, some, longest), ids[some.to(ids.device)]
        with rows_of_their_own(model, given) as (numbers, rows):
            logits, _ = model(numbers)
            (gradient,) = torch.autograd.grad(F.cross_entropy(logits[-1], y, reduction="sum"), rows)
        sizes.append(gradient.view(longest, len(some), -1).double().norm(dim=2).cpu())  # (time, positions)
    model.train(training)
    mean = torch.cat(sizes, 1).mean(1)  # the last is of the character right before
    return [mean[-distance].item() if distance <= longest else None for distance in histories]


def histories_of(text):
    """The histories that the validation text is long enough for; a text that is too short for any is refused."""
    found = [d for d in HISTORIES if d < len(text.validation) // 2]
    if not found:
        has = script.counted(len(text.validation), "character")
        raise UserError(f"the validation text has {has}: to see how far back a model looks takes 4")
    return found


def measure(model, text, ids, seed):
    """All three of a model on a text's validation part, whose ids are on the model's device: lists by history."""
    generator, histories = torch.Generator().manual_seed(seed), histories_of(text)
    spaces = [number for number, character in enumerate(text.characters) if character.isspace()]
    return {
        "history": histories,
        "bits_per_char": by_history(model, ids, histories),
        "bits_per_char_where_the_rest_is_shuffled": by_order(model, ids, histories, generator, spaces),
        "gradient": by_gradient(model, ids, histories),
    }
