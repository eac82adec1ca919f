"""Identification of bytes of unknown origin: the messages and versions that read all of them, the most plausible first.

Most layouts reject foreign bytes early. The remaining ones are ranked by evidence: bits that random bytes would seldom
have, such as lengths that fit, readable text, known error codes, and small numbers. The score is a heuristic, without a
meaning outside of one call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias
from uuid import UUID

from attrs import frozen

from kafka_msgs.catalog import MessageCatalog, release_catalog
from kafka_msgs.codec import Buffer, CodecOptions, DecodeBudget, codec_for
from kafka_msgs.codec.options import buffer_bytes
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import DecodeError, KafkaMsgsError, OptionError
from kafka_msgs.message import Message
from kafka_msgs.messages.response_header import ResponseHeader
from kafka_msgs.schema import FieldInfo, fields
from kafka_msgs.versioned import version_prefix
from kafka_msgs.wire import SIZE_BYTES, decode_request
from kafka_msgs.wire.headers import header_version

__all__ = ["MAX_GUESSED_BYTES", "MessageGuess", "guess_messages"]

MAX_GUESSED_BYTES: Final = 2**20
"""The maximum number of bytes, which bounds the time: each layout reads them at most once."""

Form: TypeAlias = Literal["message", "version-prefixed", "request", "response"]

_MAX_VALUES: Final = 2000
"""The number of values of a message that count as evidence."""
_HEADER_BITS: Final = 48
_PREFIX_BITS: Final = 14
_UNKNOWN_TAG_BITS: Final = -24


@frozen
class MessageGuess:
    """A message and a version that read all bytes.

    ``form`` is the form of the bytes: the message alone, the message after its version or record type, or a request or
    response with its header. ``framed`` is true if the bytes start with the frame size. ``score`` orders the
    guesses: the highest is the most plausible.
    """

    form: Form
    framed: bool
    version: int
    message: Message
    score: float

    @property
    def name(self) -> str:
        """The name of the message."""
        return type(self.message).INFO.name


def guess_messages(data: Buffer, *, catalog: MessageCatalog | None = None) -> list[MessageGuess]:
    """Return the messages and versions that read all of ``data``, the most plausible first.

    ``catalog`` contains the message classes, by default the release's. Raises ``OptionError`` for more than
    ``MAX_GUESSED_BYTES``.
    """
    raw = buffer_bytes(data)
    if len(raw) > MAX_GUESSED_BYTES:
        reason = f"{len(raw)} bytes; the limit is {MAX_GUESSED_BYTES}"
        raise OptionError(source="guess_messages", option="data", value=None, reason=reason)
    search = _Search(catalog or release_catalog(), len(raw))
    found = list(search.guesses(raw, framed=False))
    if len(raw) > SIZE_BYTES and int.from_bytes(raw[:SIZE_BYTES], "big") == len(raw) - SIZE_BYTES:
        found += search.guesses(raw[SIZE_BYTES:], framed=True)
    return sorted(found, key=lambda each: (-each.score, each.name, -each.version))


class _Search:
    """A search with one catalog. The decode budget is proportional to the input."""

    def __init__(self, catalog: MessageCatalog, size: int) -> None:
        self._catalog = catalog
        self._options = CodecOptions(budget=DecodeBudget(elements=size + 16, bytes=size + 16))

    def guesses(self, data: bytes, *, framed: bool) -> Iterator[MessageGuess]:
        frame_bits = _HEADER_BITS / 2 if framed else 0
        yield from self._request(data, framed, frame_bits)
        for cls in self._catalog:
            for version in cls.INFO.versions:
                for form, start, bits in self._forms(cls, version, data):
                    message = self._read(cls, version, data, start)
                    if message is not None:
                        score = bits + frame_bits + _evidence(message, version)
                        yield MessageGuess(form, framed, version, message, score)

    def _forms(self, cls: type[Message], version: int, data: bytes) -> Iterator[tuple[Form, int, float]]:
        yield "message", 0, 0
        if cls.INFO.kind in ("request", "header"):
            return
        if cls.INFO.kind == "response":
            start = self._response_start(cls, version, data)
            if start is not None:
                yield "response", start, 0
        elif data[:2] == version_prefix(cls, version).to_bytes(2, "big", signed=True):
            yield "version-prefixed", 2, _PREFIX_BITS

    def _response_start(self, cls: type[Any], version: int, data: bytes) -> int | None:
        """Return the end of the response header, or None if the bytes do not start with one."""
        try:
            return ResponseHeader.read(data, header_version(cls, version), options=self._options)[1]
        except DecodeError:
            return None

    def _request(self, data: bytes, framed: bool, bits: float) -> Iterator[MessageGuess]:
        try:
            frame = decode_request(data, catalog=self._catalog, options=self._options)
        except KafkaMsgsError:
            return
        if not frame.trailing:
            score = bits + _HEADER_BITS + _evidence(frame.message, frame.version)
            yield MessageGuess("request", framed, frame.version, frame.message, score)

    def _read(self, cls: type[Message], version: int, data: bytes, start: int) -> Message | None:
        try:
            return codec_for(cls, version, self._options).decode(data, start)
        except DecodeError:
            return None


# Evidence


def _evidence(message: Message, version: int) -> float:
    """Return the evidence in bits that the bytes are this message."""
    total, counted = 0.0, 0
    pending: list[Any] = [message]
    while pending and counted < _MAX_VALUES:
        struct = pending.pop()
        total += _UNKNOWN_TAG_BITS * len(struct.unknown_tagged_fields)
        for info in fields(type(struct)):
            if version in info.versions:
                counted += 1
                value = getattr(struct, info.attribute)
                total += _field_bits(info, value, version)
                pending += _inner_structs(info, value)[:_MAX_VALUES]
    return total


def _inner_structs(info: FieldInfo, value: Any) -> tuple[Any, ...]:
    if info.struct is None or value is None:
        return ()
    return value if isinstance(value, tuple) else (value,)


def _field_bits(info: FieldInfo, value: Any, version: int) -> float:
    if value is None:
        return 4
    if info.is_array:
        items = value[:_MAX_VALUES] if info.struct is None else ()
        return 12 + sum(_scalar_bits(info, item) for item in items)
    if info.struct is not None:
        return 1
    if version in info.tagged and value == info.default:
        return 0
    return _scalar_bits(info, value)


def _scalar_bits(info: FieldInfo, value: Any) -> float:
    return _SCALARS[type(value)](info, value) if type(value) in _SCALARS else 0


def _text_bits(info: FieldInfo, text: str) -> float:
    shown = text[:256]
    printable = sum(char.isprintable() for char in shown)
    return 10 + 1.5 * printable - 12 * (len(shown) - printable)


def _integer_bits(info: FieldInfo, value: int) -> float:
    """Return more bits for the default, for -1, and for numbers much smaller than their type."""
    size = _BITS.get(info.element_type, 8)
    if info.name.endswith("ErrorCode"):
        return 10.0 if ErrorCode.from_code(value) is not None else -16.0
    if info.name.endswith("Ms") and _EARLIEST_MS < value < _LATEST_MS:
        return 20
    if value in (info.default, -1, 0):
        return size / 2
    return max(size - abs(value).bit_length() - 6, -4) / 2 - 8 * (value < 0)


_BITS: Final = {"int8": 8, "int16": 16, "uint16": 16, "int32": 32, "uint32": 32, "int64": 64}
_EARLIEST_MS: Final = 1_000_000_000_000
_LATEST_MS: Final = 4_000_000_000_000


def _bytes_bits(info: FieldInfo, value: bytes) -> float:
    """Return more bits for records if their format is one of Kafka's."""
    if info.element_type != "records":
        return 4
    return 24 if len(value) > _MAGIC_AT and value[_MAGIC_AT] in (0, 1, 2) else -12


_MAGIC_AT: Final = 16

_SCALARS: Final[Mapping[type[Any], Callable[[FieldInfo, Any], float]]] = {
    str: _text_bits,
    bool: lambda info, value: 6,
    int: _integer_bits,
    bytes: _bytes_bits,
    float: lambda info, value: 4 if value == 0 or 1e-6 < abs(value) < 1e15 else -8,
    UUID: lambda info, value: 4 if value.version == 4 or not value.int else 0,
}
