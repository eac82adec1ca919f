"""Regular expressions of topics in RE2's syntax, matched in time that is linear in the length of a name.

A regular expression becomes a state machine that advances all its states together, one character at a time. So no
regular expression of a client can block the coordinator. The size of the machine is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from kafka_msgs.groups.re2.nodes import Assertion, CharacterMatch, Empty, Node, Repeat, SequenceOrChoice
from kafka_msgs.groups.re2.parser import InvalidRegexError, parse

__all__ = ["InvalidRegexError", "compile_regex"]

_MAX_STATES: Final = 50_000
_WORD: Final = frozenset("0123456789_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


def compile_regex(regex: str) -> Callable[[str], bool]:
    """Return a predicate that matches a whole name against a regular expression. Raises ``InvalidRegexError``."""
    return _Machine(parse(regex)).matches


class _State(NamedTuple):
    """A state: it consumes a character, asserts a position, or does neither, and leads to other states."""

    takes: Callable[[str], bool] | None
    place: str
    follow: list[int]


class _Machine:
    """The states of a regular expression. State 0 is the end."""

    def __init__(self, tree: Node) -> None:
        self._states = [_State(None, "", [])]
        self._start = self._build(tree, 0)

    def _add(self, takes: Callable[[str], bool] | None, place: str, follow: list[int]) -> int:
        if len(self._states) >= _MAX_STATES:
            raise InvalidRegexError("expression too large")
        self._states.append(_State(takes, place, follow))
        return len(self._states) - 1

    def _build(self, node: Node, then: int) -> int:
        """Add the states of a node followed by the state ``then``; return its first state."""
        if isinstance(node, CharacterMatch):
            return self._add(node.matches, "", [then])
        if isinstance(node, Assertion):
            return self._add(None, node.place, [then])
        if isinstance(node, SequenceOrChoice) and node.either:
            return self._add(None, "", [self._build(part, then) for part in node.parts])
        if isinstance(node, SequenceOrChoice):
            for part in reversed(node.parts):
                then = self._build(part, then)
            return then
        if isinstance(node, Repeat):
            return self._repeat(node, then)
        assert isinstance(node, Empty)
        return then

    def _repeat(self, node: Repeat, then: int) -> int:
        if node.high is None:
            loop = self._add(None, "", [then])
            self._states[loop].follow.append(self._build(node.part, loop))
            then = loop
        else:
            end = then
            for _ in range(node.high - node.low):
                then = self._add(None, "", [self._build(node.part, then), end])
        for _ in range(node.low):
            then = self._build(node.part, then)
        return then

    def matches(self, name: str) -> bool:
        """Return whether the whole name matches."""
        present = self._reached([self._start], name, 0)
        for at, char in enumerate(name):
            if not present:
                return False
            taken = [state for state in map(self._states.__getitem__, present) if state.takes and state.takes(char)]
            present = self._reached((state.follow[0] for state in taken), name, at + 1)
        return 0 in present

    def _reached(self, first: Iterable[int], name: str, at: int) -> set[int]:
        """Return the states that are reachable without consuming a character."""
        found: set[int] = set()
        waiting = list(first)
        while waiting:
            index = waiting.pop()
            if index not in found:
                found.add(index)
                state = self._states[index]
                if state.takes is None and (not state.place or _is_at(state.place, name, at)):
                    waiting.extend(state.follow)
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
