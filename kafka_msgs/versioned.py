"""Version-prefixed data: an int16, then a message at that version.

The subscriptions and assignments of the consumer protocol have this form, and the keys and values of the internal
topics. In a coordinator's key the number is not a version. It is the record type, which is the api key of the key.
"""

from __future__ import annotations

from typing import Generic, Literal, NamedTuple, TypeVar

from kafka_msgs.codec import DEFAULT_OPTIONS, Buffer, CodecOptions, codec_for
from kafka_msgs.errors import InvalidKeyTypeError, TruncatedError, UnsupportedVersionError
from kafka_msgs.message import Message
from kafka_msgs.schema import MessageStruct

__all__ = ["Versioned", "decode_versioned", "encode_versioned", "version_prefix"]

M = TypeVar("M", bound=Message)


class Versioned(NamedTuple, Generic[M]):
    """A message, and the version of its encoding."""

    version: int
    message: M


def encode_versioned(message: Message, version: int) -> bytes:
    """Return the prefix and the bytes of a message at ``version``; raises what ``Message.encode`` raises."""
    data = message.encode(version)
    return version_prefix(type(message), version).to_bytes(2, "big", signed=True) + data


def decode_versioned(
    cls: type[M],
    data: Buffer,
    *,
    newer: Literal["refuse", "clamp", "lenient"] = "refuse",
    options: CodecOptions = DEFAULT_OPTIONS,
) -> Versioned[M]:
    """Return the message in version-prefixed ``data``, and its version.

    With ``newer="clamp"`` a version above the highest known one is read as the highest, and the bytes after the message
    are ignored. ``"lenient"`` ignores them at every version, as Kafka's ``ConsumerProtocol`` does: consumers read each
    other's subscriptions and assignments in this way.

    Raises ``UnsupportedVersionError``, ``DecodeError`` (``TruncatedError`` if not even the version is complete), and
    ``InvalidKeyTypeError`` for a coordinator's key of another type.
    """
    info = cls.INFO
    if len(data) < 2:
        reason = f"a version needs 2 bytes, {len(data)} left"
        raise TruncatedError(message=info.name, version=None, path="", offset=0, reason=reason)
    number = int.from_bytes(data[:2], "big", signed=True)
    if info.kind == "coordinator-key" and info.api_key is not None:
        if number != info.api_key:
            raise InvalidKeyTypeError(message=info.name, expected=info.api_key, found=number)
        return Versioned(0, codec_for(cls, 0, options).decode(data, 2))
    highest = info.versions.highest
    if (newer == "clamp" and number > highest) or (newer == "lenient" and number >= info.versions.lowest):
        return Versioned(number, codec_for(cls, min(number, highest), options).read(data, 2)[0])
    if number not in info.versions:
        raise UnsupportedVersionError(message=info.name, version=number, supported=info.versions)
    return Versioned(number, codec_for(cls, number, options).decode(data, 2))


def version_prefix(cls: type[MessageStruct], version: int) -> int:
    """Return the number before a message at ``version``."""
    if cls.INFO.kind == "coordinator-key" and cls.INFO.api_key is not None:
        return cls.INFO.api_key
    return version
