"""The loop of ``consume``: poll, print, and commit exactly the printed records."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from attrs import define, field

from kafka_msgs.cli.render.output import CommandError
from kafka_msgs.client.cluster_metadata import TopicPartition
from kafka_msgs.client.consumer import Consumer
from kafka_msgs.records import ConsumerRecord

__all__ = ["Consumption"]

_POLL_SECONDS: Final = 1.0
_MAX_POLL_RECORDS: Final = 1000


@define
class Consumption:
    """Reads records until the ends, until a number of records, or until the consumer stops receiving any.

    ``ends`` are the offsets to stop at, or None. ``stall_seconds`` limits the wait for records before the ends.
    ``max_records`` counts printed records. With ``commits``, the offsets after the printed records are committed, also
    if the command is interrupted or its output is closed.
    """

    consumer: Consumer
    matches: Callable[[ConsumerRecord], bool]
    show: Callable[[ConsumerRecord], None]
    progress: Callable[[int], None]
    ends: Mapping[TopicPartition, int] | None
    stall_seconds: float
    max_records: int | None
    commits: bool
    printed: int = 0
    _handled: dict[TopicPartition, int] = field(factory=dict)

    def run(self) -> None:
        """Print the records. Raises ``CommandError`` if records before the ends do not arrive."""
        try:
            for record in self._records():
                if self.matches(record):
                    self.show(record)
                    self.printed += 1
                    self.progress(self.printed)
                self._handled[TopicPartition(record.topic, record.partition)] = record.offset + 1
                if self.printed == self.max_records:
                    return
        finally:
            self._commit()

    def _records(self) -> Iterator[ConsumerRecord]:
        last_arrival = time.monotonic()
        while remaining := self._remaining():
            records = self.consumer.poll(_POLL_SECONDS, max_records=_MAX_POLL_RECORDS)
            if records:
                yield from (record for record in records if self._is_before_end(record))
                self._commit()
                last_arrival = time.monotonic()
            elif self.ends is not None and time.monotonic() > last_arrival + self.stall_seconds:
                raise CommandError(f"no records for {self.stall_seconds:g} s; not at the end: {remaining}")

    def _remaining(self) -> str:
        """Return the partitions before their ends, as text. Without ends, there are always more records."""
        if self.ends is None:
            return "all"
        before = (partition for partition, end in self.ends.items() if self.consumer.position(partition) < end)
        return ", ".join(f"{partition.topic}-{partition.partition}" for partition in before)

    def _is_before_end(self, record: ConsumerRecord) -> bool:
        return self.ends is None or record.offset < self.ends.get(TopicPartition(record.topic, record.partition), 0)

    def _commit(self) -> None:
        """Commit the offsets of partitions that the consumer still has."""
        if self.commits and self._handled:
            self.consumer.commit(
                {partition: self._handled[partition] for partition in self._handled if partition in self._assigned()}
            )
        self._handled.clear()

    def _assigned(self) -> frozenset[TopicPartition]:
        return self.consumer.assignment
