"""Posts in a folder: which are found, in what order, which are held out, what is told of them (cleaning/posts.py)."""

import os
import unicodedata

import pytest

from cleaning import posts
from cleaning.posts import Post, account, chosen, gather, read, split, tell
from lab.errors import UserError


def write(folder, *paths, text=None):
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(path if text is None else text, encoding="utf-8")


def made(**texts) -> dict[str, Post]:
    return {name: Post(text, mdx=True) for name, text in texts.items()}


def test_posts_are_found_in_the_order_of_their_paths(tmp_path):
    write(tmp_path, "b.mdx", "c/index.MD", "a.md", "c/a.MDX", "d.markdown", "e.mkd", "b-c.md")
    found, unused = gather(tmp_path)
    assert {name: (post.text, post.mdx) for name, post in found.items()} == {
        "a": ("a.md", False),
        "b-c": ("b-c.md", False),
        "b": ("b.mdx", True),
        "c/a": ("c/a.MDX", True),
        "c/index": ("c/index.MD", False),
        "d": ("d.markdown", False),
        "e": ("e.mkd", False),
    }
    assert list(found) == ["a", "b-c", "b", "c/a", "c/index", "d", "e"] and unused == {}


def test_every_file_that_is_no_post_is_accounted_for(tmp_path):
    write(tmp_path, "a.md", "b.png", "c/d.PNG", "c/e.txt", "LICENSE", ".f.md", ".g/h.md", "c/.i/j/k.md", "l.md/m.md")
    (tmp_path / "n").symlink_to(tmp_path / "c")
    (tmp_path / "o.md").symlink_to("nowhere")
    (tmp_path / "p.md").symlink_to("p.md")
    (tmp_path / "q.md").symlink_to(os.devnull)
    os.mkfifo(tmp_path / "r.md")
    found, unused = gather(tmp_path)
    assert list(found) == ["a", "l.md/m"]
    assert unused == {
        "hidden": [".f.md", ".g", "c/.i"],
        "not Markdown": ["LICENSE", "b.png", "c/d.PNG", "c/e.txt"],
        "a link to a folder": ["n"],
        "not a file with a text in it": ["o.md", "p.md", "q.md", "r.md"],
    }


def test_a_folder_that_cannot_be_read_is_not_left_out_in_silence(tmp_path, monkeypatch):
    write(tmp_path, "a.md", "b/c.md")
    scandir = os.scandir

    def refuse(path):
        if str(path).endswith("b"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(UserError, match=r"can't read .*b: Permission denied"):
        gather(tmp_path)


def test_no_posts_and_two_of_one_name(tmp_path):
    with pytest.raises(UserError, match=r"there is no folder .*nowhere"):
        gather(tmp_path / "nowhere")
    write(tmp_path, "a.txt")
    with pytest.raises(UserError, match=r"no \.md or \.mdx files in"):
        gather(tmp_path)
    write(tmp_path, "b/a.md", "b/a.mdx")
    with pytest.raises(UserError, match=r"two posts called 'b/a', b/a\.md and b/a\.mdx: rename one of them"):
        gather(tmp_path)


def test_names_are_the_same_in_every_form_of_unicode(tmp_path):
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    assert unicodedata.normalize("NFC", decomposed) == composed
    write(tmp_path, f"{decomposed}.md", "cafz.md", text="a")
    found, _ = gather(tmp_path)
    assert list(found) == ["cafz", composed]  # decomposed, it would come first
    assert chosen(decomposed, found) == chosen(composed, found) == [composed]
    write(tmp_path, f"{composed}.md", text="b")
    if len(os.listdir(tmp_path)) == 3:  # a system that tells the two apart
        with pytest.raises(UserError, match="two posts called 'caf\u00e9'"):
            gather(tmp_path)


def test_a_name_that_is_no_unicode(tmp_path):
    try:
        (tmp_path / os.fsdecode(b"caf\xe9.md")).write_text("a", encoding="utf-8")
    except OSError:
        pytest.skip("this system has no such names")
    found, _ = gather(tmp_path)
    assert list(found) == [r"caf\udce9"]
    assert chosen(os.fsdecode(b"caf\xe9"), found) == [r"caf\udce9"]


def test_names_may_hold_commas():
    known = made(**{"a": "1", "b": "2", "Hello, world": "3", "a,b": "4", "c, d, e": "5", "c": "6"})
    assert chosen("Hello, world", known) == ["Hello, world"]
    assert chosen("b,Hello, world , a,", known) == ["b", "Hello, world", "a"]
    assert chosen("a,b", known) == ["a,b"]  # the longest that fits
    assert chosen("b,a", known) == ["b", "a"]
    assert chosen("c, d, e,c", known) == ["c, d, e", "c"]
    with pytest.raises(UserError, match="no post 'd' to hold out; near it are "):
        chosen("c, d", known)
    with pytest.raises(UserError, match="no post 'Hello' to hold out; near it are Hello, world"):
        chosen("Hello,word", known)


def test_posts_are_split_in_their_order():
    some = made(a="<A>\na\n</A>", b="b", c="{/* nothing */}", d="d", e="e")
    assert split(some, ["e", "b"]) == ("a\n\nd\n", "b\n\ne\n")
    with pytest.raises(UserError, match=r"no text is left to validate on \(posts: 5 in all, 1 of them for that\)"):
        split(some, ["c"])
    with pytest.raises(UserError, match="no text is left to train on"):
        split(some, list("abde"))


def test_what_became_of_the_posts():
    # 10 characters of which 4 stay, 10 of which 10 stay, 20 of which none do: 26 of 40 went. b lost exactly half.
    some = made(a="<A />\naaaa", b="<B/>\nbbbbb", c="{/* nothing here */}", d="d" * 10)
    assert [len(post.text) for post in some.values()] == [10, 10, 20, 10]
    found = account(some, {"hidden": [".x"]}, ["b", "c"])
    assert found == {
        "used": 3,
        "held_out": 1,
        "not_used": {"hidden": [".x"], "nothing is left of it": ["c"]},
        "share_that_went": 1 - (4 + 5 + 10) / 50,
        "more_than_half_went": {"a": 1 - 4 / 10},
    }
    assert list(tell(found)) == [
        "used: 3, of which 1 held out",
        "not used: .x (hidden)",
        "not used: c (nothing is left of it)",
        "cleaning took 62.0% of the characters",
        "a lost 60.0% of its characters: is that all markup?",
    ]


def test_long_lists_are_told_in_short_and_odd_names_by_their_escapes():
    unused = {
        "not Markdown": ["a.png", "b.png", "c.txt", "LICENSE"],
        "hidden": [f".{i}" for i in range(posts.SHOWN + 2)],
    }
    found = {"used": 1_000, "held_out": 1, "not_used": unused, "share_that_went": 0, "more_than_half_went": {"a\nb": 1}}
    lines = list(tell(found))
    assert lines[1] == "not used: 2 .png, 1 .txt, 1 without a suffix (not Markdown)"
    assert lines[2] == "not used: .0, .1, .2, .3, .4, .5, .6, .7, .8, .9 and 2 more (hidden)"
    assert lines[4].startswith(r"'a\nb' lost")


def test_a_byte_order_mark_and_other_line_ends_are_normalised(tmp_path):
    (tmp_path / "a.md").write_bytes(b"\xef\xbb\xbfa\r\nb\rc\n")
    assert read(tmp_path / "a.md") == "a\nb\nc\n"


def test_what_may_never_end_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "endless").symlink_to("/dev/zero")
    for path in tmp_path / "pipe", tmp_path / "endless", tmp_path:
        with pytest.raises(UserError, match=r"can't read .*: it isn't a file with a text in it"):
            read(path)
    with pytest.raises(UserError, match=r"can't read .*nowhere: No such file"):
        read(tmp_path / "nowhere")
