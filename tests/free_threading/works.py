"""Work for threads: functions that return the same value in every thread, on shared objects."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random
from typing import Any, Final

from kafka_msgs import CodecOptions, FetchResponse, MetadataResponse, OffsetFetchRequest, evolve
from kafka_msgs._backend import backend_module
from kafka_msgs.codec import codec_for
from kafka_msgs.codec.field_access import Patch, Peek
from kafka_msgs.errors import DecodeError, EncodeError
from kafka_msgs.records import BatchBuilder, ReadOptions, RecordBatch, read_batches
from kafka_msgs.testing.random_values import random_message

__all__ = ["Work", "works"]

Work = Callable[[], Any]

_LOG: Final = backend_module("kafka_msgs.log")
_RECORDS: Final = backend_module("kafka_msgs.records")

_CASES: Final = ((MetadataResponse, 12), (FetchResponse, 12), (OffsetFetchRequest, 8))


def works() -> Iterator[tuple[str, Work]]:
    """Yield all work functions with their names."""
    for number, (cls, version) in enumerate(_CASES):
        message: Any = random_message(cls, version, Random(number), max_elements=4)
        for name, work in _message_works(cls, version, message):
            yield f"{cls.__name__} {name}", work
    yield from _part_works()
    yield from _record_works()
    yield from _column_works()


def _message_works(cls: Any, version: int, message: Any) -> Iterator[tuple[str, Work]]:
    data = message.encode(version)
    options = [CodecOptions(memoryview_records=number % 2 == 0) for number in range(4)]

    def refuse() -> str:
        with suppress(DecodeError):
            return repr(cls.decode(data[:-1], version))
        with suppress(EncodeError):
            return repr(evolve(message, unknown_tagged_fields=((-1, b""),)).encode(version))
        return "refused"

    def change() -> Any:
        return evolve(message, unknown_tagged_fields=((99_999, b"new"),))

    yield "decode", lambda: cls.decode(data, version)
    yield "decode bytearray", lambda: cls.decode(bytearray(data), version)
    yield "read", lambda: cls.read(b"ab" + data, version, 2)
    yield "encode", lambda: message.encode(version)
    yield "options", lambda: [cls.decode(data, version, options=each) == message for each in options]
    yield "codec", lambda: codec_for(cls, version).encode(message)
    yield "all versions", lambda: [_encoded(cls(), each) for each in cls.INFO.versions]
    yield "refuse", refuse
    yield "hash", lambda: hash(message)
    yield "equal", lambda: (message == cls.decode(data, version), message != cls())
    yield "repr", lambda: repr(message)
    yield "evolve", change
    yield "pickle", lambda: pickle.loads(pickle.dumps(message)) == message
    yield "copy", lambda: copy.deepcopy([copy.copy(message)])[0] == message
    yield "json", lambda: cls.from_json(message.to_json(version), version) == message


def _encoded(message: Any, version: int) -> Any:
    with suppress(EncodeError):
        return message.encode(version)


def _part_works() -> Iterator[tuple[str, Work]]:
    data = random_message(MetadataResponse, 12, Random(5), max_elements=4).encode(12)
    peek = Peek(MetadataResponse, 12, "brokers[].host", "topics[].partitions[].leader_id")
    patch = Patch(MetadataResponse, 12, {"brokers[].host": lambda host: f"{host}.local"})
    yield "peek", lambda: peek(data)
    yield "patch", lambda: patch(data)
    yield "new part", lambda: Peek(MetadataResponse, 11, "controller_id")(MetadataResponse(controller_id=5).encode(11))


def _record_works() -> Iterator[tuple[str, Work]]:
    def build() -> bytes:
        builder = BatchBuilder()
        for number in range(150):
            headers: Any = [("name", b"x"), ("größe", None)] if number % 3 else ((("name", b"x"),))
            builder.append(b"key" * (number % 4), memoryview(b"value"), timestamp=number // 4, headers=headers)
        return builder.build()

    data = build()
    (batch,) = read_batches(data)
    assert isinstance(batch, RecordBatch)
    yield "build", build
    yield "read", lambda: [list(each.records()) for each in read_batches(data)]
    yield "records", lambda: [(each.offset, each.key, each.headers) for each in batch.records()]
    yield "views", lambda: [list(each) for each in read_batches(data, ReadOptions(zero_copy=True))]
    yield "lazy", lambda: batch.lazy_records()[1:150:40]
    yield "placed", lambda: batch.consumer_records("topic", 3)
    yield "lists", lambda: (batch.offsets(), batch.timestamps(), batch.keys(), batch.values())
    yield "count", lambda: _LOG.count_batches(data, 0, len(data), True)
    yield "hash of a key", lambda: _RECORDS.murmur2(b"key")


def _column_works() -> Iterator[tuple[str, Work]]:
    try:
        import pyarrow as pa

        from kafka_msgs.columns import decode_column, encode_column
    except ImportError:
        return
    rows = [random_message(OffsetFetchRequest, 8, Random(seed)).encode(8) for seed in range(20)]
    column = pa.array([*rows, None, b"bad"], pa.binary())
    decoded = decode_column(column, OffsetFetchRequest, 8).values
    yield "decode column", lambda: decode_column(column, OffsetFetchRequest, 8).values.to_pylist()
    yield "encode column", lambda: encode_column(decoded, OffsetFetchRequest, 8).values.to_pylist()
