"""Log records for retried failures: a warning for each new failure, and debug records for its repetitions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable
from typing import Final

from attrs import define

from kafka_msgs.error_codes import ErrorCode

__all__ = ["RetryLog"]

_PERIOD: Final = 60.0
"""Seconds after which a persistent failure is logged as a warning again."""
_EXPECTED_TIMES: Final = 5
"""Consecutive expected failures before a warning."""


@define(eq=False)
class _State:
    kind: tuple[type[Exception], ErrorCode | None]
    since: float
    times: int = 0
    warned: bool = False


class RetryLog:
    """The retried failures of one client, by key: a broker, a partition, an API. Holds one state per failing key.

    ``now`` returns the time in seconds of the network's clock.
    """

    def __init__(self, log: logging.Logger, now: Callable[[], float]) -> None:
        self._log = log
        self._now = now
        self._states: dict[Hashable, _State] = {}

    def failed(self, key: Hashable, error: Exception, *, expected: bool = False) -> None:
        """Log a retried failure, as a warning if it is new or has lasted for a minute.

        ``expected`` failures (such as a moved leader) become warnings after five in a row.
        """
        now, kind = self._now(), (type(error), getattr(error, "error", None))
        state = self._states.get(key)
        if state is None or state.kind != kind:
            state = self._states[key] = _State(kind, now)
        elif now - state.since >= _PERIOD:
            state.since, state.warned = now, False
        state.times += 1
        warns = not state.warned and (not expected or state.times >= _EXPECTED_TIMES)
        state.warned |= warns
        self._log.log(logging.WARNING if warns else logging.DEBUG, "trying again after: %s", error)

    def passed(self, key: Hashable) -> None:
        """Record that a key works again, so that its next failure is new."""
        self._states.pop(key, None)
