"""The metrics of a coordinator, under the names of Kafka's metrics (``GroupCoordinatorMetrics``).

Counters only increase; monitoring derives rates from them. An event counts when its records are committed. The numbers
of groups and offsets are derived from the state. Kafka counts groups once a minute, with the timer
``group-size-counter``; this module counts them at the same times.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from attrs import define, field

__all__ = [
    "CLASSIC_REBALANCES",
    "CONSUMER_REBALANCES",
    "OFFSET_COMMITS",
    "OFFSET_DELETIONS",
    "OFFSET_EXPIRATIONS",
    "SHARE_REBALANCES",
    "STREAMS_REBALANCES",
    "Metrics",
]

OFFSET_COMMITS: Final = "OffsetCommits"
OFFSET_EXPIRATIONS: Final = "OffsetExpired"
OFFSET_DELETIONS: Final = "OffsetDeletions"
CLASSIC_REBALANCES: Final = "CompletedRebalances"
CONSUMER_REBALANCES: Final = "ConsumerGroupRebalances"
SHARE_REBALANCES: Final = "ShareGroupRebalances"
STREAMS_REBALANCES: Final = "StreamsGroupRebalances"


@define(kw_only=True)
class Metrics:
    """The counters of a coordinator.

    ``counts`` has the events by name. ``groups`` has, for each partition, the number of groups by kind and state.
    """

    counts: Counter[str] = field(factory=Counter)
    groups: dict[int, Counter[tuple[str, str]]] = field(factory=dict)

    def group_count(self, kind: str, state: str | None = None) -> int:
        """Return the number of groups of a kind, or the number in a state such as ``Stable``."""
        return sum(
            number
            for counter in self.groups.values()
            for (each_kind, each_state), number in counter.items()
            if each_kind == kind and state in (None, each_state)
        )
