"""Where share groups begin to read, from ``__share_group_state``.

This module owns the way from the partitions of the topic to the state of share partitions. ``kafka_msgs.topics`` knows
the meaning of records, and ``kafka_msgs.log`` reads files.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from uuid import UUID

from attrs import frozen

from kafka_msgs.errors import KafkaMsgsError, LogFileError
from kafka_msgs.log.partition import Partition
from kafka_msgs.messages.share_snapshot_key import ShareSnapshotKey
from kafka_msgs.messages.share_snapshot_value import ShareSnapshotValue
from kafka_msgs.offline.directories import Progress
from kafka_msgs.offline.groups import Problem
from kafka_msgs.topics.batches import decode_batches
from kafka_msgs.topics.records import InternalRecord
from kafka_msgs.topics.replay import TransactionEnd, replay

__all__ = ["SHARE_STATE_TOPIC", "ShareStates", "read_share_states"]

SHARE_STATE_TOPIC: Final = "__share_group_state"


@frozen(kw_only=True)
class ShareStates:
    """The states of share partitions by group, topic id and partition, and what could not be read."""

    by_group: Mapping[str, Mapping[tuple[UUID, int], ShareSnapshotValue]]
    problems: tuple[Problem, ...]


def read_share_states(partitions: Iterable[Partition], *, progress: Progress | None = None) -> ShareStates:
    """Return the states in partitions of ``__share_group_state``.

    A record that cannot be read is a problem, with all after it in its batch, and so is a damaged part of a file.
    Everything else counts. Raises ``OSError``.
    """
    found: defaultdict[str, dict[tuple[UUID, int], ShareSnapshotValue]] = defaultdict(dict)
    problems: list[Problem] = []
    for partition in partitions:
        state = replay(_records(partition, problems, progress or Progress()))
        for key, value in state.select(ShareSnapshotKey, ShareSnapshotValue).items():
            found[key.group_id][key.topic_id, key.partition] = value
    return ShareStates(by_group=found, problems=tuple(problems))


def _records(
    partition: Partition, problems: list[Problem], progress: Progress
) -> Iterator[InternalRecord | TransactionEnd]:
    def report(reason: str) -> None:
        problems.append(Problem(topic=SHARE_STATE_TOPIC, partition=partition.number, offset=None, reason=reason))

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
