"""``with`` and ``async with``: both end with ``close``. Clients use it, and everything that works over a client."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, Self

__all__ = ["AsyncContext", "BlockingContext"]


class BlockingContext(ABC):
    """A ``with`` block closes it at the end."""

    @abstractmethod
    def close(self) -> Any:
        """End it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncContext(ABC):
    """An ``async with`` block closes it at the end."""

    @abstractmethod
    async def close(self) -> Any:
        """End it."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
