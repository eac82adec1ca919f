"""HTTP requests and responses of the endpoints, and the route of each request to its handler, without sockets."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from attrs import evolve, field, frozen

from kafka_msgs.errors import OptionError

__all__ = ["HttpError", "HttpRequest", "HttpResponse", "Route", "Router", "TextResponse"]

_JSON: Final = "application/json"


class HttpError(Exception):
    """A request that is refused with an HTTP status. ``body`` is the JSON value of the response."""

    def __init__(self, status: int, body: object) -> None:
        super().__init__(body)
        self.status = status
        self.body = body


@frozen(kw_only=True)
class HttpRequest:
    """A request. Header names are in lower case. ``path`` holds the decoded variables of the route's path."""

    method: str
    target: str
    headers: Mapping[str, str] = field(factory=dict)
    body: bytes = b""
    path: Mapping[str, str] = field(factory=dict)

    @property
    def query(self) -> dict[str, str]:
        """The query parameters. The last value of a name wins."""
        return dict(parse_qsl(urlsplit(self.target).query, keep_blank_values=True))

    @property
    def json(self) -> Any:
        """The body as a JSON value. Raises ``OptionError`` if it is not JSON."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise OptionError(source="request", option="body", value=None, reason=f"it is not JSON: {error}") from None


@frozen
class HttpResponse:
    """A response with a JSON body."""

    value: object = None
    status: int = HTTPStatus.OK
    content_type: str = _JSON

    @property
    def body(self) -> bytes:
        """The bytes of the body."""
        return b"" if self.status == HTTPStatus.NO_CONTENT else json.dumps(self.value).encode()


@frozen
class TextResponse(HttpResponse):
    """A response whose value is its text."""

    @property
    def body(self) -> bytes:
        """The text in UTF-8. Text that is not valid Unicode is escaped."""
        return str(self.value).encode(errors="backslashreplace")


@frozen
class Route:
    """A method, a path such as ``/faults/{number}``, and a handler, which returns a response or a JSON value."""

    method: str
    path: str
    handle: Callable[[HttpRequest], object]


class Router:
    """The routes of an endpoint. ``failed`` receives unexpected exceptions, which are bugs."""

    def __init__(self, routes: Iterable[Route], failed: Callable[[Exception], None], content_type: str = _JSON) -> None:
        self._routes = [(each, each.path.strip("/").split("/")) for each in routes]
        self._failed = failed
        self._content_type = content_type

    def respond(self, request: HttpRequest) -> HttpResponse:
        """Return the response to a request: 404 without a route, and 400 for an ``OptionError``."""
        try:
            value = self._handled(request)
        except HttpError as error:
            return HttpResponse(error.body, error.status, self._content_type)
        except OptionError as error:
            return HttpResponse({"error": str(error)}, HTTPStatus.BAD_REQUEST, self._content_type)
        except Exception as error:
            self._failed(error)
            return HttpResponse({"error": repr(error)}, HTTPStatus.INTERNAL_SERVER_ERROR, self._content_type)
        if isinstance(value, HttpResponse):
            return value
        return HttpResponse(value, content_type=self._content_type)

    def _handled(self, request: HttpRequest) -> object:
        parts = [unquote(part) for part in urlsplit(request.target).path.strip("/").split("/")]
        # A HEAD request gets the response to GET; the server omits its body.
        method = "GET" if request.method == "HEAD" else request.method
        methods = []
        for route, pattern in self._routes:
            variables = _match(pattern, parts)
            if variables is not None and route.method == method:
                return route.handle(evolve(request, path=variables))
            if variables is not None:
                methods.append(route.method)
        if methods:
            raise HttpError(HTTPStatus.METHOD_NOT_ALLOWED, {"error": f"the methods are {', '.join(methods)}"})
        raise HttpError(HTTPStatus.NOT_FOUND, {"error": "there is no such path"})


def _match(pattern: list[str], parts: list[str]) -> dict[str, str] | None:
    """Return the variables of a path, or None if it does not match."""
    if len(pattern) != len(parts):
        return None
    variables = {}
    for expected, part in zip(pattern, parts, strict=True):
        if expected.startswith("{"):
            variables[expected.strip("{}")] = part
        elif expected != part:
            return None
    return variables
