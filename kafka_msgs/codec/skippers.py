"""Skippers in pure Python: functions that find the end of a value without decoding it.

They are built once for each skipped step of a partial plan. They do not track paths or raise exact errors. If a skipper
fails, the reference interpreter skips the same value again and raises the exact error.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from kafka_msgs.codec.ops import FIXED, MAX_LENGTH, MAX_STRING, MAX_TAG, MAX_TAGS, Op
from kafka_msgs.codec.plan import Step, StructPlan, WireValue
from kafka_msgs.primitives import read_uvarint

__all__ = ["FAILURES", "Skipper", "compile_skippers"]

Skipper: TypeAlias = Callable[[memoryview, int, int, list[int]], int]
"""Takes the data, a position, the end, and a list with the remaining element budget; returns the next position."""

FAILURES: Final = (IndexError, ValueError, struct.error)
"""The exceptions that a skipper raises for a value that it cannot skip."""

_UNPACK: Final = {2: struct.Struct(">h").unpack_from, 4: struct.Struct(">i").unpack_from}


def compile_skippers(plan: StructPlan) -> dict[int, Skipper]:
    """Return the skippers of a partial plan, by the ``id`` of the skipped step."""
    return {id(step): _passer(step.value) for step in _skipped(plan)}


def _skipped(plan: StructPlan) -> Iterator[Step]:
    for step in plan.steps:
        value = step.value.item if step.value.op is Op.ARRAY else step.value
        if step.skipped:
            yield step
        elif value.op is Op.STRUCT:
            yield from _skipped(value.inner)
    for step in plan.tagged:
        value = step.value.item if step.value.op is Op.ARRAY else step.value
        if not step.skipped and value.op is Op.STRUCT:
            yield from _skipped(value.inner)


def _passer(value: WireValue) -> Skipper:
    if value.op in FIXED:
        return _fixed(FIXED[value.op][1])
    if value.op is Op.ARRAY:
        return _array(value)
    if value.op is Op.STRUCT:
        return _nullable_struct(value) if value.nullable else _struct(value.inner)
    return _sized(value)


def _fixed(size: int) -> Skipper:
    return lambda data, pos, end, left: _within(pos + size, end)


def _within(pos: int, end: int) -> int:
    if pos > end:
        raise IndexError
    return pos


def _length(value: WireValue) -> Callable[[memoryview, int], tuple[int, int]]:
    """Return a function that reads a length: -1 for a null. It refuses a null that is not allowed."""
    size = value.op.length_size
    unpack = _UNPACK[size]
    lowest = -1 if value.nullable else 0

    def compact(data: memoryview, pos: int) -> tuple[int, int]:
        length, pos = (data[pos], pos + 1) if data[pos] < 0x80 else read_uvarint(data, pos)
        if length <= lowest:
            raise ValueError
        return length - 1, pos

    def classic(data: memoryview, pos: int) -> tuple[int, int]:
        (length,) = unpack(data, pos)
        if length < lowest:
            raise ValueError
        return length, pos + size

    return compact if value.compact else classic


def _sized(value: WireValue) -> Skipper:
    read, limit = _length(value), MAX_STRING if value.op is Op.STRING else MAX_LENGTH

    def pass_sized(data: memoryview, pos: int, end: int, left: list[int]) -> int:
        length, pos = read(data, pos)
        if length > 0:
            pos += length
        if pos > end or length > limit:
            raise IndexError
        return pos

    return pass_sized


def _array(value: WireValue) -> Skipper:
    read, least, item = _length(value), value.item.min_size, _passer(value.item)
    size = FIXED[value.item.op][1] if value.item.op in FIXED else 0

    def pass_array(data: memoryview, pos: int, end: int, left: list[int]) -> int:
        count, pos = read(data, pos)
        if count <= 0:
            return _within(pos, end)
        left[0] -= count
        if count * least > end - pos or left[0] < 0:
            raise IndexError
        if size:
            return pos + count * size
        for _ in range(count):
            pos = item(data, pos, end, left)
        return pos

    return pass_array


def _nullable_struct(value: WireValue) -> Skipper:
    inner = _struct(value.inner)

    def pass_nullable_struct(data: memoryview, pos: int, end: int, left: list[int]) -> int:
        if value.compact:
            marker, pos = read_uvarint(data, pos)
            present = 0 < marker <= MAX_LENGTH
        else:
            present, pos = data[pos] < 0x80, pos + 1
        return inner(data, pos, end, left) if present else _within(pos, end)

    return pass_nullable_struct


def _struct(plan: StructPlan) -> Skipper:
    """Return the skipper of a struct: it skips adjacent fields of fixed size together."""
    parts: list[tuple[int, Skipper]] = []
    run = 0
    for step in plan.steps:
        if step.value.op in FIXED:
            run += FIXED[step.value.op][1]
        else:
            parts.append((run, _passer(step.value)))
            run = 0
    tags = _tags(plan)

    def pass_struct(data: memoryview, pos: int, end: int, left: list[int]) -> int:
        for before, part in parts:
            pos = part(data, pos + before, end, left)
        pos += run
        return tags(data, pos, end, left) if plan.flexible else _within(pos, end)

    return pass_struct


def _tags(plan: StructPlan) -> Skipper:
    def pass_tags(data: memoryview, pos: int, end: int, left: list[int]) -> int:
        count, pos = read_uvarint(data, pos)
        previous = -1
        if count > MAX_TAGS:
            raise ValueError
        for _ in range(count):
            tag, pos = read_uvarint(data, pos)
            size, pos = read_uvarint(data, pos)
            if not previous < tag <= MAX_TAG or tag in plan.inactive_tags:
                raise ValueError
            previous = tag
            pos = _within(pos + size, end)
        return _within(pos, end)

    return pass_tags
