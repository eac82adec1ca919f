"""Lowering of plans and Arrow types to the programs that the C core runs.

A program maps each field to a column of a table. The table is the Arrow type in preorder. For each version, every
place in the table has a separate struct in the program. This module defines the meaning of programs. The core checks
programs only for memory safety.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
from attrs import frozen

from kafka_msgs.binary_layouts import UUID_TEXT, ColumnKind
from kafka_msgs.codec import CodecOptions
from kafka_msgs.codec.ops import FIXED, SKIP, LengthFlag, Op
from kafka_msgs.codec.plan import Plan, Step, StructPlan, WireValue, compile_plan
from kafka_msgs.columns.types import KAFKA_TYPE, UNKNOWN_TAGS
from kafka_msgs.primitive_types import PRIMITIVES
from kafka_msgs.schema import FieldInfo, MessageStruct, fields
from kafka_msgs.versioned import version_prefix

__all__ = ["Lowering", "inner_types", "iter_plans"]

_UNLIMITED: Final = 2**63 - 1


def inner_types(type_: pa.DataType, uuid: bool) -> Iterator[tuple[str, pa.DataType, bool]]:
    """Yield the child columns of a type: name, type, and whether the values are UUID texts."""
    if pa.types.is_struct(type_):
        for field in type_:
            yield field.name, field.type, (field.metadata or {}).get(KAFKA_TYPE, b"").endswith(b"uuid")
    elif pa.types.is_map(type_):
        yield "", pa.struct([type_.key_field, type_.item_field]), False
    elif pa.types.is_list(type_):
        yield "", type_.value_type, uuid


@frozen
class _Column:
    """A place in the table: its number, and the places below it by name. The name of an element is ``""``."""

    number: int
    below: dict[str, _Column]

    def get(self, name: str) -> _Column | None:
        return self.below.get(name)


_Spec = tuple[Any, ...]
_Program = tuple[_Spec, _Spec, _Spec, bool, int, int]


class Lowering:
    """Builds the program of a type: the table of its columns, and the structs that fill them."""

    def __init__(self, type_: pa.StructType) -> None:
        self.columns: list[_Spec] = []
        self.structs: list[_Spec] = []
        self.root = self.place(type_, uuid=False)

    def program(self, cls: type[MessageStruct], version: int | None, options: CodecOptions) -> _Program:
        """Describe the program of a message for one version, or for all versions, each with the version prefix that
        ``decode_versioned`` reads.
        """
        budget = options.budget
        forms = []
        for prefix, plan in iter_plans(cls, version):
            forms.append((prefix, plan.root.depth > budget.depth, self.struct(plan.root, self.root)))
        return (
            tuple(self.columns),
            tuple(self.structs),
            tuple(forms),
            version is None,
            min(budget.elements, _UNLIMITED),
            min(budget.bytes, _UNLIMITED),
        )

    # Columns

    def place(self, type_: pa.DataType, uuid: bool) -> _Column:
        """Assign a place to each column of a type."""
        number = len(self.columns)
        self.columns.append(())
        kind, width = _shape(type_, uuid)
        below = {name: self.place(inner, within) for name, inner, within in inner_types(type_, uuid)}
        self.columns[number] = (kind, width, len(self.columns) - number)
        return _Column(number, below)

    # Structs

    def struct(self, plan: StructPlan, column: _Column | None) -> int:
        """Describe a struct, and return its number. Its fields go below a column, or are skipped."""
        number = len(self.structs)
        self.structs.append(())
        infos = {info.attribute: info for info in fields(plan.cls)}
        absent = [each for each in plan.absent if column and column.get(each.attribute)]
        self.structs[number] = (
            column.number if column else -1,
            _number(column and column.get(UNKNOWN_TAGS)),
            plan.flexible,
            tuple(self.steps(plan.steps, column)),
            tuple(self.tagged(step, infos[step.attribute], column) for step in plan.tagged),
            tuple(self.constant(infos[each.attribute], each.default, column, each.ignorable) for each in absent),
            tuple(plan.inactive_tags),
        )
        return number

    def steps(self, steps: Sequence[Step], column: _Column | None) -> Iterator[_Spec]:
        """Yield the ops of positional fields. Adjacent skipped fields of fixed size become one op.

        Instead of a tag, each op has the index of its field (or of its first skipped field), for fault locations.
        """
        skipped = first = 0
        for index, step in enumerate(steps):
            target = column and column.get(step.attribute)
            if target is None and step.value.op in FIXED:
                first = first if skipped else index
                skipped += FIXED[step.value.op][1]
                continue
            if skipped:
                yield _skip(skipped, first)
                skipped = 0
            yield self.op(step, index, target)
        if skipped:
            yield _skip(skipped, first)

    def tagged(self, step: Step, info: FieldInfo, column: _Column | None) -> _Spec:
        target = column and column.get(step.attribute)
        return self.op(step, step.tag or 0, target, *(self.initial(info, step.default, target) if target else ()))

    def op(self, step: Step, tag: int, target: _Column | None, initial: Any = None, empty: int = -1) -> _Spec:
        """Describe a field that is in the bytes; see ``initial`` for the last two items."""
        value, item, place = step.value, step.value, target
        if value.op is Op.ARRAY:
            item, place = value.item, target and target.get("")
        nested = self.struct(item.inner, place) if item.op is Op.STRUCT else -1
        return (
            value.op, _flags(value), item.op, _flags(item), item.min_size, nested, tag, initial, False,
            _number(target), empty,
        )  # fmt: skip

    # Defaults

    def constant(self, info: FieldInfo, default: Any, column: _Column | None, ignorable: bool = False) -> _Spec:
        """Describe a wanted column whose field is not in the bytes."""
        target = column and column.get(info.attribute)
        assert target is not None, "only wanted fields have constants"
        initial, empty = self.initial(info, default, target)
        return _absent(_op(info), initial, ignorable, target, empty)

    def initial(self, info: FieldInfo, default: Any, target: _Column) -> tuple[Any, int]:
        """Return the default of a field in the core's form: None, bytes, or any object and the number of a struct."""
        op = _op(info)
        if default is None or op is Op.ARRAY:
            assert default in (None, ()), "arrays are empty by default"
            return default, -1
        return ((), self.constants(default, target)) if op is Op.STRUCT else (_raw(op, default), -1)

    def constants(self, default: Any, column: _Column) -> int:
        """Describe a struct that is a default value, and return its number."""
        number = len(self.structs)
        self.structs.append(())
        found = [
            self.constant(info, getattr(default, info.attribute), column)
            for info in fields(type(default))
            if column.get(info.attribute)
        ]
        tags = column.get(UNKNOWN_TAGS)
        if tags:
            found.append(_absent(Op.ARRAY, None, False, tags, -1))
        self.structs[number] = (column.number, 0, False, (), (), tuple(found), ())
        return number


def iter_plans(cls: type[MessageStruct], version: int | None) -> Iterator[tuple[int, Plan]]:
    """Yield the version prefix and plan of each possible version of a row; a fixed version has one plan."""
    for each in cls.INFO.versions if version is None else (version,):
        yield version_prefix(cls, each), compile_plan(cls, each)


def _shape(type_: pa.DataType, uuid: bool) -> tuple[int, int]:
    """Return the kind of a column, and the size in bytes of one value, or of the text reserved for one value."""
    if pa.types.is_struct(type_):
        return ColumnKind.STRUCT, 0
    if pa.types.is_list(type_) or pa.types.is_map(type_):
        return ColumnKind.LIST, 0
    if pa.types.is_boolean(type_):
        return ColumnKind.BITS, 0
    if pa.types.is_string(type_) or pa.types.is_binary(type_):
        return ColumnKind.TEXT, UUID_TEXT if uuid else 0
    return ColumnKind.FIXED, type_.bit_width // 8


def _raw(op: Op, default: Any) -> bytes:
    """Return a default value in its encoding, without a length."""
    if op is Op.STRING:
        return str(default).encode()
    if op is Op.UUID:
        return bytes(default.bytes)
    return struct.pack(f">{FIXED[op][0]}", default) if op in FIXED else bytes(default)


def _op(info: FieldInfo) -> Op:
    return Op.ARRAY if info.is_array else PRIMITIVES.get(info.type, Op.STRUCT)


def _skip(size: int, first: int) -> _Spec:
    return (SKIP, 0, 0, 0, size, -1, first, None, False, 0, -1)


def _absent(op: Op, initial: Any, ignorable: bool, target: _Column, empty: int) -> _Spec:
    return (op, 0, 0, 0, 1, -1, 0, initial, ignorable, target.number, empty)


def _number(column: _Column | None) -> int:
    return column.number if column else 0


def _flags(value: WireValue) -> int:
    return LengthFlag.COMPACT * value.compact | LengthFlag.NULLABLE * value.nullable
