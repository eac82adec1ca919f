"""What Kafka Streams writes as the metadata of a committed offset: how far the time of the partition has come.

This module decodes it. A broker stores the text without a change. In Kafka these are the classes
``TopicPartitionMetadata`` and ``ProcessorMetadata`` in ``org.apache.kafka.streams.processor.internals``.
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
    is None before the first record. ``processors`` has the number that each processor keeps, by its key.
    """

    version: int
    partition_time: int | None
    processors: Mapping[str, int] = field(factory=dict)


def decode_streams_metadata(text: str | None) -> StreamsMetadata | None:
    """Return what a Streams application wrote as metadata; None for a text that is not that.

    Kafka reads a damaged text as far as it can. Here it is None as a whole, so that another application's text is not
    taken for a time.
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
    """Return the numbers of processors: how many there are, and of each the size of its key, the key and the number."""
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
"""The readers of what follows, by version. The second version has what processors keep, too."""
