"""Creates the driver that a client uses. A program loads the code of that one only."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka_msgs.client.aio import AsyncNetwork
    from kafka_msgs.client.blocking import BlockingNetwork

__all__ = ["new_async_network", "new_network"]


def new_network(*, threadless: bool) -> BlockingNetwork:
    """Return a network for programs that block: with an I/O thread, unless it is to be ``threadless``."""
    if threadless:
        from kafka_msgs.client.blocking import BlockingNetwork

        return BlockingNetwork()
    from kafka_msgs.client.io_thread import IOThread

    return IOThread()


def new_async_network() -> AsyncNetwork:
    """Return a network on the event loop that is running."""
    from kafka_msgs.client.aio import AsyncNetwork

    return AsyncNetwork()
