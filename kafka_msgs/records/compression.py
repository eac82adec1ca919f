"""Compression of records: which codecs there are, and how much a compressed batch may become.

Owns the framing that Kafka puts around snappy blocks and the header byte that old writers of lz4 got wrong; the codecs
themselves are zlib and, for the others, the package cramjam (extra ``compression``). Every function that decompresses
stops at a limit while it works, not afterwards. What is compressed, and where it stands in a batch, is left to
``batch`` and ``legacy``; they also add the position to the errors of this module.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from enum import IntEnum
from functools import cache
from typing import Any, Final

from kafka_msgs.errors import CompressionError, DecompressedSizeError, MissingExtraError, RecordWriteError
from kafka_msgs.records import compression_framing as framing

__all__ = ["Compression", "compress", "decompress"]

Data = bytes | bytearray | memoryview
"""What can be compressed."""

_GZIP_WBITS: Final = 31
_STEP: Final = 1 << 20
_FULL: Final = "failed to write whole buffer"


class Compression(IntEnum):
    """The codec of a batch, as the three lowest bits of its attributes number it."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class _TooLargeError(Exception):
    """The output passed the limit."""


class _MalformedError(Exception):
    """The input is not what its codec writes; the text says why."""


@cache
def _cramjam() -> Any:
    try:
        import cramjam
    except ImportError:
        raise MissingExtraError(feature="snappy, lz4 and zstd", extra="compression", package="cramjam") from None
    return cramjam


def compress(codec: Compression, data: Data, level: int | None = None, *, magic: int = 2) -> bytes:
    """Return ``data`` as Kafka writes it with ``codec``.

    ``level`` is the codec's own scale, None its default; snappy has none. ``magic`` 0 asks for the lz4 header that
    messages of that format carry. Raises ``MissingExtraError``, and ``RecordWriteError`` for a level that the codec
    refuses.
    """
    try:
        return _COMPRESS[codec](data, level, magic)
    except (ValueError, OverflowError, zlib.error) as refused:
        raise RecordWriteError(field="level", value=level, reason=f"{codec.name.lower()}: {refused}") from None


def decompress(
    codec: int, data: memoryview, limit: int, *, magic: int = 2, position: int = 0, offset: int | None = None
) -> bytes:
    """Return what ``data`` was before ``codec`` compressed it, of at most ``limit`` bytes.

    ``position`` and ``offset`` are the batch's, for the errors: ``CompressionError`` for data that is damaged or a
    codec that does not exist, ``DecompressedSizeError`` beyond the limit; also ``MissingExtraError``. With ``magic`` 0
    the check byte of an lz4 header may have any value.
    """
    work = _DECOMPRESS.get(codec)
    if work is None:
        reason = f"there is no codec {codec}"
        raise CompressionError(position=position, offset=offset, reason=reason, codec=codec)
    name = Compression(codec).name.lower()
    try:
        return work(data, limit, magic)
    except _TooLargeError:
        reason = f"{name} data of {len(data)} bytes becomes more than the limit of {limit}"
        raise DecompressedSizeError(position=position, offset=offset, reason=reason, codec=name, limit=limit) from None
    except (_MalformedError, framing.FrameError, zlib.error) as damage:
        reason = f"{name} data is damaged: {damage}"
        raise CompressionError(position=position, offset=offset, reason=reason, codec=name) from None


def _copy(data: memoryview, limit: int, magic: int) -> bytes:
    if len(data) > limit:
        raise _TooLargeError
    return bytes(data)


def _gunzip(data: memoryview, limit: int, magic: int) -> bytes:
    out = bytearray()
    rest: memoryview | bytes = data
    while rest:
        member = zlib.decompressobj(_GZIP_WBITS)
        while not member.eof:
            step = member.decompress(rest, min(_STEP, limit - len(out) + 1))
            out += step
            if len(out) > limit:
                raise _TooLargeError
            rest = member.unconsumed_tail
            if not (rest or step or member.eof):
                raise _MalformedError("it ends early")
        rest = member.unused_data
    return bytes(out)


def _unsnappy(data: memoryview, limit: int, magic: int) -> bytes:
    blocks = [(block, framing.snappy_size(block)) for block in framing.snappy_blocks(data)]
    total = sum(size for _, size in blocks)
    if total > limit:
        raise _TooLargeError
    out, at, work = bytearray(total), 0, _cramjam().snappy.decompress_raw_into
    with memoryview(out) as view:
        for block, size in blocks:
            try:
                work(block, view[at : at + size])
            except _cramjam().DecompressionError as damage:
                raise _MalformedError(str(damage)) from None
            at += size
        return bytes(view)


def _unlz4(data: memoryview, limit: int, magic: int) -> bytes:
    bound = framing.lz4_bound(data)
    source = framing.lz4_with_right_check(data) if magic == 0 else data
    return _into(_cramjam().lz4.decompress_into, source, min(bound, limit))


def _unzstd(data: memoryview, limit: int, magic: int) -> bytes:
    bound, window = framing.zstd_bound_and_window(data)
    return _into(_cramjam().zstd.decompress_into, data, min(bound, framing.zstd_room(limit, window)))


def _into(work: Callable[[Any, bytearray], int], data: Any, size: int) -> bytes:
    """Decompress into a buffer of ``size`` bytes; the codec stops where it is full."""
    out = bytearray(size)
    try:
        filled = work(data, out)
    except _cramjam().DecompressionError as damage:
        if str(damage) == _FULL:
            raise _TooLargeError from None
        raise _MalformedError(str(damage)) from None
    with memoryview(out) as view:
        return bytes(view[:filled])


def _gzip(data: Data, level: int | None, magic: int) -> bytes:
    work = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, _GZIP_WBITS)
    return work.compress(data) + work.flush()


def _snappy(data: Data, level: int | None, magic: int) -> bytes:
    return framing.snappy_framed(memoryview(data), _cramjam().snappy.compress_raw)


def _lz4(data: Data, level: int | None, magic: int) -> bytes:
    work = _cramjam().lz4.Compressor(level=level, content_checksum=False, block_linked=False)
    work.compress(bytes(data))
    frame = bytes(work.finish())
    return framing.lz4_with_old_check(frame) if magic == 0 else frame


def _zstd(data: Data, level: int | None, magic: int) -> bytes:
    return bytes(_cramjam().zstd.compress(data, level))


_COMPRESS: Final[dict[Compression, Callable[[Data, int | None, int], bytes]]] = {
    Compression.NONE: lambda data, level, magic: bytes(data),
    Compression.GZIP: _gzip,
    Compression.SNAPPY: _snappy,
    Compression.LZ4: _lz4,
    Compression.ZSTD: _zstd,
}
_DECOMPRESS: Final[dict[int, Callable[[memoryview, int, int], bytes]]] = {
    Compression.NONE: _copy,
    Compression.GZIP: _gunzip,
    Compression.SNAPPY: _unsnappy,
    Compression.LZ4: _unlz4,
    Compression.ZSTD: _unzstd,
}
