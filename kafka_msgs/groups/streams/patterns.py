"""Patterns of source topics (KIP-1071): a topology with a pattern is resolved to one with names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from attrs import evolve

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.streams.topology import StreamsTopology
from kafka_msgs.messages.streams_group_topology_value import CopartitionGroup, Subtopology

__all__ = ["has_patterns", "resolved", "unmatched"]


def has_patterns(topology: StreamsTopology) -> bool:
    """Tell whether a subtopology has a pattern."""
    return any(subtopology.source_topic_regex for subtopology in topology.subtopologies.values())


def resolved(topology: StreamsTopology, topics: Iterable[str]) -> StreamsTopology:
    """Return the topology in which the topics that its patterns match are source topics by name.

    A copartition group with a pattern has all topics that the pattern matches. Raises ``GroupError`` with
    ``STREAMS_INVALID_TOPOLOGY`` for a pattern that cannot be read.
    """
    if not has_patterns(topology):
        return topology
    names = sorted(topics)
    subtopologies = tuple(_resolved(each, names) for each in topology.value.subtopologies)
    return StreamsTopology(evolve(topology.value, subtopologies=subtopologies))


def unmatched(topology: StreamsTopology, topics: Iterable[str]) -> list[str]:
    """Return the patterns that match no topic."""
    names = sorted(topics)
    patterns = {pattern for each in topology.subtopologies.values() for pattern in each.source_topic_regex}
    return sorted(pattern for pattern in patterns if not _matching(pattern, names))


def _resolved(subtopology: Subtopology, names: list[str]) -> Subtopology:
    found = [_matching(pattern, names) for pattern in subtopology.source_topic_regex]
    sources = tuple(dict.fromkeys((*subtopology.source_topics, *(name for each in found for name in each))))
    index = {name: at for at, name in enumerate(sources)}
    groups = tuple(_resolved_group(group, found, index) for group in subtopology.copartition_groups)
    return evolve(subtopology, source_topics=sources, copartition_groups=groups)


def _resolved_group(group: CopartitionGroup, found: list[list[str]], index: Mapping[str, int]) -> CopartitionGroup:
    matched = (index[name] for at in group.source_topic_regex for name in found[at])
    return evolve(group, source_topics=tuple(dict.fromkeys((*group.source_topics, *matched))), source_topic_regex=())


def _matching(pattern: str, names: list[str]) -> list[str]:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise GroupError(
            error=ErrorCode.STREAMS_INVALID_TOPOLOGY, message=f"Pattern {pattern!r} of source topics: {error}."
        ) from None
    return [name for name in names if compiled.fullmatch(name)]
