"""The REST API of a schema registry, as a source of schemas.

Handles the requests and their errors. A schema with an id never changes, so it is requested only once. Requests are
repeated if the registry is overloaded or restarts; redirects are followed, but credentials stay with the address that
they are for.
"""

from __future__ import annotations

import json
import socket
import time
from base64 import b64encode
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from threading import Timer
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPHandler, HTTPRedirectHandler, HTTPSHandler, OpenerDirector, Request, build_opener

from attrs import field, frozen

from kafka_msgs.errors import OptionError, RegistryError, UnknownSchemaError
from kafka_msgs.registry.schemas import RegisteredSchema, schema_of_json

__all__ = ["SchemaRegistryClient"]

_NOT_FOUND: Final = 404
_AGAIN: Final = frozenset([429, 500, 502, 503, 504])
"""The status codes of requests that are repeated."""
_ATTEMPTS: Final = 4
_PAUSE: Final = 0.1
"""The seconds before the second attempt; each later pause is twice as long."""
_MAX_PAUSE: Final = 10.0
_REDIRECTS: Final = 5
_MOST: Final = 64 << 20
_SCHEMES: Final = frozenset(["http", "https"])
_CREDENTIALS: Final = "Authorization"


@frozen(slots=False)
class SchemaRegistryClient:
    """An HTTP client of a schema registry. Clients with equal settings are equal.

    ``url`` is its address, such as ``http://registry:8081``. ``user`` and ``password`` are for basic authentication,
    ``token`` is for bearer authentication. ``timeout_ms`` limits each request, from the connection to the last byte of
    the response. Requests to an overloaded registry (status 429 and 5xx) are repeated at most three times. Raises
    ``OptionError`` for an address that is not an HTTP URL.
    """

    url: str
    user: str | None = field(default=None, kw_only=True)
    password: str | None = field(default=None, kw_only=True, repr=False)
    token: str | None = field(default=None, kw_only=True, repr=False)
    timeout_ms: int = field(default=30_000, kw_only=True)
    _ids: dict[int, RegisteredSchema] = field(init=False, factory=dict, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        try:
            is_http = urlsplit(self.url).scheme in _SCHEMES and self.url.isascii()
        except ValueError:
            is_http = False
        if not is_http:
            reason = "it starts with neither http:// nor https://, or it is not a valid URL"
            raise OptionError(source="SchemaRegistryClient", option="url", value=self.url, reason=reason)

    def by_id(self, schema_id: int) -> RegisteredSchema:
        """Return the schema with the id; raises ``UnknownSchemaError`` and ``RegistryError``."""
        if schema_id not in self._ids:
            found = self._asked(f"schemas/ids/{schema_id}", f"schema {schema_id}")
            self._ids[schema_id] = schema_of_json(found, self.url, schema_id)
        return self._ids[schema_id]

    def version(self, subject: str, version: int) -> RegisteredSchema:
        """Return one version of a subject; raises ``UnknownSchemaError`` and ``RegistryError``."""
        path = f"subjects/{quote(subject, safe='')}/versions/{version}?deleted=true"
        return schema_of_json(self._asked(path, f"version {version} of subject {subject!r}"), self.url)

    def latest(self, subject: str) -> RegisteredSchema:
        """Return the latest version of a subject; raises ``UnknownSchemaError`` and ``RegistryError``."""
        path = f"subjects/{quote(subject, safe='')}/versions/latest"
        return schema_of_json(self._asked(path, f"subject {subject!r}"), self.url)

    def _asked(self, path: str, what: str) -> Any:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                content = self._content(path)
                break
            except HTTPError as error:
                with error:
                    if error.code == _NOT_FOUND:
                        raise UnknownSchemaError(source=self.url, schema=what) from error
                    if attempt == _ATTEMPTS or error.code not in _AGAIN:
                        raise RegistryError(source=self.url, status=error.code, reason=str(error.reason)) from error
                    time.sleep(_pause(attempt, error.headers.get("Retry-After")))
            except (OSError, HTTPException) as error:
                raise RegistryError(source=self.url, reason=str(error) or type(error).__name__) from error
            except (ValueError, OverflowError):  # their text may contain the credentials
                raise RegistryError(source=self.url, reason="invalid address, credentials or redirect") from None
        if len(content) > _MOST:
            raise RegistryError(source=self.url, reason=f"{what} has more than {_MOST} bytes")
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            raise RegistryError(source=self.url, reason=f"the answer for {what} is not JSON: {error}") from error

    def _content(self, path: str) -> bytes:
        request = Request(f"{self.url.rstrip('/')}/{path}", headers={"Accept": "application/json"})
        for name, value in self._credentials().items():
            request.add_unredirected_header(name, value)
        with _opener().open(request, timeout=self.timeout_ms / 1000) as answer:
            content: bytes = answer.read(_MOST + 1)
        return content

    def _credentials(self) -> dict[str, str]:
        if self.token is not None:
            return {_CREDENTIALS: f"Bearer {self.token}"}
        if self.user is not None:
            basic = b64encode(f"{self.user}:{self.password or ''}".encode()).decode()
            return {_CREDENTIALS: f"Basic {basic}"}
        return {}


def _pause(attempt: int, retry_after: str | None) -> float:
    """Return the seconds before the next attempt, from the header ``Retry-After`` or increasing with the attempts."""
    asked = float(retry_after) if retry_after and retry_after.isdecimal() else 0.0
    return min(max(asked, _PAUSE * float(2 ** (attempt - 1))), _MAX_PAUSE)


def _opener() -> OpenerDirector:
    return build_opener(_RedirectHandler, _HttpHandler, _HttpsHandler)


class _RedirectHandler(HTTPRedirectHandler):
    """Follows a few redirects between HTTP URLs. Only the original scheme, host and port receive credentials."""

    max_redirections = _REDIRECTS

    def redirect_request(self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Request | None:
        """Return the next request."""
        if urlsplit(newurl).scheme not in _SCHEMES:
            raise HTTPError(newurl, code, "a redirect to another protocol", headers, fp)
        found = super().redirect_request(req, fp, code, msg, headers, newurl)
        credentials = req.unredirected_hdrs.get(_CREDENTIALS)
        if found is not None and credentials is not None and _origin(newurl) == _origin(req.full_url):
            found.add_unredirected_header(_CREDENTIALS, credentials)
        return found


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


class _TimedResponse(HTTPResponse):
    """A response whose time ends when it is closed."""

    timer: Timer | None = None

    def close(self) -> None:
        """Close the response."""
        if self.timer is not None:
            self.timer.cancel()
        super().close()


class _Deadline(HTTPConnection):
    """A connection that ends after its timeout, however slowly the server sends."""

    response_class = _TimedResponse
    _timer: Timer | None = None

    def connect(self) -> None:
        """Connect, and start the time."""
        super().connect()
        if self.timeout is not None:
            self._timer = Timer(self.timeout, _end, [self.sock])
            self._timer.daemon = True
            self._timer.start()

    def getresponse(self) -> HTTPResponse:
        """Return the response."""
        response = super().getresponse()
        if isinstance(response, _TimedResponse):
            response.timer = self._timer
        return response


def _end(connected: socket.socket) -> None:
    with suppress(OSError):
        connected.shutdown(socket.SHUT_RDWR)


class _SecureDeadline(_Deadline, HTTPSConnection):
    """The same with TLS."""


class _HttpHandler(HTTPHandler):
    def http_open(self, req: Request) -> HTTPResponse:
        found: HTTPResponse = self.do_open(_Deadline, req)
        return found


class _HttpsHandler(HTTPSHandler):
    def https_open(self, req: Request) -> HTTPResponse:
        found: HTTPResponse = self.do_open(_SecureDeadline, req)
        return found
