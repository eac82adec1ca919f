"""The server side of SASL authentication: it evaluates client tokens and returns the name of the user at the end.

PLAIN follows RFC 4616. SCRAM follows RFC 5802 and uses the package ``scramp``. ``oauthbearer`` contains OAUTHBEARER.
Errors have Kafka's messages and reveal no secrets.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kafka_msgs.broker.client_session import SaslServer
from kafka_msgs.broker.cluster_services import ClusterServices
from kafka_msgs.broker.security.credentials import MECHANISMS, OAUTHBEARER, PLAIN, CredentialStore
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import MissingExtraError, RequestRefusedError

if TYPE_CHECKING:
    from scramp import ScramMechanism

    from kafka_msgs.broker.security.tokens import TokenValidator

__all__ = ["RefusedExchange", "new_sasl_server"]

_failed: Final = partial(RequestRefusedError, ErrorCode.SASL_AUTHENTICATION_FAILED)

_PLAIN_PARTS: Final = 3


def new_sasl_server(mechanism: str, cluster: ClusterServices, validator: Callable[[], TokenValidator]) -> SaslServer:
    """Return a new SASL server for a mechanism. Raises ``RequestRefusedError`` for an unknown mechanism."""
    credentials = CredentialStore(cluster)
    if mechanism == PLAIN:
        return _Plain(credentials)
    if mechanism == OAUTHBEARER:
        from kafka_msgs.broker.security.oauthbearer import OAuthBearerServer

        return OAuthBearerServer(validator(), lambda: cluster.now)
    if mechanism in MECHANISMS:
        return _Scram(mechanism, credentials)
    raise RequestRefusedError(ErrorCode.UNSUPPORTED_SASL_MECHANISM)


class RefusedExchange(SaslServer):
    """A login that fails at its first token."""

    def __init__(self, message: str) -> None:
        self._message = message

    def evaluate(self, token: bytes) -> bytes:
        """Raise ``RequestRefusedError``."""
        raise _failed(self._message)


class _Plain(SaslServer):
    """PLAIN: one token with the authorization id, the user name and the password."""

    def __init__(self, credentials: CredentialStore) -> None:
        self._credentials = credentials

    def evaluate(self, token: bytes) -> bytes:
        try:
            parts = token.decode().split("\0")
        except UnicodeDecodeError:
            parts = []
        if len(parts) != _PLAIN_PARTS:
            raise _failed("Invalid SASL/PLAIN response: expected 3 tokens, got " + str(len(parts)))
        acts_for, user, password = parts
        if not user:
            raise _failed("Authentication failed: username not specified")
        if not password:
            raise _failed("Authentication failed: password not specified")
        if not self._credentials.accepts(user, password):
            raise _failed("Authentication failed: Invalid username or password")
        if acts_for not in ("", user):
            raise _failed("Authentication failed: Client requested an authorization id that is different from username")
        self.user = user
        return b""


class _Scram(SaslServer):
    """SCRAM: two client tokens, each with a response."""

    def __init__(self, mechanism: str, credentials: CredentialStore) -> None:
        try:
            import scramp
        except ImportError as error:
            raise MissingExtraError(package="scramp", feature="SCRAM", extra="broker") from error
        self._mechanism = mechanism
        self._credentials = credentials
        self._failure = scramp.ScramException
        made: ScramMechanism = scramp.ScramMechanism(mechanism)
        self._server: Any = made.make_server(self._known)
        self._name = ""
        self._begun = False

    def _known(self, user: str) -> tuple[bytes, bytes, bytes, int]:
        self._name = user
        found = self._credentials.scram(user, self._mechanism)
        if found is None:
            raise LookupError(user)
        return found.salt, found.stored_key, found.server_key, found.iterations

    def evaluate(self, token: bytes) -> bytes:
        try:
            answer = self._next(token.decode())
        except (self._failure, LookupError, ValueError):
            reason = "Authentication failed during authentication due to invalid credentials with SASL mechanism "
            raise _failed(reason + self._mechanism) from None
        return answer.encode()

    def _next(self, text: str) -> str:
        if not self._begun:
            self._begun = True
            self._server.set_client_first(text)
            first: str = self._server.get_server_first()
            return first
        self._server.set_client_final(text)
        final: str = self._server.get_server_final()
        self.user = self._name
        return final
