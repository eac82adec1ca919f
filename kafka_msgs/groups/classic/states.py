"""The states of a classic group and the moves between them, as data (Kafka's ``ClassicGroupState``)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

__all__ = ["PREVIOUS_STATES", "REBALANCE_FROM", "ClassicState"]


class ClassicState(Enum):
    """A state of a classic group. The value is the name that clients see."""

    EMPTY = "Empty"
    """The group has no members. It may have offsets."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """Members join for the next generation."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """All members have joined. The leader has not sent the assignment yet."""
    STABLE = "Stable"
    """Each member has its assignment."""
    DEAD = "Dead"
    """The coordinator has given the group up, because it no longer leads the partition."""


_ANY: Final = frozenset(ClassicState)

PREVIOUS_STATES: Final[Mapping[ClassicState, frozenset[ClassicState]]] = {
    ClassicState.EMPTY: frozenset({ClassicState.PREPARING_REBALANCE}),
    ClassicState.PREPARING_REBALANCE: frozenset(
        {ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE, ClassicState.EMPTY}
    ),
    ClassicState.COMPLETING_REBALANCE: frozenset({ClassicState.PREPARING_REBALANCE}),
    ClassicState.STABLE: frozenset({ClassicState.COMPLETING_REBALANCE}),
    ClassicState.DEAD: _ANY,
}
"""The states that a group may come from, for each state."""

REBALANCE_FROM: Final = PREVIOUS_STATES[ClassicState.PREPARING_REBALANCE]
"""The states in which a rebalance can begin."""
