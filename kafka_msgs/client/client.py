"""``Client`` and ``AsyncClient``: the logic over a network that blocks, and over asyncio.

What works over a client (``forms``) describes each operation once. The two methods here cannot: the type of what they
return follows from the request, or from the piece of logic, of each call. So each form says it.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from kafka_msgs.client.config import ClientOptions
from kafka_msgs.client.contexts import AsyncContext, BlockingContext
from kafka_msgs.client.core import ClientCore
from kafka_msgs.client.servers import Servers, settings_of
from kafka_msgs.client.waiting import Steps
from kafka_msgs.message import Request, Response

if TYPE_CHECKING:
    from kafka_msgs.client.aio import AsyncNetwork

__all__ = ["AsyncClient", "Client"]

R = TypeVar("R", bound=Response)
T = TypeVar("T")


class Client(BlockingContext):
    """A client for programs that block.

        with Client("localhost:9092") as client:
            response = client.call(MetadataRequest(topics=None))

    The first argument is the address of a broker (``host:port``), or several, or a ``ClientConfig`` with all settings,
    or Kafka's properties: a mapping of them, or the ``Path`` of their file. The keywords are those of ``ClientConfig``:
    ``client_id``, ``timeout`` in seconds, ``tls`` to encrypt the connections, ``credentials`` to prove who the client
    is. Nothing connects before the first call. A client belongs to the thread that uses it.
    """

    def __init__(self, servers: Servers, **options: Unpack[ClientOptions]) -> None:
        config, _ = settings_of(servers, options)
        self.network: Any = _network()
        self.core = ClientCore(config, self.network)

    def call(
        self,
        request: Request[R],
        *,
        timeout: float | None = None,
        version: int | None = None,
        node: int | None = None,
        retry: bool = True,
    ) -> R:
        """Send a request to the right broker or brokers, and return the answer. See ``ClientCore.call``.

        ``timeout`` is in seconds; None is for the time-out of the client.
        """
        steps = self.core.call(request, deadline=self.core.deadline(timeout), version=version, node=node, retry=retry)
        return self.network.run(steps)

    def run(self, steps: Steps[T]) -> T:
        """Run a piece of logic over the connections of this client, and return its value."""
        return self.network.run(steps)

    def metrics(self) -> dict[str, float]:
        """Return the metrics of this client by Kafka's names, such as ``request-latency-avg``."""
        return self.core.metrics()

    def close(self) -> None:
        """Close every connection."""
        if self.is_threaded:
            if self.network._thread is not None and not self.network._forked:
                self.network.run(_closing(self.core))
        else:
            self.core.close()
        self.network.close()

    @property
    def is_threaded(self) -> bool:
        """Whether an I/O thread does the work."""
        return hasattr(self.network, "post")


def _closing(core: ClientCore) -> Steps[None]:
    core.close()
    yield from ()


def _network() -> Any:
    import os

    mode = os.environ.get("KM_MODE", "thread")
    if mode == "inline":
        from kafka_msgs.client.blocking import BlockingNetwork

        return BlockingNetwork()
    if mode == "aiothread":
        from kafka_msgs.client.aio_thread import AsyncioThread

        return AsyncioThread()
    from kafka_msgs.client.io_thread import SelectThread

    return SelectThread()


class AsyncClient(AsyncContext):
    """A client for asyncio. See ``Client``; it must be made while the event loop runs.

        async with AsyncClient("localhost:9092") as client:
            response = await client.call(MetadataRequest(topics=None))

    Many calls may run at the same time. They share the connections.
    """

    def __init__(self, servers: Servers, **options: Unpack[ClientOptions]) -> None:
        from kafka_msgs.client.aio import AsyncNetwork

        config, _ = settings_of(servers, options)
        self.network: AsyncNetwork = AsyncNetwork()
        self.core = ClientCore(config, self.network)

    def call(
        self,
        request: Request[R],
        *,
        timeout: float | None = None,
        version: int | None = None,
        node: int | None = None,
        retry: bool = True,
    ) -> Coroutine[Any, Any, R]:
        """Send a request to the right broker or brokers, and return the answer. See ``Client.call``."""
        steps = self.core.call(request, deadline=self.core.deadline(timeout), version=version, node=node, retry=retry)
        return self.network.run(steps)

    async def run(self, steps: Steps[T]) -> T:
        """Run a piece of logic over the connections of this client, and return its value."""
        return await self.network.run(steps)

    def metrics(self) -> dict[str, float]:
        """Return the metrics of this client by Kafka's names, such as ``request-latency-avg``."""
        return self.core.metrics()

    async def close(self) -> None:
        """Close every connection."""
        self.core.close()
        await self.network.close()
