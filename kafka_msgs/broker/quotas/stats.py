"""Usage over time: a rate over samples, and a token bucket. Times are in milliseconds.

The arithmetic matches Kafka's ``Rate`` and ``TokenBucket`` (``org.apache.kafka.common.metrics.stats``).
"""

from __future__ import annotations

from math import floor, isnan
from typing import Final, Protocol

from attrs import define, frozen

__all__ = ["LONGEST", "Rate", "Stat", "TokenBucket", "Window"]

_SECOND: Final = 1000
LONGEST: Final = 2**31 - 1
"""The maximum throttle time in milliseconds that a response can contain."""


@frozen
class Window:
    """A sampling window: ``samples`` samples of ``ms`` milliseconds each."""

    samples: int
    ms: int


class Stat(Protocol):
    """A usage statistic of a resource."""

    def record(self, value: float, now: int, window: Window, limit: float) -> None:
        """Record usage."""

    def delay(self, now: int, window: Window, limit: float) -> float:
        """Return the milliseconds until the usage is within the limit (per second); 0 if it is."""


@define
class _Sample:
    started_at: int
    last_at: int
    value: float = 0.0

    def reset(self, now: int) -> None:
        self.started_at = self.last_at = now
        self.value = 0.0


class Rate:
    """The usage per second, over all unexpired samples."""

    __slots__ = ("_current", "_samples")

    def __init__(self) -> None:
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, value: float, now: int, window: Window, limit: float) -> None:
        """Add to the current sample, or to a new one after its end. A negative value subtracts."""
        if not self._samples:
            self._samples.append(_Sample(now, now))
        elif now - self._samples[self._current].started_at >= window.ms:
            self._advance(now, window)
        sample = self._samples[self._current]
        sample.value += value
        sample.last_at = now

    def _advance(self, now: int, window: Window) -> None:
        # One more sample than the window has, because it may overlap the start of the window.
        self._current = (self._current + 1) % (window.samples + 1)
        if self._current == len(self._samples):
            self._samples.append(_Sample(now, now))
        else:
            self._samples[self._current].reset(now)

    def delay(self, now: int, window: Window, limit: float) -> float:
        """Return the milliseconds without usage until the rate falls to the limit."""
        span = self._span(now, window)
        value = sum(sample.value for sample in self._samples) / (span / _SECOND)
        return 0.0 if value <= limit else (value - limit) / limit * span

    def _span(self, now: int, window: Window) -> int:
        """Return the time span of the samples in milliseconds: at least all windows except the current one."""
        for sample in self._samples:
            if now - sample.last_at >= window.samples * window.ms:
                sample.reset(now)
        elapsed = now - min((sample.started_at for sample in self._samples), default=now)
        missing = window.samples - 1 - int(elapsed / window.ms)
        return max(elapsed + max(missing, 0) * window.ms, 1)


class TokenBucket:
    """A bucket whose tokens are refilled at the rate of the limit. It may be overdrawn."""

    __slots__ = ("_tokens", "_updated_at")

    def __init__(self) -> None:
        self._tokens = 0.0
        self._updated_at = 0

    def record(self, value: float, now: int, window: Window, limit: float) -> None:
        """Take tokens."""
        full = self._refill(now, window, limit)
        self._tokens = min(full, self._tokens - value)

    def delay(self, now: int, window: Window, limit: float) -> float:
        """Return the milliseconds until the bucket is no longer overdrawn."""
        self._refill(now, window, limit)
        return -self._tokens / limit * _SECOND if self._tokens < 0 else 0.0

    def _refill(self, now: int, window: Window, limit: float) -> float:
        full = window.samples * (window.ms / _SECOND) * limit
        self._tokens = min(full, self._tokens + limit * ((now - self._updated_at) / _SECOND))
        self._updated_at = now
        return full


def whole_ms(delay: float, longest: int = LONGEST) -> int:
    """Return a delay as an integer for responses: rounded, and at most ``longest``."""
    if isnan(delay):
        return 0
    return floor(delay + 0.5) if delay < longest else longest
