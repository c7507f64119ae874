"""A blog's posts, in Markdown or MDX, as plain text: read from a folder, cleaned of markup, some of them held out.

Frontmatter, imports and exports, comments and tags go (the text inside a pair of tags stays). Prose, mathematics and
code stay exactly as written: inside a code fence, inline code or mathematics nothing is markup, whatever it looks like.
A line that held only what goes, goes with it; a blank line on both sides of it becomes one.

The grammar is that of MDX (mdxjs.com) with dollar mathematics, read generously, so that plain Markdown passes too:
<!-- HTML comments --> go, <https://links> stay, and a dollar that can't open or close mathematics is money.
"""

import difflib
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from lab.errors import UserError

DEPTH = 6  # brackets in brackets that an attribute or an export may hold

# What stays. The scanner takes whatever begins first, so whatever looks like markup inside these is never seen.
BLANK = r"\n[ \t]*\n"
FENCED = (  # may be indented, quoted or in a list; ends at a fence at least as long, or with the post
    r"^[ \t>]*(?:(?:[-*+]|\d+[.)])[ \t]+)?(?P<fence>(?P<tick>[`~])(?P=tick){2,}+)(?!(?<=`)[^\n]*`)[^\n]*"
    r"(?:\n(?![ \t>]*(?P=fence)(?P=tick)*[ \t]*$)[^\n]*)*+(?:\n[^\n]*)?"
)
CODE = rf"(?<!(?<!\\)`)(?P<ticks>`++)(?:(?!{BLANK})[\s\S])+?(?<!`)(?P=ticks)(?!`)"
MATH = (  # a dollar and the next one, unless that spells money: "$5 to $10" or "$5 or so, $ and cent"
    rf"\$\$[\s\S]+?\$\$|\$(?!\$)(?P<digit>\d)?+(?:\\.|(?!{BLANK})[^$`\\])*?(?(digit)(?<=\S))\$(?!\d)"
)
ESCAPED = r"\\[!-/:-@\[-`{-~]"

# What goes.
BLOCK_COMMENT = r"(?>/\*[\s\S]*?\*/)"
OPAQUE = rf"\"(?:\\.|[^\"\\\n])*+\"|'(?:\\.|[^'\\\n])*+'|`(?:\\[\s\S]|[^`\\])*+`|{BLOCK_COMMENT}|//[^\n]*"
BRACES = BRACKETS = "(?!)"
for _ in range(DEPTH):
    BRACES = rf"\{{(?:{OPAQUE}|[^{{}}]|{BRACES})*+\}}"
    BRACKETS = rf"[(\[{{](?:{OPAQUE}|[^()\[\]{{}}]|{BRACKETS})*+[)\]}}]"
ATTRIBUTE = rf"\s+[\w:@][\w.:@-]*(?:\s*=\s*(?:\"[^\"]*\"|'[^']*'|{BRACES}|[^\s\"'=<>`{{}}]+))?|\s*{BRACES}"
TAG = rf"<(?:[A-Za-z][\w.:-]*(?:{ATTRIBUTE})*+\s*/?|/[A-Za-z][\w.:-]*\s*|/?)>"
COMMENT = rf"\{{\s*(?:{BLOCK_COMMENT}\s*)+\}}|<!--[\s\S]*?-->"
GONE = rf"(?:{TAG}|{COMMENT})"
NAMES = r"(?:\*\s*as\s+[\w$]+|\{[^{}]*\})"
IMPORT = (
    rf"import\b\s*(?:(?:type\s+)?(?:[\w$]+(?:\s*,\s*{NAMES})?|{NAMES})\s*from\s*)?(?:'[^'\n]*'|\"[^\"\n]*\")"
    r"(?:\s+with\s*\{[^{}]*\})?[ \t]*;?[ \t]*(?://[^\n]*)?(?:\n|\Z)"
)
EXPORT = (  # up to a blank line that isn't inside brackets
    r"export(?:\s+(?:default|const|let|var|function|async|class|type|interface|enum)\b|(?=\s*[{*]))"
    rf"(?:{OPAQUE}|{BRACKETS}|[^\n]|\n(?![ \t]*(?:\n|\Z)))*+(?:\n|\Z)"
)
MODULE = rf"(?:(?:\A|(?<=\n\n))(?:{IMPORT}|{EXPORT})++|(?:{IMPORT})++)"
LINES = rf"(?:^(?:[ \t]*(?:{GONE}[ \t]*)++(?:\n|\Z)|{MODULE}))++"

FRONTMATTER = r"\A(?P<bar>---|\+\+\+)[ \t]*\n(?:[^\n]*\n)*?(?P=bar)[ \t]*(?:\n|\Z)"
SCANNER = (
    rf"(?P<fenced>{FENCED})|(?P<code>{CODE})|(?P<math>{MATH})|(?P<escaped>{ESCAPED})"
    rf"|^[ \t]*\n{LINES}(?=[ \t]*$)|{LINES}|(?<=\S)[ \t]+{GONE}(?=\s|\Z)|{GONE}"
)


def clean(text: str) -> str:
    """A post's text without its markup and without blank lines around it."""

    def stays(match):
        return match[0] if any(match[kind] for kind in ("fenced", "code", "math", "escaped")) else ""

    body = re.sub(FRONTMATTER, "", text, count=1).lstrip("\n")
    return re.sub(SCANNER, stays, body, flags=re.MULTILINE).strip("\n")


def shares(text: str) -> dict[str, float]:
    """How much of a cleaned text is code blocks, inline code, mathematics and prose."""
    lengths = Counter()
    for match in re.finditer(SCANNER, text, flags=re.MULTILINE):
        lengths.update({kind: len(match[kind]) for kind in ("fenced", "code", "math") if match[kind]})
    named = {"code blocks": "fenced", "inline code": "code", "mathematics": "math"}
    found = {name: lengths[kind] / len(text) for name, kind in named.items()}
    return found | {"prose": 1 - sum(found.values())}


def split(posts: dict[str, str], held_out: Sequence[str]) -> tuple[str, str]:
    """The cleaned text of the posts that aren't held out and that of those that are; a blank line separates posts."""
    for name in held_out:
        if name not in posts:
            near = difflib.get_close_matches(name, posts, n=3, cutoff=0.4) or list(posts)[:3]
            raise UserError(f"there is no post {name!r} to hold out; near it are {', '.join(near)}")
    texts = {name: clean(text) for name, text in posts.items()}
    parts = []
    for purpose, names in (("train on", texts.keys() - set(held_out)), ("validate on", set(held_out))):
        part = [text for name, text in texts.items() if name in names and text]
        if not part:
            raise UserError(f"no text is left to {purpose} (posts: {len(posts)} in all, {len(names)} of them for that)")
        parts.append("\n\n".join(part) + "\n")
    return parts[0], parts[1]


def read_posts(folder: Path) -> dict[str, str]:
    """The .md and .mdx posts of a folder and of its folders, by name, in the order of their paths."""
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder} to read posts from")
    paths = [
        path.relative_to(folder)
        for path in folder.rglob("*")
        if path.suffix.lower() in (".md", ".mdx") and path.is_file()
    ]
    paths = sorted((path for path in paths if not any(part.startswith(".") for part in path.parts)), key=Path.as_posix)
    if not paths:
        raise UserError(f"there are no .md or .mdx files in {folder}")
    names = [path.with_suffix("").as_posix() for path in paths]
    name, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise UserError(f"{folder} has two posts called {name!r}, one .md and one .mdx: rename one of them")
    return {name: read(folder / path) for name, path in zip(names, paths, strict=True)}


def read(path: Path) -> str:
    """A file's text, without byte order mark, its lines ending in newlines."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UserError(f"can't read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 text: wrong byte at offset {error.start}; save it as UTF-8") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")
