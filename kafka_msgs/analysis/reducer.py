"""The interface of reducers.

A reducer holds the state of one range of a log. The state of a range and the state of the range after it merge to the
state of both together, so that a log may be cut anywhere between two batches:
``earlier.merge(range1).merge(range2)`` has the same result as one pass.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

__all__ = ["Reducer"]

BatchT = TypeVar("BatchT", contravariant=True)


class Reducer(Protocol[BatchT]):
    """The state of a range. The result does not depend on the size of the batches.

    The state is bounded by what can still have an effect, and by one buffer. ``checkpoint`` returns it as Arrow tables
    or plain values, from which the class rebuilds an equal state. The result of a whole log, from its first record on,
    is the ``finish`` of its class.
    """

    def add(self, batch: BatchT) -> None:
        """Add the next records of the range."""
        ...

    def merge(self, later: Any) -> Any:
        """Return the state of this range and of the ``later`` range that follows it. Both operands become unusable."""
        ...

    def checkpoint(self) -> Any:
        """Return the complete state."""
        ...
