"""The limits of ``kafka-live``: the offsets of a micro-batch, the delay of a small one, and the offsets of a task.

The options have the names and meanings of Spark's own source ``kafka``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from attrs import frozen
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, ReadMinRows

from kafka_msgs.client import TopicPartition
from kafka_msgs.spark.sources.options import Options

__all__ = ["LiveOffsetRange", "TaskLimits", "TriggerLimits"]

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
        return cls(min_partitions=options.count("minPartitions"), max_records=options.count("maxRecordsPerPartition"))

    def split(self, ranges: Sequence[LiveOffsetRange]) -> list[LiveOffsetRange]:
        """Return the ranges of tasks. There are fewer tasks than ``min_partitions`` only if each has one offset."""
        least, largest = self.min_partitions or 0, max((each.size for each in ranges), default=1)
        # The step is the largest one that results in enough tasks: steps are negated, because bisect needs ascent.
        steps = range(-largest, 0)
        at = bisect_left(steps, least, key=lambda step: sum(-(each.size // step) for each in ranges))
        step = -steps[min(at, len(steps) - 1)]
        step = min(step, self.max_records or step)
        return [part for each in ranges for part in each.parts(-(-each.size // step))]


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
        least, most = options.count("minOffsetsPerTrigger"), options.count("maxOffsetsPerTrigger")
        delay = options.duration("maxTriggerDelay")
        if least is not None and most is not None and least > most:
            options.refuse("minOffsetsPerTrigger", f"it is more than maxOffsetsPerTrigger, {most}")
        if least is None and delay is not None:
            options.refuse("maxTriggerDelay", "it has no effect without minOffsetsPerTrigger")
        return cls(min_offsets=least, max_offsets=most, max_delay=_DELAY if delay is None else delay)

    @property
    def read_limit(self) -> ReadLimit:
        """The limit for Spark, which has only one."""
        if self.max_offsets is not None:
            return ReadMaxRows(self.max_offsets)
        return ReadAllAvailable() if self.min_offsets is None else ReadMinRows(self.min_offsets)

    def delays(self, offsets: int, seconds: float) -> bool:
        """Return whether a batch of some offsets waits, ``seconds`` after the previous one."""
        return self.min_offsets is not None and offsets < self.min_offsets and seconds < self.max_delay
