"""``Codec``: one message class at one version, ready to encode and decode."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from kafka_msgs._backend import backend
from kafka_msgs.codec.error_explanation import Executor
from kafka_msgs.codec.executors import EXECUTORS
from kafka_msgs.codec.options import DEFAULT_OPTIONS, Buffer, CodecOptions
from kafka_msgs.codec.plan import Plan
from kafka_msgs.schema import MessageStruct

__all__ = ["Codec"]

M = TypeVar("M", bound=MessageStruct)

if TYPE_CHECKING:
    from typing import Protocol

    Decoded = TypeVar("Decoded", covariant=True)

    class _Decode(Protocol[Decoded]):
        def __call__(self, data: Buffer, offset: int = 0, /) -> Decoded: ...

    class _Read(Protocol[Decoded]):
        def __call__(self, buffer: Buffer, offset: int = 0) -> tuple[Decoded, int]: ...


class Codec(Generic[M]):
    """Encodes and decodes one message class at one version. It is immutable, and threads may share it.

    Its attributes are the functions of an executor, without a wrapper. Before a loop, bind them to local names.
    """

    __slots__ = ("decode", "encode", "options", "plan", "read")

    plan: Plan
    """The plan: the fields of this version in wire order."""

    options: CodecOptions
    """The options of this codec."""

    encode: Callable[[M], bytes]
    """``encode(message)`` returns the bytes of a message.

    Raises ``EncodeError`` for a value that does not fit its field. Raises ``UnsupportedFieldError`` for a field that is
    set, that this version does not have, and that is not ignorable.
    """

    decode: _Decode[M]
    """``decode(data, offset=0)`` returns the message that ``data`` holds from ``offset`` to its end.

    Raises ``DecodeError`` for bytes that are not this message, and ``TrailingDataError`` for bytes after the message.
    """

    read: _Read[M]
    """``read(buffer, offset=0)`` decodes the message at an offset and returns it with the offset after it.

    Raises ``DecodeError``, and ``ValueError`` for an offset outside the buffer.
    """

    def __init__(self, plan: Plan, options: CodecOptions = DEFAULT_OPTIONS, executor: Executor | None = None) -> None:
        self.plan = plan
        self.options = options
        make = executor or EXECUTORS[backend()]
        self.encode, self.decode, self.read = make(plan, options)
