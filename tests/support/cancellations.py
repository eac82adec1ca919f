"""Asyncio calls that are cancelled at each turn of their client's flows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from itertools import count
from typing import Any

from kafka_msgs.client import AsyncClient

__all__ = ["cancel_at", "cancelled_everywhere"]


async def cancel_at(client: AsyncClient, turn: int, call: Coroutine[Any, Any, Any]) -> bool:
    """Run a call, and cancel it after ``turn`` turns of the client's flows; return whether it was cancelled.

    The state of a client changes only in these turns, so they stand for all awaits of the call.
    """
    network = client.network
    advance, turns, started = network._advance, 0, False

    def counting(moment: float) -> None:
        nonlocal turns
        advance(moment)
        turns += started
        if turns == turn and started:
            task.cancel()

    async def start() -> None:
        nonlocal started
        started = True
        await call

    network._advance = counting  # type: ignore[method-assign]
    task = asyncio.ensure_future(start())
    try:
        await asyncio.sleep(0)
        if turn == 0:
            task.cancel()
        await task
    except asyncio.CancelledError:
        return True
    finally:
        del network._advance
    return False


async def cancelled_everywhere(
    client: AsyncClient, call: Callable[[int], Coroutine[Any, Any, Any]]
) -> AsyncIterator[int]:
    """Cancel calls at turn 0, 1, 2, ..., and yield each turn, until a call ends before its turn."""
    for turn in count():
        cancelled = await cancel_at(client, turn, call(turn))
        yield turn
        if not cancelled:
            return
        assert turn < 500
