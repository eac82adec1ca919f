"""The files of a log directory as rows to print: batches, the records in them, entries of indexes, errors.

Owns what a row says, in values that JSON has. Bytes are text where they are UTF-8, and ``{"hex": ...}`` elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import UUID

import attrs

from kafka_msgs.errors import KafkaMsgsError, LogFileError
from kafka_msgs.log import files, index
from kafka_msgs.log.internal_topics import TopicRecord, decode_record
from kafka_msgs.log.scan import AnyBatch, read_log
from kafka_msgs.log.segment import Segment
from kafka_msgs.log.summary import LogSummary, codec_name
from kafka_msgs.message import Message
from kafka_msgs.records import ControlRecord, ControlType, Payload, Record, RecordBatch

__all__ = ["Row", "View", "rows"]


class Row(NamedTuple):
    """A row: ``batch``, ``record``, ``entry`` or ``error``, and what it says by name."""

    kind: str
    facts: dict[str, Any]


@attrs.frozen(kw_only=True)
class View:
    """What is asked for: records or only batches, from which offset on, and the internal topic that they are of."""

    deep: bool
    from_offset: int = 0
    topic: str | None = None


def rows(path: Path, view: View, summary: LogSummary, progress: Callable[[int], None]) -> Iterator[Row]:
    """Yield the rows of a file, and count them; ``progress`` is told how many bytes of the file are read.

    Files of batches are told by their suffix or name from indexes and the small files; other files are read as batches.
    """
    read = _ENTRIES.get(path.suffix) or _ENTRIES.get(path.name)
    if read is None:
        yield from _batches(path, view, summary, progress)
        return
    try:
        for entry in read(path):
            yield _error(entry, summary) if isinstance(entry, KafkaMsgsError) else Row("entry", _facts(entry))
    except LogFileError as error:
        yield _error(error, summary)


_ENTRIES: Final[Mapping[str, Callable[[Path], Iterable[Any]]]] = {
    ".index": lambda path: index.read_offset_index(path, on_error="yield"),
    ".timeindex": lambda path: index.read_time_index(path, on_error="yield"),
    ".txnindex": lambda path: index.read_aborted_transactions(path, on_error="yield"),
    ".snapshot": lambda path: files.read_producer_snapshot(path).producer_entries,
    "leader-epoch-checkpoint": files.read_leader_epochs,
    "partition.metadata": lambda path: [files.read_partition_metadata(path)],
    "meta.properties": lambda path: [files.read_meta_properties(path)],
}


def _batches(path: Path, view: View, summary: LogSummary, progress: Callable[[int], None]) -> Iterator[Row]:
    start = Segment(path).position_of(view.from_offset) if path.stem.isdecimal() else 0
    for item in read_log(path, start=start, on_error="yield"):
        progress(item.position)
        if isinstance(item, LogFileError):
            yield _error(item, summary)
        elif item.last_offset >= view.from_offset:
            yield from _batch(path, item, view, summary)


def _batch(path: Path, batch: AnyBatch, view: View, summary: LogSummary) -> Iterator[Row]:
    yield Row("batch", _header(batch))
    try:
        summary.add_batch(batch)
        control = isinstance(batch, RecordBatch) and batch.is_control
        items = (batch.control_records() if control else batch.records()) if view.deep else []  # type: ignore[union-attr]
    except KafkaMsgsError as error:
        yield _error(_placed(path, batch, str(error)), summary)
        return
    for item in items:
        if item.offset >= view.from_offset:
            try:
                yield Row("record", _record(item, view.topic))
            except KafkaMsgsError as error:
                yield _error(_placed(path, batch, f"record at offset {item.offset}: {error}"), summary)


def _placed(path: Path, batch: AnyBatch, reason: str) -> LogFileError:
    return LogFileError(file=str(path), position=batch.position, skipped=batch.size, reason=reason)


def _error(error: KafkaMsgsError, summary: LogSummary) -> Row:
    summary.add_error(error)
    return Row("error", {name: value for name, value in vars(error).items() if name != "file"})


def _header(batch: AnyBatch) -> dict[str, Any]:
    facts: dict[str, Any] = {"position": batch.position, "size": batch.size, "magic": batch.magic}
    facts |= {"lastOffset": batch.last_offset, "codec": codec_name(batch.codec), "crc": batch.crc}
    facts |= {"timestampType": batch.timestamp_type.name, "maxTimestamp": batch.max_timestamp}
    if not isinstance(batch, RecordBatch):
        return facts
    return {"baseOffset": batch.base_offset, "count": batch.count} | facts | {
        "partitionLeaderEpoch": batch.partition_leader_epoch,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "baseSequence": batch.base_sequence,
        "transactional": batch.is_transactional,
        "control": batch.is_control,
        "deleteHorizon": batch.delete_horizon,
    }  # fmt: skip


def _record(record: Record | ControlRecord, topic: str | None) -> dict[str, Any]:
    facts: dict[str, Any] = {"offset": record.offset, "timestamp": record.timestamp}
    if isinstance(record, ControlRecord):
        name = record.type.name if isinstance(record.type, ControlType) else record.type
        return facts | {"control": name, "value": _message(record.message, 0)}
    if topic is None:
        headers = [
            [_content(name.encode("utf-8", "surrogateescape")), _content(value)] for name, value in record.headers
        ]
        return facts | {"key": _content(record.key), "value": _content(record.value), "headers": headers}
    typed = decode_record(topic, record.key, record.value)
    if isinstance(typed, TopicRecord):
        named = typed.value if typed.key is None else typed.key
        facts |= {"type": named.INFO.name if named else None, "version": typed.version}
        return facts | {"key": _message(typed.key, 0), "value": _message(typed.value, typed.version)}
    return facts | {"type": typed.record_type, "key": _content(typed.key), "value": _content(typed.value)}


def _message(message: Message | None, version: int | None) -> Any:
    return None if message is None else message.to_json(message.INFO.versions.lowest if version is None else version)


def _content(data: Payload | None) -> Any:
    if data is None:
        return None
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError:
        return {"hex": data.hex()}


def _facts(entry: Any) -> dict[str, Any]:
    """The fields of an entry of any kind by their names, as the JSON of messages writes names."""
    if hasattr(entry, "_asdict"):
        facts = entry._asdict()
    else:
        facts = {field.name: getattr(entry, field.name) for field in attrs.fields(type(entry))}
    return {
        _camel(name): str(value) if isinstance(value, UUID) else value
        for name, value in facts.items()
        if name != "unknown_tagged_fields"
    }


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))
