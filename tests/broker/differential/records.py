"""Record batches built from a command's description, intact or damaged, and shown field by field."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, Final
from zlib import crc32

from crc32c import crc32c

from kafka_msgs.records import BatchBuilder, BatchHeader, CompressionType, MessageSetBuilder

__all__ = ["DAMAGE", "HEADER", "batches", "shown"]

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
"""The header of a batch of magic 2."""
_FIELDS: Final = (
    "baseOffset", "length", "leaderEpoch", "magic", "crc", "attributes", "lastOffsetDelta",
    "baseTimestamp", "maxTimestamp", "producerId", "producerEpoch", "baseSequence", "count",
)  # fmt: skip
_MAGIC_AT: Final = 16
_CRC_FROM: Final = 21
_LEGACY_MAGIC_AT: Final = 16


def batches(spec: Mapping[str, Any]) -> bytes:
    """Return the content of a request's field ``records``.

    ``values``, ``keyed``, ``codec``, ``magic``, ``timestamp``, ``producer`` (id, epoch, sequence), ``transactional``
    and ``control`` describe a batch; ``damage`` names its fault; ``edit`` sets header fields and attribute bits.
    """
    data = _whole(spec)
    if "edit" in spec and spec.get("magic", 2) == 2:
        data = _edited(data, spec["edit"])
    return DAMAGE[spec.get("damage", "none")](data)


def _whole(spec: Mapping[str, Any]) -> bytes:
    codec, magic = CompressionType[spec.get("codec", "NONE")], spec.get("magic", 2)
    keys = [b"k%d" % (each % 3) if spec.get("keyed", True) else None for each in range(spec["values"])]
    value = b"v" * spec.get("size", 5)
    if magic < 2:
        old = MessageSetBuilder(magic=magic, codec=codec)
        for key in keys:
            old.append(key, value, timestamp=spec["timestamp"] if magic else -1)
        return old.build()
    producer = spec.get("producer", (-1, -1, -1))
    header = BatchHeader(
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=producer[2],
        transactional=spec.get("transactional", False) and producer[0] >= 0,
    )
    builder = BatchBuilder(header, codec=codec)
    for number, key in enumerate(keys):
        builder.append(key, value, timestamp=spec["timestamp"] + number, headers=[("h", b"1")] if number == 1 else ())
    return builder.build()


def _edited(data: bytes, changes: Mapping[str, int]) -> bytes:
    """Set header fields, and recompute the checksum."""
    before: dict[str, Any] = dict(zip(_FIELDS, HEADER.unpack_from(data), strict=True))
    fields = before | dict(changes) | {"attributes": before["attributes"] | changes.get("attributes", 0)}
    whole = bytearray(HEADER.pack(*fields.values()) + data[HEADER.size :])
    struct.pack_into(">I", whole, _CRC_FROM - 4, changes.get("crc", crc32c(bytes(whole[_CRC_FROM:]))))
    return bytes(whole)


def _with(at: int, value: int) -> Callable[[bytes], bytes]:
    return lambda data: data[:at] + bytes([value]) + data[at + 1 :] if len(data) > at else data


DAMAGE: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "none": lambda data: data,
    "empty": lambda data: b"",
    "cut": lambda data: data[:-1],
    "header only": lambda data: data[:40],
    "twice": lambda data: data + data,
    "tail": lambda data: data + data[:30],
    "crc": lambda data: data[:-1] + b"\0",
    "magic 3": _with(_MAGIC_AT, 3),
    "magic -1": _with(_MAGIC_AT, 255),
    "length 0": lambda data: data[:8] + bytes(4) + data[12:],
    "length -1": lambda data: data[:8] + b"\xff" * 4 + data[12:],
    "long": lambda data: data[:8] + b"\x7f" * 4 + data[12:],
}
"""Ways to damage a batch, by name."""


def shown(data: bytes) -> list[dict[str, Any]]:
    """Return batches as dictionaries of fields, with hexadecimal records and the checksum as a boolean.

    The boolean is True for a valid checksum. Bytes after the last complete batch are omitted, because a broker may cut
    them anywhere.
    """
    found, at = [], 0
    while at + 17 <= len(data):
        end = at + 12 + struct.unpack_from(">i", data, at + 8)[0]
        if end > len(data):
            break
        batch = data[at:end]
        found.append(_shown_batch(batch) if batch[_MAGIC_AT] == 2 else _shown_message(batch))
        at = end
    return found


def _shown_batch(batch: bytes) -> dict[str, Any]:
    fields: dict[str, Any] = dict(zip(_FIELDS, HEADER.unpack_from(batch), strict=True))
    fields["crc"] = fields["crc"] == crc32c(batch[_CRC_FROM:])
    return fields | {"content": batch[HEADER.size :].hex()}


def _shown_message(batch: bytes) -> dict[str, Any]:
    offset, length, crc = struct.unpack_from(">qiI", batch)
    right = crc == crc32(batch[_LEGACY_MAGIC_AT:])
    return {"baseOffset": offset, "length": length, "crc": right, "content": batch[_LEGACY_MAGIC_AT:].hex()}
