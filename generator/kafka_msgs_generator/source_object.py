"""One object of a definition, with values read as the kind that each key requires.

Implements the coercions that Kafka's definitions rely on (a number instead of text, "true" for true, a single item for
a list of one, null for an absent key) and the wording of locations in errors. `kafka_msgs_generator.spec` defines the
keys.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from attrs import frozen

from kafka_msgs.errors import SchemaError
from kafka_msgs.versions import MAX_VERSION, VersionRange
from kafka_msgs_generator.json_tree import Node, Number, ObjectEntry

__all__ = ["SourceObject"]

_WHOLE = re.compile(r"-?[0-9]+", re.ASCII)
_LONGEST_NUMBER = 20
_NEGATIVE_BOUND = re.compile(r"-\d+(?:\+|-\d+)?|\d+--\d+", re.ASCII)
_REVERSED = re.compile(r"(\d{1,20})-(\d{1,20})", re.ASCII)
_FLAGS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


@frozen(eq=False)
class SourceObject:
    """An object of a definition and its location.

    ``path`` is its dotted path, such as ``OffsetFetchRequest.Groups.Topics``. Every accessor returns None for a
    key that is absent or null, and raises ``SchemaError`` for a value of the wrong kind.
    """

    source: str | None
    path: str
    node: Node
    members: dict[str, ObjectEntry]

    @classmethod
    def of(cls, node: Node, source: str | None, parent: str, keys: Collection[str]) -> SourceObject:
        """Open ``node`` as an object that may have ``keys``; ``parent`` is the path of the enclosing object."""
        if not isinstance(node.value, dict):
            raise SchemaError(
                f"expected an object, found {_shown(node)}",
                source=source, line=node.line, column=node.column, path=parent, rule="V3",
            )  # fmt: skip
        name = node.value.get("name")
        own = (_plain(name.value) if name is not None else None) or "?"
        site = cls(source, f"{parent}.{own}" if parent else own, node, node.value)
        site._refuse_unknown(keys)
        return site

    def _refuse_unknown(self, keys: Collection[str]) -> None:
        for key, member in self.members.items():
            if key not in keys:
                reason = f"unknown key {key!r}; the keys here are {', '.join(keys)}"
                raise self._error_at(member.key, "V1", reason)

    def error(self, rule: str, reason: str, key: str | None = None) -> SchemaError:
        """Return the error that ``rule`` is broken, placed at the value of ``key`` when there is one, else here."""
        member = self.members.get(key) if key else None
        return self._error_at(member.value if member else self.node, rule, reason)

    def _error_at(self, node: Node, rule: str, reason: str) -> SchemaError:
        return SchemaError(reason, source=self.source, line=node.line, column=node.column, path=self.path, rule=rule)

    def value(self, key: str) -> Node | None:
        """Return the value of ``key``, or None when it is absent or null."""
        member = self.members.get(key)
        return None if member is None or member.value.value is None else member.value

    def text(self, key: str) -> str | None:
        """Return text; a number or a truth value counts as its own text."""
        node = self.value(key)
        if node is None:
            return None
        plain = _plain(node)
        if plain is None:
            raise self.error("V6", f"{key} must be text, not {_shown(node)}", key)
        return plain

    def required_text(self, key: str) -> str:
        """Return required text (rule V4)."""
        text = self.text(key)
        if text is None:
            raise self.error("V4", f"missing required key {key!r}", key)
        return text

    def flag(self, key: str) -> bool:
        """Return a truth value; absent is False."""
        text = self.text(key)
        if text in ("0", "1"):
            return text == "1"
        if text is not None and text not in _FLAGS:
            raise self.error("V6", f"{key} must be true or false, not {text!r}", key)
        return text is not None and _FLAGS[text]

    def integer(self, key: str) -> int | None:
        """Return an integer that fits into 16 bits."""
        text = self.text(key)
        if text is None:
            return None
        if not _WHOLE.fullmatch(text.strip()):
            raise self.error("V6", f"{key} must be a whole number, not {text!r}", key)
        if len(text) > _LONGEST_NUMBER or not -MAX_VERSION - 1 <= int(text) <= MAX_VERSION:
            raise self.error("V6", f"{key} {text} is out of range for int16", key)
        return int(text)

    def choice(self, key: str, allowed: Collection[str]) -> str | None:
        """Return text that is one of ``allowed`` (rule V5)."""
        text = self.text(key)
        if text is not None and text not in allowed:
            raise self.error("V5", f"{key} is {text!r}, not one of {', '.join(allowed)}", key)
        return text

    def choices(self, key: str, allowed: Collection[str]) -> tuple[str, ...]:
        """Return a list of texts that are each one of ``allowed``; absent is empty."""
        texts = tuple(_plain(node) for node in self.items(key))
        for text in texts:
            if text not in allowed:
                raise self.error("V5", f"{key} has {text!r}, not one of {', '.join(allowed)}", key)
        return tuple(text for text in texts if text is not None)

    def items(self, key: str) -> tuple[Node, ...]:
        """Return a list; absent is empty, and a value that is not a list is a list of one."""
        node = self.value(key)
        if node is None:
            return ()
        return node.value if isinstance(node.value, tuple) else (node,)

    def versions(self, key: str) -> VersionRange | None:
        """Return a version range (rules V10, V11, V14); None when it is absent or blank."""
        text = self.text(key)
        return None if text is None or not text.strip() else self.parse_versions(text, key, self.value(key))

    def parse_versions(self, text: str, what: str, node: Node | None) -> VersionRange:
        """Read the version range at ``node``; ``what`` names it in errors."""
        try:
            return VersionRange.parse(text)
        except ValueError as error:
            raise self._error_at(node or self.node, _range_rule(text.strip()), f"{what}: {error}") from None


def _range_rule(text: str) -> str:
    if _NEGATIVE_BOUND.fullmatch(text):
        return "V11"
    bounds = _REVERSED.fullmatch(text)
    return "V14" if bounds and int(bounds[2]) < int(bounds[1]) else "V10"


def _plain(node: Node) -> str | None:
    """Return the text of a scalar, or None for a list, an object or null."""
    match node.value:
        case str(text) | Number(text=text):
            return text
        case bool(truth):
            return str(truth).lower()
    return None


def _shown(node: Node) -> str:
    match node.value:
        case tuple():
            return "a list"
        case dict():
            return "an object"
        case None:
            return "null"
    return repr(_plain(node))
