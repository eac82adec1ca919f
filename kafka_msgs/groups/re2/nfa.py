"""State machines of regular expressions, which match in time that is linear in the length of a name.

A machine advances all its states together, one character at a time. So no regular expression of a client can block the
coordinator. The size of the machine is bounded, and no function calls itself, however deeply an expression nests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

__all__ = ["EMPTY", "InvalidRegexError", "Machine", "Node", "assertion", "character", "choice", "repeat", "sequence"]

_MAX_STATES: Final = 50_000
_WORD: Final = frozenset("0123456789_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


class InvalidRegexError(ValueError):
    """A regular expression that RE2 does not accept. The text is RE2/J's."""


class Node(NamedTuple):
    """A part of a regular expression. ``expand`` adds it to a machine, between a state without content and another one.

    ``weight`` is the greatest product of nested repetition counts in the part.
    """

    expand: Callable[[Machine, int, int], None]
    weight: int = 1


EMPTY: Final = Node(lambda machine, start, end: machine.follow[start].append(end))
"""Matches no character, everywhere."""


def character(matches: Callable[[str], bool]) -> Node:
    """Return a node that matches one character."""

    def expand(machine: Machine, start: int, end: int) -> None:
        machine.takes[start] = matches
        machine.follow[start].append(end)

    return Node(expand)


def assertion(place: str) -> Node:
    """Return a node for a position: ``begin``, ``end``, ``line begin``, ``line end``, ``word`` or ``no word``."""

    def expand(machine: Machine, start: int, end: int) -> None:
        machine.places[start] = place
        machine.follow[start].append(end)

    return Node(expand)


def sequence(parts: Sequence[Node]) -> Node:
    """Return a node that matches all parts in sequence."""

    def expand(machine: Machine, start: int, end: int) -> None:
        for part in parts[:-1]:
            start = machine.append(part, start)
        machine.waiting.append((parts[-1], start, end))

    return _combined(parts, expand)


def choice(parts: Sequence[Node]) -> Node:
    """Return a node that matches one of the parts."""

    def expand(machine: Machine, start: int, end: int) -> None:
        for part in parts:
            machine.waiting.append((part, machine.branch(start), end))

    return _combined(parts, expand)


def _combined(parts: Sequence[Node], expand: Callable[[Machine, int, int], None]) -> Node:
    if len(parts) < 2:
        return parts[0] if parts else EMPTY
    return Node(expand, max(part.weight for part in parts))


def repeat(part: Node, low: int, high: int | None, weight: int) -> Node:
    """Return a node that matches a part ``low`` to ``high`` times; None is no upper bound."""

    def expand(machine: Machine, start: int, end: int) -> None:
        for _ in range(low):
            start = machine.append(part, start)
        if high is None:
            machine.waiting.append((part, machine.branch(start), start))
        for _ in range(0 if high is None else high - low):
            inner = machine.branch(start)
            machine.follow[start].append(end)
            start = machine.append(part, inner)
        machine.follow[start].append(end)

    return Node(expand, weight)


class Machine:
    """The states of a regular expression. State 0 is the end, and state 1 the start.

    A state takes a character, asserts a position, or does neither, and leads to the states in ``follow``. ``waiting``
    has the parts that are not expanded yet, each with its start and its end.
    """

    def __init__(self, tree: Node) -> None:
        self.takes: list[Callable[[str], bool] | None] = []
        self.places: list[str] = []
        self.follow: list[list[int]] = []
        end, start = self._new_state(), self._new_state()
        self.waiting = [(tree, start, end)]
        while self.waiting:
            node, start, end = self.waiting.pop()
            node.expand(self, start, end)

    def _new_state(self) -> int:
        if len(self.follow) > _MAX_STATES:
            raise InvalidRegexError("expression too large")
        self.takes.append(None)
        self.places.append("")
        self.follow.append([])
        return len(self.follow) - 1

    def branch(self, state: int) -> int:
        """Return a new state that follows a state."""
        self.follow[state].append(self._new_state())
        return self.follow[state][-1]

    def append(self, part: Node, start: int) -> int:
        """Add a part after a state. Return the state after the part."""
        end = self._new_state()
        self.waiting.append((part, start, end))
        return end

    def matches(self, name: str) -> bool:
        """Return whether the whole name matches."""
        present = self._reached([1], name, 0)
        for at, char in enumerate(name):
            if not present:
                return False
            taken = [state for state in present if (takes := self.takes[state]) is not None and takes(char)]
            present = self._reached((self.follow[state][0] for state in taken), name, at + 1)
        return 0 in present

    def _reached(self, first: Iterable[int], name: str, at: int) -> set[int]:
        """Return the states that are reachable without consuming a character."""
        found: set[int] = set()
        waiting = list(first)
        while waiting:
            state = waiting.pop()
            if state not in found:
                found.add(state)
                place = self.places[state]
                if self.takes[state] is None and (not place or _is_at(place, name, at)):
                    waiting.extend(self.follow[state])
        return found


def _is_at(place: str, name: str, at: int) -> bool:
    if place == "begin":
        return at == 0
    if place == "end":
        return at == len(name)
    if place == "line begin":
        return at == 0 or name[at - 1] == "\n"
    if place == "line end":
        return at == len(name) or name[at] == "\n"
    is_edge = (at > 0 and name[at - 1] in _WORD) is not (at < len(name) and name[at] in _WORD)
    return is_edge is (place == "word")
