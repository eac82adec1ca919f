"""gzip by zlib and by ISA-L: each reads the other's output, and rejects the same input."""

from __future__ import annotations

import random
import zlib
from typing import Any

import pytest

from kafka_msgs.errors import CompressionError, DecompressedSizeError
from kafka_msgs.records import CompressionType, compression
from kafka_msgs.records.compression import compress, decompress

TEXT = bytes(random.Random(5).choices(b"abcdef", k=300_000))
SMALL = TEXT[:2000]
LIMIT = 1 << 20


@pytest.fixture(params=["zlib", "isal_zlib"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The library that reads gzip and writes it at the fastest level."""
    chosen = zlib if request.param == "zlib" else pytest.importorskip("isal.isal_zlib", reason="needs the extra gzip")
    monkeypatch.setattr(compression, "_fast_zlib", lambda: chosen)
    return chosen


def outcome(data: bytes, limit: int = LIMIT) -> bytes | str:
    """Return the contents of the data, or the class of the error."""
    try:
        return decompress(CompressionType.GZIP, memoryview(data), limit)
    except CompressionError as error:
        return type(error).__name__


def zlib_outcome(data: bytes) -> bytes | str:
    """Return zlib's own result for consecutive members that fill the data."""
    out = b""
    while data:
        member = zlib.decompressobj(31)
        try:
            out += member.decompress(data)
        except zlib.error:
            return CompressionError.__name__
        if not member.eof:
            return CompressionError.__name__
        data = member.unused_data
    return out


@pytest.mark.parametrize("content", [b"", b"x", TEXT, bytes(3 << 20)])
@pytest.mark.parametrize("level", [None, 1, 9])
def test_zlib_reads_what_is_written_and_the_library_reads_what_zlib_writes(
    library: Any, content: bytes, level: int | None
) -> None:
    written = compress(CompressionType.GZIP, content, level)
    assert zlib_outcome(written) == content
    assert outcome(written, 4 << 20) == content
    by_zlib = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, 31)
    assert outcome(by_zlib.compress(content) + by_zlib.flush(), 4 << 20) == content


def test_only_the_fastest_level_is_written_by_the_library(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fastest = library.compressobj(1, zlib.DEFLATED, 31)
    assert compress(CompressionType.GZIP, SMALL, 1) == fastest.compress(SMALL) + fastest.flush()
    monkeypatch.setattr(compression, "_fast_zlib", lambda: None)
    for level in (None, 2, 9):
        assert zlib_outcome(compress(CompressionType.GZIP, SMALL, level)) == SMALL


def test_members_follow_each_other(library: Any) -> None:
    data = (
        compress(CompressionType.GZIP, TEXT)
        + compress(CompressionType.GZIP, b"")
        + compress(CompressionType.GZIP, b"two", 1)
    )
    assert outcome(data) == TEXT + b"two"
    assert outcome(data + b"\0") == "CompressionError"
    assert outcome(b"") == b""


def test_the_limit_is_exact(library: Any) -> None:
    data = compress(CompressionType.GZIP, TEXT, 1)
    assert outcome(data, len(TEXT)) == TEXT
    assert outcome(data, len(TEXT) - 1) == DecompressedSizeError.__name__


def test_every_shorter_input_is_refused(library: Any) -> None:
    data = compress(CompressionType.GZIP, SMALL[:200])
    assert {outcome(data[:end]) for end in range(1, len(data))} == {"CompressionError"}


def test_every_changed_bit_has_the_outcome_that_it_has_in_zlib(library: Any) -> None:
    data = compress(CompressionType.GZIP, SMALL[:200])
    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit >> 3] ^= 1 << (bit & 7)
        assert outcome(bytes(changed)) == zlib_outcome(bytes(changed)), bit
