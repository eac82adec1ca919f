"""``Codec``: one message class at one version, ready to encode and decode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from kafka_msgs._backend import backend
from kafka_msgs.codec.executors import EXECUTORS
from kafka_msgs.codec.explain import Executor
from kafka_msgs.codec.options import DEFAULT_OPTIONS, Buffer, CodecOptions
from kafka_msgs.codec.plan import Plan
from kafka_msgs.schema import Described

__all__ = ["Codec"]

M = TypeVar("M", bound=Described)
Decoded = TypeVar("Decoded", covariant=True)


class _Decode(Protocol[Decoded]):
    def __call__(self, data: Buffer, offset: int = 0, /) -> Decoded: ...


class _Read(Protocol[Decoded]):
    def __call__(self, buffer: Buffer, offset: int = 0) -> tuple[Decoded, int]: ...


class Codec(Generic[M]):
    """Encodes and decodes one message class at one version; immutable, safe to share between threads.

    Its functions are those of an executor, with nothing in between: in a loop, take them out of it once.
    """

    __slots__ = ("decode", "encode", "options", "plan", "read")

    plan: Plan
    """What is on the wire."""

    options: CodecOptions
    """The choices this codec was made with."""

    encode: Callable[[M], bytes]
    """``encode(message)`` returns the bytes of a message.

    Raises ``EncodeError`` for a value that does not fit its field, and ``UnsupportedFieldError`` for a field that is
    set although this version lacks it and it may not be dropped.
    """

    decode: _Decode[M]
    """``decode(data, offset=0)`` returns the message that ``data`` holds from ``offset`` to its end.

    Raises ``DecodeError`` for anything else, ``TrailingDataError`` when bytes are left over.
    """

    read: _Read[M]
    """``read(buffer, offset=0)`` decodes the message at an offset; returns it and the offset after it.

    Raises ``DecodeError``, and ``ValueError`` for an offset outside the buffer.
    """

    def __init__(self, plan: Plan, options: CodecOptions = DEFAULT_OPTIONS, executor: Executor | None = None) -> None:
        self.plan = plan
        self.options = options
        make = executor or EXECUTORS[backend()]
        self.encode, self.decode, self.read = make(plan, options)
