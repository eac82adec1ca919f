"""Valid calls of all functions of the C core, for ``attack`` to modify."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import attrs

from kafka_msgs import OffsetFetchRequest, OffsetFetchResponse
from kafka_msgs._core import extension
from kafka_msgs.codec.native import _Lowering
from kafka_msgs.codec.plan import compile_plan
from kafka_msgs.records import BatchBuilder, Record
from kafka_msgs.schema import MessageStruct
from kafka_msgs.testing.random_values import random_message

__all__ = ["Call", "calls", "codec_arguments", "plain_class"]

VERSION = 8


@attrs.frozen
class Call:
    """A function, its arguments, and calls of its result."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    named: dict[str, Any] = attrs.Factory(dict)
    further: Callable[[Any], None] = lambda result: None


def plain_class(name: str = "Plain") -> Any:
    """Return an unsealed class with two slots."""
    return type(name, (), {"__slots__": ("first", "second"), "first_default": None})


def codec_arguments(cls: type[MessageStruct], version: int) -> tuple[Any, ...]:
    """Return the arguments for the codec of a message."""
    structs = _Lowering().program(compile_plan(cls, version))
    return (structs, 1000, 100_000, False, False, None, *(lambda *given: ValueError(given),) * 3)


def calls(rng: Random) -> Iterator[Call]:
    """Yield one call of everything callable, with fresh objects."""
    yield from _value_calls()
    yield from _codec_calls(rng)
    yield from _record_calls(rng)
    yield from _column_calls(rng)


def _value_calls() -> Iterator[Call]:
    cls = plain_class()
    fields = (("first", None), ("second", 5))

    def seal(layout: Any) -> None:
        value = cls()
        assert value == cls() or hash(value) is None
        extension.evolve(value, first=1)

    yield Call("Layout", extension.Layout, (cls, fields, False), further=seal)
    yield Call("evolve", extension.evolve, (OffsetFetchRequest(),), {"group_id": "a"})
    yield Call("Method", extension.Method, (len, 1, ("cls", "data", "version", None, "options")), further=_call_method)


def _call_method(method: Any) -> None:
    for given in ((), (OffsetFetchRequest,), (OffsetFetchRequest, b"", 1), (OffsetFetchRequest(), 1)):
        for named in ({}, {"version": 1}, {"data": b"", "version": 1}, {"version": 1, "options": None}):
            _try(method, *given, **named)


def _try(function: Callable[..., Any], *given: Any, **named: Any) -> Any:
    try:
        return function(*given, **named)
    except Exception as error:
        return error


def _codec_calls(rng: Random) -> Iterator[Call]:
    message = random_message(OffsetFetchRequest, VERSION, rng)
    data = message.encode(VERSION)

    def use(codec: Any) -> None:
        for each in (data, data[:-1], bytes(40), b"\1" * 40, b""):
            _try(codec.decode, each)
            _try(codec.patch, each, 0, (lambda value: value,))
        for value in (message, OffsetFetchRequest(), None):
            _try(codec.encode, value)

    arguments = codec_arguments(OffsetFetchRequest, VERSION)
    codec = extension.Codec(*arguments)
    yield Call("Codec", extension.Codec, arguments, further=use)
    yield Call("Codec.decode", codec.decode, (data, 0))
    yield Call("Codec.read", codec.read, (data, 0))
    yield Call("Codec.patch", codec.patch, (data, 0, ()))
    yield Call("Codec.encode", codec.encode, (message,))


def _record_calls(rng: Random) -> Iterator[Call]:
    builder = BatchBuilder()
    for number in range(5):
        builder.append(b"key", rng.randbytes(9), timestamp=number, headers=[("h", b"x")])
    batch = builder.build()
    end = len(batch)
    yield Call("read_records", extension.read_records, (0, batch, 61, end, 5, 0, 0, None, True, "topic", 0))
    yield Call("records_exceed", extension.records_exceed, (batch, 61, end, 5, 7))
    yield Call("murmur2", extension.murmur2, (b"key",))
    yield Call("DeliveryStorage", extension.DeliveryStorage, (None, 5, 6))
    yield Call("bind_records", extension.bind_records, (Record, Record, len))
    yield Call("RecordStorage", lambda value: setattr(extension.RecordStorage(), "offset", value), (5,))
    yield Call("count_batches", extension.count_batches, (batch, 0, end, len, 0, 0, 99))
    yield Call("RecordAppender", extension.RecordAppender, (0, 99, 0, 1000), further=_fill)
    yield Call("append", extension.RecordAppender(0, 99, 0, None).append, (b"k", b"v"), {"headers": (("h", b"x"),)})
    column = ((0).to_bytes(8, "little") + (2).to_bytes(8, "little"), b"ab", b"\1", 0)
    rows = (0, 1, 5, *column, *column, bytes(8), 0)
    yield Call("append_rows", extension.RecordAppender(0, 99, 0, None).append_rows, rows)


def _fill(collector: Any) -> None:
    for key in (b"key", None, memoryview(b"view")):
        _try(collector.append, key, b"value", timestamp=5, headers=[("a", b"b")])
    with memoryview(collector) as view:
        _try(collector.append, b"", bytes(len(view)))
    _try(collector.sealed, bytes(61))


def _column_calls(rng: Random) -> Iterator[Call]:
    try:
        from kafka_msgs.codec import DEFAULT_OPTIONS
        from kafka_msgs.columns.lowering import Lowering
        from kafka_msgs.columns.types import arrow_type
    except ImportError:
        return
    for cls, version in ((OffsetFetchResponse, VERSION), (OffsetFetchRequest, None)):
        arguments = (*Lowering(arrow_type(cls)).program(cls, version, DEFAULT_OPTIONS), bytearray)
        column = _texts([random_message(cls, VERSION, rng).encode(VERSION) for _ in range(5)])
        program = extension.ColumnProgram(*arguments)
        yield Call("ColumnProgram", extension.ColumnProgram, arguments, further=lambda made: _run(made, column))  # noqa: B023
        yield Call("ColumnProgram.decode", program.decode, ((column,), 0, 5))
        whole = extension.ColumnProgram(*Lowering(arrow_type(cls)).program(cls, VERSION, DEFAULT_OPTIONS), bytearray)
        yield Call("ColumnProgram.encode", whole.encode, (_given(arguments[0], whole, column), 0, 5, _number(), False))
    columns = extension.RecordColumns((0, 1, 2, 3, 4), bytearray, False)
    batch = BatchBuilder()
    batch.append(b"key", b"value", headers=[("h", b"x")])
    data = batch.build()
    yield Call("RecordColumns", extension.RecordColumns, ((0, 2, 4, 7), bytearray, False), further=_collect)
    yield Call("RecordColumns.append", columns.append, (data, 0, len(data), 0, 100, 100, 1000, lambda *given: None))


def _texts(rows: list[bytes]) -> tuple[Any, ...]:
    """Return a binary column in the layout of the core."""
    ends = [sum(map(len, rows[:number])) for number in range(len(rows) + 1)]
    return 4, False, 0, len(rows), None, b"".join(end.to_bytes(4, "little") for end in ends), b"".join(rows)


def _number() -> tuple[Any, ...]:
    return -2, True, 0, 1, None, None, VERSION.to_bytes(2, "little")


def _given(columns: tuple[Any, ...], program: Any, column: Any) -> tuple[Any, ...]:
    """Return decoded columns as columns to encode, with the core's own order and widths."""
    made, _ = program.decode((column,), 0, 5)
    widths = {0: -1, 2: 4, 3: 4, 4: 0}
    return tuple(
        (widths.get(kind, -width), False, 0, length, valid, offsets, data)
        for (kind, width, _), (length, _, valid, offsets, data, _) in zip(columns, made, strict=True)
    )


def _run(program: Any, column: Any) -> None:
    made = _try(program.decode, (column,), 0, 5)
    _try(program.decode, (_texts([bytes(90), b"\1" * 90, b""]),), 0, 3)
    if isinstance(made, tuple):
        given = tuple((4, False, 0, length, *buffers) for length, _, *buffers, _ in made[0])
        _try(program.encode, given, 0, 5, _number(), False)


def _collect(columns: Any) -> None:
    batch = BatchBuilder()
    batch.append(b"key", b"value", headers=[("h", b"x")])
    data = batch.build()
    for _ in range(3):
        _try(columns.append, data, 0, len(data), 0, 100, 100, 1000, lambda *given: None)
    _try(columns.finish)
