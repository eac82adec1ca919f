"""SASL authentication of clients with PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER.

Each credentials class generates the tokens of its mechanism; shared code exchanges them with the broker (SaslHandshake
and SaslAuthenticate, KIP-43, KIP-152). A session may have a lifetime (KIP-368). Secrets never appear in a ``repr`` or
an error. SCRAM needs the extra ``client``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from inspect import isawaitable, iscoroutine
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from attrs import field, frozen

from kafka_msgs.client.flow import Flow, Future, wait_for
from kafka_msgs.client.network import Address, Network
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import AuthenticationError, MissingExtraError, OptionError
from kafka_msgs.message import Request, Response
from kafka_msgs.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kafka_msgs.messages.sasl_handshake_request import SaslHandshakeRequest

__all__ = ["Credentials", "OAuthBearerCredentials", "PlainCredentials", "ScramCredentials", "Tokens", "authenticate"]

R = TypeVar("R", bound=Response)

Tokens: TypeAlias = Generator[bytes, bytes, None]
"""A token generator for one authentication: it yields the client's tokens and receives the broker's. It raises
``ValueError`` if the broker's proof is invalid.
"""

_MIN_ITERATIONS: Final = 4096
"""Minimum SCRAM iteration count that a broker may request (RFC 5802, RFC 7677)."""

_MAX_ITERATIONS: Final = 1_000_000
"""Maximum SCRAM iteration count. It costs about 0.5 seconds of processor time."""

_MS: Final = 1000.0


class SaslChannel(Protocol):
    """A connection for the authentication requests. ``BrokerConnection`` implements it."""

    @property
    def address(self) -> Address:
        """The address of the broker."""
        ...

    def call(self, request: Request[R], version: int | None = None, *, deadline: float | None) -> Flow[R]:
        """Send a request, and wait for its response."""
        ...

    def highest_version(self, cls: type[Request[Any]]) -> int:
        """Return the highest version of a request that both sides support."""
        ...


class Credentials(Protocol):
    """The credentials of a client for one SASL mechanism."""

    @property
    def mechanism(self) -> str:
        """The name of the mechanism, such as ``SCRAM-SHA-512``."""
        ...

    def tokens(self, network: Network, deadline: float) -> Flow[Tokens]:
        """Return the tokens for one authentication."""
        ...


@frozen
class PlainCredentials:
    """A user name and a password, sent in plain text (RFC 4616). Use it with TLS only."""

    username: str
    password: str = field(repr=False)
    mechanism: str = field(default="PLAIN", init=False)

    def tokens(self, network: Network, deadline: float) -> Flow[Tokens]:
        """Return the tokens for one authentication."""
        return _ready(self._tokens())

    def _tokens(self) -> Tokens:
        if "\0" in self.username or "\0" in self.password:
            raise OptionError(source="client", option="username", value=None, reason="a NUL character is not allowed")
        yield f"\0{self.username}\0{self.password}".encode()


@frozen
class ScramCredentials:
    """A user name and a password that is never sent (RFC 5802). The broker also proves that it has the password."""

    username: str
    password: str = field(repr=False)
    mechanism: str = "SCRAM-SHA-512"

    def tokens(self, network: Network, deadline: float) -> Flow[Tokens]:
        """Return the tokens for one authentication."""
        return _ready(self._tokens())

    def _tokens(self) -> Tokens:
        try:
            from scramp import ScramClient
            from scramp.core import ScramException
        except ImportError:
            raise MissingExtraError(feature=self.mechanism, extra="client", package="scramp") from None
        try:
            client: Any = ScramClient([self.mechanism], self.username, self.password)
            challenge = yield client.get_client_first().encode()
            _check_challenge(challenge)
            client.set_server_first(challenge.decode())
            proof = yield client.get_client_final().encode()
            client.set_server_final(proof.decode())
        except ScramException as error:
            raise ValueError(str(error)) from None


@frozen
class OAuthBearerCredentials:
    """A token of an authority (RFC 7628). ``token`` returns it; each authentication calls it in a helper thread.

    With an asyncio client, ``token`` may be a coroutine function. ``extensions`` are sent with the token (KIP-342).
    """

    token: Callable[[], str | Awaitable[str]] = field(repr=False)
    extensions: Mapping[str, str] = field(factory=dict, repr=False)
    mechanism: str = field(default="OAUTHBEARER", init=False)

    def tokens(self, network: Network, deadline: float) -> Flow[Tokens]:
        """Return the tokens for one authentication. Raises ``OptionError`` if ``token`` does not return a str."""
        token = yield from wait_for(network.offload(self.token), deadline, "a token of the authority")
        if isawaitable(token):
            token = yield from wait_for(network.run_callback(lambda: token), deadline, "a token of the authority")
        if not isinstance(token, str):
            if iscoroutine(token):
                token.close()
            reason = f"the function returned a {type(token).__name__}, expected a str"
            raise OptionError(source="client", option="token", value=None, reason=reason)
        return self._tokens(token)

    def _tokens(self, token: str) -> Tokens:
        pairs = "".join(f"{name}={value}\x01" for name, value in self.extensions.items())
        refusal = yield f"n,,\x01auth=Bearer {token}\x01{pairs}\x01".encode()
        if refusal:
            yield b"\x01"
            raise ValueError("the broker refused the token")


def authenticate(link: SaslChannel, credentials: Credentials, network: Network, deadline: float) -> Flow[float | None]:
    """Authenticate a client. Return the session lifetime in seconds, or None if it is unlimited.

    Raises ``AuthenticationError``.
    """
    refuse = _refusal(link, credentials)
    handshake = SaslHandshakeRequest(mechanism=credentials.mechanism)
    answer = yield from link.call(handshake, 1, deadline=deadline)
    if answer.error_code:
        offered = ", ".join(answer.mechanisms) or "no mechanism"
        raise refuse(f"{ErrorCode(answer.error_code).name}: the broker offers {offered}")
    tokens = yield from credentials.tokens(network, deadline)
    version = link.highest_version(SaslAuthenticateRequest)
    lifetime_ms = 0
    try:
        token = yield from _next_token(tokens, None, network, deadline)
        while token is not None:
            request = SaslAuthenticateRequest(auth_bytes=token)
            reply = yield from link.call(request, version, deadline=deadline)
            if reply.error_code:
                raise refuse(reply.error_message or ErrorCode(reply.error_code).name)
            lifetime_ms = reply.session_lifetime_ms
            token = yield from _next_token(tokens, bytes(reply.auth_bytes), network, deadline)
    except ValueError as error:
        if isinstance(error, OptionError):
            raise
        raise refuse(str(error)) from None
    return lifetime_ms / _MS if lifetime_ms else None


def _next_token(tokens: Tokens, reply: bytes | None, network: Network, deadline: float) -> Flow[bytes | None]:
    """Return the next token of the client, or None after the last one.

    A helper thread computes it if the driver has one: a SCRAM proof takes up to 0.5 seconds, and must not delay the
    heartbeats of other connections or the deadline.
    """
    computing = network.offload(_advance, tokens, reply)
    token: bytes | None = yield from wait_for(computing, deadline, "the proof of the credentials")
    return token


def _advance(tokens: Tokens, reply: bytes | None) -> bytes | None:
    try:
        return next(tokens) if reply is None else tokens.send(reply)
    except StopIteration:
        return None


def _refusal(link: SaslChannel, credentials: Credentials) -> Callable[[str], AuthenticationError]:
    def refuse(reason: str) -> AuthenticationError:
        return AuthenticationError(address=str(link.address), mechanism=credentials.mechanism, reason=reason)

    return refuse


def _ready(tokens: Tokens) -> Flow[Tokens]:
    yield from wait_for(Future.resolved(None), None)
    return tokens


def _check_challenge(challenge: bytes) -> None:
    """Reject an iteration count outside the limits, or an empty salt."""
    parts = dict(part.split(b"=", 1) for part in challenge.split(b",") if b"=" in part)
    iterations = parts.get(b"i", b"")
    if not parts.get(b"s"):
        raise ValueError("the broker sends no salt")
    if not iterations.isdigit() or len(iterations) > len(str(_MAX_ITERATIONS)):
        raise ValueError(f"the broker does not ask for a number of iterations up to {_MAX_ITERATIONS}")
    if not _MIN_ITERATIONS <= int(iterations) <= _MAX_ITERATIONS:
        reason = f"expected {_MIN_ITERATIONS} to {_MAX_ITERATIONS}"
        raise ValueError(f"the broker asks for {int(iterations)} iterations; {reason}")
