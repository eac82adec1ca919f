"""Writing with ``kafka-log``: rows of a table become partition directories like a broker's.

Each task writes complete partitions into a separate directory below the log directory. When all tasks succeed, the
driver moves the partitions to their final location; otherwise it removes them. ``kafka_msgs.log.writers`` writes the
files.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
from attrs import frozen
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from kafka_msgs.errors import OptionError, RecordWriteError
from kafka_msgs.filesystems.path_resolution import local_directory
from kafka_msgs.log.small_files import (
    CHECKPOINTS,
    HIGH_WATERMARKS,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    read_offset_checkpoint,
)
from kafka_msgs.log.writers.directory_lock import DirectoryLock
from kafka_msgs.log.writers.partition_writer import DEFAULT_LAYOUT, LogWriteOptions, PartitionWriter
from kafka_msgs.log.writers.small_files import format_offset_checkpoint, replace_file
from kafka_msgs.records import NO_TIMESTAMP, CompressionType
from kafka_msgs.spark.sources.offset_options import Place
from kafka_msgs.spark.sources.options import Options
from kafka_msgs.spark.sources.sink_rows import DATA, WHOLE, records_in, sink_topic

__all__ = ["LogWriter", "WrittenPartitions"]

_SOURCE: Final = "kafka-log"
_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "topic": ("string",),
    "partition": WHOLE,
    "offset": WHOLE,
    "timestamp": ("timestamp",),
    "timestampMs": WHOLE,
    "timestampType": WHOLE,
    "key": DATA,
    "value": DATA,
    "headers": ("array",),
    "leaderEpoch": WHOLE,
    "_error": ("string",),
}
"""The writable columns and their accepted types."""
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_LARGEST: Final = 2**31 - 1
_BROKERS_TIME: Final = 1
_STAGING: Final = ".kafka-msgs-"
"""The prefix of the temporary directory. Brokers must not see this directory."""
_OLD: Final = "old"


@frozen
class WrittenPartitions(WriterCommitMessage):
    """The partitions that a task has written: the location of each, and the offset after its last record."""

    partitions: tuple[tuple[Place, Path, int], ...]


def _name(place: Place) -> str:
    return f"{place[0]}-{place[1]}"


class LogWriter(DataSourceArrowWriter):
    """Writes a table. Partitions are moved to their final location only when all are written.

    Raises ``OptionError``, including for a column that cannot be written.
    """

    def __init__(self, options: Options, schema: StructType, *, overwrite: bool) -> None:
        self.topic = sink_topic(options, schema, _COLUMNS)
        if "partition" not in schema.names:
            options.refuse("columns", "the column partition is needed: it says which directory a row belongs to")
        path, *more = options.paths()
        if more:
            options.refuse("path", "one directory is needed")
        names = tuple(codec.name.lower() for codec in CompressionType)
        self.home = local_directory(_SOURCE, path)
        self.layout = LogWriteOptions(
            codec=CompressionType[options.choice("compression", names, "none").upper()],
            batch_bytes=_below_2_gib(options, "batchBytes", DEFAULT_LAYOUT.batch_bytes),
            segment_bytes=_below_2_gib(options, "segmentBytes", DEFAULT_LAYOUT.segment_bytes),
        )
        self.overwrite = overwrite
        self.staging = self.home / f"{_STAGING}{uuid4().hex}"

    def begin(self) -> LogWriter:
        """Create the directory for incomplete output."""
        self.staging.mkdir(parents=True)
        return self

    def target(self, place: Place) -> Path:
        """Return the directory of a partition. Raises ``OptionError`` if it exists and must not be replaced."""
        found = self.home / _name(place)
        if found.exists() and not self.overwrite:
            reason = f"there is a partition {_name(place)}; the mode overwrite replaces it"
            raise OptionError(source=_SOURCE, option="mode", value="append", reason=reason)
        return found

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of a task as complete partitions."""
        directory, writers = self.staging / uuid4().hex, dict[Place, PartitionWriter]()
        # The driver created the parent directory, so tasks on machines without the shared filesystem fail here.
        directory.mkdir()
        try:
            for batch in iterator:
                for record in records_in(batch):
                    place = _place(record, self.topic)
                    if place not in writers:
                        self.target(place)
                        writers[place] = PartitionWriter(directory / _name(place), self.layout)
                    _append(writers[place], record)
            for writer in writers.values():
                writer.close()
        except BaseException:
            for writer in writers.values():
                writer.discard()
            shutil.rmtree(directory, ignore_errors=True)
            raise
        ends = ((place, writer.directory, writer.next_offset) for place, writer in writers.items())
        return WrittenPartitions(tuple(ends))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Move the partitions to their final location. Raises ``OptionError`` if two tasks wrote the same partition."""
        written = [each for found in messages if isinstance(found, WrittenPartitions) for each in found.partitions]
        try:
            _refuse_shared(place for place, _, _ in written)
            lock = DirectoryLock(self.home)
            try:
                self._put_in_place({place: directory for place, directory, _ in written})
                _note_offsets(self.home, {place: end for place, _, end in written})
            finally:
                lock.release()
        finally:
            self.abort(messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove the staged output, after renaming it so that running tasks cannot add to it."""
        gone = self.staging.with_name(f"{self.staging.name}-gone")
        with suppress(FileNotFoundError):
            self.staging.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)

    def _put_in_place(self, written: Mapping[Place, Path]) -> None:
        """Rename all directories, or none. A replaced partition keeps its topic id."""
        old = self.staging / _OLD
        old.mkdir()
        moved: list[tuple[Path, Path]] = []
        try:
            for place, directory in written.items():
                target = self.target(place)
                if target.exists():
                    if (target / PARTITION_METADATA).exists():
                        replace_file(directory / PARTITION_METADATA, (target / PARTITION_METADATA).read_bytes())
                    moved.append((target, target.rename(old / target.name)))
                moved.append((directory, directory.rename(target)))
        except BaseException:
            for before, now in reversed(moved):
                now.rename(before)
            raise


def _below_2_gib(options: Options, name: str, default: int) -> int:
    found = options.size(name, default)
    if found > _LARGEST:
        options.refuse(name, "it is below 2 GiB")
    return found


def _append(writer: PartitionWriter, record: Mapping[str, Any]) -> None:
    time = record.get("timestampMs", record.get("timestamp", NO_TIMESTAMP))
    broker_has_set = record.get("timestampType") == _BROKERS_TIME and time >= 0
    writer.append(
        record.get("key"),
        record.get("value"),
        timestamp=time,
        leader_epoch=record.get("leaderEpoch", 0),
        log_append_timestamp=time if broker_has_set else None,
        **{name: record[name] for name in ("headers", "offset") if name in record},
    )


def _place(record: Mapping[str, Any], topic: str | None) -> Place:
    if "_error" in record:
        raise RecordWriteError(field="_error", value=record["_error"], reason=f"no record: {record['_error']}")
    name = topic or record.get("topic")
    if name is None or _TOPIC.fullmatch(name) is None or set(name) == {"."}:
        raise RecordWriteError(field="topic", value=name, reason="it is not the name of a topic")
    number = record.get("partition")
    if number is None or not 0 <= number <= _LARGEST:
        raise RecordWriteError(field="partition", value=number, reason="it is not the number of a partition")
    return name, number


def _refuse_shared(places: Iterable[Place]) -> None:
    shared = sorted(place for place, count in Counter(places).items() if count > 1)
    if shared:
        reason = f'{_name(shared[0])} was written by more than one task: use repartition("topic", "partition") first'
        raise OptionError(source=_SOURCE, option="partition", value=None, reason=reason)


def _note_offsets(home: Path, ends: Mapping[Place, int]) -> None:
    """Write the offsets of partitions to the checkpoint files: all records are flushed and committed."""
    for name in CHECKPOINTS:
        path = home / name
        known = read_offset_checkpoint(path) if path.exists() else {}
        kept = {place: offset for place, offset in known.items() if place not in ends}
        own = ends if name in (RECOVERY_POINTS, HIGH_WATERMARKS) else {}
        replace_file(path, format_offset_checkpoint({**kept, **own}))
