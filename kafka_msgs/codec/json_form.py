"""The JSON form of messages, as defined by the ``...JsonConverter`` classes that Kafka generates.

Keys are Kafka's field names with a small first letter; uuids are 22 characters of URL-safe base64, bytes are base64.
Positional fields are always present. Tagged fields are present only if they differ from their default. Fields that the
version does not have are omitted. Unknown tagged fields do not have a JSON form. Reading and writing follow the plan of
the version.

Kafka's converters omit the content of records fields. This module writes it as base64 by default, without loss; the
``records`` argument selects Kafka's forms instead.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Callable
from operator import index
from typing import Any, Final, Literal, NoReturn, TypeVar, get_args
from uuid import UUID

from kafka_msgs.codec import CodecOptions, codec_for
from kafka_msgs.codec.ops import Op
from kafka_msgs.codec.plan import Plan, Step, StructPlan, WireValue
from kafka_msgs.codec.value_checks import differs_from_default
from kafka_msgs.errors import JsonFormError, OptionError, shown
from kafka_msgs.primitive_types import Kind
from kafka_msgs.primitives import uuid_from_bytes
from kafka_msgs.schema import MessageStruct

__all__ = ["RecordsForm", "from_json", "to_json"]

RecordsForm = Literal["base64", "empty", "size"]
"""The representation of records: their bytes, an empty string (Kafka's converters), or only ``<field>SizeInBytes``."""

_RECORDS_FORMS: Final[tuple[RecordsForm, ...]] = get_args(RecordsForm)
M = TypeVar("M", bound=MessageStruct)

_ANY_TEXT = CodecOptions(utf8_errors="surrogateescape")
"""Accepts every message that can be decoded, with any options."""


def to_json(message: MessageStruct, version: int, records: RecordsForm = "base64") -> dict[str, Any]:
    """Return the JSON form of a message at a version, as objects that ``json_form.dumps`` accepts.

    Raises ``UnsupportedVersionError``, ``EncodeError`` for a message that the version cannot carry, and ``OptionError``
    for another choice of ``records``.
    """
    if records not in _RECORDS_FORMS:
        reason = f"it is one of {', '.join(_RECORDS_FORMS)}"
        raise OptionError(source="to_json", option="records", value=records, reason=reason)
    codec = codec_for(type(message), version, _ANY_TEXT)
    codec.encode(message)
    return _Writer(records).struct(codec.plan.root, message)


def from_json(cls: type[M], obj: Any, version: int, *, partial: bool = False) -> M:
    """Return the message from its JSON form. As in Kafka, keys that are not fields are ignored.

    ``partial`` is for hand-written forms: missing fields get their defaults, and keys that are not fields of the
    version are refused. Raises ``UnsupportedVersionError``, and ``JsonFormError`` for a missing field, a refused key,
    or a value of the wrong type.
    """
    plan = codec_for(cls, version).plan
    message: M = _Reader(plan, partial=partial).struct(plan.root, obj, plan.name)
    return message


class _Writer:
    """Writes a message that the codec can encode."""

    def __init__(self, records: RecordsForm) -> None:
        self.records = records

    def struct(self, plan: StructPlan, item: Any) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for step in plan.steps:
            self.field(step, getattr(item, step.attribute), result)
        for step in plan.tagged:
            if differs_from_default(step.value, step.default, getattr(item, step.attribute)):
                self.field(step, getattr(item, step.attribute), result)
        return result

    def field(self, step: Step, item: Any, result: dict[str, Any]) -> None:
        if step.value.op is Op.RECORDS and self.records == "size":
            result[f"{step.json_name}SizeInBytes"] = -1 if item is None else memoryview(item).nbytes
        else:
            result[step.json_name] = self.value(step.value, item)

    def value(self, value: WireValue, item: Any) -> Any:
        if item is None:
            return None
        if value.op is Op.ARRAY:
            return [self.value(value.item, each) for each in item]
        if value.op is Op.STRUCT:
            return self.struct(value.inner, item)
        if value.op is Op.RECORDS and self.records == "empty":
            return ""
        write = _WRITERS.get(value.op.kind)
        return item if write is None else write(item)


class _Reader:
    def __init__(self, plan: Plan, *, partial: bool) -> None:
        self.plan = plan
        self.partial = partial

    def fail(self, path: str, reason: str) -> NoReturn:
        raise JsonFormError(message=self.plan.name, version=self.plan.version, path=path, reason=reason)

    def struct(self, plan: StructPlan, obj: Any, path: str) -> Any:
        if not isinstance(obj, dict):
            self.fail(path, f"expected an object, got {type(obj).__name__}")
        values = {}
        for step in plan.steps + plan.tagged:
            if step.json_name in obj:
                values[step.attribute] = self.value(step.value, obj[step.json_name], f"{path}.{step.json_name}")
            elif step.tag is None and not self.partial:
                self.fail(f"{path}.{step.json_name}", "missing")
        if self.partial and len(values) < len(obj):
            self.refuse_others(plan, obj, path)
        return plan.cls(**values)

    def refuse_others(self, plan: StructPlan, obj: dict[str, Any], path: str) -> None:
        """Raise an error for the first key that is not a field."""
        known = [step.json_name for step in plan.steps + plan.tagged]
        other = next(key for key in obj if key not in known)
        self.fail(f"{path}.{other}", f"not a field of this version, which has {', '.join(known) or 'none'}")

    def value(self, value: WireValue, obj: Any, path: str) -> Any:
        if obj is None:
            if not value.nullable:
                self.fail(path, "null, which this version does not allow")
            return None
        if value.op is Op.ARRAY:
            if not isinstance(obj, list):
                self.fail(path, f"expected an array, got {type(obj).__name__}")
            return tuple(self.value(value.item, each, f"{path}[{number}]") for number, each in enumerate(obj))
        if value.op is Op.STRUCT:
            return self.struct(value.inner, obj, path)
        return self.scalar(value.op, obj, path)

    def scalar(self, op: Op, obj: Any, path: str) -> Any:
        expected: tuple[type[Any], ...] = op.kind.json
        if not isinstance(obj, expected) or (isinstance(obj, bool) and op is not Op.BOOL):
            self.fail(path, f"expected {op.name.lower()}, got {type(obj).__name__}")
        if op.kind is Kind.UUID:
            return self.uuid(obj, path)
        if op.kind is Kind.BINARY:
            return self.binary(obj, path)
        return self.number(op, obj, path) if op.kind in (Kind.INTEGER, Kind.FLOAT) else obj

    def number(self, op: Op, obj: Any, path: str) -> Any:
        try:
            number = float(obj) if op.kind is Kind.FLOAT else obj
            struct.pack(f">{op.code}", number)
        except (OverflowError, struct.error):
            self.fail(path, f"{shown(obj)} is out of range for {op.name.lower()}")
        return number

    def uuid(self, text: str, path: str) -> UUID:
        padding = "=" * (-len(text) % 4)
        raw = self.binary(text.replace("-", "+").replace("_", "/") + padding, path)
        if len(raw) != 16:
            self.fail(path, f"a uuid has 16 bytes, not {len(raw)}")
        return uuid_from_bytes(raw)

    def binary(self, text: str, path: str) -> bytes:
        try:
            return base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError) as error:
            self.fail(path, f"not base64: {error}")


_WRITERS: Final[dict[Kind, Callable[[Any], Any]]] = {
    Kind.INTEGER: lambda item: int(index(item)),
    Kind.FLOAT: float,
    Kind.UUID: lambda item: base64.urlsafe_b64encode(item.bytes).rstrip(b"=").decode(),
    Kind.BINARY: lambda item: base64.b64encode(bytes(item)).decode(),
}
"""The writers for kinds whose values JSON cannot represent directly."""
