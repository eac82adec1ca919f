"""The tree of a regular expression, which ``parser`` builds and ``nfa`` compiles."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

__all__ = ["Assertion", "CharacterMatch", "Empty", "Node", "Repeat", "SequenceOrChoice"]


@frozen
class Node:
    """A node of a regular expression. ``weight`` is the greatest product of nested repetition counts in it."""

    weight: int = 1


@frozen
class Empty(Node):
    """Matches no character, everywhere."""


@frozen
class Assertion(Node):
    """Asserts a position: ``begin``, ``end``, ``line begin``, ``line end``, ``word`` or ``no word``."""

    place: str = ""


@frozen
class CharacterMatch(Node):
    """Matches one character."""

    matches: Callable[[str], bool] = bool


@frozen
class SequenceOrChoice(Node):
    """All ``parts`` in sequence, or one of them if ``either`` is set."""

    parts: tuple[Node, ...] = ()
    either: bool = False


@frozen
class Repeat(Node):
    """A node repeated between ``low`` and ``high`` times; without an upper bound if ``high`` is None."""

    part: Node = Empty()
    low: int = 0
    high: int | None = None
