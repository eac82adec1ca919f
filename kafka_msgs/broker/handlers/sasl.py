"""SaslHandshake and SaslAuthenticate: authentication on a SASL listener (KIP-43, KIP-152, KIP-368).

After a version 0 handshake the client sends tokens without headers, which ``handle_sasl_token`` handles. The source is
``org.apache.kafka.common.security.authenticator.SaslServerAuthenticator``.
"""

from __future__ import annotations

from typing import Final

from kafka_msgs.broker.broker_interface import BrokerInterface
from kafka_msgs.broker.client_session import ClientSession, Principal, SaslServer
from kafka_msgs.broker.security.sasl import RefusedExchange, new_sasl_server
from kafka_msgs.broker.server_call import ApiHandler, ServerCall
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kafka_msgs.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kafka_msgs.messages.sasl_handshake_request import SaslHandshakeRequest
from kafka_msgs.messages.sasl_handshake_response import SaslHandshakeResponse

__all__ = ["HANDLERS", "failure_delay", "handle_sasl_token"]


_MIN_INTERVAL_MS: Final = 1000
"""The minimum interval between two authentications on a connection, as in Kafka's ``KafkaChannel``."""


def _handshake(call: ServerCall[SaslHandshakeRequest]) -> None:
    session, cluster = call.session, call.cluster
    if not session.listener.sasl or not _may_begin(session, cluster.now):
        call.closes = session.sasl_server is not None
        call.respond(SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE))
        return
    enabled = cluster.sasl_mechanisms
    if call.request.mechanism not in enabled:
        call.closes = True
        call.respond(SaslHandshakeResponse(error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=enabled))
        return
    session.sasl_server = _exchange(call, call.request.mechanism)
    call.respond(SaslHandshakeResponse(mechanisms=enabled))


def _may_begin(session: ClientSession, now: int) -> bool:
    """Return whether a client may authenticate now.

    It may do so for the first time, and again if its session has a lifetime (KIP-368).
    """
    if not session.authenticated or session.sasl_server is not None:
        return session.sasl_server is None
    again = session.session_expires_at is not None and now - session.login_again_at >= _MIN_INTERVAL_MS
    if again:
        session.login_again_at = now
    return again


def _exchange(call: ServerCall[SaslHandshakeRequest], mechanism: str) -> SaslServer:
    session = call.session
    if session.authenticated and mechanism != session.mechanism:
        return RefusedExchange(
            f"SASL mechanism '{mechanism}' requested by client is not supported for re-authentication of mechanism "
            f"'{session.mechanism}'"
        )
    session.mechanism = mechanism
    return new_sasl_server(mechanism, call.cluster, lambda: call.cluster.token_validator)


def _authenticate(call: ServerCall[SaslAuthenticateRequest]) -> None:
    if call.session.sasl_server is None:
        message = "SaslAuthenticate request received after successful authentication"
        call.closes = not call.session.authenticated
        call.respond(SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=message))
        return
    session = call.session
    try:
        token = handle_sasl_token(call.cluster, session, call.request.auth_bytes)
    except RequestRefusedError as error:
        call.closes = True
        response = SaslAuthenticateResponse(error_code=error.error, error_message=error.message)
        call.cluster.wait(failure_delay(call.cluster), lambda: call.respond(response))
        return
    expires_at = session.session_expires_at if session.sasl_server is None else None
    lifetime = 0 if expires_at is None else max(0, expires_at - call.cluster.now)
    call.respond(SaslAuthenticateResponse(auth_bytes=token, session_lifetime_ms=lifetime))


def failure_delay(cluster: BrokerInterface) -> int:
    """Return the delay in milliseconds of the response to a failed login, which slows down password guessing."""
    return cluster.configs.number("connection.failed.authentication.delay.ms")


def handle_sasl_token(cluster: BrokerInterface, session: ClientSession, token: bytes) -> bytes:
    """Return the response to a login token. Raises ``RequestRefusedError``.

    After the last token the session has its user and its re-authentication time.
    """
    exchange = session.sasl_server
    if exchange is None:
        raise RequestRefusedError(ErrorCode.ILLEGAL_SASL_STATE)
    answer = exchange.evaluate(bytes(token))
    if exchange.user is not None:
        principal = Principal("User", exchange.user)
        if session.authenticated and principal != session.principal:
            was, new = (f"{each.type}.{each.name}" for each in (session.principal, principal))
            message = f"Cannot change principals during re-authentication from {was}: {new}"
            raise RequestRefusedError(ErrorCode.SASL_AUTHENTICATION_FAILED, message)
        session.principal, session.authenticated, session.sasl_server = principal, True, None
        session.session_expires_at = _session_end(cluster, exchange.expires_at)
    return answer


def _session_end(cluster: BrokerInterface, credentials_expire_at: int | None) -> int | None:
    """Return the time in ms at which a client must re-authenticate: when its credentials expire, or earlier."""
    lifetime = cluster.configs.number("connections.max.reauth.ms")
    ends = [cluster.now + lifetime] if lifetime else []
    ends += [] if credentials_expire_at is None else [credentials_expire_at]
    return min(ends, default=None)


HANDLERS: Final = (
    ApiHandler(SaslHandshakeRequest, _handshake, allowed_unauthenticated=True, exempt=True),
    ApiHandler(SaslAuthenticateRequest, _authenticate, allowed_unauthenticated=True, exempt=True),
)
