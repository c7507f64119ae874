"""What the heads of a GPT look at in a text: how far back, and whether at what followed the same character before.

A head that does the latter can copy: after a name's first letters it finds the rest where the name stood before.

Source: Olsson et al., "In-context learning and induction heads" (2022), for such heads.
"""

import torch

from layers.char_rnn import evaluating

WINDOWS = 64  # at even distances in the text, over which what a head does is averaged
PICTURED = 48  # characters of the picture of a head, the last of the first window
FAR = 96  # characters before a query from which on what a head does is averaged


def look(model, ids, windows=WINDOWS):
    """What each head does in windows of a text, what one would that looks at all characters alike, and a picture.

    The picture is of the head that most looks for the same character.
    """
    window = min(model.window, len(ids))
    starts = torch.linspace(0, len(ids) - window, min(windows, len(ids) - window + 1)).long()
    ids = ids[(starts + torch.arange(window)[:, None]).to(ids.device)]  # (time, windows)
    with evaluating(model):
        weights = model.attention_weights(ids).cpu()  # (block, windows, head, time, time)
    ids = ids.t().cpu()
    time = torch.arange(window)
    back = (time[:, None] - time).clamp(min=0).float()
    followed = torch.zeros(len(ids), window, window)
    followed[:, :, 1:] = (ids[:, :, None] == ids[:, None, :-1]).float()  # the one before is the query's own
    followed.tril_()
    rows = slice(min(FAR, window // 2), None)

    def about(w):
        """Of weights (windows, time, time)."""
        return {
            "characters_back": (w * back)[:, rows].sum(2).mean().item(),
            "at_what_followed_the_same": (w * followed)[:, rows].sum(2).mean().item(),
        }

    heads = [
        {"block": block, "head": head, **about(w)}
        for block, of_block in enumerate(weights, 1)
        for head, w in enumerate(of_block.unbind(1), 1)
    ]
    alike = torch.ones(window, window).tril_() / (time[:, None] + 1)
    most = max(heads, key=lambda one: one["at_what_followed_the_same"])
    part = slice(max(0, window - PICTURED), None)
    picture = weights[most["block"] - 1, 0, most["head"] - 1, part, part]
    picture = {"block": most["block"], "head": most["head"], "ids": ids[0, part].tolist(), "weights": picture.tolist()}
    return heads, about(alike.expand_as(followed)), picture


def tell(heads, alike):
    """A line for each head, and one for a head that looks at all characters alike."""
    names = ["block {block}, head {head}".format(**head) for head in heads]
    for name, about in zip([*names, "all characters alike"], [*heads, alike], strict=True):
        followed = f"{about['at_what_followed_the_same']:4.0%} at what followed the same character before"
        yield f"{name:20}: {about['characters_back']:5.1f} characters back; {followed}"


def draw(axes, picture, model):
    """The picture of a head: ``text`` is what was read, ``weights`` are rows of queries."""
    axes.imshow(picture["weights"], cmap="Greys", vmin=0)
    characters = [character if character.isprintable() else "·" for character in picture["text"]]
    axes.set_xticks(range(len(characters)), characters, fontsize=6)
    axes.set_yticks(range(len(characters)), characters, fontsize=6)
    title = f"{model}, block {picture['block']}, head {picture['head']}: where it looks"
    axes.set(xlabel="the character looked at", ylabel="after having read", title=title)
    axes.grid(visible=False)
