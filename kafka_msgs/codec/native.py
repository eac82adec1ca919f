"""The C executor: converts plans to the tuples that the C core executes.

The tuples have the same content as the plan. Attributes are the descriptors of their slots, and nested structs are
indexes. The extension checks the tuples. It trusts only their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from kafka_msgs._core import extension
from kafka_msgs.codec.error_explanation import (
    CodecFunctions,
    PartFunctions,
    decode_failure,
    edit_failure,
    encode_failure,
    trailing_data,
)
from kafka_msgs.codec.ops import LengthFlag, Op
from kafka_msgs.codec.options import CodecOptions
from kafka_msgs.codec.plan import AbsentField, Plan, Step, StructPlan, WireValue

__all__ = ["functions", "part_functions"]

_UNLIMITED = 2**63 - 1


def functions(plan: Plan, options: CodecOptions) -> CodecFunctions:
    """Return the functions of a plan."""
    core = _core(plan, options, partial(encode_failure, plan, options))
    return CodecFunctions(core.encode, core.decode, core.read)


def part_functions(plan: Plan, options: CodecOptions) -> PartFunctions:
    """Return the functions of a partial plan."""
    core = _core(plan, options, partial(edit_failure, plan, options))
    return PartFunctions(core.read, core.patch)


def _core(plan: Plan, options: CodecOptions, refused: Callable[..., Exception]) -> extension.Codec:
    budget = options.budget
    return extension.Codec(
        _Lowering().program(plan),
        min(budget.elements, _UNLIMITED),
        min(budget.bytes, _UNLIMITED),
        plan.root.depth > budget.depth,
        options.memoryview_records,
        None if options.utf8_errors == "strict" else options.utf8_errors,
        refused,
        partial(decode_failure, plan, options),
        partial(trailing_data, plan),
    )


class _Lowering:
    """Numbers the structs of a plan, each before its nested structs, and describes them."""

    def __init__(self) -> None:
        self.numbers: dict[StructPlan, int] = {}

    def program(self, plan: Plan) -> tuple[Any, ...]:
        structs = list(reversed(list(_innermost_first(plan.root, set()))))
        self.numbers = {struct: number for number, struct in enumerate(structs)}
        return tuple(map(self.struct, structs))

    def struct(self, plan: StructPlan) -> tuple[Any, ...]:
        cls = plan.cls
        return (
            cls,
            cls.unknown_tagged_fields,
            plan.flexible,
            plan.partial,
            tuple(self.step(cls, step) for step in plan.steps),
            tuple(self.step(cls, step) for step in plan.tagged),
            tuple(self.step(cls, each) for each in plan.absent),
            tuple(plan.inactive_tags),
        )

    def step(self, cls: type[Any], step: Step | AbsentField) -> tuple[Any, ...]:
        value = step.value
        item = value.item if value.op is Op.ARRAY else value
        nested = self.numbers[item.inner] if item.op is Op.STRUCT else -1
        skipped, number, each = (step.skipped, step.edit, step.each) if isinstance(step, Step) else (False, None, False)
        edit = 0 if number is None else number + 1
        return (
            value.op,
            _flags(value) | LengthFlag.SKIPPED * skipped,
            item.op,
            _flags(item),
            item.min_size,
            nested,
            (step.tag if isinstance(step, Step) else None) or 0,
            step.default,
            isinstance(step, AbsentField) and step.ignorable,
            getattr(cls, step.attribute),
            -edit if each else edit,
        )


def _innermost_first(plan: StructPlan, seen: set[StructPlan]) -> Iterator[StructPlan]:
    """Yield a struct after all its nested structs, each once."""
    seen.add(plan)
    fields: tuple[Step | AbsentField, ...] = (*plan.steps, *plan.tagged, *plan.absent)
    for each in fields:
        item = each.value.element or each.value
        if item.struct is not None and item.struct not in seen:
            yield from _innermost_first(item.struct, seen)
    yield plan


def _flags(value: WireValue) -> int:
    return (
        LengthFlag.COMPACT * value.compact
        | LengthFlag.NULLABLE * value.nullable
        | LengthFlag.ZERO_COPY * value.zero_copy
    )
