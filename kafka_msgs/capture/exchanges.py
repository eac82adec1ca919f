"""An exchange: a captured request and its response. The messages are decoded on demand."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple

from attrs import field, frozen

from kafka_msgs.api_keys import ApiKey
from kafka_msgs.capture.connections import CapturedConnection
from kafka_msgs.capture.faults import REQUEST, RESPONSE, Direction
from kafka_msgs.catalog import MessageCatalog, release_catalog
from kafka_msgs.codec import CodecOptions
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import DecodeError, KafkaMsgsError, UnknownMessageError
from kafka_msgs.message import Message
from kafka_msgs.messages.request_header import RequestHeader
from kafka_msgs.schema import FieldInfo, fields
from kafka_msgs.wire import RequestFrame, ResponseFrame, decode_request, decode_response, request_header_version

__all__ = ["CapturedPayload", "Exchange", "FieldError", "Problem"]

_ERROR_CODE: Final = "ErrorCode"
_ANY_TEXT: Final = CodecOptions(utf8_errors="replace")
"""Invalid UTF-8 is replaced, as in Kafka's own classes. The exchange also contains the payload."""
_CLIENT_ID_AT: Final = 1
"""The first request header version with a client id. Its position is the same in all later versions."""


class CapturedPayload(NamedTuple):
    """One side of an exchange: the payload of its frame, and the time of its completion.

    ``size`` is the size of the payload in bytes. ``missing`` counts its bytes that were not captured, and ``payload``
    ends before the first of them. ``time_us`` is in microseconds since the epoch. ``packet`` is the number in the file.
    """

    payload: bytes
    size: int
    missing: int
    time_us: int
    packet: int


class FieldError(NamedTuple):
    """A nonzero error code in a response: the field, for example ``topics[0].error_code``, and the number."""

    path: str
    code: int

    @property
    def name(self) -> str | None:
        """Kafka's name of the error, or None for a number without a name in the release."""
        known = ErrorCode.from_code(self.code)
        return None if known is None else known.name


class Problem(NamedTuple):
    """The reason why one side of an exchange cannot be decoded.

    ``path`` is the field and ``offset`` the payload byte of the error. Both are None if unknown.
    """

    direction: Direction
    reason: str
    path: str | None = None
    offset: int | None = None


@frozen(kw_only=True)
class Exchange:
    """A request and the response to it.

    ``response`` is None if the broker sent none, or if it was not captured. A Produce with acks=0 has none. All times
    are in microseconds since the epoch. The time of a frame is the time of the packet that completed it.
    """

    connection: CapturedConnection
    api_key: int
    version: int
    correlation_id: int
    request: CapturedPayload
    response: CapturedPayload | None
    catalog: MessageCatalog | None = field(default=None, eq=False, repr=False)
    """The catalog for decoding, by default the release's."""

    @property
    def api(self) -> str | None:
        """The API name, for example ``"Fetch"``, or None if the catalog does not have the API key."""
        found = (self.catalog or release_catalog()).find(self.api_key, "request")
        return None if found is None else found.INFO.name.removesuffix("Request")

    @property
    def latency_us(self) -> int | None:
        """Microseconds from the last byte of the request to the last byte of the response. None without a response."""
        return None if self.response is None else self.response.time_us - self.request.time_us

    @cached_property
    def client_id(self) -> str | None:
        """The client id in the header, or None if the header contains none or is damaged."""
        try:
            if not self._has_client_id():
                return None
            return RequestHeader.read(self.request.payload, _CLIENT_ID_AT, options=_ANY_TEXT)[0].client_id
        except KafkaMsgsError:
            return None

    @property
    def request_message(self) -> Message:
        """The decoded request. Raises the errors of ``decode_request``, and ``DecodeError`` for missing bytes."""
        return self._request.message

    @property
    def response_message(self) -> Message | None:
        """The decoded response, or None without a response. Raises the errors of ``request_message``."""
        return self.response and self._response.message

    @property
    def response_version(self) -> int:
        """The version of the response.

        It differs from the request version only for an unsupported ApiVersions version (KIP-511).
        """
        return self._response.version

    @property
    def request_json(self) -> dict[str, Any] | None:
        """The request in the JSON format of Kafka's tools, or None if it cannot be decoded."""
        return None if self._fails(REQUEST) else self._request.message.to_json(self.version)

    @property
    def response_json(self) -> dict[str, Any] | None:
        """The response in the JSON format of Kafka's tools, or None without a response or if it cannot be decoded."""
        if self.response is None or self._fails(RESPONSE):
            return None
        return self._response.message.to_json(self._response.version)

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """The decoding problems, at most one for the request and one for the response."""
        return tuple(self._problems())

    @cached_property
    def errors(self) -> tuple[FieldError, ...]:
        """The nonzero error codes in the response, in field order; empty if it cannot be decoded."""
        if self.response is None or self._fails(RESPONSE):
            return ()
        return tuple(_errors(self._response.message, ""))

    @property
    def throttle_ms(self) -> int | None:
        """The throttle time in the response in milliseconds. None without a response or without the field."""
        if self.response is None or self._fails(RESPONSE):
            return None
        return getattr(self._response.message, "throttle_time_ms", None)

    @property
    def client_software(self) -> str | None:
        """The name and version of the client software, which only ApiVersions requests contain (KIP-511)."""
        if self.api_key != ApiKey.API_VERSIONS or self._fails(REQUEST):
            return None
        message: Any = self._request.message
        name = " ".join(filter(None, (message.client_software_name, message.client_software_version)))
        return name or None

    @cached_property
    def _request(self) -> RequestFrame:
        _check(self.request, self.api, "request")
        return decode_request(self.request.payload, catalog=self.catalog, options=_ANY_TEXT)

    @cached_property
    def _response(self) -> ResponseFrame:
        assert self.response is not None
        _check(self.response, self.api, "response")
        payload = self.response.payload
        return decode_response(payload, self.api_key, self.version, catalog=self.catalog, options=_ANY_TEXT)

    def _has_client_id(self) -> bool:
        """Return whether the request header contains a client id. For an unknown API this is assumed."""
        try:
            return request_header_version(self.api_key, self.version, self.catalog) >= _CLIENT_ID_AT
        except UnknownMessageError:
            return True

    def _fails(self, direction: Direction) -> bool:
        return any(problem.direction == direction for problem in self.problems)

    def _problems(self) -> Iterator[Problem]:
        directions: tuple[tuple[Direction, str], ...] = ((REQUEST, "_request"), (RESPONSE, "_response"))
        for direction, name in directions:
            if direction == REQUEST or self.response is not None:
                try:
                    getattr(self, name)
                except DecodeError as error:
                    yield Problem(direction, str(error), error.path, error.offset)
                except KafkaMsgsError as error:
                    yield Problem(direction, str(error))


def _check(sent: CapturedPayload, api: str | None, kind: str) -> None:
    if sent.missing:
        reason = f"{sent.missing} of {sent.size} bytes were not captured"
        raise DecodeError(message=f"{api} {kind}", version=None, path="", offset=len(sent.payload), reason=reason)


_Visit = tuple[str, Literal["code", "struct", "array"]]


_VISITS: Final[dict[type[Any], tuple[_Visit, ...]]] = {}


def _visits(cls: type[Any]) -> tuple[_Visit, ...]:
    """Return the fields of a struct that are error codes or contain error codes."""
    if cls not in _VISITS:
        _VISITS[cls] = tuple(visit for field in fields(cls) if (visit := _visit(field)))
    return _VISITS[cls]


def _visit(field: FieldInfo) -> _Visit | None:
    if field.name.endswith(_ERROR_CODE):
        return field.attribute, "code"
    if field.struct is None or not _visits(field.struct):
        return None
    return field.attribute, "array" if field.is_array else "struct"


def _errors(item: Any, path: str) -> Iterator[FieldError]:
    for attribute, kind in _visits(type(item)):
        value, place = getattr(item, attribute), f"{path}{attribute}"
        if not value:
            continue
        if kind == "code":
            yield FieldError(place, value)
        elif kind == "struct":
            yield from _errors(value, f"{place}.")
        else:
            for number, each in enumerate(value):
                yield from _errors(each, f"{place}[{number}].")
