"""The topology of a streams group, as the first member sent it, and its updates: Kafka's ``StreamsTopology``.

A topology has the form of its record, ``StreamsGroupTopologyValue``. It does not include the partition counts of its
internal topics, which ``configured_topology`` derives from the topics of the cluster.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property

from attrs import evolve, frozen

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.assignors.java_hash_order import hash_map_order
from kafka_msgs.groups.message_fields import with_fields_of
from kafka_msgs.groups.modern_group import invalid_request
from kafka_msgs.groups.streams.tasks import NO_TARGET, TaskId, TasksTuple
from kafka_msgs.messages import streams_group_heartbeat_request as request
from kafka_msgs.messages import streams_group_topology_value as record
from kafka_msgs.messages.streams_group_topology_value import StreamsGroupTopologyValue, Subtopology

__all__ = [
    "StreamsTopology",
    "accepted_topology",
    "canonical",
    "keep_tasks_of_old_topology",
    "source_topic_names",
    "topology_value",
]


def source_topic_names(subtopology: Subtopology) -> Iterator[str]:
    """Return the names of a subtopology's source topics: the user's topics, then the repartition topics."""
    yield from subtopology.source_topics
    for topic in subtopology.repartition_source_topics:
        yield topic.name


@frozen(slots=False)
class StreamsTopology:
    """The topology of a group, with derived properties.

    Raises ``GroupError`` with ``UNKNOWN_SERVER_ERROR``, as Kafka responds, for a negative epoch and for two
    subtopologies with the same id. ``validation`` refuses both earlier, unless the quirk of the release is on.
    """

    value: StreamsGroupTopologyValue

    def __attrs_post_init__(self) -> None:
        if self.value.epoch < 0 or len(self.subtopologies) != len(self.value.subtopologies):
            raise GroupError(ErrorCode.UNKNOWN_SERVER_ERROR)

    @cached_property
    def epoch(self) -> int:
        """The epoch that the client set for the topology."""
        return self.value.epoch

    @cached_property
    def subtopologies(self) -> Mapping[str, Subtopology]:
        """The subtopologies by id, in the order of a Java ``HashMap``, in which Kafka iterates over them."""
        by_id = {subtopology.subtopology_id: subtopology for subtopology in self.value.subtopologies}
        return {key: by_id[key] for key in hash_map_order(by_id)}

    @cached_property
    def required_topics(self) -> tuple[str, ...]:
        """The names of all source, repartition source and changelog topics, in the order of a Java ``HashSet``."""
        names: dict[str, None] = {}
        for subtopology in self.subtopologies.values():
            names |= dict.fromkeys(source_topic_names(subtopology))
            names |= dict.fromkeys(topic.name for topic in subtopology.state_changelog_topics)
        return tuple(hash_map_order(names))

    @cached_property
    def input_topics(self) -> tuple[str, ...]:
        """The names of all source and repartition source topics."""
        return tuple(name for each in self.subtopologies.values() for name in source_topic_names(each))

    @cached_property
    def subtopology_of_source(self) -> Mapping[str, Subtopology]:
        """For each topic that is read, the subtopology that reads it, or the last one if several read it."""
        return {
            name: subtopology for subtopology in self.subtopologies.values() for name in source_topic_names(subtopology)
        }

    @cached_property
    def stateful(self) -> bool:
        """True if a subtopology has a changelog topic."""
        return any(subtopology.state_changelog_topics for subtopology in self.subtopologies.values())

    def same_as(self, other: StreamsTopology) -> bool:
        """Return whether the other topology has the same epoch, and the same subtopologies in any order."""
        return self.epoch == other.epoch and self.subtopologies == other.subtopologies


def topology_value(topology: request.Topology) -> StreamsGroupTopologyValue:
    """Return the record value of a heartbeat's topology."""
    return with_fields_of(StreamsGroupTopologyValue, topology)


def canonical(topology: StreamsTopology) -> object:
    """Return a canonical form, equal for topologies that differ only in the order of unordered items.

    Subtopologies, topics and topic configurations are sorted, and the positions in copartition groups become names.
    """
    return topology.epoch, tuple(
        (key, _canonical_subtopology(topology.subtopologies[key])) for key in sorted(topology.subtopologies)
    )


def _canonical_subtopology(subtopology: Subtopology) -> object:
    repartition = tuple(topic.name for topic in subtopology.repartition_source_topics)
    return (
        sorted(subtopology.source_topics),
        sorted(subtopology.source_topic_regex),
        sorted(subtopology.repartition_sink_topics),
        _canonical_topics(subtopology.repartition_source_topics),
        _canonical_topics(subtopology.state_changelog_topics),
        sorted(
            (
                sorted(subtopology.source_topics[index] for index in group.source_topics),
                sorted(subtopology.source_topic_regex[index] for index in group.source_topic_regex),
                sorted(repartition[index] for index in group.repartition_source_topics),
            )
            for group in subtopology.copartition_groups
        ),
    )


def _canonical_topics(topics: Iterable[record.TopicInfo]) -> object:
    ordered = (
        evolve(topic, topic_configs=tuple(sorted(topic.topic_configs, key=lambda config: config.key)))
        for topic in topics
    )
    return sorted(ordered, key=lambda topic: topic.name)


def accepted_topology(known: StreamsTopology, sent: StreamsTopology, *, updates: bool) -> StreamsTopology:
    """Return the topology of a group after a member joins: the existing one, or the one that the member sent.

    ``updates`` is ``StreamsRules.topology_updates``. Raises ``GroupError``.
    """
    if not updates:
        if known.epoch > sent.epoch or known.same_as(sent):
            return known
        raise invalid_request("Topology updates are not supported yet.")
    if sent.epoch == known.epoch + 1:
        return sent
    if sent.epoch == known.epoch and canonical(sent) == canonical(known):
        return known
    if sent.epoch < known.epoch:
        error, reason = ErrorCode.STREAMS_TOPOLOGY_FENCED, "is behind"
    elif sent.epoch == known.epoch:
        error, reason = ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH, "has another topology than"
    else:
        error, reason = ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH, "is more than one ahead of"
    raise GroupError(error, f"Topology epoch {sent.epoch} {reason} the group's epoch {known.epoch}.")


def keep_tasks_of_old_topology(
    computed: Mapping[str, TasksTuple], before: Mapping[str, TasksTuple], old: Collection[str]
) -> Mapping[str, TasksTuple]:
    """Return an assignment in which members with an older topology get no new tasks.

    Their new tasks go to the other members instead, first to the member with the fewest active tasks. Without other
    members, the tasks are not assigned.
    """
    kept = {each: _common(computed[each], before.get(each, NO_TARGET)) for each in computed if each in old}
    result = {**computed, **kept}
    others = [each for each in computed if each not in old]
    freed = [task for each in sorted(kept) for task in sorted(computed[each].active - kept[each].active)]
    for task in freed if others else ():
        taker = min(others, key=lambda each: (len(result[each].active), each))
        result[taker] = _with_active(result[taker], task)
    return result


def _common(tasks: TasksTuple, before: TasksTuple) -> TasksTuple:
    return TasksTuple(tasks.active & before.active, tasks.standby & before.standby, tasks.warmup & before.warmup)


def _with_active(tasks: TasksTuple, task: TaskId) -> TasksTuple:
    return TasksTuple(tasks.active | {task}, tasks.standby - {task}, tasks.warmup - {task})
