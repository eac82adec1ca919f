r"""A parser for RE2's regular expressions, following RE2/J 1.8, which Kafka's coordinator uses.

``parse`` returns a tree. It refuses what RE2 refuses: look-around, back-references, nested repetition. Scripts such as
``\p{Greek}`` are not supported; general categories such as ``\p{Lu}`` are. The work is linear in the text, and the
depth of groups is bounded.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Final, NoReturn

from attrs import define, evolve, frozen

from kafka_msgs.groups.re2.nfa import InvalidRegexError, Machine, Node, assertion, character, choice, repeat, sequence

__all__ = ["compile_regex", "parse"]

_MAX_REPEAT: Final = 1000
_MAX_DEPTH: Final = 1000
_MAX_RUNE: Final = 0x10FFFF

_SIMPLE_ESCAPES: Final = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_EDGES: Final = {"A": "begin", "z": "end", "b": "word", "B": "no word"}
_PERL: Final = {"d": "0-9", "s": "\t\n\f\r ", "w": "0-9A-Za-z_"}
_POSIX: Final = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": "\0-\x7f",
    "blank": "\t ",
    "cntrl": "\0-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@[-`{-~",
    "space": "\t-\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_MINORS: Final = {"C": "cfos", "L": "lmotu", "M": "cen", "N": "dlo", "P": "cdefios", "S": "ckmo", "Z": "lps"}
_CATEGORIES: Final = frozenset(
    {"Any", *"CLMNPSZ", *(f"{major}{minor}" for major, minors in _MINORS.items() for minor in minors)}
)
"""The general categories of Unicode."""
_REPEAT: Final = re.compile(r"\{(0|[1-9][0-9]*)(,(0|[1-9][0-9]*)?)?\}", re.ASCII)
_OCTAL: Final = re.compile(r"0[0-7]{0,2}|[1-7][0-7]{1,2}", re.ASCII)
_HEX: Final = re.compile(r"\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]{2})", re.ASCII)
_NAME: Final = re.compile(r"[0-9A-Za-z_]+", re.ASCII)
_GROUP: Final = re.compile(r"\(\?P?<([^>]*)(>?)")
_FLAGS: Final = {"i": ("fold",), "m": ("many_lines",), "s": ("dot_all",), "U": ()}


@frozen
class _Flags:
    fold: bool = False
    many_lines: bool = False
    dot_all: bool = False


@define
class _Group:
    """An open group: its alternatives so far, the nodes of the current alternative, and the flags outside."""

    outside: _Flags
    alternatives: list[Node]
    parts: list[Node]

    def close(self) -> Node:
        """Return the group as one node."""
        return choice([*self.alternatives, sequence(self.parts)])


def compile_regex(regex: str) -> Callable[[str], bool]:
    """Return a predicate that matches a whole name against a regular expression. Raises ``InvalidRegexError``."""
    return Machine(parse(regex)).matches


def parse(text: str) -> Node:
    """Return the tree of a regular expression. Raises ``InvalidRegexError``."""
    return _Parser(text).parse()


def _fail(reason: str) -> NoReturn:
    raise InvalidRegexError(reason)


class _Parser:
    """Parses a regular expression from left to right. Open groups are on a stack."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.flags = _Flags()
        self.groups = [_Group(self.flags, [], [])]
        self.names: set[str] = set()
        self.repeated_at = -1

    def parse(self) -> Node:
        while self.at < len(self.text):
            self._next(self.text[self.at])
        if len(self.groups) > 1:
            _fail("missing closing )")
        return self.groups[0].close()

    def _next(self, char: str) -> None:
        parts = self.groups[-1].parts
        if char in "*+?":
            self.at += 1
            self._repeat(self.at - 1, int(char == "+"), 1 if char == "?" else None)
        elif char == "{" and (match := _REPEAT.match(self.text, self.at)):
            self._counted(match)
        elif char == "(":
            self._open()
        elif char == ")":
            self._close()
        elif char == "[":
            parts.append(self._class())
        elif char == "\\":
            self._escape(parts)
        else:
            self.at += 1
            self._plain(parts, char)

    def _plain(self, parts: list[Node], char: str) -> None:
        if char == "|":
            self.groups[-1].alternatives.append(sequence(parts))
            self.groups[-1].parts = []
        elif char == "^":
            parts.append(assertion("line begin" if self.flags.many_lines else "begin"))
        elif char == "$":
            parts.append(assertion("line end" if self.flags.many_lines else "end"))
        elif char == "." and self.flags.dot_all:
            parts.append(character(lambda each: True))
        elif char == ".":
            parts.append(character(lambda each: each != "\n"))
        else:
            if char == "{":
                # RE2/J treats a repetition after a literal brace as nested.
                self.repeated_at = self.at
            parts.append(self._one(char))

    def _one(self, char: str) -> Node:
        if self.flags.fold:
            return character(frozenset(_folded(char)).__contains__)
        return character(char.__eq__)

    # Repetition

    def _counted(self, match: re.Match[str]) -> None:
        low, range_, high = match.groups()
        least = int(low[:9])
        most = least if range_ is None else None if high is None else int(high[:9])
        if least > _MAX_REPEAT or (most is not None and (most > _MAX_REPEAT or most < least)):
            _fail("invalid repeat count")
        start, self.at = self.at, match.end()
        self._repeat(start, least, most)

    def _repeat(self, start: int, low: int, high: int | None) -> None:
        """Repeat the latest node. The operator starts at ``start`` and ends before ``self.at``."""
        if self.text[self.at : self.at + 1] == "?":
            self.at += 1
        if start == self.repeated_at:
            _fail("invalid nested repetition operator")
        parts = self.groups[-1].parts
        if not parts:
            _fail("missing argument to repetition operator")
        part = parts[-1]
        weight = part.weight * max(1, low if high is None else high)
        if weight > _MAX_REPEAT:
            _fail("invalid repeat count")
        parts[-1] = repeat(part, low, high, weight)
        self.repeated_at = self.at

    # Groups and flags

    def _open(self) -> None:
        if not self.text.startswith("(?", self.at):
            self.at += 1
            self._push(self.flags)
        elif match := _GROUP.match(self.text, self.at):
            name, closed = match.groups()
            if not closed or not _NAME.fullmatch(name):
                _fail("invalid named capture")
            if name in self.names:
                _fail("duplicate capture group name")
            self.names.add(name)
            self.at = match.end()
            self._push(self.flags)
        else:
            self.at += 2
            self._set_flags()

    def _push(self, inside: _Flags) -> None:
        if len(self.groups) >= _MAX_DEPTH:
            _fail("expression nests too deeply")
        self.groups.append(_Group(self.flags, [], []))
        self.flags = inside

    def _set_flags(self) -> None:
        flags, value, is_set = self.flags, True, False
        while self.at < len(self.text):
            char = self.text[self.at]
            self.at += 1
            if char in _FLAGS:
                flags, is_set = evolve(flags, **dict.fromkeys(_FLAGS[char], value)), True
            elif char == "-" and value:
                value, is_set = False, False
            elif char in ":)" and (value or is_set):
                if char == ":":
                    self._push(flags)
                self.flags = flags
                return
            else:
                break
        _fail("invalid or unsupported Perl syntax")

    def _close(self) -> None:
        if len(self.groups) == 1:
            _fail("regexp/syntax: internal error")
        self.at += 1
        group = self.groups.pop()
        self.flags = group.outside
        self.groups[-1].parts.append(group.close())

    # Escapes

    def _escape(self, parts: list[Node]) -> None:
        char = self.text[self.at + 1 : self.at + 2]
        if char in _EDGES and char:
            self.at += 2
            parts.append(assertion(_EDGES[char]))
        elif char == "C":
            _fail("invalid escape sequence")
        elif char == "Q":
            literal, _, _ = self.text[self.at + 2 :].partition(r"\E")
            self.at = min(self.at + 4 + len(literal), len(self.text))
            parts.extend(self._one(each) for each in literal)
        elif char and char in "pPdsDSwW":
            parts.append(character(self._class_escape()))
        else:
            parts.append(self._one(self._escaped_char()))

    def _class_escape(self) -> Callable[[str], bool]:
        r"""Read ``\d``, ``\pL`` or a similar escape."""
        char = self.text[self.at + 1]
        if char in "pP":
            return self._category()
        self.at += 2
        return self._folding(_ranges(_PERL[char.lower()]), negated=char.isupper())

    def _category(self) -> Callable[[str], bool]:
        negated = self.text[self.at + 1] == "P"
        name = self.text[self.at + 2 : self.at + 3]
        self.at += 3
        if name == "{":
            end = self.text.find("}", self.at)
            if end < 0:
                _fail("invalid character class range")
            name, self.at = self.text[self.at : end], end + 1
        if name.startswith("^"):
            name, negated = name[1:], not negated
        if name not in _CATEGORIES:
            _fail("invalid character class range")
        return self._folding(lambda char: name == "Any" or unicodedata.category(char).startswith(name), negated=negated)

    def _escaped_char(self) -> str:
        """Read the character that an escape stands for."""
        char = self.text[self.at + 1 : self.at + 2]
        if not char:
            _fail("trailing backslash at end of expression")
        self.at += 2
        if char in _SIMPLE_ESCAPES:
            return _SIMPLE_ESCAPES[char]
        if char == "x":
            return self._hex()
        if match := _OCTAL.match(self.text, self.at - 1):
            self.at = match.end()
            return chr(int(match.group(), 8))
        if char.isascii() and char.isalnum():
            _fail("invalid escape sequence")
        return char

    def _hex(self) -> str:
        match = _HEX.match(self.text, self.at)
        if match is None:
            _fail("invalid escape sequence")
        self.at = match.end()
        code = int((match.group(1) or match.group(2)).lstrip("0")[:8] or "0", 16)
        if code > _MAX_RUNE:
            _fail("invalid escape sequence")
        return chr(code)

    # Classes

    def _class(self) -> Node:
        self.at += 1
        negated = self.text.startswith("^", self.at)
        self.at += negated
        members: list[Callable[[str], bool]] = []
        first = True
        while first or not self.text.startswith("]", self.at):
            first = False
            members.append(self._class_member())
        self.at += 1

        def matches(char: str) -> bool:
            return any(member(char) for member in members) is not negated

        return character(matches)

    def _class_member(self) -> Callable[[str], bool]:
        if self.text.startswith("[:", self.at):
            end = self.text.find(":]", self.at + 2)
            if end >= 0:
                return self._posix(end)
        char = self.text[self.at + 1 : self.at + 2]
        if self.text.startswith("\\", self.at) and char and char in "pPdsDSwW":
            return self._class_escape()
        low = high = self._class_char()
        if self.text.startswith("-", self.at) and not self.text.startswith("-]", self.at):
            self.at += 1
            high = self._class_char()
            if high < low:
                _fail("invalid character class range")
        return self._folding(lambda each: low <= each <= high)

    def _posix(self, end: int) -> Callable[[str], bool]:
        name = self.text[self.at + 2 : end]
        negated = name.startswith("^")
        if name[negated:] not in _POSIX:
            _fail("invalid character class range")
        self.at = end + 2
        return self._folding(_ranges(_POSIX[name[negated:]]), negated=negated)

    def _class_char(self) -> str:
        if self.at >= len(self.text):
            _fail("missing closing ]")
        if self.text[self.at] == "\\":
            return self._escaped_char()
        self.at += 1
        return self.text[self.at - 1]

    def _folding(self, matches: Callable[[str], bool], *, negated: bool = False) -> Callable[[str], bool]:
        if self.flags.fold:
            return lambda char: any(matches(each) for each in _folded(char)) is not negated
        return (lambda char: not matches(char)) if negated else matches


def _folded(char: str) -> set[str]:
    """Return a character with its case variants that are single characters."""
    return {each for each in (char, char.lower(), char.upper(), char.upper().lower()) if len(each) == 1}


def _ranges(text: str) -> Callable[[str], bool]:
    """Return a predicate for characters and ranges such as ``0-9A-Z_``."""
    found = re.findall(r"(.)-(.)|(.)", text, re.DOTALL)
    pairs = [(single or low, single or high) for low, high, single in found]
    return lambda char: any(low <= char <= high for low, high in pairs)
