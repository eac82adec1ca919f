"""Explanation of errors after an executor failed.

A fast executor only detects a fault and its location. The reference interpreter then resumes at that location and
raises the exact error. So all executors raise the same errors, and error reporting does not slow them down: valid input
has no extra cost, and refused input a constant one. Without a location, or without an error at it, the reference
processes the complete input. If it finds no error either, one of the two has a bug, which is an ``InternalError``. The
reference is imported at the first error, because most programs never need it.

This module owns ``CodecFunctions``, the functions that an executor builds from a plan. ``with_explained_errors`` adds
the errors to the functions of a Python executor. The C core calls ``encode_failure``, ``decode_failure`` and
``trailing_data`` directly.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

from kafka_msgs.codec.options import Buffer, CodecOptions, buffer_bytes
from kafka_msgs.codec.plan import Plan
from kafka_msgs.errors import DecodeError, EncodeError, InternalError, TrailingDataError

__all__ = [
    "CodecFunctions",
    "Edit",
    "Executor",
    "Locator",
    "PartFunctions",
    "checked_buffer",
    "decode_failure",
    "edit_failure",
    "encode_failure",
    "trailing_data",
    "with_explained_errors",
]


class CodecFunctions(NamedTuple):
    """The functions of a codec. ``Codec`` describes them."""

    encode: Callable[[Any], bytes]
    decode: Callable[..., Any]
    read: Callable[..., tuple[Any, int]]


class PartFunctions(NamedTuple):
    """The functions of a partial plan. ``field_access`` describes them."""

    read: Callable[..., tuple[Any, int]]
    patch: Callable[[Buffer, int, tuple[Edit, ...]], bytes]


Edit: TypeAlias = Callable[[Any], Any]
"""Takes the value of a field, and returns the value to write. Returning the same object means no change."""

Executor = Callable[[Plan, CodecOptions], CodecFunctions]
"""An executor builds the functions of one plan."""


Locator: TypeAlias = Callable[[bytes, int], tuple[Any, ...] | None]
"""Takes refused data and its offset, and returns the fields of the reference's ``FaultLocation``, or None."""


def encode_failure(
    plan: Plan, options: CodecOptions, message: Any, failure: Exception, trail: tuple[int, ...] = ()
) -> Exception:
    """Return the error of a message that an executor refused with ``failure``, at the end of a trail if it has one."""
    from kafka_msgs.codec import reference

    _forget_frames(failure)
    try:
        if trail:
            reference.resume_encode(plan, message, options, trail)
        reference.encode(plan, message, options)
    except EncodeError as error:
        _forget_frames(error)
        return error
    return _unexplained(f"{plan.name} v{plan.version} encodes in the reference only", failure)


def decode_failure(
    plan: Plan,
    options: CodecOptions,
    data: bytes,
    offset: int,
    failure: Exception,
    location: tuple[Any, ...] | None,
) -> Exception:
    """Return the error of bytes that an executor refused with ``failure``, at a location if it has one."""
    from kafka_msgs.codec import reference

    _forget_frames(failure)
    try:
        if location is not None and location[0]:
            reference.resume_decode(plan, data, options, reference.FaultLocation(*location))
        reference.decode(plan, data, offset, options)
    except DecodeError as error:
        _forget_frames(error)
        return error
    return _unexplained(f"{plan.name} v{plan.version} decodes in the reference only", failure)


def edit_failure(
    plan: Plan, options: CodecOptions, data: bytes, offset: int, at: int, value: Any, failure: Exception
) -> Exception:
    """Return the error of the result of an edit, for the value at byte ``at``, that an executor refused."""
    from kafka_msgs.codec import reference

    _forget_frames(failure)
    try:
        reference.EditErrorFinder(plan, data, offset, options, at, value).patched()
    except EncodeError as error:
        _forget_frames(error)
        return error
    return _unexplained(f"{plan.name} v{plan.version} can be patched in the reference only", failure)


def _unexplained(what: str, failure: Exception) -> Exception:
    """Return the error of an input without a fault: the exception that interrupted the executor, or
    ``InternalError``.
    """
    if isinstance(failure, _OF_EXECUTORS):
        return InternalError(reason=f"{what}: {failure!r}")
    return failure


def trailing_data(plan: Plan, end: int, size: int) -> TrailingDataError:
    """Return the error of bytes after a complete message."""
    reason = f"{size - end} bytes left over"
    return TrailingDataError(message=plan.name, version=plan.version, path="", offset=end, reason=reason)


_OF_EXECUTORS: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, struct.error)
"""The exceptions that an executor raises. All other exceptions come from outside, such as from a signal handler."""


def _forget_frames(failure: Exception) -> None:
    """Release the frames of a failure. They would keep every object alive that was created before the failure."""
    failure.__traceback__ = failure.__context__ = None


def checked_buffer(buffer: Buffer, offset: int) -> bytes:
    """Return the bytes of a buffer; raises ``ValueError`` for an offset outside it."""
    data = buffer_bytes(buffer)
    if not 0 <= offset <= len(data):
        raise ValueError(f"offset {offset} is outside a buffer of {len(data)} bytes")
    return data


def with_explained_errors(
    plan: Plan,
    options: CodecOptions,
    encode: Callable[[Any], bytes],
    decode_at: Callable[[bytes, int], tuple[Any, int]],
    locate: Locator = lambda data, offset: None,
) -> CodecFunctions:
    """Return functions that explain the failures of ``encode(message)`` and ``decode_at(data, offset)``."""

    def explained_encode(message: Any) -> bytes:
        try:
            return encode(message)
        except (MemoryError, RecursionError):
            raise
        except Exception as failure:
            raise encode_failure(plan, options, message, failure) from None

    def read(buffer: Buffer, offset: int = 0) -> tuple[Any, int]:
        data = checked_buffer(buffer, offset)
        try:
            return decode_at(data, offset)
        except (MemoryError, RecursionError):
            raise
        except Exception as failure:
            _forget_frames(failure)
            raise decode_failure(plan, options, data, offset, failure, locate(data, offset)) from None

    def decode(data: Buffer, offset: int = 0) -> Any:
        buffer = buffer_bytes(data)
        message, end = read(buffer, offset)
        if end != len(buffer):
            raise trailing_data(plan, end, len(buffer))
        return message

    return CodecFunctions(explained_encode, decode, read)
