"""What an executor makes of a plan: three functions that word their errors alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kafka_msgs.codec.explain import decode_failure, encode_failure, trailing_data
from kafka_msgs.codec.options import Buffer, CodecOptions, as_bytes
from kafka_msgs.codec.plan import Plan

__all__ = ["Executor", "Functions", "guarded"]


class Functions(NamedTuple):
    """The working parts of a codec; ``Codec`` says what each does."""

    encode: Callable[[Any], bytes]
    decode: Callable[..., Any]
    read: Callable[..., tuple[Any, int]]


Executor = Callable[[Plan, CodecOptions], Functions]
"""An executor makes the functions of one plan."""


def guarded(
    plan: Plan,
    options: CodecOptions,
    encode: Callable[[Any], bytes],
    decode_at: Callable[[bytes, int], tuple[Any, int]],
) -> Functions:
    """Return functions that explain the failures of ``encode(message)`` and ``decode_at(data, offset)``."""

    def explained_encode(message: Any) -> bytes:
        try:
            return encode(message)
        except MemoryError:
            raise
        except Exception as failure:
            raise encode_failure(plan, options, message, failure) from None

    def read(buffer: Buffer, offset: int = 0) -> tuple[Any, int]:
        data = as_bytes(buffer)
        if not 0 <= offset <= len(data):
            raise ValueError(f"offset {offset} is outside a buffer of {len(data)} bytes")
        try:
            return decode_at(data, offset)
        except MemoryError:
            raise
        except Exception as failure:
            raise decode_failure(plan, options, data, offset, failure) from None

    def decode(data: Buffer, offset: int = 0) -> Any:
        buffer = as_bytes(data)
        message, end = read(buffer, offset)
        if end != len(buffer):
            raise trailing_data(plan, end, len(buffer))
        return message

    return Functions(explained_encode, decode, read)
