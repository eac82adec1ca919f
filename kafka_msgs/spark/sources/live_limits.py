"""The limits of ``kafka-live``: the offsets of a micro-batch, the delay of a small one, and the offsets of a task.

The options have the names and meanings of Spark's own source ``kafka``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from attrs import frozen
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, ReadMinRows

from kafka_msgs.client import TopicPartition
from kafka_msgs.spark.sources.options import Options

__all__ = ["LiveOffsetRange", "TaskLimits", "TriggerLimits"]

_DURATION: Final = re.compile(r"([0-9]{1,12})\s*(us|ms|s|min|m|h|d|)", re.IGNORECASE)
_SECONDS: Final = {"us": 1e-6, "ms": 1e-3, "": 1e-3, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}
"""The units of a duration in seconds. As in Spark, a number without a unit is in milliseconds."""
_DELAY: Final = 900.0


@frozen
class LiveOffsetRange:
    """The input of one task: the records of a partition from offset ``start`` to before ``end``."""

    place: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        """The number of offsets."""
        return self.end - self.start

    def parts(self, count: int) -> Iterator[LiveOffsetRange]:
        """Yield ``count`` ranges of about equal sizes."""
        cuts = [self.start + self.size * number // count for number in range(count + 1)]
        yield from (LiveOffsetRange(self.place, *pair) for pair in pairwise(cuts))


@frozen(kw_only=True)
class TaskLimits:
    """The least number of tasks, and the largest number of offsets in a task; None without a limit."""

    min_partitions: int | None
    max_records: int | None

    @classmethod
    def of(cls, options: Options) -> TaskLimits:
        """Parse the options. Raises ``OptionError``."""
        return cls(
            min_partitions=options.count("minPartitions", 0) or None,
            max_records=options.count("maxRecordsPerPartition", 0) or None,
        )

    def split(self, ranges: Sequence[LiveOffsetRange]) -> list[LiveOffsetRange]:
        """Return the ranges of tasks. There are fewer tasks than ``min_partitions`` only if each has one offset."""
        sizes = [each.size for each in ranges]
        step = _largest_step(sizes, self.min_partitions or 0)
        step = min(step, self.max_records or step)
        return [part for each in ranges for part in each.parts(-(-each.size // step))]


def _largest_step(sizes: Sequence[int], count: int) -> int:
    """Return the largest number of offsets in a task that results in at least ``count`` tasks, or else 1."""
    low, high = 1, max(sizes, default=1)
    while low < high:
        middle = (low + high + 1) // 2
        if sum(-(-size // middle) for size in sizes) >= count:
            low = middle
        else:
            high = middle - 1
    return low


@frozen(kw_only=True)
class TriggerLimits:
    """The least and the largest number of offsets in a micro-batch; None without a limit.

    A batch with fewer offsets than ``min_offsets`` waits, at most ``max_delay`` seconds after the previous one.
    """

    min_offsets: int | None
    max_offsets: int | None
    max_delay: float

    @classmethod
    def of(cls, options: Options) -> TriggerLimits:
        """Parse the options. Raises ``OptionError``."""
        least = options.count("minOffsetsPerTrigger", 0) or None
        most = options.count("maxOffsetsPerTrigger", 0) or None
        delay = options.text("maxTriggerDelay")
        if least is not None and most is not None and least > most:
            options.refuse("minOffsetsPerTrigger", f"it is more than maxOffsetsPerTrigger, {most}")
        if least is None and delay is not None:
            options.refuse("maxTriggerDelay", "it has no effect without minOffsetsPerTrigger")
        return cls(
            min_offsets=least, max_offsets=most, max_delay=_DELAY if delay is None else _duration(options, delay)
        )

    @property
    def read_limit(self) -> ReadLimit:
        """The limit for Spark, which has only one."""
        if self.max_offsets is not None:
            return ReadMaxRows(self.max_offsets)
        return ReadAllAvailable() if self.min_offsets is None else ReadMinRows(self.min_offsets)

    def delays(self, offsets: int, seconds: float) -> bool:
        """Return whether a batch of some offsets waits, ``seconds`` after the previous one."""
        return self.min_offsets is not None and offsets < self.min_offsets and seconds < self.max_delay


def _duration(options: Options, text: str) -> float:
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        options.refuse("maxTriggerDelay", "a duration such as 30s or 15m is needed")
    return int(match[1]) * _SECONDS[match[2].lower()]
