"""The listening sockets of a proxy, one for each broker.

This module chooses the ports, and forgets brokers that no response has named for a long time. It opens sockets, but
does not use them.
"""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Callable
from ipaddress import ip_address
from typing import Final

from attrs import define, frozen

from kafka_msgs.capture.connections import Endpoint
from kafka_msgs.errors import TapError

__all__ = ["ListenerLimits", "Listeners", "is_usable"]

_BACKLOG: Final = 128
_LAST_PORT: Final = 65535
_PORT_IN_USE: Final = frozenset({errno.EADDRINUSE, errno.EACCES})
_LONGEST_HOST: Final = 255
_FAULTS_HELD: Final = 1000
"""The number of addresses whose faults are remembered, so that each is reported once."""


@frozen(kw_only=True)
class ListenerLimits:
    """The limits of the broker addresses of a proxy.

    ``addresses`` is the maximum number of brokers with a listener. ``seconds`` is the time after which a broker that
    no response has named, and that no client uses, loses its listener.
    """

    addresses: int = 1000
    seconds: float = 3600.0


@define
class _Listener:
    """A broker's address at the proxy, its socket, and the time when a response last named the broker."""

    address: Endpoint
    listening: socket.socket
    named_at: float


class Listeners:
    """The listening sockets of a proxy: one for the bootstrap servers, and one for each broker in a response.

    ``first`` is the address for the bootstrap servers. Brokers are assigned the following ports, in order of
    appearance; ports in use are skipped. With port 0 the system chooses all ports. ``advertised`` is the host for
    clients, by default the listening host. ``opened`` is called with each new socket and its broker, ``on_fault`` with
    the reason why a broker gets no listener: clients then receive its original address. A socket accepts connections
    as soon as it is open. ``clock`` returns seconds.
    """

    def __init__(
        self,
        first: Endpoint,
        *,
        advertised: str | None,
        opened: Callable[[socket.socket, Endpoint | None], None],
        on_fault: Callable[[str], None],
        limits: ListenerLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._host = first.host
        self._advertised = advertised or first.host
        self._opened = opened
        self._on_fault = on_fault
        self._limits = limits or ListenerLimits()
        self._clock = clock
        self._brokers: dict[Endpoint, _Listener] = {}
        self._reported: set[Endpoint] = set()
        self._first = self._next = first.port
        try:
            self.bootstrap = self._open(None).address
        except OSError as error:
            raise TapError(address=str(first), reason=_reason(error)) from None

    def __len__(self) -> int:
        return len(self._brokers)

    def translate(self, host: str, port: int) -> tuple[str, int]:
        """Return the proxy's address for a broker's address. The listener is open when this returns.

        The result is the original address if the address is unusable, or if no further listener can be opened.
        """
        broker = Endpoint(host, port)
        known = self._brokers.get(broker)
        if known is None:
            return self._new(broker)
        known.named_at = self._clock()
        return known.address

    def expire(self, in_use: Callable[[Endpoint], bool]) -> list[socket.socket]:
        """Forget brokers that no response has named for a long time, except those in use; return their sockets."""
        before = self._clock() - self._limits.seconds
        expired = [broker for broker, each in self._brokers.items() if each.named_at <= before and not in_use(broker)]
        return [self._brokers.pop(broker).listening for broker in expired]

    def _new(self, broker: Endpoint) -> Endpoint:
        reason = None
        if not is_usable(broker):
            reason = "no client can connect to it"
        elif len(self._brokers) >= self._limits.addresses:
            reason = f"the limit of {self._limits.addresses} addresses is reached"
        else:
            try:
                opened = self._brokers[broker] = self._open(broker)
                return opened.address
            except OSError as error:
                reason = _reason(error)
        self._report(broker, reason)
        return broker

    def _report(self, broker: Endpoint, reason: str) -> None:
        """Report each address once, as long as not too many addresses are remembered."""
        if broker in self._reported:
            return
        if len(self._reported) >= _FAULTS_HELD:
            self._reported.clear()
        self._reported.add(broker)
        shown = f"{broker.host[:_LONGEST_HOST]!r}, port {broker.port}"
        self._on_fault(f"no listener for the broker address {shown}: {reason}; clients receive the address unchanged")

    def _open(self, broker: Endpoint | None) -> _Listener:
        listening = self._bound(exact=broker is None)
        listening.listen(_BACKLOG)
        listening.setblocking(False)
        self._opened(listening, broker)
        return _Listener(Endpoint(self._advertised, listening.getsockname()[1]), listening, self._clock())

    def _bound(self, *, exact: bool) -> socket.socket:
        """Return a socket at the next free port, or with ``exact`` at the next port. Raises ``OSError``.

        After the last port the search continues with the ports of brokers that were forgotten.
        """
        for _ in range(_LAST_PORT):
            port = self._next
            if port:
                self._next = port + 1 if port < _LAST_PORT else min(self._first + 1, _LAST_PORT)
            try:
                return _bind(self._host, port)
            except OSError as error:
                if exact or not port or error.errno not in _PORT_IN_USE:
                    raise
        raise OSError(errno.EADDRINUSE, "all ports are in use")


def is_usable(address: Endpoint) -> bool:
    """Return whether a client can connect to an address: a valid host name or IP address, and a port above 0."""
    if not 0 < address.port <= _LAST_PORT or not 0 < len(address.host) <= _LONGEST_HOST or "\0" in address.host:
        return False
    try:
        ip_address(address.host)
    except ValueError:
        return _is_host_name(address.host)
    return True


def _is_host_name(host: str) -> bool:
    """Return whether the resolver accepts a name. Names with empty or too long labels raise ``UnicodeError``."""
    try:
        return bool(host.encode("idna"))
    except UnicodeError:
        return False


def _bind(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except BaseException:
        listening.close()
        raise
    return listening


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
