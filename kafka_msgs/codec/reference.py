"""The reference interpreter: walks a plan slowly and simply, and always knows the current path and offset.

The fast executors are tested against it. They only detect that something is wrong. Then this interpreter reads the same
input and raises the exact error, with path and byte offset. It can also record the meaning of each byte, for annotated
dumps.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from operator import index
from typing import Any, NoReturn

from attrs import frozen

from kafka_msgs.codec.exact import (
    NotExactError,
    differs,
    exact_bytes,
    exact_items,
    exact_struct,
    holds,
    is_set,
    uuid_bytes,
)
from kafka_msgs.codec.ops import FIXED, MAX_LENGTH, MAX_STRING, MAX_TAG, MAX_TAGS, Op
from kafka_msgs.codec.options import DEFAULT_OPTIONS, CodecOptions
from kafka_msgs.codec.plan import Absent, Plan, Step, StructPlan, Value
from kafka_msgs.errors import (
    BudgetExceededError,
    DecodeError,
    EncodeError,
    InvalidLengthError,
    InvalidTagError,
    InvalidUtf8Error,
    InvalidVarintError,
    TruncatedError,
    UnexpectedNullError,
    UnsupportedFieldError,
    shown,
)
from kafka_msgs.primitives import MAX_UINT32, uuid_from_bytes, write_uvarint

__all__ = ["Span", "annotate", "decode", "encode"]


@frozen
class Span:
    """The meaning of the bytes from ``start`` to ``end``: the ``path`` of the field, a ``kind`` and the ``value``."""

    start: int
    end: int
    path: str
    kind: str
    value: Any


def decode(
    plan: Plan, data: bytes | memoryview, offset: int = 0, options: CodecOptions = DEFAULT_OPTIONS
) -> tuple[Any, int]:
    """Decode one message from ``data`` at ``offset``; return it and the position after it. Raises ``DecodeError``."""
    decoder = _Decoder(plan, data, offset, options)
    return decoder.message(), decoder.position


def annotate(plan: Plan, data: bytes, offset: int = 0) -> tuple[list[Span], DecodeError | None]:
    """Return the meaning of each byte, in order, and the error that ended the decoding, or None."""
    decoder = _Decoder(plan, data, offset, DEFAULT_OPTIONS)
    decoder.spans = []
    try:
        decoder.message()
    except DecodeError as error:
        return decoder.spans, error
    return decoder.spans, None


def encode(plan: Plan, message: Any, options: CodecOptions = DEFAULT_OPTIONS) -> bytes:
    """Encode a message; raises ``EncodeError`` for a value that this version cannot carry."""
    encoder = _Encoder(plan, options)
    encoder.struct(plan.root, message)
    return bytes(encoder.out)


class _Path:
    """The current path of an interpreter in the message, such as ``groups[2].topics``."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    @contextmanager
    def at(self, part: str) -> Iterator[None]:
        """Add ``part`` to the path during the block. After an error the path stays at the error."""
        self.parts.append(part)
        yield
        self.parts.pop()

    def __str__(self) -> str:
        return "".join(self.parts).removeprefix(".")


class _Decoder:
    def __init__(self, plan: Plan, data: bytes | memoryview, offset: int, options: CodecOptions) -> None:
        self.plan = plan
        self.data = memoryview(data)
        self.position = offset
        self.end = len(data)
        self.options = options
        self.elements_left = options.budget.elements
        self.bytes_left = options.budget.bytes
        self.path = _Path()
        self.spans: list[Span] | None = None

    def fail(self, error: type[DecodeError], reason: str, offset: int | None = None) -> NoReturn:
        raise error(
            message=self.plan.name,
            version=self.plan.version,
            path=str(self.path),
            offset=self.position if offset is None else offset,
            reason=reason,
        )

    def record(self, start: int, kind: str, value: Any) -> None:
        if self.spans is not None:
            self.spans.append(Span(start, self.position, str(self.path), kind, value))

    # Bytes and integers

    @property
    def left(self) -> int:
        return self.end - self.position

    def take(self, size: int, what: str) -> bytes:
        if size > self.left:
            self.fail(TruncatedError, f"{what} needs {size} bytes, {self.left} left")
        self.position += size
        return bytes(self.data[self.position - size : self.position])

    def unpack(self, op: Op) -> Any:
        code, size = FIXED[op]
        return struct.unpack(f">{code}", self.take(size, op.name.lower()))[0]

    def uvarint(self) -> int:
        start = self.position
        value = 0
        for shift in range(0, 35, 7):
            byte = self.take(1, "varint")[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value > MAX_UINT32:
                    self.fail(InvalidVarintError, "varint of more than 32 bits", start)
                return value
        self.fail(InvalidVarintError, "varint of more than five bytes", start)

    def length(self, value: Value) -> int | None:
        """Read the length of a string, bytes, records or array; None is null."""
        start = self.position
        if value.compact:
            length = self.uvarint() - 1
        else:
            length = self.unpack(Op.INT16 if value.op is Op.STRING else Op.INT32)
        if length < -1:
            self.fail(InvalidLengthError, f"negative length {length}", start)
        if length == -1:
            self.check_null(value, start)
            return None
        return length

    def check_null(self, value: Value, start: int) -> None:
        if not value.nullable:
            self.fail(UnexpectedNullError, "null, which this version does not allow", start)

    def spend_bytes(self, count: int) -> None:
        self.bytes_left -= count
        if self.bytes_left < 0:
            self.fail(BudgetExceededError, f"more than the budget of {self.options.budget.bytes} bytes")

    def spend_elements(self, count: int) -> None:
        self.elements_left -= count
        if self.elements_left < 0:
            self.fail(BudgetExceededError, f"more than the budget of {self.options.budget.elements} elements")

    # Values

    def message(self) -> Any:
        if self.plan.root.depth > self.options.budget.depth:
            self.fail(
                BudgetExceededError,
                f"{self.plan.root.depth} levels deep, more than the budget of {self.options.budget.depth}",
            )
        return self.struct(self.plan.root)

    def value(self, value: Value) -> Any:
        start = self.position
        if value.op is Op.STRUCT:
            return self.nullable_struct(value)
        if value.op is Op.ARRAY:
            return self.array(value)
        if value.op in FIXED:
            result = self.unpack(value.op)
            if value.op is Op.UUID:
                result = uuid_from_bytes(result)
        else:
            result = self.sized(value)
        self.record(start, str(value), result)
        return result

    def sized(self, value: Value) -> str | bytes | memoryview | None:
        """Read a string, bytes or records."""
        start = self.position
        length = self.length(value)
        if length is None:
            return None
        if value.op is Op.STRING and length > MAX_STRING:
            self.fail(InvalidLengthError, f"string of {length} bytes; the limit is {MAX_STRING}", start)
        text = value.op.name.lower()
        first = self.position
        raw = self.take(length, text)
        self.spend_bytes(length)
        if value.op is Op.STRING:
            try:
                return raw.decode("utf-8", self.options.utf8_errors)
            except UnicodeDecodeError as error:
                self.fail(InvalidUtf8Error, f"not UTF-8: {error.reason}", first + error.start)
        if value.zero_copy and self.options.memoryview_records:
            return self.data[first : self.position]
        return raw

    def array(self, value: Value) -> tuple[Any, ...] | None:
        start = self.position
        count = self.length(value)
        self.record(start, str(value), count)
        if count is None:
            return None
        if count * value.item.min_size > self.left:
            reason = f"array of {count} elements needs at least {count * value.item.min_size} bytes, {self.left} left"
            self.fail(InvalidLengthError, reason, start)
        self.spend_elements(count)
        elements = []
        for number in range(count):
            with self.path.at(f"[{number}]"):
                elements.append(self.value(value.item))
        return tuple(elements)

    def nullable_struct(self, value: Value) -> Any:
        if not value.nullable:
            return self.struct(value.inner)
        start = self.position
        present = 0 < self.uvarint() <= MAX_LENGTH if value.compact else self.unpack(Op.INT8) >= 0
        self.record(start, str(value), "present" if present else None)
        return self.struct(value.inner) if present else None

    def struct(self, plan: StructPlan) -> Any:
        values = {absent.attribute: absent.default for absent in plan.absent}
        values |= {step.attribute: step.default for step in plan.tagged}
        for step in plan.steps:
            values[step.attribute] = self.field(step)
        if plan.flexible:
            values |= self.tag_section(plan)
        return plan.cls(**values)

    def field(self, step: Step) -> Any:
        with self.path.at(f".{step.attribute}"):
            return self.value(step.value)

    # The tag section

    def tag_section(self, plan: StructPlan) -> dict[str, Any]:
        start = self.position
        count = self.uvarint()
        self.record(start, "tag section", count)
        self.check_tags(count, start)
        known = {step.tag: step for step in plan.tagged}
        values: dict[str, Any] = {}
        unknown: list[tuple[int, bytes]] = []
        previous = -1
        for _ in range(count):
            tag, size = self.tag_header(previous)
            previous = tag
            if tag in known:
                step = known[tag]
                values[step.attribute] = self.tagged_value(step, size)
            elif tag in plan.inactive_tags:
                self.fail(InvalidTagError, f"tag {tag} is not valid at this version")
            else:
                unknown.append((tag, self.unknown_tag(tag, size)))
        values["unknown_tagged_fields"] = tuple(unknown)
        return values

    def check_tags(self, count: int, start: int) -> None:
        if 2 * count > self.left:
            self.fail(TruncatedError, f"{count} tags need {2 * count} bytes or more, {self.left} left", start)
        if count > MAX_TAGS:
            self.fail(InvalidTagError, f"{count} tags: at most {MAX_TAGS} are allowed", start)

    def tag_header(self, previous: int) -> tuple[int, int]:
        start = self.position
        tag = self.uvarint()
        if not previous < tag <= MAX_TAG:
            self.fail(InvalidTagError, f"tag {tag} after tag {previous}: tags must ascend", start)
        size = self.uvarint()
        self.record(start, f"tag {tag}", f"{size} bytes")
        if size > self.left:
            self.fail(TruncatedError, f"tag {tag} needs {size} bytes, {self.left} left")
        return tag, size

    def tagged_value(self, step: Step, size: int) -> Any:
        start, outer_end = self.position, self.end
        self.end = start + size
        value = self.field(step)
        if self.position != self.end:
            taken = self.position - start
            self.fail(InvalidTagError, f"tag {step.tag} declares {size} bytes, its value took {taken}", start)
        self.end = outer_end
        return value

    def unknown_tag(self, tag: int, size: int) -> bytes:
        start = self.position
        self.spend_elements(1)
        self.spend_bytes(size)
        raw = self.take(size, f"tag {tag}")
        self.record(start, f"unknown tag {tag}", raw)
        return raw


class _Encoder:
    def __init__(self, plan: Plan, options: CodecOptions) -> None:
        self.plan = plan
        self.options = options
        self.out = bytearray()
        self.path = _Path()

    def fail(self, reason: str, value: Any, error: type[EncodeError] = EncodeError) -> NoReturn:
        raise error(message=self.plan.name, version=self.plan.version, path=str(self.path), value=value, reason=reason)

    def wrong_type(self, expected: str, value: Any) -> NoReturn:
        self.fail(f"expected {expected}, got {type(value).__name__}", value)

    # Values

    def value(self, value: Value, item: Any) -> None:
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

    def null(self, value: Value) -> None:
        if not value.nullable:
            self.fail("None, which this version does not allow", None)
        if value.compact:
            self.out += b"\x00"
        elif value.op is Op.STRUCT:
            self.out += b"\xff"
        else:
            self.out += b"\xff\xff" if value.op is Op.STRING else b"\xff\xff\xff\xff"

    def length(self, value: Value, length: int) -> None:
        if value.compact:
            self.out += write_uvarint(length + 1)
        else:
            self.out += length.to_bytes(2 if value.op is Op.STRING else 4, "big")

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
            if holds(item, int):
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
        if not holds(item, str):
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

    def array(self, value: Value, items: Any) -> None:
        try:
            items = exact_items(items)
        except NotExactError:
            self.wrong_type("tuple", items)
        self.length(value, len(items))
        for number, item in enumerate(items):
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
            with self.path.at(f".{step.attribute}"):
                self.value(step.value, getattr(item, step.attribute))
        if plan.flexible:
            self.tag_section(plan, item)
        elif is_set(item.unknown_tagged_fields):
            self.unknown_fields_fail("this version has no tagged fields", item)

    def absent(self, absent: Absent, item: Any) -> None:
        if not absent.ignorable and differs(absent.value, absent.default, item):
            with self.path.at(f".{absent.attribute}"):
                reason = f"set to {shown(item)}, but this version lacks the field"
                self.fail(reason, item, UnsupportedFieldError)

    # The tag section

    def tag_section(self, plan: StructPlan, item: Any) -> None:
        parts = []
        for step in plan.tagged:
            tagged = getattr(item, step.attribute)
            if differs(step.value, step.default, tagged):
                parts.append((step.tag or 0, self.tagged_value(step, tagged)))
        parts += self.unknown_tags(plan, item)
        if len(parts) > MAX_TAGS:
            self.unknown_fields_fail(f"{len(parts)} tags: at most {MAX_TAGS} are allowed", item)
        self.out += write_uvarint(len(parts))
        for tag, raw in parts:
            self.out += write_uvarint(tag) + write_uvarint(len(raw)) + raw

    def tagged_value(self, step: Step, item: Any) -> bytes:
        outer, self.out = self.out, bytearray()
        with self.path.at(f".{step.attribute}"):
            self.value(step.value, item)
        raw, self.out = bytes(self.out), outer
        return raw

    def unknown_tags(self, plan: StructPlan, item: Any) -> list[tuple[int, bytes]]:
        try:
            unknown = exact_items(item.unknown_tagged_fields)
        except NotExactError:
            self.unknown_fields_fail("expected a tuple of (tag, bytes)", item)
        previous = -1
        parts = []
        for pair in unknown:
            if not (holds(pair, tuple) and tuple.__len__(pair) == 2 and holds(tuple.__getitem__(pair, 0), int)):
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
