"""A reader for the message notation of Kafka's documentation and many KIPs.

Defines only that notation: a title such as ``Heartbeat Request (Version: 1) => group_id [topics]``, followed by one
line per name, parents before their children. :func:`read_notation` returns definitions in normal form, the form that
:mod:`kafka_msgs_generator.canonical` produces from JSON.

It reads two spellings. The older one writes an array as ``[topics]``. Kafka 4.4 writes ``(topics)``, encloses the
fields of a struct in braces, and marks nullable fields with a leading question mark. The order of the lines determines
the nesting. Blank lines and indentation are ignored, because pages often lose them.

The notation contains less than a definition. It lacks the API key and defaults. The older spelling also lacks the
nullability of arrays, and it cannot mark a version as flexible if the version has no compact type. A tagged field with
children is refused, because it may be an array or a struct.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NoReturn

from attrs import define, field, frozen

from kafka_msgs.errors import SchemaError
from kafka_msgs.primitive_types import PRIMITIVES
from kafka_msgs_generator.canonical import Definition

__all__ = ["read_notation"]

_MAX_DEPTH: Final = 30
_TITLE: Final = re.compile(r"([A-Z][A-Za-z0-9]*) ?(Request|Response) \(Version: ([0-9]{1,4})\) => ?(.*)")
_LINE: Final = re.compile(r"([A-Za-z0-9_]+)(<tag: [0-9]+>)? => ?(.*)")
_PART: Final = re.compile(
    r"(?P<null>\??)(?P<open>[\[(])?(?P<name>[A-Za-z0-9_]+)(?:<tag:(?P<tag>[0-9]+)>)?(?(open)[\])])"
)
_SPACE_IN_TAG: Final = re.compile(r"(?<=<tag:) (?=[0-9])")
_TYPE: Final = re.compile(r"(COMPACT_)?(NULLABLE_)?([A-Z][A-Z0-9]*)")
_TAG_BUFFERS: Final = frozenset({"TAG_BUFFER", "_tagged_fields"})
_TYPES: Final = {"BOOLEAN" if name == "bool" else name.upper(): name for name in PRIMITIVES}


@frozen
class _Line:
    """A non-blank line: its number, from 1, and its text without surrounding space."""

    number: int
    text: str


def read_notation(text: str, source: str | None = None) -> list[Definition]:
    """Return the definition of each message in a text, at the single version in its title.

    Text before a title, and after the last line of a message, is skipped. ``source`` names the text in errors. Raises
    ``SchemaError`` with the line for a name without the required line, for a type that Kafka does not have (such as a
    map), and for ambiguous notation.
    """
    lines = [_Line(number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    titles = ((at, match) for at, line in enumerate(lines) if (match := _TITLE.fullmatch(line.text)))
    return [_Message(lines, at, source, match[3]).definition(match) for at, match in titles]


@define
class _Message:
    """Reads one message; ``at`` is the index of the last line read."""

    lines: list[_Line]
    at: int
    source: str | None
    version: str
    flexible: bool = False
    structs: set[str] = field(factory=set)

    def definition(self, title: re.Match[str]) -> Definition:
        name = title[1] + title[2]
        fields = list(self._fields(title[4], name, 0))
        return {
            "name": name,
            "type": title[2].lower(),
            "validVersions": self.version,
            "flexibleVersions": f"{self.version}+" if self.flexible else "none",
            "fields": fields,
        }

    def _fields(self, parts: str, parent: str, depth: int) -> Iterator[Definition]:
        """Read the fields named in a line; the next unread line describes each field."""
        if depth > _MAX_DEPTH:
            self._fail(f"nested deeper than {_MAX_DEPTH} levels")
        for part in _SPACE_IN_TAG.sub("", parts.lstrip("?").strip("{} ")).split():
            if part in _TAG_BUFFERS:
                self.flexible = True
                continue
            match = _PART.fullmatch(part)
            if match is None:
                self._fail(f"{part!r} is not the name of a field or an array")
            yield self._field(match, parent, depth)

    def _field(self, part: re.Match[str], parent: str, depth: int) -> Definition:
        right = self._explanation(part["name"])
        name = "".join(word[:1].upper() + word[1:] for word in part["name"].split("_"))
        kind = _TYPE.fullmatch(right)
        fields = [] if kind else list(self._fields(right, name, depth + 1))
        if part["tag"] and fields:
            self._fail(f"the tagged field {part['name']} may be an array or a struct: the notation does not say")
        base = self._type(kind) if kind else self._struct(name, parent)
        made: Definition = {"name": name, "type": f"[]{base}" if part["open"] else base, "versions": f"{self.version}+"}
        if part["null"] or right.startswith("?") or (kind and kind[2] and not part["open"]):
            made["nullableVersions"] = f"{self.version}+"
        if part["tag"]:
            made |= {"taggedVersions": f"{self.version}+", "tag": int(part["tag"])}
            self.flexible = True
        return made | ({"fields": fields} if fields else {})

    def _explanation(self, name: str) -> str:
        self.at += 1
        line = _LINE.fullmatch(self.lines[self.at].text) if self.at < len(self.lines) else None
        if line is None or line[1] != name:
            self._fail(f"a line for {name!r} has to be here")
        return line[3]

    def _type(self, kind: re.Match[str]) -> str:
        if kind[3] not in _TYPES:
            self._fail(f"{kind[0]} is not a type of Kafka")
        self.flexible = self.flexible or bool(kind[1])
        return _TYPES[kind[3]]

    def _struct(self, name: str, parent: str) -> str:
        """Name a struct after its field, and additionally after the enclosing field if the name is taken."""
        chosen = parent + name if name in self.structs else name
        self.structs.add(chosen)
        return chosen

    def _fail(self, reason: str) -> NoReturn:
        line = self.lines[min(self.at, len(self.lines) - 1)]
        raise SchemaError(reason, source=self.source, line=line.number)
