"""The layout of messages on the wire, as rows for the message pages: encodings by version range, versions of fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from kafka_msgs.cli.render.documentation import field_documentation
from kafka_msgs.codec.ops import FIXED, Op
from kafka_msgs.codec.plan import StructPlan, WireValue, compile_plan
from kafka_msgs.message import Message
from kafka_msgs.schema import FieldInfo, fields
from kafka_msgs.versions import VersionRange

__all__ = ["FieldRow", "LayoutRow", "field_rows", "layouts", "struct_classes"]


class LayoutRow(NamedTuple):
    """A value on the wire: its field's path (array elements have ``[]``), its type, and the form of its bytes."""

    path: str
    type: str
    form: str


class FieldRow(NamedTuple):
    """A field of a message at any depth: its path, its description, the versions that have it, its documentation."""

    path: str
    info: FieldInfo
    versions: VersionRange
    about: str


_TAGS: Final = LayoutRow("_tagged_fields", "tag section", "varint count, then tag, size and value of each")


def layouts(cls: type[Message]) -> list[tuple[VersionRange, tuple[LayoutRow, ...]]]:
    """Return the layout of each range of versions, the newest first; neighbours with the same layout are one range."""
    ranges: list[tuple[VersionRange, tuple[LayoutRow, ...]]] = []
    for version in cls.INFO.versions:
        rows = tuple(_rows(compile_plan(cls, version).root, ""))
        if ranges and ranges[-1][1] == rows:
            ranges[-1] = (VersionRange(ranges[-1][0].lowest, version), rows)
        else:
            ranges.append((VersionRange(version, version), rows))
    return ranges[::-1]


def _rows(plan: StructPlan, above: str) -> Iterator[LayoutRow]:
    for step in plan.steps:
        yield from _value_rows(f"{above}{step.attribute}", step.value, "")
    if plan.flexible:
        yield _TAGS._replace(path=f"{above}{_TAGS.path}")
    for step in plan.tagged:
        yield from _value_rows(f"{above}{step.attribute}", step.value, f"tag {step.tag}: ")


def _value_rows(path: str, value: WireValue, tag: str) -> Iterator[LayoutRow]:
    yield LayoutRow(path, _type(value), f"{tag}{_form(value)}")
    if value.op is Op.ARRAY:
        if value.item.op is Op.STRUCT:
            yield from _rows(value.item.inner, f"{path}[].")
    elif value.op is Op.STRUCT:
        yield from _rows(value.inner, f"{path}.")


def _type(value: WireValue) -> str:
    words = ["compact"] * (value.compact and value.op is not Op.STRUCT) + ["nullable"] * value.nullable
    if value.op is Op.ARRAY:
        return " ".join([*words, "array of", _type(value.item)])
    return " ".join([*words, value.inner.cls.__name__ if value.op is Op.STRUCT else value.op.name.lower()])


def _form(value: WireValue) -> str:
    """Return the form of the bytes of a value."""
    if value.op in FIXED:
        size = FIXED[value.op][1]
        return f"{size} byte{'s' * (size > 1)}"
    if value.op is Op.STRUCT:
        return "marker (-1: null), then the fields" if value.nullable else "the fields"
    length = "varint (length + 1)" if value.compact else f"int{8 * value.op.length_size} length"
    null = f" ({0 if value.compact else -1}: null)" if value.nullable else ""
    rest = {Op.ARRAY: "elements", Op.STRING: "UTF-8"}.get(value.op, "bytes")
    return f"{length.replace('length', 'count') if value.op is Op.ARRAY else length}{null}, then {rest}"


def field_rows(cls: type[Any], versions: VersionRange, above: str = "") -> Iterator[FieldRow]:
    """Yield the fields of a message and of its structs, from the outside in."""
    documentation = field_documentation(cls)
    for info in fields(cls):
        present = info.versions.intersect(versions)
        if present.empty:
            continue
        path = f"{above}{info.attribute}"
        yield FieldRow(path, info, present, documentation.get(info.attribute, ""))
        if info.struct is not None:
            yield from field_rows(info.struct, present, f"{path}.")


def struct_classes(cls: type[Any]) -> list[type[Any]]:
    """Return the classes of the structs in a message, from the outside in."""
    found: dict[type[Any], None] = {}
    for info in fields(cls):
        if info.struct is not None:
            found[info.struct] = None
            found |= dict.fromkeys(struct_classes(info.struct))
    return list(found)
