"""Addons of a proxy: hooks that observe, change, answer, delay, drop or refuse requests and responses.

A hook receives a ``TapExchange``. It decodes only the fields that the hook reads, and the proxy forwards the original
bytes unless the hook changes them. ``connection`` calls the hooks. This module does no input or output.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from attrs import evolve

from kafka_msgs.capture.connections import CapturedConnection
from kafka_msgs.catalog import MessageCatalog, release_catalog
from kafka_msgs.codec import CodecOptions
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import TapError
from kafka_msgs.message import Request, Response
from kafka_msgs.tap.frame_forwarder import Pause, Piece
from kafka_msgs.wire import (
    Edit,
    RequestFrame,
    ResponseFrame,
    decode_request,
    decode_response,
    encode_response,
    error_response,
    join_frames,
    patch_request,
    patch_response,
    payload_needs_response,
    peek_request,
    peek_response,
    read_request_header,
)

__all__ = ["Addon", "CloseMode", "HookOutcome", "TapExchange"]

CloseMode = Literal["open", "clean", "reset"]
"""The state of a connection after an exchange: open, or ended cleanly or with a reset."""

_AS_IT_IS: Final = CodecOptions(utf8_errors="surrogateescape")
_PREFIX: Final = struct.Struct(">hhi")


class HookOutcome(NamedTuple):
    """The decision of the hooks: the pieces to forward, or None for the original frame, and the connection's end.

    ``answer`` contains the pieces for the client if a hook has answered the request.
    """

    pieces: tuple[Piece, ...] | None
    answer: tuple[Piece, ...]
    close: CloseMode


class Addon:
    """The base class of addons: hooks that do nothing.

    ``apis`` contains the keys of the APIs whose exchanges the hooks receive, or is None for all APIs. Frames of other
    APIs are forwarded as they arrive. A hook runs in the event loop of the proxy and must not block. If a hook raises,
    the proxy reports the error and forwards the frame without the changes of this hook.
    """

    apis: Collection[int] | None = None

    def connected(self, connection: CapturedConnection) -> None:
        """Handle a new connection."""

    def closed(self, connection: CapturedConnection) -> None:
        """Handle the end of a connection."""

    def request(self, exchange: TapExchange) -> None:
        """Handle a complete request before the broker receives it."""

    def response(self, exchange: TapExchange) -> None:
        """Handle a complete response before the client receives it."""

    def wants(self, hook: Literal["request", "response"], api_key: int) -> bool:
        """Return whether a hook is implemented and concerns an API."""
        return (self.apis is None or api_key in self.apis) and getattr(type(self), hook) is not getattr(Addon, hook)


class TapExchange:
    """A request on its way through the proxy and, in the hook ``response``, the response to it.

    ``connection`` contains both addresses. ``state`` is a dict in which addons keep data from the request to the
    response. In the hook ``request`` the methods change, answer, delay or drop the request; in the hook ``response``
    they change, replace, delay or drop the response. Properties and methods that decode raise the errors of
    ``decode_request`` and ``decode_response``. Methods raise ``TapError`` if they do not apply to the hook.
    """

    def __init__(
        self, connection: CapturedConnection, request_payload: bytes, catalog: MessageCatalog | None = None
    ) -> None:
        self.connection = connection
        self.request_payload = request_payload
        self.response_payload: bytes | None = None
        self.state: dict[str, Any] = {}
        self._original = request_payload
        self._received = False
        self.api_key, self.version, self.correlation_id = _PREFIX.unpack_from(request_payload)
        self._catalog = catalog
        self._delay = 0.0
        self._dropped = False
        self._close: CloseMode = "open"
        self._pieces: tuple[Piece, ...] | None = None

    @property
    def client_id(self) -> str | None:
        """The client id of the request."""
        return read_request_header(self.request_payload, catalog=self._catalog, options=_AS_IT_IS).client_id

    @property
    def request_class(self) -> type[Request[Any]]:
        """The class of the request. Raises ``UnknownMessageError`` and ``UnsupportedVersionError``."""
        return (self._catalog or release_catalog()).message_class(self.api_key, "request", self.version)

    @property
    def response_class(self) -> type[Response]:
        """The class of the response. Raises ``UnknownMessageError`` and ``UnsupportedVersionError``."""
        return (self._catalog or release_catalog()).message_class(self.api_key, "response", self.version)

    @property
    def request(self) -> Request[Any]:
        """The decoded request."""
        return self._request_frame().message

    @property
    def response(self) -> Response:
        """The decoded response."""
        return self._response_frame().message

    def peek_request(self, *paths: str) -> Any:
        """Return selected fields of the request; see ``kafka_msgs.Peek``."""
        return peek_request(self.request_payload, *paths, catalog=self._catalog)

    def peek_response(self, *paths: str) -> Any:
        """Return selected fields of the response; see ``kafka_msgs.Peek``."""
        return peek_response(self._response(), self.api_key, self.version, *paths, catalog=self._catalog)

    def patch_request(self, edits: Mapping[str, Edit]) -> None:
        """Change fields of the request; all other bytes stay the same. See ``kafka_msgs.wire.patch_request``."""
        self._expect_request()
        self.request_payload = patch_request(self.request_payload, edits, catalog=self._catalog)

    def patch_response(self, edits: Mapping[str, Edit]) -> None:
        """Change fields of the response; all other bytes stay the same. See ``kafka_msgs.wire.patch_response``."""
        self.response_payload = patch_response(
            self._response(), self.api_key, self.version, edits, catalog=self._catalog
        )

    def replace_request(self, message: Request[Any]) -> None:
        """Send another message of the same API and version to the broker. Raises ``EncodeError``."""
        self._expect_request()
        self.request_payload = evolve(self._request_frame(), message=message).encode()

    def replace_response(self, message: Response) -> None:
        """Send another message of the same API and version to the client. Raises ``EncodeError``."""
        self.response_payload = evolve(self._response_frame(), message=message).encode()

    def respond(self, message: Response) -> None:
        """Send a response to the client. In the hook ``request``, the broker does not receive the request.

        The client receives the response after the responses to its earlier requests. Raises ``EncodeError``.
        """
        if self._received:
            self.replace_response(message)
            return
        self._dropped = True
        if payload_needs_response(self.request_payload, self._catalog):
            self.response_payload = encode_response(message, self.version, correlation_id=self.correlation_id)

    def fail(self, error: ErrorCode, message: str | None = None) -> None:
        """Respond with an error code, in all places where the API reports errors."""
        self.respond(error_response(self.request, error, self.version, error_message=message, catalog=self._catalog))

    def delay(self, seconds: float) -> None:
        """Delay the request or the response, and everything after it in the same direction."""
        self._delay += seconds

    def drop(self) -> None:
        """Drop the request or the response. A client waits for a response until its timeout."""
        self._dropped = True

    def close(self, *, reset: bool = False) -> None:
        """Drop the request or the response and close the connection: cleanly, or with a reset.

        Bytes of ``send_bytes`` are sent first.
        """
        self._dropped = True
        self._close = "reset" if reset else "clean"

    def send_bytes(self, pieces: Sequence[bytes], *, interval: float = 0.0) -> None:
        """Send these bytes instead of the response frame with its size, with a pause of ``interval`` seconds between.

        They are not checked; use this method to simulate a broken broker.
        """
        self._response()
        paced: list[Piece] = []
        for piece in pieces:
            paced += [piece, Pause(interval)] if interval else [piece]
        self._pieces = tuple(paced)

    # For the connection

    def take_outcome(self) -> HookOutcome:
        """Return what the hooks have decided since the last call."""
        pause = (Pause(self._delay),) if self._delay else ()
        answered = self._dropped and not self._received and self.response_payload is not None
        answer = (*pause, join_frames(self.response_payload)) if answered and self.response_payload else ()
        pieces: tuple[Piece, ...] | None
        if self._pieces is not None:
            pieces = (*pause, *self._pieces)
        elif self._dropped:
            pieces = ()
        else:
            payload = (self._received and self.response_payload) or self.request_payload
            pieces = (*pause, join_frames(payload)) if payload is not self._original or pause else None
        outcome = HookOutcome(pieces, answer, self._close)
        self._delay, self._dropped, self._pieces, self._close = 0.0, False, None, "open"
        return outcome

    @property
    def dropped(self) -> bool:
        """Whether a hook has dropped or answered the frame, so that further addons do not receive it."""
        return self._dropped

    def receive_response(self, payload: bytes) -> None:
        """Add the broker's response, before the hooks ``response``."""
        self.response_payload = self._original = payload
        self._received = True

    def snapshot(self) -> dict[str, Any]:
        """Return the state before a hook, for ``restore`` if the hook raises."""
        return {**self.__dict__, "state": self.state}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Undo the changes of a hook."""
        self.__dict__.update(snapshot)

    def _request_frame(self) -> RequestFrame:
        return decode_request(self.request_payload, catalog=self._catalog, options=_AS_IT_IS)

    def _response_frame(self) -> ResponseFrame:
        payload = self._response()
        return decode_response(payload, self.api_key, self.version, catalog=self._catalog, options=_AS_IT_IS)

    def _expect_request(self) -> None:
        if self._received:
            raise TapError(address=str(self.connection.server), reason="the broker has already received the request")

    def _response(self) -> bytes:
        if not self._received or self.response_payload is None:
            raise TapError(address=str(self.connection.server), reason="the broker has not responded yet")
        return self.response_payload
