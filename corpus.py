"""The text that the language models learn from: thirty posts without their markup, frozen.

    posts/*.mdx  ->  blog_train.txt   every post but two, in file order, separated by one blank line
                     blog_val.txt     25-error-bars and 28-labels-without-timestamps, whole

Prose, mathematics and code stay exactly as written; frontmatter, imports, exports, comments and tags go. The rules are
in cleaning/markdown.py.

    python corpus.py                                                    0.3 s   verify and describe the frozen text
    python corpus.py --build                                            make it again from data/posts
    python corpus.py --posts DIR --held-out one,two --into ANOTHER      make one from your own .md and .mdx posts

Posts are taken from DIR and its folders (not hidden ones) in the order of their paths; a post's name is its path in DIR
without the suffix. What became of them is told at the end: which files weren't used and why, and how much of the
characters was markup. Every script that reads a text takes ``--data ANOTHER``; without it, it reads the frozen text,
and refuses one whose checksums aren't those of SHA256SUMS.

Prints, at the end:

    the text itself
    never seen: ∅ 32 ℓ 19 ø 15 ƒ 14 ‰ 12 ⟨ 4 ⟩ 4 ß 4 ⊕ 4 § 3 á 2 ť 2 æ 1
    train     : 36.5% code blocks, 0.2% inline code, 4.6% mathematics, 58.7% prose
    validation: 37.3% code blocks, 0.3% inline code, 4.1% mathematics, 58.3% prose
    verified: 33 files are those of SHA256SUMS
    fingerprint d495eaa7c1fc5c3108afb693ebffbef0c50dd7b405963825484b5eda0b6f674d

This file is longer than most because it has two readers: the command above, and every script that imports ``load`` and
``Corpus``.
"""

import argparse
import hashlib
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from cleaning import markdown, posts
from lab import results, script
from lab.errors import ROOT, UserError, note, shown

DATA = ROOT / "data"
HELD_OUT = ("25-error-bars", "28-labels-without-timestamps")
TRAIN, VALIDATION, SUMS = "blog_train.txt", "blog_val.txt", "SHA256SUMS"
TEXTS = (TRAIN, VALIDATION)
BESIDE = ("published.json", "posts/*.mdx")  # what else data/ has, and SHA256SUMS the checksums of
SET_ASIDE = 7  # every so-manyth training post can be set aside to choose by, or the last such part of another text
UNSEEN = "\N{REPLACEMENT CHARACTER}"  # how decode writes a character that training never showed

KINDS = {"*": "corpus"}


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
    """The corpus in a folder; without one, the frozen text, whose checksums have to be right."""
    folder = folder or DATA
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder} to read a text from; corpus.py --posts makes one")
    texts = {name: posts.read(folder / name) for name in TEXTS}
    for name, purpose in (TRAIN, "learn from"), (VALIDATION, "validate on"):
        if not texts[name]:
            raise UserError(f"{folder / name} is empty: there is nothing to {purpose}")
    if folder.resolve() == DATA.resolve():
        verify(folder, TEXTS)
    return Corpus(texts[TRAIN], texts[VALIDATION])


def load_to_score(folder: Path | None = None) -> Corpus:
    """The same for a script that scores every validation character after the first."""
    text = load(folder)
    if len(text.validation) < 2:
        raise UserError("the validation text has 1 character; it takes 2, since the first is only context")
    return text


def set_aside(folder: Path | None = None, every: int = SET_ASIDE) -> Corpus | None:
    """The training text of ``load`` parted in two, to choose by without looking at the validation text.

    Of the frozen text whole posts are set aside, the first and after it one of so many; of another text the last part
    of as many. None if it is too short to be parted.
    """
    if folder is None or folder.resolve() == DATA:
        found, _ = posts.gather(DATA / "posts")
        own = {name: post for name, post in found.items() if name not in HELD_OUT}
        return Corpus(*posts.split(own, list(own)[::every]))
    train = load(folder).train
    cut = len(train) - max(2, len(train) // every)
    return Corpus(train[:cut], train[cut:]) if cut > 0 else None


def add_argument(parser):
    """Give a script the option --data DIR, for ``load``."""
    parser.add_argument(
        "--data",
        metavar="DIR",
        type=script.folder,
        help=f"read {TRAIN} and {VALIDATION} there (default: data/, the frozen text)",
    )


def checksums(folder: Path, files) -> dict[str, str]:
    """SHA-256 of a folder's files, by path in the folder. ``files`` are paths or patterns of paths."""
    paths = [path for pattern in files for path in sorted(folder.glob(pattern)) if path.is_file()]
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def verify(folder: Path, names=()) -> int:
    """Hold these files of a folder, or all, to its SHA256SUMS; how many they are."""
    lines = posts.read(folder / SUMS).strip("\n").split("\n")
    listed = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    found = checksums(folder, names or (TEXTS if listed.keys() <= set(TEXTS) else TEXTS + BESIDE))
    names = names or found.keys() | listed.keys()
    if wrong := sorted(name for name in names if name not in found or found[name] != listed.get(name)):
        are = "is" if len(wrong) == 1 else "are"
        raise UserError(
            f"{shown(folder)}: {', '.join(wrong)} {are} not as {SUMS} says: restore what was, or build the text again"
        )
    return len(names)


def write(folder: Path, train: str, validation: str):
    """Write the two texts and their checksums: all three, or nothing."""
    files = {TRAIN: train.encode(), VALIDATION: validation.encode()}
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    if folder.resolve() == DATA.resolve():
        sums |= checksums(folder, BESIDE)
    files[SUMS] = "".join(f"{digest}  {name}\n" for name, digest in sums.items()).encode()
    results.check_writable(folder)
    for name in files:
        if (folder / name).exists() and not (folder / name).is_file():
            raise UserError(f"can't write {folder / name}: what is there isn't a file; name another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            puts = [stack.enter_context(results.aside(folder / name, files[name])) for name in files]
            for name in SUMS, VALIDATION:  # a kill may leave one missing, but none beside another that it isn't from
                (folder / name).unlink(missing_ok=True)
            for put in puts:
                put()
    except OSError as error:
        raise UserError(f"can't write in {folder}: {error.strerror}; name a folder that can be written") from None


def names(text: str) -> str:
    """Posts' names with commas between them, as an argument's type. Which they are depends on the posts."""
    if not text.replace(",", "").strip():
        raise argparse.ArgumentTypeError(f"must be names of posts with commas between them, not {text!r}")
    return text


def options(parser):
    add_argument(parser)
    parser.add_argument("--build", action="store_true", help="make the frozen text again from data/posts")
    parser.add_argument("--posts", metavar="DIR", type=script.folder, help="make a text from these posts")
    parser.add_argument("--held-out", metavar="A,B", type=names, help="the names of the posts to validate on")
    parser.add_argument("--into", metavar="DIR", type=script.folder, help="where the two texts go")


def make(arguments) -> tuple[Path, dict | None]:
    """The folder of the text to describe, made first if that was asked for, and then what became of the posts."""
    own = [arguments.posts, arguments.held_out, arguments.into]
    if any(own) and not all(own):
        raise UserError("--posts, --held-out and --into belong together")
    if (arguments.data is not None) + arguments.build + any(own) > 1:
        raise UserError("give one of --data, --build and --posts")
    if arguments.into and arguments.into.resolve() == DATA.resolve():
        raise UserError("data/ holds the frozen text, which never changes: name another folder")
    folder = arguments.data or arguments.into or DATA
    if not arguments.build and not any(own):
        return folder, None
    found, unused = posts.gather(arguments.posts or DATA / "posts")
    held_out = posts.chosen(arguments.held_out or ",".join(HELD_OUT), found)
    write(folder, *posts.split(found, held_out))
    note(f"written to {shown(folder)}, which other scripts read with --data")
    return folder, posts.account(found, unused, held_out)


def measure(arguments):
    folder, account = make(arguments)
    text = load(folder)
    unseen = Counter(character for character in text.validation if character not in text.characters)
    return {
        "corpus": text.fingerprint,
        "train_characters": len(text.train),
        "validation_characters": len(text.validation),
        "distinct_characters": len(text.characters),
        "validation_characters_never_seen_in_training": unseen.total(),
        "share_of_train": markdown.shares(text.train),
        "share_of_validation": markdown.shares(text.validation),
        "unseen": dict(unseen.most_common()),
        "verified_files": verify(folder) if (folder / SUMS).exists() else None,
        "fingerprint": text.fingerprint,
        **({"posts": account} if account else {}),
    }


def tell(found):
    validation, unseen = found["validation_characters"], found["validation_characters_never_seen_in_training"]
    yield (
        f"train {found['train_characters']:,} characters, validation {validation:,};"
        f" {found['distinct_characters']} distinct characters"
    )
    yield f"validation characters never seen in training: {unseen} of {validation:,}"
    yield ""
    yield "the text itself"
    yield f"never seen: {' '.join(f'{visible(character)} {count}' for character, count in found['unseen'].items())}"
    for name in "train", "validation":
        shares = found[f"share_of_{name}"].items()
        yield f"{name:<10}: " + ", ".join(f"{100 * share:.1f}% {kind}" for kind, share in shares)
    if found["verified_files"] is None:
        yield f"not verified: there is no {SUMS} beside the texts"
    else:
        yield f"verified: {found['verified_files']} files are those of {SUMS}"
    yield f"fingerprint {found['fingerprint']}"
    if "posts" in found:
        yield ""
        yield "the posts"
        yield from posts.tell(found["posts"])


def visible(character: str) -> str:
    """The character, or its escape where nobody would see it or a terminal would obey it."""
    return character if character.isprintable() and not character.isspace() else ascii(character)


if __name__ == "__main__":
    script.run(measure, tell, options=options)
