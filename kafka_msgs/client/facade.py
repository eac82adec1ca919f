"""Base classes of the public classes: they hold the client, run flows, and close.

The asyncio classes are written by hand (``async_client``, ``async_consumer``, ...); ``docs/tools/facades.py`` generates
the blocking classes from them. Differences beyond ``await`` are in the two base classes here, which have the same
methods.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from threading import get_ident
from typing import Any, ClassVar, Final, Generic, TypeVar

from kafka_msgs.client.async_client import AsyncClient
from kafka_msgs.client.client import Client
from kafka_msgs.client.config_loading import CLIENT, Keywords, check_keywords, load_config
from kafka_msgs.client.flow import Flow, sleep_until
from kafka_msgs.errors import ForkedError, KafkaMsgsError

__all__ = ["AsyncFacade", "BlockingFacade"]

C = TypeVar("C", Client, AsyncClient)
T = TypeVar("T")

_LOG: Final = logging.getLogger("kafka_msgs.client")
EXIT_TIMEOUT: Final = 5.0
"""Seconds that a ``with`` block waits for pending work after an exception."""


class _Facade(Generic[C]):
    """A public class that uses a client, either a private or a shared one."""

    client: C
    _client_class: ClassVar[type[Any]]
    _owns_client = False
    _ended = False

    def _take_client(self, servers: Any, options: Mapping[str, Any], keywords: Keywords = CLIENT, **own: Any) -> Any:
        """Use the given client, or create one; return the config of the facade.

        Raises ``OptionError`` for an unknown keyword, and for a client keyword in combination with a given client.
        """
        if isinstance(servers, self._client_class):
            check_keywords(options, keywords, keywords.names)
            self.client = servers
            return keywords.config and keywords.config(**options)
        config, found = load_config(servers, options, keywords)
        own_config = keywords.config and keywords.config(**found)
        self.client = self._client_class(config, **own)
        self.client._has_owner = True
        self._owns_client = True
        return own_config

    def _closing(self) -> Flow[None] | None:
        """Return the flow that closes an unclosed facade."""
        return None

    def __del__(self, warn: Callable[..., None] = warnings.warn) -> None:
        client = getattr(self, "client", None)
        if client is None or self._ended or not client.network.is_started:
            return
        flow = self._closing()
        if self._owns_client or flow is not None:
            warn(f"unclosed {type(self).__name__}", ResourceWarning, stacklevel=2, source=self)
            client.network.dispose(flow, ends=self._owns_client)


class AsyncFacade(_Facade[AsyncClient]):
    """The base of the asyncio classes."""

    _client_class = AsyncClient
    _exclusive: ClassVar[AbstractContextManager[None]] = nullcontext()

    async def _run(self, flow: Flow[T]) -> T:
        return await self.client.run(flow)

    def _do(self, function: Callable[[], T]) -> T:
        """Call a function in the thread of the flows."""
        return function()

    async def _give_way(self) -> None:
        """Advance the flows of the network once."""
        await self.client.run(sleep_until(self.client.network.now()))

    async def _run_last(self, flow: Flow[None]) -> None:
        """Run the flow that closes the facade, then close its private client."""
        self._ended = True
        try:
            await self.client.run(flow)
        finally:
            if self._owns_client:
                await self.client.close()

    async def _run_last_quietly(self, flow: Flow[None]) -> None:
        """Do the same after an exception, without replacing it."""
        try:
            await self._run_last(flow)
        except KafkaMsgsError as error:
            _LOG.warning("%s was not closed in order: %s", type(self).__name__, error)


class BlockingFacade(_Facade[Client]):
    """The base of the blocking classes."""

    _client_class = Client
    _exclusive: AbstractContextManager[None]

    def _take_client(self, servers: Any, options: Mapping[str, Any], keywords: Keywords = CLIENT, **own: Any) -> Any:
        """See ``_Facade``."""
        config = super()._take_client(servers, options, keywords, **own)
        self._exclusive = _OneThread(type(self).__name__, self.client)
        return config

    def _run(self, flow: Flow[T]) -> T:
        return self.client.run(flow)

    def _do(self, function: Callable[[], T]) -> T:
        """Call a function in the thread of the flows."""
        return self.client.run(_calling(function))

    def _give_way(self) -> None:
        """Advance the flows of the network once, if no thread does so."""
        self.client.network.turn()

    def _run_last(self, flow: Flow[None]) -> None:
        """Run the flow that closes the facade, then close its private client. Does nothing in a child process."""
        self._ended = True
        if self.client.network.is_forked:
            flow.close()
            return
        try:
            self.client.run(flow)
        finally:
            if self._owns_client:
                self.client.close()

    def _run_last_quietly(self, flow: Flow[None]) -> None:
        """Do the same after an exception, without replacing it."""
        try:
            self._run_last(flow)
        except KafkaMsgsError as error:
            _LOG.warning("%s was not closed in order: %s", type(self).__name__, error)


class _OneThread(AbstractContextManager[None]):
    """Rejects a second thread while one is inside. An exception that interrupts it never locks out its own thread."""

    def __init__(self, name: str, client: Client) -> None:
        self._name = name
        self._client = client
        self._inside: dict[str, int] = {}
        self._depth = 0

    def __enter__(self) -> None:
        me = get_ident()
        if self._inside.setdefault("thread", me) != me:
            if self._client.network.is_forked:  # the other thread exists in the parent only
                raise ForkedError()
            raise RuntimeError(f"a {self._name} belongs to one thread at a time, and another one is using it now")
        self._depth += 1

    def __exit__(self, *error: object) -> None:
        self._depth -= 1
        if self._depth <= 0:
            self._depth = 0
            self._inside.clear()


def _calling(function: Callable[[], T]) -> Flow[T]:
    yield from ()
    return function()
