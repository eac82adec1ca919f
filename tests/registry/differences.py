"""Payloads that this library and the Java libraries under Confluent's deserializers decode: the differences."""

from __future__ import annotations

import json
import math
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from decimal import Context, Decimal
from random import Random
from typing import Any

import pyarrow as pa

from kafka_msgs.columns import DecodedColumn
from kafka_msgs.errors import KafkaMsgsError, RegisteredSchemaError
from kafka_msgs.primitives import read_uvarint
from kafka_msgs.registry import PayloadDeserializer, RegisteredSchema, StaticSchemas, decode_payloads
from tests.registry.avro_schemas import random_schema, reader_of
from tests.registry.java_values import java_form, java_message, without_branches
from tests.registry.oracle import RegistryOracle

__all__ = ["avro_differences", "json_differences", "protobuf_differences"]

WRITER, READER = 1, 2
STRICTER = (
    "it has an array of items without bytes",  # a few bytes could inflate their number
    "date value out of range",  # Python's dates end in the year 9999
    "UnknownType",  # Java allows a reference to a type before its definition
    "codec can't decode byte",  # Java replaces bytes that are not UTF-8
)
"""The reasons for which this library refuses a payload that Java reads."""

WRONG = ("Collection claims",)
"""The reasons for which Java refuses valid payloads: it expects array items in the size of the reader's type."""


def _payload(data: bytes, indexes: bytes = b"") -> bytes:
    return b"\0" + WRITER.to_bytes(4, "big") + indexes + data


def _static(kind: Any, writer: str, reader: str) -> StaticSchemas:
    texts = {WRITER: writer, READER: reader}
    schemas = [RegisteredSchema(id_, kind, text, (), f"s{id_}", 1) for id_, text in texts.items()]
    return StaticSchemas(schemas, source="test")


def _sorted(value: Any) -> Any:
    """Return a value of the oracle with the entries of maps in order."""
    if isinstance(value, list):
        return list(map(_sorted, value))
    if isinstance(value, dict):
        if [*value] == ["entries"]:
            return {"entries": sorted(map(_sorted, value["entries"]), key=str)}
        return {name: _sorted(each) for name, each in value.items()}
    return value


def avro_differences(oracle: RegistryOracle, seeds: Sequence[int]) -> Iterator[str]:
    """Yield the differences for random writers' schemas, values and readers' schemas."""
    pairs = [(seed, writer := random_schema(Random(seed)), reader_of(writer, Random(seed))) for seed in seeds]
    written = oracle.ask([{"op": "avro-write", "writer": writer, "seed": seed} for seed, writer, _ in pairs])
    usable = [(*pair, each["value"]) for pair, each in zip(pairs, written, strict=True) if "value" in each]
    cases = [(seed, writer, read, data) for seed, writer, reader, data in usable for read in (writer, reader)]
    answers = oracle.ask(
        [{"op": "avro-read", "writer": writer, "reader": reader, "data": data} for _, writer, reader, data in cases]
    )
    for (seed, writer, reader, data), answer in zip(cases, answers, strict=True):
        written_data = avro_data(writer, b64decode(data))
        if (difference := _avro_difference(writer, reader, _payload(written_data), answer)) is not None:
            yield f"seed {seed}: {difference}\n  writer {writer}\n  reader {reader}\n  data {data}"


def avro_data(writer: str, data: bytes) -> bytes:
    """Return encoded data as in a payload: Confluent writes bytes as they are, without the length before them."""
    schema = json.loads(writer)
    if schema == "bytes" or (isinstance(schema, dict) and schema["type"] == "bytes" and '"decimal"' not in writer):
        _, start = read_uvarint(data, 0)
        return data[start:]
    return data


def _avro_difference(writer: str, reader: str, payload: bytes, answer: dict[str, Any]) -> str | None:
    schemas = _static("AVRO", writer, reader)
    try:
        found = java_form(PayloadDeserializer(schemas, schema=schemas.by_id(READER))(payload))
    except KafkaMsgsError as error:
        is_stricter = any(reason in str(error) for reason in STRICTER)
        return None if "refused" in answer or is_stricter else f"refused: {error}; Java has {answer['value']}"
    if any(reason in answer.get("refused", "") for reason in WRONG):
        return None
    if "refused" in answer:
        return f"Java refused: {answer['refused']}; here {found}"
    expected = without_branches(answer["value"])
    return f"{found} != {expected}" if found != expected else _column_difference(schemas, payload, answer["value"])


def _column_difference(schemas: StaticSchemas, payload: bytes, expected: Any) -> str | None:
    """Return the difference of a column, which must have the branches of unions; None for a schema without a column."""
    try:
        column = decode_payloads(pa.array([payload], pa.binary()), schemas.by_id(READER), schemas)
    except RegisteredSchemaError:
        return None
    if column.error_count:
        errors = column.errors.to_pylist()
        return None if any(reason in str(errors) for reason in NARROWER) else f"the column has {errors}"
    try:
        (row,) = column.values.to_pylist()
    except (ValueError, OverflowError):  # Python's dates end in the year 9999
        return None
    except IndexError as error:
        return f"the column is invalid: {error}; {column.values.type}"
    return None if _is_row(row, expected) else f"the column has {row}, not {expected}"


def _is_row(row: Any, expected: Any) -> bool:
    """Return whether a value of a column is one of the oracle."""
    if isinstance(expected, list):
        return len(row) == len(expected) and all(map(_is_row, row, expected))
    if not isinstance(expected, dict):
        return bool(row == expected)
    ((name, content),) = expected.items()
    if name == "fields":
        row = dict(row)
        return row.keys() == content.keys() and all(_is_row(row[key], each) for key, each in content.items())
    if name == "branch":
        ((key, value),) = ((key, each) for key, each in row.items() if each is not None)
        return key == f"member{content['number']}" and _is_row(value, content["value"])
    if name == "time":
        return str(row) in (content, str(int(content) // 1000))
    if name == "decimal":
        unscaled, scale = map(int, content.split("/"))
        if isinstance(row, bytes):  # its precision exceeds the limit of Arrow
            return int.from_bytes(row, "big", signed=True) == unscaled
        return bool(row == Decimal(unscaled).scaleb(-scale, Context(prec=10_000)))
    return bool(java_form(row) == expected)


NARROWER = (
    "does not fit into precision",  # Arrow's decimals have a precision
    "nan",
)
"""The reasons for errors in a column without a difference."""


def json_differences(oracle: RegistryOracle, texts: Sequence[bytes]) -> Iterator[str]:
    """Yield the differences for JSON texts."""
    schema = RegisteredSchema(WRITER, "JSON", "{}", (), "s", 1)
    deserialize = PayloadDeserializer(StaticSchemas([schema], source="test"))
    answers = oracle.ask([{"op": "json-read", "data": b64encode(text).decode()} for text in texts])
    for text, answer in zip(texts, answers, strict=True):
        try:
            found: Any = java_form(deserialize(_payload(text)))
        except KafkaMsgsError as error:
            found = f"refused: {error}"
        expected = answer.get("value", "refused")
        is_refused = expected == "refused" or any(reason in str(found) for reason in STRICTER)
        if found != expected and not (is_refused and str(found).startswith("refused")):
            yield f"{text[:200]!r}: {found} != {answer}"


def protobuf_differences(
    oracle: RegistryOracle,
    proto: str,
    messages: Sequence[tuple[str, bytes]],
    seeds: Sequence[int] = (),
    values: Sequence[bytes] = (),
) -> Iterator[str]:
    """Yield the differences for random messages of a file, and for the bytes of ``values``.

    ``messages`` are names with the bytes of their indexes.
    """
    from kafka_msgs.registry.protobuf import compile_file_set

    schema = RegisteredSchema(WRITER, "PROTOBUF", proto, (), "s", 1)
    schemas = StaticSchemas([schema], source="test")
    files = b64encode(compile_file_set(schema, schemas)).decode()
    for name, indexes in messages:
        command = {"files": files, "message": name}
        written = oracle.ask([{"op": "protobuf-write", **command, "seed": seed} for seed in seeds])
        data = [*(each["value"] for each in written), *(b64encode(each).decode() for each in values)]
        answers = oracle.ask([{"op": "protobuf-read", **command, "data": each} for each in data])
        payloads = [_payload(b64decode(each), indexes) for each in data]
        column = decode_payloads(pa.array(payloads, pa.binary()), schema, schemas, message=name)
        assert isinstance(column, DecodedColumn)
        deserialize = PayloadDeserializer(schemas)
        for payload, answer, row, error in zip(
            payloads, answers, column.values.to_pylist(), column.errors.to_pylist(), strict=True
        ):
            yield from _protobuf_difference(deserialize, name, payload, answer, row, error)


def _protobuf_difference(
    deserialize: PayloadDeserializer, name: str, payload: bytes, answer: dict[str, Any], row: Any, error: Any
) -> Iterator[str]:
    try:
        message = deserialize(payload)
    except KafkaMsgsError as refusal:
        if "refused" not in answer:
            yield f"{name} {payload.hex()}: refused: {refusal}; Java has {answer['value']}"
        return
    expected, found = _sorted(answer.get("value", "refused")), java_message(message)
    if message.DESCRIPTOR.full_name != name or found != expected:
        yield f"{name} {payload.hex()}: {message.DESCRIPTOR.full_name} {found} != {expected}"
    elif error is not None and "too large to convert" not in str(error):  # a Timestamp beyond 64 bits
        yield f"{name} {payload.hex()}: the column has {error}"
    elif error is None and not _row_equals(row, expected):
        yield f"{name} {payload.hex()}: the column has {row} for {expected}"


def _row_equals(row: Any, expected: Any) -> bool:
    """Return whether a value of a column equals a message, whose well-known types have their own columns."""
    if not isinstance(expected, dict):
        return bool(row == expected) if not isinstance(expected, list) else _lists_equal(row, expected)
    if "fields" in expected:
        fields = expected["fields"]
        if isinstance(row, dict):
            return row.keys() == fields.keys() and all(_row_equals(row[name], each) for name, each in fields.items())
        if [*fields] == ["value"]:
            return _row_equals(row, fields["value"])
        return [*fields] == ["seconds", "nanos"]
    if "entries" in expected:
        pairs = sorted(([_number(key), value] for key, value in row), key=lambda each: str(each[0]))
        others = sorted(expected["entries"], key=lambda each: str(each[0]))
        return len(pairs) == len(others) and all(
            one[0] == two[0] and _row_equals(one[1], two[1]) for one, two in zip(pairs, others, strict=True)
        )
    value = _number(row)
    return bool(value == expected) or (isinstance(row, float) and math.isnan(row))


def _number(value: Any) -> Any:
    """Return a value of a column in the form of the oracle; columns have unsigned numbers of 64 bits as decimals."""
    return java_form(int(value) if isinstance(value, Decimal) else value)


def _lists_equal(row: Any, expected: list[Any]) -> bool:
    return len(row) == len(expected) and all(_row_equals(one, two) for one, two in zip(row, expected, strict=True))
