"""Reads arrays of structs with the same shape in one step. Large Kafka messages often have such arrays.

The partitions of a topic mostly have the same number of replicas, so their bytes have the same layout. A block reader
reads the lengths in the first element, and makes a function for elements of that shape. That function first checks that
every element has the same lengths and the same empty tag section as the first one. Strided slices do this without a
loop. If the check succeeds, all elements have the same size and ``iter_unpack`` reads them. If not, the function
returns None, and the caller reads the elements one by one.

Shapes come from the input, so their number has a limit: after ``_MAX_SHAPES`` no more functions are made.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct as PackedStruct
from typing import Any

from kafka_msgs.codec.ops import FIXED, Op
from kafka_msgs.codec.plan import Step, StructPlan
from kafka_msgs.codec.source import Source
from kafka_msgs.primitives import uuid_from_bytes

__all__ = ["BLOCK_MINIMUM", "block_reader", "is_block"]

BLOCK_MINIMUM = 4
"""For arrays with fewer elements the check costs more than it saves."""

_MAX_SHAPES = 32
_LONGEST = 32
"""The longest inner array that a shape may have."""

Reader = Callable[[bytes, int, int], "tuple[tuple[Any, ...], int] | None"]


def is_block(plan: StructPlan) -> bool:
    """Whether elements have only fixed-size values and arrays of such values, and no tagged fields."""
    return bool(plan.steps) and not plan.tagged and all(step.value.op in FIXED or _is_run(step) for step in plan.steps)


def _is_run(step: Step) -> bool:
    """Whether a field is an array whose elements ``struct`` can unpack."""
    value = step.value
    return value.op is Op.ARRAY and not value.nullable and value.item.op in FIXED and value.item.op is not Op.UUID


def block_reader(plan: StructPlan, build: Callable[[Source, dict[str, str]], str]) -> Reader:
    """Return ``read(buf, pos, n)`` -> (elements, position) or None, for elements of ``plan``.

    ``build`` adds the lines that make one object of the plan's class out of named values.
    """
    shapes: dict[tuple[int, ...], Reader] = {}

    def make(lengths: tuple[int, ...]) -> Reader:
        if len(shapes) >= _MAX_SHAPES:
            return _decline
        shapes[lengths] = reader = _shape_reader(plan, lengths, build)
        return reader

    source = Source()
    source.constants |= {"shapes": shapes, "make": make}
    with source.block("def read(buf, pos, n):"):
        names = _first_lengths(plan, source)
        key = f"({''.join(f'{name}, ' for name in names)})"
        source.line(f"return (shapes.get({key}) or make({key}))(buf, pos, n)")
    return source.build("read", f"<kafka_msgs block of {plan.cls.__name__}>")


def _decline(buffer: bytes, position: int, count: int) -> None:
    return None


def _first_lengths(plan: StructPlan, source: Source) -> list[str]:
    """Emit the reading of the first element's array lengths; return their variables."""
    names: list[str] = []
    skip = 0
    source.line("p = pos")
    for step in plan.steps:
        if step.value.op in FIXED:
            skip += FIXED[step.value.op][1]
            continue
        name = f"n{len(names)}"
        names.append(name)
        size = FIXED[step.value.item.op][1]
        if step.value.compact:
            source.line(f"{name} = buf[p + {skip}] - 1")
        else:
            source.line(f'{name} = int.from_bytes(buf[p + {skip} : p + {skip + 4}], "big", signed=True)')
        with source.block(f"if not 0 <= {name} <= {_LONGEST}:"):
            source.line("return None")
        source.line(f"p += {skip + _prefix(step)} + {name} * {size}")
        skip = 0
    return names


def _prefix(step: Step) -> int:
    """The size of an array's length."""
    return 1 if step.value.compact else 4


def _shape_reader(plan: StructPlan, lengths: tuple[int, ...], build: Callable[[Source, dict[str, str]], str]) -> Reader:
    """Return the function that reads elements whose arrays have these lengths."""
    codes, names, values, checks = _layout(plan, lengths)
    packed = PackedStruct(">" + "".join(codes))
    source = Source()
    source.constants |= {"iter_unpack": packed.iter_unpack, "uuid": uuid_from_bytes}
    with source.block("def read(buf, pos, n):"):
        source.line(f"stop = pos + n * {packed.size}")
        source.line("block = buf[pos:stop]")
        for offset, byte in checks:
            with source.block(f"if block[{offset}::{packed.size}] != {bytes([byte])!r} * n:"):
                source.line("return None")
        source.line("items = []")
        source.line("add = items.append")
        with source.block(f"for {', '.join(names)}{',' if len(names) == 1 else ''} in iter_unpack(block):"):
            source.line(f"add({build(source, values)})")
        source.line("return tuple(items), stop")
    return source.build("read", f"<kafka_msgs block of {plan.cls.__name__} {lengths}>")


def _layout(
    plan: StructPlan, lengths: tuple[int, ...]
) -> tuple[list[str], list[str], dict[str, str], list[tuple[int, int]]]:
    """Return the struct codes, the names they unpack into, each field's expression, and the bytes to verify."""
    codes: list[str] = []
    names: list[str] = []
    values: dict[str, str] = {}
    checks: list[tuple[int, int]] = []
    offset = 0
    counts = iter(lengths)
    for number, step in enumerate(plan.steps):
        if step.value.op in FIXED:
            code, size = FIXED[step.value.op]
            codes.append(code)
            names.append(f"v{number}")
            values[step.attribute] = f"uuid(v{number})" if step.value.op is Op.UUID else f"v{number}"
            offset += size
            continue
        count = next(counts)
        code, size = FIXED[step.value.item.op]
        prefix = bytes([count + 1]) if step.value.compact else count.to_bytes(4, "big")
        checks += [(offset + index, byte) for index, byte in enumerate(prefix)]
        codes.append(f"{len(prefix)}x{count}{code}")
        elements = [f"v{number}_{index}" for index in range(count)]
        names += elements
        values[step.attribute] = f"({''.join(f'{element}, ' for element in elements)})"
        offset += len(prefix) + count * size
    if plan.flexible:
        codes.append("x")
        checks.append((offset, 0))
    return codes, names, values, checks
