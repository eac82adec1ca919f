"""The partition counts of a topology's internal topics, and the topics that are missing.

This is Kafka's ``InternalTopicManager`` with ``RepartitionTopics``, ``CopartitionedTopicsEnforcer`` and
``ChangelogTopics``. All of it is a function of the topology and of the topics of the cluster. The messages are the
status details that clients see.

The order follows the document (KIP-1071, "Handling topic topology mismatches"): source topics first, then partition
counts of repartition topics, copartition groups, changelog topics, and finally missing topics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from functools import partial
from typing import Final, NoReturn

from attrs import evolve, frozen

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.assignors.java_hash_order import hash_map_order
from kafka_msgs.groups.modern_group import invalid_request
from kafka_msgs.groups.streams.tasks import TaskIds
from kafka_msgs.groups.streams.topology import StreamsTopology, source_topic_names
from kafka_msgs.groups.topics_image import CoordinatorTopicImage
from kafka_msgs.messages.create_topics_request import CreatableTopic, CreatableTopicConfig
from kafka_msgs.messages.streams_group_topology_value import Subtopology, TopicConfig, TopicInfo

__all__ = ["ConfiguredSubtopology", "ConfiguredTopology", "StatusCode", "TopologyProblem", "configure"]

_SHOWN_TOPICS: Final = 3
"""The number of missing topics that a detail names."""


class StatusCode(IntEnum):
    """The codes of the status list of a StreamsGroupHeartbeat response."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5
    MISSING_CLIENT_TAGS = 6


@frozen
class TopologyProblem:
    """The reason why a topology cannot run on the topics of the cluster: the status and its detail."""

    status: StatusCode
    detail: str


class _MismatchError(Exception):
    """Ends the configuration with a problem."""

    def __init__(self, status: StatusCode, detail: str) -> None:
        super().__init__(detail)
        self.problem = TopologyProblem(status, detail)


@frozen
class ConfiguredSubtopology:
    """A subtopology with the number of its tasks, and its internal topics with their partition counts, by name."""

    tasks: int
    subtopology: Subtopology
    source_topics: tuple[str, ...]
    """The source topics of the user: named topics, and topics that match a pattern."""
    repartition_source_topics: Mapping[str, TopicInfo]
    state_changelog_topics: Mapping[str, TopicInfo]

    @property
    def stateful(self) -> bool:
        """True if the subtopology has a changelog topic."""
        return bool(self.state_changelog_topics)


@frozen
class ConfiguredTopology:
    """The result: the subtopologies, the topics to create, and the problem, if any.

    ``subtopologies`` is None if the problem hides them. They are sorted by id.
    """

    epoch: int
    metadata_hash: int
    subtopologies: Mapping[str, ConfiguredSubtopology] | None
    to_create: tuple[CreatableTopic, ...] = ()
    problem: TopologyProblem | None = None

    @property
    def ready(self) -> bool:
        """True if tasks can be assigned."""
        return self.problem is None

    def check_tasks(self, tasks: Iterable[TaskIds]) -> None:
        """Refuse tasks of a heartbeat that the topology does not have."""
        for each in tasks:
            subtopology = (self.subtopologies or {}).get(each.subtopology_id)
            if subtopology is None:
                raise invalid_request(f"Subtopology {each.subtopology_id} does not exist in the topology.")
            for partition in each.partitions:
                if not 0 <= partition < subtopology.tasks:
                    raise invalid_request(
                        f"Task {partition} for subtopology {each.subtopology_id} is invalid. "
                        f"Number of tasks for this subtopology: {subtopology.tasks}"
                    )


PartitionCount = Callable[[str], int | None]


def configure(
    topology: StreamsTopology,
    topics: Mapping[str, CoordinatorTopicImage],
    metadata_hash: int,
    missing: Iterable[str] = (),
) -> ConfiguredTopology:
    """Configure a topology for the topics of the cluster. ``missing`` are source patterns that match no topic.

    Raises ``GroupError``: ``STREAMS_INVALID_TOPOLOGY`` if no number of partitions follows from the topology, and
    ``UNKNOWN_SERVER_ERROR`` for a topology that Kafka does not check and cannot handle.
    """
    groups = {key: _copartition_groups(each) for key, each in topology.subtopologies.items()}
    decided: dict[str, int] = {}
    count = partial(_partition_count, topics, decided)
    try:
        _require_source_topics(topology, topics, missing)
        decided |= _repartition_counts(topology.subtopologies.values(), count)
        _enforce_copartitioning(topology, groups, decided, count)
        decided |= _changelog_counts(topology.subtopologies.values(), count)
        configured = {
            key: _configured_subtopology(topology.subtopologies[key], decided, count)
            for key in sorted(topology.subtopologies)
        }
        to_create = _missing_topics(topology, configured, topics)
    except _MismatchError as mismatch:
        return ConfiguredTopology(topology.epoch, metadata_hash, None, problem=mismatch.problem)
    problem = None
    if to_create:
        detail = f"Internal topics are missing: {_summary([topic.name for topic in to_create])}"
        problem = TopologyProblem(StatusCode.MISSING_INTERNAL_TOPICS, detail)
    return ConfiguredTopology(topology.epoch, metadata_hash, configured, to_create, problem)


def _partition_count(topics: Mapping[str, CoordinatorTopicImage], decided: Mapping[str, int], name: str) -> int | None:
    topic = topics.get(name)
    return decided.get(name) if topic is None else topic.partitions


def _require_source_topics(
    topology: StreamsTopology, topics: Mapping[str, CoordinatorTopicImage], patterns: Iterable[str]
) -> None:
    missing = {name for each in topology.subtopologies.values() for name in each.source_topics if name not in topics}
    missing.update(patterns)
    if missing:
        detail = f"Source topics {_summary(sorted(missing))} are missing."
        raise _MismatchError(StatusCode.MISSING_SOURCE_TOPICS, detail)


def _repartition_counts(subtopologies: Iterable[Subtopology], count: PartitionCount) -> dict[str, int]:
    """Set each repartition topic's partition count: the client's number, or the maximum of its subtopology's sources.

    Each round decides at least one topic, so the number of rounds is at most the number of repartition topics.
    """
    counts = {
        topic.name: topic.partitions
        for each in subtopologies
        for topic in each.repartition_source_topics
        if topic.partitions != 0
    }
    pending = [(sink, each) for each in subtopologies for sink in each.repartition_sink_topics]
    while pending:
        waiting = []
        progress = False
        for sink, subtopology in pending:
            if sink in counts:
                continue
            found = _highest_source(subtopology, counts, count)
            if found is None:
                waiting.append((sink, subtopology))
            else:
                counts[sink] = found
                progress = True
        if waiting and not progress:
            _refuse(
                "Failed to compute number of partitions for all repartition topics. "
                "There may be loops in the topology that cannot be resolved."
            )
        pending = waiting
    if any(topic.name not in counts for each in subtopologies for topic in each.repartition_source_topics):
        _refuse(
            "Failed to compute number of partitions for all repartition topics, because "
            "a repartition source topic is never used as a sink topic."
        )
    return counts


def _highest_source(subtopology: Subtopology, counts: Mapping[str, int], count: PartitionCount) -> int | None:
    candidates = [counts.get(topic.name) for topic in subtopology.repartition_source_topics]
    candidates += [count(name) for name in subtopology.source_topics]
    return max((each for each in candidates if each is not None), default=None)


def _copartition_groups(subtopology: Subtopology) -> list[tuple[str, ...]]:
    """Return the names of the topics of each copartition group, in the order of a Java ``HashSet``."""
    groups = []
    for group in subtopology.copartition_groups:
        if min((*group.source_topics, *group.repartition_source_topics), default=0) < 0:
            _crash()
        try:
            names = [subtopology.source_topics[index] for index in group.source_topics]
            names += [subtopology.repartition_source_topics[index].name for index in group.repartition_source_topics]
        except IndexError:
            _crash()
        groups.append(tuple(hash_map_order(dict.fromkeys(names))))
    return groups


def _enforce_copartitioning(
    topology: StreamsTopology,
    groups: Mapping[str, list[tuple[str, ...]]],
    decided: dict[str, int],
    count: PartitionCount,
) -> None:
    repartition = [topic for each in topology.subtopologies.values() for topic in each.repartition_source_topics]
    fixed = {topic.name for topic in repartition if topic.partitions != 0}
    flexible = {topic.name for topic in repartition if topic.partitions == 0}
    for names in (names for each in groups.values() for names in each if names):
        internal = {name: _known(name, count) for name in names if name in fixed or name in flexible}
        external = {name: _known(name, count) for name in names if name not in internal}
        if external:
            wanted = _common_count(external.values(), external)
        elif fixed:
            wanted = _common_count([_known(name, count) for name in fixed], internal)
        else:
            wanted = max(internal.values())
        for name, partitions in internal.items():
            if name in fixed and partitions != wanted:
                detail = (
                    f"Number of partitions [{partitions}] of repartition topic [{name}] "
                    f"doesn't match number of partitions [{wanted}] of the source topic."
                )
                raise _MismatchError(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, detail)
        decided |= dict.fromkeys(internal, wanted)


def _common_count(counts: Iterable[int], shown: Mapping[str, int]) -> int:
    """Return the number that all counts share. If they differ, the detail lists the topics of ``shown``."""
    different = set(counts)
    if len(different) > 1:
        pairs = ", ".join(f"{name}={shown[name]}" for name in sorted(shown))
        detail = f"Following topics do not have the same number of partitions: [{{{pairs}}}]"
        raise _MismatchError(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, detail)
    return different.pop()


def _changelog_counts(subtopologies: Iterable[Subtopology], count: PartitionCount) -> dict[str, int]:
    """Set each changelog topic's partition count to the maximum of its subtopology's sources."""
    counts: dict[str, int] = {}
    for subtopology in subtopologies:
        sources = [_known(name, count) for name in source_topic_names(subtopology)]
        if not sources:
            _refuse(f"No source topics found for subtopology {subtopology.subtopology_id}")
        counts |= dict.fromkeys((topic.name for topic in subtopology.state_changelog_topics), max(sources))
    return counts


def _configured_subtopology(
    subtopology: Subtopology, decided: Mapping[str, int], count: PartitionCount
) -> ConfiguredSubtopology:
    tasks = max(_known(name, count) for name in source_topic_names(subtopology))
    if tasks <= 0:
        _crash()
    return ConfiguredSubtopology(
        tasks=tasks,
        subtopology=subtopology,
        source_topics=tuple(dict.fromkeys(subtopology.source_topics)),
        repartition_source_topics=_configured_topics(subtopology.repartition_source_topics, decided),
        state_changelog_topics=_configured_topics(subtopology.state_changelog_topics, decided),
    )


def _configured_topics(topics: tuple[TopicInfo, ...], decided: Mapping[str, int]) -> Mapping[str, TopicInfo]:
    configured = {
        topic.name: evolve(topic, partitions=topic.partitions or decided[topic.name], topic_configs=_configs(topic))
        for topic in topics
    }
    if len(configured) != len(topics):
        _crash()
    return {name: configured[name] for name in hash_map_order(configured)}


def _configs(topic: TopicInfo) -> tuple[TopicConfig, ...]:
    configs = {config.key: config for config in topic.topic_configs}
    if len(configs) != len(topic.topic_configs):
        _crash()
    return tuple(configs[key] for key in hash_map_order(configs))


def _missing_topics(
    topology: StreamsTopology,
    configured: Mapping[str, ConfiguredSubtopology],
    topics: Mapping[str, CoordinatorTopicImage],
) -> tuple[CreatableTopic, ...]:
    wanted: dict[str, TopicInfo] = {}
    for subtopology in configured.values():
        wanted |= subtopology.repartition_source_topics
        wanted |= subtopology.state_changelog_topics
    for name in topology.required_topics:
        topic = topics.get(name)
        if topic is not None and name in wanted and topic.partitions != wanted[name].partitions:
            detail = (
                f"Existing topic {name} has different number of partitions: "
                f"expected {wanted[name].partitions}, found {topic.partitions}"
            )
            raise _MismatchError(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, detail)
    return tuple(_creatable(wanted[name]) for name in hash_map_order(wanted) if name not in topics)


def _creatable(topic: TopicInfo) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor or -1,
        configs=tuple(CreatableTopicConfig(name=each.key, value=each.value) for each in topic.topic_configs),
    )


def _known(name: str, count: PartitionCount) -> int:
    partitions = count(name)
    if partitions is None:
        _crash()
    return partitions


def _summary(names: list[str]) -> str:
    """Name the first few topics."""
    more = len(names) - _SHOWN_TOPICS
    shown = ", ".join(names[:_SHOWN_TOPICS])
    return f"{shown} and {more} additional topics" if more > 0 else shown


def _refuse(message: str) -> NoReturn:
    raise GroupError(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)


def _crash() -> NoReturn:
    """Raise the error with which Kafka responds if an exception ends the heartbeat."""
    raise GroupError(ErrorCode.UNKNOWN_SERVER_ERROR)
