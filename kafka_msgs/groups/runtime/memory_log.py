"""An in-memory log of a coordinator's topic, for tests, examples and brokers without storage."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from kafka_msgs.errors.api import ApiError
from kafka_msgs.groups.runtime.output import MarkerAppend, RecordAppend
from kafka_msgs.internal_topics.records import TopicRecord
from kafka_msgs.internal_topics.replay import TransactionEnd

__all__ = ["MemoryLog"]


class MemoryLog:
    """All partitions of the topic. An append is committed immediately, unless ``hold`` is set.

    ``on_commit`` is called with a partition and the offset before which its records are committed. ``fail_next`` is the
    error of the next append.
    """

    def __init__(self) -> None:
        self.partitions: defaultdict[int, list[TopicRecord | TransactionEnd]] = defaultdict(list)
        self.on_commit: Callable[[int, int], object] | None = None
        self.hold = False
        self.fail_next: ApiError | None = None

    def append(self, batch: RecordAppend | MarkerAppend) -> int:
        """Append records or a marker. Return the offset after them. Raises ``fail_next`` once, if it is set."""
        error, self.fail_next = self.fail_next, None
        if error is not None:
            raise error
        log = self.partitions[batch.partition]
        if isinstance(batch, MarkerAppend):
            log.append(TransactionEnd(producer_id=batch.producer_id, committed=batch.committed))
        else:
            log.extend(batch.records)
        if not self.hold:
            self._committed(batch.partition)
        return len(log)

    def commit(self) -> None:
        """Commit all appended records."""
        for partition in self.partitions:
            self._committed(partition)

    def records(self, partition: int) -> tuple[TopicRecord | TransactionEnd, ...]:
        """Return the log of a partition, in the form that a coordinator loads."""
        return tuple(self.partitions[partition])

    def _committed(self, partition: int) -> None:
        if self.on_commit is not None:
            self.on_commit(partition, len(self.partitions[partition]))
