"""Errors of reading and writing record batches."""

from __future__ import annotations

from kafka_msgs.deferred_attrs import define
from kafka_msgs.errors.base import KafkaMsgsError

__all__ = [
    "CompressionError",
    "CorruptRecordError",
    "CrcMismatchError",
    "DecompressedSizeError",
    "NoProgressError",
    "RecordBudgetError",
    "RecordError",
    "RecordWriteError",
    "UnsupportedMagicError",
]


@define(kw_only=True, slots=False, repr=False)
class RecordError(KafkaMsgsError, ValueError):
    """Bytes of a log or of a ``records`` field that are not record batches.

    Attributes: ``position`` (byte in the buffer where the batch starts, from 0), ``offset`` (the first offset that
    the batch's header states, or None before the header is read) and ``reason``.
    """

    position: int
    offset: int | None
    reason: str

    def _text(self) -> str:
        offset = "" if self.offset is None else f", offset {self.offset}"
        return f"batch at byte {self.position}{offset}: {self.reason}"


@define(kw_only=True, slots=False, repr=False)
class CorruptRecordError(RecordError):
    """A length, count or structure that contradicts the bytes.

    Adds the attributes ``at`` (the byte of the fault), ``compressed`` (True if ``at`` is a position in the decompressed
    content, False if in the buffer) and ``index`` (of the record in its batch, or None for the header).
    """

    at: int
    index: int | None
    compressed: bool

    def _text(self) -> str:
        record = "" if self.index is None else f"record {self.index} "
        content = " of the decompressed records" if self.compressed else ""
        return f"{super()._text().removesuffix(self.reason)}{record}at byte {self.at}{content}: {self.reason}"


@define(kw_only=True, slots=False, repr=False)
class CrcMismatchError(RecordError):
    """Bytes that were changed after they were written. Attributes: ``expected`` (stored) and ``found`` (computed)."""

    expected: int
    found: int


@define(kw_only=True, slots=False, repr=False)
class UnsupportedMagicError(RecordError):
    """A record format other than 0, 1 and 2. Attribute: ``magic``."""

    magic: int


@define(kw_only=True, slots=False, repr=False)
class CompressionError(RecordError):
    """Compressed records that do not decompress, or an unknown codec. Attribute: ``codec`` (a name or a number)."""

    codec: str | int


@define(kw_only=True, slots=False, repr=False)
class DecompressedSizeError(CompressionError):
    """Compressed records that would take more bytes than the caller allows. Attribute: ``limit`` in bytes."""

    limit: int


@define(kw_only=True, slots=False, repr=False)
class RecordBudgetError(RecordError):
    """A batch with more records and headers than the caller allows. Attribute: ``limit``, for their sum."""

    limit: int


@define(kw_only=True, slots=False, repr=False)
class RecordWriteError(KafkaMsgsError, ValueError):
    """A record or a batch that the format cannot hold. Attributes: ``field``, ``value`` and ``reason``."""

    field: str
    value: object
    reason: str

    def _text(self) -> str:
        return f"{self.field}: {self.reason}"


@define(kw_only=True, slots=False, repr=False)
class NoProgressError(RecordError):
    """Fetch responses that contain bytes, but no complete batch at the position of a consumer.

    Adds the attributes ``topic`` and ``partition``. ``offset`` is the position of the consumer. Seek past it to
    continue.
    """

    topic: str
    partition: int

    def _text(self) -> str:
        return f"{self.topic}-{self.partition}: the broker sends no complete batch at offset {self.offset}"
