"""Control records: the records that Kafka itself writes to a log, between the records of clients.

This module owns the key, which names the type, and the message class of each type. In a transaction marker a version
comes before the message (KIP-98). In the other types the first field of the message is the version (KIP-595, KIP-630,
KIP-853). Kafka's class is ``org.apache.kafka.common.record.internal.ControlRecordType``.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cache
from struct import Struct
from typing import Final

from attrs import frozen

from kafka_msgs import messages
from kafka_msgs.errors import CorruptRecordError
from kafka_msgs.message import Message
from kafka_msgs.records.record import Record
from kafka_msgs.versioned import decode_versioned, encode_versioned

__all__ = ["ControlRecord", "ControlType", "control_content", "read_control"]

_KEY: Final = Struct(">hh")


class ControlType(IntEnum):
    """The type of a control record (``org.apache.kafka.common.record.internal.ControlRecordType``)."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


_MESSAGES: Final = {
    ControlType.ABORT: "EndTxnMarker",
    ControlType.COMMIT: "EndTxnMarker",
    ControlType.LEADER_CHANGE: "LeaderChangeMessage",
    ControlType.SNAPSHOT_HEADER: "SnapshotHeaderRecord",
    ControlType.SNAPSHOT_FOOTER: "SnapshotFooterRecord",
    ControlType.KRAFT_VERSION: "KRaftVersionRecord",
    ControlType.KRAFT_VOTERS: "VotersRecord",
}
_VERSION_IN_FRONT: Final = frozenset({ControlType.ABORT, ControlType.COMMIT})


@frozen
class ControlRecord:
    """A control record: its offset, its type, and its message.

    ``type`` is a ``ControlType``, or a plain number for an unknown type. For unknown types, ``message`` is None and
    ``value`` contains the bytes. ``timestamp`` is in milliseconds since the epoch.
    """

    offset: int
    timestamp: int
    type: ControlType | int
    message: Message | None
    value: bytes | None


@cache
def _class_of(kind: ControlType) -> type[Message]:
    cls: type[Message] = getattr(messages, _MESSAGES[kind])
    return cls


def read_control(record: Record, position: int, base_offset: int) -> ControlRecord:
    """Return the control record in a record of a control batch.

    ``position`` and ``base_offset`` of the batch are for the error. As in Kafka, a newer version is read as the newest
    known one, and bytes after the message are ignored. Raises ``CorruptRecordError``.
    """
    key = bytes(record.key or b"")
    value = None if record.value is None else bytes(record.value)
    try:
        kind = _kind(key)
        message = None if not isinstance(kind, ControlType) else _message(kind, value)
    except ValueError as fault:
        index = record.offset - base_offset
        reason = f"control record at offset {record.offset}: {fault}"
        raise CorruptRecordError(
            position=position, offset=base_offset, at=position, index=index, compressed=False, reason=reason
        ) from None
    return ControlRecord(record.offset, record.timestamp, kind, message, value)


def _kind(key: bytes) -> ControlType | int:
    if len(key) < _KEY.size:
        raise ValueError(f"a key of {len(key)} bytes; the type needs {_KEY.size}")
    version, number = _KEY.unpack_from(key)
    if version < 0:
        raise ValueError(f"the key has the version {version}")
    return ControlType(number) if number in ControlType._value2member_map_ else int(number)


def _message(kind: ControlType, value: bytes | None) -> Message:
    if value is None or len(value) < 2:
        raise ValueError(f"{kind.name} needs a value that starts with a version")
    cls = _class_of(kind)
    if kind in _VERSION_IN_FRONT:
        return decode_versioned(cls, value, newer="clamp").message
    stated = int.from_bytes(value[:2], "big", signed=True)
    return cls.read(value, min(stated, cls.INFO.versions.highest))[0]


def control_content(kind: ControlType, message: Message, version: int = 0) -> tuple[bytes, bytes]:
    """Return the key and the value of a control record.

    Raises ``TypeError`` for a message of another type, and what ``Message.encode`` raises.
    """
    cls = _class_of(kind)
    if not isinstance(message, cls):
        raise TypeError(f"{kind.name} holds a {cls.__name__}, not a {type(message).__name__}")
    value = encode_versioned(message, version) if kind in _VERSION_IN_FRONT else message.encode(version)
    return _KEY.pack(0, kind), value
