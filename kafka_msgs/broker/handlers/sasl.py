"""SaslHandshake and SaslAuthenticate: a client logs in on a listener with SASL (KIP-43, KIP-152, KIP-368).

A handshake of version 0 is followed by tokens without headers, which ``take_token`` handles. The source is
``org.apache.kafka.common.security.authenticator.SaslServerAuthenticator``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_msgs.broker.call import Call, Exchange, Handler, Principal, Session
from kafka_msgs.broker.security.credentials import Credentials
from kafka_msgs.broker.security.sasl import RefusedExchange, begin_exchange
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RefusedError
from kafka_msgs.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kafka_msgs.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kafka_msgs.messages.sasl_handshake_request import SaslHandshakeRequest
from kafka_msgs.messages.sasl_handshake_response import SaslHandshakeResponse

if TYPE_CHECKING:
    from kafka_msgs.broker.cluster import Cluster

__all__ = ["HANDLERS", "failure_delay", "take_token"]


_MIN_INTERVAL_MS: Final = 1000
"""How often a client may log in again on a connection, as in Kafka's ``KafkaChannel``."""


def _handshake(call: Call[SaslHandshakeRequest]) -> None:
    session, cluster = call.session, call.cluster
    if not session.listener.sasl or not _may_begin(session, cluster.now):
        call.closes = session.exchange is not None
        call.answer(SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE))
        return
    enabled = cluster.sasl_mechanisms
    if call.request.mechanism not in enabled:
        call.closes = True
        call.answer(SaslHandshakeResponse(error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=enabled))
        return
    session.exchange = _exchange(call, call.request.mechanism)
    call.answer(SaslHandshakeResponse(mechanisms=enabled))


def _may_begin(session: Session, now: int) -> bool:
    """Whether a client may begin a login now: the first one, or again if its login ends some time (KIP-368)."""
    if not session.logged_in or session.exchange is not None:
        return session.exchange is None
    again = session.login_ends is not None and now - session.login_again_at >= _MIN_INTERVAL_MS
    if again:
        session.login_again_at = now
    return again


def _exchange(call: Call[SaslHandshakeRequest], mechanism: str) -> Exchange:
    session = call.session
    if session.logged_in and mechanism != session.mechanism:
        return RefusedExchange(
            f"SASL mechanism '{mechanism}' requested by client is not supported for re-authentication of mechanism "
            f"'{session.mechanism}'"
        )
    session.mechanism = mechanism
    return begin_exchange(mechanism, Credentials(call.cluster))


def _authenticate(call: Call[SaslAuthenticateRequest]) -> None:
    if call.session.exchange is None:
        message = "SaslAuthenticate request received after successful authentication"
        call.closes = not call.session.logged_in
        call.answer(SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=message))
        return
    session = call.session
    try:
        token = take_token(call.cluster, session, call.request.auth_bytes)
    except RefusedError as error:
        call.closes = True
        response = SaslAuthenticateResponse(error_code=error.error, error_message=error.message)
        call.cluster.wait(failure_delay(call.cluster), lambda: call.answer(response))
        return
    lasts = session.exchange is None and session.login_ends is not None
    lifetime = call.cluster.settings.number("connections.max.reauth.ms") if lasts else 0
    call.answer(SaslAuthenticateResponse(auth_bytes=token, session_lifetime_ms=lifetime))


def failure_delay(cluster: Cluster) -> int:
    """Return after how many milliseconds a login that failed is answered, so that guessing passwords takes time."""
    return cluster.settings.number("connection.failed.authentication.delay.ms")


def take_token(cluster: Cluster, session: Session, token: bytes) -> bytes:
    """Return the answer to a token of a login. Raises ``RefusedError``.

    After the last token the session has its user, and the moment from which it must log in again.
    """
    exchange = session.exchange
    if exchange is None:
        raise RefusedError(error=ErrorCode.ILLEGAL_SASL_STATE)
    answer = exchange.step(bytes(token))
    if exchange.user is not None:
        principal = Principal("User", exchange.user)
        if session.logged_in and principal != session.principal:
            was, new = (f"{each.type}.{each.name}" for each in (session.principal, principal))
            message = f"Cannot change principals during re-authentication from {was}: {new}"
            raise RefusedError(error=ErrorCode.SASL_AUTHENTICATION_FAILED, message=message)
        lifetime = cluster.settings.number("connections.max.reauth.ms")
        session.principal, session.logged_in, session.exchange = principal, True, None
        session.login_ends = cluster.now + lifetime if lifetime else None
    return answer


HANDLERS: Final = (
    Handler(SaslHandshakeRequest, _handshake, before_login=True, exempt=True),
    Handler(SaslAuthenticateRequest, _authenticate, before_login=True, exempt=True),
)
