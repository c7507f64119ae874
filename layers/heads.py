"""What the heads of a GPT look at in a text: how far back, and whether at what followed the same character before.

A head that does the latter can copy: after a name's first letters it finds the rest where the name stood before.

Source: Olsson et al., "In-context learning and induction heads" (2022), for such heads.
"""

import torch

from layers.char_rnn import evaluating

PICTURED = 48  # characters of the picture of a head, the last of the window
FAR = 96  # characters before a query from which on what a head does is averaged


def look(model, ids):
    """What each head does in one window of a text, and a picture of the one that most looks for the same character."""
    with evaluating(model):
        ids = ids[: model.window]
        weights = model.attention_weights(ids[:, None])[:, 0].cpu()  # (block, head, time, time)
    ids = ids.cpu()
    time = torch.arange(len(ids))
    back = (time[:, None] - time).clamp(min=0).float()
    followed = torch.zeros(len(ids), len(ids))
    followed[:, 1:] = (ids[:, None] == ids[None, :-1]).float()  # the character before this one is the query's own
    followed.tril_()
    rows = slice(min(FAR, len(ids) // 2), None)
    heads = [
        {
            "block": block,
            "head": head,
            "characters_back": (w * back)[rows].sum(1).mean().item(),
            "at_what_followed_the_same": (w * followed)[rows].sum(1).mean().item(),
        }
        for block, of_block in enumerate(weights, 1)
        for head, w in enumerate(of_block, 1)
    ]
    most = max(heads, key=lambda one: one["at_what_followed_the_same"])
    part = slice(max(0, len(ids) - PICTURED), None)
    picture = weights[most["block"] - 1, most["head"] - 1, part, part]
    return heads, {**most, "ids": ids[part].tolist(), "weights": picture.tolist()}
