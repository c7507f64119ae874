"""Where JSX, and the JavaScript in it, ends: the part of MDX (mdxjs.com) that no Markdown parser knows.

Brackets, quotes, comments, regular expressions and tags are told apart, nothing else: that is enough to find the end of
a tag, of an expression in braces, or of a page's own module code. What has no end, or brackets that don't match, isn't
any of these.
"""

import re

COMMENT = r"//[^\n]*|/\*[\s\S]*?\*/"
STRING = r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
REGEX = r"/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\[\n])+/\w*"
OPERATOR = r"(?:return|typeof|case|default|await|yield|in|of|do|else|new|void|delete|throw|instanceof)\b"
NAME = r"[A-Za-z_$][\w.:$-]*"
OPENING = rf"<(?:{NAME}(?=[\s/>{{])|(?=>))"
CLOSING = rf"</(?:{NAME})?\s*>"

# What comes next inside of what is open. A group's name says what that does.
SCRIPT = (
    rf"(?P<gap>\s+|{COMMENT})|(?P<operator>{OPERATOR})|(?P<value>{STRING}|[\w$]+)"
    r"|(?P<open>[(\[{`])|(?P<close>[)\]}])"
)
AFTER_VALUE = re.compile(rf"{SCRIPT}|(?P<sign>[\s\S])")  # a slash divides here, and < compares
BEFORE_VALUE = re.compile(rf"{SCRIPT}|(?P<regex>{REGEX})|(?P<element>{OPENING})|(?P<sign>[\s\S])")
INSIDE = {
    "`": re.compile(r"(?:\\[\s\S]|\$(?!\{)|[^`\\$])*(?:(?P<close>`)|\$(?P<open>\{))"),
    "children": re.compile(rf"[^<{{]*(?:(?P<close>{CLOSING})|(?P<element>{OPENING})|(?P<open>\{{))"),
    "tag": re.compile(  # attributes: a space before each, unless what is before it ends in a quote or a brace
        r"(?P<attribute>(?:\s+|(?<=[\"'}]))[\w:@$][\w.:@$-]*(?:\s*=\s*(?:\"[^\"]*\"|'[^']*'|(?=[{<])|[^\s\"'=<>`{}]+))?)"
        rf"|\s*(?:(?P<open>\{{)|(?<=[=\s])(?P<element>{OPENING})|(?P<close>/>)|(?P<end>>)|(?P<gap>/\*[\s\S]*?\*/))"
    ),
}
CLOSED_BY = {"(": ")", "[": "]", "{": "}", "`": "`"}

COMMENTS = rf"\{{\s*(?:(?>{COMMENT})\s*)+\}}"
PARAGRAPH_END = re.compile(r"[ \t]*(?:\n[ \t]*(?:\n|\Z)|\n(?=#{1,6}[ \t])|\Z)")
BINDINGS = r"(?:\*\s*as\s+[\w$]+|\{[^{}]*\})"
IMPORT = re.compile(
    rf"import\b\s*(?:(?:type\s+)?(?:[\w$]+(?:\s*,\s*{BINDINGS})?|{BINDINGS})\s*from\s*)?(?:'[^'\n]*'|\"[^\"\n]*\")"
    r"(?:\s+(?:with|assert)\s*\{[^{}]*\})?[ \t]*;?[ \t]*(?://[^\n]*)?(?=\n|\Z)"
)
DECLARATION = (
    r"(?:(?:const|let|var)\s+(?:[\w$]+\s*(?::[^=\n]+)?=|[{\[])|(?:async\s+)?function\b\s*\*?\s*[\w$]*\s*\(|"
    r"class\s+[\w$]+[^{\n]*\{|type\s+[\w$]+[^=\n]*=|interface\s+[\w$]+[^{\n]*\{|enum\s+[\w$]+\s*\{)"
)
EXPORT = re.compile(
    rf"export\s+{DECLARATION}|export\s+default\s+(?:(?:async|function|class)\b|[^\w\s]|[\w$.]+[ \t]*(?:[;(=]|$))"
    r"|export\s*(?:type\s*)?\{[^{}]*\}|export\s*\*\s*(?:as\s+[\w$]+\s*)?from\b",
    re.MULTILINE,
)
BETWEEN = re.compile(rf"(?P<comment>{COMMENT})|{DECLARATION}")


class Reader:
    """Reads JSX anywhere in a text. It remembers what has no end, so that hostile texts take no time."""

    def __init__(self, text: str):
        self.text = text
        self.endless = set()
        self.elements = 0  # how many were read inside of scripts

    def tag(self, start: int) -> int | None:
        """The end of the tag that starts here, if one does. Inside of its braces there may be anything."""
        if match := re.compile(CLOSING).match(self.text, start):
            return match.end()
        match = re.compile(OPENING).match(self.text, start)
        return self._end(match.end(), ("tag", start)) if match else None

    def expression(self, start: int) -> tuple[int, bool] | None:
        """The end of the expression in braces that starts here, and whether it makes tags, or is only a comment."""
        if match := re.compile(COMMENTS).match(self.text, start):
            return match.end(), True
        before = self.elements
        end = self._end(start + 1, ("}", start))
        return (end, self.elements > before) if end else None

    def module(self, start: int) -> int | None:
        """The end of the imports and exports that start here, with the code and the comments among them."""
        end, position = None, start
        while True:
            if match := IMPORT.match(self.text, position):
                end = position = match.end()
            elif EXPORT.match(self.text, position):
                end = position = self._statement(position)
            elif end and (match := BETWEEN.match(self.text, position)):
                apart = re.search(r"\n[ \t]*\n", self.text[end:position])
                position = match.end() if match["comment"] else self._statement(position)
                end = end if apart else position  # after a blank line it counts only if an import or export follows
            else:
                return end
            position += len(re.compile(r"\s*").match(self.text, position)[0])

    def _statement(self, start: int) -> int:
        """The end of the code that starts here: a blank line outside of brackets; any, if these don't fit."""
        return self._end(start, ("code", start)) or PARAGRAPH_END.search(self.text, start).start()

    def _end(self, position: int, opened: tuple[str, int]) -> int | None:
        """Where what was opened is closed. What is open is a stack of (what it is or what closes it, its start)."""
        stack, value = [opened], False
        while self.endless.isdisjoint(stack[-2:]):
            inside, _ = stack[-1]
            if inside == "code" and (match := PARAGRAPH_END.match(self.text, position)):
                return position
            pattern = INSIDE.get(inside) or (AFTER_VALUE if value else BEFORE_VALUE)
            if not (match := pattern.match(self.text, position)):
                break
            position, does = match.end(), match.lastgroup
            if does == "open":
                stack.append((CLOSED_BY[match[does]], match.start(does)))
            elif does == "element":
                self.elements += 1
                stack += ("children", match.start(does)), ("tag", match.start(does))
            elif does == "close" and inside in (match[does], "tag", "children"):
                stack.pop()
                if inside == "tag" and stack and stack[-1][0] == "children":
                    stack.pop()
            elif does == "end":
                stack.pop()
            elif does == "close":
                break
            if not stack:
                return position
            if does != "gap":
                value = does in ("value", "regex", "close")
        self.endless.update(stack)
        return None
