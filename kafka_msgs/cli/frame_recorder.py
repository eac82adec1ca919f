"""A network that records the frames of its connections, for commands that show bytes as transmitted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from attrs import field, frozen

from kafka_msgs.client.blocking import BlockingNetwork
from kafka_msgs.client.network import Endpoint, Transport, TransportReceiver
from kafka_msgs.wire import FrameSplitter, read_correlation_id, read_request_prefix

if TYPE_CHECKING:
    import ssl

__all__ = ["RecordingNetwork"]


@frozen
class _Frames:
    """The frames of one connection, in both directions."""

    sent: list[bytes] = field(factory=list)
    received: list[bytes] = field(factory=list)
    out: FrameSplitter = field(factory=FrameSplitter)
    into: FrameSplitter = field(factory=FrameSplitter)


@frozen
class _WatchedStream:
    """Records received data, and forwards it."""

    stream: TransportReceiver
    frames: _Frames

    @property
    def bytes_wanted(self) -> int:
        return self.stream.bytes_wanted

    def connection_made(self) -> None:
        self.stream.connection_made()

    def data_received(self, data: bytes) -> None:
        self.frames.received.extend(self.frames.into.feed(data))
        self.stream.data_received(data)

    def data_sent(self) -> None:
        self.stream.data_sent()

    def connection_lost(self, error: Exception | None) -> None:
        self.stream.connection_lost(error)


@frozen
class _WatchedTransport:
    """Records sent data, and forwards it."""

    transport: Transport
    frames: _Frames

    def write(self, data: bytes) -> None:
        self.frames.sent.extend(self.frames.out.feed(data))
        self.transport.write(data)

    def close(self) -> None:
        self.transport.close()


class RecordingNetwork(BlockingNetwork):
    """A blocking network for one command, which keeps every frame for its lifetime."""

    def __init__(self) -> None:
        super().__init__()
        self._connections: list[_Frames] = []

    def connect(self, endpoint: Endpoint, stream: TransportReceiver, tls: ssl.SSLContext | None = None) -> Transport:
        """Start a connection whose frames are recorded."""
        frames = _Frames()
        self._connections.append(frames)
        return _WatchedTransport(super().connect(endpoint, _WatchedStream(stream, frames), tls), frames)

    def exchanges(self, api_key: int) -> Iterator[tuple[bytes, bytes | None]]:
        """Yield the payload of each request with an api key, with its response payload, or None without a response."""
        for frames in self._connections:
            for sent in frames.sent:
                prefix = read_request_prefix(sent)
                if prefix.api_key == api_key:
                    answers = (
                        frame for frame in frames.received if read_correlation_id(frame) == prefix.correlation_id
                    )
                    yield sent, next(answers, None)
