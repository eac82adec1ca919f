"""``Client``, which blocks. Generated from ``async_client.py`` by docs/tools/facades.py: do not edit it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar, Unpack

from kafka_msgs.client.config import ClientOptions
from kafka_msgs.client.config_loading import Servers, load_config
from kafka_msgs.client.core import ClientCore
from kafka_msgs.client.flow import Flow
from kafka_msgs.client.networks import new_network
from kafka_msgs.message import Request, Response

if TYPE_CHECKING:
    from kafka_msgs.client.blocking import BlockingNetwork

__all__ = ["Client"]

R = TypeVar("R", bound=Response)
T = TypeVar("T")


class Client:
    """A client that sends any request to the right broker.

        with Client("localhost:9092") as client:
            response = client.call(MetadataRequest(topics=None))

    The first argument is one broker address (``host:port``) or several, a ``ClientConfig``, or Kafka's properties: a
    mapping, or the ``Path`` of a properties file. The keyword arguments are the fields of ``ClientConfig``. The client
    connects at the first call.

    A dedicated thread does the input and output; it starts with the first call. Any thread may use the
    client. With ``threadless`` there is no such thread: only one thread may use the client, and it is
    idle between calls.
    """

    def __init__(
        self,
        servers: Servers,
        *,
        threadless: bool = False,
        **options: Unpack[ClientOptions],
    ) -> None:
        config, _ = load_config(servers, options)
        self._has_owner = False
        self.threadless = threadless
        self.network: BlockingNetwork = new_network(threadless=threadless)
        self.core = ClientCore(config, self.network)

    def call(
        self,
        request: Request[R],
        *,
        timeout: float | None = None,
        version: int | None = None,
        broker_id: int | None = None,
        retry: bool = True,
    ) -> R:
        """Send a request to the right broker or brokers, and return the response. See ``ClientCore.call``.

        ``timeout`` is in seconds; None is the timeout of the client.
        """
        flow = self.core.call(
            request, deadline=self.core.deadline(timeout), version=version, broker_id=broker_id, retry=retry
        )
        return self.network.run(flow)

    def run(self, flow: Flow[T]) -> T:
        """Run a flow over the connections of this client, and return its value."""
        return self.network.run(flow)

    def metrics(self, topic: str | None = None) -> dict[str, float]:
        """Return the metrics of this client by Kafka's names, such as ``request-latency-avg``.

        With ``topic``, return those that count the records of one topic.
        """
        return self.core.metrics(topic)

    def close(self) -> None:
        """Close every connection. Pending calls raise ``ClientClosedError``."""
        self.network.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self, warn: Callable[..., None] = warnings.warn) -> None:
        network = getattr(self, "network", None)
        if network is not None and network.is_started and not self._has_owner:
            warn(f"unclosed {type(self).__name__}", ResourceWarning, stacklevel=2, source=self)
            network.dispose(None, ends=True)
