"""What is set aside: whole posts, or the end of a text from a blank line on; nothing is in both parts."""

import pytest

import corpus
from lab.errors import UserError
from layers import setting_aside


@pytest.fixture
def folder(tmp_path):
    for name in ("a", "b", "c", "d"):
        (tmp_path / f"{name}.mdx").write_text(
            f"---\ntitle: {name}\n---\n\nPost {name}.\n\nIts end.\n", encoding="utf-8"
        )
    return tmp_path


def test_whole_posts_are_set_aside(folder):
    train = "Post a.\n\nIts end.\n\nPost c.\n\nIts end.\n\nPost d.\n\nIts end.\n"
    rest, aside = setting_aside.posts(train, folder, ("b",), ("c",))
    assert rest == "Post a.\n\nIts end.\n\nPost d.\n\nIts end.\n" and aside == "Post c.\n\nIts end.\n"


def test_other_posts_are_refused(folder):
    with pytest.raises(UserError, match="not those that the training text was made of"):
        setting_aside.posts("Post a.\n", folder, ("b",), ("c",))


def test_the_end_begins_after_a_blank_line():
    train = "one\n\n" + "x" * 40 + "\n\nend\n" + "y" * 100
    rest, aside = setting_aside.end(train)
    assert rest + aside == train and aside.startswith("end\n")
    assert setting_aside.end("x" * 100) == ("x" * 95, "x" * 5)


def test_the_frozen_text_s_own_post():
    text = corpus.load()
    rest, aside = setting_aside.posts(text.train, corpus.DATA / "posts", corpus.HELD_OUT, ("07-when-to-stop",))
    assert text.train.replace(aside.rstrip("\n") + "\n\n", "", 1) == rest and aside.rstrip("\n") not in rest
    assert 0.03 < len(aside) / len(text.train) < 0.06
