"""The bases of generated message classes: ``Message``, with encoding and decoding as methods, and one base per kind.

This is a thin layer over ``kafka_msgs.codec``. It also maps each request to its response, and each coordinator key to
its value. Type checkers support these mappings, so ``def call(request: Request[R]) -> R`` is typed.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Self, TypeVar

from kafka_msgs._backend import backend_module
from kafka_msgs.codec import DEFAULT_OPTIONS, Buffer, CodecOptions, DecodeBudget, codec_for
from kafka_msgs.errors import DecodeError, EncodeError, UnknownNameError
from kafka_msgs.schema import PICKLE_VERSION, KeyedMessageInfo, Kind, MessageStruct, iter_pickle_versions

if TYPE_CHECKING:
    from kafka_msgs.codec.json_form import RecordsForm
    from kafka_msgs.instances import python as _values
else:
    _values = backend_module("kafka_msgs.instances")

__all__ = [
    "KIND_BASES",
    "CoordinatorKey",
    "CoordinatorValue",
    "DataMessage",
    "HeaderMessage",
    "Message",
    "MetadataRecord",
    "Request",
    "Response",
]


_UNLIMITED: Final = CodecOptions(budget=DecodeBudget(elements=2**63 - 1, bytes=2**63 - 1, depth=2**31))
"""Options for pickles, whose bytes this library has encoded."""


class Message(MessageStruct):
    """A message of the Kafka protocol or of one of Kafka's files, for all its versions."""

    __slots__ = ()

    @_values.method
    def encode(self, version: int, *, options: CodecOptions = DEFAULT_OPTIONS) -> bytes:
        """Return the bytes of this message at ``version``, as Kafka writes them.

        Raises ``UnsupportedVersionError``, ``EncodeError`` for a value that does not fit its field, and
        ``UnsupportedFieldError`` for a field that is set although the version lacks it.
        """
        return codec_for(type(self), version, options).encode(self)

    @classmethod
    @_values.method
    def decode(cls, data: Buffer, version: int, *, options: CodecOptions = DEFAULT_OPTIONS) -> Self:
        """Decode the message at ``version`` from all of ``data``.

        Raises ``UnsupportedVersionError`` and ``DecodeError``. Bytes after the message are an error.
        """
        return codec_for(cls, version, options).decode(data)

    @classmethod
    @_values.method
    def read(
        cls, buffer: Buffer, version: int, offset: int = 0, *, options: CodecOptions = DEFAULT_OPTIONS
    ) -> tuple[Self, int]:
        """Decode the message at byte ``offset`` of a larger buffer; return it and the offset after it.

        Raises ``UnsupportedVersionError`` and ``DecodeError``.
        """
        return codec_for(cls, version, options).read(buffer, offset)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle the bytes at a version that decodes to an equal message, or else the fields.

        For a decoded message such a version exists, even if no version has all fields.
        """
        cls = type(self)
        for version in iter_pickle_versions(cls) if cls._sealed else ():
            with suppress(EncodeError, DecodeError):
                data = self.encode(version)
                if cls.decode(data, version, options=_UNLIMITED) == self:
                    cls._codecs[PICKLE_VERSION] = version
                    return _decoded, (cls, version, data)
        return super().__reduce_ex__(protocol)

    def to_json(self, version: int, *, records: RecordsForm = "base64") -> dict[str, Any]:
        """Return the JSON form that Kafka's own tools print for this message at ``version``.

        Raises ``UnsupportedVersionError`` and ``EncodeError``. See ``kafka_msgs.codec.json_form`` for ``records``.
        """
        from kafka_msgs.codec.json_form import to_json

        return to_json(self, version, records)

    @classmethod
    def from_json(cls, obj: Any, version: int) -> Self:
        """Return the message from its JSON form at ``version``.

        Raises ``UnsupportedVersionError`` and ``JsonFormError``.
        """
        from kafka_msgs.codec.json_form import from_json

        return from_json(cls, obj, version)


def _decoded(cls: type[Message], version: int, data: bytes) -> Message:
    """Return the message from a pickle."""
    return cls.decode(data, version, options=_UNLIMITED)


class Response(Message):
    """The response of a broker to a request."""

    __slots__ = ()

    INFO: ClassVar[KeyedMessageInfo]


class HeaderMessage(Message):
    """The header of a request or of a response."""

    __slots__ = ()


class DataMessage(Message):
    """Data without an API key: a message inside a field of type bytes, or in a file."""

    __slots__ = ()


class MetadataRecord(Message):
    """The value of a record that starts with its record type: a record of the metadata log, or of tiered storage."""

    __slots__ = ()

    INFO: ClassVar[KeyedMessageInfo]


class CoordinatorValue(Message):
    """The value of a record in a coordinator's topic."""

    __slots__ = ()

    INFO: ClassVar[KeyedMessageInfo]


R_co = TypeVar("R_co", bound=Response, covariant=True)
V_co = TypeVar("V_co", bound=CoordinatorValue, covariant=True)


def _class_getitem(cls: type[Any], _: Any) -> type[Any]:
    """Return the class itself: ``Request[X]`` is only for type checkers, and expensive to build for each request."""
    return cls


class Request(Message, Generic[R_co]):
    """A request from a client to a broker. ``R_co`` is the class of the response.

    >>> from kafka_msgs import OffsetFetchRequest
    >>> OffsetFetchRequest.response_class().__name__
    'OffsetFetchResponse'
    """

    __slots__ = ()

    INFO: ClassVar[KeyedMessageInfo]

    if not TYPE_CHECKING:
        __class_getitem__ = classmethod(_class_getitem)

    @classmethod
    def response_class(cls) -> type[R_co]:
        """Import and return the class of the response. Raises ``UnknownNameError`` if it is missing.

        It is missing if the request was compiled without its response.
        """
        found: type[R_co] = _partner(cls)
        return found


class CoordinatorKey(Message, Generic[V_co]):
    """The key of a record in a coordinator's topic, after the record type; ``V_co`` is the class of the value."""

    __slots__ = ()

    INFO: ClassVar[KeyedMessageInfo]

    if not TYPE_CHECKING:
        __class_getitem__ = classmethod(_class_getitem)

    @classmethod
    def value_class(cls) -> type[V_co]:
        """Import and return the class of the value. Raises ``UnknownNameError`` if it is missing."""
        found: type[V_co] = _partner(cls)
        return found


def _partner(cls: type[Request[Any] | CoordinatorKey[Any]]) -> Any:
    """Return the class that belongs to ``cls``, from the same generated package."""
    if cls.INFO.partner is None:
        raise UnknownNameError(name=f"the partner of {cls.INFO.name}", near=())
    return getattr(import_module(cls.__module__.rpartition(".")[0]), cls.INFO.partner)


KIND_BASES: Final[dict[Kind, type[Message]]] = {
    "request": Request,
    "response": Response,
    "header": HeaderMessage,
    "data": DataMessage,
    "metadata": MetadataRecord,
    "coordinator-key": CoordinatorKey,
    "coordinator-value": CoordinatorValue,
}
"""The base of the classes of each kind of definition."""
