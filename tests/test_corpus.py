"""The frozen text, and the numbers of its characters (corpus.py)."""

import dataclasses
import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys

import commands
import numpy as np
import pytest

import corpus
from cleaning import markdown, posts
from cleaning.markdown import clean
from corpus import Corpus
from lab import script
from lab.errors import UserError
from reruns import comparing

# The frozen text


def frozen_posts():
    found, unused = posts.gather(corpus.DATA / "posts")
    assert unused == {}
    return found


def test_built_again_byte_for_byte():
    train, validation = posts.split(frozen_posts(), corpus.HELD_OUT)
    assert train.encode() == (corpus.DATA / "blog_train.txt").read_bytes()
    assert validation.encode() == (corpus.DATA / "blog_val.txt").read_bytes()


def test_sizes():
    # 147 distinct characters, so V = 148 as in the post, and 116 unseen ones: what the text was made to have.
    text = corpus.load()
    assert (len(text.characters), text.size) == (147, 148)
    known = set(text.train)
    assert sum(character not in known for character in text.validation) == 116
    assert (len(text.train), len(text.validation)) == (599_582, 57_280)


def test_every_post_is_in_the_text_once_and_in_order():
    text = corpus.load()
    found = frozen_posts()
    assert len(found) == 30 and list(found) == sorted(found)
    cleaned = {name: post.cleaned for name, post in found.items()}
    held_out = [cleaned.pop(name) for name in corpus.HELD_OUT]
    assert text.validation.split(held_out[1]) == [held_out[0] + "\n\n", "\n"]
    assert (
        len(text.train) == sum(len(post) + 2 for post in cleaned.values()) - 1
    )  # two newlines between, one at the end
    positions = [text.train.index(post) for post in cleaned.values()]
    assert positions == sorted(positions)


def test_code_of_the_posts_is_untouched():
    # A fence of the posts is three backticks at the start of a line, so splitting there finds all code blocks.
    for name, post in frozen_posts().items():
        assert f"\n{post.cleaned}".split("\n```")[1::2] == post.text.split("\n```")[1::2], name


def test_no_markup_is_left():
    text = corpus.load()
    for part in text.train, text.validation:
        outside = "\n(code)".join(f"\n{part}".split("\n```")[::2])
        for sign in "<Aside", "</", "/>", "{/*", "*/}", "components/", "\n---\n", "\n\n\n":
            assert sign not in outside


def test_sums_are_those_of_sha256sum():
    lines = (corpus.DATA / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 2 + 1 + 30
    for line in lines:
        digest, name = line.split("  ")
        assert digest == hashlib.sha256((corpus.DATA / name).read_bytes()).hexdigest()


@pytest.mark.parametrize("name", ["blog_train.txt", "blog_val.txt", "published.json", "posts/07-when-to-stop.mdx"])
def test_one_flipped_bit_is_noticed(tmp_path, name):
    copy = shutil.copytree(corpus.DATA, tmp_path / "data")
    assert corpus.verify(copy) == 33
    content = bytearray((copy / name).read_bytes())
    content[len(content) // 2] ^= 1
    (copy / name).write_bytes(content)
    with pytest.raises(UserError, match=name):
        corpus.verify(copy)


def test_a_script_refuses_a_frozen_text_that_is_damaged(tmp_path, monkeypatch):
    copy = shutil.copytree(corpus.DATA, tmp_path / "data")
    monkeypatch.setattr(corpus, "DATA", copy)
    (copy / "published.json").unlink()  # it isn't read with the text
    assert corpus.load() == corpus.load(copy)
    content = (copy / "blog_val.txt").read_bytes()
    (copy / "blog_val.txt").write_bytes(content.replace(b"settled", b"settlec", 1))
    for folder in None, copy, copy / ".." / "data":
        with pytest.raises(UserError, match=r"blog_val\.txt is not as SHA256SUMS says: restore what was"):
            corpus.load(folder)
    other = shutil.copytree(copy, tmp_path / "other")
    assert "settlec" in corpus.load(other).validation  # anybody may change a text of their own
    (copy / "blog_val.txt").write_bytes(content)
    (copy / "SHA256SUMS").unlink()
    with pytest.raises(UserError, match="SHA256SUMS"):
        corpus.load()


def test_a_missing_and_an_extra_file_are_noticed(tmp_path):
    copy = shutil.copytree(corpus.DATA, tmp_path / "data")
    (copy / "posts/08-keeping-scale.mdx").rename(copy / "posts/31-new.mdx")
    with pytest.raises(UserError, match=r"posts/08-keeping-scale\.mdx, posts/31-new\.mdx are not"):
        corpus.verify(copy)


def test_build_makes_the_frozen_text_again(tmp_path, monkeypatch):
    copy = shutil.copytree(corpus.DATA, tmp_path / "data")
    written = {name: (copy / name).read_bytes() for name in (corpus.TRAIN, corpus.VALIDATION, corpus.SUMS)}
    for name in written:
        (copy / name).write_bytes(b"damaged")
    monkeypatch.setattr(corpus, "DATA", copy)
    assert script.perform(script.experiment(corpus), ["--build"]) == 0
    assert written == {name: (copy / name).read_bytes() for name in written}


def test_cleaning_again_changes_nothing():
    for name, post in frozen_posts().items():
        assert clean(post.cleaned) == post.cleaned, name


# Other people's posts


def write_posts(folder, **posts):
    for name, text in posts.items():
        (folder / f"{name}.mdx").write_bytes(text if isinstance(text, bytes) else text.encode())


def build(folder, held_out="b"):
    return ["--posts", folder, "--held-out", held_out, "--into", folder / "made"]


def assert_refused(arguments, *words):
    """A user's mistake, told in one line with these words in it."""
    with pytest.raises(UserError) as error:
        script.perform(script.experiment(corpus), [str(argument) for argument in arguments])
    assert "\n" not in str(error.value)
    for word in words:
        assert word in str(error.value)


def test_own_posts(tmp_path):
    write_posts(tmp_path, a="---\nt: 1\n---\n<A>naïve\n</A>", b="b", d="\ufeffd😀\r\ne\r\n", e="---\n---\n")
    (tmp_path / "c").mkdir()
    (tmp_path / "c/index.MD").write_text("c", encoding="utf-8")
    (tmp_path / ".drafts").mkdir()
    (tmp_path / ".drafts/x.md").write_text("x", encoding="utf-8")
    done = commands.run("corpus.py", *build(tmp_path, "b, c/index,"))
    assert done.returncode == 0, done.stderr
    assert f"written to {tmp_path / 'made'}, which other scripts read with --data" in done.stderr
    # 5 + 1 + 1 + 2 + 1 + 1 + 1: the emoji is one character; a post that is empty leaves nothing.
    assert (tmp_path / "made/blog_train.txt").read_bytes() == "naïve\n\nd😀\ne\n".encode()
    assert (tmp_path / "made/blog_val.txt").read_bytes() == b"b\n\nc\n"
    lines = done.stdout.splitlines()
    # n a ï v e, newline, d 😀: "e" and newline come twice. Unseen: b and c.
    assert lines[0] == "train 12 characters, validation 5; 8 distinct characters"
    assert lines[1] == "validation characters never seen in training: 2 of 5"
    # Of a, 5 characters stay of 26; of b 1 of 1; of d 4 of 5; of e 0 of 8; of c 1 of 1: in all 11 of 41.
    assert lines[-7:] == [
        "",
        "the posts",
        "used: 4, of which 2 held out",
        "not used: .drafts (hidden)",
        "not used: e (nothing is left of it)",
        "cleaning took 73.2% of the characters",
        "a lost 80.8% of its characters: is that all markup?",
    ]
    again = commands.run("corpus.py", "--data", tmp_path / "made")
    assert (again.returncode, again.stdout.splitlines()) == (0, lines[:-7])
    text = corpus.load(tmp_path / "made")
    assert text.decode(text.encode("naïve 😀Жb")) == "naïve\ufffd😀\ufffd\ufffd"


def test_a_text_without_sums_is_read_and_said_to_be_unverified(tmp_path):
    (tmp_path / "blog_train.txt").write_bytes(b"\xef\xbb\xbfab\r\n")
    (tmp_path / "blog_val.txt").write_bytes(b"b")
    done = commands.run("corpus.py", "--data", tmp_path)
    assert done.returncode == 0
    assert "train 3 characters, validation 1; 3 distinct characters" in done.stdout
    assert "not verified: there is no SHA256SUMS beside the texts" in done.stdout


def test_a_character_that_a_terminal_would_obey_or_nobody_would_see_is_shown_by_its_escape(tmp_path):
    (tmp_path / "blog_train.txt").write_text("ab", encoding="utf-8")
    (tmp_path / "blog_val.txt").write_text("a\x1b\n\u2028 ñ", encoding="utf-8")
    done = commands.run("corpus.py", "--data", tmp_path)
    assert r"never seen: '\x1b' 1 '\n' 1 '\u2028' 1 ' ' 1 ñ 1" in done.stdout.splitlines()


def test_bad_posts(tmp_path):
    assert_refused(build(tmp_path / "nowhere"), "no folder", "nowhere")
    assert_refused(build(tmp_path), "no .md or .mdx files in", str(tmp_path))
    write_posts(tmp_path, a="a", b="b", **{"error-bars": "c"})
    assert_refused(build(tmp_path, "eror-bars"), "'eror-bars'", "error-bars")
    assert_refused(build(tmp_path, "a,b,error-bars"), "no text is left to train on")
    (tmp_path / "a.md").write_text("another", encoding="utf-8")
    assert_refused(build(tmp_path), "two posts called 'a'")
    (tmp_path / "a.md").unlink()
    write_posts(tmp_path, b="{/* nothing */}")
    assert_refused(build(tmp_path), "no text is left to validate on")
    write_posts(tmp_path, b="caf\xe9".encode("latin-1"))
    assert_refused(build(tmp_path), "b.mdx", "not UTF-8", "offset 3")
    assert not (tmp_path / "made").exists()


def test_bad_texts(tmp_path):
    assert_refused(["--data", tmp_path / "nowhere"], "no folder", "nowhere", "--posts")
    assert_refused(["--data", tmp_path], "blog_train.txt", "No such file")
    (tmp_path / "blog_train.txt").write_bytes(b"")
    (tmp_path / "blog_val.txt").write_bytes(b"b")
    assert_refused(["--data", tmp_path], "blog_train.txt is empty", "learn from")
    (tmp_path / "blog_train.txt").write_bytes(b"a")
    (tmp_path / "blog_val.txt").write_bytes(b"")
    assert_refused(["--data", tmp_path], "blog_val.txt is empty", "validate on")
    (tmp_path / "blog_train.txt").write_bytes(b"abc\xff")
    assert_refused(["--data", tmp_path], "blog_train.txt", "not UTF-8", "offset 3")


def test_what_never_ends_is_refused_as_a_text(tmp_path):
    os.mkfifo(tmp_path / "blog_train.txt")
    (tmp_path / "blog_val.txt").write_bytes(b"b")
    assert_refused(["--data", tmp_path], "blog_train.txt", "isn't a file with a text in it")
    (tmp_path / "blog_train.txt").unlink()
    (tmp_path / "blog_train.txt").symlink_to("/dev/zero")
    assert_refused(["--data", tmp_path], "blog_train.txt", "isn't a file with a text in it")


def test_a_folder_that_is_a_file_is_refused(tmp_path):
    write_posts(tmp_path, a="a", b="b")
    own = ["--posts", tmp_path, "--held-out", "b", "--into", tmp_path / "a.mdx"]
    assert_refused(own, "can't write in", "a.mdx")
    assert_refused([*build(tmp_path), "--outputs", tmp_path / "a.mdx"], "can't write in", "a.mdx")
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("name", ["blog_train.txt", "blog_val.txt", "SHA256SUMS"])
@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_all_three_files_are_written_or_none(tmp_path, name, make):
    write_posts(tmp_path, a="a", b="b")
    (tmp_path / "made").mkdir()
    make(tmp_path / "made" / name)
    assert_refused(build(tmp_path), "can't write", name, "isn't a file")
    assert os.listdir(tmp_path / "made") == [name]


def test_a_full_disk_leaves_the_text_that_was_there(tmp_path, monkeypatch):
    write_posts(tmp_path, a="a", b="b")
    (tmp_path / "made").mkdir()
    (tmp_path / "made/blog_train.txt").write_bytes(b"before")
    synced = []

    def full(handle):
        synced.append(handle)
        if len(synced) == 3:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert_refused(build(tmp_path), "can't write in", "No space left")
    assert os.listdir(tmp_path / "made") == ["blog_train.txt"]
    assert (tmp_path / "made/blog_train.txt").read_bytes() == b"before"


def test_a_text_made_beside_its_posts_is_verified_whatever_these_are_called(tmp_path):
    (tmp_path / "posts").mkdir()
    write_posts(tmp_path / "posts", **{"a\nb": "a", "b, c": "b", "caf\u00e9": "c"})
    own = ["--posts", tmp_path / "posts", "--held-out", "cafe\u0301,b, c", "--into", tmp_path]
    done = commands.run("corpus.py", *own)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "blog_val.txt").read_bytes() == b"b\n\nc\n"
    assert "verified: 2 files are those of SHA256SUMS" in done.stdout
    write_posts(tmp_path / "posts", another="d")
    assert corpus.verify(tmp_path) == 2


def test_reading_a_text_does_not_wait_for_the_parser_of_markdown():
    code = "import sys, corpus; corpus.load(); sys.exit('markdown_it' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=commands.ROOT).returncode == 0


def test_the_frozen_text_is_never_written_over_by_another(tmp_path):
    write_posts(tmp_path, a="a", b="b")
    for folder in corpus.DATA, corpus.DATA / ".." / "data":
        assert_refused(["--posts", tmp_path, "--held-out", "b", "--into", folder], "never changes")
    assert corpus.verify(corpus.DATA) == 33


# Numbers of characters


def test_encode_by_hand():
    text = Corpus("hello\n", "")
    assert text.characters == ("\n", "e", "h", "l", "o")
    assert text.size == 6
    assert text.encode("hole!").tolist() == [2, 4, 3, 1, 5]
    assert text.decode([2, 1, 3, 3, 4, 5]) == "hello\ufffd"


def test_decode_undoes_encode():
    text = corpus.load()
    assert text.decode(text.encode(text.train)) == text.train
    known = set(text.train)
    expected = "".join(character if character in known else "\ufffd" for character in text.validation)
    assert text.decode(text.encode(text.validation)) == expected
    ids = np.arange(text.size - 1)
    assert (text.encode(text.decode(ids)) == ids).all()


@pytest.mark.parametrize("train", ["a", "naïve café 😀😀 𝔸\U0010ffff", "\0\ufffd"])
def test_any_alphabet(train):
    text = Corpus(train, "")
    assert text.decode(text.encode(train)) == train
    assert text.encode("").shape == (0,) and text.decode([]) == ""
    # Below, between and above the known characters, and a lone surrogate such as a prompt can hold.
    assert (text.encode("\x01Ж\U0010fffe\udcff") == text.size - 1).all()


def test_encode_equals_a_dictionary():
    text = corpus.load()
    number = {character: i for i, character in enumerate(sorted(set(text.train)))}
    expected = [number.get(character, len(number)) for character in text.validation]
    assert text.encode(text.validation).tolist() == expected


def test_fingerprint_tells_texts_apart():
    texts = Corpus("ab", "c"), Corpus("a", "bc"), Corpus("ab", "d"), Corpus("b", "c")
    assert len({text.fingerprint for text in texts}) == 4
    assert Corpus("ab", "c").fingerprint == Corpus("ab", "c").fingerprint


def test_a_corpus_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Corpus("a", "b").train = "c"


# What is printed and saved


def test_default_run(tmp_path):
    done = commands.run("corpus.py", "--outputs", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (tmp_path / "corpus.txt").read_text(encoding="utf-8")
    assert done.stdout.splitlines()[:2] == [
        "train 599,582 characters, validation 57,280; 147 distinct characters",
        "validation characters never seen in training: 116 of 57,280",
    ]
    results = json.loads((tmp_path / "corpus.json").read_text(encoding="utf-8"))["results"]
    published = json.loads((corpus.DATA / "published.json").read_text(encoding="utf-8"))["corpus"]
    assert published.keys() - set(comparing.NO_FIGURES) <= results.keys()
    assert sum(results["unseen"].values()) == 116


def test_data_card():
    card = " ".join((corpus.DATA / "README.md").read_text(encoding="utf-8").split())
    text = corpus.load()
    published = json.loads((corpus.DATA / "published.json").read_text(encoding="utf-8"))["corpus"]
    unseen = sorted(set(text.validation) - set(text.train))
    train, validation = (
        [f"{100 * share:.1f}%" for share in markdown.shares(part).values()] for part in (text.train, text.validation)
    )
    for words in (
        f"{len(text.train):,} characters, {len(text.characters)} distinct ones (V = {text.size} ",
        f"{len(text.validation):,} characters, 116 of which ({len(unseen)} distinct ones)",
        f"({published['train_characters']:,} and {published['validation_characters']:,} characters)",
        f"{text.size} = {np.log2(text.size):.2f} bits",
        f"{train[3]} is prose, {train[0]} code blocks and their output, {train[2]} mathematics and {train[1]} inline",
        f"{validation[3]}, {validation[0]}, {validation[2]} and {validation[1]}.",
        text.fingerprint,
    ):
        assert words in card
    assert set(unseen) < set(card)


def test_any_locale(tmp_path):
    ascii_only = {"PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONWARNDEFAULTENCODING": "1"}
    done = commands.run("corpus.py", "--outputs", tmp_path, **ascii_only)
    assert done.returncode == 0, done.stderr
    assert "\\u2205 32" in done.stdout
    assert "∅ 32" in (tmp_path / "corpus.txt").read_text(encoding="utf-8")
