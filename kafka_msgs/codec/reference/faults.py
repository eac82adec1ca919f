"""Fault locations: the position at which a fast executor stopped, and the steps from the root of the plan to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from kafka_msgs.codec.ops import Op
from kafka_msgs.codec.plan import Plan, Step, WireValue

__all__ = ["FaultKind", "FaultLocation", "Trail", "follow", "root_value"]

Trail: TypeAlias = tuple[int, ...]
"""The indexes of fields and of array elements from the root to a fault. A tagged field has a negative index, see
``StructPlan.step``; any index after the last positional field is the tag section. An empty trail leads nowhere."""


class FaultKind(IntEnum):
    """The kind of the reader's position."""

    VALUE = 0
    """The start of a value."""

    TAG = 1
    """The start of a tag."""

    AFTER_TAGGED = 2
    """The end of a tagged value that does not have its declared size."""


class FaultLocation(NamedTuple):
    """The position at which decoding stopped.

    ``position`` is the next byte to read, ``end`` the end of the data or of the enclosing tagged field. ``elements``
    and ``bytes`` are the remaining budget. ``first`` and ``second`` are the number of remaining tags and the previous
    tag (``TAG``), or the start and the declared size of the value (``AFTER_TAGGED``).
    """

    trail: Trail
    position: int
    end: int
    elements: int
    bytes: int
    kind: int = FaultKind.VALUE
    first: int = 0
    second: int = 0


def root_value(plan: Plan) -> WireValue:
    """Return the value from which trails start: the message."""
    return WireValue(Op.STRUCT, struct=plan.root)


def follow(value: WireValue, trail: Iterable[int]) -> Iterator[tuple[str, Step | None, WireValue]]:
    """Yield, for each index of a trail from ``value``, its part of the path, its step (None: an element) and value."""
    for index in trail:
        if value.op is Op.ARRAY:
            value = value.item
            yield f"[{index}]", None, value
        else:
            step = value.inner.step(index)
            value = step.value
            yield f".{step.attribute}", step, value
