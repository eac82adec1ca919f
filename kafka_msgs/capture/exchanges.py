"""An exchange: a captured request and its response. They are decoded when the caller asks for the messages."""

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
"""Text that is not UTF-8 is read as in Kafka's own classes. The exchange also keeps the payload."""
_CLIENT_ID_AT: Final = 1
"""The first version of a request's header with a client id. Its position is the same in all later versions."""


class CapturedPayload(NamedTuple):
    """One side of an exchange: the payload of its frame, and the time when it was complete.

    ``size`` is the size of the payload in bytes. ``missing`` counts its bytes that were not captured, and ``payload``
    ends before the first of them. ``time_us`` is in microseconds since the epoch. ``packet`` is the number in the file.
    """

    payload: bytes
    size: int
    missing: int
    time_us: int
    packet: int


class FieldError(NamedTuple):
    """An error code in a response other than 0: the field, such as ``topics[0].error_code``, and the number."""

    path: str
    code: int

    @property
    def name(self) -> str | None:
        """Kafka's name of the error, or None where the release has none with this number."""
        known = ErrorCode.from_code(self.code)
        return None if known is None else known.name


class Problem(NamedTuple):
    """Why one side of an exchange cannot be decoded.

    ``path`` is the field and ``offset`` the byte of the payload where the error is. Both are None if they are not
    known.
    """

    direction: Direction
    reason: str
    path: str | None = None
    offset: int | None = None


@frozen(kw_only=True)
class Exchange:
    """A request and the response to it.

    ``response`` is None if the broker did not send one, or if it was not captured. A Produce with acks=0 does not get
    one. All times are in microseconds since the epoch. The time of a frame is the time of the packet that completed it.
    """

    connection: CapturedConnection
    api_key: int
    version: int
    correlation_id: int
    request: CapturedPayload
    response: CapturedPayload | None
    catalog: MessageCatalog | None = field(default=None, eq=False, repr=False)
    """The classes for decoding, by default the release's."""

    @property
    def api(self) -> str | None:
        """The name of the api, such as ``"Fetch"``, or None if the catalog does not have this key."""
        found = (self.catalog or release_catalog()).find(self.api_key, "request")
        return None if found is None else found.INFO.name.removesuffix("Request")

    @property
    def latency_us(self) -> int | None:
        """Microseconds from the last byte of the request to the last byte of the response. None without a response."""
        return None if self.response is None else self.response.time_us - self.request.time_us

    @cached_property
    def client_id(self) -> str | None:
        """The client id in the header. None if the header does not have one, or if the header is damaged."""
        try:
            if not self._has_client_id():
                return None
            return RequestHeader.read(self.request.payload, _CLIENT_ID_AT, options=_ANY_TEXT)[0].client_id
        except KafkaMsgsError:
            return None

    @property
    def request_message(self) -> Message:
        """The request, decoded; raises what ``decode_request`` raises, and ``DecodeError`` where bytes are missing."""
        return self._request.message

    @property
    def response_message(self) -> Message | None:
        """The decoded response, or None without a response; raises what ``request_message`` raises."""
        return self.response and self._response.message

    @property
    def response_version(self) -> int:
        """The version of the response. It differs from the request's only for an unknown ApiVersions version
        (KIP-511).
        """
        return self._response.version

    @property
    def request_json(self) -> dict[str, Any] | None:
        """The request in the JSON form of Kafka's tools, or None if it cannot be decoded."""
        return None if self._fails(REQUEST) else self._request.message.to_json(self.version)

    @property
    def response_json(self) -> dict[str, Any] | None:
        """The response in the JSON form of Kafka's tools, or None without a response or if it cannot be decoded."""
        if self.response is None or self._fails(RESPONSE):
            return None
        return self._response.message.to_json(self._response.version)

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """The decoding problems, at most one for the request and one for the response."""
        return tuple(self._problems())

    @cached_property
    def errors(self) -> tuple[FieldError, ...]:
        """The error codes in the response that are not 0, in the order of its fields; none if it cannot be decoded."""
        if self.response is None or self._fails(RESPONSE):
            return ()
        return tuple(_errors(self._response.message, ""))

    @property
    def throttle_ms(self) -> int | None:
        """For how many milliseconds the broker asks the client to wait; None without a response that says so."""
        if self.response is None or self._fails(RESPONSE):
            return None
        return getattr(self._response.message, "throttle_time_ms", None)

    @property
    def client_software(self) -> str | None:
        """The name and the version of the client's software, which only an ApiVersions request has (KIP-511)."""
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
        """Whether the header of the request has a client id. For an unknown api, it is assumed to have one."""
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
    """The fields of a struct that are error codes, or in which error codes are found."""
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
