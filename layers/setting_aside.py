"""A text to stop and to tune by, set aside from a training text, so that the validation text is only scored.

Whole posts are set aside where the posts are there; characters at the beginning of a post have no history in any case.
Of a text without posts it is the end, from a blank line on.
"""

from cleaning import posts as blog
from lab.errors import UserError

SHARE = 0.05  # of a training text without posts: about as much as is set aside


def posts(train, folder, held_out, names):
    """A training text without the posts of these names, and those posts. ``held_out`` are the posts it is without."""
    found, _ = blog.gather(folder)
    if blog.split(found, held_out)[0] != train:
        raise UserError(f"the posts in {folder} are not those that the training text was made of: restore them")
    return blog.split({name: post for name, post in found.items() if name not in held_out}, names)


def end(train):
    """A training text without its end, and that end, of at least one character."""
    cut = int((1 - SHARE) * len(train))
    blank = train.rfind("\n\n", 1, cut)
    return (train[: blank + 2], train[blank + 2 :]) if blank > 0 else (train[:cut], train[cut:])
