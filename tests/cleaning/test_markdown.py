"""The rules that make plain text of posts (cleaning/markdown.py, cleaning/jsx.py).

Each case of a rule: what a post holds, what stays of it. The expected texts are written by hand. After them come texts
made at random: Markdown is held to what markdown-it-py itself calls code and HTML, MDX to what its pieces are made of.
"""

import itertools
import random
import re
import time
from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt

from cleaning.markdown import clean, shares

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
    "mathematics after a line": "a\n$$\nb\n\n<c>\n$$\nd",
    "digits in mathematics": "$2 <b> 1$ and $3$",
    "unclosed comment": "a {/* b",
    "unclosed tag": 'a <Toc title="b',
    "unclosed backtick": "a ` b",
    "rule": "a\n\n---\n\nb",
    "imports in prose": "import duties are paid at the border\n\nexport is taxed from 'here'",
    "import without a from": "import torch",
    "spaces": "a  b \n   c\n\n\n\nd\te",
    "html-like signs": "a <- b, a <= b, a <=> b",
    "carriage of emoji": "😀 <3 𝔸",
}


@pytest.mark.parametrize("mdx", [True, False])
@pytest.mark.parametrize("text", STAYS.values(), ids=STAYS)
def test_stays(text, mdx):
    assert clean(text, mdx) == text


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
    "wrapping in a line": ('1. a\n   <Details summary="b">C $d$.</Details>\n2. e', "1. a\n   C $d$.\n2. e"),
    "wrapping a word": ("a <b>c</b> d, <em>e</em>.", "a c d, e."),
    "HTML": ("a<br/>b <img src=\"x.png\" alt='y'> c <span class=d>e</span>", "ab c e"),
    "over lines": ('a\n\n<Figure\n  src="b"\n  alt="c"\n/>\n\nd', "a\n\nd"),
    "sign in quotes": ("<Figure alt=\"a > b\" title='c />' />d", "d"),
    "backtick and dollar in quotes": ("<Figure alt=\"`a\" b='$c' />d ` e $ f", "d ` e $ f"),
    "closing with a space": ("<A >b</A >", "b"),
    "in a heading and a table": ("## a <Badge />\n\n| <b>c</b> | d |", "## a\n\n| c | d |"),
    "between code": ("`<a>` <b>`c`</b> `<d>`", "`<a>` `c` `<d>`"),
    "between mathematics": ("$a$ <b>$c$</b> $d$", "$a$ $c$ $d$"),
    "money": ("from $5 <b>to</b> $10, or US$5 <b>to</b> US$6", "from $5 to $10, or US$5 to US$6"),
    "two dollars in two paragraphs": ("$$ a\n\n<b>c</b>\n\nd $$", "$$ a\n\nc\n\nd $$"),
    "two dollars in an item and after it": ("- $$\n  a\n\nb $$ <i>c</i>", "- $$\n  a\n\nb $$ c"),
    "escaped backticks": (r"\`<b>\` and \``<b>`", r"\`\` and \``<b>`"),
    "escaped money": (r"\$5 <b>to</b> 6\$", r"\$5 to 6\$"),
    "dollars in two paragraphs": ("a $\n\n<b>c</b>\n\nd $", "a $\n\nc\n\nd $"),
    "after a fence": ("```\na\n```\n<Toc />\n\nb", "```\na\n```\n\nb"),
    "after a fence at once": ("~~~\na\n~~~\n\n<Toc />\n\nb `c` {/* d */}", "~~~\na\n~~~\n\nb `c`"),
}


@pytest.mark.parametrize("mdx", [True, False])
@pytest.mark.parametrize(("text", "expected"), GOES.values(), ids=GOES)
def test_goes(text, expected, mdx):
    assert clean(text, mdx) == expected


# Of MDX alone: JSX, and the code of a page.
GOES_FROM_MDX = {
    "comment over lines": ("a\n\n{/* b\n\n  <Toc /> ``` $\n*/}\n\nc", "a\n\nc"),
    "wrapping a fence": ("<A>\n```\n<s>\n```\n</A>", "```\n<s>\n```"),
    "fragment": ("<>\na\n</>", "a"),
    "dotted name": ("<Tabs.Item label='a'>b</Tabs.Item>", "b"),
    "blank line in quotes": ('<Figure alt="a\n\nb" />c', "c"),
    "expression": ("<A rows={64} f={x => x > 1} />b", "b"),
    "nested expression": ("<A style={{ a: { b: '}' } }} icon={<B c='>' />} />d", "d"),
    "text in an expression": ('<A b={`}>`} c={"}>"} d={/* }> */ 1} />e', "e"),
    "spread": ("<A {...props} {/* b */} c />d", "d"),
    "attributes without a space between them": ("<A b=\"c\"d='e'f={1}g />x", "x"),
    "tag as a value": ('<A b=<C d="e"/> f={<G />} />x', "x"),
    "tags in a value": ("<A f={() => <b>x</b>} g={[<B />, <></>]}>y</A>", "y"),
    "expression with tags": ("a {b && <i>c</i>} d", "a d"),
    "expression with tags over lines": ("a\n\n{b.map(c => (\n  <li>{c}</li>\n\n))}\n\nd", "a\n\nd"),
    "comment to the end of a line": ("a {// it's }\n} b", "a b"),
    "backtick in a regular expression": ("export const a = /[/`]/g\n\nb `c` d", "b `c` d"),
    "backtick in a tag's text": ("export const a = <kbd>`</kbd>\n\nb `c` d", "b `c` d"),
    "apostrophe and backtick in a component": ("export const A = () => <p>it's ` {1}</p>\n\nb's `c`", "b's `c`"),
    "division": ("export const a = b / c, d = 1 / 2\n\ne `/` f", "e `/` f"),
    "division after a bracket": ("export const a = (b) / c + `/`\n\nd ` e", "d ` e"),
    "division after a space": ("export const a = b / `c/`.length\n\nd ` e", "d ` e"),
    "regular expression after a word": ("export const a = async b => await /`/.c(b)\n\nd ` e", "d ` e"),
    "import of data": ("import a from 'a' with { type: 'json' }\nimport b from 'b' assert { c: 'd' };\n\ne", "e"),
    "comment after an import": ("import A from 'a'\n// b\nc", "c"),
    "comparison": ("export const a = b < c ? <D /> : e > 1\n\nf", "f"),
    "brackets that don't fit": ("export const a = (\n\nb (c\n\nd `e`", "b (c\n\nd `e`"),
    "export, then a heading": ("export const a = 1\n# b\n\nc", "# b\n\nc"),
    "code between imports": ("import A from 'a'\nconst b = 1\nimport C from 'c'\n\nd", "d"),
    "code and comments among imports": ("import A from 'a'\n\n// b\nconst c = [\n\n1]\n\nexport { c }\n\nd", "d"),
    "prose after imports": ("import A from 'a'\n\nlet x = 1 be given", "let x = 1 be given"),
    "imports after a heading": ("# a\nimport B from 'b'\nexport const c = 1\n\nd", "# a\n\nd"),
    "style": ("<style>{`\n.a { b: c }\n\n.d {}\n`}</style>\n\ne", "e"),
    "script that is closed at once": ("<script a={`b > c`} />d <script></script>e", "d e"),
    "in a quotation over lines": ("> a <B\n>   c={{ d: '>' }}\n> /> e\n>\n> <F />\n>\n> g", "> a e\n>\n> g"),
    "in a quotation, first in its line": ("> a\n>\n> <B c='`'\n>  {...d}\n>  f />\n>\n> e", "> a\n>\n> e"),
    "in a list": ("- <A\n    b\n  />\n- c <D />", "-\n- c"),
    "in tags, code that is indented": (
        "<A>\n\n    ```\n    <b>\n    ```\n\n    c <d>e</d>\n</A>",
        "    ```\n    <b>\n    ```\n\n    c e",
    ),
}
STAYS_IN_MDX = {
    "expression": "a {b.c} d {'<e>'} {`f <g>`} {h < i}",
    "declaration": "<!DOCTYPE html>",
    "import in a quotation": "> import A from 'a'",
    "import in a paragraph": "a\nimport B from 'b'\nc",
    "export in prose": "export default values are listed\n\nexport class A drugs",
    "autolinks": "<https://a.b/c?d=e> <mailto:f@g.h> <i@j.k>",
}


@pytest.mark.parametrize(("text", "expected"), GOES_FROM_MDX.values(), ids=GOES_FROM_MDX)
def test_goes_from_mdx(text, expected):
    assert clean(text) == expected


@pytest.mark.parametrize("text", STAYS_IN_MDX.values(), ids=STAYS_IN_MDX)
def test_stays_in_mdx(text):
    assert clean(text) == text


# Of Markdown alone: HTML, and code that is indented.
STAYS_IN_MARKDOWN = {
    "indented code": "a\n\n    tool <width> <height>\n\n    <!-- b -->\n\nc",
    "code indented by a tab": "\t<a>",
    "indented code in a list": "- a\n\n      b <c>\n\n1. d\n\n       e <f>",
    "indented code in a quotation": ">     a <b>",
    "names that aren't those of tags": "#include <stdio.h>, std::vector<my_type>, <user_name>@host, <gh: @name>, <a.b>",
    "no name": "<> and </> and < b> and <3>",
    "address spelt out": "write to <jo.doe AT mail>",
    "addresses": "<https://a.b/?c=d> <mailto:e@f.g> <jo.doe@mail.org>",
    "destinations in angle brackets": '[a](<b c>) ![d]( <e> "f <g>" ) [h](<i>)',
    "definition of a link": '[a]\n\n[a]: <b> "c <d>"',
    "expression": "a {b} {{ site.title }} {% c %}",
    "code that ends with its list": "- ```\n  <a>\n\n[b]: <c>",
    "export and class in prose": "export default settings to a file\n\nexport class A drugs",
    "comment that isn't closed in its paragraph": "a <!-- b\n\nc --> d",
}
GOES_FROM_MARKDOWN = {
    "comment before a sign": (
        "The value <!-- check -->, as said, is 3.\n\n`a`\n\n```\n<b>\n```\n\nThe end <!-- done -->",
        "The value , as said, is 3.\n\n`a`\n\n```\n<b>\n```\n\nThe end",
    ),
    "dollars in indented code": ("    $$\n\na <i>b</i>\n\n$$", "    $$\n\na b\n\n$$"),
    "backtick in an address": ("<https://a.b/`c> <i>d</i>`", "<https://a.b/`c> d`"),
    "comments in one line": ("a <!-- b --> c <!-- d --> e <!----> f", "a c e f"),
    "comment over paragraphs": ("a\n\n<!-- b\n\n```\n--> c\n\nd", "a\n\n c\n\nd"),
    "inline code in two paragraphs": ("a ` <b>c</b>\n\nd ` e", "a ` c\n\nd ` e"),
    "inline code in two rows": (
        "| a | b |\n|---|---|\n| ` | <i>c</i> |\n| ` | d |",
        "| a | b |\n|---|---|\n| ` | c |\n| ` | d |",
    ),
    "inline code in two items": ("- ` <b>a</b>\n- ` b", "- ` a\n- ` b"),
    "script": ("a\n\n<script>\nif (b < c) d()\n\nvar e = '</i>'\n</script>\n\nf", "a\n\nf"),
    "style": ('a\n\n<STYLE media="b">\nc > d {}\n\ne {}\n</style>\n\nf', "a\n\nf"),
    "script and style in a line": ("a <script>b</script> <style>c</style> d", "a d"),
    "script that isn't closed": ("<script>\na\n\nb <i>c</i>", "a\n\nb c"),
    "preformatted text": ("<pre>\na <b>c</b>\n\n  d\n</pre>\n\n<i>e</i>", "a c\n\n  d\n\ne"),
    "HTML is no Markdown": ("<div>\n`<b>a</b>`\n</div>\n\n`<b>`", "`a`\n\n`<b>`"),
    "addresses in HTML": (
        "<pre>\n<jo.doe@mail.org> <https://a.b/c> <stdio.h>\n</pre>",
        "<jo.doe@mail.org> <https://a.b/c> <stdio.h>",
    ),
    "attributes that CommonMark has not": ('<p>\n<img src="a"alt="b > c"> d <o:p>e</o:p>\n</p>', " d e"),
    "instructions and declarations": ("<?php a > b ?>\n\nc <!DOCTYPE d> e <![CDATA[f]]>", "c e"),
    "details": ("<details>\n<summary>a</summary>\n\nb `<c>`\n\n</details>", "a\n\nb `<c>`"),
    "tag in a quotation over lines": ("> a <b\n> class=c>d</b>", "> a d"),
    "comment of MDX": ("a {/* b */} c", "a c"),
    "Markdown with imports is MDX": ("import A from 'a'\n\n<A b={c > d}>e</A> <A.b />", "e"),
    "Markdown that shows imports is not": (
        "```js\nimport A from 'a'\n```\n\n    <b>",
        "```js\nimport A from 'a'\n```\n\n    <b>",
    ),
}


@pytest.mark.parametrize("text", STAYS_IN_MARKDOWN.values(), ids=STAYS_IN_MARKDOWN)
def test_stays_in_markdown(text):
    assert clean(text, mdx=False) == text


@pytest.mark.parametrize(("text", "expected"), GOES_FROM_MARKDOWN.values(), ids=GOES_FROM_MARKDOWN)
def test_goes_from_markdown(text, expected):
    assert clean(text, mdx=False) == expected


METADATA = {
    "closed by dots": ("---\ntitle: a\n...\nb\n\n---\n\nc", "b\n\n---\n\nc"),
    "a comment first": ("---\n\n# a\n'b c': d\n---\ne", "e"),
    "with its language": ('---json\n{"title": "a"}\n---\nb', "b"),
    "a rule first": ("---\n\na\n\n---\n\nb", "---\n\na\n\n---\n\nb"),
    "not closed": ("---\ntitle: a\n\nb", "---\ntitle: a\n\nb"),
    "Pelican": ("Title: a\nDate: 2020-01-01 10:20\nTags: b, c\n\nd: e\n\nf", "d: e\n\nf"),
    "Pelican without spaces": ("title:a\nslug:b\n\nc", "c"),
    "MultiMarkdown": ("Title:  a\n        b\nBase Header Level: 2\n\nc", "c"),
    "without a title": ("Author: a\nDate: b\n\nc", "c"),
    "Hexo": ("title: a\ndate: b\n---\nc", "c"),
    "only a header": ("Title: a\n", ""),
    "JSON": ('{\n  "title": "a",\n  "tags": ["b", {"c": 1}]\n}\n\nd', "d"),
    "JSON in a sentence": ('{"a": 1} is JSON', '{"a": 1} is JSON'),
    "braces that are no JSON": ("{a: 1}\n\nb", "{a: 1}\n\nb"),
    "one name that a sentence may begin with": ("Date: a\n\nb", "Date: a\n\nb"),
    "prose with a colon": ("Note: a\n\nb", "Note: a\n\nb"),
    "title in a paragraph": ("Title: a\nis a word.\n\nb", "Title: a\nis a word.\n\nb"),
    "addresses": ("title://a\n\nb", "title://a\n\nb"),
}


@pytest.mark.parametrize("mdx", [True, False])
@pytest.mark.parametrize(("text", "expected"), METADATA.values(), ids=METADATA)
def test_metadata(text, expected, mdx):
    assert clean(text, mdx) == expected


def test_line_ends_of_other_systems():
    assert clean("a\r\n\r\n<B />\r\n\r\nc\rd") == "a\n\nc\nd"


OPENINGS = ["<A b={", "<A b='", "{/* ", "$a ", "`", "<A b ", "import {a, ", "export const a = ({[", "<A {`", "<A b=<B "]
OPENINGS += ["{(", "{\n", "<a>{", "](<", "$$\n\n", "<!-- ", "<script> ", "a: b\n", '{"a":', "- ", "> "]
OPENINGS += ["export const a = (\n\nb\n\n"]


@pytest.mark.parametrize("opening", OPENINGS)
def test_adversarial_text_takes_no_time(opening):
    # Thousands of openings without an end: each must fail where it stands, not after trying all ways to go on.
    started = time.process_time()
    for mdx in True, False:
        clean("\n" + 2000 * opening, mdx)
        clean(2000 * opening, mdx)
    assert time.process_time() - started < 5  # seconds; trying all ways to go on would take longer than anyone waits


def test_shares_by_hand():
    # 20 characters: a fence of 9, code of 3, mathematics of 3, and the five others, newlines among them.
    found = shares("```\nx\n```\n`y` $z$ ww"[:20])
    assert found == pytest.approx({"code blocks": 0.45, "inline code": 0.15, "mathematics": 0.15, "prose": 0.25})
    # 16 characters: indented code of 6, mathematics of 7 in lines of its own, and three newlines.
    found = shares("    <a\n\n$$\nb\n$$\n")
    assert found == pytest.approx({"code blocks": 6 / 16, "inline code": 0, "mathematics": 7 / 16, "prose": 3 / 16})


# Texts made at random. Every word, attribute and name of a tag has a number of its own.

NUMBERED = re.compile(r"n\d+")
PIECES = [
    "`",
    "``",
    "`` ` ",
    "```",
    "\\`",
    "\\\\",
    "\\<",
    "<n>",
    "</n>",
    "<n a='b > c'>",
    '<n b="`">',
    "<n\nc=d>",
    "<n/>",
]
PIECES += [
    "<!-- n -->",
    "<!--n",
    "-->",
    "<?n?>",
    "<!N n>",
    "<n_n>",
    "<n AT n>",
    "<>",
    "<n",
    "<n.h>",
    "n_<n>_",
    "<https:n <n>>",
]
PIECES += [
    "n",
    "n",
    "*",
    "_n_",
    "[n](<n>)",
    '[n](n "<n>")',
    "[n][n]",
    "[",
    "[a]",
    "![n](n)",
    "(",
    "|",
    "&lt;",
    "{",
    "}",
    "'",
]
PIECES += ["<https://n.org>", "<n@n.org>", '"', "<div id='n'>"]
LINES = [
    "",
    "",
    "",
    "---",
    "===",
    "```",
    "````",
    "~~~",
    "```n",
    "``` n `",
    "    n <n>",
    "\t<n> n",
    "# n <n> `<n>` ##",
    "<div>",
]
LINES += [
    "</div>",
    "<!-- n",
    "n -->",
    "<script>",
    "</script>",
    "<style id=n>",
    "</style>",
    "<pre>",
    "</pre>",
    "<n>",
    "  <n>",
]
LINES += [
    "</n>",
    "<n a='b'>",
    "[n]: <n>",
    "[===]: n",
    "| n | <n> `n` |",
    "|---|---|",
    "> n",
    "> ",
    "> ```",
    "> <n>",
    "- n",
]
LINES += [
    "-",
    "1. n",
    "1.",
    "-     <n>",
    "- ```",
    "> > <n> `",
    "* * *",
    "<details>",
    "<summary>n `<n>`</summary>",
    "]]>",
]
LINES += ["<![CDATA[n", "<table><tr><td>n"]
INDENTS = ["", "", "", "", "  ", "    ", "      ", "> ", "- ", "  - ", "1. ", ">   ", "> > ", "\t", "  > "]
WHOLE = re.compile(  # HTML that a browser and CommonMark agree about
    r"<!--.*?-->|<\?[^>]*\?>|<![A-Z][^>]*>|<(script|style)[^<>]*>.*?</\1>"
    r"|</?(?!script|style)[a-z]+\d*(?=[\s/>])(?:[^<>\"']|\"[^\"]*\"|'[^']*')*>",
    re.DOTALL,
)


def random_markdown(source: random.Random) -> str:
    lines = []
    for _ in range(source.randint(1, 14)):
        pieces = [source.choice(PIECES) for _ in range(source.randint(1, 6))]
        line = source.choice(["", "n "]) + source.choice(["", " "]).join(pieces)
        lines.append(source.choice(INDENTS) + (line if source.random() < 0.5 else source.choice(LINES)))
    return numbered("\n".join(lines))


def numbered(text: str, words: str = "n") -> str:
    numbers = itertools.count()
    return re.sub(rf"(?<![a-z])({words})(?![a-z])", lambda word: f"{word[0]}{next(numbers)}", text)


class Shown(HTMLParser):
    """The text that a browser shows of HTML."""

    def __init__(self, html: str):
        super().__init__(convert_charrefs=False)
        self.text = ""
        self.feed(html)
        self.close()

    def handle_data(self, data):
        if self.cdata_elem is None:
            self.text += data


def html_of(tokens) -> tuple[set[str], set[str]]:
    """What of a text is in tags and comments, and what is in HTML so broken that nobody can say."""
    gone, unsure = set(), set()
    for token in tokens:
        words = set(NUMBERED.findall(token.content))
        if token.type == "html_inline":
            gone |= words
        elif token.type == "html_block" and re.search(r"<[a-zA-Z!?]|-->", WHOLE.sub("", token.content)):
            unsure |= words
        elif token.type == "html_block":
            gone |= words - set(NUMBERED.findall(Shown(token.content).text))
        elif token.children and token.type != "image":
            found = html_of(token.children)
            gone, unsure = gone | found[0], unsure | found[1]
    return gone, unsure


def test_markdown_keeps_what_a_parser_calls_text_and_code():
    parser, tags = MarkdownIt("commonmark").enable("table"), 0
    for seed in range(1500):
        text = "n\n" + random_markdown(random.Random(seed))  # so that no metadata come first
        gone, unsure = html_of(parser.parse(text))
        tags += len(gone)
        expected = [word for word in NUMBERED.findall(text) if word not in gone | unsure]
        assert [word for word in NUMBERED.findall(clean(text, mdx=False)) if word not in unsure] == expected, repr(text)
    assert tags > 2000


# MDX: a word of a piece is n, and becomes "stay" or "go" where the piece is used.
VALUES = [
    "n",
    "'n'",
    '"n}"',
    "`n`",
    "`n ${n} {`",
    "/[/`]n/g",
    "[n, {n: n}]",
    "n / n / n",
    "(n)",
    "n < n",
    "!/`/.test(n)",
]
ELEMENTS = ["<N>n</N>", "<N n='n'/>", "n => <N>it's `</N>", "<>n {n} `</>", "n.map(n => (\n  <N>n</N>\n))", "n && <N/>"]
ATTRIBUTES = [
    'n="n > n"',
    "n='`n'",
    "n={n}",
    'n={{n: "}"}}',
    "{...n}",
    "n={`}>n`}",
    "n={/[`}]n/}",
    "n={() => <N>`</N>}",
]
WORDS = [
    "n",
    "`n`",
    "`<n>`",
    "`` ` {n} ``",
    "`{/* n */}`",
    "$n<n$",
    "$$n$$",
    "\\<n",
    "\\{n",
    "[n](<n>)",
    '[n](n "<n>")',
    "it's n",
]
CODE = ["```js\nimport n from 'n'\n\n<n>\n{/* n */}\n```", "~~~\n<n>\n```\n~~~", "$$\nn <n>\n\nn\n$$"]
COMMENTS = ["{/* n */}", "{/* n } ` */}", "{ /* n */ /* n */ }"]
MODULES = [
    "import n from 'n'",
    'import {n, n as n} from "n"',
    "export {n}",
    "export * from 'n'",
    "export const n = <n>`</n>",
]
MODULES += ["export function n() {\n  // it's `n\n\n  return <N>n</N>\n}", "export const n = `\n\n# n\n`"]
MODULES += ["export const n = (\n\n<N/>)", *(f"export const n = {value}" for value in VALUES + ELEMENTS)]


def stays(text: str) -> str:
    return re.sub(r"\bn\b", "stay", text)


def goes(text: str) -> str:
    return re.sub(r"\bn\b", "go", text)


def tag(source: random.Random) -> str:
    attributes = source.choices(ATTRIBUTES, k=source.choice([0, 0, 1, 2]))
    return goes("".join(["<N", *(source.choice([" ", "\n "]) + attribute for attribute in attributes)]))


def inline(source: random.Random, depth=0) -> str:
    kind = source.random()
    if kind < 0.4:
        return stays(source.choice(WORDS))
    if kind < 0.5:
        return stays("{" + source.choice(VALUES) + "}")
    if kind < 0.6:
        return goes("{" + source.choice(ELEMENTS) + "}")
    if kind < 0.7:
        return goes(source.choice(COMMENTS))
    if kind < 0.8 or depth > 1:
        return tag(source) + "/>"
    return f"{tag(source)}>{inline(source, depth + 1)}</N>"


def block(source: random.Random, depth=0) -> str:
    kind = source.random()
    if kind < 0.4 or depth > 2:
        return source.choice([" ", "\n"]).join(["stay", *(inline(source) for _ in range(source.randint(0, 4)))])
    if kind < 0.5:
        return stays(source.choice(CODE))
    if kind < 0.65:
        return goes(source.choice(["{/* n\n\n``` n */}", "{(\n\n  <N>n</N>\n)}", *(COMMENTS if depth else MODULES)]))
    if kind < 0.75:
        return source.choice(
            [tag(source) + "/>", "## stay " + inline(source).replace("\n", " "), "stay\n{/* go\n\n*/}"]
        )
    inner = block(source, depth + 1)
    if kind < 0.9:
        return f"{tag(source)}>\n\n{inner}\n\n</N>"
    return "- stay\n\n  " + inner.replace("\n", "\n  ")


def test_mdx_keeps_what_it_was_made_to_keep():
    for seed in range(1500):
        source = random.Random(seed)
        text = numbered("\n\n".join(block(source) for _ in range(source.randint(1, 6))), "stay|go")
        assert re.findall(r"stay\d+|go\d+", clean(text)) == re.findall(r"stay\d+", text), repr(text)
