"""Creates the driver of a client. A program imports the code of that driver only."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka_msgs.client.aio import AsyncNetwork
    from kafka_msgs.client.blocking import BlockingNetwork

__all__ = ["new_async_network", "new_network"]


def new_network(*, threadless: bool) -> BlockingNetwork:
    """Return a blocking network: with an I/O thread, unless it is ``threadless``."""
    if threadless:
        from kafka_msgs.client.blocking import BlockingNetwork

        return BlockingNetwork()
    from kafka_msgs.client.io_thread import IOThread

    return IOThread()


def new_async_network() -> AsyncNetwork:
    """Return a network on the running event loop."""
    from kafka_msgs.client.aio import AsyncNetwork

    return AsyncNetwork()
