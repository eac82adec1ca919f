"""Compression types: round trips, errors for damage, and bombs that stop at the limit, including in memory."""

from __future__ import annotations

import random
import struct
import subprocess
import sys
import textwrap
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any

import cramjam
import pytest

from kafka_msgs.errors import CompressionError, DecompressedSizeError, MissingExtraError, RecordWriteError
from kafka_msgs.records import (
    BatchBuilder,
    BatchHeader,
    CompressionType,
    MessageSetBuilder,
    ReadOptions,
    compression,
    compression_framing,
)
from kafka_msgs.records.compression import compress, decompress
from tests.support.batches import read_one

CODECS = [codec for codec in CompressionType if codec is not CompressionType.NONE]
TEXT = bytes(random.Random(5).choices(b"abcdef", k=300_000))
SNAPPY_HEADER = bytes.fromhex("82534e4150505900 00000001 00000001")


def unpacked(codec: int, data: bytes, limit: int = 1 << 20) -> bytes:
    return decompress(codec, memoryview(data), limit)


@pytest.mark.parametrize("content", [b"", b"x", TEXT, bytes(1 << 20)])
@pytest.mark.parametrize("codec", CompressionType)
def test_what_is_compressed_comes_back(codec: CompressionType, content: bytes) -> None:
    assert unpacked(codec, compress(codec, content)) == content


@pytest.mark.parametrize("codec", CompressionType)
def test_the_limit_is_exact(codec: CompressionType) -> None:
    data = compress(codec, TEXT)
    assert unpacked(codec, data, len(TEXT)) == TEXT
    with pytest.raises(DecompressedSizeError) as caught:
        unpacked(codec, data, len(TEXT) - 1)
    assert (caught.value.limit, caught.value.codec) == (len(TEXT) - 1, codec.name.lower())


@pytest.mark.parametrize("codec", CODECS)
def test_data_that_ends_early_is_damaged(codec: CompressionType) -> None:
    data = compress(codec, TEXT)
    for end in (*range(1, 40), len(data) // 2, len(data) - 1):
        if end == len(SNAPPY_HEADER) and codec is CompressionType.SNAPPY:
            continue
        with pytest.raises(CompressionError) as caught:
            unpacked(codec, data[:end])
        assert not isinstance(caught.value, DecompressedSizeError)


@pytest.mark.parametrize("codec", CODECS)
def test_data_with_changed_bytes_never_ends_in_another_error(codec: CompressionType) -> None:
    chance = random.Random(3)
    data = compress(codec, TEXT[:5000])
    for _ in range(500):
        changed = bytearray(data)
        for _ in range(chance.randint(1, 3)):
            changed[chance.randrange(min(len(data), chance.choice([20, len(data)])))] = chance.randrange(256)
        try:
            unpacked(codec, bytes(changed))
        except CompressionError as error:
            assert error.codec == codec.name.lower()  # noqa: PT017 - most changes are noticed, not all


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_there_are_no_other_codecs(codec: int) -> None:
    with pytest.raises(CompressionError, match=f"there is no codec {codec}"):
        unpacked(codec, b"data")


def test_members_of_gzip_may_follow_each_other() -> None:
    assert unpacked(1, compress(CompressionType.GZIP, b"one") + compress(CompressionType.GZIP, b"two")) == b"onetwo"


def test_frames_of_lz4_and_zstd_may_follow_each_other() -> None:
    skipped = bytes.fromhex("502a4d18 03000000 aabbcc")
    for codec in (CompressionType.LZ4, CompressionType.ZSTD):
        assert unpacked(codec, compress(codec, b"one") + skipped + compress(codec, b"two")) == b"onetwo"


def test_snappy_is_read_with_and_without_a_frame() -> None:
    raw = bytes(cramjam.snappy.compress_raw(TEXT))
    assert unpacked(2, raw) == TEXT
    framed = SNAPPY_HEADER + struct.pack(">i", len(raw)) + raw
    assert unpacked(2, framed) == TEXT
    assert unpacked(2, framed + framed) == TEXT + TEXT


def test_snappy_is_written_in_frames_of_32_kilobytes() -> None:
    data = compress(CompressionType.SNAPPY, TEXT)
    assert data[:16] == SNAPPY_HEADER
    first = int.from_bytes(data[16:20], "big")
    assert bytes(cramjam.snappy.decompress_raw(data[20 : 20 + first])) == TEXT[: 32 << 10]


def test_gzip_carries_no_time() -> None:
    assert compress(CompressionType.GZIP, b"same") == compress(CompressionType.GZIP, b"same")
    assert compress(CompressionType.GZIP, b"same")[4:8] == bytes(4)


@pytest.mark.parametrize("codec", [CompressionType.GZIP, CompressionType.LZ4, CompressionType.ZSTD])
def test_a_level_changes_the_size_and_not_the_content(codec: CompressionType) -> None:
    low, high = (compress(codec, TEXT, level) for level in (1, 8))
    assert low != high
    assert unpacked(codec, low) == unpacked(codec, high) == TEXT


def test_the_default_levels_are_those_of_kafkas_producer() -> None:
    """6 for zlib, the fast compressor for lz4 and 3 for zstd, independent of the libraries' own defaults."""
    assert (
        compress(CompressionType.GZIP, TEXT)
        == compress(CompressionType.GZIP, TEXT, 6)
        == compress(CompressionType.GZIP, TEXT, -1)
    )
    assert compress(CompressionType.ZSTD, TEXT) == compress(CompressionType.ZSTD, TEXT, 3)
    fast = cramjam.lz4.Compressor(level=0, content_checksum=False, block_linked=False)
    fast.compress(TEXT)
    assert compress(CompressionType.LZ4, TEXT) == compress(CompressionType.LZ4, TEXT, 9) == bytes(fast.finish())
    sizes = [len(compress(CompressionType.LZ4, TEXT, level)) for level in (9, 1, 8, 17)]
    assert sizes == sorted(sizes, reverse=True)


RANGES = {CompressionType.GZIP: (1, 9), CompressionType.LZ4: (1, 17), CompressionType.ZSTD: (-131072, 22)}


@pytest.mark.parametrize("codec", RANGES)
def test_levels_are_those_that_kafkas_producer_takes(codec: CompressionType) -> None:
    lowest, highest = RANGES[codec]
    for level in (lowest, highest):
        assert unpacked(codec, compress(codec, TEXT[:2000], level)) == TEXT[:2000]
    refused: list[Any] = [lowest - 1, highest + 1, 2.0, True, "3"]
    for wrong in refused:
        with pytest.raises(
            RecordWriteError, match=f"level: .* levels of {codec.name.lower()} are {lowest} to {highest}"
        ):
            BatchBuilder(codec=codec, level=wrong)


def test_snappy_has_no_levels() -> None:
    with pytest.raises(RecordWriteError, match="level: 1: snappy has no levels"):
        MessageSetBuilder(magic=1, codec=CompressionType.SNAPPY, level=1)


@pytest.mark.parametrize("codec", [CompressionType.SNAPPY, CompressionType.LZ4, CompressionType.ZSTD])
def test_a_missing_package_is_named(codec: CompressionType) -> None:
    code = f"""
        import sys
        sys.modules["cramjam"] = None
        from kafka_msgs.errors import MissingExtraError
        from kafka_msgs.records import BatchBuilder, CompressionType, read_batches
        builder = BatchBuilder(codec=CompressionType({int(codec)}))
        builder.append(None, b"v")
        try:
            builder.build()
        except MissingExtraError as missing:
            print(missing)
    """
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    expected = MissingExtraError(feature="compression with snappy, lz4 or zstd", extra="compression", package="cramjam")
    assert ran.stdout.strip() == str(expected)


def test_gzip_needs_no_other_package() -> None:
    code = """
        import sys
        sys.modules["cramjam"] = sys.modules["isal"] = None
        from kafka_msgs.records import BatchBuilder, CompressionType, read_batches
        builder = BatchBuilder(codec=CompressionType.GZIP, level=1)
        builder.append(None, b"v")
        print([batch.values() for batch in read_batches(builder.build())])
    """
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[[b'v']]"


def test_the_error_of_a_batch_has_its_place() -> None:
    builder = BatchBuilder(BatchHeader(base_offset=7), codec=CompressionType.GZIP)
    builder.append(None, bytes(5000))
    with pytest.raises(DecompressedSizeError, match=r"batch at byte 0, offset 7: gzip data of .* limit of 4000"):
        read_one(builder.build(), max_decompressed_bytes=4000).records()


@pytest.mark.parametrize("codec", [CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4])
def test_message_sets_have_the_same_limit(codec: CompressionType) -> None:
    from kafka_msgs.records import read_batches

    builder = MessageSetBuilder(magic=1, codec=codec)
    builder.append(None, bytes(5000))
    (batch,) = read_batches(builder.build(), ReadOptions(max_decompressed_bytes=4000))
    with pytest.raises(DecompressedSizeError):
        batch.records()


CAP = 48 << 20
HEAD = 8 << 20
"""Memory that decompression may use beyond the limit."""


def zstd_blocks(window: int, count: int) -> bytes:
    """Return a frame of 128 KiB blocks of one repeated byte, with a header for a window of 2**``window``."""
    block = ((128 << 10) << 3 | 1 << 1).to_bytes(3, "little") + b"x"
    return bytes.fromhex("28b52ffd00") + bytes([window - 10 << 3]) + block * count + bytes.fromhex("010000")


def lz4_frames(size: int) -> bytes:
    """Return a frame of blocks with the maximum size."""
    frame = bytearray(bytes.fromhex("04224d18 6070 73"))
    block = bytes(cramjam.lz4.compress_block(bytes(4 << 20), store_size=False))
    return bytes(frame) + (len(block).to_bytes(4, "little") + block) * (size >> 22) + bytes(4)


def snappy_blocks(count: int, size: int) -> bytes:
    block = bytes(cramjam.snappy.compress_raw(bytes(size)))
    return SNAPPY_HEADER + (len(block).to_bytes(4, "big") + block) * count


def gzip_bomb(size: int) -> bytes:
    work = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join(work.compress(bytes(1 << 20)) for _ in range(size >> 20)) + work.flush()


BOMBS = {
    "gzip": (1, gzip_bomb(4 * CAP)),
    "gzip in members": (1, gzip_bomb(1 << 20) * 200),
    "snappy": (2, snappy_blocks(200, 1 << 20)),
    "snappy in two blocks": (2, snappy_blocks(2, CAP - 10)),
    "snappy without a frame": (2, bytes(cramjam.snappy.compress_raw(bytes(2 * CAP)))),
    "lz4": (3, lz4_frames(4 * CAP)),
    "zstd": (4, zstd_blocks(20, 8000)),
    "zstd with a large window": (4, zstd_blocks(27, 8000)),
    "zstd in frames, one with a large window": (4, zstd_blocks(20, 10) + zstd_blocks(27, 8000)),
}

CHILD = """
    import resource, sys
    from kafka_msgs.errors import DecompressedSizeError
    from kafka_msgs.records.compression import compress, decompress, CompressionType
    data = sys.stdin.buffer.read()
    for codec in CompressionType:
        decompress(codec, memoryview(compress(codec, b"warm")), 100)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        decompress(int(sys.argv[1]), memoryview(data), int(sys.argv[2]))
    except DecompressedSizeError:
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_ends_at_the_limit_in_little_more_memory_than_that(bomb: str) -> None:
    codec, data = BOMBS[bomb]
    command = [sys.executable, "-c", textwrap.dedent(CHILD), str(codec), str(CAP)]
    ran = subprocess.run(command, input=data, capture_output=True, check=True, timeout=60)
    assert ran.stdout, ran.stderr.decode()
    assert int(ran.stdout) * 1024 <= CAP + HEAD


class CountingMember:
    """A gzip member that counts the bytes that zlib copies as unused."""

    copied = 0

    def __init__(self, wbits: int) -> None:
        self._member = ZLIB_MEMBER(wbits)

    def decompress(self, data: bytes, most: int) -> bytes:
        return self._member.decompress(data, most)

    @property
    def eof(self) -> bool:
        return self._member.eof

    @property
    def unconsumed_tail(self) -> bytes:
        CountingMember.copied += len(self._member.unconsumed_tail)
        return self._member.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        CountingMember.copied += len(self._member.unused_data)
        return self._member.unused_data


ZLIB_MEMBER = zlib.decompressobj

MANY_COPIES: dict[str, Callable[[int], bytes]] = {
    "empty members": lambda count: compress(CompressionType.GZIP, b"") * (100 * count),
    "stored members": lambda count: stored(random.Random(1).randbytes(1 << 19) * count),
    "members that become large": lambda count: compress(CompressionType.GZIP, bytes(1 << 20)) * count,
}


def stored(content: bytes) -> bytes:
    work = zlib.compressobj(0, zlib.DEFLATED, 31)
    return work.compress(content) + work.flush()


@pytest.mark.parametrize("kind", MANY_COPIES)
def test_what_is_left_of_gzip_is_not_copied_for_each_member_or_step(kind: str) -> None:
    copied = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compression, "_fast_zlib", lambda: zlib)
        patch.setattr(zlib, "decompressobj", CountingMember)
        for count in (8, 32):
            data = MANY_COPIES[kind](count)
            CountingMember.copied = 0
            unpacked(1, data, 64 << 20)
            copied.append(CountingMember.copied)
            assert CountingMember.copied <= 10 * len(data)
    assert copied[1] <= 4.5 * copied[0]


def peak_of(codec: int, data: bytes, limit: int) -> int:
    """Return the peak memory allocated by Python while data is decompressed."""
    compress(CompressionType(codec), b"")
    tracemalloc.start()
    try:
        unpacked(codec, data, limit)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("codec", CODECS)
def test_content_as_large_as_the_limit_takes_no_more_than_that(codec: CompressionType) -> None:
    data = compress(codec, random.Random(2).randbytes(4 << 20) * 4)
    assert peak_of(codec, data, 16 << 20) <= (16 << 20) + HEAD


EMPTY_BLOCK = bytes.fromhex("00000001 00")


def test_snappy_blocks_without_content_take_no_memory() -> None:
    peaks = [peak_of(2, SNAPPY_HEADER + EMPTY_BLOCK * count, 1 << 20) for count in (2_000, 2_000_000)]
    assert max(peaks) < 1 << 16


def test_snappy_blocks_without_content_are_passed_over_in_one_step() -> None:
    block = bytes(cramjam.snappy.compress_raw(TEXT))
    full = len(block).to_bytes(4, "big") + block
    data = SNAPPY_HEADER + EMPTY_BLOCK * 2_000_000 + full + EMPTY_BLOCK * 2_000_000 + full + EMPTY_BLOCK
    assert list(compression_framing.snappy_blocks(memoryview(data))) == [block, block]
    assert unpacked(2, data, 2 * len(TEXT)) == 2 * TEXT


def test_snappy_blocks_without_content_do_not_hide_a_damaged_one() -> None:
    with pytest.raises(CompressionError, match="a block needs 2 bytes, 1 left"):
        unpacked(2, SNAPPY_HEADER + EMPTY_BLOCK * 3 + bytes.fromhex("00000002 00"), 100)


@pytest.mark.parametrize("codec", [2, 3, 4])
def test_sizes_that_are_only_claimed_are_not_allocated(codec: int) -> None:
    claims = {
        2: b"\xff\xff\xff\xff\x0f" + bytes(20),
        3: bytes.fromhex("04224d18 6c70 ffffffffffffff7f 00") + b"\xff\xff\xff\x7f" + bytes(20),
        4: bytes.fromhex("28b52ffd e0 ffffffffffffff7f 010000"),
    }
    code = CHILD.replace("DecompressedSizeError", "CompressionError")
    command = [sys.executable, "-c", textwrap.dedent(code), str(codec), str(4 << 30)]
    ran = subprocess.run(command, input=claims[codec], capture_output=True, check=True, timeout=60)
    assert int(ran.stdout) * 1024 <= HEAD, ran.stderr.decode()
