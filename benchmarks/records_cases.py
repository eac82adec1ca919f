"""The same record batch in each library: the calls that read and write it, verified to return the same.

This module defines the content and the calls. Every library reads our bytes; we read back its output, which must
contain the same records. If a library has several APIs, the case uses the one that its consumer or producer calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any, Final

from aiokafka.record import default_records as aiokafka_records
from aiokafka.record import memory_records as aiokafka_memory
from attrs import frozen
from kafka.record import default_records as kafka_records
from kafka.record import memory_records as kafka_memory

from kafka_msgs._backend import BACKENDS, backend, backend_module
from kafka_msgs.records import BatchBuilder, CompressionType, batch, builder, read_batches

__all__ = [
    "AIOKAFKA",
    "CONTENTS",
    "KAFKA_PYTHON",
    "LEVELS",
    "OURS",
    "PEERS",
    "Library",
    "Row",
    "libraries",
    "rows",
    "written",
]

AIOKAFKA: Final = "aiokafka"
KAFKA_PYTHON: Final = "kafka-python"
PEERS: Final = (AIOKAFKA, KAFKA_PYTHON)
OURS: Final = tuple(name for name in BACKENDS if name == "python" or name == backend())
"""Our implementations by backend, the fastest first."""

Row = tuple[int, bytes | None, bytes, list[tuple[str, bytes]]]
"""The data of a record: timestamp, key, value and headers."""

_START: Final = 1_750_000_000_000
_IN_A_MILLISECOND: Final = 10
LEVELS: Final[dict[CompressionType, dict[str, int | None]]] = {
    CompressionType.GZIP: {AIOKAFKA: 9, KAFKA_PYTHON: 9},
    CompressionType.SNAPPY: {AIOKAFKA: None, KAFKA_PYTHON: None},
    CompressionType.LZ4: {AIOKAFKA: 8, KAFKA_PYTHON: 9},
    CompressionType.ZSTD: {AIOKAFKA: 3, KAFKA_PYTHON: 3},
}
"""Our compression levels for each peer: nearest to its own. Level 9 of lz4 is its fast compressor."""


@frozen
class Library:
    """One library's operations on a batch; each takes the result of ``rows`` or ``written``."""

    read: Callable[[bytes], list[Any]]
    """Verifies the checksum and returns a list of the records."""
    lazily: Callable[[bytes], Sequence[Any]]
    """Verifies the checksum and returns the records, created lazily if the library supports it."""
    fields: Callable[[bytes], None]
    """The same in a loop that reads all five fields of each record."""
    values: Callable[[bytes], list[Any]]
    """Verifies the checksum and returns a list of the values."""
    write: Callable[[list[Row], CompressionType, int | None], bytes | bytearray]
    """Also takes a level, which peers with a fixed level ignore."""


def _plain(count: int) -> Iterable[Row]:
    random = Random(4)
    for number in range(count):
        yield _START + number // _IN_A_MILLISECOND, None, random.randbytes(100), []


def _own_times(count: int) -> Iterable[Row]:
    return ((_START + number, key, value, headers) for number, (_, key, value, headers) in enumerate(_plain(count)))


def _headers(count: int) -> Iterable[Row]:
    for number, (time, _, value, _) in enumerate(_plain(count)):
        yield time, b"key-%07d" % number, value, [("source", b"till-17"), ("trace", b"%016x" % (number * 7919))]


def _text(count: int) -> Iterable[Row]:
    random = Random(5)
    for number in range(count):
        value = b'{"order": %07d, "item": "%s", "amount": %5d, "state": "%s", "shop": %4d, "note": "%x"}' % (
            number,
            random.choice((b"tea", b"coffee", b"chocolate", b"sugar")),
            random.randrange(100_000),
            random.choice((b"new", b"paid", b"sent")),
            random.randrange(5000),
            random.getrandbits(64),
        )
        yield _START + number // _IN_A_MILLISECOND, None, value, []


CONTENTS: Final[dict[str, tuple[Callable[[int], Iterable[Row]], int]]] = {
    "plain": (_plain, 9441),
    "own timestamps": (_own_times, 9441),
    "key and two headers": (_headers, 6948),
    "text": (_text, 9000),
}
"""Each about a megabyte: values of 100 random bytes; distinct timestamps; larger records; compressible text."""


def rows(content: str) -> list[Row]:
    """Return the records of a content."""
    make, count = CONTENTS[content]
    return list(make(count))


def written(content: str, codec: CompressionType = CompressionType.NONE) -> bytes:
    """Return a content as a batch in our encoding."""
    return _write(rows(content), codec)


def libraries() -> dict[str, Library]:
    """Return every participating library, our implementations first."""
    made = {name: _ours(backend_module("kafka_msgs.records", name)) for name in OURS}
    made[AIOKAFKA] = _peer(aiokafka_memory, aiokafka_records)
    made[KAFKA_PYTHON] = _peer(kafka_memory, kafka_records)
    return made


def _write(given: list[Row], codec: CompressionType, level: int | None = None) -> bytes:
    made = BatchBuilder(codec=codec, level=level)
    for time, key, value, headers in given:
        made.append(key, value, timestamp=time, headers=headers)
    return made.build()


def _ours(module: Any) -> Library:
    def chosen(work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            batch._IMPLEMENTATION = builder._IMPLEMENTATION = module  # type: ignore[misc]
            return work(*arguments)

        return run

    def only(data: bytes) -> Any:
        (found,) = read_batches(data)
        return found

    return Library(
        chosen(lambda data: list(only(data))),
        chosen(lambda data: only(data).lazy_records()),
        chosen(lambda data: _read_fields(only(data))),
        chosen(lambda data: only(data).values()),
        chosen(_write),
    )


def _read_fields(records: Iterable[Any]) -> None:
    for record in records:
        record.offset  # noqa: B018
        record.timestamp  # noqa: B018
        record.key  # noqa: B018
        record.value  # noqa: B018
        record.headers  # noqa: B018


def _peer(memory: Any, default: Any) -> Library:
    """Return the operations of a library with the module layout that aiokafka and kafka-python share."""

    def only(data: bytes) -> Any:
        found = memory.MemoryRecords(data).next_batch()
        assert found.validate_crc()
        return found

    def write(given: list[Row], codec: CompressionType, level: int | None) -> bytes | bytearray:
        made = default.DefaultRecordBatchBuilder(2, int(codec), 0, -1, -1, -1, 1 << 30)
        for offset, (time, key, value, headers) in enumerate(given):
            made.append(offset, time, key, value, headers)
        done: bytes | bytearray = made.build()
        return done

    return Library(
        lambda data: list(only(data)),
        lambda data: list(only(data)),
        lambda data: _read_fields(only(data)),
        lambda data: [record.value for record in only(data)],
        write,
    )
