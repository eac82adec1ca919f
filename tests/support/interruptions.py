"""Exceptions like those of signal handlers, raised at each opcode of a call."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any, Generic, NamedTuple, TypeVar

T = TypeVar("T")

_OURS = "/kafka_msgs/client/"
_MOVES = (
    "COPY", "JUMP_FORWARD", "KW_NAMES", "LOAD_CONST", "LOAD_DEREF", "LOAD_FAST", "NOP", "POP_EXCEPT",
    "POP_JUMP_FORWARD", "POP_JUMP_IF", "POP_TOP", "PRECALL", "PUSH_EXC_INFO", "PUSH_NULL", "RERAISE", "RETURN_CONST",
    "RETURN_VALUE", "STORE_FAST", "SWAP", "YIELD_VALUE",
)  # fmt: skip


class InterruptedCallError(Exception):
    """The exception of an interrupted call."""


class Interrupted(NamedTuple, Generic[T]):
    """How a call ended: its value, or None if ``interrupted``."""

    value: T | None
    interrupted: bool


def interrupt(step: int, call: Callable[[], T]) -> Interrupted[T]:
    """Run a call, and raise before its ``step``-th opcode, counted over all functions of the client in this thread.

    Opcodes at which the interpreter runs no signal handler are not counted: those that only move values between the
    stack and local variables, that jump forward or return, and that leave a ``with`` block.
    """
    left = step

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal left
        if _OURS not in frame.f_code.co_filename or left < 0:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode" and frame.f_lasti not in _uninterruptible(frame.f_code):
            left -= 1
            if left < 0:
                raise InterruptedCallError
        return trace

    before = sys.gettrace()
    try:
        sys.settrace(trace)
        try:
            value = call()
        finally:
            sys.settrace(before)
    except InterruptedCallError:
        return Interrupted(None, interrupted=True)
    return Interrupted(value, interrupted=False)


@lru_cache(None)
def _uninterruptible(code: CodeType) -> frozenset[int]:
    """Return the offsets of opcodes that move values, return, or call ``__exit__`` without an exception."""
    instructions = list(dis.get_instructions(code))
    found = {each.offset for each in instructions if each.opname.startswith(_MOVES)}
    for index in range(len(instructions) - 4):
        if all(_is_none(each) for each in instructions[index : index + 3]):
            last = next(at for at in range(index + 3, len(instructions)) if instructions[at].opname.startswith("CALL"))
            found.update(each.offset for each in instructions[index - 1 : last + 1])
    return frozenset(found)


def _is_none(instruction: dis.Instruction) -> bool:
    return instruction.opname == "LOAD_CONST" and instruction.argval is None
