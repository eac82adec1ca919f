"""Redaction of records: keys, values and headers are replaced by masks of the same lengths.

Redacted batches remain valid. Transaction markers are unchanged; the content of other control records is masked. All
other parts of a batch are unchanged: offsets, timestamps, producers, flags. The checksum is recomputed. An uncompressed
batch keeps its exact size. A compressed batch gets content that compresses to the same size, by randomizing as much of
it as necessary. The number of attempts is limited; if none has the exact size, the nearest smaller result is used, and
the batch is slightly shorter. Invalid batches are replaced by zeros.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from struct import Struct
from typing import Final

from kafka_msgs.binary_layouts import CRC_START, HEADER_SIZE, LENGTH_AND_OFFSET_STRUCT, MAGIC_OFFSET
from kafka_msgs.checksums import crc32c
from kafka_msgs.errors import KafkaMsgsError
from kafka_msgs.records import CompressionType, LegacyBatch, RecordBatch
from kafka_msgs.records.batch import read_batches
from kafka_msgs.records.compression import compress
from kafka_msgs.records.legacy import encode_entry

__all__ = ["redact_records"]

Span = tuple[int, int]

_MASK: Final = b"x"
_SIZE: Final = Struct(">i")
_CRC: Final = Struct(">I")
_START_BY_MAGIC: Final = {0: MAGIC_OFFSET + 1, 1: MAGIC_OFFSET + 1, 2: HEADER_SIZE}
_MARKER_KEYS: Final = (b"\0\0\0\0", b"\0\0\0\1")
"""The keys of transaction markers: version 0, and the type abort or commit."""
_MARKER_BYTES: Final = 6
"""The size of a transaction marker: its version, and the epoch of the coordinator."""
_TRIES: Final = 60
_WORK: Final = 32 * 2**20
"""The number of bytes that may be compressed to find content of the right size, in addition to a few attempts."""
_LEAST_TRIES: Final = 6


def redact_records(data: bytes) -> bytes:
    """Return the content of a records field with masked keys, values and headers.

    A partial batch at the end, which a broker may send, is replaced by zeros, except for its header.
    """
    out: list[bytes] = []
    batches = read_batches(data)
    start = 0
    while True:
        try:
            batch = next(batches)
        except StopIteration:
            break
        except KafkaMsgsError:
            batch = None
        end = batches.position
        out.append(_redacted(batch, data[start:end]))
        start = end
    return b"".join((*out, _without_content(data[start:])))


def _redacted(batch: RecordBatch | LegacyBatch | None, data: bytes) -> bytes:
    try:
        if isinstance(batch, RecordBatch):
            return data if batch.is_control and _holds_markers(batch) else _batch(batch, data)
        if isinstance(batch, LegacyBatch) and batch.codec == CompressionType.NONE:
            return _entry(batch)
    except KafkaMsgsError:
        pass
    return _without_content(data)


def _holds_markers(batch: RecordBatch) -> bool:
    """Return whether all records of a control batch are transaction markers, which contain nothing but numbers.

    Anybody can set the control flag, and other control records contain names and hosts.
    """
    if batch.codec != CompressionType.NONE:
        return False
    return all(
        not record.headers
        and record.key in _MARKER_KEYS
        and record.value is not None
        and len(record.value) == _MARKER_BYTES
        and bytes(record.value[:2]) == bytes(2)
        for record in batch.records()
    )


def _without_content(data: bytes) -> bytes:
    """Return the replacement for invalid bytes: the common start of every batch of their format, and zeros."""
    kept = data[: _START_BY_MAGIC.get(data[MAGIC_OFFSET], 0)] if len(data) > MAGIC_OFFSET else b""
    return kept + bytes(len(data) - len(kept))


def _entry(batch: LegacyBatch) -> bytes:
    (record,) = batch.records()
    key, value = (None if each is None else _MASK * len(each) for each in (record.key, record.value))
    return encode_entry(batch.offset, batch.magic, batch.attributes, batch.max_timestamp, key, value)


def _batch(batch: RecordBatch, data: bytes) -> bytes:
    batch.records()  # From here on, the records are known to be valid.
    body, at, end = batch.content()
    content = bytearray(body[at:end])
    spans = list(_payloads(content, batch.count))
    for (first, last), _ in spans:
        content[first:last] = _MASK * (last - first)
    if batch.codec != CompressionType.NONE:
        free = [span for span, is_text in spans if not is_text]
        content = bytearray(_compressed(CompressionType(batch.codec), content, free, len(data) - HEADER_SIZE))
    head = bytearray(data[:HEADER_SIZE])
    _SIZE.pack_into(head, 8, HEADER_SIZE + len(content) - LENGTH_AND_OFFSET_STRUCT)
    _CRC.pack_into(head, CRC_START - _CRC.size, crc32c(bytes(content), crc32c(bytes(head[CRC_START:]))))
    return bytes(head + content)


def _payloads(body: bytearray, count: int) -> Iterator[tuple[Span, bool]]:
    """Yield the positions of all keys, values, header names and header values in valid records.

    Each position has a flag for text, such as header names.
    """
    at = 0
    for _ in range(count):
        size, at = _varint(body, at)
        end = at + size
        at = _skip(body, at + 1, 2)
        for _ in range(2):
            size, at = _varint(body, at)
            yield (at, at + max(size, 0)), False
            at += max(size, 0)
        headers, at = _varint(body, at)
        for part in range(2 * headers):
            size, at = _varint(body, at)
            yield (at, at + max(size, 0)), part % 2 == 0
            at += max(size, 0)
        at = end


def _skip(body: bytearray, at: int, count: int) -> int:
    for _ in range(count):
        _, at = _varint(body, at)
    return at


def _varint(body: bytearray, at: int) -> tuple[int, int]:
    raw = shift = 0
    while True:
        byte = body[at]
        at += 1
        raw |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return raw >> 1 ^ -(raw & 1), at


def _compressed(codec: CompressionType, content: bytearray, free: list[Span], wanted: int) -> bytes:
    """Return compressed content of ``wanted`` bytes, or the largest smaller result.

    ``free`` are the positions that accept arbitrary bytes.
    """
    attempts = _Attempts(codec, content, free, wanted)
    most = sum(last - first for first, last in free)
    front = _largest(most, lambda count: attempts.fits(count, 0, seed=0), attempts)
    back = _largest(most - front, lambda count: attempts.fits(front, count, seed=0), attempts)
    for seed in range(1, _TRIES):
        if attempts.over:
            break
        attempts.fits(max(0, min(most - back, front - seed % 7 + 3)), max(0, back - seed // 7 % 5), seed)
    return attempts.best


def _largest(most: int, fits: Callable[[int], bool], attempts: _Attempts) -> int:
    """Search for the largest number up to ``most`` that fits, assuming that all smaller numbers fit."""
    low, high = 0, most
    while low < high and not attempts.over:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low


class _Attempts:
    """Attempts to compress content with a partly random payload; the best result is stored.

    The first and the last bytes of the payload are random. Compression of the middle is irregular, so both ends are
    needed to reach a size.
    """

    def __init__(self, codec: CompressionType, content: bytearray, free: list[Span], wanted: int) -> None:
        self._codec = codec
        self._content = content
        self._free = free
        self._wanted = wanted
        self._left = max(_WORK // max(len(content), 1), _LEAST_TRIES)
        self.best = compress(codec, bytes(content))

    @property
    def over(self) -> bool:
        """Whether the size was found, or the attempts are exhausted."""
        return len(self.best) == self._wanted or self._left <= 0

    def fits(self, front: int, back: int, seed: int) -> bool:
        """Return whether content with this number of random bytes at both ends has at most the wanted size."""
        self._left -= 1
        trial = bytearray(self._content)
        noise = random.Random(seed)
        _fill(trial, self._free, noise.randbytes(front))
        _fill(trial, [(last, first) for first, last in reversed(self._free)], noise.randbytes(back))
        compressed = compress(self._codec, bytes(trial))
        size = len(compressed)
        if size <= self._wanted and (len(self.best) > self._wanted or size > len(self.best)):
            self.best = compressed
        return size <= self._wanted


def _fill(content: bytearray, spans: Iterable[Span], filling: bytes) -> None:
    """Write bytes into spans in sequence; a span whose end comes first is filled from its end."""
    used = 0
    for start, end in spans:
        part = filling[used : used + abs(end - start)]
        at = start if start <= end else start - len(part)
        content[at : at + len(part)] = part
        used += len(part)
        if used == len(filling):
            return
