"""The records of Kafka's internal topics as typed messages, decoded and encoded.

This module owns the mapping of topics to messages, and the two record formats: coordinator keys and values, and the
frames of the metadata topics. Record types come from the index of the generated messages, so generating the messages
from a new release adds its types. ``replay`` builds the state from the records. ``batch_decoding`` extracts records and
control records from batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NamedTuple, NoReturn, TypeAlias

from attrs import frozen

from kafka_msgs.catalog import message_class
from kafka_msgs.codec import Buffer, codec_for
from kafka_msgs.codec.codec import Codec
from kafka_msgs.codec.options import buffer_bytes
from kafka_msgs.errors import (
    DecodeError,
    EncodeError,
    InvalidVarintError,
    TruncatedError,
    UnexpectedNullError,
    UnknownInternalTopicError,
    UnknownMessageError,
    UnsupportedVersionError,
)
from kafka_msgs.message import Message
from kafka_msgs.primitives import read_uvarint, write_uvarint
from kafka_msgs.schema import Kind
from kafka_msgs.versioned import decode_versioned, encode_versioned
from kafka_msgs.versions import VersionRange

__all__ = [
    "NO_PRODUCER",
    "TOPICS",
    "InternalRecord",
    "InternalTopic",
    "KeyValue",
    "TopicRecord",
    "UnknownRecord",
    "decode_record",
    "encode_record",
    "internal_topic",
    "record_classes",
]

NO_PRODUCER: Final = -1
"""The producer id of a non-transactional record."""

_FRAME_VERSIONS: Final = VersionRange(1, 1)
_MAX_INT16: Final = 0x7FFF


@frozen(kw_only=True)
class InternalTopic:
    """An internal topic of Kafka: its ``name``, and the ``origin`` of its messages.

    In a ``framed`` topic the records do not have keys, and the value names its message. In the other topics the key
    names the message, and a record without a value deletes the entry of its key.
    """

    name: str
    origin: str
    framed: bool


TOPICS: Final[Mapping[str, InternalTopic]] = {
    topic.name: topic
    for topic in (
        InternalTopic(name="__consumer_offsets", origin="group-coordinator", framed=False),
        InternalTopic(name="__transaction_state", origin="transaction-coordinator", framed=False),
        InternalTopic(name="__share_group_state", origin="share-coordinator", framed=False),
        InternalTopic(name="__cluster_metadata", origin="metadata", framed=True),
        InternalTopic(name="__remote_log_metadata", origin="storage", framed=True),
    )
}
"""The internal topics by name."""


@frozen(kw_only=True)
class TopicRecord:
    """A record of an internal topic.

    ``key`` is None in a framed topic. ``value`` is None for a tombstone. ``version`` is the version of the value, and
    None for a tombstone. ``producer_id`` is the producer of the transaction that the record belongs to. It is
    ``NO_PRODUCER`` outside a transaction.
    """

    topic: str
    key: Message | None = None
    value: Message | None = None
    version: int | None = None
    producer_id: int = NO_PRODUCER


@frozen(kw_only=True)
class UnknownRecord:
    """A record of a type that this release does not support: the type number, and the bytes of key and value."""

    topic: str
    record_type: int
    key: bytes | None = None
    value: bytes | None = None
    producer_id: int = NO_PRODUCER


InternalRecord: TypeAlias = TopicRecord | UnknownRecord
"""A record of an internal topic: with typed key and value, or of an unknown type."""


class KeyValue(NamedTuple):
    """The bytes of a record."""

    key: bytes | None
    value: bytes | None


def internal_topic(name: str) -> InternalTopic:
    """Return the internal topic with this name. Raises ``UnknownInternalTopicError``."""
    topic = TOPICS.get(name)
    if topic is None:
        raise UnknownInternalTopicError(topic=name)
    return topic


def decode_record(
    topic: str, key: Buffer | None, value: Buffer | None, *, producer_id: int = NO_PRODUCER
) -> InternalRecord:
    """Decode the record with ``key`` and ``value`` in an internal topic.

    Returns an ``UnknownRecord`` for a type that this release does not support. Raises ``UnknownInternalTopicError``,
    ``DecodeError``, and ``UnsupportedVersionError`` for a value of a known type at an unknown version. Trailing bytes
    are an error.
    """
    place = internal_topic(topic)
    raw_key = key if key is None or type(key) is bytes else buffer_bytes(key)
    raw_value = value if value is None or type(value) is bytes else buffer_bytes(value)
    if place.framed:
        return _decode_frame(place, raw_key, raw_value, producer_id)
    if raw_key is not None and (known := _KNOWN.get((topic, raw_key[:2], raw_value and raw_value[:2]))) is not None:
        # Most records have one of a few types and versions, whose codecs are cached.
        typed_key = known.key.decode(raw_key, 2)
        message = None if raw_value is None or known.value is None else known.value.decode(raw_value, 2)
        return TopicRecord(topic=topic, key=typed_key, value=message, version=known.version, producer_id=producer_id)
    return _decode_keyed(place, raw_key, raw_value, producer_id)


def encode_record(record: InternalRecord) -> KeyValue:
    """Return the key and value of a record as Kafka writes them. The bytes of an ``UnknownRecord`` are unchanged.

    Raises ``UnknownInternalTopicError``, ``UnsupportedVersionError``, and ``EncodeError`` for messages that cannot be
    written, do not belong to the topic, or do not match each other.
    """
    place = internal_topic(record.topic)
    if isinstance(record, UnknownRecord):
        return KeyValue(record.key, record.value)
    return _encode_frame(place, record) if place.framed else _encode_keyed(place, record)


class _Codecs(NamedTuple):
    """The codecs of the records of one type and one version of the value."""

    key: Codec[Any]
    value: Codec[Any] | None
    version: int | None


_KNOWN: Final[dict[tuple[str, bytes, bytes | None], _Codecs]] = {}
"""The codecs used so far, by topic and the first two bytes of key and value."""


@cache
def _class(origin: str, kind: Kind, number: int) -> type[Message] | None:
    try:
        return message_class(number, kind, origin)
    except UnknownMessageError:
        return None


def record_classes(topic: InternalTopic, record_type: int) -> tuple[type[Message], type[Message]] | None:
    """Return the classes of the key and the value of a record type, or None for a type of another release.

    The topic has keys: it is not ``framed``.
    """
    key = _class(topic.origin, "coordinator-key", record_type)
    value = _class(topic.origin, "coordinator-value", record_type)
    return None if key is None or value is None else (key, value)


def _decode_keyed(topic: InternalTopic, key: bytes | None, value: bytes | None, producer_id: int) -> InternalRecord:
    if key is None:
        _fail(UnexpectedNullError, topic, "key", 0, "null, but the record type is in the key")
    if len(key) < 2:
        _fail(TruncatedError, topic, "key", 0, f"a record type needs 2 bytes, {len(key)} left")
    number = int.from_bytes(key[:2], "big", signed=True)
    classes = record_classes(topic, number)
    if classes is None:
        return UnknownRecord(topic=topic.name, record_type=number, key=key, value=value, producer_id=producer_id)
    key_class, value_class = classes
    typed_key = decode_versioned(key_class, key).message
    if value is None:
        _KNOWN[topic.name, key[:2], None] = _Codecs(codec_for(key_class, 0), None, None)
        return TopicRecord(topic=topic.name, key=typed_key, producer_id=producer_id)
    version, message = decode_versioned(value_class, value)
    codecs = _Codecs(codec_for(key_class, 0), codec_for(value_class, version), version)
    _KNOWN[topic.name, key[:2], value[:2]] = codecs
    return TopicRecord(topic=topic.name, key=typed_key, value=message, version=version, producer_id=producer_id)


def _decode_frame(topic: InternalTopic, key: bytes | None, value: bytes | None, producer_id: int) -> InternalRecord:
    if key is not None:
        _fail(DecodeError, topic, "key", 0, f"records of this topic have no key, this one has {len(key)} bytes")
    number, version, data, at = read_frame(topic, value)
    cls = _class(topic.origin, "metadata", number)
    if cls is None:
        return UnknownRecord(topic=topic.name, record_type=number, value=value, producer_id=producer_id)
    message = codec_for(cls, version).decode(data, at)
    return TopicRecord(topic=topic.name, value=message, version=version, producer_id=producer_id)


class Frame(NamedTuple):
    """The frame of a value in a framed topic: the record type, the version, and the message in ``data`` from ``at``."""

    record_type: int
    version: int
    data: bytes
    at: int


def read_frame(topic: InternalTopic, value: bytes | None) -> Frame:
    """Return the frame of a value in a framed topic. Raises ``DecodeError`` and ``UnsupportedVersionError``."""
    if value is None:
        _fail(UnexpectedNullError, topic, "value", 0, "null, but the value of a record of this topic has its type")
    frame_version, at = _read_int16(topic, "frame version", value, 0)
    if frame_version not in _FRAME_VERSIONS:
        frame = f"{topic.name} frame"
        raise UnsupportedVersionError(message=frame, version=frame_version, supported=_FRAME_VERSIONS)
    number, at = _read_int16(topic, "api key", value, at)
    version, at = _read_int16(topic, "version", value, at)
    return Frame(number, version, value, at)


def _read_int16(topic: InternalTopic, path: str, data: bytes, at: int) -> tuple[int, int]:
    try:
        number, end = read_uvarint(data, at)
    except IndexError:
        _fail(TruncatedError, topic, path, at, f"the bytes end within a varint, {len(data) - at} left")
    except ValueError as error:
        _fail(InvalidVarintError, topic, path, at, str(error))
    if number > _MAX_INT16:
        _fail(InvalidVarintError, topic, path, at, f"{number} is more than {_MAX_INT16}")
    return number, end


def _encode_keyed(topic: InternalTopic, record: TopicRecord) -> KeyValue:
    if record.key is None:
        _refuse(topic, record, "records of this topic have a key")
    number = record.key.INFO.api_key
    if number is None or type(record.key) is not _class(topic.origin, "coordinator-key", number):
        _refuse(topic, record, f"{record.key.INFO.name} is not a key of this topic")
    key = encode_versioned(record.key, 0)
    if record.value is None:
        return KeyValue(key, None)
    if type(record.value) is not _class(topic.origin, "coordinator-value", number):
        _refuse(topic, record, f"{record.value.INFO.name} is not a value of {record.key.INFO.name}")
    return KeyValue(key, encode_versioned(record.value, _version(topic, record)))


def _encode_frame(topic: InternalTopic, record: TopicRecord) -> KeyValue:
    if record.key is not None or record.value is None:
        _refuse(topic, record, "records of this topic have a value and no key")
    number, version = record.value.INFO.api_key, _version(topic, record)
    if number is None or type(record.value) is not _class(topic.origin, "metadata", number):
        _refuse(topic, record, f"{record.value.INFO.name} is not a message of this topic")
    data = record.value.encode(version)
    head = b"".join(write_uvarint(each) for each in (_FRAME_VERSIONS.highest, number, version))
    return KeyValue(None, head + data)


def _version(topic: InternalTopic, record: TopicRecord) -> int:
    if record.version is None:
        _refuse(topic, record, "the version of the value is missing")
    return record.version


def _fail(error: type[DecodeError], topic: InternalTopic, path: str, offset: int, reason: str) -> NoReturn:
    raise error(message=topic.name, version=None, path=path, offset=offset, reason=reason) from None


def _refuse(topic: InternalTopic, record: TopicRecord, reason: str) -> NoReturn:
    value: Any = record.key if record.value is None else record.value
    raise EncodeError(message=topic.name, version=record.version, path="", value=value, reason=reason)
