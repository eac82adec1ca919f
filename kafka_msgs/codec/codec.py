"""``Codec``: one message class at one version, ready to encode and decode.

Runs an executor's functions; when one fails, the reference interpreter goes over the same input and raises the exact
error, so every executor words its errors alike and none pays for error reporting.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NoReturn, TypeVar

from kafka_msgs.codec import reference
from kafka_msgs.codec.backend import backend
from kafka_msgs.codec.executors import EXECUTORS, Executor
from kafka_msgs.codec.options import DEFAULT_OPTIONS, Buffer, CodecOptions, DecodeBudget
from kafka_msgs.codec.plan import Plan
from kafka_msgs.codec.source import MalformedError
from kafka_msgs.errors import DecodeError, EncodeError, InternalError, KafkaMsgsError, TrailingDataError
from kafka_msgs.schema import Described

__all__ = ["Codec"]

M = TypeVar("M", bound=Described)


class Codec(Generic[M]):
    """Encodes and decodes one message class at one version; immutable, safe to share between threads."""

    __slots__ = ("_counted", "_decode", "_encode", "_executor", "_uncounted_size", "options", "plan")

    def __init__(self, plan: Plan, options: CodecOptions = DEFAULT_OPTIONS, executor: Executor | None = None) -> None:
        self.plan = plan
        self.options = options
        self._executor = executor or EXECUTORS[backend()]
        self._encode = self._executor.encoder(plan, options)
        self._decode = self._executor.decoder(plan, options, counted=False)
        self._counted: Callable[[bytes, int], tuple[M, int]] | None = None
        self._uncounted_size = _uncounted_size(plan, options.budget)

    def encode(self, message: M) -> bytes:
        """Return the bytes of a message.

        Raises ``EncodeError`` for a value that does not fit its field, and ``UnsupportedFieldError`` for a field that
        is set although this version lacks it and it may not be dropped.
        """
        try:
            return self._encode(message)
        except Exception as failure:
            raise self._encode_error(message, failure) from None

    def decode(self, data: Buffer, offset: int = 0) -> M:
        """Return the message that ``data`` holds from ``offset`` to its end.

        Raises ``DecodeError`` for anything else, ``TrailingDataError`` when bytes are left over.
        """
        buffer = data if data.__class__ is bytes else bytes(memoryview(data))
        message, end = self.read(buffer, offset)
        if end != len(buffer):
            plan = self.plan
            raise TrailingDataError(
                message=plan.name,
                version=plan.version,
                path="",
                offset=end,
                reason=f"{len(buffer) - end} bytes left over",
            )
        return message

    def read(self, buffer: Buffer, offset: int = 0) -> tuple[M, int]:
        """Decode the message at ``offset`` of a larger buffer; return it and the offset after it.

        Raises ``DecodeError``, and ``ValueError`` for an offset outside the buffer.
        """
        data = buffer if buffer.__class__ is bytes else bytes(memoryview(buffer))
        if not 0 <= offset <= len(data):
            raise ValueError(f"offset {offset} is outside a buffer of {len(data)} bytes")
        try:
            if len(data) - offset > self._uncounted_size:
                return self._counting()(data, offset)
            return self._decode(data, offset)
        except Exception as failure:
            raise self._decode_error(data, offset, failure) from None

    def _counting(self) -> Callable[[bytes, int], tuple[M, int]]:
        if self._counted is None:
            if self.plan.root.depth > self.options.budget.depth:
                self._counted = _too_deep
            else:
                self._counted = self._executor.decoder(self.plan, self.options, counted=True)
        return self._counted

    def _encode_error(self, message: M, failure: Exception) -> KafkaMsgsError:
        """Find out what an executor stumbled over: the reference meets it too, or else one of them is wrong."""
        _forget_frames(failure)
        try:
            reference.encode(self.plan, message, self.options)
        except EncodeError as error:
            _forget_frames(error)
            return error
        return InternalError(reason=f"{self.plan.name} v{self.plan.version} encodes in the reference only: {failure!r}")

    def _decode_error(self, data: bytes, offset: int, failure: Exception) -> KafkaMsgsError:
        _forget_frames(failure)
        try:
            reference.decode(self.plan, data, offset, self.options)
        except DecodeError as error:
            _forget_frames(error)
            return error
        return InternalError(reason=f"{self.plan.name} v{self.plan.version} decodes in the reference only: {failure!r}")


def _forget_frames(failure: Exception) -> None:
    """Let go of the frames where something failed: they would keep alive all that was made before the failure."""
    failure.__traceback__ = failure.__context__ = None


def _uncounted_size(plan: Plan, budget: DecodeBudget) -> int:
    """The largest input that cannot exceed the budget, as every element and every byte kept takes a byte of input."""
    if plan.root.depth > budget.depth or plan.root.weightless_elements:
        return -1
    return min(budget.elements, budget.bytes)


def _too_deep(buffer: bytes, offset: int) -> NoReturn:
    raise MalformedError
