"""The status of a group in a partition, from a window of its latest commits.

The rules follow Burrow's: a fixed limit for the lag is too small for one topic and too large for another, but a lag
that never shrinks within a window shows a slow, stuck or stopped consumer in any topic. The rules are pure functions of
the window, the time and the lag. Commits in files and observations of a running cluster have the same history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeAlias

from attrs import define, evolve, field, frozen

from kafka_msgs.errors import KafkaMsgsError
from kafka_msgs.log.timestamps import LogTimestamps, Places, with_log_times
from kafka_msgs.report.metric_definitions import LagStatus

__all__ = [
    "STATUS_RULES",
    "LagHistory",
    "LagWindow",
    "Observation",
    "StatusRule",
    "with_statuses",
    "with_times_and_statuses",
]

WINDOW: Final = 10
"""The default number of observations in a window."""
DISTANCE_MS: Final = 1000
"""The default time between observations: later observations within it replace earlier ones."""
_FEWEST: Final = 3
"""The number of observations below which the lag has no trend."""


class Observation(NamedTuple):
    """A sign of life of a consumer: usually a commit. ``time`` is in milliseconds since the epoch.

    ``position`` orders observations, such as the commit's offset in its log. ``lag`` is None if it is unknown.
    """

    position: int
    time: int
    offset: int
    lag: int | None = None


LagAt: TypeAlias = Callable[[Observation], "int | None"]
BehindSince: TypeAlias = Callable[[], "int | None"]


@frozen
class LagWindow:
    """Observations, the time of the evaluation, the current lag, and the shortest time that a full window covers.

    ``behind_since`` returns the time since which the last offset has a lag, or None if it is unknown.
    """

    observations: Sequence[Observation]
    now: int
    lag: int | None
    shortest_ms: int
    behind_since: BehindSince

    @property
    def span(self) -> int:
        """The time that the window covers in milliseconds, at least ``shortest_ms``."""
        return max(self.observations[-1].time - self.observations[0].time, self.shortest_ms)

    @property
    def offsets(self) -> list[int]:
        """The offsets of all observations."""
        return [each.offset for each in self.observations]

    @property
    def lags(self) -> list[int]:
        """The known lags."""
        return [each.lag for each in self.observations if each.lag is not None]

    @property
    def is_silent(self) -> bool:
        """Whether there was no observation for longer than ``span``, and a lag during all that time.

        Producers may write any time, so a time of the lag after ``now`` counts as unknown.
        """
        latest = self.now - self.span
        if self.observations[-1].time >= latest:
            return False
        since = self.behind_since()
        return since is None or not latest <= since <= self.now

    @property
    def never_shrinks(self) -> bool:
        """Whether no known lag is below the one before it."""
        return all(later >= earlier for earlier, later in pairwise(self.lags))


@frozen
class StatusRule:
    """A rule: the status if the condition holds for a window. The first rule that holds decides."""

    status: LagStatus
    condition: str
    holds: Callable[[LagWindow], bool]


_WITHOUT_LAGS: Final = (
    StatusRule(LagStatus.UNKNOWN, "the end of the partition is unknown", lambda window: window.lag is None),
    StatusRule(LagStatus.OK, "the current lag is 0", lambda window: window.lag == 0),
    StatusRule(
        LagStatus.STOPPED,
        "the last commit, and the first record after it, are longer ago than the time that the window covers",
        lambda window: bool(window.observations) and window.is_silent,
    ),
    StatusRule(
        LagStatus.REWOUND,
        "the last offset is lower than an earlier one in the window",
        lambda window: bool(window.observations) and window.offsets[-1] < max(window.offsets),
    ),
    StatusRule(
        LagStatus.UNKNOWN,
        f"the window contains fewer than {_FEWEST} commits",
        lambda window: len(window.observations) < _FEWEST,
    ),
)
_WITH_LAGS: Final = (
    StatusRule(LagStatus.OK, "the lag was 0 at a commit in the window", lambda window: 0 in window.lags),
    StatusRule(
        LagStatus.UNKNOWN,
        f"fewer than {_FEWEST} lags in the window are known",
        lambda window: len(window.lags) < _FEWEST,
    ),
    StatusRule(
        LagStatus.STALLED,
        "all offsets in the window are equal, and the lag never shrinks",
        lambda window: len(set(window.offsets)) == 1 and window.never_shrinks,
    ),
    StatusRule(
        LagStatus.WARNING, "the offset advances, and the lag never shrinks", lambda window: window.never_shrinks
    ),
    StatusRule(LagStatus.OK, "the lag shrinks at least once in the window", lambda window: True),
)
"""The rules that need the lags of earlier observations."""
STATUS_RULES: Final = (*_WITHOUT_LAGS, *_WITH_LAGS)
"""The rules, in the order in which they are checked."""


@define
class LagHistory:
    """The latest observations of a group in one partition: at most ``size``, one per ``distance_ms`` of time.

    Of several observations in the same span of ``distance_ms``, the one with the highest position counts. The content
    is therefore independent of the order in which observations are added.
    """

    size: int = WINDOW
    distance_ms: int = DISTANCE_MS
    _by_slot: dict[int, Observation] = field(factory=dict)

    @classmethod
    def from_window(cls, window: Iterable[Mapping[str, int]]) -> LagHistory:
        """Return the history with the commits in a window of ``commit_windows.WINDOWS``."""
        history = cls()
        for commit in window:
            history.add(Observation(**commit))
        return history

    def add(self, observation: Observation) -> None:
        """Add an observation."""
        slot = observation.time // self.distance_ms
        self._by_slot[slot] = max(self._by_slot.get(slot, observation), observation, key=lambda each: each[:3])
        if len(self._by_slot) > self.size:
            del self._by_slot[min(self._by_slot)]

    @property
    def observations(self) -> list[Observation]:
        """The observations in the window, by time."""
        return [self._by_slot[slot] for slot in sorted(self._by_slot)]

    def status(
        self, now: int, lag: int | None, lag_at: LagAt | None = None, behind_since: BehindSince = lambda: None
    ) -> LagStatus:
        """Return the status at a time in milliseconds, with the current lag.

        ``lag_at`` returns the lag at an observation that does not have it, and ``behind_since`` the time since which
        the last offset has a lag. They are only called if the rules need them.
        """
        window = LagWindow(self.observations, now, lag, (self.size - 1) * self.distance_ms, behind_since)
        for rule in _WITHOUT_LAGS:
            if rule.holds(window):
                return rule.status
        if lag_at is not None:
            window = evolve(window, observations=[_with_lag(each, lag_at) for each in window.observations])
        return next(rule.status for rule in _WITH_LAGS if rule.holds(window))


def _with_lag(observation: Observation, lag_at: LagAt) -> Observation:
    return observation._replace(lag=lag_at(observation)) if observation.lag is None else observation


def with_statuses(
    rows: Iterable[Mapping[str, Any]], now: int, logs: Mapping[tuple[str, int], LogTimestamps], partition: str
) -> Iterator[dict[str, Any]]:
    """Yield rows of committed offsets with their ``status`` at a time in milliseconds.

    A row has ``topic``, ``lag``, ``endOffset``, the column ``partition``, and ``window``, None without commits. The
    lags at earlier commits are looked up in the logs.
    """
    for row in rows:
        history, log = LagHistory.from_window(row["window"] or ()), logs.get((row["topic"], row[partition]))
        status = history.status(now, row["lag"], _lags_in(log, row["endOffset"]), partial(_behind_since, row, log))
        yield {**row, "status": status.name}


def with_times_and_statuses(
    rows: Iterable[Mapping[str, Any]], places: Places
) -> tuple[list[dict[str, Any]], int | None]:
    """Return rows of ``kafka_msgs.report.sections.lag`` with times and statuses from logs, and the newest time.

    A row has a ``window``, None without commits. Without any window, the rows have no status. The lags at earlier
    commits are looked up in the logs with the largest lags, as are the times. Raises ``OSError``.
    """
    given = list(rows)
    logs = {place: places[place] for place in {(row["topic"], row["topicPartition"]) for row in given} & places.keys()}
    timed, as_of = with_log_times(given, logs)
    if any(row["window"] for row in given):
        looked_up = {(row["topic"], row["topicPartition"]) for row in timed if "unreadMs" in row}
        read = {place: logs[place] for place in looked_up}
        timed = list(with_statuses(timed, as_of or 0, read, "topicPartition"))
    return timed, as_of


def _behind_since(row: Mapping[str, Any], log: LogTimestamps | None) -> int | None:
    """Return the time of the first unconsumed record of a group, or None if it is unknown."""
    with suppress(KafkaMsgsError, OSError):
        return None if log is None else log.timestamp_at_or_after(row["committedOffset"])
    return None


def _lags_in(log: LogTimestamps | None, end: int | None) -> LagAt | None:
    if log is None or end is None:
        return None

    def lag_at(commit: Observation) -> int | None:
        try:
            found = log.end_offset_at(commit.time, end)
        except (KafkaMsgsError, OSError):
            return None
        return None if found is None else max(0, found - commit.offset)

    return lag_at
