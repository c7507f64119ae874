"""The frozen text, the rules that made it, and the numbers of its characters."""

import dataclasses
import hashlib
import json
import shutil
import time

import commands
import numpy as np
import pytest

import corpus
from corpus import Corpus, clean
from lab.script import UserError

# The frozen text


def test_built_again_byte_for_byte():
    train, validation = corpus.build(corpus.read_posts(corpus.DATA / "posts"), corpus.HELD_OUT)
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
    posts = corpus.read_posts(corpus.DATA / "posts")
    assert len(posts) == 30 and list(posts) == sorted(posts)
    cleaned = {name: clean(post) for name, post in posts.items()}
    held_out = [cleaned.pop(name) for name in corpus.HELD_OUT]
    assert text.validation.split(held_out[1]) == [held_out[0] + "\n\n", "\n"]
    assert (
        len(text.train) == sum(len(post) + 2 for post in cleaned.values()) - 1
    )  # two newlines between, one at the end
    places = [text.train.index(post) for post in cleaned.values()]
    assert places == sorted(places)


def test_code_of_the_posts_is_untouched():
    # A fence of the posts is three backticks at the start of a line, so splitting there finds all code blocks.
    for name, post in corpus.read_posts(corpus.DATA / "posts").items():
        assert f"\n{clean(post)}".split("\n```")[1::2] == post.split("\n```")[1::2], name


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
    assert corpus.verify(copy) == "verified: 33 files are those of SHA256SUMS"
    content = bytearray((copy / name).read_bytes())
    content[len(content) // 2] ^= 1
    (copy / name).write_bytes(content)
    with pytest.raises(UserError, match=name):
        corpus.verify(copy)


def test_a_missing_and_an_extra_file_are_noticed(tmp_path):
    copy = shutil.copytree(corpus.DATA, tmp_path / "data")
    (copy / "posts/08-keeping-scale.mdx").rename(copy / "posts/31-new.mdx")
    with pytest.raises(UserError, match=r"posts/08-keeping-scale\.mdx, posts/31-new\.mdx are not"):
        corpus.verify(copy)


# The rules. Each case: what a post holds, what stays of it. The expected texts are written by hand.

STAYS = {
    "prose": "Half of 1 < 2, and a > b; “x” — 3 & 4 {not a comment} * _e_.",
    "comparisons": "if a<b, c < d or 3<4 then x<-1 and <3",
    "link": "see <https://example.org/a> or <me@example.org>",
    "escaped tag": r"write \<Toc /> and \{/* so */} not",
    "fence": "```js\nimport a from 'a'\n\nexport const b = 1\n\n<Toc />\n{/* c */}\n---\n```",
    "fence of tildes": "~~~\n<Toc />\n```\n{/* c */}\n~~~",
    "longer fence": "````mdx\n```\n<Toc />\n```\n<Toc />\n````",
    "fence closed by a longer one": "```\n<a>\n`````",
    "fence not closed by a shorter one": "````\n```\n<a>\n````",
    "fence not closed by one with a word": "```\n``` python\n<a>\n```",
    "fence to the end": "```\n<Toc />\n\n{/* c */}",
    "fence in a list": "- item\n\n  ```python\n  <s> {/* c */}\n  ```\n1. ```\n   <s>\n   ```",
    "fence in a quotation": "> ```\n> <s>\n> ```",
    "indented fence": "    ```\n    <s>\n    ```",
    "dollars in a fence": "```sh\necho $HOME <s> $PATH\n```",
    "inline code": "`<s>` and `{/* x */}` and `x < y` and `import torch`",
    "inline code with backticks": "``a ` <s> ` b`` and ``` <Toc/> `` ```",
    "inline code over two lines": "a `b\n<s>` c",
    "dollars in inline code": "`$` <  `$<s>$` and `a$b`",
    "mathematics": r"$a<b>c$, $x < y$, $\{/* x */\}$, $<s>$",
    "mathematics with a space inside": r"$\bar c = $ sum of $\bar z$, $ a <b> c $",
    "mathematics over two lines": "$a\n<b> c$",
    "mathematics with an escaped dollar": r"$\$5 <b> c$",
    "mathematics in lines of its own": "$$\na <b> c\n\n{/* d */}\n$$",
    "mathematics in a line": "so $$a <b> c$$ holds",
    "digits in mathematics": "$2 <b> 1$ and $3$",
    "unclosed comment": "a {/* b",
    "unclosed tag": 'a <Toc title="b',
    "unclosed backtick": "a ` b",
    "rule": "a\n\n---\n\nb",
    "imports in prose": "import duties are paid at the border\n\nexport is taxed from 'here'",
    "import without a from": "import torch",
    "spaces": "a  b \n   c\n\n\n\nd\te",
    "html-like signs": "a <- b, a <= b, a <=> b, <!DOCTYPE html>",
    "carriage of emoji": "😀 <3 𝔸",
}


@pytest.mark.parametrize("text", STAYS.values(), ids=STAYS)
def test_stays(text):
    assert clean(text) == text


GOES = {
    "frontmatter": ("---\ntitle: a\n---\nb", "b"),
    "frontmatter and blank lines": ("---\ntitle: a\nb: '---'\n---\n\n\nb\n\n---\n\nc", "b\n\n---\n\nc"),
    "empty frontmatter": ("---\n---\nb", "b"),
    "frontmatter of pluses": ('+++\ntitle = "a"\n+++\nb', "b"),
    "frontmatter only": ("---\ntitle: a\n---", ""),
    "imports": ("import A from 'a'\nimport { B, C } from \"b\";\nimport * as D from 'd'\nimport 'e.css'\n\nf", "f"),
    "import over lines": ("import {\n  A,\n  B,\n} from 'a'\n\nf", "f"),
    "import of two kinds": ("import A, { b as c } from '@/a'; // why\nimport type { T } from 't'\n\nf", "f"),
    "import, then prose at once": ("import A from 'a'\nf", "f"),
    "imports apart": ("import A from 'a'\n\nimport B from 'b'\n\nf", "f"),
    "import between paragraphs": ("a\n\nimport B from 'b'\n\nc", "a\n\nc"),
    "import after frontmatter": ("---\na: b\n---\nimport A from 'a'\n\nf", "f"),
    "export": ("export const meta = { a: 1 }\n\nf", "f"),
    "export over lines": ("a\n\nexport const f = (x) => {\n  const s = '}'\n\n  return x // {\n}\n\nb", "a\n\nb"),
    "export of a list": ("export const a = [\n  1,\n\n  2,\n]\n\nf", "f"),
    "export of a template": ("export const a = `\n\n# no heading\n`\n\nf", "f"),
    "export default": ("export default function Layout({ children }) {\n\n  return <b>{children}</b>\n}\n\nf", "f"),
    "export of names": ("import A from 'a'\nexport { A }\nexport * from 'b'\n\nf", "f"),
    "comment": ("a\n\n{/* b */}\n\nc", "a\n\nc"),
    "comment over lines": ("a\n\n{/* b\n\n  <Toc /> ``` $\n*/}\n\nc", "a\n\nc"),
    "comment in a line": ("a. {/* b */} C", "a. C"),
    "comment at the end of a line": ("a {/* b */}\nc", "a\nc"),
    "comment in a word": ("a{/* b */}c", "ac"),
    "comment with braces": ("a {/* } {b} */} c", "a c"),
    "comments in one": ("a { /* b */ /* c */ } d", "a d"),
    "comment with a backtick": ("a {/* ` */} b ` c", "a b ` c"),
    "comment at the start and the end": ("{/* a */}\nb\n{/* c */}", "b"),
    "HTML comment": ("a\n\n<!-- b\n\n-->\n\nc", "a\n\nc"),
    "self-closing": ("a\n\n<Toc />\n\nb", "a\n\nb"),
    "two in a row": ("a\n\n<Toc />\n\n{/* x */}\n\n<Toc />\n<Toc />\n\nb", "a\n\nb"),
    "tag without blank lines": ("a\n<Toc />\nb", "a\nb"),
    "tag with one blank line": ("a\n\n<Toc />\nb", "a\n\nb"),
    "wrapping lines": ('a\n\n<Aside type="note">\nb\n</Aside>\n\nc', "a\n\nb\n\nc"),
    "wrapping with blank lines": ("a\n\n<Aside>\n\nb\n\n</Aside>\n\nc", "a\n\nb\n\nc"),
    "wrapping indented lines": ("a\n\n<Aside>\n  b\n</Aside>\n\nc", "a\n\n  b\n\nc"),
    "wrapping one in another": ("<A>\n  <B>\n  c\n  </B>\n</A>", "  c"),
    "wrapping a fence": ("<A>\n```\n<s>\n```\n</A>", "```\n<s>\n```"),
    "wrapping in a line": ('1. a\n   <Details summary="b">C $d$.</Details>\n2. e', "1. a\n   C $d$.\n2. e"),
    "wrapping a word": ("a <b>c</b> d, <em>e</em>.", "a c d, e."),
    "HTML": ("a<br/>b <img src=\"x.png\" alt='y'> c <span class=d>e</span>", "ab c e"),
    "fragment": ("<>\na\n</>", "a"),
    "dotted name": ("<Tabs.Item label='a'>b</Tabs.Item>", "b"),
    "over lines": ('a\n\n<Figure\n  src="b"\n  alt="c"\n/>\n\nd', "a\n\nd"),
    "sign in quotes": ("<Figure alt=\"a > b\" title='c />' />d", "d"),
    "blank line in quotes": ('<Figure alt="a\n\nb" />c', "c"),
    "backtick and dollar in quotes": ("<Figure alt=\"`a\" b='$c' />d ` e $ f", "d ` e $ f"),
    "expression": ("<A rows={64} f={x => x > 1} />b", "b"),
    "nested expression": ("<A style={{ a: { b: '}' } }} icon={<B c='>' />} />d", "d"),
    "text in an expression": ('<A b={`}>`} c={"}>"} d={/* }> */ 1} />e', "e"),
    "spread": ("<A {...props} {/* b */} c />d", "d"),
    "closing with a space": ("<A >b</A >", "b"),
    "in a heading and a table": ("## a <Badge />\n\n| <b>c</b> | d |", "## a\n\n| c | d |"),
    "between code": ("`<a>` <b>`c`</b> `<d>`", "`<a>` `c` `<d>`"),
    "between mathematics": ("$a$ <b>$c$</b> $d$", "$a$ $c$ $d$"),
    "money": ("from $5 <b>to</b> $10, or US$5 <b>to</b> US$6", "from $5 to $10, or US$5 to US$6"),
    "escaped backticks": (r"\`<b>\` and \``<b>`", r"\`\` and \``<b>`"),
    "escaped money": (r"\$5 <b>to</b> 6\$", r"\$5 to 6\$"),
    "dollars in two paragraphs": ("a $\n\n<b>c</b>\n\nd $", "a $\n\nc\n\nd $"),
    "after a fence": ("```\na\n```\n<Toc />\n\nb", "```\na\n```\n\nb"),
    "after a fence at once": ("~~~\na\n~~~\n\n<Toc />\n\nb `c` {/* d */}", "~~~\na\n~~~\n\nb `c`"),
}


@pytest.mark.parametrize(("text", "expected"), GOES.values(), ids=GOES)
def test_goes(text, expected):
    assert clean(text) == expected


def test_cleaning_again_changes_nothing():
    for name, post in corpus.read_posts(corpus.DATA / "posts").items():
        assert clean(clean(post)) == clean(post), name


def test_adversarial_text_takes_no_time():
    # Thousands of openings without an end: each must fail where it stands, not after trying all ways to go on.
    started = time.process_time()
    for opening in "<A b={", "<A b='", "{/* ", "$a ", "`", "<A b ", "import {a, ", "export const a = ({[", "<A {`":
        clean("\n" + 2000 * opening)
    assert time.process_time() - started < 5  # seconds; trying all ways to go on would take longer than anyone waits


# Other people's posts


def write_posts(folder, **posts):
    for name, text in posts.items():
        (folder / f"{name}.mdx").write_bytes(text if isinstance(text, bytes) else text.encode())


def build(folder, held_out="b"):
    return ["--posts", folder, "--held-out", held_out, "--into", folder / "made"]


def assert_refused(arguments, *words):
    """A user's mistake, told in one line with these words in it."""
    with pytest.raises(UserError) as error:
        corpus.main([str(argument) for argument in arguments])
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
    # 5 + 1 + 1 + 2 + 1 + 1 + 1: the emoji is one character; a post that is empty leaves nothing.
    assert (tmp_path / "made/blog_train.txt").read_bytes() == "naïve\n\nd😀\ne\n".encode()
    assert (tmp_path / "made/blog_val.txt").read_bytes() == b"b\n\nc\n"
    lines = done.stdout.splitlines()
    # n a ï v e, newline, d 😀: "e" and newline come twice. Unseen: b and c.
    assert lines[0] == "train 12 characters, validation 5; 8 distinct characters"
    assert lines[1] == "validation characters never seen in training: 2 of 5"
    again = commands.run("corpus.py", "--data", tmp_path / "made")
    assert (again.returncode, again.stdout) == (0, done.stdout)
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
    commands.assert_refused(commands.run("corpus.py", *build(tmp_path / "nowhere")), "no folder", "nowhere")
    assert_refused(build(tmp_path), "no .md or .mdx files in", str(tmp_path))
    write_posts(tmp_path, a="a", b="b", **{"error-bars": "c"})
    assert_refused(build(tmp_path, "eror-bars"), "'eror-bars'", "error-bars")
    assert_refused(build(tmp_path, "a,b,error-bars"), "no text is left to train on")
    commands.assert_refused(commands.run("corpus.py", *build(tmp_path, " ,")), "--held-out", "names of posts")
    (tmp_path / "a.md").write_text("another", encoding="utf-8")
    assert_refused(build(tmp_path), "two posts called 'a'")
    (tmp_path / "a.md").unlink()
    write_posts(tmp_path, b="{/* nothing */}")
    assert_refused(build(tmp_path), "no text is left to validate on")
    write_posts(tmp_path, b="caf\xe9".encode("latin-1"))
    assert_refused(build(tmp_path), "b.mdx", "not UTF-8", "offset 3")
    assert not (tmp_path / "made").exists()


def test_bad_texts(tmp_path):
    commands.assert_refused(
        commands.run("corpus.py", "--data", tmp_path / "nowhere"), "no folder", "nowhere", "--posts"
    )
    assert_refused(["--data", tmp_path], "blog_train.txt", "No such file")
    (tmp_path / "blog_train.txt").write_bytes(b"")
    (tmp_path / "blog_val.txt").write_bytes(b"b")
    assert_refused(["--data", tmp_path], "blog_train.txt is empty", "learn from")
    (tmp_path / "blog_train.txt").write_bytes(b"a")
    (tmp_path / "blog_val.txt").write_bytes(b"")
    assert_refused(["--data", tmp_path], "blog_val.txt is empty", "validate on")
    (tmp_path / "blog_train.txt").write_bytes(b"abc\xff")
    assert_refused(["--data", tmp_path], "blog_train.txt", "not UTF-8", "offset 3")


def test_bad_arguments(tmp_path):
    write_posts(tmp_path, a="a", b="b")
    own = ("--posts", tmp_path, "--held-out", "b")
    commands.assert_refused(commands.run("corpus.py", *own), "belong together")
    commands.assert_refused(commands.run("corpus.py", *own, "--into", corpus.DATA), "never changes")
    commands.assert_refused(commands.run("corpus.py", "--build", *own, "--into", tmp_path), "give one of")
    assert_refused([*own, "--into", tmp_path / "a.mdx"], "can't write in", "a.mdx")
    assert corpus.verify(corpus.DATA).startswith("verified")


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


def test_kinds_by_hand():
    # 20 characters: a fence of 9, code of 3, mathematics of 3, and the five others, newlines among them.
    shares = corpus.kinds("```\nx\n```\n`y` $z$ ww"[:20])
    assert shares == pytest.approx({"code blocks": 0.45, "inline code": 0.15, "mathematics": 0.15, "prose": 0.25})


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
    assert published.keys() - {"kind"} <= results.keys()
    assert sum(results["unseen"].values()) == 116


def test_data_card():
    card = " ".join((corpus.DATA / "README.md").read_text(encoding="utf-8").split())
    text = corpus.load()
    published = json.loads((corpus.DATA / "published.json").read_text(encoding="utf-8"))["corpus"]
    unseen = sorted(set(text.validation) - set(text.train))
    train, validation = (
        [f"{100 * share:.1f}%" for share in corpus.kinds(part).values()] for part in (text.train, text.validation)
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
