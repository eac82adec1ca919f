"""The states of a shard, from its election to its resignation."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

__all__ = ["VALID_TRANSITIONS", "CoordinatorState"]


class CoordinatorState(Enum):
    """The state of a shard."""

    INITIAL = "Initial"
    """The shard exists, but has not been elected."""
    LOADING = "Loading"
    """The shard is loading the records of the partition."""
    ACTIVE = "Active"
    """The shard serves requests."""
    FAILED = "Failed"
    """The records could not be loaded. A later election tries again."""
    CLOSED = "Closed"
    """The shard has resigned from the partition."""


VALID_TRANSITIONS: Final[Mapping[CoordinatorState, frozenset[CoordinatorState]]] = {
    CoordinatorState.INITIAL: frozenset({CoordinatorState.LOADING, CoordinatorState.CLOSED}),
    CoordinatorState.LOADING: frozenset({CoordinatorState.ACTIVE, CoordinatorState.FAILED, CoordinatorState.CLOSED}),
    CoordinatorState.ACTIVE: frozenset({CoordinatorState.CLOSED}),
    CoordinatorState.FAILED: frozenset({CoordinatorState.LOADING, CoordinatorState.CLOSED}),
    CoordinatorState.CLOSED: frozenset(),
}
"""The valid transitions from each state of a shard."""
