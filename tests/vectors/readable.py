"""Writes the examples on the message pages: ``python -m tests.vectors.readable``, which needs Java and Maven.

One message of each kind at its highest version, with plausible values, one element in each array. Kafka's own classes
confirm the bytes. ``docs/messages/examples.json`` has the result: a version and bytes by message name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from kafka_msgs.catalog import iter_message_classes
from kafka_msgs.message import Message
from kafka_msgs.records import BatchBuilder
from kafka_msgs.schema import FieldInfo, fields
from tests.oracle.class_pairs import subjects_of
from tests.oracle.driver import Oracle
from tests.oracle.parity import compare_values

__all__ = ["EXAMPLES", "example", "main"]

EXAMPLES: Final = Path(__file__).parents[2] / "docs" / "messages" / "examples.json"

_UUID: Final = UUID("f3b0c442-98fc-4c14-9afb-f4c8996fb924")
_TEXT: Final[Mapping[str, str]] = {
    "group": "billing",
    "topic": "orders",
    "transactional": "payments-1",
    "member": "consumer-1",
    "host": "broker-1.example",
    "principal": "User:alice",
    "rack": "rack-a",
    "protocol_type": "consumer",
    "assignor": "uniform",
    "metadata": "",
    "client_id": "app-1",
    "mechanism": "SCRAM-SHA-256",
    "regex": "orders.*",
    "error_message": "an explanation",
}
"""Texts by a part of the entity type or of the attribute, the first that fits."""

_NUMBERS: Final[Mapping[str, int]] = {
    "error_code": 0,
    "partition": 0,
    "leader_epoch": 5,
    "epoch": 3,
    "offset": 42,
    "timestamp": 1_767_225_600_000,
    "port": 9092,
    "_ms": 30_000,
    "bytes": 1_048_576,
    "producer_id": 4000,
    "replica": 1,
    "broker": 1,
    "leader": 1,
    "version": 1,
}


def main() -> None:
    """Write the example of every message of the release, each confirmed by Kafka."""
    oracle = Oracle.shared()
    found = {}
    for cls in iter_message_classes():
        version, message = example(cls)
        subject = next(subject for subject in subjects_of(cls.INFO.name, oracle) if subject.version == version)
        tally = compare_values(oracle, subject, [message])
        if tally.differences:
            raise SystemExit(str(tally.differences[0]))
        found[cls.INFO.name] = {"version": version, "hex": message.encode(version).hex()}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(facts)}" for name, facts in sorted(found.items()))
    EXAMPLES.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def example(cls: type[Message]) -> tuple[int, Message]:
    """Return the highest version of a message, and a message with plausible values at it."""
    version = cls.INFO.versions.highest
    message: Message = _struct(cls, version)
    return version, message


def _struct(cls: type[Any], version: int) -> Any:
    return cls(**{info.attribute: _value(info, version) for info in fields(cls) if version in info.versions})


def _value(info: FieldInfo, version: int) -> Any:
    if info.is_array:
        return (_element(info, version),)
    return _element(info, version)


def _element(info: FieldInfo, version: int) -> Any:
    if info.struct is not None:
        return _struct(info.struct, version)
    make = _KINDS.get(info.element_type, _number)
    return make(f"{info.entity_type or ''} {info.attribute}".lower())


def _number(name: str) -> int:
    return next((number for part, number in _NUMBERS.items() if part in name), 1)


def _text(name: str) -> str:
    return next((text for part, text in _TEXT.items() if part in name), name.split()[-1].replace("_", "-"))


def _small(name: str) -> int:
    return min(_number(name), 100)


def _batch(_: str) -> bytes:
    builder = BatchBuilder()
    builder.append(None, b"one tea", timestamp=1_767_225_600_000)
    return builder.build()


_KINDS: Final[Mapping[str, Any]] = {
    "string": _text,
    "bool": lambda _: True,
    "bytes": lambda _: b"\x01\x02\x03",
    "records": _batch,
    "uuid": lambda _: _UUID,
    "float64": lambda _: 0.5,
    "int8": _small,
}


if __name__ == "__main__":
    main()
