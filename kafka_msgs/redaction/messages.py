"""Redaction of messages and exchanges: names, texts and bytes are replaced by masks of the same lengths.

``field_kinds`` classifies the fields. ``masks`` generates texts, ``records`` redacts records, ``fault_reasons`` redacts
the text of faults. A message remains valid at its version: a redacted frame decodes, with its original arrays, numbers
and error codes. Passwords and tokens get masks of one length. Undecodable bytes, and bytes after a message, are
replaced by zeros, after the first eight bytes of a request and the first four of a response.
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
from kafka_msgs.capture.faults import CaptureFault, FaultKind
from kafka_msgs.catalog import iter_message_classes, release_catalog
from kafka_msgs.codec import CodecOptions
from kafka_msgs.errors import KafkaMsgsError
from kafka_msgs.message import Message, Request, Response
from kafka_msgs.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kafka_msgs.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafka_msgs.messages.request_header import RequestHeader
from kafka_msgs.redaction.fault_reasons import redact_reason
from kafka_msgs.redaction.field_kinds import ALL_KINDS, KEPT_NAMES, RedactKind, field_kinds
from kafka_msgs.redaction.masks import TOKEN_BYTES, Masks
from kafka_msgs.redaction.records import redact_records
from kafka_msgs.schema import FieldInfo, Struct, fields
from kafka_msgs.versioned import decode_versioned, encode_versioned
from kafka_msgs.wire import decode_request, decode_response

__all__ = ["Redactor", "becomes", "redacted_messages"]

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
            return self._fault(item)
        response = item.response
        return evolve(
            item,
            connection=self._connection(item.connection),
            request=self._sent(item.request, self.request(item)),
            response=response and self._sent(response, self.response(item)),
        )

    def endpoint(self, endpoint: Endpoint) -> Endpoint:
        """Return an address with its host redacted."""
        return Endpoint(self._masks.text(endpoint.host), endpoint.port) if RedactKind.HOSTS in self.kinds else endpoint

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
            return self._start_only(payload, _REQUEST_START, exchange, "request")

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
            return self._start_only(payload, _RESPONSE_START, exchange, "response")

    def _concerns(self, exchange: Exchange, kind: Literal["request", "response"]) -> bool:
        """Return whether a payload must be decoded. If only SASL is redacted, most payloads are skipped."""
        cls = _class_of(exchange, kind)
        return self._everywhere or (cls is not None and bool(self._changes_of(cls)))

    def _start_only(
        self, payload: bytes, start: int, exchange: Exchange, kind: Literal["request", "response"]
    ) -> bytes:
        """Return the start of an undecodable payload with zeros, whose number does not depend on a token."""
        cls = _class_of(exchange, kind)
        has_tokens = RedactKind.SASL in self.kinds and cls is not None and _has_tokens(cls)
        return payload[:start] + bytes(TOKEN_BYTES if has_tokens else max(0, len(payload) - start))

    def _fault(self, fault: CaptureFault) -> CaptureFault:
        """Return a fault without names in its text. The size of a token is a secret as well."""
        if fault.kind is FaultKind.SASL and RedactKind.SASL in self.kinds:
            fault = evolve(fault, reason="a token", size=0)
        connection = fault.connection
        hosts = () if connection is None else (connection.client.host, connection.server.host)
        reason = redact_reason(fault.reason, self._masks.text, hosts) if self._everywhere else fault.reason
        return evolve(fault, reason=reason, connection=None if connection is None else self._connection(connection))

    def _sent(self, sent: CapturedPayload, payload: bytes) -> CapturedPayload:
        return sent._replace(payload=payload, size=len(payload) + sent.missing)

    def _connection(self, connection: CapturedConnection) -> CapturedConnection:
        if RedactKind.HOSTS not in self.kinds:
            return connection
        client, server = map(self.endpoint, (connection.client, connection.server))
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
        hidden = field_kinds(struct, field) & self.kinds
        if not hidden:
            return self._secret_value if secret_name and RedactKind.SASL in self.kinds else None
        if RedactKind.SASL in hidden and field.element_type in ("string", "bytes"):
            token = self._masks.token_text if field.element_type == "string" else self._masks.token
            return _each(token) if field.is_array else lambda _, value: token(value)
        if secret_name and RedactKind.SASL in self.kinds:
            return lambda struct, value: self._named_value(struct, value)
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
        return self._masks.token_text(value) if _SECRET_CONFIG.search(struct.name or "") else value

    def _named_value(self, struct: Any, value: Any) -> Any:
        secret = _SECRET_CONFIG.search(struct.name or "")
        return self._masks.token_text(value) if secret else self._text(value)

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


def redacted_messages() -> tuple[type[Message], ...]:
    """Return all messages of an exchange: requests, responses, the request header, and the nested messages."""
    exchanged = (cls for cls in iter_message_classes() if issubclass(cls, Request | Response))
    return (RequestHeader, *exchanged, ConsumerProtocolSubscription, ConsumerProtocolAssignment)


def becomes(struct: type[Any], field: FieldInfo) -> str:
    """Return a description of a field with text or bytes after redaction with the kinds that hide it."""
    kinds = field_kinds(struct, field)
    if not kinds:
        return "kept: a protocol term"
    if field.element_type == "records":
        return "batches with masked keys, values and headers"
    if RedactKind.SASL in kinds:
        return f"{TOKEN_BYTES} letters"
    if field.attribute in _EMBEDDED and field.element_type == "bytes":
        return f"a redacted `{_EMBEDDED[field.attribute].INFO.name}`, or letters of the same length"
    return "letters of the same length"


class _FieldChange:
    """The change of one attribute."""

    __slots__ = ("attribute", "make")

    def __init__(self, attribute: str, make: Callable[[Any, Any], Any]) -> None:
        self.attribute = attribute
        self.make = make


def _class_of(exchange: Exchange, kind: Literal["request", "response"]) -> type[Message] | None:
    return (exchange.catalog or release_catalog()).find(exchange.api_key, kind, exchange.version)


def _has_tokens(struct: type[Any]) -> bool:
    """Return whether a struct has a field of passwords or tokens alone."""
    return any(
        _has_tokens(field.struct) if field.struct is not None else field_kinds(struct, field) == {RedactKind.SASL}
        for field in fields(struct)
    )


def _each(make: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda _, values: tuple(map(make, values))
