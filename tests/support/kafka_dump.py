"""A reading of a batch file in the format of Kafka's ``DumpLogSegments``, for line-by-line comparison."""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

from kafka_msgs import RemoteLogSegmentMetadataRecord, RemoteLogSegmentMetadataUpdateRecord
from kafka_msgs.broker.transactions import TransactionState
from kafka_msgs.internal_topics.consumer_protocol import consumer_members
from kafka_msgs.internal_topics.records import TopicRecord, decode_record
from kafka_msgs.log.file_scan import read_log
from kafka_msgs.log.indexes import read_aborted_transactions, read_offset_index, read_time_index
from kafka_msgs.log.small_files import read_producer_snapshot
from kafka_msgs.message import Message
from kafka_msgs.messages.group_metadata_value import GroupMetadataValue
from kafka_msgs.messages.transaction_log_value import TransactionLogValue
from kafka_msgs.records import CompressionType, ControlRecord, ControlType, Record, RecordBatch, TimestampType

__all__ = ["dumped", "dumped_file", "sections", "sections_of"]

_STATES = ("COPY_SEGMENT_STARTED", "COPY_SEGMENT_FINISHED", "DELETE_SEGMENT_STARTED", "DELETE_SEGMENT_FINISHED")
_JSON = re.compile(r'\{(".*)?\}')
_STATUS_NUMBER = re.compile(r'"transactionStatus": ?(\d)')
_CONTROL = {
    ControlType.LEADER_CHANGE: "LeaderChange: ",
    ControlType.SNAPSHOT_HEADER: "SnapshotHeader ",
    ControlType.SNAPSHOT_FOOTER: "SnapshotFooter ",
    ControlType.KRAFT_VERSION: "KRaftVersion ",
    ControlType.KRAFT_VOTERS: "KRaftVoters ",
}


def sections(directory: Path) -> dict[str, list[str]]:
    """Return Kafka's output for each file of a recorded directory, with normalized JSON."""
    return sections_of((directory / "dump.txt").read_text())


def sections_of(text: str) -> dict[str, list[str]]:
    """Return Kafka's output for each file, with normalized JSON. Transaction statuses are names since 4.4."""
    text = _STATUS_NUMBER.sub(lambda match: f'"transactionStatus":"{TransactionState(int(match[1])).label}"', text)
    parts = re.split(r"^Dumping (.*)$", text, flags=re.MULTILINE)
    return {
        name: [_normal(line) for line in text.strip("\n").split("\n") if line]
        for name, text in zip(parts[1::2], parts[2::2], strict=True)
    }


def _normal(line: str) -> str:
    """Sort the members of the JSON in a line, whose order has no meaning. Other braces stay."""
    head, brace, rest = line.partition(" payload: {")
    try:
        if brace:
            return _normal(head) + " payload: " + _text(json.loads("{" + rest))
        return _JSON.sub(lambda match: _text(json.loads(match[0])), line)
    except ValueError:
        return line


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def dumped(path: Path) -> Iterator[str]:
    """Yield the lines for the batches of a file and their records."""
    topic = "__cluster_metadata" if path.name == "bootstrap.checkpoint" else path.parent.name.rpartition("-")[0]
    for batch in read_log(path):
        assert isinstance(batch, RecordBatch)
        yield _batch(batch)
        control = batch.control_records()
        for index, record in enumerate(batch):
            said = _control(control[index]) if control else _content(topic, record)
            yield _normal(f"{_record(batch, record)} {said}".rstrip())


def dumped_file(path: Path) -> list[str]:
    """Return the lines for any file that the tool reads."""
    return list(_READERS.get(path.suffix, dumped)(path))


def _index(path: Path) -> Iterator[str]:
    return (f"offset: {entry.offset} position: {entry.position}" for entry in read_offset_index(path))


def _time_index(path: Path) -> Iterator[str]:
    return (f"timestamp: {entry.timestamp} offset: {entry.offset}" for entry in read_time_index(path))


def _transaction_index(path: Path) -> Iterator[str]:
    for entry in read_aborted_transactions(path):
        yield (
            f"version: {entry.version} producerId: {entry.producer_id} firstOffset: {entry.first_offset} "
            f"lastOffset: {entry.last_offset} lastStableOffset: {entry.last_stable_offset}"
        )


def _producers(path: Path) -> Iterator[str]:
    for entry in read_producer_snapshot(path).producer_entries:
        first = ".empty" if entry.current_txn_first_offset < 0 else f"[{entry.current_txn_first_offset}]"
        line = (
            f"producerId: {entry.producer_id} producerEpoch: {entry.epoch} coordinatorEpoch: {entry.coordinator_epoch} "
            f"currentTxnFirstOffset: OptionalLong{first} lastTimestamp: {entry.timestamp}"
        )
        if entry.last_offset >= 0:
            line += (
                f" firstSequence: {entry.last_sequence - entry.offset_delta} lastSequence: {entry.last_sequence} "
                f"lastOffset: {entry.last_offset} offsetDelta: {entry.offset_delta} timestamp: {entry.timestamp}"
            )
        yield line


_READERS = {".index": _index, ".timeindex": _time_index, ".txnindex": _transaction_index, ".snapshot": _producers}


def _flag(value: bool) -> str:
    return str(value).lower()


def _time(batch: RecordBatch, timestamp: int) -> str:
    kind = "LogAppendTime" if batch.timestamp_type is TimestampType.LOG_APPEND_TIME else "CreateTime"
    return f"{kind}: {timestamp}"


def _batch(batch: RecordBatch) -> str:
    horizon = "OptionalLong.empty" if batch.delete_horizon is None else f"OptionalLong[{batch.delete_horizon}]"
    return (
        f"baseOffset: {batch.base_offset} lastOffset: {batch.last_offset} count: {batch.count} "
        f"baseSequence: {batch.base_sequence} lastSequence: {batch.last_sequence} producerId: {batch.producer_id} "
        f"producerEpoch: {batch.producer_epoch} partitionLeaderEpoch: {batch.partition_leader_epoch} "
        f"isTransactional: {_flag(batch.is_transactional)} isControl: {_flag(batch.is_control)} "
        f"deleteHorizonMs: {horizon} position: {batch.position} {_time(batch, batch.max_timestamp)} "
        f"size: {batch.size} magic: {batch.magic} compresscodec: {CompressionType(batch.codec).name.lower()} "
        f"crc: {batch.crc} isvalid: {_flag(batch.computed_crc() == batch.crc)}"
    )


def _record(batch: RecordBatch, record: Record) -> str:
    sizes = [-1 if content is None else len(content) for content in (record.key, record.value)]
    sequence = -1 if batch.base_sequence < 0 else batch.base_sequence + record.offset - batch.base_offset
    names = ",".join(name for name, _ in record.headers)
    return (
        f"| offset: {record.offset} {_time(batch, record.timestamp)} keySize: {sizes[0]} valueSize: {sizes[1]} "
        f"sequence: {sequence} headerKeys: [{names}]"
    )


def _control(record: ControlRecord) -> str:
    assert isinstance(record.type, ControlType)
    assert record.message is not None
    if record.type in (ControlType.ABORT, ControlType.COMMIT):
        return f"endTxnMarker: {record.type.name} coordinatorEpoch: {record.message.coordinator_epoch}"  # type: ignore[attr-defined]
    return _CONTROL[record.type] + _text(record.message.to_json(0))


def _content(topic: str, record: Record) -> str:
    key, value = (None if content is None else bytes(content) for content in (record.key, record.value))
    if topic.startswith("__"):
        typed = decode_record(topic, key, value)
        assert isinstance(typed, TopicRecord)
        return _typed(typed)
    said = [] if key is None else [f"key: {key.decode(errors='replace')}"]
    return " ".join(said if value is None else [*said, f"payload: {value.decode(errors='replace')}"])


def _typed(record: TopicRecord) -> str:
    if isinstance(record.value, (RemoteLogSegmentMetadataRecord, RemoteLogSegmentMetadataUpdateRecord)):
        return f"payload: {_remote(record.value)}"
    if record.key is None:
        assert record.value is not None
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", record.value.INFO.name).upper()
        return "payload: " + _text({"type": name, **_versioned(record.value, record.version)})
    key = _text({"type": str(record.key.INFO.api_key), "data": record.key.to_json(0)})
    if record.value is None:
        return f"key: {key} payload: <DELETE>"
    versioned = _versioned(record.value, record.version)
    return f"key: {key} payload: {_text({**versioned, 'version': str(record.version)})}"


def _remote(segment: RemoteLogSegmentMetadataRecord | RemoteLogSegmentMetadataUpdateRecord) -> str:
    """Return the descriptions by the storage's own classes, which are all that Kafka prints for these topics."""
    place = segment.remote_log_segment_id.topic_id_partition
    identity = (
        f"remoteLogSegmentId=RemoteLogSegmentId{{topicIdPartition={_id(place.id)}:{place.name}-{place.partition}, "
        f"id={_id(segment.remote_log_segment_id.id)}}}"
    )
    custom = segment.custom_metadata
    custom_text = "Optional.empty" if custom is None else f"Optional[CustomMetadata{{{len(custom)} bytes}}]"
    state = _STATES[segment.remote_log_segment_state]
    if isinstance(segment, RemoteLogSegmentMetadataUpdateRecord):
        return (
            f"RemoteLogSegmentMetadataUpdate{{{identity}, customMetadata={custom_text}, state={state}, "
            f"eventTimestampMs={segment.event_timestamp_ms}, brokerId={segment.broker_id}}}"
        )
    epochs = ", ".join(f"{each.leader_epoch}={each.offset}" for each in segment.segment_leader_epochs)
    return (
        f"RemoteLogSegmentMetadata{{{identity}, startOffset={segment.start_offset}, endOffset={segment.end_offset}, "
        f"brokerId={segment.broker_id}, maxTimestampMs={segment.max_timestamp_ms}, "
        f"eventTimestampMs={segment.event_timestamp_ms}, segmentLeaderEpochs={{{epochs}}}, "
        f"segmentSizeInBytes={segment.segment_size_in_bytes}, customMetadata={custom_text}, state={state}, "
        f"txnIdxEmpty={_flag(segment.txn_index_empty)}}}"
    )


def _id(value: UUID) -> str:
    return urlsafe_b64encode(value.bytes).decode().rstrip("=")


def _versioned(value: Message, version: int | None) -> dict[str, Any]:
    assert version is not None
    data = value.to_json(version)
    if isinstance(value, GroupMetadataValue) and value.protocol_type == "consumer":
        for member, opened in zip(data["members"], consumer_members(value), strict=True):
            for name, embedded in (("subscription", opened.subscription), ("assignment", opened.assignment)):
                assert embedded.message is not None
                assert embedded.version is not None
                member[name] = embedded.message.to_json(embedded.version)
    if isinstance(value, TransactionLogValue):
        data["transactionStatus"] = TransactionState(value.transaction_status).label
    return {"version": version, "data": data}
