"""The records of a cassette: the results of all recorded fetches, by partition.

The number of records in a fetch depends on timing. A fetch is therefore served from the batches of all recorded
fetches, starting at the requested offset. A batch that was recorded after a write becomes visible only after the test
repeats that write.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias
from uuid import UUID

from attrs import Factory, define

from kafka_msgs.message import Message
from kafka_msgs.messages.fetch_request import FetchPartition, FetchRequest
from kafka_msgs.messages.fetch_response import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from kafka_msgs.messages.metadata_response import MetadataResponse
from kafka_msgs.schema import ZERO_UUID

__all__ = ["RecordedFetches"]

_HEAD: Final = struct.Struct(">qi")
_LAST_OFFSET_DELTA: Final = struct.Struct(">i")
_LAST_OFFSET_DELTA_AT: Final = 23
_MAGIC_AT: Final = 16
_WITH_DELTA: Final = 2

Topic: TypeAlias = str | UUID


@define
class _Batch:
    seen_at: int
    last_offset: int
    data: bytes


@define
class _Partition:
    """The recorded data of a partition: its batches by first offset, and its end offsets.

    Each end offset has its position in the recording.
    """

    batches: dict[int, _Batch] = Factory(dict)
    ends: list[tuple[int, int, int]] = Factory(list)
    aborted: dict[AbortedTransaction, None] = Factory(dict)
    log_start_offset: int = 0

    def note(self, place: int, data: PartitionData) -> None:
        if data.error_code:
            return
        self.ends.append((place, data.high_watermark, data.last_stable_offset))
        self.log_start_offset = max(self.log_start_offset, data.log_start_offset)
        self.aborted.update(dict.fromkeys(data.aborted_transactions or ()))
        for offset, last_offset, batch in _batches(bytes(data.records or b"")):
            self.batches.setdefault(offset, _Batch(place, last_offset, batch))

    def read(self, wanted: FetchPartition, before: int, isolation_level: int) -> PartitionData:
        """Return the data for a client that has repeated all writes recorded before a position."""
        chosen: list[_Batch] = []
        size = 0
        for offset in sorted(self.batches):
            batch = self.batches[offset]
            if batch.last_offset < wanted.fetch_offset or batch.seen_at >= before:
                continue
            if chosen and size + len(batch.data) > wanted.partition_max_bytes:
                break
            chosen.append(batch)
            size += len(batch.data)
        last = chosen[-1].last_offset if chosen else wanted.fetch_offset - 1
        seen = [end for end in self.ends if end[0] < before] or [(0, last + 1, last + 1)]
        aborted = tuple(each for each in self.aborted if each.first_offset <= last)
        return PartitionData(
            partition_index=wanted.partition,
            high_watermark=max(last + 1, *(end[1] for end in seen)),
            last_stable_offset=max(last + 1, *(end[2] for end in seen)),
            log_start_offset=self.log_start_offset,
            aborted_transactions=aborted if isolation_level else None,
            records=b"".join(batch.data for batch in chosen),
        )


class RecordedFetches:
    """The records by topic and partition."""

    def __init__(self) -> None:
        self._partitions: defaultdict[tuple[Topic, int], _Partition] = defaultdict(_Partition)
        self._names: dict[UUID, str] = {}

    def note(self, place: int, message: Message | None) -> None:
        """Add the records and topic names of a recorded response."""
        if isinstance(message, MetadataResponse):
            self._names |= {topic.topic_id: topic.name for topic in message.topics if topic.name}
        elif isinstance(message, FetchResponse):
            for topic in message.responses:
                for data in topic.partitions:
                    self._partitions[self._topic(topic.topic, topic.topic_id), data.partition_index].note(place, data)

    def answer(self, request: FetchRequest, before: int) -> tuple[FetchResponse, bool]:
        """Return the response to a fetch, and whether it contains records. It starts no session.

        ``before`` is the position of the first recorded change that has not been repeated.
        """
        responses = tuple(self._responses(request, before))
        found = any(data.records for topic in responses for data in topic.partitions)
        return FetchResponse(responses=responses), found

    def _responses(self, request: FetchRequest, before: int) -> Iterator[FetchableTopicResponse]:
        for topic in request.topics:
            name = self._topic(topic.topic, topic.topic_id)
            parts = (self._partitions.get((name, each.partition), _Partition()) for each in topic.partitions)
            found = (
                part.read(each, before, request.isolation_level)
                for part, each in zip(parts, topic.partitions, strict=True)
            )
            yield FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=tuple(found))

    def _topic(self, name: str, topic_id: UUID) -> Topic:
        return name if topic_id == ZERO_UUID else self._names.get(topic_id, topic_id)


def _batches(data: bytes) -> Iterable[tuple[int, int, bytes]]:
    """Yield the complete batches in a fetch response: first and last offset, and the bytes."""
    position = 0
    while position + _MAGIC_AT < len(data):
        offset, length = _HEAD.unpack_from(data, position)
        end = position + _HEAD.size + length
        if length <= 0 or end > len(data):
            return
        last_offset = offset
        if data[position + _MAGIC_AT] == _WITH_DELTA:
            last_offset += _LAST_OFFSET_DELTA.unpack_from(data, position + _LAST_OFFSET_DELTA_AT)[0]
        yield offset, last_offset, data[position:end]
        position = end
