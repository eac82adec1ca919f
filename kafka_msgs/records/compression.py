"""Compression of records: the codecs, and the limit of the decompressed size.

This module handles the frame that Kafka adds around snappy blocks, and the wrong header byte of old lz4 writers
(KIP-57). gzip is zlib, or ISA-L if the package isal is installed (extra ``gzip``). The package cramjam provides the
other codecs (extra ``compression``). Every function that decompresses stops at its limit. ``batch`` and ``legacy``
select the compressed bytes of a batch, and add the position to the errors of this module. Kafka's codecs are in the
package ``org.apache.kafka.common.compress``.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from enum import IntEnum
from functools import cache
from io import BytesIO
from typing import Any, Final

from kafka_msgs.errors import CompressionError, DecompressedSizeError, MissingExtraError, RecordWriteError, shown
from kafka_msgs.records import compression_framing as framing

__all__ = ["CompressionType", "check_level", "compress", "decompress"]

Data = bytes | bytearray | memoryview
"""The types that can be compressed."""

_GZIP_WBITS: Final = 31
_GZIP_FASTEST: Final = 1
_GZIP_FLAGS: Final = 3
_GZIP_RESERVED_FLAGS: Final = 0xE0
_STEP: Final = 1 << 20
"""The number of output bytes that zlib produces in one step."""
_SMALLEST_PIECE: Final = 1 << 7
_LARGEST_PIECE: Final = 1 << 16
"""The maximum number of input bytes that zlib receives in one step."""
_FULL: Final = "failed to write whole buffer"


class CompressionType(IntEnum):
    """The codec of a batch: the number in the three lowest bits of the attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


_LEVELS: Final = {
    CompressionType.GZIP: range(1, 10),
    CompressionType.LZ4: range(1, 18),
    CompressionType.ZSTD: range(-131072, 23),
}
"""The levels that Kafka's producer accepts."""
_DEFAULT_LEVELS: Final = {CompressionType.GZIP: -1, CompressionType.LZ4: 9, CompressionType.ZSTD: 3}
_LZ4_FAST: Final = 0
_LZ4_LEAST_HIGH: Final = 2
"""Levels of the lz4 library: of the fast compressor, and the lowest one of the high compression."""


class _TooLargeError(Exception):
    """The output is larger than the limit."""


class _MalformedError(Exception):
    """The input is damaged. The text gives the reason."""


@cache
def _cramjam() -> Any:
    try:
        import cramjam
    except ImportError:
        raise MissingExtraError(
            feature="compression with snappy, lz4 or zstd", extra="compression", package="cramjam"
        ) from None
    return cramjam


@cache
def _fast_zlib() -> Any:
    """Return ISA-L's module with zlib's interface, or else zlib."""
    try:
        from isal import isal_zlib
    except ImportError:
        return zlib
    return isal_zlib


def compress(codec: CompressionType, data: Data, level: int | None = None, *, magic: int = 2) -> bytes:
    """Return ``data`` as Kafka writes it with ``codec``.

    ``level`` is a level of Kafka's producer, see ``check_level``. None is the producer's default. With ``magic`` 0 the
    lz4 frame has the old header. Raises ``MissingExtraError`` and ``RecordWriteError``.
    """
    check_level(codec, level)
    return _COMPRESS[codec](data, _DEFAULT_LEVELS.get(codec, 0) if level is None else level, magic)


def check_level(codec: CompressionType, level: int | None) -> None:
    """Raise ``RecordWriteError`` for a level that Kafka's producer refuses for ``codec`` (KIP-390).

    gzip has the levels 1 to 9, and -1, which is the default and means 6 in zlib. lz4 has the levels 1 to 17. Its
    default, 9, uses the fast compressor. All other lz4 levels use high compression. zstd has the levels -131072 to 22,
    and the default 3. snappy does not have levels.
    """
    allowed, name = _LEVELS.get(codec, range(0)), codec.name.lower()
    if level is None or (type(level) is int and (level in allowed or level == _DEFAULT_LEVELS.get(codec))):
        return
    known = f"levels of {name} are {allowed[0]} to {allowed[-1]}" if allowed else f"{name} has no levels"
    raise RecordWriteError(field="level", value=level, reason=f"{shown(level)}: {known}")


def decompress(
    codec: int, data: memoryview, limit: int, *, magic: int = 2, position: int = 0, offset: int | None = None
) -> bytes:
    """Return the decompressed ``data``, of at most ``limit`` bytes.

    ``position`` and ``offset`` of the batch are for the errors. Raises ``CompressionError`` for damaged data and for an
    unknown codec, ``DecompressedSizeError`` if the result exceeds the limit, and ``MissingExtraError``. With ``magic``
    0 the check byte of an lz4 header may have any value.
    """
    work = _DECOMPRESS.get(codec)
    if work is None:
        reason = f"there is no codec {codec}"
        raise CompressionError(position=position, offset=offset, reason=reason, codec=codec)
    name = CompressionType(codec).name.lower()
    try:
        return work(data, limit, magic)
    except _TooLargeError:
        reason = f"{name} data of {len(data)} bytes becomes more than the limit of {limit}"
        raise DecompressedSizeError(position=position, offset=offset, reason=reason, codec=name, limit=limit) from None
    except (_MalformedError, framing.FrameError) as damage:
        reason = f"{name} data is damaged: {damage}"
        raise CompressionError(position=position, offset=offset, reason=reason, codec=name) from None


def _copy(data: memoryview, limit: int, magic: int) -> bytes:
    if len(data) > limit:
        raise _TooLargeError
    return bytes(data)


class _Output:
    """Bytes that are written part by part. The buffer never has more than ``limit`` bytes."""

    def __init__(self, limit: int) -> None:
        self._buffer = BytesIO()
        self._limit = limit
        self._room = 0
        self.size = 0

    def write(self, part: bytes) -> None:
        """Add a part; raises ``_TooLargeError``."""
        end = self.size + len(part)
        if end > self._limit:
            raise _TooLargeError
        if end > self._room:
            self._grow(end)
        self._buffer.write(part)
        self.size = end

    def _grow(self, needed: int) -> None:
        """Make room for ``needed`` bytes. The new size is the limit, halved as often as possible."""
        self._room = self._limit
        while self._room >> 1 >= needed:
            self._room >>= 1
        self._buffer.seek(self._room - 1)
        self._buffer.write(b"\0")
        self._buffer.seek(self.size)

    def content(self) -> bytes:
        """Return what was written, without a copy."""
        self._buffer.truncate(self.size)
        return self._buffer.getvalue()


def _gunzip(data: memoryview, limit: int, magic: int) -> bytes:
    library, out, at = _fast_zlib(), _Output(limit), 0
    try:
        while at < len(data):
            at = _gunzip_member(library, data, at, out)
    except library.error as damage:
        raise _MalformedError(str(damage)) from None
    return out.content()


def _gunzip_member(library: Any, data: memoryview, at: int, out: _Output) -> int:
    """Decompress the member that starts at byte ``at``, and return where it ends.

    zlib copies unused input. So it receives chunks that start small and then grow. For a member of any size, zlib then
    copies only a few times that size. ISA-L does the same, and does not check reserved flags.
    """
    if any(flags & _GZIP_RESERVED_FLAGS for flags in data[at + _GZIP_FLAGS :][:1]):
        raise _MalformedError("unknown flags in its header")
    member, piece = library.decompressobj(_GZIP_WBITS), _SMALLEST_PIECE
    while not member.eof:
        given: bytes | memoryview = member.unconsumed_tail
        if not given:
            given = data[at : at + piece]
            at += len(given)
            piece = min(2 * piece, _LARGEST_PIECE)
        step = member.decompress(given, _STEP)
        if not (given or step or member.eof):
            raise _MalformedError("it ends early")
        out.write(step)
    return at - len(member.unused_data)


def _unsnappy(data: memoryview, limit: int, magic: int) -> bytes:
    size = 0
    for block in framing.snappy_blocks(data):
        size += framing.snappy_size(block)
        if size > limit:
            raise _TooLargeError
    return _into(_unsnappy_blocks, data, size)


def _unsnappy_blocks(data: memoryview, out: memoryview) -> int:
    work, at = _cramjam().snappy.decompress_raw_into, 0
    for block in framing.snappy_blocks(data):
        size = framing.snappy_size(block)
        work(block, out[at : at + size])
        at += size
    return at


def _unlz4(data: memoryview, limit: int, magic: int) -> bytes:
    bound = framing.lz4_bound(data)
    source = framing.lz4_with_right_check(data) if magic == 0 else data
    return _into(_cramjam().lz4.decompress_into, source, min(bound, limit))


def _unzstd(data: memoryview, limit: int, magic: int) -> bytes:
    bound, window = framing.zstd_bound_and_window(data)
    return _into(_cramjam().zstd.decompress_into, data, min(bound, framing.zstd_room(limit, window)))


def _into(work: Callable[[Any, memoryview], int], data: Any, size: int) -> bytes:
    """Decompress into a buffer of ``size`` bytes, which becomes the result. The codec stops if the buffer is full."""
    out = BytesIO(bytes(size))
    try:
        with out.getbuffer() as view:
            filled = work(data, view)
    except _cramjam().DecompressionError as damage:
        if str(damage) == _FULL:
            raise _TooLargeError from None
        raise _MalformedError(str(damage)) from None
    out.truncate(filled)
    return out.getvalue()


def _gzip(data: Data, level: int, magic: int) -> bytes:
    library = _fast_zlib() if level == _GZIP_FASTEST else zlib
    work = library.compressobj(level, zlib.DEFLATED, _GZIP_WBITS)
    written: bytes = work.compress(data) + work.flush()
    return written


def _snappy(data: Data, level: int, magic: int) -> bytes:
    return framing.snappy_framed(memoryview(data), _cramjam().snappy.compress_raw)


def _lz4(data: Data, level: int, magic: int) -> bytes:
    high = max(level, _LZ4_LEAST_HIGH)
    level = _LZ4_FAST if level == _DEFAULT_LEVELS[CompressionType.LZ4] else high
    work = _cramjam().lz4.Compressor(level=level, content_checksum=False, block_linked=False)
    work.compress(bytes(data))
    frame = bytes(work.finish())
    return framing.lz4_with_old_check(frame) if magic == 0 else frame


def _zstd(data: Data, level: int, magic: int) -> bytes:
    return bytes(_cramjam().zstd.compress(data, level))


_COMPRESS: Final[dict[CompressionType, Callable[[Data, int, int], bytes]]] = {
    CompressionType.NONE: lambda data, level, magic: bytes(data),
    CompressionType.GZIP: _gzip,
    CompressionType.SNAPPY: _snappy,
    CompressionType.LZ4: _lz4,
    CompressionType.ZSTD: _zstd,
}
_DECOMPRESS: Final[dict[int, Callable[[memoryview, int, int], bytes]]] = {
    CompressionType.NONE: _copy,
    CompressionType.GZIP: _gunzip,
    CompressionType.SNAPPY: _unsnappy,
    CompressionType.LZ4: _unlz4,
    CompressionType.ZSTD: _unzstd,
}
