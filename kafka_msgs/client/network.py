"""Interfaces between flows and drivers: a clock, and connections that carry bytes.

``blocking`` implements them with sockets and ``poll``, ``aio`` on asyncio. The methods never wait.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from kafka_msgs.client.flow import Flow, Future
from kafka_msgs.client.scheduler import Task
from kafka_msgs.errors import ConnectionFailedError, OptionError

if TYPE_CHECKING:
    import socket
    import ssl

__all__ = [
    "Address",
    "Endpoint",
    "Network",
    "NetworkEvents",
    "NetworkUser",
    "Transport",
    "TransportReceiver",
    "boot_time",
    "connection_failure",
    "describe_error",
    "is_loopback",
]

T = TypeVar("T")
_HIGHEST_PORT = 2**16 - 1
_NOT_IN_HOSTS = re.compile(r"[\s/@,\[\]]")
_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", None)


class Address(NamedTuple):
    """The host name or IP address of a broker, and its port."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """Parse an address such as ``localhost:9092`` or ``[::1]:9092``. Raises ``OptionError``."""
        host, colon, port = text.strip().rpartition(":")
        if "://" in text:
            reason = "expected HOST:PORT without a protocol; set security.protocol or tls instead"
            raise OptionError(source="client", option="bootstrap_servers", value=text, reason=reason)
        is_literal = host.startswith("[") and host.endswith("]")
        host = host[1:-1] if is_literal else host
        malformed = not host or _NOT_IN_HOSTS.search(host) or (":" in host) != is_literal
        if not colon or malformed or not port.isascii() or not port.isdigit() or int(port) > _HIGHEST_PORT:
            reason = "expected HOST:PORT, such as localhost:9092 or [::1]:9092"
            raise OptionError(source="client", option="bootstrap_servers", value=text, reason=reason)
        return cls(host, int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Endpoint(NamedTuple):
    """One IP address of a host, and the address that resolved to it."""

    address: Address
    family: int = 0
    sockaddr: Any = None
    """The socket address, in the format of ``socket.getaddrinfo``."""
    connected: socket.socket | None = None
    """A socket that is already connected through a proxy."""

    def __str__(self) -> str:
        return str(self.sockaddr[0] if self.sockaddr else self.address)


class TransportReceiver(Protocol):
    """The receiving end of a connection. The network calls it."""

    @property
    def bytes_wanted(self) -> int:
        """The number of bytes that the receiver needs next, if known: a hint for the size of the next read."""
        ...

    def connection_made(self) -> None:
        """Called when the connection is open; with TLS, after the handshake and the verification of the host name."""
        ...

    def data_received(self, data: bytes) -> None:
        """Called when bytes have arrived. They are never empty."""
        ...

    def data_sent(self) -> None:
        """Called when the operating system has taken all written data."""
        ...

    def connection_lost(self, error: Exception | None) -> None:
        """Called when the connection ends or fails to open. ``error`` is None if the other side closed it."""
        ...


class Transport(Protocol):
    """The sending end of a connection. Flows call it; no method waits."""

    def write(self, data: bytes) -> None:
        """Send bytes, in order, as soon as the connection accepts them."""
        ...

    def close(self) -> None:
        """Close the connection at once. Unsent bytes are lost. The receiver is not called again."""
        ...


class NetworkUser(Protocol):
    """A consumer or producer that handles events of its network."""

    def on_interrupt(self, error: Exception) -> None:
        """Handle an external exception, which has ended all flows with this error."""
        ...

    def on_fork(self) -> None:
        """Handle a fork, in the child process. All state belongs to the parent, so the method must not wait or lock."""
        ...

    def on_exit(self, deadline: float) -> Flow[None]:
        """Return the flow to run at the exit of the process."""
        ...


class NetworkEvents:
    """The users of a network, and the events that they receive."""

    def __init__(self) -> None:
        self._users: list[NetworkUser] = []

    def add(self, user: NetworkUser) -> None:
        """Add a user, which receives events."""
        self._users.append(user)

    def discard(self, user: NetworkUser) -> None:
        """Remove a user."""
        self._users = [each for each in self._users if each is not user]

    def interrupt(self, error: Exception) -> None:
        """Notify all users of an external exception that ended all flows."""
        for user in tuple(self._users):
            user.on_interrupt(error)

    def fork(self) -> None:
        """Notify all users of a fork, in the child process."""
        for user in tuple(self._users):
            user.on_fork()

    def exit(self, deadline: float) -> list[Flow[None]]:
        """Return the flows of all users to run at the exit of the process."""
        return [user.on_exit(deadline) for user in tuple(self._users)]


class Network(Protocol):
    """A clock and a way to make connections."""

    events: NetworkEvents

    def now(self) -> float:
        """Return the time in seconds of a clock that never goes back.

        Inside a flow, it is the time at which the network last looked for input and found none.
        """
        ...

    def monotonic(self) -> float:
        """Return the current time in seconds of the same clock, even inside a flow."""
        ...

    def uptime(self) -> float:
        """Return the seconds of a clock that continues while the machine is suspended."""
        ...

    def resolve(self, address: Address) -> Future[Sequence[Endpoint]]:
        """Resolve a host name, without blocking. The result may be an ``OSError``."""
        ...

    def connect(self, endpoint: Endpoint, stream: TransportReceiver, tls: ssl.SSLContext | None = None) -> Transport:
        """Start to connect, and return at once. The receiver is notified of success or failure."""
        ...

    def offload(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call a blocking function, and return its result. Where possible, it runs in a helper thread."""
        ...

    def post(self, function: Callable[[], object]) -> None:
        """Call a function soon in the thread of the flows. Any thread may call this."""
        ...

    def spawn(self, flow: Flow[T]) -> Task[T]:
        """Run a flow as a task. The blocking driver advances it during every wait."""
        ...

    def run_callback(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call a user callback, and return its result.

        The asyncio driver awaits an awaitable result. An exception of the callback becomes the error.
        """
        ...

    def perform_in_poll(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call a user callback in the polling thread, and return its result."""
        ...


def boot_time() -> float:
    """Return the seconds since the machine was started, including suspended time if the platform reports it."""
    return time.monotonic() if _BOOT_CLOCK is None else time.clock_gettime(_BOOT_CLOCK)


def is_loopback(host: str) -> bool:
    """Return whether the name or address of a host is a loopback address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def connection_failure(address: Address, step: str, error: Exception) -> ConnectionFailedError:
    """Return the failure of a connection. Rejected certificates, and bytes that are not TLS, are final.

    An end of the connection during the handshake is retriable, because load balancers and stopping brokers cause it.
    """
    name = getattr(error, "reason", None)
    final = isinstance(name, str) and not _PASSING_TLS.search(name)
    return ConnectionFailedError(address=str(address), step=step, reason=describe_error(error), retriable=not final)


_PASSING_TLS = re.compile("EOF|SYSCALL|RESET|INTERNAL_ERROR|CLOSE_NOTIFY")
"""Names of OpenSSL's reasons for closed connections and for errors inside a broker."""


def describe_error(error: Exception) -> str:
    """Return the reason of a connection failure, in the words of the operating system or the TLS library."""
    verified = getattr(error, "verify_message", "")
    library = getattr(error, "reason", None)
    if verified:
        return str(verified)
    if isinstance(library, str):
        return library.replace("_", " ").lower()
    if isinstance(error, ConnectionError) and error.errno:
        return os.strerror(error.errno)
    return getattr(error, "strerror", None) or str(error) or "the broker closed the connection"
