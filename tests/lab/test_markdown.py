"""The rules that make plain text of posts (lab/markdown.py).

Each case of a rule: what a post holds, what stays of it. The expected texts are written by hand.
"""

import time

import pytest

from lab.errors import UserError
from lab.markdown import clean, read, read_posts, shares, split

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


def test_adversarial_text_takes_no_time():
    # Thousands of openings without an end: each must fail where it stands, not after trying all ways to go on.
    started = time.process_time()
    for opening in "<A b={", "<A b='", "{/* ", "$a ", "`", "<A b ", "import {a, ", "export const a = ({[", "<A {`":
        clean("\n" + 2000 * opening)
    assert time.process_time() - started < 5  # seconds; trying all ways to go on would take longer than anyone waits


def test_shares_by_hand():
    # 20 characters: a fence of 9, code of 3, mathematics of 3, and the five others, newlines among them.
    found = shares("```\nx\n```\n`y` $z$ ww"[:20])
    assert found == pytest.approx({"code blocks": 0.45, "inline code": 0.15, "mathematics": 0.15, "prose": 0.25})


def test_posts_are_split_in_their_order():
    posts = {"a": "<A>\na\n</A>", "b": "b", "c": "{/* nothing */}", "d": "d", "e": "e"}
    assert split(posts, ["e", "b"]) == ("a\n\nd\n", "b\n\ne\n")
    with pytest.raises(UserError, match=r"no text is left to validate on \(posts: 5 in all, 1 of them for that\)"):
        split(posts, ["c"])
    with pytest.raises(UserError, match="no text is left to train on"):
        split(posts, list("abde"))


def test_posts_are_read_in_the_order_of_their_paths(tmp_path):
    for path in "b.mdx", "c/index.MD", "a.md", ".drafts/x.md", "c/.hidden.md", "a.txt", "c/a.mdx":
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(path, encoding="utf-8")
    assert list(read_posts(tmp_path).items()) == [
        ("a", "a.md"), ("b", "b.mdx"), ("c/a", "c/a.mdx"), ("c/index", "c/index.MD")
    ]  # fmt: skip


def test_a_byte_order_mark_and_other_line_ends_are_normalised(tmp_path):
    (tmp_path / "a.md").write_bytes(b"\xef\xbb\xbfa\r\nb\rc\n")
    assert read(tmp_path / "a.md") == "a\nb\nc\n"
