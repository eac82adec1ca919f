"""Patterns of source topics (KIP-1071): a topology with a pattern is resolved to one with names.

The document requires RE2's syntax. The coordinator of the release refuses patterns, so the matching follows its regular
expressions of consumer groups: a pattern matches a whole name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from attrs import evolve

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.re2 import InvalidRegexError, compile_regex
from kafka_msgs.groups.streams.topology import StreamsTopology
from kafka_msgs.messages.streams_group_topology_value import CopartitionGroup, Subtopology

__all__ = ["has_patterns", "resolve"]

_Matches = Mapping[str, Sequence[str]]
"""The topics that each pattern matches, in ascending order."""


class ResolvedTopology(NamedTuple):
    """A topology with named source topics only, and the patterns that match no topic, in ascending order."""

    topology: StreamsTopology
    unmatched: Sequence[str]


def has_patterns(topology: StreamsTopology) -> bool:
    """Return whether a subtopology has a pattern."""
    return any(subtopology.source_topic_regex for subtopology in topology.subtopologies.values())


def resolve(topology: StreamsTopology, topics: Iterable[str]) -> ResolvedTopology:
    """Return the topology with the topics that its patterns match as source topics by name.

    A copartition group with a pattern has all topics that the pattern matches. Raises ``GroupError`` with
    ``STREAMS_INVALID_TOPOLOGY`` for a pattern that RE2 does not accept.
    """
    if not has_patterns(topology):
        return ResolvedTopology(topology, ())
    names = sorted(topics)
    patterns = {pattern for each in topology.subtopologies.values() for pattern in each.source_topic_regex}
    matches = {pattern: _matching(pattern, names) for pattern in sorted(patterns)}
    subtopologies = tuple(_resolved(each, matches) for each in topology.value.subtopologies)
    return ResolvedTopology(
        StreamsTopology(evolve(topology.value, subtopologies=subtopologies)),
        [pattern for pattern, found in matches.items() if not found],
    )


def _resolved(subtopology: Subtopology, matches: _Matches) -> Subtopology:
    found = [matches[pattern] for pattern in subtopology.source_topic_regex]
    sources = tuple(dict.fromkeys((*subtopology.source_topics, *(name for each in found for name in each))))
    index = {name: at for at, name in enumerate(sources)}
    groups = tuple(_resolved_group(group, found, index) for group in subtopology.copartition_groups)
    return evolve(subtopology, source_topics=sources, copartition_groups=groups)


def _resolved_group(
    group: CopartitionGroup, found: Sequence[Sequence[str]], index: Mapping[str, int]
) -> CopartitionGroup:
    matched = (index[name] for at in group.source_topic_regex for name in found[at])
    return evolve(group, source_topics=tuple(dict.fromkeys((*group.source_topics, *matched))), source_topic_regex=())


def _matching(pattern: str, names: Sequence[str]) -> Sequence[str]:
    try:
        matches = compile_regex(pattern)
    except InvalidRegexError as error:
        raise GroupError(
            ErrorCode.STREAMS_INVALID_TOPOLOGY, f"Pattern {pattern!r} of source topics: {error}."
        ) from None
    return [name for name in names if matches(name)]
