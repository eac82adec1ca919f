"""Message errors: unsupported versions, invalid values, invalid bytes and invalid JSON forms."""

from __future__ import annotations

from kafka_msgs.deferred_attrs import define
from kafka_msgs.errors.base import KafkaMsgsError
from kafka_msgs.versions import VersionRange

__all__ = [
    "BudgetExceededError",
    "DecodeError",
    "EncodeError",
    "InvalidKeyTypeError",
    "InvalidLengthError",
    "InvalidTagError",
    "InvalidUtf8Error",
    "InvalidVarintError",
    "JsonFormError",
    "TrailingDataError",
    "TruncatedError",
    "UnexpectedNullError",
    "UnsupportedFieldError",
    "UnsupportedVersionError",
]


@define(kw_only=True, slots=False, repr=False)
class UnsupportedVersionError(KafkaMsgsError, ValueError):
    """A version that the message does not have, or a message without a version that both sides support.

    Attributes: ``message`` (name), ``version`` (None if no single version is meant), ``supported`` (the versions of
    this library, a ``VersionRange``) and ``offered`` (the versions of the broker, or None if no broker is involved).
    """

    message: str
    version: int | None
    supported: VersionRange
    offered: VersionRange | None = None

    def _text(self) -> str:
        if self.offered is not None:
            return f"{self.message}: the broker has {_versions(self.offered)}, this library has {self.supported}"
        return f"{self.message} has no version {self.version}; it has {self.supported}"


def _versions(versions: VersionRange) -> str:
    return "no version" if versions.empty else str(versions)


@define(kw_only=True, slots=False, repr=False)
class InvalidKeyTypeError(KafkaMsgsError, ValueError):
    """A coordinator's key that starts with another record type.

    Attributes: ``message`` (name), ``expected`` and ``found`` (record types).
    """

    message: str
    expected: int
    found: int

    def _text(self) -> str:
        return f"{self.message} has the record type {self.expected}, this key has {self.found}"


@define(kw_only=True, slots=False, repr=False)
class EncodeError(KafkaMsgsError, ValueError):
    """A value that cannot be written at this version.

    Attributes: ``message`` (name), ``version`` (None if unspecified), ``path`` (such as ``groups[2].topics``, empty for
    the message itself), ``value`` and ``reason``.
    """

    message: str
    version: int | None
    path: str
    value: object
    reason: str

    def _text(self) -> str:
        version = "" if self.version is None else f" v{self.version}"
        path = f" {self.path}:" if self.path else ""
        return f"{self.message}{version}:{path} {self.reason}"


class UnsupportedFieldError(EncodeError):
    """A field that is set, that this version does not have, and that is not ignorable."""


@define(kw_only=True, slots=False, repr=False)
class DecodeError(KafkaMsgsError, ValueError):
    """Bytes that are not this message at this version.

    Attributes: ``message`` (name), ``version`` (None before it is known), ``path`` (such as
    ``groups[2].topics[0].name``), ``offset`` (byte position in the buffer, from 0) and ``reason``.
    """

    message: str
    version: int | None
    path: str
    offset: int
    reason: str

    def _text(self) -> str:
        version = "" if self.version is None else f" v{self.version}"
        path = f" {self.path}" if self.path else ""
        return f"{self.message}{version}:{path} at byte {self.offset}: {self.reason}"


class TruncatedError(DecodeError):
    """The bytes end before the value does."""


class InvalidLengthError(DecodeError):
    """A length or count that is negative, or too large for the remaining bytes."""


class InvalidVarintError(DecodeError):
    """A variable-length integer of more than five bytes, or of more than 32 bits."""


class InvalidUtf8Error(DecodeError):
    """A string that is not UTF-8."""


class InvalidTagError(DecodeError):
    """A tagged field that is out of order, repeated, not valid at this version, or not of its declared size."""


class UnexpectedNullError(DecodeError):
    """Null where this version does not allow it."""


class TrailingDataError(DecodeError):
    """Bytes left over after a complete message."""


class BudgetExceededError(DecodeError):
    """More elements, bytes or depth than the decode budget allows."""


@define(kw_only=True, slots=False, repr=False)
class JsonFormError(KafkaMsgsError, ValueError):
    """A JSON value that is not the JSON form of this message.

    Attributes: ``message`` (name), ``version``, ``path`` (such as ``OffsetFetchRequest.groups[2]``) and ``reason``.
    """

    message: str
    version: int
    path: str
    reason: str

    def _text(self) -> str:
        return f"{self.message} v{self.version}: {self.path}: {self.reason}"
