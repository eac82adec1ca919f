"""Reads the segment files of a broker's log directory, to the extent that the recorder of internal topics needs.

Supports uncompressed batches of the newest format, the only kind that a broker writes to these topics. It checks
nothing: the recorder's own broker has just written the file.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

__all__ = ["read_partition"]

_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_LENGTH_AT: Final = 12
_NO_PRODUCER: Final = -1
_TRANSACTIONAL: Final = 0x10
_CONTROL: Final = 0x20
_MARKERS: Final = {0: "abort", 1: "commit"}


def read_partition(directory: Path) -> Iterator[dict[str, Any]]:
    """Return a partition's records and end markers of transactions, as lines of the recording."""
    for segment in sorted(directory.glob("*.log")):
        data = segment.read_bytes()
        position = 0
        while position + _HEADER.size <= len(data):
            size = int.from_bytes(data[position + 8 : position + _LENGTH_AT], "big")
            if size == 0:
                break
            yield from _batch(data[position : position + _LENGTH_AT + size])
            position += _LENGTH_AT + size


def _batch(batch: bytes) -> Iterator[dict[str, Any]]:
    base, _, _, _, _, attributes, _, timestamp, _, producer_id, _, _, count = _HEADER.unpack_from(batch)
    position = _HEADER.size
    for _ in range(count):
        size, start = _varint(batch, position)
        position = start + size
        timestamp_delta, at = _varint(batch, start + 1)
        offset_delta, at = _varint(batch, at)
        key, at = _bytes(batch, at)
        value, at = _bytes(batch, at)
        line: dict[str, Any] = {"offset": base + offset_delta, "timestamp": timestamp + timestamp_delta}
        if attributes & _TRANSACTIONAL:
            line["producer_id"] = producer_id
        if not attributes & _CONTROL:
            yield {**line, "key": key and key.hex(), "value": None if value is None else value.hex()}
        elif producer_id != _NO_PRODUCER and key is not None:
            yield {**line, "marker": _MARKERS[int.from_bytes(key[2:4], "big")]}


def _varint(data: bytes, at: int) -> tuple[int, int]:
    raw = shift = 0
    while True:
        byte = data[at]
        at += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (raw >> 1) ^ -(raw & 1), at
        shift += 7


def _bytes(data: bytes, at: int) -> tuple[bytes | None, int]:
    size, at = _varint(data, at)
    return (None, at) if size < 0 else (data[at : at + size], at + size)
