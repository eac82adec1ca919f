"""SaslHandshake and SaslAuthenticate: a client logs in on a listener with SASL (KIP-43, KIP-152, KIP-368).

A handshake of version 0 is followed by tokens without headers, which ``take_token`` handles. The source is
``org.apache.kafka.common.security.authenticator.SaslServerAuthenticator``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_msgs.broker.call import Call, Handler, Principal, Session
from kafka_msgs.broker.security.credentials import Credentials
from kafka_msgs.broker.security.sasl import begin_exchange
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RefusedError
from kafka_msgs.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kafka_msgs.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kafka_msgs.messages.sasl_handshake_request import SaslHandshakeRequest
from kafka_msgs.messages.sasl_handshake_response import SaslHandshakeResponse

if TYPE_CHECKING:
    from kafka_msgs.broker.cluster import Cluster

__all__ = ["HANDLERS", "take_token"]


def _handshake(call: Call[SaslHandshakeRequest]) -> None:
    session, cluster = call.session, call.cluster
    if not session.listener.sasl:
        call.answer(SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE))
        return
    enabled = cluster.sasl_mechanisms
    if call.request.mechanism not in enabled:
        call.closes = True
        call.answer(SaslHandshakeResponse(error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=enabled))
        return
    session.exchange = begin_exchange(call.request.mechanism, Credentials(cluster))
    call.answer(SaslHandshakeResponse(mechanisms=enabled))


def _authenticate(call: Call[SaslAuthenticateRequest]) -> None:
    if call.session.exchange is None:
        message = "SaslAuthenticate request received after successful authentication"
        call.closes = not call.session.logged_in
        call.answer(SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=message))
        return
    try:
        token = take_token(call.cluster, call.session, call.request.auth_bytes)
    except RefusedError as error:
        call.closes = True
        call.answer(SaslAuthenticateResponse(error_code=error.error, error_message=error.message))
        return
    call.answer(SaslAuthenticateResponse(auth_bytes=token, session_lifetime_ms=_lifetime(call)))


def _lifetime(call: Call[SaslAuthenticateRequest]) -> int:
    """For how many milliseconds the login is good. 0 is for ever, or for a login that is still under way."""
    if call.session.exchange is not None:
        return 0
    lifetime = call.cluster.settings.number("connections.max.reauth.ms")
    call.session.login_ends = call.cluster.now + lifetime if lifetime else None
    return lifetime


def take_token(cluster: Cluster, session: Session, token: bytes) -> bytes:
    """Return the answer to a token of a login. After the last one the session has its user. Raises ``RefusedError``."""
    exchange = session.exchange
    if exchange is None:
        raise RefusedError(error=ErrorCode.ILLEGAL_SASL_STATE)
    answer = exchange.step(bytes(token))
    if exchange.user is not None:
        session.principal = Principal("User", exchange.user)
        session.logged_in = True
        session.exchange = None
    return answer


HANDLERS: Final = (
    Handler(SaslHandshakeRequest, _handshake, before_login=True, exempt=True),
    Handler(SaslAuthenticateRequest, _authenticate, before_login=True, exempt=True),
)
