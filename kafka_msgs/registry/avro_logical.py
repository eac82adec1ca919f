"""Logical types, promotions and unions of Avro, where ``fastavro`` would round, wrap around or take another branch.

``fastavro`` calls the functions of logical types by name and type. Schemas receive names of our own, so its functions
for other users do not change, and the note ``NOTE`` with the logical type in the schema. A union of several numeric
types, or of bytes and string, has the note ``BRANCHES``: a value belongs to the branch of its own type, if the union
has that type.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal
from typing import Any, Final, Literal, TypeAlias

from fastavro.read import LOGICAL_READERS
from fastavro.write import LOGICAL_WRITERS

__all__ = ["BRANCHES", "NOTE", "Purpose", "annotate_types", "convert", "hooked_types"]

Purpose: TypeAlias = Literal["write", "values", "columns"]
"""The purpose of a parsed schema. Columns convert only decimals, because Arrow has the other types."""

NOTE: Final = "kafka_msgs.logical"
BRANCHES: Final = "kafka_msgs.branches"
_HOOK: Final = "kafka_msgs."
_PROMOTABLE: Final = (frozenset({"int", "long", "float", "double"}), frozenset({"string", "bytes"}))
_FLOAT: Final = struct.Struct("f")
_EXACT: Final = Context(prec=999_999)
_UTC_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH: Final = datetime(1970, 1, 1)
_FIRST_DAY: Final = 1 - date(1970, 1, 1).toordinal()
_LAST_DAY: Final = date.max.toordinal() - date(1970, 1, 1).toordinal()
_DAY_US: Final = 86_400_000_000
_MOST_COLUMN_DIGITS: Final = 76
"""The digits of Arrow's largest decimals."""


def _decimal(data: bytes, schema: Mapping[str, Any]) -> Decimal:
    """Return a decimal with all its digits, even if they are more than its precision (``Conversions``)."""
    if not data:
        raise ValueError("a decimal has no bytes")
    return Decimal(int.from_bytes(data, "big", signed=True)).scaleb(-schema.get("scale", 0), _EXACT)


def _date(days: int) -> date:
    if not _FIRST_DAY <= days <= _LAST_DAY:
        raise OverflowError("date value out of range")
    return date.fromordinal(days - _FIRST_DAY + 1)


def _time(value: int, unit: int) -> time:
    if not 0 <= value * unit < _DAY_US:
        raise ValueError(f"{value} is no time of a day")
    return (_EPOCH + timedelta(microseconds=value * unit)).time()


_CONVERTERS: Final[Mapping[tuple[str, str], Callable[[Any, Any], Any]]] = {
    ("bytes", "decimal"): _decimal,
    ("fixed", "decimal"): _decimal,
    ("int", "date"): lambda days, _: _date(days),
    ("int", "time-millis"): lambda value, _: _time(value, 1000),
    ("long", "time-micros"): lambda value, _: _time(value, 1),
    ("long", "timestamp-millis"): lambda value, _: _UTC_EPOCH + timedelta(milliseconds=value),
    ("long", "timestamp-micros"): lambda value, _: _UTC_EPOCH + timedelta(microseconds=value),
    ("long", "local-timestamp-millis"): lambda value, _: _EPOCH + timedelta(milliseconds=value),
    ("long", "local-timestamp-micros"): lambda value, _: _EPOCH + timedelta(microseconds=value),
}
"""The converters by type and logical type. Java has the same; a UUID is a text, whatever its form."""


def convert(value: Any, schema: Any, purpose: Purpose) -> Any:
    """Return the value of a type in a reader's schema, from one that was read or from a default."""
    kind, name = (schema["type"], schema.get(NOTE)) if isinstance(schema, dict) else (schema, None)
    if kind == "float":
        return _FLOAT.unpack(_FLOAT.pack(value))[0]
    if kind == "double":
        return float(value)
    if kind == "string" and isinstance(value, bytes):
        return value.decode()
    if isinstance(value, str) and kind in ("bytes", "fixed"):
        value = value.encode()
    converter = _CONVERTERS.get((kind, name or ""))
    if converter is None or (purpose == "columns" and name != "decimal"):
        return value
    return converter(value, schema)


def _read(value: Any, writer: Any, reader: Any = None) -> Any:
    return convert(value, _branch(writer, reader), "values")


def _read_for_columns(value: Any, writer: Any, reader: Any = None) -> Any:
    """Return a value, paired with its type in a union whose branches its Python type does not distinguish."""
    branch = _branch(writer, reader)
    found = convert(value, branch, "columns")
    return (_kind(branch), found) if BRANCHES in (reader or writer) else found


def _branch(writer: Any, reader: Any) -> Any:
    target = reader or writer
    return target[BRANCHES].get(_kind(writer), target) if BRANCHES in target else target


def _kind(schema: Any) -> Any:
    return schema["type"] if isinstance(schema, dict) else schema


_HOOKS: Final[Mapping[Purpose, Callable[..., Any]]] = {"values": _read, "columns": _read_for_columns}
LOGICAL_READERS.update(
    {
        f"{kind}-{_HOOK}{purpose}": hook
        for kind in ("fixed", *frozenset.union(*_PROMOTABLE))
        for purpose, hook in _HOOKS.items()
    }
)


def _write_decimal(value: Any, schema: Mapping[str, Any]) -> Any:
    """Return a decimal as bytes. Raises ``ValueError`` if it has too many digits before or after the point."""
    if not isinstance(value, Decimal):
        return value
    precision, scale = schema["precision"], schema.get("scale", 0)
    number = value.scaleb(scale, _EXACT)
    if not number.is_finite() or number != number.to_integral_value() or (number and number.adjusted() >= precision):
        raise ValueError(f"{value} does not fit into a decimal of precision {precision} and scale {scale}")
    unscaled = int(number)
    return unscaled.to_bytes(schema.get("size", (unscaled.bit_length() + 8) // 8), "big", signed=True)


def _write_float(value: Any, schema: Mapping[str, Any]) -> Any:
    """Return a number for the floating-point branch of a union, or None for an integer, which another branch holds."""
    return None if isinstance(value, int) else value


LOGICAL_WRITERS.update(
    {f"{kind}-{_HOOK}write": _write_decimal for kind in ("bytes", "fixed")}
    | {f"{kind}-{_HOOK}write": _write_float for kind in ("float", "double")}
)


def hooked_types(purpose: Purpose, reader: Any) -> frozenset[str]:
    """Return the types of a writer's schema that need a function of this module for the schema of a reader."""
    found = frozenset({"bytes", "fixed"} if purpose == "columns" else {"int", "long", "bytes", "fixed"})
    return found.union(*_PROMOTABLE) if BRANCHES in repr(reader) else found


def annotate_types(schema: Any, purpose: Purpose, hooked: frozenset[str]) -> Any:
    """Return a schema whose logical types are notes, with the functions of this module where they are needed.

    Invalid decimals, which Avro ignores, have neither. ``hooked`` are further types that need a function.
    """
    if isinstance(schema, list):
        return _with_branches([annotate_types(each, purpose, hooked) for each in schema], purpose)
    if isinstance(schema, str):
        return {"type": schema, "logicalType": f"{_HOOK}{purpose}"} if schema in hooked else schema
    found = dict(schema)
    for part in ("items", "values"):
        if part in found:
            found[part] = annotate_types(found[part], purpose, hooked)
    if "fields" in found:
        found["fields"] = [each | {"type": annotate_types(each["type"], purpose, hooked)} for each in found["fields"]]
    if isinstance(found["type"], dict | list):
        return found | {"type": annotate_types(found["type"], purpose, hooked)}
    return _annotated(found, purpose, hooked)


def _with_branches(branches: list[Any], purpose: Purpose) -> list[Any]:
    kinds = [_kind(each) for each in branches]
    shared = [group for group in _PROMOTABLE if len(group.intersection(filter(_is_name, kinds))) > 1]
    if purpose == "write":
        floats = ("float", "double") if shared and {"int", "long"}.intersection(filter(_is_name, kinds)) else ()
        return [{"type": each, "logicalType": f"{_HOOK}write"} if each in floats else each for each in branches]
    if not shared:
        return branches
    note = {kind: each for kind, each in zip(kinds, branches, strict=True) if any(kind in group for group in shared)}
    hook = {BRANCHES: note} | ({"logicalType": f"{_HOOK}columns"} if purpose == "columns" else {})
    return [
        ({"type": each} if isinstance(each, str) else each) | hook if kind in note else each
        for kind, each in zip(kinds, branches, strict=True)
    ]


def _is_name(kind: Any) -> bool:
    return isinstance(kind, str)


def _annotated(schema: dict[str, Any], purpose: Purpose, hooked: frozenset[str]) -> dict[str, Any]:
    kind, name = schema["type"], schema.pop("logicalType", None)
    if name == "decimal" and not _is_valid_decimal(schema, _MOST_COLUMN_DIGITS if purpose == "columns" else None):
        name = None
    if purpose == "write":
        hook = {NOTE: name, "logicalType": f"{_HOOK}write"} if name == "decimal" else {"logicalType": name}
        return schema | ({} if name is None else hook)
    converted = (kind, name) in _CONVERTERS and (purpose == "values" or name == "decimal")
    hook = {"logicalType": f"{_HOOK}{purpose}"} if converted or kind in hooked else {}
    return schema | ({NOTE: name} if name else {}) | hook


def _is_valid_decimal(schema: Mapping[str, Any], most: int | None) -> bool:
    """Return whether a decimal is valid (Avro's ``LogicalTypes.Decimal``), with at most ``most`` digits."""
    facts: list[Any] = [schema.get("precision"), schema.get("scale", 0), schema.get("size", 0)]
    if not all(type(each) is int and each >= 0 for each in facts):
        return False
    precision, scale, size = facts
    fits = schema["type"] != "fixed" or precision <= len(str(2 ** (8 * min(size, 64) - 1) - 1)) - 1
    return bool(0 < precision <= (most or precision) and scale <= precision and fits)
