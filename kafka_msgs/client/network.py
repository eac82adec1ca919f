"""What logic needs of a network: a clock, and connections that carry bytes. The two drivers implement it.

This module owns the interfaces between the logic of a client and its drivers. ``blocking`` implements them on sockets
and ``poll``, ``aio`` on asyncio. Nothing here waits.
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
        """Return the address in a text such as ``localhost:9092`` or ``[::1]:9092``. Raises ``OptionError``."""
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
    """One IP address of a host, and the address that it was resolved from."""

    address: Address
    family: int = 0
    sockaddr: Any = None
    """The socket address, in the form of ``socket.getaddrinfo``."""
    connected: socket.socket | None = None
    """A socket that is connected already: through a proxy."""

    def __str__(self) -> str:
        return str(self.sockaddr[0] if self.sockaddr else self.address)


class TransportReceiver(Protocol):
    """The logic's end of a connection. The network calls it."""

    @property
    def bytes_wanted(self) -> int:
        """How many bytes the logic needs to go on, if it knows: a hint for the size of the next read."""
        ...

    def connection_made(self) -> None:
        """The connection is made; with TLS, the handshake is complete and the host name is verified."""
        ...

    def data_received(self, data: bytes) -> None:
        """Bytes have arrived. They are never empty."""
        ...

    def data_sent(self) -> None:
        """Everything that was written has been handed to the system."""
        ...

    def connection_lost(self, error: Exception | None) -> None:
        """The connection ended, or could not be made. ``error`` is None if the other side closed it."""
        ...


class Transport(Protocol):
    """The network's end of a connection. The logic calls it; no method waits."""

    def write(self, data: bytes) -> None:
        """Send bytes, in order, when the connection can take them."""
        ...

    def close(self) -> None:
        """End the connection at once. Bytes that were not sent are lost. The stream is not called any more."""
        ...


class NetworkUser(Protocol):
    """What is done with a consumer or a producer when something happens to its network."""

    def on_interrupt(self, error: Exception) -> None:
        """An exception from outside interrupted the logic, and all of it has ended with this error."""
        ...

    def on_fork(self) -> None:
        """The process is a child: everything here belongs to its parent. Nothing may wait or lock."""
        ...

    def on_exit(self, deadline: float) -> Flow[None]:
        """Return the logic to run at the exit of the process."""
        ...


class NetworkEvents:
    """The users of a network, and what happens to all of them."""

    def __init__(self) -> None:
        self._users: list[NetworkUser] = []

    def add(self, user: NetworkUser) -> None:
        """Let a user hear of events."""
        self._users.append(user)

    def discard(self, user: NetworkUser) -> None:
        """Forget a user."""
        self._users = [each for each in self._users if each is not user]

    def interrupt(self, error: Exception) -> None:
        """An exception from outside ended all logic."""
        for user in tuple(self._users):
            user.on_interrupt(error)

    def fork(self) -> None:
        """The process is a child."""
        for user in tuple(self._users):
            user.on_fork()

    def exit(self, deadline: float) -> list[Flow[None]]:
        """Return the logic to run at the exit of the process."""
        return [user.on_exit(deadline) for user in tuple(self._users)]


class Network(Protocol):
    """A clock and a way to make connections."""

    events: NetworkEvents

    def now(self) -> float:
        """Return the time in seconds of a clock that never goes back.

        For logic that runs, it is the time at which the network last looked for input and found no more.
        """
        ...

    def monotonic(self) -> float:
        """Return the time in seconds of the same clock as it is, also while logic runs."""
        ...

    def uptime(self) -> float:
        """Return the seconds of a clock that goes on while the machine is suspended."""
        ...

    def resolve(self, address: Address) -> Future[Sequence[Endpoint]]:
        """Resolve a host name, without holding up anything. The result may be an ``OSError``."""
        ...

    def connect(self, endpoint: Endpoint, stream: TransportReceiver, tls: ssl.SSLContext | None = None) -> Transport:
        """Begin to make a connection, and return at once. The stream hears when it is opened or has failed."""
        ...

    def offload(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call a function that blocks, and return its result. Where possible, it runs in a helper thread."""
        ...

    def post(self, function: Callable[[], object]) -> None:
        """Call a function in the thread of the logic, soon. Any thread may call this."""
        ...

    def spawn(self, flow: Flow[T]) -> Task[T]:
        """Run a piece of logic by itself. The blocking driver advances it whenever it waits for something."""
        ...

    def run_callback(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call a function of the user, and return its result.

        The driver of asyncio awaits the result if it is awaitable. An exception of the function becomes the error.
        """
        ...

    def perform_in_poll(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call a function of the user in the thread that polls, and return its result."""
        ...


def boot_time() -> float:
    """Return the seconds since the machine was started, with those in which it was suspended where that is known."""
    return time.monotonic() if _BOOT_CLOCK is None else time.clock_gettime(_BOOT_CLOCK)


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine, as far as its name or address tells."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def connection_failure(address: Address, step: str, error: Exception) -> ConnectionFailedError:
    """Return the failure of a connection. Certificates that either side refuses, and bytes that are not TLS, are final.

    A connection that ends during the handshake is not: load balancers and brokers that stop do that, too.
    """
    name = getattr(error, "reason", None)
    final = isinstance(name, str) and not _PASSING_TLS.search(name)
    return ConnectionFailedError(address=str(address), step=step, reason=describe_error(error), retriable=not final)


_PASSING_TLS = re.compile("EOF|SYSCALL|RESET|INTERNAL_ERROR|CLOSE_NOTIFY")
"""Names of OpenSSL's reasons for the end of a connection, and for errors inside of a broker."""


def describe_error(error: Exception) -> str:
    """Return why a connection failed, in words: what the system, or the library for TLS, says."""
    verified = getattr(error, "verify_message", "")
    library = getattr(error, "reason", None)
    if verified:
        return str(verified)
    if isinstance(library, str):
        return library.replace("_", " ").lower()
    if isinstance(error, ConnectionError) and error.errno:
        return os.strerror(error.errno)
    return getattr(error, "strerror", None) or str(error) or "the broker closed the connection"
