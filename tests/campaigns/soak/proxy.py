"""Loopback proxies before the brokers, which break the connections of clients.

All proxies run in one thread with an event loop. ``Proxy`` has one method for each kind of fault; the methods may be
called from any thread.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Thread
from types import TracebackType
from typing import Any, Final, Self

__all__ = ["Proxies", "Proxy"]

_HOST: Final = "127.0.0.1"
_CHUNK: Final = 1 << 16
_RESET: Final = struct.pack("ii", 1, 0)
"""SO_LINGER that makes the end of a connection a reset."""


class Proxy:
    """A port that forwards connections to another port."""

    def __init__(self, port: int, target: int, loop: asyncio.AbstractEventLoop) -> None:
        self.port = port
        self._target = target
        self._loop = loop
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._passing = asyncio.Event()
        self._passing.set()
        self._delay = 0.0
        self._cut_after = 0

    def reset(self) -> None:
        """Reset all connections."""
        self._loop.call_soon_threadsafe(self._reset)

    def swallow(self, silent: bool) -> None:
        """Keep connections open without passing any bytes, or pass them again."""
        self._loop.call_soon_threadsafe(self._passing.clear if silent else self._passing.set)

    def delay(self, seconds: float) -> None:
        """Delay all bytes, in both directions."""
        self._delay = seconds

    def cut_after(self, size: int) -> None:
        """Reset each connection after this many bytes of the broker; 0 ends this."""
        self._cut_after = size

    def refuse(self, refusing: bool) -> None:
        """Reset all connections and refuse new ones, or accept them again."""
        asyncio.run_coroutine_threadsafe(self._refuse() if refusing else self.open(), self._loop).result(10)

    async def open(self) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._connect, _HOST, self.port)

    async def _refuse(self) -> None:
        if self._server is not None:
            self._server.close()
        self._reset()

    def _reset(self) -> None:
        for writer in self._writers:
            connection: socket.socket | None = writer.get_extra_info("socket")
            if connection is not None:
                with suppress(OSError):
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            writer.transport.abort()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            broker_reader, broker_writer = await asyncio.open_connection(_HOST, self._target)
        except OSError:
            writer.transport.abort()
            return
        both = {writer, broker_writer}
        self._writers |= both
        try:
            async with asyncio.TaskGroup() as pumps:
                pumps.create_task(self._pump(reader, broker_writer, limited=False))
                pumps.create_task(self._pump(broker_reader, writer, limited=True))
        except* (OSError, EOFError):
            pass
        finally:
            self._writers -= both
            for each in both:
                each.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, limited: bool) -> None:
        """Pass bytes on until the connection ends. Raises ``EOFError`` at the end."""
        passed = 0
        while data := await reader.read(_CHUNK):
            await self._passing.wait()
            if self._delay:
                await asyncio.sleep(self._delay)
            passed += len(data)
            if limited and 0 < self._cut_after < passed:
                raise EOFError
            writer.write(data)
            await writer.drain()
        raise EOFError


class Proxies:
    """One proxy for each of some ports. ``with`` opens and closes them."""

    def __init__(self, ports: Sequence[tuple[int, int]]) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)
        self.proxies = [Proxy(port, target, self._loop) for port, target in ports]

    def __enter__(self) -> Self:
        self._thread.start()
        for each in self.proxies:
            asyncio.run_coroutine_threadsafe(each.open(), self._loop).result(10)
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _end(self) -> None:
        for each in self.proxies:
            await each._refuse()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def all(self, action: Callable[[Proxy], Any]) -> None:
        """Do something with each proxy."""
        for each in self.proxies:
            action(each)
