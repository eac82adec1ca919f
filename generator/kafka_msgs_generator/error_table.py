"""The error codes of a Kafka release, extracted from its clients' jar without running its code.

The enumeration ``org.apache.kafka.common.protocol.Errors`` creates its constants in its static initializer: name,
ordinal, code, message, and a lambda that creates the exception. This module reads that linear bytecode as data. The
base classes of an error's exception determine whether it is retriable.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final, TypedDict

from kafka_msgs_generator.class_file import ClassFile, ClassFileError, parse_class
from kafka_msgs_generator.jar import Jar
from kafka_msgs_generator.maven import SourceUnavailableError

__all__ = ["KafkaError", "error_table_text", "read_errors"]

_ERRORS: Final = "org/apache/kafka/common/protocol/Errors"
_RETRIABLE: Final = "org/apache/kafka/common/errors/RetriableException"
_MOST_PARENTS: Final = 20


class KafkaError(TypedDict):
    """One error code: its ``name``, its number on the wire (an int16), and whether retrying may help."""

    name: str
    code: int
    retriable: bool


def read_errors(jar: Jar) -> list[KafkaError] | None:
    """Return every error code in a jar of Kafka's clients, by rising code; None for a jar without an error table.

    Raises ``SourceUnavailableError`` when the table cannot be read.
    """
    if f"{_ERRORS}.class" not in jar:
        return None
    try:
        table = parse_class(jar.read(f"{_ERRORS}.class"))
        errors = [
            KafkaError(name=name, code=code, retriable=exception is not None and _is_retriable(jar, exception))
            for name, code, exception in _created(table)
        ]
        if [error["name"] for error in errors] != list(table.enum_constants) or not errors:
            raise ClassFileError("its static initializer does not create its constants one after the other")
    except (ClassFileError, IndexError) as error:
        raise SourceUnavailableError(reason=f"the error codes in {_ERRORS}.class cannot be read: {error}") from None
    return sorted(errors, key=lambda error: error["code"])


def error_table_text(errors: list[KafkaError]) -> str:
    """Return the text of ``errors.json``: a list, one error per line."""
    lines = ",\n".join(f"  {json.dumps(error)}" for error in errors)
    return f"[\n{lines}\n]\n"


_LENGTHS: Final = {
    0x01: 1, **dict.fromkeys(range(0x02, 0x09), 1), 0x10: 2, 0x11: 3, 0x12: 2, 0x13: 3, 0x59: 1, 0xB3: 3, 0xB7: 3,
    0xBA: 5, 0xBB: 3,
}  # fmt: skip
"""Instructions that create a constant, with their lengths: aconst_null, iconst, bipush, sipush, ldc, ldc_w, dup,
putstatic, invokespecial, invokedynamic, new."""


def _created(table: ClassFile) -> Iterator[tuple[str, int, str | None]]:
    """Yield the name, the code and the exception's class of each constant, up to the first other instruction."""
    code, at = table.initializer, 0
    numbers: list[int] = []
    exception = None
    while at < len(code) and (length := _LENGTHS.get(code[at])):
        instruction, operand = code[at], code[at + 1 : at + length]
        at += length
        if 0x02 <= instruction <= 0x08:
            numbers.append(instruction - 0x03)
        elif instruction in (0x10, 0x11):
            numbers.append(int.from_bytes(operand, "big", signed=True))
        elif instruction == 0xBA:
            exception = table.created_by(int.from_bytes(operand[:2], "big"))
        elif instruction == 0xB3:
            yield table.member(int.from_bytes(operand, "big"))[1], numbers[1], exception
            numbers, exception = [], None


def _is_retriable(jar: Jar, name: str) -> bool:
    for _ in range(_MOST_PARENTS):
        if name == _RETRIABLE:
            return True
        if f"{name}.class" not in jar:
            return False
        name = parse_class(jar.read(f"{name}.class")).parent or ""
    raise ClassFileError(f"{name} has too many parents")
