"""The Python executor: generates the functions of a plan in pure Python, without a C compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafka_msgs.codec import reference
from kafka_msgs.codec.emit_decode import decode_source
from kafka_msgs.codec.emit_encode import encode_source
from kafka_msgs.codec.error_explanation import (
    CodecFunctions,
    Edit,
    Locator,
    PartFunctions,
    checked_buffer,
    with_explained_errors,
)
from kafka_msgs.codec.options import Buffer, CodecOptions, DecodeBudget
from kafka_msgs.codec.plan import Plan
from kafka_msgs.codec.skippers import compile_skippers
from kafka_msgs.codec.source_writer import MalformedError

__all__ = ["functions", "part_functions", "source"]

_TRACED_FROM = 4096
"""Refused bytes of one plan from which the traced form pays. It takes 1 to 3 ms to compile; the reference processes
0.5 to 10 KB of most messages in that time.
"""


def functions(plan: Plan, options: CodecOptions) -> CodecFunctions:
    """Return the functions of a plan, for encoding and decoding."""
    encode = encode_source(plan, options).build("encode", f"<kafka_msgs encode {plan.name} v{plan.version}>")
    return with_explained_errors(plan, options, encode, _decode_at(plan, options), _locator(plan, options))


def part_functions(plan: Plan, options: CodecOptions) -> PartFunctions:
    """Return the functions of a partial plan: the reference interpreter with fast skippers of fields."""
    fast = compile_skippers(plan.root)

    def read(buffer: Buffer, offset: int = 0) -> tuple[Any, int]:
        decoder = reference.Decoder(plan, checked_buffer(buffer, offset), offset, options)
        decoder.passers = fast
        return decoder.message(), decoder.position

    def patch(buffer: Buffer, offset: int, edits: tuple[Edit, ...]) -> bytes:
        patcher = reference.Patcher(plan, checked_buffer(buffer, offset), offset, options, edits)
        patcher.passers = fast
        return patcher.patched()

    return PartFunctions(read, patch)


def _decode_at(plan: Plan, options: CodecOptions) -> Callable[[bytes, int], tuple[Any, int]]:
    """Return the decoder for small inputs. For larger inputs it makes and calls the one that counts the budget."""
    budget = options.budget
    if plan.root.depth > budget.depth:
        return _refuse
    decode = _decoder(plan, options, counted=False)
    limit = _uncounted_size(plan, budget)
    counted: list[Callable[..., Any]] = []

    def decode_at(data: bytes, offset: int) -> tuple[Any, int]:
        if len(data) - offset <= limit:
            return decode(data, offset)  # type: ignore[no-any-return]
        if not counted:
            counted.append(_decoder(plan, options, counted=True))
        message, end, _, _ = counted[0](data, offset, budget.elements, budget.bytes)
        return message, end

    return decode_at


def _locator(plan: Plan, options: CodecOptions) -> Locator:
    """Return the function that locates faults; it compiles the traced form of the decoder once that pays."""
    limit = _uncounted_size(plan, options.budget)
    made: dict[bool, Callable[..., Any]] = {}
    refused = 0

    def locate(data: bytes, offset: int) -> tuple[Any, ...] | None:
        nonlocal refused
        size = len(data) - offset
        refused += size
        if refused < _TRACED_FROM or plan.root.depth > options.budget.depth:
            return None
        counted = size > limit
        if counted not in made:
            source = decode_source(plan, options, counted, traced=True)
            made[counted] = source.build("decode", f"<kafka_msgs locate {plan.name} v{plan.version}, {counted}>")
        account = (options.budget.elements, options.budget.bytes) if counted else ()
        return made[counted](data, offset, *account)  # type: ignore[no-any-return]

    return locate


def _refuse(data: bytes, offset: int) -> tuple[Any, int]:
    raise MalformedError


def _decoder(plan: Plan, options: CodecOptions, counted: bool) -> Callable[..., Any]:
    form = ", counted" if counted else ""
    filename = f"<kafka_msgs decode {plan.name} v{plan.version}{form}>"
    return decode_source(plan, options, counted).build("decode", filename)


def _uncounted_size(plan: Plan, budget: DecodeBudget) -> int:
    """Return the largest input size that cannot exceed the budget: each element and each kept byte takes one byte."""
    return -1 if plan.root.weightless_elements else min(budget.elements, budget.bytes)


def source(plan: Plan, options: CodecOptions) -> str:
    """Return the generated source for encoding and decoding, for a reader."""
    return decode_source(plan, options, counted=False).text() + "\n\n" + encode_source(plan, options).text()
