"""``Message``: the base of every generated message class, with encoding and decoding as methods.

A thin surface over ``kafka_msgs.codec``; owns nothing but the spelling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from kafka_msgs.codec import DEFAULT_OPTIONS, Buffer, CodecOptions, codec_for
from kafka_msgs.schema import Described

if TYPE_CHECKING:
    from kafka_msgs.codec.json import RecordsForm

__all__ = ["Message"]


class Message(Described):
    """A message of the Kafka protocol or of one of Kafka's files, for all its versions."""

    __slots__ = ()

    def encode(self, version: int, *, options: CodecOptions = DEFAULT_OPTIONS) -> bytes:
        """Return the bytes of this message at ``version``, as Kafka writes them.

        Raises ``UnsupportedVersionError``, ``EncodeError`` for a value that does not fit its field, and
        ``UnsupportedFieldError`` for a field that is set although the version lacks it.
        """
        return codec_for(type(self), version, options).encode(self)

    @classmethod
    def decode(cls, data: Buffer, version: int, *, options: CodecOptions = DEFAULT_OPTIONS) -> Self:
        """Return the message that ``data`` holds, whole, at ``version``.

        Raises ``UnsupportedVersionError`` and ``DecodeError``; bytes left over are an error.
        """
        return codec_for(cls, version, options).decode(data)

    @classmethod
    def read(
        cls, buffer: Buffer, version: int, offset: int = 0, *, options: CodecOptions = DEFAULT_OPTIONS
    ) -> tuple[Self, int]:
        """Decode the message at byte ``offset`` of a larger buffer; return it and the offset after it.

        Raises ``UnsupportedVersionError`` and ``DecodeError``.
        """
        return codec_for(cls, version, options).read(buffer, offset)

    def to_json(self, version: int, *, records: RecordsForm = "base64") -> dict[str, Any]:
        """Return the JSON form that Kafka's own tools print for this message at ``version``.

        Raises ``UnsupportedVersionError`` and ``EncodeError``. See ``kafka_msgs.codec.json`` for ``records``.
        """
        from kafka_msgs.codec.json import to_json

        return to_json(self, version, records)

    @classmethod
    def from_json(cls, obj: Any, version: int) -> Self:
        """Return the message of a JSON form at ``version``.

        Raises ``UnsupportedVersionError`` and ``JsonFormError``.
        """
        from kafka_msgs.codec.json import from_json

        return from_json(cls, obj, version)
