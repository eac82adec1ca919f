"""The default of a field: its text in a definition, read as a Python value (rules V57-V66)."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from typing import Final
from uuid import UUID

from kafka_msgs.primitive_types import Kind, Op
from kafka_msgs_generator.ir import Default, NewStruct
from kafka_msgs_generator.spec import FieldSpec

__all__ = ["read_default"]

_DECIMAL = re.compile(r"[+-]?[0-9]+", re.ASCII)
_LEADING_ZERO = re.compile(r"[+-]?0[0-9]+", re.ASCII)
_HEX = re.compile(r"0x[0-9a-fA-F]+", re.ASCII)
_FLOAT = re.compile(r"([+-]?)(?:NaN|Infinity|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?[dDfF]?)", re.ASCII)
_HEX_FLOAT = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+(?:\.[0-9a-fA-F]*)?|\.[0-9a-fA-F]+)[pP][+-]?\d+[dDfF]?", re.ASCII)
_UUID = re.compile(r"[A-Za-z0-9_-]{22}(?:==)?", re.ASCII)
_NULL: Final = "null"
_LONGEST_NUMBER: Final = 100


class _DefaultTextError(Exception):
    """Text that is not a default of its type: the rule that it breaks, and why."""

    def __init__(self, rule: str, reason: str) -> None:
        self.rule = rule
        self.reason = reason
        super().__init__(rule, reason)


def read_default(field: FieldSpec) -> Default:
    """Return the value of ``field`` when it is absent or not set; raise ``SchemaError`` for a bad default."""
    try:
        return _default(field)
    except _DefaultTextError as bad:
        reason = f"invalid default {field.default!r} for {field.type} field {field.name}: {bad.reason}"
        raise field.site.error(bad.rule, reason, "default") from None


def _default(field: FieldSpec) -> Default:
    text, op = field.default, field.type.op
    if op is Op.RECORDS:
        _check_records(text)
        return None
    if text and op.kind in _READERS:
        return _READERS[op.kind](text, op)
    if text == _NULL:
        _check_null(field)
        return None
    if op.kind is Kind.TEXT:
        return text
    if text:
        raise _DefaultTextError("V64", "it can only be empty or null")
    return NewStruct(field.type.element) if op is Op.STRUCT else op.kind.default


def _check_null(field: FieldSpec) -> None:
    if not field.nullable.contains(field.versions):
        reason = f"it cannot be null in all its versions {field.versions}, only in {field.nullable}"
        raise _DefaultTextError("V66", reason)


def _check_records(text: str) -> None:
    if text not in ("", _NULL):
        raise _DefaultTextError("V65", "records always start as null")


def _bool(text: str, _: Op) -> bool:
    if text.lower() not in ("true", "false"):
        raise _DefaultTextError("V57", "it is neither true nor false")
    return text.lower() == "true"


def _integer(text: str, op: Op) -> int:
    lowest, highest = op.bounds
    rule = "V58" if lowest else "V59"
    if _LEADING_ZERO.fullmatch(text):
        raise _DefaultTextError("V60", "a leading zero could mean octal")
    if not _DECIMAL.fullmatch(text) and not _HEX.fullmatch(text):
        raise _DefaultTextError(rule, "it is neither a decimal number nor 0x and hexadecimal digits")
    too_long = len(text) > _LONGEST_NUMBER
    value = 0 if too_long else int(text, 16 if text.startswith("0x") else 10)
    if too_long or not lowest <= value <= highest:
        raise _DefaultTextError(rule, f"out of range, {op.name.lower()} holds {lowest} to {highest}")
    return value


def _float(text: str, _: Op) -> float:
    text = text.strip() or "0"
    if _HEX_FLOAT.fullmatch(text):
        return _hex_float(text.rstrip("dDfF"))
    if not _FLOAT.fullmatch(text):
        raise _DefaultTextError("V61", "it is not a number")
    return float(text.rstrip("dDfF"))


def _hex_float(text: str) -> float:
    try:
        return float.fromhex(text)
    except OverflowError:
        return float("-inf" if text.startswith("-") else "inf")


def _uuid(text: str, _: Op) -> UUID:
    if not _UUID.fullmatch(text):
        raise _DefaultTextError("V62", "it is not 16 bytes in URL-safe base64")
    try:
        return UUID(bytes=base64.urlsafe_b64decode(text.rstrip("=") + "=="))
    except binascii.Error as error:
        raise _DefaultTextError("V62", str(error)) from None


_READERS: Final[Mapping[Kind, Callable[[str, Op], Default]]] = {
    Kind.BOOLEAN: _bool,
    Kind.INTEGER: _integer,
    Kind.FLOAT: _float,
    Kind.UUID: _uuid,
}
"""The readers of defaults, by kind, for kinds that are never null."""
