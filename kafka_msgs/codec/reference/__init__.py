"""The reference interpreter: a slow and simple walk over a plan that tracks the current path and offset.

The fast executors are tested against it. They only detect a fault and its location. This interpreter then resumes at
the location and raises the exact error, with path and byte offset. It can also record the meaning of each byte, for
annotated dumps. ``decoder`` reads, ``encoder`` writes, ``patcher`` changes, ``path`` is the path of a field, and
``faults`` describes where an executor stopped.
"""

from __future__ import annotations

from typing import Any

from kafka_msgs.codec.options import DEFAULT_OPTIONS, CodecOptions
from kafka_msgs.codec.plan import Plan
from kafka_msgs.codec.reference.decoder import Decoder as Decoder
from kafka_msgs.codec.reference.decoder import Span
from kafka_msgs.codec.reference.encoder import Encoder as Encoder
from kafka_msgs.codec.reference.faults import FaultLocation as FaultLocation
from kafka_msgs.codec.reference.faults import Trail
from kafka_msgs.codec.reference.patcher import EditErrorFinder as EditErrorFinder
from kafka_msgs.codec.reference.patcher import Patcher as Patcher
from kafka_msgs.errors import DecodeError

__all__ = ["Span", "annotate"]


def decode(
    plan: Plan, data: bytes | memoryview, offset: int = 0, options: CodecOptions = DEFAULT_OPTIONS
) -> tuple[Any, int]:
    """Decode one message from ``data`` at ``offset``; return it and the position after it. Raises ``DecodeError``."""
    decoder = Decoder(plan, data, offset, options)
    return decoder.message(), decoder.position


def resume_decode(plan: Plan, data: bytes, options: CodecOptions, location: FaultLocation) -> None:
    """Resume reading at the location where an executor stopped. Raises ``DecodeError`` if it finds a fault."""
    Decoder(plan, data, location.position, options).resume(location)


def annotate(plan: Plan, data: bytes, offset: int = 0) -> tuple[list[Span], DecodeError | None]:
    """Return the meaning of each byte, in order, and the error that ended the decoding, or None."""
    decoder = Decoder(plan, data, offset, DEFAULT_OPTIONS)
    decoder.spans = []
    try:
        decoder.message()
    except DecodeError as error:
        return decoder.spans, error
    return decoder.spans, None


def encode(plan: Plan, message: Any, options: CodecOptions = DEFAULT_OPTIONS) -> bytes:
    """Encode a message; raises ``EncodeError`` for a value that this version cannot carry."""
    encoder = Encoder(plan, options)
    encoder.struct(plan.root, message)
    return bytes(encoder.out)


def resume_encode(plan: Plan, message: Any, options: CodecOptions, trail: Trail) -> None:
    """Encode only the value to which a trail leads. Raises ``EncodeError`` unless the version can carry it."""
    Encoder(plan, options).resume(message, trail)
