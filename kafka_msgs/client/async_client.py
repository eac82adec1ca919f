"""``AsyncClient``: sends any request to the right broker, from asyncio. ``client`` contains the blocking class."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar, Unpack

from kafka_msgs.client.config import ClientOptions

# blocking: from kafka_msgs.client.networks import new_network
from kafka_msgs.client.config_loading import Servers, load_config
from kafka_msgs.client.core import ClientCore
from kafka_msgs.client.flow import Flow
from kafka_msgs.client.networks import new_async_network  # asyncio
from kafka_msgs.message import Request, Response

if TYPE_CHECKING:
    from kafka_msgs.client.aio import AsyncNetwork  # asyncio
    # blocking: from kafka_msgs.client.blocking import BlockingNetwork

__all__ = ["AsyncClient"]

R = TypeVar("R", bound=Response)
T = TypeVar("T")


class AsyncClient:
    """A client that sends any request to the right broker.

        async with AsyncClient("localhost:9092") as client:
            response = await client.call(MetadataRequest(topics=None))

    The first argument is one broker address (``host:port``) or several, a ``ClientConfig``, or Kafka's properties: a
    mapping, or the ``Path`` of a properties file. The keyword arguments are the fields of ``ClientConfig``. The client
    connects at the first call.

    Create the client while the event loop runs. Many calls may run concurrently and share the connections.
    """

    # blocking doc: A dedicated thread does the input and output; it starts with the first call. Any thread may use the
    # blocking doc: client. With ``threadless`` there is no such thread: only one thread may use the client, and it is
    # blocking doc: idle between calls.

    def __init__(
        self,
        servers: Servers,
        # blocking: *,
        # blocking: threadless: bool = False,
        **options: Unpack[ClientOptions],
    ) -> None:
        config, _ = load_config(servers, options)
        self._has_owner = False
        # blocking: self.threadless = threadless
        # blocking: self.network: BlockingNetwork = new_network(threadless=threadless)
        self.network: AsyncNetwork = new_async_network()  # asyncio
        self.core = ClientCore(config, self.network)

    async def call(
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
        return await self.network.run(flow)

    async def run(self, flow: Flow[T]) -> T:
        """Run a flow over the connections of this client, and return its value."""
        return await self.network.run(flow)

    def metrics(self, topic: str | None = None) -> dict[str, float]:
        """Return the metrics of this client by Kafka's names, such as ``request-latency-avg``.

        With ``topic``, return those that count the records of one topic.
        """
        return self.core.metrics(topic)

    async def close(self) -> None:
        """Close every connection. Pending calls raise ``ClientClosedError``."""
        await self.network.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.close()

    def __del__(self, warn: Callable[..., None] = warnings.warn) -> None:
        network = getattr(self, "network", None)
        if network is not None and network.is_started and not self._has_owner:
            warn(f"unclosed {type(self).__name__}", ResourceWarning, stacklevel=2, source=self)
            network.dispose(None, ends=True)
