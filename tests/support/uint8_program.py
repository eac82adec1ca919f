"""Checks of the type ``uint8``, for a copy of the tree whose table includes it.

``tests/codec/test_new_primitive.py`` runs this program. It prints the names of the executors that passed.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import find

from kafka_msgs import Message, compile_schema
from kafka_msgs.codec import DEFAULT_OPTIONS
from kafka_msgs.codec.codec import Codec
from kafka_msgs.codec.executors import EXECUTORS
from kafka_msgs.codec.plan import compile_plan
from kafka_msgs.columns import arrow_type, decode_column, encode_column
from kafka_msgs.errors import DecodeError, EncodeError, JsonFormError, SchemaError
from kafka_msgs.testing.random_values import random_message
from kafka_msgs.testing.strategies import messages

FIELDS: list[dict[str, Any]] = [
    {"name": "Small", "type": "uint8", "versions": "0+", "default": "255"},
    {"name": "Many", "type": "[]uint8", "versions": "0+"},
    {"name": "Tagged", "type": "uint8", "versions": "1+", "taggedVersions": "1+", "tag": 0, "default": 7},
]
WIRE = {0: bytes.fromhex("c8 00000002 00ff"), 1: bytes.fromhex("c8 03 00ff 01 00 01 80")}


def compiled(*fields: dict[str, Any]) -> type[Message]:
    """Return the class of a message with these fields."""
    definition = {"type": "data", "name": "Small", "validVersions": "0-1", "flexibleVersions": "1+"}
    return compile_schema(json.dumps(definition | {"fields": fields}))


def refuses(error: type[Exception], text: str, function: Any, *arguments: Any) -> None:
    """Check that a call fails with this text."""
    with pytest.raises(error, match=text):
        function(*arguments)


def check_executor(cls: Any, name: str) -> None:
    """Check bytes, values and errors of one executor."""
    for version, data in WIRE.items():
        codec: Any = Codec(compile_plan(cls, version), DEFAULT_OPTIONS, EXECUTORS[name])
        message: Any = codec.decode(data)
        assert (message.small, message.many, message.tagged) == (200, (0, 255), 128 if version else 7)
        assert codec.encode(message) == data
        refuses(DecodeError, "", codec.decode, data[:-1])
        for wrong in (-1, 256):
            refuses(EncodeError, "out of range for uint8", codec.encode, cls(small=wrong))
            refuses(EncodeError, "out of range for uint8", codec.encode, cls(many=(wrong,)))
        for seed in range(50):
            drawn = random_message(cls, version, Random(seed))
            assert codec.decode(codec.encode(drawn)) == drawn


def check_json(cls: type[Message]) -> None:
    """Check the JSON form both ways."""
    form = {"small": 200, "many": [0, 255], "tagged": 128}
    assert cls.decode(WIRE[1], 1).to_json(1) == form
    assert cls.from_json(form, 1).encode(1) == WIRE[1]
    refuses(JsonFormError, "256 is out of range for uint8", cls.from_json, form | {"small": 256}, 1)


def check_columns(cls: type[Message]) -> None:
    """Check the columns both ways, including nulls and out-of-range values."""
    type_ = arrow_type(cls, 1)
    assert type_.field("small").type == pa.int16()
    assert type_.field("small").metadata == {b"kafka.type": b"uint8"}
    for version, data in WIRE.items():
        rows = decode_column([data, None, data[:-1]], cls, version)
        assert rows.values.is_valid().to_pylist() == [True, False, False]
        row = rows.values[0].as_py()
        assert (row["small"], row["many"], row.get("tagged", 7)) == (200, [0, 255], 128 if version else 7)
        assert encode_column(rows.values, cls, version).values.to_pylist() == [data, None, None]
    wrong = pa.array([{"small": 256}, {"small": 255}], pa.struct([("small", pa.int64())]))
    written = encode_column(wrong, cls, 1)
    assert written.values.to_pylist() == [None, cls().encode(1)]
    assert "256 is out of range for uint8" in written.errors[0].as_py()["reason"]


def check_strategies(cls: type[Message]) -> None:
    """Check that the strategies produce the minimum and maximum."""
    strategy: Any = messages(cls, 1)
    assert find(strategy, lambda message: message.small == 255)
    assert find(strategy, lambda message: 0 in message.many)


def main() -> None:
    """Run all checks with the environment's backend."""
    cls: Any = compiled(*FIELDS)
    assert (cls().small, cls.__annotations__["small"]) == (255, int)
    refuses(SchemaError, "out of range, uint8 holds 0 to 255", compiled, FIELDS[0] | {"default": "256"})
    for name in EXECUTORS:
        check_executor(cls, name)
    check_json(cls)
    check_columns(cls)
    check_strategies(cls)
    print(*EXECUTORS)


if __name__ == "__main__":
    main()
