"""What logic needs of a network: a clock, and connections that carry bytes. The two drivers implement it.

This module owns the interfaces between the logic of a client and its drivers. ``blocking`` implements them on sockets
and ``poll``, ``aio`` on asyncio. Nothing here waits.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from kafka_msgs.client.schedule import Task
from kafka_msgs.client.waiting import Pending, Steps
from kafka_msgs.errors import ConnectionFailedError, OptionError

if TYPE_CHECKING:
    import socket
    import ssl

__all__ = ["Address", "Endpoint", "Network", "Stream", "Transport", "connection_failure", "is_loopback", "reason_of"]

T = TypeVar("T")
_HIGHEST_PORT = 2**16 - 1
_NOT_IN_HOSTS = re.compile(r"[\s/@,\[\]]")


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


class Stream(Protocol):
    """The logic's end of a connection. The network calls it."""

    @property
    def bytes_wanted(self) -> int:
        """How many bytes the logic needs to go on, if it knows: a hint for the size of the next read."""
        ...

    def opened(self) -> None:
        """The connection is made; with TLS, the handshake is complete and the host name is verified."""
        ...

    def received(self, data: bytes) -> None:
        """Bytes have arrived. They are never empty."""
        ...

    def closed(self, error: Exception | None) -> None:
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


class Network(Protocol):
    """A clock and a way to make connections."""

    def now(self) -> float:
        """Return the time in seconds of a clock that never goes back."""
        ...

    def resolve(self, address: Address) -> Pending[Sequence[Endpoint]]:
        """Resolve a host name, without holding up anything. The result may be an ``OSError``."""
        ...

    def connect(self, endpoint: Endpoint, stream: Stream, tls: ssl.SSLContext | None = None) -> Transport:
        """Begin to make a connection, and return at once. The stream hears when it is opened or has failed."""
        ...

    def offload(self, function: Callable[..., Any], *arguments: Any) -> Pending[Any]:
        """Call a function that blocks, and return its result. Where possible, it runs in a helper thread."""
        ...

    def spawn(self, steps: Steps[T]) -> Task[T]:
        """Run a piece of logic by itself. The blocking driver advances it whenever it waits for something."""
        ...

    def perform(self, function: Callable[..., Any], *arguments: Any) -> Pending[Any]:
        """Call a function of the user, and return its result.

        The driver of asyncio awaits the result if it is awaitable. An exception of the function becomes the error.
        """
        ...


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
    return ConnectionFailedError(address=str(address), step=step, reason=reason_of(error), retriable=not final)


_PASSING_TLS = re.compile("EOF|SYSCALL|RESET|INTERNAL_ERROR|CLOSE_NOTIFY")
"""Names of OpenSSL's reasons for the end of a connection, and for errors inside of a broker."""


def reason_of(error: Exception) -> str:
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
