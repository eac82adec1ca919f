"""The metadata that Kafka Streams writes with committed offsets, which contains the partition time.

This module decodes it. Brokers store the text unchanged. Kafka's classes are ``TopicPartitionMetadata`` and
``ProcessorMetadata`` in ``org.apache.kafka.streams.processor.internals``.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Mapping
from struct import Struct
from struct import error as struct_error
from typing import Final

from attrs import field, frozen

__all__ = ["StreamsMetadata", "decode_streams_metadata"]

_HEAD: Final = Struct(">bq")
"""The version, and the partition time."""
_INT: Final = Struct(">i")
_LONG: Final = Struct(">q")
_NO_TIME: Final = -1


@frozen(kw_only=True)
class StreamsMetadata:
    """The metadata of an offset that a Kafka Streams application has committed.

    ``partition_time`` is the largest timestamp that it has seen in the partition, in milliseconds since the epoch. It
    is None before the first record. ``processors`` maps the key of each processor to its stored number.
    """

    version: int
    partition_time: int | None
    processors: Mapping[str, int] = field(factory=dict)


def decode_streams_metadata(text: str | None) -> StreamsMetadata | None:
    """Return the metadata of a Streams application, or None for any other text.

    Kafka reads the valid prefix of a damaged text. This function returns None for it, so that the text of another
    application is not interpreted as a time.
    """
    if not text:
        return None
    try:
        data = b64decode(text, validate=True)
        version, time = _HEAD.unpack_from(data)
        read = _READERS[version]
        processors = read(data[_HEAD.size :])
    except (binascii.Error, struct_error, ValueError, LookupError):
        return None
    return StreamsMetadata(version=version, partition_time=None if time == _NO_TIME else time, processors=processors)


def _nothing(data: bytes) -> dict[str, int]:
    if data:
        raise ValueError("bytes are left over")
    return {}


def _processors(data: bytes) -> dict[str, int]:
    """Return the numbers of processors. The format is a count, then the key size, key and number of each one."""
    if not data:
        return {}
    found, at = {}, _INT.size
    for _ in range(_size(data, 0)):
        start = at + _INT.size
        end = start + _size(data, at)
        found[data[start:end].decode()] = _LONG.unpack_from(data, end)[0]
        at = end + _LONG.size
    if at != len(data):
        raise ValueError("the numbers do not end where the bytes end")
    return found


def _size(data: bytes, at: int) -> int:
    size = int(_INT.unpack_from(data, at)[0])
    if size < 0:
        raise ValueError("a size is negative")
    return size


_READERS: Final = {1: _nothing, 2: _processors}
"""The readers of the remaining bytes, by version. Version 2 adds the processor metadata."""
