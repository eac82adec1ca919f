"""What a coordinator counts, under the names of Kafka's metrics (``GroupCoordinatorMetrics``).

Counters only grow, and a monitor takes rates of them. An event counts when its records are committed. The numbers of
groups and offsets are facts of the state. Kafka counts groups once a minute, by the timer ``group-size-counter``; here
they are counted at the same moments.
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

    def record(self, name: str, count: int = 1) -> None:
        """Count events."""
        self.counts[name] += count

    def group_count(self, kind: str, state: str | None = None) -> int:
        """Return how many groups of a kind there are, or how many of them are in a state such as ``Stable``."""
        return sum(
            number
            for counter in self.groups.values()
            for (each_kind, each_state), number in counter.items()
            if each_kind == kind and state in (None, each_state)
        )
