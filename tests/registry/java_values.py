"""Decoded values in the JSON form of the Java oracle (``AvroValues.java``), for comparison with it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal
from typing import Any
from uuid import UUID

__all__ = ["java_form", "java_message", "without_branches"]

_EXACT = Context(prec=10_000)
_EPOCH = datetime(1970, 1, 1)


def java_form(value: Any) -> Any:
    """Return a decoded Avro or JSON value in the form of the oracle, without the branches of unions."""
    if isinstance(value, Mapping):
        return {"fields": {name: java_form(each) for name, each in value.items()}}
    if isinstance(value, list | tuple):
        return list(map(java_form, value))
    if isinstance(value, Decimal):
        _, _digits, exponent = value.as_tuple()
        assert isinstance(exponent, int)
        return {"decimal": f"{int(value.scaleb(-exponent, _EXACT))}/{-exponent}"}
    if isinstance(value, datetime):
        moment = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
        name = "local" if value.tzinfo is None else "timestamp"
        return {name: str((moment - _EPOCH) // timedelta(microseconds=1))}
    if isinstance(value, date):
        return {"date": str((value - _EPOCH.date()).days)}
    if isinstance(value, time):
        since = datetime.combine(_EPOCH, value) - _EPOCH
        return {"time": str(since // timedelta(microseconds=1))}
    return _scalar(value)


def _scalar(value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return {"int": str(value)}
    if isinstance(value, float):
        return {"float": _hex(value)}
    if isinstance(value, bytes):
        return {"bytes": b64encode(value).decode()}
    return str(value) if isinstance(value, UUID) else value


def _hex(value: float) -> str:
    """Return a float as ``Double.toHexString`` prints it."""
    if value != value or value in (float("inf"), -float("inf")):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    sign, text = ("-", value.hex()[1:]) if value.hex().startswith("-") else ("", value.hex())
    mantissa, _, exponent = text.partition("p")
    head, _, digits = mantissa.partition(".")
    return f"{sign}{head}.{digits.rstrip('0') or '0'}p{int(exponent)}"


def without_branches(value: Any) -> Any:
    """Return a value of the oracle without the branches of its unions."""
    if isinstance(value, list):
        return list(map(without_branches, value))
    if isinstance(value, dict):
        if [*value] == ["branch"]:
            return without_branches(value["branch"]["value"])
        if [*value] == ["fields"]:
            return {"fields": {name: without_branches(each) for name, each in value["fields"].items()}}
    return value


def java_message(message: Any) -> Any:
    """Return a Protobuf message in the form of the oracle."""
    found: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            keyed = field.message_type.fields[1].message_type is not None
            pairs = [[_scalar(key), java_message(value[key]) if keyed else _scalar(value[key])] for key in value]
            found[field.name] = {"entries": sorted(pairs, key=str)}
        elif field.is_repeated:
            found[field.name] = [_single(field, each) for each in value]
        elif field.has_presence and not message.HasField(field.name):
            found[field.name] = None
        else:
            found[field.name] = _single(field, value)
    return {"fields": found}


def _single(field: Any, value: Any) -> Any:
    return java_message(value) if field.message_type is not None else _scalar(value)
