"""Requests for missing internal topics, and their status details (KIP-1071).

The release sends a request at each heartbeat, and its broker limits the attempts. The document requires one attempt at
a time with a back-off, and a detail that reports it: ``StreamsRules.limits_topic_creation``.
"""

from __future__ import annotations

from typing import Final

from attrs import evolve

from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.streams.configured_topology import ConfiguredTopology, TopologyProblem
from kafka_msgs.groups.streams.group import StreamsGroup, TopicCreation
from kafka_msgs.groups.streams.membership import live_group

__all__ = ["creation_failed", "request_internal_topics"]

_FIRST_WAIT_MS: Final = 1000
_LAST_WAIT_MS: Final = 60_000


def request_internal_topics(
    op: OperationContext, group: StreamsGroup, configured: ConfiguredTopology
) -> TopologyProblem | None:
    """Request the missing topics, if an attempt is due. Return the problem of the topology for the status list."""
    problem = configured.problem
    if problem is None or not configured.to_create:
        group.soft.creation = None
        return problem
    if not op.profile.streams.limits_topic_creation:
        op.create_topics(configured.to_create)
        return problem
    known = group.soft.creation or TopicCreation()
    if op.now >= known.next_attempt:
        op.create_topics(configured.to_create)
        wait = min(_FIRST_WAIT_MS << min(known.attempts, 6), _LAST_WAIT_MS)
        group.soft.creation = TopicCreation(known.attempts + 1, op.now + wait, known.failure)
        attempt = "An attempt to create them was made"
    else:
        attempt = "The next attempt to create them is made later"
    failure = f"; the last one failed: {known.failure}" if known.failure is not None else ""
    return evolve(problem, detail=f"{problem.detail}. {attempt}{failure}.")


def creation_failed(op: OperationContext, group_id: str, reason: str) -> None:
    """Record why the topics of a group could not be created. The next status reports it."""
    group = live_group(op, group_id)
    known = group.soft.creation or TopicCreation()
    group.soft.creation = evolve(known, failure=reason)
