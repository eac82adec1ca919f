"""Tokens from the token endpoint of an OpenID provider: the client credentials grant (RFC 6749, section 4.4).

In Kafka this is ``sasl.oauthbearer.token.endpoint.url`` with ``ClientCredentialsJwtRetriever``, in librdkafka
``sasl.oauthbearer.method=oidc``. ``ClientCredentials`` is a function for ``OAuthBearerCredentials``. It blocks; clients
call it in a helper thread.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from base64 import b64encode
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import SplitResult, quote_plus, urlencode, urlsplit

from attrs import define, field

from kafka_msgs.client.network import describe_error, is_loopback
from kafka_msgs.errors import AuthenticationError, ConnectionFailedError, OptionError

if TYPE_CHECKING:
    import ssl

__all__ = ["ClientCredentials"]

_MAX_SIZE: Final = 1 << 20
_RENEW_AT: Final = 0.8
"""The share of a token's lifetime after which the client requests a new one."""
_OK: Final = 200
_SERVER_ERRORS: Final = 500
_TOO_MANY: Final = 429

log: Final = logging.getLogger("kafka_msgs.client.connection")


@define(eq=False)
class ClientCredentials:
    """Requests tokens with a client id and a client secret, and caches each for 80 % of its lifetime.

    ``url`` is the URL of the token endpoint; ``scope`` is optional. ``timeout`` (seconds) bounds each network wait.
    ``tls`` is the TLS context; by default it trusts the authorities of the system. Raises ``OptionError`` for a URL
    that is not HTTP or HTTPS. A call raises ``AuthenticationError`` if the provider rejects the credentials, and
    ``ConnectionFailedError`` if it does not respond.
    """

    url: str = field(repr=False)
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None = None
    timeout: float = 10.0
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    _token: str | None = field(init=False, default=None, repr=False)
    _renew_at: float = field(init=False, default=0.0, repr=False)
    _lock: threading.Lock = field(init=False, factory=threading.Lock, repr=False)

    def __attrs_post_init__(self) -> None:
        place = urlsplit(self.url)
        if place.scheme not in ("http", "https") or not place.hostname or place.username or place.password:
            reason = "expected an address of HTTP without credentials in it"
            raise OptionError(source="client", option="token endpoint", value=None, reason=reason)
        if place.scheme == "http" and not is_loopback(place.hostname):
            log.warning("%s: the token endpoint gets credentials without TLS", place.hostname)

    def __call__(self) -> str:
        """Return a valid token."""
        with self._lock:
            if self._token is None or time.monotonic() >= self._renew_at:
                self._request()
            assert self._token is not None
            return self._token

    def _request(self) -> None:
        begin = time.monotonic()
        answer = self._answer()
        token, seconds = answer.get("access_token"), answer.get("expires_in")
        if not isinstance(token, str) or not token.isascii() or not token.isprintable():
            raise self._refusal("the answer has no access_token")
        self._token = token
        lifetime = seconds if isinstance(seconds, int | float) and not isinstance(seconds, bool) else 0
        self._renew_at = begin + max(0.0, lifetime * _RENEW_AT)

    def _answer(self) -> dict[str, Any]:
        """Return the JSON object in the response. Redirections are rejected, because they would move the secret."""
        place = urlsplit(self.url)
        connection = self._connection(place)
        try:
            connection.request("POST", self._path(place), self._body(), self._headers())
            response = connection.getresponse()
            content = response.read(_MAX_SIZE + 1)
        except (OSError, HTTPException) as error:
            reason = f"the token endpoint: {describe_error(error)}"
            raise ConnectionFailedError(address=self._address, step="authenticate", reason=reason) from None
        finally:
            connection.close()
        answer = _object(content) if len(content) <= _MAX_SIZE else {}
        if response.status >= _SERVER_ERRORS or response.status == _TOO_MANY:
            reason = f"the token endpoint answers {response.status}"
            raise ConnectionFailedError(address=self._address, step="authenticate", reason=reason)
        if response.status != _OK:
            raise self._refusal(f"the token endpoint answers {response.status}{_code(answer)}")
        return answer

    def _connection(self, place: SplitResult) -> HTTPConnection:
        host = place.hostname or ""
        if place.scheme == "http":
            return HTTPConnection(host, place.port, timeout=self.timeout)
        return HTTPSConnection(host, place.port, timeout=self.timeout, context=self.tls)

    @staticmethod
    def _path(place: SplitResult) -> str:
        return (place.path or "/") + (f"?{place.query}" if place.query else "")

    def _body(self) -> bytes:
        scope = {} if self.scope is None else {"scope": self.scope}
        return urlencode({"grant_type": "client_credentials", **scope}).encode()

    def _headers(self) -> dict[str, str]:
        pair = f"{quote_plus(self.client_id)}:{quote_plus(self.client_secret)}"
        return {
            "Accept": "application/json",
            "Authorization": f"Basic {b64encode(pair.encode()).decode()}",
            "Content-Type": "application/x-www-form-urlencoded",
        }

    @property
    def _address(self) -> str:
        place = urlsplit(self.url)
        return f"{place.hostname}:{place.port or (80 if place.scheme == 'http' else 443)}"

    def _refusal(self, reason: str) -> AuthenticationError:
        return AuthenticationError(address=self._address, mechanism="OAUTHBEARER", reason=reason)


def _object(content: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return answer if isinstance(answer, dict) else {}


def _code(answer: dict[str, Any]) -> str:
    """Return the error code of RFC 6749, section 5.2, without its description, which may repeat secrets."""
    code = answer.get("error")
    short = isinstance(code, str) and len(code) <= 40 and code.replace("_", "").isalnum() and code.isascii()
    return f" ({code})" if short else ""
