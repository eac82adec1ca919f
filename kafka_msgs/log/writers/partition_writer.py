"""Writing a partition from records: batches, segments with their indexes, and the leader epochs.

This module decides where batches and segments end. Records have no producer id, so producer state and transactions do
not occur.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from attrs import frozen

from kafka_msgs.errors import RecordWriteError
from kafka_msgs.log.small_files import LEADER_EPOCHS, LeaderEpoch
from kafka_msgs.log.writers.segment_writer import SegmentWriter
from kafka_msgs.log.writers.small_files import format_leader_epochs, replace_file
from kafka_msgs.records import NO_TIMESTAMP, BatchBuilder, BatchHeader, CompressionType, Payload

__all__ = ["DEFAULT_LAYOUT", "LogWriteOptions", "PartitionWriter"]

_HIGHEST_DELTA: Final = 2**31 - 1


@frozen(kw_only=True)
class LogWriteOptions:
    """Options for writing records to files.

    ``batch_bytes`` is the maximum size of a batch before compression, unless one record is larger; ``segment_bytes`` is
    the maximum size of a segment, unless one batch is larger. Both are below 2 GiB.
    """

    codec: CompressionType = CompressionType.NONE
    batch_bytes: int = 2**17
    segment_bytes: int = 2**30


DEFAULT_LAYOUT: Final = LogWriteOptions()


class PartitionWriter:
    """A writer of a new partition into ``directory``, which it creates.

    ``next_offset`` is the offset after the last record. After an exception, and without ``close``, the directory is
    incomplete. The methods raise ``OSError``.
    """

    def __init__(self, directory: Path, layout: LogWriteOptions = DEFAULT_LAYOUT) -> None:
        directory.mkdir()
        self.directory = directory
        self.first_offset: int | None = None
        self.next_offset = 0
        self._layout = layout
        self._epochs: list[LeaderEpoch] = []
        self._segment: SegmentWriter | None = None
        self._header = BatchHeader()
        self._builder: BatchBuilder | None = None

    def append(
        self,
        key: Payload | None,
        value: Payload | None,
        *,
        timestamp: int = NO_TIMESTAMP,
        headers: Iterable[tuple[str, Payload | None]] = (),
        offset: int | None = None,
        leader_epoch: int = 0,
        log_append_timestamp: int | None = None,
    ) -> None:
        """Add a record; the arguments are the same as for ``BatchBuilder.append`` and ``BatchHeader``.

        Raises ``RecordWriteError`` for a record that the format does not support, and for decreasing offsets or leader
        epochs.
        """
        offset = self.next_offset if offset is None else offset
        if offset < self.next_offset:
            raise _refused("offset", offset, f"it does not follow {self.next_offset - 1}")
        builder = self._builder_for(offset, leader_epoch, log_append_timestamp)
        if not builder.append(key, value, timestamp=timestamp, headers=headers, offset=offset):
            builder = self._begin(offset, leader_epoch, log_append_timestamp)
            builder.append(key, value, timestamp=timestamp, headers=headers, offset=offset)
        self.next_offset = offset + 1

    def close(self) -> None:
        """Write the remaining data: the last batch, the indexes, and the leader epochs."""
        self._write_batch()
        if self._segment is not None:
            self._segment.close()
        replace_file(self.directory / LEADER_EPOCHS, format_leader_epochs(self._epochs))

    def discard(self) -> None:
        """Close the current file without finishing the partition."""
        if self._segment is not None:
            self._segment.abandon()

    def _builder_for(self, offset: int, leader_epoch: int, log_append_timestamp: int | None) -> BatchBuilder:
        header, common = self._header, (leader_epoch, log_append_timestamp)
        if (
            self._builder is not None
            and (header.partition_leader_epoch, header.log_append_timestamp) == common
            and offset - header.base_offset <= _HIGHEST_DELTA
        ):
            return self._builder
        return self._begin(offset, leader_epoch, log_append_timestamp)

    def _begin(self, offset: int, leader_epoch: int, log_append_timestamp: int | None) -> BatchBuilder:
        self._write_batch()
        self._note_epoch(leader_epoch, offset)
        self._header = BatchHeader(
            base_offset=offset, partition_leader_epoch=leader_epoch, log_append_timestamp=log_append_timestamp
        )
        self._builder = BatchBuilder(self._header, codec=self._layout.codec, size_limit=self._layout.batch_bytes)
        if self.first_offset is None:
            self.first_offset = offset
        return self._builder

    def _note_epoch(self, epoch: int, offset: int) -> None:
        latest = self._epochs[-1].epoch if self._epochs else -1
        if epoch < latest:
            raise _refused("leader_epoch", epoch, f"it is below {latest}, the one before")
        if epoch > latest:
            self._epochs.append(LeaderEpoch(epoch, offset))

    def _write_batch(self) -> None:
        builder, self._builder = self._builder, None
        if builder is not None and builder.count:
            data = builder.build()
            self._segment_for(self._header.base_offset, len(data), builder.next_offset - 1).append(data)

    def _segment_for(self, base_offset: int, size: int, last_offset: int) -> SegmentWriter:
        segment = self._segment
        if segment is None or not segment.fits(size, last_offset, self._layout.segment_bytes):
            if segment is not None:
                segment.close()
            segment = self._segment = SegmentWriter(self.directory, base_offset)
        return segment


def _refused(name: str, value: object, reason: str) -> RecordWriteError:
    return RecordWriteError(field=name, value=value, reason=reason)
