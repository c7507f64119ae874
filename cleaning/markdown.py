"""A post in Markdown or MDX as plain text, without its markup.

Metadata, imports and exports, comments and tags go (the text inside a pair of tags stays); scripts and styles go whole.
Prose, mathematics and code stay exactly as written: inside a code block, inline code or mathematics nothing is markup,
whatever it looks like. A line that held only what goes, goes with it; a blank line on both sides of it becomes one.

Which lines are a paragraph, a code block or HTML is for markdown-it-py to say, which follows CommonMark; what is markup
inside of a paragraph is found here. Where Markdown has HTML and indented code, MDX (mdxjs.com) has JSX (see jsx.py).
Both are read generously: comments are those of either, and a dollar that can't open or close mathematics is money.
"""

import functools
import json
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate

from cleaning import jsx

GONE = "\r"  # stands where something went: no line has one

FRONTMATTER = re.compile(  # in YAML its first line has a name, otherwise the dashes are a rule
    r"(?:(?P<yaml>---)[ \t]*(?:yaml|toml|json)?|\+\+\+)[ \t]*\n"
    r"(?(yaml)(?=(?:[ \t]*(?:#.*)?\n)*(?:[\"']?[\w.-]+(?: [\w.-]+)?[\"']?[ \t]*:(?:[ \t]|\n)|[{}]|---|\.\.\.)))"
    r"(?:.*\n)*?(?(yaml)(?:---|\.\.\.)|\+\+\+)[ \t]*(?:\n|\Z)"
)
HEADER = re.compile(  # names and values with no line above them, as Pelican and MultiMarkdown have it
    r"(?:[A-Za-z][\w .-]*:(?!//).*(?:\n|\Z)(?:[ \t]+\S.*(?:\n|\Z))*)+(?:(?:---|\.\.\.)[ \t]*)?(?:\n|\Z)"
)
HEADER_NAMES = {"author", "authors", "categories", "category", "date", "layout", "slug", "summary", "tags"}

# What stays inside of a paragraph. Whatever begins first is taken, so what looks like markup in it is never seen.
CODE = r"(?P<code>(?P<ticks>`++).+?(?<!`)(?P=ticks)(?!`))|`++"
MATH = (  # a dollar and the next one, unless that spells money: "$5 to $10" or "$5 or so, $ and cent"
    r"(?P<math>\$\$.+?\$\$|\$(?!\$)(?P<digit>\d)?+(?:\\.|[^$`\\])*?(?(digit)(?<=\S))\$(?!\d))"
)
ESCAPED = r"\\[!-/:-@\[-`{-~]"
TITLE = r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'"
LINK = rf"\]\(\s*(?:<(?:\\.|[^<>\\\n])*>|[^\s<>()]*)(?:\s+(?:{TITLE}))?\s*\)"
AUTOLINK = r"<[A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]*>|<[\w.!#$%&'*+/=?^`{|}~-]+@[\w.-]+>"
STAYS = f"{CODE}|{MATH}|{ESCAPED}|{LINK}"

# What goes.
ATTRIBUTE = r"\s+[A-Za-z_:][A-Za-z0-9_.:-]*(?:\s*=\s*(?:[^\s\"'=<>`]+|'[^']*'|\"[^\"]*\"))?"
TAG = rf"<[A-Za-z][A-Za-z0-9-]*(?:{ATTRIBUTE})*+\s*/?>|</[A-Za-z][A-Za-z0-9-]*\s*>"
COMMENT = r"<!--(?:-?>|.*?-->)"
INSTRUCTION = r"<\?.*?\?>|<![A-Za-z][^>]*>|<!\[CDATA\[.*?\]\]>"
RAW = r"<(?P<raw>(?i:script|style))\b[^<>]*>%s</(?i:(?P=raw))\s*>"  # what is between these tags is no text
SLOPPY = (  # what a browser takes as a tag, and nobody as an address
    r"</?[A-Za-z][A-Za-z0-9-]*(?::[A-Za-z0-9-]+)?(?=[\s/>])(?:[^<>\"']|\"[^\"]*\"|'[^']*')*+>"
)

IN_MARKDOWN = re.compile(
    rf"{STAYS}|{AUTOLINK}|(?P<gone>{RAW % '[^`]*?'}|{TAG}|{COMMENT}|{INSTRUCTION}|{jsx.COMMENTS})", re.DOTALL
)
IN_HTML = re.compile(rf"(?P<gone>{RAW % '.*?'}|{COMMENT}|{INSTRUCTION}|{SLOPPY})", re.DOTALL)
IN_MDX = re.compile(rf"{STAYS}|(?P<mdx>[<{{])", re.DOTALL)

LINE = r"^[ \t>]*(?:\r[ \t]*)++(?:\n|\Z)"
LINES = re.compile(rf"^[ \t>]*\n(?:{LINE})++(?=[ \t>]*$)|{LINE}", re.MULTILINE)
SPACED = re.compile(r"(?<=[^ \t\n])[ \t]+\r(?=[^\S\r]|\Z)")


def clean(text: str, mdx: bool = True) -> str:
    """A post's text without its markup and without blank lines around it."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    body = text[_metadata(text) :].lstrip("\n")
    pieces, done = [], 0
    for kind, start, end in _parts(body, mdx):
        if kind == "gone":
            pieces += body[done:start], GONE
            done = end
    marked = "".join(pieces) + body[done:]
    return SPACED.sub("", LINES.sub("", marked)).replace(GONE, "").strip("\n")


def shares(text: str) -> dict[str, float]:
    """How much of a cleaned text is code blocks, inline code, mathematics and prose."""
    lengths = Counter()
    for kind, start, end in _parts(text, mdx=False):
        lengths[kind] += end - start
    named = {"code blocks": "fenced", "inline code": "code", "mathematics": "math"}
    found = {name: lengths[kind] / len(text) for name, kind in named.items()}
    return found | {"prose": 1 - sum(found.values())}


def _metadata(text: str) -> int:
    """Where the data about a post, which it may begin with, end."""
    if match := FRONTMATTER.match(text):
        return match.end()
    if match := HEADER.match(text):
        names = {line.partition(":")[0].strip().lower() for line in match[0].split("\n")}
        if "title" in names or len(names & HEADER_NAMES) > 1:
            return match.end()
    if text.startswith("{"):
        try:
            found, end = json.JSONDecoder().raw_decode(text)
        except (ValueError, RecursionError):
            return 0
        if found and not text[end:].partition("\n")[0].strip():
            return end
    return 0


def _parts(text: str, mdx: bool) -> Iterator[tuple[str, int, int]]:
    """What of a text isn't prose, in order: its kind (fenced, code and math stay, gone goes), its start and its end."""
    tokens = _parser(mdx).parse(text)
    if not mdx and any(token.type == "module" for token in tokens):  # Markdown that imports components is MDX
        mdx, tokens = True, _parser(True).parse(text)
    starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
    scanned = quoted = 0
    for token in tokens:
        quoted += (token.type == "blockquote_open") - (token.type == "blockquote_close")
        if token.type in ("math", "module"):
            yield token.type.replace("module", "gone"), *token.meta["span"]
        elif token.type in ("fence", "code_block"):
            yield "fenced", starts[token.map[0]], starts[token.map[1]] - 1
        elif token.type in ("inline", "html_block", "jsx") and token.map[0] >= scanned:  # a table's cells share a line
            scanned = token.map[1]
            start = starts[token.map[0]]
            for kind, first, last in _inside(text[start : starts[scanned] - 1], token.type, mdx, quoted):
                yield kind, start + first, start + last


def _inside(text: str, block: str, mdx: bool, quoted: int) -> Iterator[tuple[str, int, int]]:
    """The same of the lines of one block that is no code; ``quoted`` is in how many quotations it stands."""
    if quoted:
        text = re.sub(rf"^(?:[ \t]*>){{1,{quoted}}}", lambda mark: " " * len(mark[0]), text, flags=re.MULTILINE)
    pattern = IN_HTML if block == "html_block" else IN_MDX if mdx else IN_MARKDOWN
    reader, position = jsx.Reader(text), 0
    while match := pattern.search(text, position):
        kind, position = match.lastgroup, match.end()
        if kind == "mdx" and (found := _mdx(reader, match.start())):
            position, goes = found
            kind = "gone" if goes else None
        if kind in ("code", "math", "gone"):
            yield kind, match.start(), position


def _mdx(reader: jsx.Reader, start: int) -> tuple[int, bool] | None:
    """The end of a comment, a tag or an expression in MDX that starts here, and whether it goes."""
    text = reader.text
    if text.startswith("{", start):
        return reader.expression(start)
    if match := re.compile(COMMENT, re.DOTALL).match(text, start):
        return match.end(), True
    if end := reader.tag(start):
        raw = re.compile(r"<(script|style)\b", re.IGNORECASE).match(text, start)
        if raw and text[end - 2] != "/" and (match := re.compile(rf"</{raw[1]}\s*>", re.IGNORECASE).search(text, end)):
            end = match.end()
        return end, True
    return None


@functools.cache
def _parser(mdx: bool):
    """A parser that tells blocks apart and nothing inside of them."""
    from markdown_it import MarkdownIt  # here, since most who import this file have nothing to clean

    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.enableOnly(["block"])
    parser.block.ruler.before("table", "module", _module)
    parser.block.ruler.before("table", "math", _math, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    if mdx:
        parser.disable(["code", "html_block"])
        parser.block.ruler.before("table", "jsx", _jsx, {"alt": ["paragraph"]})
    return parser


# Rules for markdown-it-py: each looks at a line, adds the block that begins there, if one does, and says whether.


def _block(state, kind: str, line: int, start: int, end: int) -> bool:
    state.line = bisect_left(state.eMarks, end, line) + 1
    token = state.push(kind, "", 0)
    token.map, token.meta = [line, state.line], {"span": (start, end)}
    return True


def _reader(state) -> jsx.Reader:
    return state.env.setdefault("reader", jsx.Reader(state.src))


def _module(state, line: int, last: int, silent: bool) -> bool:
    start = state.bMarks[line]
    if state.level or not state.src.startswith(("import", "export"), start):
        return False
    end = _reader(state).module(start)
    return end is not None and _block(state, "module", line, start, end)


def _math(state, line: int, last: int, silent: bool) -> bool:
    """Lines from $$ to $$. Blank lines may be among them only if the first $$ has its line to itself."""
    start = state.bMarks[line] + state.tShift[line]
    if not state.src.startswith("$$", start) or state.is_code_block(line):
        return False
    rest = state.src[start + 2 : state.eMarks[line]]
    for after in range(line + 1, last if "$$" not in rest else 0):
        end = state.src.find("$$", state.bMarks[after], state.eMarks[after])
        if end >= 0 and state.sCount[after] >= state.blkIndent:
            return silent or _block(state, "math", line, start, end + 2)
        if state.isEmpty(after) and rest.strip():
            break
    return False


def _jsx(state, line: int, last: int, silent: bool) -> bool:
    """Tags and expressions that have their lines to themselves, or that hold a blank line, which ends a paragraph."""
    start = position = end = state.bMarks[line] + state.tShift[line]
    reader = _reader(state)
    while found := state.src.startswith(("<", "{"), position) and _mdx(reader, position):
        end = found[0]
        position = state.skipSpaces(end)
    blank = re.search(r"\n[ \t]*\n", state.src[start:end])
    alone = end > start and state.src[position : position + 1] in ("", "\n")
    quoted = state.src[state.bMarks[line] - 1 : state.bMarks[line]] not in ("", "\n")  # its lines begin with a sign
    if (not blank and (silent or not alone)) or (quoted and "\n" in state.src[start:end]):
        return False
    return silent or _block(state, "jsx", line, start, end)
