"""The frames around snappy, lz4 and zstd data: their sizes, without decompression.

``compression`` needs these facts before it starts a codec: the blocks of framed snappy data, an upper bound of the
decompressed size of an lz4 or zstd frame, and the check byte in the header of an lz4 frame. This module does not
decompress. The codec checks the rest of a frame. The sources are the lz4 frame format, RFC 8878 (zstd) and KIP-57 (the
check byte).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from typing import Any, Final

__all__ = [
    "FrameError",
    "lz4_bound",
    "lz4_with_old_check",
    "lz4_with_right_check",
    "snappy_blocks",
    "snappy_framed",
    "snappy_size",
    "zstd_bound_and_window",
    "zstd_room",
]

_SNAPPY_HEADER: Final = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)
_SNAPPY_MAGIC: Final = _SNAPPY_HEADER[:8]
_SNAPPY_BLOCK: Final = 32 << 10
_SNAPPY_RATIO: Final = 64
"""The maximum expansion of a snappy block: a copy of 64 bytes takes at least two bytes."""
_SNAPPY_EMPTY: Final = re.compile(rb"(?:\x00\x00\x00\x01\x00)++")
"""Consecutive empty blocks: the length of the block, 1, and the size of its content, 0."""

_LZ4_MAGIC: Final = bytes.fromhex("04224d18")
_LZ4_RATIO: Final = 256
"""The maximum expansion of an lz4 block: each byte of a length adds at most 255 bytes."""

_ZSTD_MAGIC: Final = 0xFD2FB528
_ZSTD_SKIPPABLE: Final = 0x184D2A5
_ZSTD_BLOCK: Final = 128 << 10
_ZSTD_FREE_WINDOW: Final = 4 << 20


class FrameError(Exception):
    """A frame that its codec never writes. The text gives the reason."""


def snappy_blocks(data: memoryview) -> Iterator[memoryview]:
    """Yield the raw blocks of framed snappy data. Data without a frame is one block.

    Another frame with a separate header may follow. Any number of consecutive empty blocks is skipped in one step.
    """
    if data[:8] != _SNAPPY_MAGIC:
        yield data
        return
    at = 0
    while at < len(data):
        if data[at : at + 8] == _SNAPPY_MAGIC:
            at += len(_SNAPPY_HEADER)
            continue
        if empty := _SNAPPY_EMPTY.match(data, at):
            at = empty.end()
            continue
        size = int.from_bytes(data[at : at + 4], "big")
        at += 4
        if size > len(data) - at:
            raise FrameError(f"a block needs {size} bytes, {max(len(data) - at, 0)} left")
        yield data[at : at + size]
        at += size
    if at > len(data):
        raise FrameError("it ends in a header")


def snappy_size(block: memoryview) -> int:
    """Return the content size in a raw snappy block. Raises ``FrameError`` if the block cannot hold that size."""
    size = 0
    for index, byte in enumerate(block[:5]):
        size |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            if size > _SNAPPY_RATIO * len(block):
                raise FrameError(f"a block of {len(block)} bytes cannot hold {size}")
            return size
    raise FrameError("a block has no size")


def snappy_framed(data: memoryview, work: Callable[[memoryview], Any]) -> bytes:
    """Return ``data`` as framed snappy, in blocks of the same size as Kafka's."""
    parts = [_SNAPPY_HEADER]
    for at in range(0, len(data), _SNAPPY_BLOCK):
        block = bytes(work(data[at : at + _SNAPPY_BLOCK]))
        parts += (len(block).to_bytes(4, "big"), block)
    return b"".join(parts)


def _lz4_header(data: memoryview | bytes) -> tuple[int, int]:
    """Return the maximum block size, and the position of the check byte."""
    if data[:4] != _LZ4_MAGIC or len(data) < 7:
        raise FrameError("it does not start as a frame does")
    flags, code = data[4], data[5] >> 4 & 7
    if code < 4:
        raise FrameError(f"there is no block size {code}")
    return 1 << 8 + 2 * code, 6 + (8 if flags & 8 else 0) + (4 if flags & 1 else 0)


def lz4_bound(data: memoryview) -> int:
    """Return an upper bound of the decompressed size of the frames in ``data``, in bytes."""
    total = at = 0
    while at < len(data):
        if at + 8 <= len(data) and int.from_bytes(data[at : at + 4], "little") >> 4 == _ZSTD_SKIPPABLE:
            at += 8 + int.from_bytes(data[at + 4 : at + 8], "little")
            continue
        bound, used = _lz4_frame_bound(data[at:])
        total += bound
        at += used
    return total


def _lz4_frame_bound(data: memoryview) -> tuple[int, int]:
    largest, check = _lz4_header(data)
    flags, total, at = data[4], 0, check + 1
    while size := int.from_bytes(data[at : at + 4], "little") & 0x7FFFFFFF:
        total += min(largest, _LZ4_RATIO * min(size, len(data)) + 64)
        at += 4 + size + (4 if flags & 0x10 else 0)
    return total, at + 4 + (4 if flags & 4 else 0)


def lz4_with_right_check(data: memoryview) -> bytes:
    """Return a frame with the check byte that lz4 defines."""
    _, check = _lz4_header(data)
    return _with_check(bytes(data), check, 4)


def lz4_with_old_check(data: bytes) -> bytes:
    """Return a frame with the check byte of magic 0, whose writers included the frame magic in the checksum."""
    _, check = _lz4_header(data)
    return _with_check(data, check, 0)


def _with_check(data: bytes, check: int, start: int) -> bytes:
    if check >= len(data):
        raise FrameError("it ends in the header")
    return data[:check] + bytes([_short_xxh32(data[start:check]) >> 8 & 0xFF]) + data[check + 1 :]


_P1: Final = 2654435761
_P2: Final = 2246822519
_P3: Final = 3266489917
_P4: Final = 668265263
_P5: Final = 374761393
_MASK: Final = 0xFFFFFFFF


def _rotate(value: int, by: int) -> int:
    return (value << by | value >> 32 - by) & _MASK


def _short_xxh32(data: bytes) -> int:
    """Return the xxHash32, with seed 0, of fewer than 16 bytes. A header never has more."""
    at, total = 0, _P5 + len(data)
    while at + 4 <= len(data):
        total = _rotate((total + int.from_bytes(data[at : at + 4], "little") * _P3) & _MASK, 17) * _P4 & _MASK
        at += 4
    for byte in data[at:]:
        total = _rotate((total + byte * _P5) & _MASK, 11) * _P1 & _MASK
    total = (total ^ total >> 15) * _P2 & _MASK
    total = (total ^ total >> 13) * _P3 & _MASK
    return total ^ total >> 16


def zstd_bound_and_window(data: memoryview) -> tuple[int, int]:
    """Return an upper bound of the decompressed size of the frames in ``data``, and their largest window, in bytes."""
    total = at = window = 0
    while at < len(data):
        magic = int.from_bytes(data[at : at + 4], "little")
        if magic >> 4 == _ZSTD_SKIPPABLE:
            at += 8 + int.from_bytes(data[at + 4 : at + 8], "little")
            continue
        if magic != _ZSTD_MAGIC or at + 6 > len(data):
            raise FrameError("it does not start as a frame does")
        size, used = _zstd_blocks(data[at:])
        window = max(window, _zstd_window(data[at:]))
        total += size
        at += used
    return total, window


def _zstd_window(data: memoryview) -> int:
    if data[4] & 0x20:
        return 0
    base: int = 1 << 10 + (data[5] >> 3)
    return base + base // 8 * (data[5] & 7)


def _zstd_blocks(data: memoryview) -> tuple[int, int]:
    """Return an upper bound of the decompressed size of a frame, and the size of the frame."""
    flags = data[4]
    single = flags & 0x20
    content_size = (1 if single else 0, 2, 4, 8)[flags >> 6]
    at = 5 + (0 if single else 1) + (0, 1, 2, 4)[flags & 3] + content_size
    total = last = 0
    while not last and at + 3 <= len(data):
        block = int.from_bytes(data[at : at + 3], "little")
        last, kind, size = block & 1, block >> 1 & 3, block >> 3
        total += _ZSTD_BLOCK if kind == 2 else min(size, _ZSTD_BLOCK)
        at += 3 + (1 if kind == 1 else size)
    return total, at + (4 if flags & 4 else 0)


def zstd_room(limit: int, window: int) -> int:
    """Return how many bytes of output fit into ``limit``, after the memory that the codec needs for its window."""
    return limit if window <= _ZSTD_FREE_WINDOW else max(limit - window, limit // 2)
