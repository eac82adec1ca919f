"""The encoding interpreter: converts a message to bytes. It refuses values that the version cannot carry."""

from __future__ import annotations

import struct
from contextlib import suppress
from operator import index
from typing import Any, NoReturn

from kafka_msgs.codec.ops import FIXED, MAX_LENGTH, MAX_STRING, MAX_TAG, MAX_TAGS, Op
from kafka_msgs.codec.options import CodecOptions
from kafka_msgs.codec.plan import AbsentField, Plan, Step, StructPlan, WireValue
from kafka_msgs.codec.reference.faults import Trail, follow, root_value
from kafka_msgs.codec.reference.path import Path
from kafka_msgs.codec.value_checks import (
    NotExactError,
    differs_from_default,
    exact_bytes,
    exact_items,
    exact_struct,
    is_any_of,
    is_set,
    uuid_bytes,
)
from kafka_msgs.errors import EncodeError, UnsupportedFieldError, shown
from kafka_msgs.primitives import write_uvarint

__all__ = ["Encoder"]


class Encoder:
    """Writes one message, or a part of one, to ``out``."""

    def __init__(self, plan: Plan, options: CodecOptions) -> None:
        self.plan = plan
        self.options = options
        self.out = bytearray()
        self.path = Path()

    def fail(self, reason: str, value: Any, error: type[EncodeError] = EncodeError) -> NoReturn:
        raise error(message=self.plan.name, version=self.plan.version, path=str(self.path), value=value, reason=reason)

    def wrong_type(self, expected: str, value: Any) -> NoReturn:
        self.fail(f"expected {expected}, got {type(value).__name__}", value)

    # Faults

    def resume(self, message: Any, trail: Trail) -> None:
        """Encode the value at a trail. Return without an error if the message has changed in the meantime."""
        *outer, last = trail
        value = root_value(self.plan)
        with suppress(LookupError, NotExactError):
            for number, (part, step, inner) in zip(outer, follow(value, outer), strict=True):
                message = _content(value, message, step.attribute if step else number)
                self.path.parts.append(part)
                value = inner
            if value.op is Op.ARRAY:
                self.element(value, _content(value, message, last), last)
                return
            message = exact_struct(value.inner.cls, message)
            if last >= len(value.inner.steps):
                self.end(value.inner, message)
            elif last < 0:
                self.tagged(value.inner.step(last), message)
            else:
                self.field(value.inner.step(last), message)

    # Values

    def value(self, value: WireValue, item: Any) -> None:
        if item is None:
            self.null(value)
        elif value.op is Op.STRUCT:
            if value.nullable:
                self.out += b"\x01"
            self.struct(value.inner, item)
        elif value.op is Op.ARRAY:
            self.array(value, item)
        elif value.op in FIXED:
            self.out += self.fixed(value.op, item)
        else:
            raw = self.text(item) if value.op is Op.STRING else self.raw(item)
            self.length(value, len(raw))
            self.out += raw

    def null(self, value: WireValue) -> None:
        if not value.nullable:
            self.fail("None, which this version does not allow", None)
        if value.compact:
            self.out += b"\x00"
        else:
            self.out += b"\xff" * value.op.length_size

    def length(self, value: WireValue, length: int) -> None:
        if value.compact:
            self.out += write_uvarint(length + 1)
        else:
            self.out += length.to_bytes(value.op.length_size, "big")

    def fixed(self, op: Op, item: Any) -> bytes:
        if op is Op.BOOL:
            if item is not True and item is not False:
                self.wrong_type("bool", item)
            return b"\x01" if item else b"\x00"
        if op is Op.UUID:
            try:
                return uuid_bytes(item)
            except NotExactError:
                self.wrong_type("UUID", item)
        if op is Op.FLOAT64:
            return self.float64(item)
        return self.integer(op, item)

    def float64(self, item: Any) -> bytes:
        try:
            return struct.pack(">d", item)
        except struct.error:
            if is_any_of(item, int):
                self.fail(f"{shown(item)} is out of range for float64", item)
            self.wrong_type("float", item)

    def integer(self, op: Op, item: Any) -> bytes:
        try:
            number = index(item)
        except TypeError:
            self.wrong_type("int", item)
        code, size = FIXED[op]
        try:
            return number.to_bytes(size, "big", signed=code.islower())
        except OverflowError:
            self.fail(f"{shown(number)} is out of range for {op.name.lower()}", item)

    def text(self, item: Any) -> bytes:
        if not is_any_of(item, str):
            self.wrong_type("str", item)
        try:
            raw = str.encode(item, "utf-8", self.options.utf8_errors)
        except UnicodeEncodeError as error:
            self.fail(f"cannot be written as UTF-8: {error.reason}", item)
        if len(raw) > MAX_STRING:
            self.fail(f"string of {len(raw)} bytes; the limit is {MAX_STRING}", item)
        return raw

    def raw(self, item: Any) -> bytes:
        try:
            raw = exact_bytes(item)
        except NotExactError:
            self.wrong_type("bytes", item)
        if len(raw) > MAX_LENGTH:
            self.fail(f"{len(raw)} bytes; the limit is {MAX_LENGTH}", item)
        return raw

    def array(self, value: WireValue, items: Any) -> None:
        try:
            items = exact_items(items)
        except NotExactError:
            self.wrong_type("tuple", items)
        self.length(value, len(items))
        for number, item in enumerate(items):
            self.element(value, item, number)

    def element(self, value: WireValue, item: Any, number: int) -> None:
        with self.path.at(f"[{number}]"):
            self.value(value.item, item)

    def struct(self, plan: StructPlan, item: Any) -> None:
        try:
            item = exact_struct(plan.cls, item)
        except NotExactError:
            self.wrong_type(plan.cls.__name__, item)
        for absent in plan.absent:
            self.absent(absent, getattr(item, absent.attribute))
        for step in plan.steps:
            self.field(step, item)
        self.end(plan, item)

    def field(self, step: Step, item: Any) -> None:
        with self.path.at(f".{step.attribute}"):
            self.value(step.value, getattr(item, step.attribute))

    def end(self, plan: StructPlan, item: Any) -> None:
        """Write the bytes after the positional fields."""
        if plan.flexible:
            self.tag_section(plan, item)
        elif is_set(item.unknown_tagged_fields):
            self.unknown_fields_fail("this version has no tagged fields", item)

    def absent(self, absent: AbsentField, item: Any) -> None:
        if not absent.ignorable and differs_from_default(absent.value, absent.default, item):
            with self.path.at(f".{absent.attribute}"):
                reason = f"set to {shown(item)}, but this version lacks the field"
                self.fail(reason, item, UnsupportedFieldError)

    # The tag section

    def tag_section(self, plan: StructPlan, item: Any) -> None:
        parts = [part for step in plan.tagged for part in self.tagged(step, item)]
        parts += self.unknown_tags(plan, item)
        if len(parts) > MAX_TAGS:
            self.unknown_fields_fail(f"{len(parts)} tags: at most {MAX_TAGS} are allowed", item)
        self.out += write_uvarint(len(parts))
        for tag, raw in parts:
            self.out += write_uvarint(tag) + write_uvarint(len(raw)) + raw

    def tagged(self, step: Step, item: Any) -> list[tuple[int, bytes]]:
        """Return the tag and the bytes of a tagged field, unless it has its default."""
        if not differs_from_default(step.value, step.default, getattr(item, step.attribute)):
            return []
        outer, self.out = self.out, bytearray()
        self.field(step, item)
        raw, self.out = bytes(self.out), outer
        return [(step.tag or 0, raw)]

    def unknown_tags(self, plan: StructPlan, item: Any) -> list[tuple[int, bytes]]:
        try:
            unknown = exact_items(item.unknown_tagged_fields)
        except NotExactError:
            self.unknown_fields_fail("expected a tuple of (tag, bytes)", item)
        previous = -1
        parts = []
        for pair in unknown:
            if not (is_any_of(pair, tuple) and tuple.__len__(pair) == 2 and is_any_of(tuple.__getitem__(pair, 0), int)):
                self.unknown_fields_fail("expected pairs of (tag, bytes)", item)
            tag, raw = index(tuple.__getitem__(pair, 0)), tuple.__getitem__(pair, 1)
            if tag in plan.declared_tags:
                self.unknown_fields_fail(f"tag {tag} is a declared field", item)
            if not previous < tag <= MAX_TAG:
                self.unknown_fields_fail(f"tag {tag} after tag {previous}: tags must ascend", item)
            try:
                parts.append((tag, exact_bytes(raw)))
            except NotExactError:
                self.unknown_fields_fail(f"tag {tag} holds {type(raw).__name__}, not bytes", item)
            previous = tag
        return parts

    def unknown_fields_fail(self, reason: str, item: Any) -> NoReturn:
        self.path.parts.append(".unknown_tagged_fields")
        self.fail(reason, item.unknown_tagged_fields, UnsupportedFieldError)


def _content(value: WireValue, item: Any, key: Any) -> Any:
    """Return an element of an array by its index, or a field of a struct by its name."""
    if value.op is Op.ARRAY:
        return exact_items(item)[key]
    return getattr(exact_struct(value.inner.cls, item), key)
