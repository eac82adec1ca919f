"""Offset resets of a group: to an end of each partition, to a time, to an offset, or by a number of records.

``plan_offset_reset`` computes the new offsets, and ``reset_group_offsets`` sets them. The rules follow Kafka's
``kafka-consumer-groups --reset-offsets``: an offset outside of a partition becomes its nearest end.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal, Self

from attrs import frozen

from kafka_msgs.admin.fan_out import seconds_left
from kafka_msgs.admin.group_offsets import alter_group_offsets, list_group_offsets
from kafka_msgs.admin.partitions import OffsetSpec, list_offsets
from kafka_msgs.admin.results import Outcome, Results
from kafka_msgs.client.broker_errors import broker_error
from kafka_msgs.client.cluster_metadata import TopicPartition
from kafka_msgs.client.core import ClientCore
from kafka_msgs.client.flow import Flow
from kafka_msgs.client.offset_and_metadata import OffsetAndMetadata
from kafka_msgs.client.scheduler import gather
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.messages.list_offsets_response import ListOffsetsPartitionResponse

__all__ = ["OffsetChange", "OffsetTarget", "plan_offset_reset", "reset_group_offsets"]


@frozen
class OffsetTarget:
    """The target of an offset reset. Create it with one of the class methods."""

    kind: Literal["earliest", "latest", "timestamp", "offset", "shift", "current"]
    value: int = 0

    @classmethod
    def earliest(cls) -> Self:
        """The first record of each partition."""
        return cls("earliest")

    @classmethod
    def latest(cls) -> Self:
        """The end of each partition."""
        return cls("latest")

    @classmethod
    def timestamp(cls, ms: int) -> Self:
        """The first record at or after a time (ms since 1970), or the end of the partition without such a record."""
        return cls("timestamp", ms)

    @classmethod
    def offset(cls, offset: int) -> Self:
        """The same offset in each partition."""
        return cls("offset", offset)

    @classmethod
    def shift(cls, records: int) -> Self:
        """A number of offsets forward, or back if it is negative. A partition without an offset fails."""
        return cls("shift", records)

    @classmethod
    def current(cls) -> Self:
        """The current offset, or the end of the partition if the group has no offset."""
        return cls("current")


@frozen
class OffsetChange:
    """The offset of a group for a partition: ``before`` (-1: none) and ``after``."""

    before: int
    after: int


def plan_offset_reset(
    client: ClientCore,
    group_id: str,
    target: OffsetTarget | Mapping[TopicPartition, int],
    partitions: Collection[TopicPartition] | None = None,
    *,
    timeout: float | None = None,
) -> Flow[Results[TopicPartition, OffsetChange]]:
    """Return the planned offsets of a group, without changing them.

    ``target`` applies to all ``partitions``; None means all partitions for which the group has an offset.
    Alternatively it has an offset for each partition. Raises ``BrokerError`` if the request for the group failed.
    """
    deadline = client.deadline(timeout)
    wanted = tuple(target) if isinstance(target, Mapping) else partitions
    stored = yield from list_group_offsets(client, group_id, wanted, timeout=seconds_left(client, deadline))
    chosen = tuple(wanted) if wanted is not None else tuple(stored)
    time = target.value if isinstance(target, OffsetTarget) and target.kind == "timestamp" else OffsetSpec.LATEST
    asked = (OffsetSpec.EARLIEST, OffsetSpec.LATEST, time)
    answers = yield from gather(
        [
            list_offsets(client, dict.fromkeys(chosen, each), timeout=seconds_left(client, deadline))
            for each in dict.fromkeys(asked)
        ]
    )
    found = [_offsets(each) for each in answers]
    start, end, at_time = found[0], found[1], found[-1]
    changes: dict[TopicPartition, Outcome[OffsetChange]] = {}
    for each in chosen:
        known = (stored.outcomes.get(each, OffsetAndMetadata(-1)), start[each], end[each], at_time[each])
        changes[each] = _change(each, target, *known)
    return Results(changes)


def _offsets(
    listed: Outcome[Results[TopicPartition, ListOffsetsPartitionResponse]],
) -> Mapping[TopicPartition, Outcome[int]]:
    if isinstance(listed, Exception):
        raise listed
    return {
        partition: each if isinstance(each, Exception) else each.offset for partition, each in listed.outcomes.items()
    }


def _change(
    partition: TopicPartition,
    target: OffsetTarget | Mapping[TopicPartition, int],
    stored: Outcome[OffsetAndMetadata],
    start: Outcome[int],
    end: Outcome[int],
    at_time: Outcome[int],
) -> Outcome[OffsetChange]:
    """Return the change of one partition, or the first error among its inputs."""
    if isinstance(stored, Exception):
        return stored
    if isinstance(start, Exception):
        return start
    if isinstance(end, Exception):
        return end
    if isinstance(at_time, Exception):
        return at_time
    before = stored.offset
    if isinstance(target, Mapping):
        wanted = target[partition]
    elif target.kind == "shift" and before < 0:
        reason = "the group has no offset that could be shifted"
        return broker_error(ErrorCode.OFFSET_OUT_OF_RANGE, api="OffsetFetch", subject=partition, message=reason)
    else:
        wanted = _wanted(target, before, start, end, at_time)
    return OffsetChange(before, min(max(wanted, start), end))


def _wanted(target: OffsetTarget, before: int, start: int, end: int, at_time: int) -> int:
    """Return the offset of a target for a partition."""
    return {
        "earliest": start,
        "latest": end,
        "timestamp": at_time if at_time >= 0 else end,
        "offset": target.value,
        "shift": before + target.value,
        "current": before if before >= 0 else end,
    }[target.kind]


def reset_group_offsets(
    client: ClientCore,
    group_id: str,
    target: OffsetTarget | Mapping[TopicPartition, int],
    partitions: Collection[TopicPartition] | None = None,
    *,
    timeout: float | None = None,
) -> Flow[Results[TopicPartition, OffsetChange]]:
    """Move the offsets of a group, as planned by ``plan_offset_reset``. The group must have no members."""
    deadline = client.deadline(timeout)
    plan = yield from plan_offset_reset(client, group_id, target, partitions, timeout=seconds_left(client, deadline))
    offsets = {partition: change.after for partition, change in plan.ok.items()}
    if not offsets:
        return plan
    altered = yield from alter_group_offsets(client, group_id, offsets, timeout=seconds_left(client, deadline))
    return Results({**plan.outcomes, **altered.errors})
