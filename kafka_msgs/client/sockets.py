"""Non-blocking socket transports of the blocking driver, with and without TLS.

A transport connects to one address, and then carries bytes. Encryption stands between the
socket and the receiver (``ssl.MemoryBIO``), so decrypted bytes are never hidden from ``poll``.
"""

from __future__ import annotations

import errno
import os
import select
import socket
from collections import deque
from typing import TYPE_CHECKING, Final, Protocol

from kafka_msgs.client.network import Endpoint, TransportReceiver, connection_failure
from kafka_msgs.errors import ConnectionFailedError
from kafka_msgs.fork_locks import fork_lock

if TYPE_CHECKING:
    import ssl

__all__ = ["SocketTransport", "TlsTransport", "creating_socket"]

_READ_SIZE: Final = 1 << 16
_LARGEST_READ: Final = 1 << 22
_LARGEST_WRITE: Final = 1 << 18
_UNDER_WAY: Final = frozenset({0, errno.EINPROGRESS, errno.EWOULDBLOCK, errno.EINTR})


creating_socket: Final = fork_lock()
"""Held while a socket is created and stored. A fork waits for it, so that the child process can close every socket."""


class Poller(Protocol):
    """The methods of the driver that a transport uses. See ``BlockingNetwork``."""

    def watch(self, descriptor: int, transport: SocketTransport, events: int) -> None: ...
    def forget(self, descriptor: int) -> None: ...
    def flush_later(self, transport: SocketTransport) -> None: ...


class SocketTransport:
    """A TCP connection."""

    def __init__(self, watcher: Poller, endpoint: Endpoint, stream: TransportReceiver) -> None:
        self._watcher = watcher
        self._endpoint = endpoint
        self._stream = stream
        self._socket: socket.socket | None = None
        self._connected = False
        self._out: deque[memoryview] = deque()
        self._flushing = False

    def start(self) -> None:
        """Start to connect."""
        if self._endpoint.connected is not None:
            self._socket = self._endpoint.connected
            self._socket.setblocking(False)
            self._watcher.watch(self._socket.fileno(), self, select.POLLOUT)
            return
        try:
            with creating_socket:
                self._socket = socket.socket(self._endpoint.family, socket.SOCK_STREAM)
            self._socket.setblocking(False)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            code = self._socket.connect_ex(self._endpoint.sockaddr)
        except OSError as error:
            self._end(self._failed("connect", error))
            return
        if code in _UNDER_WAY:
            self._watcher.watch(self._socket.fileno(), self, select.POLLOUT)
        else:
            self._end(self._failed("connect", OSError(code, os.strerror(code))))

    def write(self, data: bytes) -> None:
        """Queue bytes. They are sent when the driver waits next."""
        self._out.append(memoryview(data))
        self._flush_later()

    def close(self) -> None:
        """Close the socket, and discard unsent bytes."""
        self._out.clear()
        self._close_socket()

    def end(self, error: Exception) -> None:
        """Close the socket, and report the error to the receiver."""
        self._end(error)

    def abandon(self) -> None:
        """Close the descriptor in a child process, because the connection belongs to the parent."""
        if self._socket is not None and (descriptor := self._socket.detach()) >= 0:
            os.close(descriptor)
        self._socket = None

    def ready(self, events: int) -> None:
        """Handle the watched events of the socket."""
        if not self._connected:
            self._finish_connecting()
            return
        if events & ~select.POLLOUT:
            self._read()
        if events & select.POLLOUT and self._socket is not None:
            self.flush()

    def flush(self) -> None:
        """Send as many bytes as the socket accepts, and watch it for more."""
        self._flushing = False
        if self._connected and self._socket is not None:
            self._send(self._socket)

    def _flush_later(self) -> None:
        if not self._flushing:
            self._flushing = True
            self._watcher.flush_later(self)

    def _close_socket(self) -> None:
        if self._socket is not None:
            self._watcher.forget(self._socket.fileno())
            self._socket.close()
            self._socket = None

    def _finish_connecting(self) -> None:
        assert self._socket is not None
        code = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self._end(self._failed("connect", OSError(code, os.strerror(code))))
            return
        self._connected = True
        self._watcher.watch(self._socket.fileno(), self, select.POLLIN)
        self._carry()

    def _carry(self) -> None:
        """Notify the receiver that the socket is connected."""
        self._stream.connection_made()
        self._flush_later()

    def _read(self) -> None:
        assert self._socket is not None
        try:
            data = self._socket.recv(min(max(_READ_SIZE, self._stream.bytes_wanted), _LARGEST_READ))
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._end(self._failed("request", error))
            return
        if data:
            self._arrived(data)
        else:
            self._closed()

    def _arrived(self, data: bytes) -> None:
        self._stream.data_received(data)

    def _send(self, sock: socket.socket) -> None:
        try:
            while self._out:
                self._out = _joined(self._out)
                sent = sock.send(self._out[0])
                if sent < len(self._out[0]):
                    self._out[0] = self._out[0][sent:]
                    break
                self._out.popleft()
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as error:
            self._end(self._failed("request", error))
            return
        if not self._out:
            self._stream.data_sent()
        self._watcher.watch(sock.fileno(), self, select.POLLIN | select.POLLOUT if self._out else select.POLLIN)

    def _failed(self, step: str, error: Exception) -> ConnectionFailedError:
        return connection_failure(self._endpoint.address, step, error)

    def _closed(self) -> None:
        """Handle a connection that the other side closed."""
        self._end(None)

    def _end(self, error: Exception | None) -> None:
        """Close the socket, and report the error to the receiver."""
        self.close()
        self._stream.connection_lost(error)


class TlsTransport(SocketTransport):
    """A TCP connection with TLS."""

    def __init__(self, watcher: Poller, endpoint: Endpoint, stream: TransportReceiver, context: ssl.SSLContext) -> None:
        super().__init__(watcher, endpoint, stream)
        import ssl

        self._errors = ssl
        self._received = ssl.MemoryBIO()
        self._to_send = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._received, self._to_send, server_hostname=endpoint.address.host)
        self._secure = False
        self._plain: deque[memoryview] = deque()

    def write(self, data: bytes) -> None:
        """Queue bytes. They are encrypted and sent when the driver waits next."""
        self._plain.append(memoryview(data))
        self._flush_later()

    def close(self) -> None:
        """Close the socket, and discard unsent bytes."""
        self._plain.clear()
        super().close()

    def flush(self) -> None:
        """Encrypt queued bytes, and send as many as the socket accepts."""
        if self._secure:
            self._encrypt()
        super().flush()

    def _carry(self) -> None:
        self._shake_hands()

    def _arrived(self, data: bytes) -> None:
        self._received.write(data)
        if not self._secure:
            self._shake_hands()
        if self._secure and self._socket is not None:
            self._decrypt()

    def _shake_hands(self) -> None:
        try:
            self._tls.do_handshake()
        except self._errors.SSLWantReadError:
            self._collect()
        except (self._errors.SSLError, OSError) as error:
            self._end(self._failed("tls", error))
        else:
            self._secure = True
            self._collect()
            self._stream.connection_made()

    def _decrypt(self) -> None:
        try:
            while data := self._tls.read(_LARGEST_WRITE):
                self._stream.data_received(data)
                if self._socket is None:
                    return
            self._end(None)
        except self._errors.SSLWantReadError:
            self._collect()
        except self._errors.SSLZeroReturnError:
            self._end(None)
        except self._errors.SSLError as error:
            self._end(self._failed("tls", error))

    def _encrypt(self) -> None:
        while self._plain:
            self._tls.write(self._plain.popleft())
        self._collect()

    def _collect(self) -> None:
        """Queue the encrypted bytes."""
        if data := self._to_send.read():
            self._out.append(memoryview(data))
            self._flush_later()

    def _closed(self) -> None:
        """Handle a connection that the other side closed. Before the end of the handshake, it may not support TLS."""
        self._end(None if self._secure else self._failed("tls", OSError()))


def _joined(parts: deque[memoryview]) -> deque[memoryview]:
    """Return the queued bytes with the small chunks at the start merged into one, so that they are sent together."""
    if len(parts) < 2 or len(parts[0]) >= _LARGEST_WRITE:
        return parts
    taken, size = [], 0
    while parts and size < _LARGEST_WRITE:
        taken.append(parts.popleft())
        size += len(taken[-1])
    parts.appendleft(memoryview(b"".join(taken)))
    return parts
