"""Metrics of clients in the OpenTelemetry protocol (OTLP), as they push them (KIP-714).

Clients send ``MetricsData`` of ``opentelemetry/proto/metrics/v1/metrics.proto`` with gauges and sums. Other kinds of
metrics are skipped.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from attrs import frozen

from kafka_msgs.errors import ClientMetricsError

__all__ = ["ClientMetric", "decode_metrics"]

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED: Final = {_FIXED64: 8, _FIXED32: 4}
_MAX_SHIFT: Final = 63
_DOUBLE: Final = struct.Struct("<d")

_RESOURCE_METRICS, _RESOURCE, _SCOPE_METRICS, _METRICS, _ATTRIBUTES = 1, 1, 2, 2, 1
_NAME, _UNIT, _POINTS = 1, 3, 1
_KINDS: Final[Mapping[int, str]] = {5: "gauge", 7: "sum"}
_TEMPORALITY, _DELTA = 2, 1
_TIME, _AS_DOUBLE, _AS_INT, _POINT_ATTRIBUTES = 3, 4, 6, 7
"""Field numbers of the messages."""


@frozen(kw_only=True)
class ClientMetric:
    """A value of a metric. ``kind`` is ``gauge`` or ``sum``; ``is_delta`` means since the previous push.

    ``time`` is in nanoseconds since the epoch. ``attributes`` describe the client and the value.
    """

    name: str
    unit: str
    kind: str
    value: float
    is_delta: bool
    time: int
    attributes: Mapping[str, Any]


def decode_metrics(data: bytes) -> tuple[ClientMetric, ...]:
    """Return the metrics in the bytes of a push request. Raises ``ClientMetricsError``."""
    try:
        return tuple(_metrics(data))
    except (ValueError, TypeError, IndexError, struct.error) as error:
        raise ClientMetricsError(reason=str(error)) from None


def _metrics(data: bytes) -> Iterator[ClientMetric]:
    for part in _messages(data, _RESOURCE_METRICS):
        resource: dict[str, Any] = {}
        for each in _messages(part, _RESOURCE):
            resource |= _attributes(each, _ATTRIBUTES)
        for scope in _messages(part, _SCOPE_METRICS):
            for metric in _messages(scope, _METRICS):
                yield from _points(metric, resource)


def _points(metric: bytes, resource: Mapping[str, Any]) -> Iterator[ClientMetric]:
    fields = dict(_fields(metric))
    name, unit = (_text(fields.get(number, b"")) for number in (_NAME, _UNIT))
    for number, kind in _KINDS.items():
        body = fields.get(number)
        if isinstance(body, bytes):
            is_delta = dict(_fields(body)).get(_TEMPORALITY) == _DELTA if kind == "sum" else False
            for point in _messages(body, _POINTS):
                found = dict(_fields(point))
                yield ClientMetric(
                    name=name,
                    unit=unit,
                    kind=kind,
                    value=_value(found),
                    is_delta=is_delta,
                    time=int.from_bytes(found.get(_TIME, b""), "little"),
                    attributes={**resource, **_attributes(point, _POINT_ATTRIBUTES)},
                )


def _value(point: Mapping[int, Any]) -> float:
    if _AS_INT in point:
        return int.from_bytes(point[_AS_INT], "little", signed=True)
    value: float = _DOUBLE.unpack(point[_AS_DOUBLE])[0] if _AS_DOUBLE in point else 0.0
    return value


_VALUES: Final[Mapping[int, Callable[[Any], Any]]] = {
    1: lambda value: _text(value),
    2: bool,
    3: lambda value: value - 2**64 if value >= 2**63 else value,
    4: lambda value: _DOUBLE.unpack(value)[0],
}
"""The parsers of attribute values: text, bool, int and double. Other values are their bytes."""


def _attributes(data: bytes, number: int) -> dict[str, Any]:
    found = {}
    for pair in _messages(data, number):
        fields = dict(_fields(pair))
        key, value = _text(fields.get(1, b"")), fields.get(2, b"")
        for kind, each in _fields(value):
            found[key] = _VALUES.get(kind, bytes)(each)
    return found


def _text(value: Any) -> str:
    return bytes(value).decode("utf-8", "replace")


def _messages(data: bytes, number: int) -> Iterator[bytes]:
    """Yield the nested messages in the fields with a number."""
    return (value for each, value in _fields(data) if each == number and isinstance(value, bytes))


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the number and the value of each field: an int, or bytes."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == _VARINT:
            value: Any
            value, at = _varint(data, at)
        else:
            if kind == _BYTES:
                size, at = _varint(data, at)
            elif kind in _FIXED:
                size = _FIXED[kind]
            else:
                raise ValueError(f"wire type {kind}")
            if size > len(data) - at:
                raise ValueError(f"a field needs {size} bytes, {len(data) - at} left")
            value, at = data[at : at + size], at + size
        yield tag >> 3, value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if shift > _MAX_SHIFT:
            raise ValueError("a number has more than ten bytes")
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7
