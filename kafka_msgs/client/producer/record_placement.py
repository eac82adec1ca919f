"""Chooses the partition of a record, and checks its size."""

from __future__ import annotations

from typing import Any, Final

from kafka_msgs.binary_layouts import HEADER_SIZE
from kafka_msgs.client.producer.config import ProducerConfig
from kafka_msgs.client.producer.partitioner import Partitioner, murmur2
from kafka_msgs.client.producer.record_accumulator import PartitionQueue, TopicQueues
from kafka_msgs.errors import RecordWriteError
from kafka_msgs.records import Payload

__all__ = ["RecordPlacement"]

_OVERHEAD: Final = 40
"""Maximum overhead of a record in bytes, in addition to its key, value and headers."""
_HEADER_OVERHEAD: Final = 10
_POSITIVE: Final = 0x7FFFFFFF


class RecordPlacement:
    """The settings of a producer that decide where its records go. ``partitioner`` is the user's."""

    def __init__(self, config: ProducerConfig, partitioner: Partitioner | None) -> None:
        self._config = config
        self.partitioner = partitioner

    def is_sticky(self, key: Payload | None, partition: int | None) -> bool:
        """Whether a record goes to the sticky partition of its topic."""
        return partition is None and key is None and self.partitioner is None

    def queue(self, queues: TopicQueues, key: Payload | None, partition: int | None) -> PartitionQueue:
        """Return the partition of a record. Raises ``RecordWriteError`` if the partition does not exist."""
        count = len(queues.queues)
        if partition is None:
            if self.partitioner is None and key is not None:
                return queues.queues[(murmur2(key) & _POSITIVE) % count]
            partition = self._chosen(queues.topic, key, count)
        if type(partition) is not int or not 0 <= partition < count:
            reason = f"{queues.topic} has the partitions 0 to {count - 1}, not {partition!r}"
            raise RecordWriteError(field="partition", value=partition, reason=reason)
        return queues.queues[partition]

    def _chosen(self, topic: str, key: Payload | None, count: int) -> Any:
        """Return the partition that the user's partitioner chooses."""
        assert self.partitioner is not None
        try:
            return self.partitioner(topic, key, count)
        except Exception as error:
            reason = f"the partitioner raised {type(error).__name__}: {error}"
            raise RecordWriteError(field="partition", value=None, reason=reason) from error

    def checked_size(self, value: Payload | None, key: Payload | None, headers: Any) -> int:
        """Return the approximate size of a record in bytes. Raises ``RecordWriteError`` if it is too large."""
        size = HEADER_SIZE + _OVERHEAD
        for content in (key, value):
            if content is not None and not isinstance(content, bytes | bytearray | memoryview):
                name = "value" if content is value else "key"
                raise RecordWriteError(field=name, value=content, reason="it is neither bytes nor None")
            size += 0 if content is None else len(content)
        size += sum(_HEADER_OVERHEAD + len(name) * 4 + len(content or b"") for name, content in headers)
        largest = min(self._config.max_request_size, self._config.buffer_memory)
        if size > largest:
            reason = f"a record of about {size} bytes is larger than the limit of {largest}"
            raise RecordWriteError(field="value", value=None, reason=reason)
        return size
