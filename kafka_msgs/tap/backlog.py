"""The exchanges and faults of a proxy that have not been reported yet.

One item is reported per iteration of the event loop, so that a slow receiver delays forwarding by at most one item.
This module limits the size of the backlog and calls the proxy when it exceeds the limit.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from kafka_msgs.capture.exchange_builder import Item
from kafka_msgs.capture.faults import CaptureFault

__all__ = ["Backlog"]

_LIMIT: Final = 64 * 2**20
_ITEM_BYTES: Final = 2_000
"""The approximate size in bytes of an item, without its payloads."""


class Backlog:
    """Items that wait for ``seen``.

    ``on_full`` is called when too many bytes wait, and ``on_drained`` when the backlog falls to half of that.
    """

    def __init__(
        self, seen: Callable[[Item], None], *, on_full: Callable[[], None], on_drained: Callable[[], None]
    ) -> None:
        self.is_full = False
        self.held = 0
        self._seen = seen
        self._on_full = on_full
        self._on_drained = on_drained
        self._items: deque[tuple[Item, int]] = deque()
        self._scheduled = False

    def add(self, items: Sequence[Item]) -> None:
        """Queue items for reporting, in their order."""
        for item in items:
            size = _ITEM_BYTES + _bytes_of(item)
            self._items.append((item, size))
            self.held += size
        if self._items and not self._scheduled:
            self._schedule()
        if self.held > _LIMIT and not self.is_full:
            self.is_full = True
            self._on_full()

    def finish(self) -> None:
        """Report all remaining items now."""
        while self._items:
            self._take()

    def _schedule(self) -> None:
        self._scheduled = True
        asyncio.get_running_loop().call_soon(self._report_one)

    def _report_one(self) -> None:
        """Report one item. If ``seen`` raises, reporting continues, so that no connection waits forever."""
        self._scheduled = False
        try:
            if self._items:
                self._take()
        finally:
            if self._items:
                self._schedule()
            if self.is_full and self.held < _LIMIT // 2:
                self.is_full = False
                self._on_drained()

    def _take(self) -> None:
        item, size = self._items.popleft()
        self.held -= size
        self._seen(item)


def _bytes_of(item: Item) -> int:
    if isinstance(item, CaptureFault):
        return 0
    return item.request.size + (item.response.size if item.response else 0)
