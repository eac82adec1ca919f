"""The I/O thread on an event loop of asyncio. For comparison with ``io_thread.SelectThread``."""

from __future__ import annotations

import asyncio
import threading
import time

from kafka_msgs.client.aio import AsyncNetwork
from kafka_msgs.client.io_thread import IOThread


class AsyncioThread(IOThread, AsyncNetwork):
    def __init__(self) -> None:
        self._own = asyncio.new_event_loop()
        asyncio.set_event_loop(None)
        saved = asyncio.get_running_loop
        asyncio.get_running_loop = lambda: self._own  # type: ignore[assignment]
        try:
            AsyncNetwork.__init__(self)
        finally:
            asyncio.get_running_loop = saved
        self._prepare()

    def _wake_up(self) -> None:
        self._own.call_soon_threadsafe(self._drain)

    def _drain(self) -> None:
        while self._inbox:
            self._inbox.popleft()()

    def run(self, steps, *, serves=False):
        return IOThread.run(self, steps, serves=serves)

    def turn(self) -> None:
        time.sleep(0.0005)

    def _stop(self) -> None:
        self._own.stop()

    def _main(self) -> None:
        self._ident = threading.get_ident()
        self._own.run_forever()
        self._own.run_until_complete(AsyncNetwork.close(self))
        self._own.close()

    def close(self) -> None:
        if self._thread is not None:
            self.join()
