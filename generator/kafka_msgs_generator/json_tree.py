"""Parses the text of a definition to a tree with source positions.

Parses the text level: JSON with ``//`` and ``/* */`` comments, and the line and column of every key and value.
`kafka_msgs_generator.spec` interprets the keys.

The lenient mode reads hand-written and copied pages: all Unicode spaces and zero-width characters count as white space,
strings may span lines, ``#`` starts a comment, a comma may precede a closing bracket, quotes may be typographic, a text
may contain several definitions, and a bare word such as ``TBD`` stands for the value that the caller binds to it. A
word without a binding is still an error, and so is an ellipsis.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Mapping
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Final, NoReturn, TypeAlias

from attrs import frozen

from kafka_msgs.errors import SchemaError

__all__ = ["Node", "Number", "ObjectEntry", "Value", "parse_definition", "parse_definitions", "parse_first"]

_MAX_DEPTH: Final = 100
_NO_BINDINGS: Final[Mapping[str, str]] = {}
_INVISIBLE: Final = "\u00ad\u200b\u200c\u200d\u2060\ufeff"
_SPACES: Final = (
    "\u0085\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
_QUOTES: Final = "\u201c\u201d\u201e\u201f\u2033"
_ELLIPSES: Final = ("...", "\N{HORIZONTAL ELLIPSIS}")
_HINTS: Final[Mapping[str, str]] = {
    **{char: f"a space that is not JSON (U+{ord(char):04X}); --lenient accepts it" for char in _SPACES},
    "\N{NO-BREAK SPACE}": "a non-breaking space (U+00A0) outside a string; --lenient accepts it",
    **{char: f"a character of no width (U+{ord(char):04X}); --lenient accepts it" for char in _INVISIBLE},
    **{char: f"a typographic quote (U+{ord(char):04X}); --lenient accepts it" for char in _QUOTES},
    "#": "'#'; --lenient reads it as the start of a comment",
}
"""Characters on pages that are not JSON, with their names in errors."""
_SKIPPED = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_SKIPPED_LENIENT = re.compile(rf"(?:[ \t\r\n{_SPACES}{_INVISIBLE}]+|(?://|#)[^\n]*|/\*.*?\*/)*", re.DOTALL)
_QUOTED = re.compile(rf'[{_QUOTES}]((?:[^\\"{_QUOTES}]|\\.)*)["{_QUOTES}]', re.DOTALL)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WRAP = re.compile(r"[ \t]*[\r\n]\s*")
_WRAPPED: Final = "a line break or a tab in a string: close the quote before it, or let --lenient join the lines"
_WITHOUT_INVISIBLE: Final = dict.fromkeys(map(ord, _INVISIBLE))
_CONSTANTS: Final[Mapping[str, bool | None]] = {"true": True, "false": False, "null": None}


@frozen
class Number:
    """A JSON number as written, because its meaning depends on the key."""

    text: str


@frozen(eq=False)
class Node:
    """A JSON value and its start position; ``line`` and ``column`` count from 1, the column in characters."""

    value: Value
    line: int
    column: int


@frozen(eq=False)
class ObjectEntry:
    """One entry of a JSON object: the key, with its position, and the value."""

    key: Node
    value: Node


Value: TypeAlias = str | bool | Number | tuple[Node, ...] | dict[str, ObjectEntry] | None
"""The value of a node: a string, boolean, number, list, object or null."""


def parse_definition(
    text: str, source: str | None = None, *, lenient: bool = False, bindings: Mapping[str, str] = _NO_BINDINGS
) -> Node:
    """Return the tree of one definition.

    ``source`` names the text in errors. ``bindings`` gives the values of placeholder words and counts only with
    ``lenient``. Raises ``SchemaError`` (rules V2 and V3) with line and column for text that is not one JSON object.
    """
    first, *others = parse_definitions(text, source, lenient=lenient, bindings=bindings)
    for other in others:
        reason = f"the text holds {1 + len(others)} definitions, and this takes one"
        raise SchemaError(reason, source=source, line=other.line, column=other.column, rule="V2")
    return first


def parse_definitions(
    text: str, source: str | None = None, *, lenient: bool = False, bindings: Mapping[str, str] = _NO_BINDINGS
) -> list[Node]:
    """Return the trees of all definitions in a text: one, or with ``lenient`` one or more.

    The arguments and errors are the same as in `parse_definition`.
    """
    return _Parser(text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}"), source, lenient, bindings).definitions()


def parse_first(text: str, source: str | None = None) -> tuple[Node, tuple[int, int] | None]:
    """Return the tree of the first definition in a text, and the line and column of further text, if there is any.

    Kafka's own generator ignores such text, which occurs in the definitions of release 2.8.
    """
    return _Parser(text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}"), source, False, _NO_BINDINGS).first()


class _Parser:
    def __init__(self, text: str, source: str | None, lenient: bool, bindings: Mapping[str, str]) -> None:
        self._text = text
        self._source = source
        self._lenient = lenient
        self._bindings = bindings
        self._skipped = _SKIPPED_LENIENT if lenient else _SKIPPED
        self._line_starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._at = 0

    def first(self) -> tuple[Node, tuple[int, int] | None]:
        self._skip()
        if self._at == len(self._text):
            self._fail("the text is empty: a definition is one JSON object")
        root = self._definition()
        return root, None if self._at == len(self._text) else self._place()

    def definitions(self) -> list[Node]:
        roots = [self.first()[0]]
        while self._at < len(self._text):
            if not self._lenient:
                hint = "; --lenient reads several definitions" if self._text.startswith("{", self._at) else ""
                self._refuse("V2", f"unexpected {self._shown()} after the end of the definition{hint}", self._place())
            roots.append(self._definition())
        return roots

    def _definition(self) -> Node:
        root = self._value(0)
        if not isinstance(root.value, dict):
            self._fail("a definition is one JSON object", (root.line, root.column))
        self._skip()
        return root

    def _value(self, depth: int) -> Node:
        line, column = self._place()
        return Node(self._bare_value(depth), line, column)

    def _bare_value(self, depth: int) -> Value:
        if depth > _MAX_DEPTH:
            self._fail(f"nested deeper than {_MAX_DEPTH} levels")
        char = self._text[self._at : self._at + 1]
        if char == "{":
            return self._object(depth)
        if char == "[":
            return self._list(depth)
        if self._at_string():
            return self._string()
        if number := _NUMBER.match(self._text, self._at):
            self._at = number.end()
            return Number(number[0])
        return self._word()

    def _object(self, depth: int) -> dict[str, ObjectEntry]:
        members: dict[str, ObjectEntry] = {}
        while self._next_item("{" if not members else ",", "}"):
            line, column = self._place()
            if not self._at_string():
                self._fail(f"expected a key in double quotes, found {self._shown()}")
            key = self._string()
            self._expect(":")
            member = ObjectEntry(Node(key, line, column), self._value(depth + 1))
            if members.setdefault(key, member).value.value != member.value.value:
                self._fail(f"the key {key!r} is repeated with another value", (line, column))
        return members

    def _list(self, depth: int) -> tuple[Node, ...]:
        items: list[Node] = []
        while self._next_item("[" if not items else ",", "]"):
            items.append(self._value(depth + 1))
        return tuple(items)

    def _next_item(self, opener: str, closer: str) -> bool:
        """Skip to the next item; return False, past the closer, if no item follows."""
        self._skip()
        if opener == "," and self._take(closer):
            return False
        if not self._take(opener):
            self._fail(f"expected {opener!r} or {closer!r}, found {self._shown()}")
        self._skip()
        if not self._take(closer):
            return True
        if opener == "," and not self._lenient:
            self._at -= 1
            self._fail(f"a comma before {closer!r} is not JSON; --lenient accepts it")
        return False

    def _take(self, char: str) -> bool:
        found = self._text.startswith(char, self._at)
        self._at += found
        return found

    def _expect(self, char: str) -> None:
        self._skip()
        if not self._take(char):
            self._fail(f"expected {char!r}, found {self._shown()}")
        self._skip()

    def _at_string(self) -> bool:
        char = self._text[self._at : self._at + 1]
        return char == '"' or (self._lenient and char != "" and char in _QUOTES)

    def _string(self) -> str:
        text, start = self._text, self._at
        if text[start] != '"':
            text = self._requoted()
            start = 0
        try:
            value, end = scanstring(text, start + 1, not self._lenient)
        except json.JSONDecodeError as error:
            control = text[error.pos : error.pos + 1] < " " and error.pos < len(text)
            reason = _WRAPPED if control else f"bad string: {error.msg}"
            self._fail(reason, self._place(self._at - start + error.pos))
        assert isinstance(value, str)
        self._at += end - start
        return _WRAP.sub(" ", value.translate(_WITHOUT_INVISIBLE)) if self._lenient else value

    def _requoted(self) -> str:
        """Return a string that starts with a typographic quote and ends with any quote, requoted as JSON."""
        match = _QUOTED.match(self._text, self._at)
        if match is None:
            self._fail("bad string: it has no closing quote")
        return f'"{match[1]}"'

    def _word(self) -> Value:
        match = _WORD.match(self._text, self._at)
        if match is None:
            self._fail(f"expected a value, found {self._shown()}")
        word = match[0]
        if word not in _CONSTANTS and not (self._lenient and word in self._bindings):
            self._fail(self._unbound(word))
        self._at = match.end()
        return _CONSTANTS[word] if word in _CONSTANTS else _bound(self._bindings[word])

    def _unbound(self, word: str) -> str:
        if self._lenient:
            return f"{word} is not bound to a value; bind it with --bind {word}=VALUE"
        return f"{word} is not JSON; bind it with --lenient --bind {word}=VALUE"

    def _skip(self) -> None:
        match = self._skipped.match(self._text, self._at)
        assert match is not None
        self._at = match.end()
        if self._text.startswith("/*", self._at):
            self._fail("this comment has no end")

    def _shown(self) -> str:
        """Describe the text at the current position, for an error."""
        char = self._text[self._at : self._at + 1]
        if not char:
            return "the end of the text"
        if self._text.startswith(_ELLIPSES, self._at):
            return "an ellipsis: the page leaves something out here; write it in, or take the ellipsis away"
        return _HINTS.get(char) or repr(char)

    def _place(self, offset: int | None = None) -> tuple[int, int]:
        offset = self._at if offset is None else offset
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def _fail(self, reason: str, place: tuple[int, int] | None = None) -> NoReturn:
        self._refuse("V3", reason, place or self._place())

    def _refuse(self, rule: str, reason: str, place: tuple[int, int]) -> NoReturn:
        raise SchemaError(reason, source=self._source, line=place[0], column=place[1], rule=rule)


def _bound(text: str) -> Value:
    """Read the value of a placeholder: a JSON number or constant, otherwise the text itself."""
    if _NUMBER.fullmatch(text):
        return Number(text)
    return _CONSTANTS.get(text, text)
