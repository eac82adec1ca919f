"""Lags of a running cluster over time: repeated rounds, with the status from the rounds so far."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, TypeAlias

from attrs import define, field

from kafka_msgs.analysis.lag_status import LagHistory, Observation
from kafka_msgs.cli.group_commands.broker_groups import BrokerGroups
from kafka_msgs.cli.group_commands.lag_options import LagOptions
from kafka_msgs.cli.group_commands.lags import Lag, compute_lags, row_of
from kafka_msgs.client.cluster_metadata import TopicPartition

__all__ = ["LiveLags"]

_Key: TypeAlias = tuple[str, TopicPartition]
_TOLERANCE: Final = 0.9
"""The part of the interval that may separate two rounds: they are never exactly on time."""


@define
class LiveLags:
    """The rounds. ``interval`` is the planned time between two rounds in seconds."""

    source: BrokerGroups
    options: LagOptions
    interval: float
    _histories: dict[_Key, LagHistory] = field(factory=dict)
    _behind_since: dict[_Key, int] = field(factory=dict)
    """The time of the first of the latest rounds with a lag."""
    _round: int = 0

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of a new round, the largest lag first.

        Raises ``KafkaMsgsError``, and ``click.ClickException`` for a group that does not exist.
        """
        lags = compute_lags(self.source, self.options)
        now = time.time()
        statuses = self._statuses(lags, int(now * 1000)) if self.options.status else {}
        return [{**row_of(lag, now), "status": statuses.get((lag.group.group_id, lag.partition))} for lag in lags]

    def _statuses(self, lags: list[Lag], now: int) -> Mapping[_Key, str]:
        """Add a round to the histories, and return the status names. Histories of absent partitions are dropped."""
        self._round += 1
        histories, behind = self._histories, self._behind_since
        self._histories, self._behind_since = {}, {}
        found = {}
        for lag in lags:
            key = lag.group.group_id, lag.partition
            history = histories.get(key) or LagHistory(distance_ms=max(1, int(self.interval * 1000 * _TOLERANCE)))
            self._histories[key] = history
            if lag.records != 0:
                self._behind_since[key] = behind.get(key, now)
            if _is_alive(lag, history):
                history.add(Observation(self._round, now, lag.stored.offset, lag.records))
            found[key] = history.status(now, lag.records, behind_since=partial(self._behind_since.get, key)).name
        return found


def _is_alive(lag: Lag, history: LagHistory) -> bool:
    """Whether a consumer was active since the last round: a member owns the partition, or the offset changed.

    Brokers return offsets without their commit times.
    """
    observations = history.observations
    return lag.owner is not None or not observations or observations[-1].offset != lag.stored.offset
