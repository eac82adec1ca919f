"""Compilation of a generated class and a version to a plan: the fields on the wire in order, without version rules.

This module applies the version rules of the schema (present, tagged, nullable, flexible, absent). Kafka's generator
applies the same rules in ``org.apache.kafka.message.MessageDataGenerator``. The executors (``reference``, ``python``
and the C core) see only plans. A plan prints one line per step. Review these lines when a definition changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Self, dataclass_transform

from kafka_msgs.codec.ops import FIXED, MAX_LENGTH, Op
from kafka_msgs.errors import UnsupportedVersionError
from kafka_msgs.primitive_types import PRIMITIVES
from kafka_msgs.schema import FieldInfo, MessageStruct, fields
from kafka_msgs.versions import version_number

__all__ = ["AbsentField", "Plan", "Step", "StructPlan", "WireValue", "compile_plan"]


@dataclass_transform(eq_default=False, frozen_default=True)
class _PlanNode:
    """Base of the parts of a plan: an immutable object with the annotated attributes.

    attrs would take longer to build these classes than these classes take to build a plan, which would delay the first
    message of a process.
    """

    def __init__(self, *values: Any, **named: Any) -> None:
        self.__dict__.update(zip(self.__annotations__, values, strict=False), **named)

    def replace(self, **changes: Any) -> Self:
        """Return a copy with changes."""
        return type(self)(**{name: getattr(self, name) for name in self.__annotations__} | changes)


class WireValue(_PlanNode):
    """The wire format of one value.

    A ``compact`` length is an unsigned varint of the length plus 1, and 0 is null (KIP-482). Other lengths are int16 or
    int32, and -1 is null. The marker of a nullable struct is a varint if compact, otherwise an int8. ``zero_copy``
    values may be decoded as a view of the input. ``element`` is set for arrays, ``struct`` for structs.
    """

    op: Op
    compact: bool = False
    nullable: bool = False
    zero_copy: bool = False
    element: WireValue | None = None
    struct: StructPlan | None = None

    @property
    def min_size(self) -> int:
        """The smallest size of the value in bytes, at least 1. It limits the count of an array."""
        if self.op in FIXED:
            return FIXED[self.op][1]
        if self.op is Op.STRUCT:
            return 1 if self.nullable else max(1, self.inner.min_size)
        if self.compact:
            return 1
        return self.op.length_size

    @property
    def depth(self) -> int:
        """The nesting depth of arrays and structs in the value."""
        if self.op is Op.ARRAY:
            return self.item.depth + (self.item.op is not Op.STRUCT)
        return self.inner.depth if self.op is Op.STRUCT else 0

    @property
    def inner(self) -> StructPlan:
        """The plan of a struct's fields."""
        assert self.struct is not None, "only structs have fields"
        return self.struct

    @property
    def item(self) -> WireValue:
        """The wire format of an array element."""
        assert self.element is not None, "only arrays have elements"
        return self.element

    def __str__(self) -> str:
        words = ["compact"] * self.compact + ["nullable"] * self.nullable
        if self.op is Op.STRUCT:
            words.append(self.inner.cls.__name__)
        elif self.op is Op.ARRAY:
            words.append(f"array of {self.item}")
        else:
            words.append(self.op.name.lower())
        return " ".join(words)


class Step(_PlanNode):
    """One field on the wire. It is positional if ``tag`` is None. Otherwise it is in the tag section, unless
    default.

    The other attributes belong to partial plans (see ``selection``). The bytes of a ``skipped`` field are skipped, and
    its value is the default. ``edit`` is the number of the edit of the field, or of ``each`` of its elements.
    """

    attribute: str
    json_name: str
    value: WireValue
    default: Any
    tag: int | None = None
    skipped: bool = False
    edit: int | None = None
    each: bool = False


class AbsentField(_PlanNode):
    """A field that this version does not have. Decoding gives ``default``. Another value fails, unless ignorable."""

    attribute: str
    json_name: str
    value: WireValue
    default: Any
    ignorable: bool


class StructPlan(_PlanNode):
    """The steps of one struct at one version.

    ``tagged`` is in ascending order of tag. ``inactive_tags`` are numbers that the definition declares but that are not
    tagged fields at this version. They are never allowed on the wire, neither as known nor as unknown tags. A struct
    with only some selected fields is ``partial``: its unknown tags are skipped.
    """

    cls: type[Any]
    flexible: bool
    steps: tuple[Step, ...]
    tagged: tuple[Step, ...]
    absent: tuple[AbsentField, ...]
    inactive_tags: frozenset[int]
    partial: bool = False

    @cached_property
    def min_size(self) -> int:
        """The smallest size of the struct in bytes, limited to the largest length."""
        return min(MAX_LENGTH, sum(step.value.min_size for step in self.steps) + self.flexible)

    @cached_property
    def depth(self) -> int:
        """The levels of structs and arrays, including this struct."""
        return 1 + max((step.value.depth for step in self.steps + self.tagged), default=0)

    @cached_property
    def weightless_elements(self) -> bool:
        """Whether an array can have zero-byte elements, whose number the input size does not limit."""
        for step in self.steps + self.tagged:
            value = step.value.item if step.value.op is Op.ARRAY else step.value
            if value.op is Op.STRUCT and (
                (step.value.op is Op.ARRAY and not value.inner.min_size) or value.inner.weightless_elements
            ):
                return True
        return False

    def step(self, index: int) -> Step:
        """Return a positional step by its index, or a tagged one by its index from -1 down."""
        return self.steps[index] if index >= 0 else self.tagged[~index]

    @property
    def declared_tags(self) -> frozenset[int]:
        """All tag numbers in the definition, at any version."""
        return self.inactive_tags | {step.tag for step in self.tagged if step.tag is not None}


class Plan(_PlanNode):
    """A message at one version."""

    cls: type[Any]
    version: int
    root: StructPlan

    @property
    def name(self) -> str:
        """The message's name."""
        return str(self.cls.INFO.name)

    def __str__(self) -> str:
        form = "flexible" if self.root.flexible else "not flexible"
        return "\n".join([f"{self.name} v{self.version}, {form}", *_lines(self.root, "  ")])


def _lines(plan: StructPlan, indent: str) -> Iterator[str]:
    for step in plan.steps + plan.tagged:
        tag = "" if step.tag is None else f"tag {step.tag}: "
        omitted = "" if step.tag is None else f", omitted when {step.default!r}"
        skipped = ", passed over" if step.skipped else ""
        yield f"{indent}{tag}{step.attribute}: {step.value}{omitted}{skipped}"
        if step.skipped:
            continue
        value = step.value.item if step.value.op is Op.ARRAY else step.value
        if value.op is Op.STRUCT:
            yield from _lines(value.inner, indent + "  ")
    for absent in plan.absent:
        rule = "dropped" if absent.ignorable else f"must be {absent.default!r}"
        yield f"{indent}absent {absent.attribute}: {rule}"
    if plan.inactive_tags:
        yield f"{indent}inactive tags: {', '.join(map(str, sorted(plan.inactive_tags)))}"


def compile_plan(cls: type[MessageStruct], version: int) -> Plan:
    """Resolve a message class at one version; raise ``UnsupportedVersionError`` when it has no such version.

    A version is a whole number; a bool is not one.
    """
    info = cls.INFO
    number = version_number(version)
    if number is None or number not in info.versions:
        raise UnsupportedVersionError(message=info.name, version=version, supported=info.versions)
    return Plan(cls, number, _Resolver(number, number in info.flexible).struct(cls))


class _Resolver:
    """Converts classes to struct plans at one version, each class once."""

    def __init__(self, version: int, flexible: bool) -> None:
        self.version = version
        self.flexible = flexible
        self.done: dict[type[Any], StructPlan] = {}

    def struct(self, cls: type[Any]) -> StructPlan:
        if cls not in self.done:
            self.done[cls] = self._struct(cls)
        return self.done[cls]

    def _struct(self, cls: type[Any]) -> StructPlan:
        present = [info for info in fields(cls) if self.version in info.versions]
        tagged = [info for info in present if self.version in info.tagged]
        active = {info.tag for info in tagged}
        return StructPlan(
            cls=cls,
            flexible=self.flexible,
            steps=tuple(self.step(info) for info in present if info not in tagged),
            tagged=tuple(sorted((self.step(info) for info in tagged), key=lambda step: step.tag or 0)),
            absent=tuple(
                AbsentField(info.attribute, info.json_name, self.value(info, None), info.default, info.ignorable)
                for info in fields(cls)
                if self.version not in info.versions
            ),
            inactive_tags=frozenset(
                info.tag for info in fields(cls) if info.tag is not None and info.tag not in active
            ),
        )

    def step(self, info: FieldInfo) -> Step:
        tag = info.tag if self.version in info.tagged else None
        return Step(info.attribute, info.json_name, self.value(info, tag), info.default, tag)

    def value(self, info: FieldInfo, tag: int | None) -> WireValue:
        compact = self.flexible and (info.flexible is None or self.version in info.flexible)
        nullable = self.version in info.nullable
        op = PRIMITIVES.get(info.element_type, Op.STRUCT)
        if info.is_array:
            return WireValue(Op.ARRAY, compact, nullable, element=self.scalar(op, info, compact))
        if op is Op.STRUCT:
            # The marker of a nullable struct is an int8 among the positional fields and a varint in a tag.
            return WireValue(op, tag is not None and nullable, nullable, struct=self.struct(info.struct or type(None)))
        return WireValue(op, compact and op not in FIXED, nullable, info.zero_copy or op is Op.RECORDS)

    def scalar(self, op: Op, info: FieldInfo, compact: bool) -> WireValue:
        """Return the format of an array element, which is never nullable; structs have no marker."""
        if op is Op.STRUCT:
            return WireValue(op, struct=self.struct(info.struct or type(None)))
        return WireValue(op, compact and op not in FIXED)
