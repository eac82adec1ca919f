"""The files of a log directory as rows to print: batches, their records, entries of other files, errors.

This module defines the contents of rows, as JSON values. ``records`` decodes keys and values of records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID

import attrs

from kafka_msgs.binary_layouts import CODEC_MASK, CONTROL, LOG_APPEND_TIME, TRANSACTIONAL
from kafka_msgs.cli.render.records import content_of, headers_of, message_json
from kafka_msgs.cli.render.rows import Row
from kafka_msgs.cli.render.timestamps import iso_of_ms, with_times
from kafka_msgs.errors import KafkaMsgsError, LogFileError
from kafka_msgs.internal_topics.records import TOPICS
from kafka_msgs.log import indexes, small_files
from kafka_msgs.log.file_scan import AnyBatch, FileScan
from kafka_msgs.log.segment import Segment, check_offset_index, check_time_index
from kafka_msgs.log.summary import CODEC_NAMES, LogSummary, fault_in_batch, walk_summary
from kafka_msgs.records import ControlRecord, ControlType, Record, RecordBatch

__all__ = ["LogDumpOptions", "is_log_file", "rows"]


@attrs.frozen(kw_only=True)
class LogDumpOptions:
    """The options of a dump.

    ``kinds`` are the kinds of rows; errors are always included. Batches before ``from_offset``, and batches that end
    after ``max_bytes`` of their file, are omitted. Records are decoded as records of the internal ``topic``, or their
    keys and values with the ``DECODERS`` of these names; if neither is set, the directory name identifies the internal
    topic, and other records are text. Without ``metadata`` a record has only its key and value, and control records are
    omitted. Indexes are compared with their segment if ``compared`` is set.
    """

    kinds: frozenset[str] = frozenset({"batch", "entry"})
    from_offset: int = 0
    max_bytes: int | None = None
    topic: str | None = None
    keys: str | None = None
    values: str | None = None
    metadata: bool = True
    compared: bool = True


def rows(path: Path, view: LogDumpOptions, summary: LogSummary, progress: Callable[[int], None]) -> Iterator[Row]:
    """Yield the rows of a file, and count them; ``progress`` is called with the number of bytes read.

    Indexes and the small files are recognized by suffix or name; other files are read as batches.
    """
    compare = _COMPARED.get(path.suffix) if view.compared else None
    read = compare or _ENTRIES.get(path.suffix) or _ENTRIES.get(path.name)
    if read is None:
        yield from _batches(path, view, summary, progress)
    else:
        yield from _entries(path, view, summary, read)


def is_log_file(path: Path) -> bool:
    """Return whether a file has a name that brokers use in log directories."""
    return path.suffix in (*_BATCHES, *_ENTRIES) or path.name in _ENTRIES


_Read: TypeAlias = Callable[[Path], Iterable[Any]]


class _PartitionOffset(NamedTuple):
    topic: str
    partition: int
    offset: int


def _offsets(path: Path) -> Iterator[_PartitionOffset]:
    for (topic, partition), offset in small_files.read_offset_checkpoint(path).items():
        yield _PartitionOffset(topic, partition, offset)


def _quorum(path: Path) -> list[dict[str, Any]]:
    version, state = small_files.read_quorum_state(path)
    return [{"version": version, **state.to_json(version)}]


_BATCHES: Final = (".log", ".checkpoint")
_COMPARED: Final[Mapping[str, _Read]] = {
    ".index": check_offset_index,
    ".timeindex": check_time_index,
}
_ENTRIES: Final[Mapping[str, _Read]] = {
    ".index": lambda path: indexes.walk_offset_index(path),
    ".timeindex": lambda path: indexes.walk_time_index(path),
    ".txnindex": lambda path: indexes.walk_aborted_transactions(path),
    ".snapshot": lambda path: small_files.read_producer_snapshot(path).producer_entries,
    "leader-epoch-checkpoint": small_files.read_leader_epochs,
    "recovery-point-offset-checkpoint": _offsets,
    "replication-offset-checkpoint": _offsets,
    "log-start-offset-checkpoint": _offsets,
    "cleaner-offset-checkpoint": _offsets,
    "partition.metadata": lambda path: [small_files.read_partition_metadata(path)],
    "meta.properties": lambda path: [small_files.read_meta_properties(path)],
    "quorum-state": _quorum,
    ".kafka_cleanshutdown": lambda path: [small_files.read_clean_shutdown(path)],
}


def _entries(path: Path, view: LogDumpOptions, summary: LogSummary, read: _Read) -> Iterator[Row]:
    try:
        for entry in read(path):
            if isinstance(entry, KafkaMsgsError):
                yield _counted(entry, summary)
            elif "entry" in view.kinds:
                yield Row("entry", _facts(entry))
    except LogFileError as fault:
        yield _counted(fault, summary)


def _batches(path: Path, view: LogDumpOptions, summary: LogSummary, progress: Callable[[int], None]) -> Iterator[Row]:
    segment = Segment(path) if path.stem.isdecimal() else None
    closed = segment is not None and segment.closed
    if not view.kinds & {"batch", "record"} and not view.from_offset and view.max_bytes is None:
        yield from map(_error, walk_summary(path, summary, closed=closed, progress=progress))
        return
    scan = FileScan(path, start=segment.position_of(view.from_offset) if segment else 0, closed=closed)
    for item in scan:
        progress(item.position)
        if view.max_bytes is not None and scan.position > view.max_bytes:
            return
        if isinstance(item, LogFileError):
            yield _counted(item, summary)
        elif item.last_offset >= view.from_offset:
            yield from _batch(path, item, view, summary)
    summary.preallocated += scan.preallocated


def _batch(path: Path, batch: AnyBatch, view: LogDumpOptions, summary: LogSummary) -> Iterator[Row]:
    if "batch" in view.kinds:
        yield Row("batch", _header(batch))
    try:
        summary.add_batch(batch)
        items = _records(batch, view) if "record" in view.kinds else []
    except KafkaMsgsError as error:
        yield _counted(fault_in_batch(path, batch, str(error)), summary)
        return
    topic = _topic_of(path, view)
    for item in items:
        if item.offset >= view.from_offset:
            try:
                yield Row("record", _record(item, topic, view))
            except KafkaMsgsError as error:
                yield _counted(fault_in_batch(path, batch, f"record at offset {item.offset}: {error}"), summary)


def _records(batch: AnyBatch, view: LogDumpOptions) -> Sequence[Record | ControlRecord]:
    if isinstance(batch, RecordBatch) and batch.is_control:
        return batch.control_records() if view.metadata else []
    return batch.records()


def _topic_of(path: Path, view: LogDumpOptions) -> str | None:
    """Return the internal topic for decoding records: the selected topic, or the topic of the partition directory.

    A selected decoder takes precedence over the directory name.
    """
    if view.topic is not None or view.keys is not None or view.values is not None:
        return view.topic
    name = path.absolute().parent.name.rpartition("-")[0]
    return name if name in TOPICS else None


def _counted(error: KafkaMsgsError, summary: LogSummary) -> Row:
    summary.add_error(error)
    return _error(error)


def _error(error: KafkaMsgsError) -> Row:
    return Row("error", {name: value for name, value in vars(error).items() if name != "file"})


def _header(batch: AnyBatch) -> dict[str, Any]:
    """Return the values in the header of a batch, as one dict literal, because a long log has a million batches."""
    attributes = batch.attributes
    if not isinstance(batch, RecordBatch):
        return {
            "position": batch.position,
            "size": batch.size,
            "magic": batch.magic,
            "lastOffset": batch.last_offset,
            "codec": CODEC_NAMES[attributes & CODEC_MASK],
            "crc": batch.crc,
            "timestampType": batch.timestamp_type.name,
            "maxTimestamp": batch.max_timestamp,
            "maxTime": iso_of_ms(batch.max_timestamp),
        }
    return {
        "baseOffset": batch.base_offset,
        "count": batch.count,
        "position": batch.position,
        "size": batch.size,
        "magic": batch.magic,
        "lastOffset": batch.last_offset,
        "codec": CODEC_NAMES[attributes & CODEC_MASK],
        "crc": batch.crc,
        "timestampType": "LOG_APPEND_TIME" if attributes & LOG_APPEND_TIME else "CREATE_TIME",
        "maxTimestamp": batch.max_timestamp,
        "maxTime": iso_of_ms(batch.max_timestamp),
        "partitionLeaderEpoch": batch.partition_leader_epoch,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "baseSequence": batch.base_sequence,
        "lastSequence": batch.last_sequence,
        "transactional": attributes & TRANSACTIONAL != 0,
        "control": attributes & CONTROL != 0,
        "deleteHorizon": batch.delete_horizon,
        "deleteHorizonTime": iso_of_ms(batch.delete_horizon),
    }


def _record(record: Record | ControlRecord, topic: str | None, view: LogDumpOptions) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if view.metadata:
        facts = {"offset": record.offset, "timestamp": record.timestamp, "time": iso_of_ms(record.timestamp)}
    if isinstance(record, ControlRecord):
        name = record.type.name if isinstance(record.type, ControlType) else record.type
        return facts | {"control": name, "value": message_json(record.message, 0)}
    facts |= content_of(record, topic, view.keys, view.values)
    return facts | {"headers": headers_of(record)} if view.metadata and topic is None else facts


def _facts(entry: Any) -> dict[str, Any]:
    """Return the fields of an entry of any kind by their names, spelled as in the JSON of messages."""
    if isinstance(entry, dict):
        return entry
    if hasattr(entry, "_asdict"):
        facts = entry._asdict()
    else:
        facts = {field.name: getattr(entry, field.name) for field in attrs.fields(type(entry))}
    named = {
        _camel(name): str(value) if isinstance(value, UUID) else value
        for name, value in facts.items()
        if name != "unknown_tagged_fields"
    }
    return with_times(named)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))
