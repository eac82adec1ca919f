"""Reads and writes the files of vectors; owns their layout, which ``README.md`` describes for others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from attrs import asdict, frozen

from kafka_msgs.errors import (
    DecodeError,
    InvalidLengthError,
    InvalidTagError,
    InvalidUtf8Error,
    InvalidVarintError,
    TrailingDataError,
    TruncatedError,
    UnexpectedNullError,
)

__all__ = ["FOLDER", "REASONS", "Invalid", "Valid", "Vectors", "read", "read_all", "write"]

FOLDER: Final = Path(__file__).parent / "messages"

REASONS: Final[dict[str, type[DecodeError]]] = {
    "truncated": TruncatedError,
    "length": InvalidLengthError,
    "null": UnexpectedNullError,
    "varint": InvalidVarintError,
    "tag": InvalidTagError,
    "text": InvalidUtf8Error,
    "trailing bytes": TrailingDataError,
}
"""Why bytes must be refused, and the error that this library raises for it."""


@frozen
class Valid:
    """Bytes that are a message, and its JSON form."""

    version: int
    hex: str
    json: dict[str, Any]
    unknown_tags: bool
    """Whether the bytes hold tagged fields that the definition does not name, which the JSON form leaves out."""


@frozen
class Invalid:
    """Bytes that must be refused."""

    version: int
    hex: str
    reason: str
    """What is wrong: one of ``REASONS``."""
    kafka: str
    """What Kafka's own class does: ``refuses``, or ``accepts`` where this library is stricter."""


@frozen
class Vectors:
    """All vectors of one message."""

    message: str
    valid: tuple[Valid, ...]
    invalid: tuple[Invalid, ...]


def read(path: Path) -> Vectors:
    """Read one file."""
    content = json.loads(path.read_text(encoding="utf-8"))
    valid = tuple(Valid(**vector) for vector in content["valid"])
    return Vectors(content["message"], valid, tuple(Invalid(**vector) for vector in content["invalid"]))


def read_all() -> Iterator[Vectors]:
    """Read every file, by message name."""
    return map(read, sorted(FOLDER.glob("*.json")))


def write(vectors: Vectors) -> None:
    """Write one file, a vector a line."""
    groups = [f'"message": {json.dumps(vectors.message)}']
    for group, members in (("valid", vectors.valid), ("invalid", vectors.invalid)):
        lines = ",\n".join(json.dumps(asdict(member), allow_nan=False, ensure_ascii=False) for member in members)
        groups.append(f'"{group}": [\n{lines}\n]')
    text = "{\n" + ",\n".join(groups) + "\n}\n"
    (FOLDER / f"{vectors.message}.json").write_text(text, encoding="utf-8")
