"""The start offsets of share groups, from ``__share_group_state``.

This module builds the state of share partitions from the partitions of the topic. ``kafka_msgs.internal_topics``
interprets records, and ``kafka_msgs.log`` reads files.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from uuid import UUID

from attrs import evolve, frozen

from kafka_msgs.analysis.groups import GroupOffset, GroupsRead, GroupWithOffsets, ReadProblem
from kafka_msgs.analysis.latest_records import LatestRecords
from kafka_msgs.errors import KafkaMsgsError, LogFileError
from kafka_msgs.internal_topics.batch_decoding import decode_batches
from kafka_msgs.internal_topics.records import InternalRecord
from kafka_msgs.internal_topics.replay import TransactionEnd
from kafka_msgs.log.log_directory import Partition
from kafka_msgs.log.partition_discovery import EndOffsets, Progress
from kafka_msgs.messages.share_snapshot_key import ShareSnapshotKey
from kafka_msgs.messages.share_snapshot_value import ShareSnapshotValue

__all__ = ["SHARE_STATE_TOPIC", "ShareGroupStates", "add_share_offsets", "is_share", "read_share_states"]

SHARE_STATE_TOPIC: Final = "__share_group_state"


@frozen(kw_only=True)
class ShareGroupStates:
    """The states of share partitions by group, topic id and partition, and the problems."""

    by_group: Mapping[str, Mapping[tuple[UUID, int], ShareSnapshotValue]]
    problems: tuple[ReadProblem, ...]


def read_share_states(partitions: Iterable[Partition], *, progress: Progress | None = None) -> ShareGroupStates:
    """Return the states in partitions of ``__share_group_state``.

    An unreadable record becomes a problem, including all later records in its batch, and so does a damaged part of a
    file. All other records count. Raises ``OSError``.
    """
    found: defaultdict[str, dict[tuple[UUID, int], ShareSnapshotValue]] = defaultdict(dict)
    problems: list[ReadProblem] = []
    for partition in partitions:
        latest = LatestRecords()
        for record in _records(partition, problems, progress or Progress()):
            if not isinstance(record, TransactionEnd):
                latest.add(record)
        state = latest.state()
        for key, value in state.select(ShareSnapshotKey, ShareSnapshotValue).items():
            found[key.group_id][key.topic_id, key.partition] = value
    return ShareGroupStates(by_group=found, problems=tuple(problems))


def add_share_offsets(
    groups: GroupsRead, states: ShareGroupStates, topic_names: Mapping[UUID, str], end_offsets: EndOffsets
) -> GroupsRead:
    """Return the groups with start offsets added to share groups, and the problems of groups and share states.

    ``topic_names`` maps topic ids to names. Partitions of unnamed topics are omitted, and so are partitions whose start
    offset is still undecided. ``end_offsets`` are used for the lags.
    """
    found = [
        evolve(
            each, offsets=tuple(_starts(states.by_group.get(each.description.group_id, {}), topic_names, end_offsets))
        )
        if is_share(each)
        else each
        for each in groups.groups
    ]
    return GroupsRead(groups=tuple(found), problems=groups.problems + states.problems)


def is_share(group: GroupWithOffsets) -> bool:
    """Return whether a group is a share group."""
    return group.description.kind == "share"


def _starts(
    states: Mapping[tuple[UUID, int], ShareSnapshotValue], topic_names: Mapping[UUID, str], end_offsets: EndOffsets
) -> Iterator[GroupOffset]:
    """Return the start offsets, sorted by topic and partition.

    The lag excludes completed records (KIP-1226). Coordinators of older releases did not count these.
    """
    for topic, partition, topic_id in sorted(
        (topic_names[each], number, each) for each, number in states if each in topic_names
    ):
        state = states[topic_id, partition]
        if state.start_offset >= 0:
            yield GroupOffset(
                topic=topic,
                partition=partition,
                offset=state.start_offset,
                leader_epoch=state.leader_epoch if state.leader_epoch >= 0 else None,
                metadata=None,
                commit_timestamp=None,
                expire_timestamp=None,
                topic_id=topic_id,
                end_offset=end_offsets.get((topic, partition)),
                done=state.delivery_complete_count if state.delivery_complete_count >= 0 else None,
            )


def _records(
    partition: Partition, problems: list[ReadProblem], progress: Progress
) -> Iterator[InternalRecord | TransactionEnd]:
    def report(reason: str) -> None:
        problems.append(ReadProblem(topic=SHARE_STATE_TOPIC, partition=partition.partition, offset=None, reason=reason))

    for segment in partition.segments:
        progress.file(segment.path)
        for item in segment.walk_batches():
            if isinstance(item, LogFileError):
                report(str(item))
                continue
            try:
                yield from decode_batches(SHARE_STATE_TOPIC, [item])
            except KafkaMsgsError as error:
                report(f"{segment.path.name} at byte {item.position}: {error}")
            progress.read(item.position)
