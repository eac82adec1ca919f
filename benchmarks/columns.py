"""Bytes to Arrow columns and back: committed offsets compared with the codec row by row, and a batch of records with
record objects.

The offsets are 200,000 rows of an Arrow column, of the same length as the group coordinator's. Row by row means that
each row is decoded to an object, which is freed together with the list of all objects. kafka-python does not include
this message, so its decoder is generated from the same definition as our class.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final
from uuid import UUID

import pyarrow as pa
from aiokafka.record.default_records import DefaultRecordBatch
from kafka.protocol.api_data import ApiData
from rich.console import Console

from benchmarks import peers
from benchmarks.report import Figure, Times, print_figures
from benchmarks.timing import PROTOCOL, fastest
from kafka_msgs import MetadataResponse, OffsetCommitValue
from kafka_msgs.columns import decode_column, encode_column, read_record_table
from kafka_msgs.columns.objects import to_objects
from kafka_msgs.message import Message
from kafka_msgs.records import BatchBuilder, read_batches
from kafka_msgs.testing.random_values import random_message

__all__ = ["run"]

ROWS: Final = 200_000
METADATA: Final = 2_000
VERSION: Final = 4
RECORDS: Final = 9_441
"""The number of records with 100 random bytes in a batch of 1 MB."""

DEFINITION: Final = (
    Path(__file__).parents[1] / "message_defs" / "kafka" / "group-coordinator" / "OffsetCommitValue.json"
)
AIOKAFKA: Final = "aiokafka"
NATIVE: Final = "c, rows"
OBJECTS: Final = "objects"
SHARE: Final = 20
"""The divisor of the number of rows for the slowest method."""
ENCODED: Final = "codec"
TARGETS: Final = {"python, rows": 50.0, NATIVE: 8.0, peers.KAFKA_PYTHON: 45.0}
"""The minimum ratio of the peers' time to the time of columns of offsets."""


def run(console: Console, rounds: int) -> list[Figure]:
    """Measure, print, and return the figures."""
    protocol = PROTOCOL.format(rounds=rounds)
    figures = _offsets(rounds)
    print_figures(console, f"{ROWS:,} committed offsets to Arrow", protocol, figures)
    encoded = _encoded(rounds)
    print_figures(console, "Arrow to messages", protocol, encoded)
    records = _records(rounds)
    print_figures(console, f"A batch of {RECORDS:,} records to Arrow, checksum compared", protocol, records)
    return figures + encoded + records


# Messages


def _offsets(rounds: int) -> list[Figure]:
    rows = offsets(ROWS)
    array = pa.array(rows, pa.binary())
    prefixed = pa.array([VERSION.to_bytes(2, "big") + row for row in rows], pa.binary())
    theirs = kafka_python_decoder()
    cases: dict[str, Any] = {
        "columns": partial(decode_column, array, OffsetCommitValue, VERSION),
        "one column of six": partial(decode_column, array, OffsetCommitValue, VERSION, columns=["offset"]),
        "versions by row": partial(decode_column, prefixed, OffsetCommitValue),
        peers.KAFKA_PYTHON: partial(_each, array, partial(theirs.decode, version=VERSION, header=False)),
    }
    for name in peers.OURS:
        cases[f"{name}, rows"] = partial(_each, array, peers.codec(name, OffsetCommitValue, VERSION).decode)
    times = Times(fastest(cases, rounds))
    figures = [
        Figure(f"columns of offsets: {name} takes", times.ratio(name, "columns"), target=target)
        for name, target in TARGETS.items()
        if name in cases
    ]
    if NATIVE in cases:
        figures += [
            Figure(f"columns of offsets, {name}: {NATIVE} takes", times.ratio(NATIVE, name))
            for name in ("one column of six", "versions by row")
        ]
    figures.append(Figure("columns of offsets: rows decoded", ROWS / times.seconds["columns"] / 1e6, unit="M/s"))
    return figures


def offsets(count: int) -> list[bytes]:
    """Return committed offsets as the group coordinator writes them, without the version prefix."""
    random = Random(count)
    return [
        OffsetCommitValue(
            offset=random.randrange(1 << 40),
            leader_epoch=random.randrange(100),
            metadata=random.choice(("", f"consumer-{random.randrange(1000)}")),
            commit_timestamp=1_700_000_000_000 + number,
            topic_id=UUID(int=random.getrandbits(128)),
        ).encode(VERSION)
        for number in range(count)
    ]


def _each(array: pa.Array, decode: Callable[[bytes], Any]) -> list[Any]:
    return [decode(data) for data in array.to_pylist()]


def kafka_python_decoder() -> Any:
    """Return the class that kafka-python generates from the definition of committed offsets.

    kafka-python first searches its own package for a definition with the class's name, hence the name; the hook
    substitutes our definition.
    """
    definition = json.loads(DEFINITION.read_text()) | {"type": "data"}
    cls = type(ApiData)("ConsumerProtocolSubscription", (ApiData,), {"json_patch": staticmethod(lambda *_: definition)})
    row = offsets(1)[0]
    assert cls.decode(row, version=VERSION, header=False).encode(version=VERSION, header=False) == row
    return cls


# Encoding of columns


def _encoded(rounds: int) -> list[Figure]:
    """Measure columns to bytes, compared with creating and encoding objects row by row, and with the codec alone."""
    figures = []
    for cls, version, rows, target in (
        (OffsetCommitValue, VERSION, offsets(ROWS), 100.0),
        (MetadataResponse, 13, _metadata(METADATA), 20.0),
    ):
        array = decode_column(pa.array(rows, pa.binary()), cls, version).values
        few = array.slice(0, len(array) // SHARE)
        messages = [cls.decode(row, version) for row in rows]
        cases: dict[str, Any] = {
            "columns": partial(encode_column, array, cls, version),
            OBJECTS: partial(_encoded_as_objects, few, cls, version),
            ENCODED: partial(_encoded_each, messages, version),
        }
        assert cases["columns"]().values.to_pylist() == rows
        times = Times(fastest(cases, rounds))
        name = f"a column of {len(rows):,} {cls.INFO.name}"
        figures += [
            Figure(
                f"encode {name}: objects out of Arrow take",
                len(array) / len(few) * times.ratio(OBJECTS, "columns"),
                target=target,
            ),
            Figure(f"encode {name}: a loop over objects that are there takes", times.ratio(ENCODED, "columns")),
            Figure(f"encode {name}: rows", len(rows) / times.seconds["columns"] / 1e6, unit="M/s"),
        ]
    return figures


def _metadata(count: int) -> list[bytes]:
    return [random_message(MetadataResponse, 13, Random(number)).encode(13) for number in range(count)]


def _encoded_as_objects(array: pa.StructArray, cls: type[Message], version: int) -> list[bytes]:
    """Encode without columns, as a function over rows would do it."""
    return [row.encode(version) for row in to_objects(array, cls)]


def _encoded_each(messages: list[Any], version: int) -> pa.Array:
    return pa.array([message.encode(version) for message in messages], pa.binary())


# Records


def _records(rounds: int) -> list[Figure]:
    data = record_batch(RECORDS)
    cases: dict[str, Any] = {
        "columns": partial(_columns, data),
        "three columns": partial(_columns, data, ["offset", "timestamp", "value"]),
        "our list": partial(_our_list, data),
        AIOKAFKA: partial(_their_list, data),
    }
    assert _columns(data).column("value").to_pylist() == [record.value for record in _their_list(data)]
    times = Times(fastest(cases, rounds))
    return [
        Figure("columns of records: aiokafka's list takes", times.ratio(AIOKAFKA, "three columns"), target=10.0),
        Figure("columns of records: our list takes", times.ratio("our list", "three columns"), target=3.0),
        Figure("all columns of records: aiokafka's list takes", times.ratio(AIOKAFKA, "columns")),
        Figure("columns of records: read", len(data) / times.seconds["three columns"] / 1e6, unit="MB/s"),
    ]


def record_batch(count: int) -> bytes:
    """Return an uncompressed batch of records without keys and headers."""
    random = Random(count)
    builder = BatchBuilder()
    for number in range(count):
        builder.append(None, random.randbytes(100), timestamp=1_700_000_000_000 + number)
    return builder.build()


def _columns(data: bytes, columns: list[str] | None = None) -> Any:
    (table,) = read_record_table(data, columns=columns)
    return table


def _our_list(data: bytes) -> list[Any]:
    (batch,) = read_batches(data)
    return list(batch)


def _their_list(data: bytes) -> list[Any]:
    batch = DefaultRecordBatch(data)
    assert batch.validate_crc()
    return list(batch)
