"""Redaction of messages and exchanges: names, texts and bytes are replaced by masks of the same lengths.

``field_kinds`` classifies the fields. ``masks`` generates texts, ``records`` redacts records. A message remains valid
at its version: a redacted frame decodes, with its original arrays, numbers and error codes. Undecodable bytes, and
bytes after a message, are replaced by zeros, after the first eight bytes of a request and the first four of a response.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Collection
from typing import Any, Final, Literal, TypeVar

from attrs import evolve

from kafka_msgs.capture.connections import CapturedConnection, Endpoint
from kafka_msgs.capture.exchange_builder import Item
from kafka_msgs.capture.exchanges import CapturedPayload, Exchange
from kafka_msgs.capture.faults import CaptureFault
from kafka_msgs.catalog import release_catalog
from kafka_msgs.codec import CodecOptions
from kafka_msgs.errors import KafkaMsgsError
from kafka_msgs.message import Message
from kafka_msgs.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kafka_msgs.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafka_msgs.redaction.field_kinds import ALL_KINDS, KEPT_NAMES, RedactKind, field_kinds
from kafka_msgs.redaction.masks import Masks
from kafka_msgs.redaction.records import redact_records
from kafka_msgs.schema import FieldInfo, Struct, fields
from kafka_msgs.versioned import decode_versioned, encode_versioned
from kafka_msgs.wire import decode_request, decode_response

__all__ = ["Redactor"]

S = TypeVar("S", bound=Struct)

_ANY_TEXT: Final = CodecOptions(utf8_errors="surrogateescape")
_KEY_BYTES: Final = 32
_REQUEST_START: Final = 8
_RESPONSE_START: Final = 4
_SECRET_CONFIG: Final = re.compile(r"password|secret|jaas|credential|token|keystore\.key|private", re.IGNORECASE)
"""Names of configs whose values are always redacted: Kafka's password configs, and others."""

_EMBEDDED: Final[dict[str, type[Message]]] = {
    "metadata": ConsumerProtocolSubscription,
    "member_metadata": ConsumerProtocolSubscription,
    "assignment": ConsumerProtocolAssignment,
    "member_assignment": ConsumerProtocolAssignment,
}
"""Messages embedded in bytes fields, by attribute."""


class Redactor:
    """A redactor of some kinds of secrets. ``key`` determines the masks; the default is a random, unrepeatable key."""

    def __init__(self, kinds: Collection[RedactKind] = ALL_KINDS, *, key: bytes | None = None) -> None:
        self.kinds = frozenset(kinds)
        self._everywhere = bool(self.kinds - {RedactKind.SASL})
        self._masks = Masks(secrets.token_bytes(_KEY_BYTES) if key is None else key)
        self._changes: dict[type[Any], tuple[_FieldChange, ...]] = {}

    def redact(self, item: Item) -> Item:
        """Return an exchange or a fault with its secrets redacted."""
        if isinstance(item, CaptureFault):
            hidden = None if item.connection is None else self._connection(item.connection)
            return evolve(item, connection=hidden)
        response = item.response
        return evolve(
            item,
            connection=self._connection(item.connection),
            request=self._sent(item.request, self.request(item)),
            response=response and self._sent(response, self.response(item)),
        )

    def message(self, message: S) -> S:
        """Return a message or a struct with its secrets redacted."""
        changes = {}
        for change in self._changes_of(type(message)):
            value = getattr(message, change.attribute)
            if value:
                changes[change.attribute] = change.make(message, value)
        if message.unknown_tagged_fields and self._everywhere:
            changes["unknown_tagged_fields"] = tuple(
                (tag, bytes(len(data))) for tag, data in message.unknown_tagged_fields
            )
        return evolve(message, **changes) if changes else message

    def request(self, exchange: Exchange) -> bytes:
        """Return the request payload of an exchange with its secrets redacted."""
        payload = exchange.request.payload
        if not self._concerns(exchange, "request"):
            return payload
        try:
            frame = decode_request(payload, catalog=exchange.catalog, options=_ANY_TEXT)
            header, message = self.message(frame.header), self.message(frame.message)
            return evolve(frame, header=header, message=message, trailing=bytes(len(frame.trailing))).encode()
        except KafkaMsgsError:
            return _start_only(payload, _REQUEST_START)

    def response(self, exchange: Exchange) -> bytes:
        """Return the response payload of an exchange with its secrets redacted."""
        assert exchange.response is not None
        payload = exchange.response.payload
        if not self._concerns(exchange, "response"):
            return payload
        catalog = exchange.catalog
        try:
            frame = decode_response(payload, exchange.api_key, exchange.version, catalog=catalog, options=_ANY_TEXT)
            message = self.message(frame.message)
            return evolve(frame, message=message, trailing=bytes(len(frame.trailing))).encode()
        except KafkaMsgsError:
            return _start_only(payload, _RESPONSE_START)

    def _concerns(self, exchange: Exchange, kind: Literal["request", "response"]) -> bool:
        """Return whether a payload must be decoded. If only SASL is redacted, most payloads are skipped."""
        cls = (exchange.catalog or release_catalog()).find(exchange.api_key, kind, exchange.version)
        return self._everywhere or (cls is not None and bool(self._changes_of(cls)))

    def _sent(self, sent: CapturedPayload, payload: bytes) -> CapturedPayload:
        return sent._replace(payload=payload, size=len(payload) + sent.missing)

    def _connection(self, connection: CapturedConnection) -> CapturedConnection:
        if RedactKind.HOSTS not in self.kinds:
            return connection
        client, server = (
            Endpoint(self._masks.text(end.host), end.port) for end in (connection.client, connection.server)
        )
        return evolve(connection, client=client, server=server)

    def _changes_of(self, struct: type[Any]) -> tuple[_FieldChange, ...]:
        if struct not in self._changes:
            found = ((field, self._maker(struct, field)) for field in fields(struct))
            self._changes[struct] = tuple(
                _FieldChange(field.attribute, make) for field, make in found if make is not None
            )
        return self._changes[struct]

    def _maker(self, struct: type[Any], field: FieldInfo) -> Callable[[Any, Any], Any] | None:
        """Return the redacting function for a field, or None if the field has no secrets.

        The function is called with the struct and the value.
        """
        if field.struct is not None:
            if not self._hides(field.struct):
                return None
            return _each(self.message) if field.is_array else lambda _, value: self.message(value)
        secret_name = field.attribute == "value" and any(each.attribute == "name" for each in fields(struct))
        if not field_kinds(struct, field) & self.kinds:
            return self._secret_value if secret_name and RedactKind.SASL in self.kinds else None
        makers: dict[str, Callable[[Any], Any]] = {
            "string": self._text,
            "records": lambda value: redact_records(bytes(value)),
            "bytes": self._bytes_of(field.attribute),
        }
        make = makers.get(field.element_type)
        if make is None:
            return None
        return _each(make) if field.is_array else lambda _, value: make(value)

    def _hides(self, struct: type[Any]) -> bool:
        """Return whether a struct may contain secrets. Unknown tagged fields are possible in any struct."""
        return self._everywhere or bool(self._changes_of(struct))

    def _text(self, text: str) -> str:
        return text if text in KEPT_NAMES else self._masks.text(text)

    def _secret_value(self, struct: Any, value: str) -> str:
        return self._masks.text(value) if _SECRET_CONFIG.search(struct.name or "") else value

    def _bytes_of(self, attribute: str) -> Callable[[Any], bytes]:
        cls = _EMBEDDED.get(attribute)
        if cls is None:
            return self._masks.letters
        return lambda value: self._embedded(cls, bytes(value))

    def _embedded(self, cls: type[Message], data: bytes) -> bytes:
        """Return a redacted message in a field. Invalid content is masked completely, except for its version."""
        try:
            version, message = decode_versioned(cls, data, options=_ANY_TEXT)
            hidden = encode_versioned(self.message(message), version)
        except KafkaMsgsError:
            hidden = b""
        return hidden if len(hidden) == len(data) else data[:2] + self._masks.letters(data[2:])


class _FieldChange:
    """The change of one attribute."""

    __slots__ = ("attribute", "make")

    def __init__(self, attribute: str, make: Callable[[Any, Any], Any]) -> None:
        self.attribute = attribute
        self.make = make


def _start_only(payload: bytes, start: int) -> bytes:
    return payload[:start] + bytes(max(0, len(payload) - start))


def _each(make: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda _, values: tuple(map(make, values))
