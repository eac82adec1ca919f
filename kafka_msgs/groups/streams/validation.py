"""Checks of a StreamsGroupHeartbeat request that need no group state, in Kafka's order.

``check`` runs before the request goes to its partition. The messages are visible to clients.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NoReturn

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.config import CoordinatorConfig
from kafka_msgs.groups.group_operation import GroupServices
from kafka_msgs.groups.modern_group import JOIN_EPOCH, STATIC_LEAVE_EPOCH, check_names, invalid_request
from kafka_msgs.groups.profiles import Profile, StreamsRules
from kafka_msgs.groups.request_context import RequestContext
from kafka_msgs.groups.topics_image import TopicsImage
from kafka_msgs.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest, Subtopology, Topology

__all__ = ["check", "check_enabled", "check_translated", "check_unchecked_by_kafka"]

_PROTOCOL: Final = "streams"


def check_enabled(config: CoordinatorConfig, profile: Profile, image: TopicsImage) -> None:
    """Refuse the protocol with ``UNSUPPORTED_VERSION`` if it is not enabled, or if its feature has too low a level."""
    name, lowest = ("group.version", 2) if profile.streams.requires_group_version else ("streams.version", 1)
    level = image.features.get(name)
    if _PROTOCOL not in config.group_coordinator_rebalance_protocols or (level is not None and level < lowest):
        raise GroupError(ErrorCode.UNSUPPORTED_VERSION)


def check(services: GroupServices, context: RequestContext, request: StreamsGroupHeartbeatRequest) -> None:
    """Refuse an invalid request with ``INVALID_REQUEST`` or ``STREAMS_INVALID_TOPOLOGY``."""
    rules = services.profile.streams
    if not rules.source_patterns:
        _check_no_patterns(request.topology)
    _check_names(rules, request)
    if request.member_epoch == JOIN_EPOCH:
        _check_join(rules, request)
    elif request.member_epoch == STATIC_LEAVE_EPOCH and request.instance_id is None:
        _refuse("InstanceId can't be null.")
    elif request.member_epoch < STATIC_LEAVE_EPOCH:
        _refuse(f"MemberEpoch is {request.member_epoch}, but must be greater than or equal to -2.")
    _check_roles(rules, request)
    if request.topology is not None and request.member_epoch != JOIN_EPOCH:
        _refuse("Topology can only be provided when (re-)joining.")


def check_translated(rules: StreamsRules, request: StreamsGroupHeartbeatRequest) -> None:
    """Refuse the heartbeat in a classic protocol member's user data if its content is invalid.

    Names and epochs are not checked. Raises ``GroupError`` like ``check`` and ``check_unchecked_by_kafka``.
    """
    check_names(("ProcessId", request.process_id or ""))
    if request.topology is None or not request.topology.subtopologies:
        _refuse("Topology must have a subtopology.")
    if not rules.source_patterns:
        _check_no_patterns(request.topology)
    _check_disjoint(request)
    _check_topology(rules, request.topology)
    check_unchecked_by_kafka(request)


def _check_no_patterns(topology: Topology | None) -> None:
    if topology is not None and any(subtopology.source_topic_regex for subtopology in topology.subtopologies):
        _refuse("Regular expressions for source topics are not supported yet.")


def _check_roles(rules: StreamsRules, request: StreamsGroupHeartbeatRequest) -> None:
    missing = (request.active_tasks, request.standby_tasks, request.warmup_tasks).count(None)
    if missing == 3:
        return
    if missing:
        _refuse("If one task-type is non-null, all must be non-null.")
    if rules.disjoint_roles:
        _check_disjoint(request)


def _check_names(rules: StreamsRules, request: StreamsGroupHeartbeatRequest) -> None:
    joins = request.member_epoch == JOIN_EPOCH
    check_names(
        ("MemberId", None if rules.generates_member_ids and joins and not request.member_id else request.member_id),
        ("GroupId", request.group_id),
        ("InstanceId", request.instance_id),
        ("RackId", request.rack_id),
    )


def _check_join(rules: StreamsRules, request: StreamsGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        _refuse("RebalanceTimeoutMs must be provided in first request.")
    if rules.complete_joins and request.rebalance_timeout_ms <= 0:
        _refuse("RebalanceTimeoutMs must be larger than zero in the first request.")
    for name, tasks in (
        ("ActiveTasks", request.active_tasks),
        ("StandbyTasks", request.standby_tasks),
        ("WarmupTasks", request.warmup_tasks),
    ):
        if tasks is None or tasks:
            _refuse(f"{name} must be empty when (re-)joining.")
    if request.topology is None:
        _refuse("Topology must be non-null when (re-)joining.")
    if rules.complete_joins and not request.topology.subtopologies:
        _refuse("Topology must have a subtopology.")
    _check_topology(rules, request.topology)


def _check_topology(rules: StreamsRules, topology: Topology) -> None:
    _check_changelogs(topology)
    if rules.checks_topics:
        _check_topics(topology.subtopologies)


def _check_disjoint(request: StreamsGroupHeartbeatRequest) -> None:
    seen: set[tuple[str, int]] = set()
    for tasks in (request.active_tasks, request.standby_tasks, request.warmup_tasks):
        here = {(each.subtopology_id, partition) for each in tasks or () for partition in each.partitions}
        if not seen.isdisjoint(here):
            _refuse("ActiveTasks, StandbyTasks and WarmupTasks must be disjoint.")
        seen |= here


def _check_changelogs(topology: Topology) -> None:
    for subtopology in topology.subtopologies:
        for topic in subtopology.state_changelog_topics:
            if topic.partitions != 0:
                _refuse_topology(
                    f"Changelog topic {topic.name} must have an undefined partition count, "
                    f"but it is set to {topic.partitions}."
                )


def _check_topics(subtopologies: Sequence[Subtopology]) -> None:
    """Check that the internal topics of a topology have one role each (KIP-1071, "Request Validation")."""
    sources = {name for each in subtopologies for name in each.source_topics}
    sinks = {name for each in subtopologies for name in each.repartition_sink_topics}
    changelogs = {topic.name for each in subtopologies for topic in each.state_changelog_topics}
    repartition = {topic.name for each in subtopologies for topic in each.repartition_source_topics}
    for name in sorted(repartition & (sources | changelogs)):
        _refuse_topology(f"Repartition topic {name} is also a source or changelog topic.")
    for name in sorted(changelogs & (sources | sinks)):
        _refuse_topology(f"Changelog topic {name} is also a source or repartition topic.")
    for index, subtopology in enumerate(subtopologies):
        others = {name for at, each in enumerate(subtopologies) if at != index for name in each.repartition_sink_topics}
        for topic in subtopology.repartition_source_topics:
            if topic.name not in others:
                _refuse_topology(f"Repartition topic {topic.name} is not a sink of another subtopology.")


def check_unchecked_by_kafka(request: StreamsGroupHeartbeatRequest) -> None:
    """Refuse requests that Kafka 4.4.0 does not check, and then fails with ``UNKNOWN_SERVER_ERROR``.

    The quirk ``streams_unchecked_input`` disables this check.
    """
    for tasks in (request.active_tasks, request.standby_tasks, request.warmup_tasks):
        if tasks and _has_twice(each.subtopology_id for each in tasks):
            _refuse("A subtopology is listed twice in the tasks of one role.")
    if request.client_tags and _has_twice(tag.key for tag in request.client_tags):
        _refuse("A client tag is given twice.")
    topology = request.topology
    if topology is None:
        return
    if topology.epoch < 0:
        _refuse("The topology epoch must not be negative.")
    if _has_twice(each.subtopology_id for each in topology.subtopologies):
        _refuse_topology("A subtopology id is used twice.")
    for subtopology in topology.subtopologies:
        _check_subtopology(subtopology)


def _check_subtopology(subtopology: Subtopology) -> None:
    where = f"Subtopology {subtopology.subtopology_id}"
    for topics in (subtopology.repartition_source_topics, subtopology.state_changelog_topics):
        if _has_twice(topic.name for topic in topics):
            _refuse_topology(f"{where} has an internal topic twice.")
        for topic in topics:
            if topic.partitions < 0:
                _refuse_topology(f"Topic {topic.name} has a negative number of partitions.")
            if _has_twice(config.key for config in topic.topic_configs):
                _refuse_topology(f"Topic {topic.name} has a configuration twice.")
    for index, length in _copartition_indices(subtopology):
        if not 0 <= index < length:
            _refuse_topology(f"{where} has a copartition group with the index {index}, which is out of range.")


def _copartition_indices(subtopology: Subtopology) -> Iterator[tuple[int, int]]:
    """Yield each index of a copartition group, with the length of the list that it refers to."""
    for group in subtopology.copartition_groups:
        for indices, topics in (
            (group.source_topics, subtopology.source_topics),
            (group.source_topic_regex, subtopology.source_topic_regex),
            (group.repartition_source_topics, subtopology.repartition_source_topics),
        ):
            for index in indices:
                yield index, len(topics)


def _has_twice(names: Iterable[str]) -> bool:
    listed = list(names)
    return len(set(listed)) < len(listed)


def _refuse(message: str) -> NoReturn:
    raise invalid_request(message)


def _refuse_topology(message: str) -> NoReturn:
    raise GroupError(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)
