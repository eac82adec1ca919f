"""``Client`` and ``AsyncClient``: thin shells around the logic, one for each driver."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from kafka_msgs.client.config import ClientConfig
from kafka_msgs.client.core import ClientCore
from kafka_msgs.client.waiting import Steps
from kafka_msgs.message import Request, Response

if TYPE_CHECKING:
    import ssl

    from kafka_msgs.client.aio import AsyncNetwork
    from kafka_msgs.client.auth import Credentials
    from kafka_msgs.client.blocking import BlockingNetwork

__all__ = ["AsyncClient", "Client"]

R = TypeVar("R", bound=Response)
T = TypeVar("T")


def _config(
    servers: str | Sequence[str] | ClientConfig,
    client_id: str | None,
    timeout: float,
    tls: ssl.SSLContext | None,
    credentials: Credentials | None,
) -> ClientConfig:
    if isinstance(servers, ClientConfig):
        return servers
    return ClientConfig(
        bootstrap_servers=servers, client_id=client_id, timeout=timeout, tls=tls, credentials=credentials
    )


class Client:
    """A client for programs that block.

        with Client("localhost:9092") as client:
            response = client.call(MetadataRequest(topics=None))

    The first argument is the address of a broker (``host:port``), or several, or a ``ClientConfig`` with all settings.
    ``timeout`` is in seconds. ``tls`` encrypts the connections; ``credentials`` prove who the client is. Nothing
    connects before the first call. A client belongs to the thread that uses it.
    """

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | ClientConfig,
        *,
        client_id: str | None = "kafka-msgs",
        timeout: float = 30.0,
        tls: ssl.SSLContext | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        from kafka_msgs.client.blocking import BlockingNetwork

        self.network: BlockingNetwork = BlockingNetwork()
        self.core = ClientCore(_config(bootstrap_servers, client_id, timeout, tls, credentials), self.network)

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

    def close(self) -> None:
        """Close every connection."""
        self.core.close()
        self.network.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncClient:
    """A client for asyncio. See ``Client``; it must be made while the event loop runs.

        async with AsyncClient("localhost:9092") as client:
            response = await client.call(MetadataRequest(topics=None))

    Many calls may run at the same time. They share the connections.
    """

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | ClientConfig,
        *,
        client_id: str | None = "kafka-msgs",
        timeout: float = 30.0,
        tls: ssl.SSLContext | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        from kafka_msgs.client.aio import AsyncNetwork

        self.network: AsyncNetwork = AsyncNetwork()
        self.core = ClientCore(_config(bootstrap_servers, client_id, timeout, tls, credentials), self.network)

    def call(
        self,
        request: Request[R],
        *,
        timeout: float | None = None,
        version: int | None = None,
        node: int | None = None,
        retry: bool = True,
    ) -> Coroutine[Any, Any, R]:
        """Send a request to the right broker or brokers, and return the answer. See ``ClientCore.call``.

        ``timeout`` is in seconds; None is for the time-out of the client.
        """
        steps = self.core.call(request, deadline=self.core.deadline(timeout), version=version, node=node, retry=retry)
        return self.network.run(steps)

    async def run(self, steps: Steps[T]) -> T:
        """Run a piece of logic over the connections of this client, and return its value."""
        return await self.network.run(steps)

    async def close(self) -> None:
        """Close every connection."""
        self.core.close()
        await self.network.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
