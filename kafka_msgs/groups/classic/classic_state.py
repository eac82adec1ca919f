"""The states of a classic group and the transitions between them, as data (Kafka's ``ClassicGroupState``)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

__all__ = ["CAN_REBALANCE", "VALID_PREVIOUS_STATES", "ClassicGroupState"]


class ClassicGroupState(Enum):
    """A state of a classic group. The value is the name that clients see."""

    EMPTY = "Empty"
    """The group has no members. It may have offsets."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """Members join for the next generation."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """All members have joined. The leader's assignment is pending."""
    STABLE = "Stable"
    """Each member has its assignment."""
    DEAD = "Dead"
    """The coordinator has dropped the group, because it no longer leads the partition."""


_ANY: Final = frozenset(ClassicGroupState)

VALID_PREVIOUS_STATES: Final[Mapping[ClassicGroupState, frozenset[ClassicGroupState]]] = {
    ClassicGroupState.EMPTY: frozenset({ClassicGroupState.PREPARING_REBALANCE}),
    ClassicGroupState.PREPARING_REBALANCE: frozenset(
        {ClassicGroupState.STABLE, ClassicGroupState.COMPLETING_REBALANCE, ClassicGroupState.EMPTY}
    ),
    ClassicGroupState.COMPLETING_REBALANCE: frozenset({ClassicGroupState.PREPARING_REBALANCE}),
    ClassicGroupState.STABLE: frozenset({ClassicGroupState.COMPLETING_REBALANCE}),
    ClassicGroupState.DEAD: _ANY,
}
"""The states that a group may come from, for each state."""

CAN_REBALANCE: Final = VALID_PREVIOUS_STATES[ClassicGroupState.PREPARING_REBALANCE]
"""The states in which a rebalance can begin."""
