"""A blog's posts: found in a folder, cleaned of markup, some of them held out, and what became of them.

A post is a file in Markdown or MDX. Its name is its path in the folder without the suffix, in Unicode's composed form:
systems write the é of a file's name in different ways. Posts follow each other in the order of their paths.
"""

import difflib
import os
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from cleaning import markdown
from lab.errors import UserError

MARKDOWN = (".md", ".markdown", ".mdown", ".mdwn", ".mkd", ".mkdn", ".mkdown")
MDX = ".mdx"
SHOWN = 10  # names in a line


@dataclass(frozen=True)
class Post:
    """A post as it was written, and what is left of it as a text to learn from."""

    text: str
    mdx: bool

    @cached_property
    def cleaned(self) -> str:
        return markdown.clean(self.text, self.mdx)

    @property
    def loss(self) -> float:
        """The share of its characters that went."""
        return 1 - len(self.cleaned) / max(len(self.text), 1)


def read(path: Path) -> str:
    """A file's text, without byte order mark, its lines ending in newlines."""
    try:
        if path.exists() and not path.is_file():  # a pipe may never send anything, and a device never end
            raise UserError(f"can't read {path}: it isn't a file with a text in it")
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UserError(f"can't read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 text: wrong byte at offset {error.start}; save it as UTF-8") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def gather(folder: Path) -> tuple[dict[str, Post], dict[str, list[str]]]:
    """The posts of a folder and of its folders, by name; and the paths of everything else in it, by why it is none."""
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder} to read posts from")
    posts, paths, unused = {}, {}, {}
    for shown, path in sorted((composed(path.relative_to(folder).as_posix()), path) for path in _below(folder)):
        if why := _not_a_post(path):
            unused.setdefault(why, []).append(shown)
            continue
        name = shown.removesuffix(path.suffix)
        if name in posts:
            raise UserError(f"{folder} has two posts called {name!r}, {paths[name]} and {shown}: rename one of them")
        posts[name], paths[name] = Post(read(path), path.suffix.lower() == MDX), shown
    if not posts:
        raise UserError(f"there are no .md or .mdx files in {folder}")
    return posts, unused


def _below(folder: Path) -> Iterator[Path]:
    """The files in a folder and in its folders, and the folders whose files aren't looked at."""

    def refuse(error):
        raise UserError(f"can't read {error.filename}: {error.strerror}")

    for where, folders, files in os.walk(folder, onerror=refuse):
        left = [name for name in folders if name.startswith(".") or os.path.islink(os.path.join(where, name))]
        folders[:] = set(folders) - set(left)
        yield from (Path(where, name) for name in left + files)


def _not_a_post(path: Path) -> str | None:
    """Why a path isn't a post's, if it isn't."""
    if path.name.startswith("."):
        return "hidden"
    if os.path.isdir(path):
        return "a link to a folder"
    if path.suffix.lower() not in (*MARKDOWN, MDX):
        return "not Markdown"
    return None if os.path.isfile(path) else "not a file with a text in it"


def composed(name: str) -> str:
    """A name in the one form that all names here have; bytes that aren't UTF-8 are written as escapes."""
    return unicodedata.normalize("NFC", name.encode(errors="backslashreplace").decode())


def chosen(text: str, posts: dict[str, Post]) -> list[str]:
    """The posts named in a text, with commas between them. Names may hold commas too: the longest that fits counts."""
    parts, found = composed(text).split(","), []
    while parts:
        names = [",".join(parts[:count]).strip() for count in range(len(parts), 0, -1)]
        name = next((name for name in names if name in posts), names[-1])
        if name and name not in posts:
            near = difflib.get_close_matches(name, posts, n=3, cutoff=0.4) or list(posts)[:3]
            raise UserError(f"there is no post {name!r} to hold out; near it are {', '.join(near)}")
        found += [name] if name else []
        del parts[: len(parts) - names.index(name)]
    return found


def split(posts: dict[str, Post], held_out: list[str]) -> tuple[str, str]:
    """The cleaned text of the posts that aren't held out and that of those that are; a blank line separates posts."""
    parts = []
    for purpose, names in (("train on", posts.keys() - set(held_out)), ("validate on", set(held_out))):
        part = [post.cleaned for name, post in posts.items() if name in names and post.cleaned]
        if not part:
            raise UserError(f"no text is left to {purpose} (posts: {len(posts)} in all, {len(names)} of them for that)")
        parts.append("\n\n".join(part) + "\n")
    return parts[0], parts[1]


def account(posts: dict[str, Post], unused: dict[str, list[str]], held_out: list[str]) -> dict:
    """What became of the posts and of the files beside them."""
    empty = [name for name, post in posts.items() if not post.cleaned]
    written = sum(len(post.text) for post in posts.values())
    return {
        "used": len(posts) - len(empty),
        "held_out": len(set(held_out) - set(empty)),
        "not_used": unused | ({"nothing is left of it": empty} if empty else {}),
        "share_that_went": 1 - sum(len(post.cleaned) for post in posts.values()) / written,
        "more_than_half_went": {name: post.loss for name, post in posts.items() if post.cleaned and post.loss > 0.5},
    }


def tell(account: dict) -> Iterator[str]:
    """The account in lines."""
    yield f"used: {account['used']:,}, of which {account['held_out']:,} held out"
    for why, names in account["not_used"].items():
        if why == "not Markdown":  # pictures, mostly: how many of each kind says it
            kinds = Counter(Path(name).suffix or "without a suffix" for name in names)
            names = [f"{count:,} {kind}" for kind, count in kinds.most_common()]
        more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
        yield f"not used: {', '.join(map(_line, names[:SHOWN]))}{more} ({why})"
    yield f"cleaning took {100 * account['share_that_went']:.1f}% of the characters"
    for name, loss in account["more_than_half_went"].items():
        yield f"{_line(name)} lost {100 * loss:.1f}% of its characters: is that all markup?"


def _line(name: str) -> str:
    return name if name.isprintable() else ascii(name)
