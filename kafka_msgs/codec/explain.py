"""Errors are explained after the fact.

A fast executor only notices that something is wrong. The reference interpreter then goes over the same input and
raises the one exact error, so that every executor words its errors alike and none pays for error reporting. If the
reference finds nothing wrong, one of the two has a bug: that is an ``InternalError``.
"""

from __future__ import annotations

from typing import Any

from kafka_msgs.codec import reference
from kafka_msgs.codec.options import CodecOptions
from kafka_msgs.codec.plan import Plan
from kafka_msgs.errors import DecodeError, EncodeError, InternalError, KafkaMsgsError, TrailingDataError

__all__ = ["decode_failure", "encode_failure", "trailing_data"]


def encode_failure(plan: Plan, options: CodecOptions, message: Any, failure: Exception) -> KafkaMsgsError:
    """Return the error of a message that an executor refused with ``failure``."""
    _forget_frames(failure)
    try:
        reference.encode(plan, message, options)
    except EncodeError as error:
        _forget_frames(error)
        return error
    return InternalError(reason=f"{plan.name} v{plan.version} encodes in the reference only: {failure!r}")


def decode_failure(plan: Plan, options: CodecOptions, data: bytes, offset: int, failure: Exception) -> KafkaMsgsError:
    """Return the error of bytes that an executor refused with ``failure``."""
    _forget_frames(failure)
    try:
        reference.decode(plan, data, offset, options)
    except DecodeError as error:
        _forget_frames(error)
        return error
    return InternalError(reason=f"{plan.name} v{plan.version} decodes in the reference only: {failure!r}")


def trailing_data(plan: Plan, end: int, size: int) -> TrailingDataError:
    """Return the error of bytes that go on after a whole message."""
    reason = f"{size - end} bytes left over"
    return TrailingDataError(message=plan.name, version=plan.version, path="", offset=end, reason=reason)


def _forget_frames(failure: Exception) -> None:
    """Let go of the frames where something failed: they would keep alive all that was made before the failure."""
    failure.__traceback__ = failure.__context__ = None
