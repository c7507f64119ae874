"""The text that the language models learn from: thirty posts without their markup, frozen.

    posts/*.mdx  ->  blog_train.txt   every post but two, in file order, separated by one blank line
                     blog_val.txt     25-error-bars and 28-labels-without-timestamps, whole

Frontmatter, imports and exports, comments and tags go (the text inside a pair of tags stays); prose, mathematics and
code stay exactly as written: inside a code fence, inline code or mathematics nothing is markup, whatever it looks like.
A line that held only what goes, goes with it; a blank line on both sides of it becomes one.

    python corpus.py                                                    0.3 s   verify and describe the frozen text
    python corpus.py --build                                            make it again from data/posts
    python corpus.py --posts DIR --held-out one,two --into ANOTHER      make one from your own .md and .mdx posts

Posts are taken from DIR and its folders (not hidden ones) in the order of their paths; a post's name is its path in DIR
without the suffix. Every script that reads a text takes ``--data ANOTHER``.

Prints, at the end:

    the text itself
    never seen: ∅ 32 ℓ 19 ø 15 ƒ 14 ‰ 12 ⟨ 4 ⟩ 4 ß 4 ⊕ 4 § 3 á 2 ť 2 æ 1
    train     : 36.5% code blocks, 0.2% inline code, 4.6% mathematics, 58.7% prose
    validation: 37.3% code blocks, 0.3% inline code, 4.1% mathematics, 58.3% prose
    verified: 33 files are those of SHA256SUMS
    fingerprint d495eaa7c1fc5c3108afb693ebffbef0c50dd7b405963825484b5eda0b6f674d

Sources: the grammar is that of MDX (mdxjs.com) with dollar mathematics, read generously, so that plain Markdown passes
too: <!-- HTML comments --> go, <https://links> stay, and a dollar that can't open or close mathematics is money.
"""

import argparse
import difflib
import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from lab import script
from lab.results import Results, write_whole
from lab.script import UserError

DATA = script.ROOT / "data"
HELD_OUT = ("25-error-bars", "28-labels-without-timestamps")
TRAIN, VALIDATION, SUMS = "blog_train.txt", "blog_val.txt", "SHA256SUMS"
UNSEEN = "\N{REPLACEMENT CHARACTER}"  # how decode writes a character that training never showed
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


def build(posts: dict[str, str], held_out: Sequence[str]) -> tuple[str, str]:
    """The training and the validation text from posts by name, in their order."""
    for name in held_out:
        if name not in posts:
            near = difflib.get_close_matches(name, posts, n=3, cutoff=0.4) or list(posts)[:3]
            raise UserError(f"there is no post {name!r} to hold out; near it are {', '.join(near)}")
    texts = {name: clean(text) for name, text in posts.items()}
    parts = []
    for purpose, names in (("train on", texts.keys() - set(held_out)), ("validate on", set(held_out))):
        part = [text for name, text in texts.items() if name in names and text]
        if not part:
            raise UserError(
                f"no text is left to {purpose}: of {script.counted(len(posts), 'post')}, {len(names)} for it"
            )
        parts.append("\n\n".join(part) + "\n")
    return parts[0], parts[1]


def kinds(text: str) -> dict[str, float]:
    """How much of a cleaned text is code blocks, inline code, mathematics and prose."""
    lengths = Counter()
    for match in re.finditer(SCANNER, text, flags=re.MULTILINE):
        lengths.update({kind: len(match[kind]) for kind in ("fenced", "code", "math") if match[kind]})
    shares = {
        "code blocks": lengths["fenced"] / len(text),
        "inline code": lengths["code"] / len(text),
        "mathematics": lengths["math"] / len(text),
    }
    return shares | {"prose": 1 - sum(shares.values())}


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


@dataclass(frozen=True)
class Corpus:
    """A training and a validation text, and numbers for characters: training's in order, then one for all others."""

    train: str
    validation: str

    @cached_property
    def characters(self) -> tuple[str, ...]:
        """The distinct characters of the training text, sorted."""
        return tuple(sorted(set(self.train)))

    @property
    def size(self) -> int:
        """V, the size of the vocabulary: the training characters and one for every unseen character."""
        return len(self.characters) + 1

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of both texts."""
        return hashlib.sha256(f"{self.train}\0{self.validation}".encode()).hexdigest()

    @cached_property
    def _code_points(self) -> np.ndarray:
        return code_points("".join(self.characters))

    def encode(self, text: str) -> np.ndarray:
        """The number of each character of a text; V - 1 for all that training never showed."""
        points = code_points(text)
        ids = np.searchsorted(self._code_points, points).clip(max=self.size - 2)
        return np.where(self._code_points[ids] == points, ids, self.size - 1)

    def decode(self, ids) -> str:
        """The text of numbers."""
        points = np.append(self._code_points, ord(UNSEEN))[np.asarray(ids, dtype=np.int64)]
        return points.astype("<u4").tobytes().decode("utf-32-le")


def code_points(text: str) -> np.ndarray:
    """The Unicode number of each character."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")


def load(folder: Path | None = None) -> Corpus:
    """The corpus in a folder; without one, the frozen text."""
    folder = folder or DATA
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder} to read a text from; corpus.py --posts makes one")
    texts = {name: read(folder / name) for name in (TRAIN, VALIDATION)}
    for name, purpose in (TRAIN, "learn from"), (VALIDATION, "validate on"):
        if not texts[name]:
            raise UserError(f"{folder / name} is empty: there is nothing to {purpose}")
    return Corpus(texts[TRAIN], texts[VALIDATION])


def add_argument(parser):
    """Give a script the option --data DIR, for ``load``."""
    parser.add_argument(
        "--data",
        metavar="DIR",
        type=Path,
        help=f"read {TRAIN} and {VALIDATION} there (default: data/, the frozen text)",
    )


def checksums(folder: Path) -> dict[str, str]:
    """SHA-256 of the texts in a folder and of what they come with, by path in the folder."""
    paths = [folder / name for name in (TRAIN, VALIDATION, "published.json")] + sorted(folder.glob("posts/*.mdx"))
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in paths
        if path.is_file()
    }


def verify(folder: Path) -> str:
    """Hold a folder's files to its SHA256SUMS: what was found, in words."""
    if not (folder / SUMS).exists():
        return f"not verified: there is no {SUMS} beside the texts"
    found = checksums(folder)
    listed = {name: digest for digest, _, name in (line.partition("  ") for line in read(folder / SUMS).splitlines())}
    wrong = sorted(name for name in found.keys() | listed.keys() if found.get(name) != listed.get(name))
    if wrong:
        are = "is" if len(wrong) == 1 else "are"
        raise UserError(
            f"{folder}: {', '.join(wrong)} {are} not as {SUMS} says: restore what was, or build the text again"
        )
    return f"verified: {len(found)} files are those of {SUMS}"


def write(folder: Path, train: str, validation: str):
    """Write the two texts, then the checksums."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / TRAIN, train.encode())
        write_whole(folder / VALIDATION, validation.encode())
        sums = "".join(f"{digest}  {name}\n" for name, digest in checksums(folder).items())
        write_whole(folder / SUMS, sums.encode())
    except OSError as error:
        raise UserError(f"can't write in {folder}: {error.strerror}; name a folder that can be written") from None


def shown(character: str) -> str:
    """The character, or its escape where nobody would see it or a terminal would obey it."""
    return character if character.isprintable() and not character.isspace() else ascii(character)


def names(text: str) -> list[str]:
    """Posts' names with commas between them, as an argument's type."""
    found = [name.strip() for name in text.split(",") if name.strip()]
    if not found:
        raise argparse.ArgumentTypeError(f"must be names of posts with commas between them, not {text!r}")
    return found


def parse(argv):
    parser = script.Arguments(__doc__)
    add_argument(parser)
    parser.add_argument("--build", action="store_true", help="make the frozen text again from data/posts")
    parser.add_argument("--posts", metavar="DIR", type=Path, help="make a text from these posts")
    parser.add_argument("--held-out", metavar="A,B", type=names, help="the names of the posts to validate on")
    parser.add_argument("--into", metavar="DIR", type=Path, help="where the two texts go")
    arguments = parser.parse_args(argv)
    own = [arguments.posts, arguments.held_out, arguments.into]
    if any(own) and not all(own):
        parser.error("--posts, --held-out and --into belong together")
    if (arguments.data is not None) + arguments.build + any(own) > 1:
        parser.error("give one of --data, --build and --posts")
    if arguments.into and arguments.into.resolve() == DATA.resolve():
        parser.error("data/ holds the frozen text, which never changes: name another folder")
    return arguments


def main(argv=None):
    arguments = parse(argv)
    folder = arguments.data or arguments.into or DATA
    if arguments.build:
        write(DATA, *build(read_posts(DATA / "posts"), HELD_OUT))
    elif arguments.posts:
        write(folder, *build(read_posts(arguments.posts), arguments.held_out))
    verified = verify(folder)
    text = load(folder)
    results = Results("corpus", arguments, corpus=text.fingerprint)

    unseen = Counter(character for character in text.validation if character not in text.characters)
    results.print(
        f"train {len(text.train):,} characters, validation {len(text.validation):,};"
        f" {len(text.characters)} distinct characters"
    )
    results.print(f"validation characters never seen in training: {unseen.total()} of {len(text.validation):,}")
    results.record(
        train_characters=len(text.train),
        validation_characters=len(text.validation),
        distinct_characters=len(text.characters),
        validation_characters_never_seen_in_training=unseen.total(),
    )

    results.print()
    results.print("the text itself")
    results.print(f"never seen: {' '.join(f'{shown(character)} {count}' for character, count in unseen.most_common())}")
    for name, part in ("train", text.train), ("validation", text.validation):
        shares = kinds(part)
        results.print(f"{name:<10}: " + ", ".join(f"{100 * share:.1f}% {kind}" for kind, share in shares.items()))
        results.record(**{f"share_of_{name}": shares})
    results.print(verified)
    results.print(f"fingerprint {text.fingerprint}")
    results.record(unseen=dict(unseen.most_common()), fingerprint=text.fingerprint)
    results.save()


if __name__ == "__main__":
    script.run(main)
