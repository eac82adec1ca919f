"""The decoding interpreter: converts bytes to a message, optionally with a span for each value.

It checks every length before using it, and counts every element and byte against the budget.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NoReturn

from attrs import frozen

from kafka_msgs.codec.ops import FIXED, MAX_LENGTH, MAX_STRING, MAX_TAG, MAX_TAGS, Op
from kafka_msgs.codec.options import CodecOptions
from kafka_msgs.codec.plan import Plan, Step, StructPlan, WireValue
from kafka_msgs.codec.reference.faults import FaultKind, FaultLocation, follow, root_value
from kafka_msgs.codec.reference.path import Path
from kafka_msgs.codec.skippers import FAILURES, Skipper
from kafka_msgs.errors import (
    BudgetExceededError,
    DecodeError,
    InvalidLengthError,
    InvalidTagError,
    InvalidUtf8Error,
    InvalidVarintError,
    TruncatedError,
    UnexpectedNullError,
)
from kafka_msgs.primitives import MAX_UINT32, uuid_from_bytes

__all__ = ["Decoder", "Span"]


@frozen
class Span:
    """The meaning of the bytes from ``start`` to ``end``: the ``path`` of the field, a ``kind`` and the ``value``."""

    start: int
    end: int
    path: str
    kind: str
    value: Any


class Decoder:
    """Reads one message. ``position`` is the next byte to read.

    A subclass may observe or change how each value, field and tag is read. ``passers`` skip fields faster, without
    raising errors.
    """

    def __init__(self, plan: Plan, data: bytes | memoryview, offset: int, options: CodecOptions) -> None:
        self.plan = plan
        self.data = memoryview(data)
        self.position = offset
        self.end = len(data)
        self.options = options
        self.elements_left = options.budget.elements
        self.bytes_left = options.budget.bytes
        self.path = Path()
        self.spans: list[Span] | None = None
        self.passing = False
        self.passers: Mapping[int, Skipper] = {}

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

    def length(self, value: WireValue) -> int | None:
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

    def check_null(self, value: WireValue, start: int) -> None:
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

    # Faults

    def resume(self, location: FaultLocation) -> None:
        """Resume reading from a location to the end of the struct or value that contains it."""
        self.end, self.elements_left, self.bytes_left = location.end, location.elements, location.bytes
        *outer, last = location.trail
        value = root_value(self.plan)
        for part, step, inner in follow(value, outer):
            self.path.parts.append(part)
            self.passing = self.passing or (step is not None and step.skipped)
            value = inner
        if value.op is Op.ARRAY:
            self.path.parts.append(f"[{last}]")
            self.value(value.item)
        elif location.kind == FaultKind.TAG:
            self.tags(value.inner, location.first, location.second)
        elif location.kind == FaultKind.AFTER_TAGGED:
            self.check_tagged_size(value.inner.step(last), location.second, location.first)
        elif last < 0:
            self.field(value.inner.step(last))
        else:
            self.rest(value.inner, last)

    # Values

    def message(self) -> Any:
        if self.plan.root.depth > self.options.budget.depth:
            self.fail(
                BudgetExceededError,
                f"{self.plan.root.depth} levels deep, more than the budget of {self.options.budget.depth}",
            )
        return self.struct(self.plan.root)

    def value(self, value: WireValue) -> Any:
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

    def sized(self, value: WireValue) -> str | bytes | memoryview | None:
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
        if self.passing:
            return None
        self.spend_bytes(length)
        if value.op is Op.STRING:
            try:
                return raw.decode("utf-8", self.options.utf8_errors)
            except UnicodeDecodeError as error:
                self.fail(InvalidUtf8Error, f"not UTF-8: {error.reason}", first + error.start)
        if value.zero_copy and self.options.memoryview_records:
            return self.data[first : self.position]
        return raw

    def array(self, value: WireValue) -> tuple[Any, ...] | None:
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

    def nullable_struct(self, value: WireValue) -> Any:
        if not value.nullable:
            return self.struct(value.inner)
        start = self.position
        present = 0 < self.uvarint() <= MAX_LENGTH if value.compact else self.unpack(Op.INT8) >= 0
        self.record(start, str(value), "present" if present else None)
        return self.struct(value.inner) if present else None

    def struct(self, plan: StructPlan) -> Any:
        values = {absent.attribute: absent.default for absent in plan.absent}
        values |= {step.attribute: step.default for step in plan.tagged}
        return plan.cls(**values | self.rest(plan, 0))

    def rest(self, plan: StructPlan, first: int) -> dict[str, Any]:
        """Read the fields of a struct from an index on."""
        values = {step.attribute: self.field(step) for step in plan.steps[first:]}
        return values | self.tag_section(plan) if plan.flexible else values

    def field(self, step: Step) -> Any:
        with self.path.at(f".{step.attribute}"):
            return self.passed(step) if step.skipped else self.value(step.value)

    def passed(self, step: Step) -> Any:
        """Skip the value of a field by reading only its size. Return the default."""
        fast, left = self.passers.get(id(step)), [self.elements_left]
        if fast is not None:
            with suppress(*FAILURES):
                self.position = fast(self.data, self.position, self.end, left)
                self.elements_left = left[0]
                return step.default
        outer, self.passing = self.passing, True
        self.value(step.value)
        self.passing = outer
        return step.default

    # The tag section

    def tag_section(self, plan: StructPlan) -> dict[str, Any]:
        start = self.position
        count = self.uvarint()
        self.record(start, "tag section", count)
        self.check_tags(count, start)
        return self.tags(plan, count, -1)

    def tags(self, plan: StructPlan, count: int, previous: int) -> dict[str, Any]:
        """Read ``count`` tags; the first one follows the tag ``previous``."""
        known = {step.tag: step for step in plan.tagged}
        values: dict[str, Any] = {}
        unknown: list[tuple[int, bytes]] = []
        for _ in range(count):
            tag, size = self.tag_header(previous)
            previous = tag
            if tag in known and not (self.passing or known[tag].skipped):
                step = known[tag]
                values[step.attribute] = self.tagged_value(step, size)
            elif tag not in plan.inactive_tags and (tag in known or self.passing or plan.partial):
                self.position += size
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
        self.check_tagged_size(step, size, start)
        self.end = outer_end
        return value

    def check_tagged_size(self, step: Step, size: int, start: int) -> None:
        taken = self.position - start
        if taken != size:
            self.fail(InvalidTagError, f"tag {step.tag} declares {size} bytes, its value took {taken}", start)

    def unknown_tag(self, tag: int, size: int) -> bytes:
        start = self.position
        self.spend_elements(1)
        self.spend_bytes(size)
        raw = self.take(size, f"tag {tag}")
        self.record(start, f"unknown tag {tag}", raw)
        return raw
