"""The data source ``kafka-live``: topics of running brokers as a table and as a stream, without a jar.

Defines the options, and the reading of tasks: an offset range of one partition. ``live_topics`` determines the start
and end positions, and ``live_writing`` writes. It connects with ``kafka_msgs.client``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from math import inf
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from kafka_msgs.client import ClientConfig, TopicPartition
from kafka_msgs.client.consumer import Consumer
from kafka_msgs.errors import DeadlineError, OffsetPositionError
from kafka_msgs.spark.sources.live_limits import LiveOffsetRange, TaskLimits, TriggerLimits
from kafka_msgs.spark.sources.live_properties import choose, keywords, progress_group
from kafka_msgs.spark.sources.live_topics import LiveSubscription, LiveTopics, Offsets, from_json
from kafka_msgs.spark.sources.live_writing import LiveStreamWriter, LiveWriter
from kafka_msgs.spark.sources.log import decoded_rows
from kafka_msgs.spark.sources.log_rows import RowMaker, RowOptions
from kafka_msgs.spark.sources.offset_options import EARLIEST, LATEST, StartingOffsets, limit_offsets, to_json
from kafka_msgs.spark.sources.options import READ_COMMITTED, Options, OptionSource
from kafka_msgs.spark.sources.splits import OffsetRange

__all__ = ["KafkaLiveSource", "LiveReader", "LiveReading", "LiveStreamReader"]

_NOT_LIVE: Final = ("file", "batchPosition", "control")
"""Columns of ``kafka-log`` that a broker does not provide."""
_LATE: Final = "latest"
_STRATEGIES: Final = ("error", _LATE)
_OF_STREAMS: Final = (
    "minOffsetsPerTrigger", "maxOffsetsPerTrigger", "maxTriggerDelay", "commitOffsets", "groupIdPrefix",
)  # fmt: skip
_OF_TABLES: Final = ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp")
_OF_DRIVERS: Final = ("topics", "_target", "_last_batch")
_PATIENCE: Final = 60.0
"""The seconds that a task waits for records that must exist."""
_ROWS: Final = 65_536


class LiveReading:
    """The read options of the source, and the reading of tasks.

    Raises ``OptionError``, ``UnknownNameError`` and ``UnknownColumnError``.
    """

    def __init__(self, options: Options, *, streaming: bool = False) -> None:
        self.properties = options.properties("kafka.")
        self.group = progress_group(options, self.properties)
        """The group that stores the progress of a stream, or None."""
        self.consumer = keywords(options, self.properties, "consumer")
        """The consumer's keywords among the properties."""
        isolation = choose(options, "isolation", self.consumer.pop("isolation_level", None), options.isolation(), "")
        self.committed = isolation == READ_COMMITTED
        self.subscription = LiveSubscription.of(options)
        self.starting = StartingOffsets.of(options, "starting", LATEST if streaming else EARLIEST)
        self.ending = StartingOffsets.of(options, "ending", LATEST)
        self.skips_late = options.choice("startingOffsetsByTimestampStrategy", _STRATEGIES, _LATE) == _LATE
        """Whether a partition without a record at its starting time starts at its end."""
        self.fails_on_data_loss = options.flag("failOnDataLoss", True)
        self.triggers = TriggerLimits.of(options)
        self.tasks = TaskLimits.of(options)
        self.reading = _reading(options)
        self.schema = self.reading.schema

    def connect(self) -> LiveTopics:
        """Return the driver's connection."""
        return LiveTopics(self.properties, self.subscription, committed=self.committed)

    def ranges(self, start: Offsets, end: Offsets, new: Offsets | None = None) -> list[InputPartition]:
        """Return the offset ranges of tasks between two positions; ``new`` are the starts of added partitions.

        Raises ``OffsetPositionError`` for lost records, unless ``failOnDataLoss`` is false: of deleted partitions, of
        partitions that end before their start, and before the first offset of added ones.
        """
        new = new or {}
        begin = start | new
        lost = {place: "it does not exist any more" for place in start if place not in end}
        lost |= {place: f"it was added, and begins at offset {first}" for place, first in new.items() if first}
        for place, stop in end.items():
            if stop < begin[place]:
                lost[place] = f"it ends at offset {stop}, before offset {begin[place]}"
        if lost and self.fails_on_data_loss:
            place, reason = min(lost.items())
            reason = f"{reason}: records were lost (failOnDataLoss)"
            raise OffsetPositionError(topic=place.topic, partition=place.partition, reason=reason)
        found = [LiveOffsetRange(place, begin[place], end[place]) for place in sorted(end) if begin[place] < end[place]]
        return [InputPartition(each) for each in self.tasks.split(found)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a range. Spark passes None if there is nothing to read.

        Raises ``OffsetPositionError`` if the first offset no longer exists, unless ``failOnDataLoss`` is false.
        """
        part: LiveOffsetRange | None = partition.value
        if part is None:
            return
        maker = RowMaker(self.reading, {"topic": part.place.topic, "partition": part.place.partition})
        columns, wanted = sorted({*maker.sources, "offset"}), OffsetRange(part.start, part.end)
        with self._consumer() as consumer:
            consumer.assign([part.place])
            consumer.seek({part.place: part.start})
            end = part.end
            if not self.fails_on_data_loss:
                # Lost records at the end would be awaited in vain.
                end = min(end, consumer.end_offsets([part.place])[part.place])
            while (before := consumer.position(part.place)) < end:
                table = consumer.poll_table(_PATIENCE, columns=columns, max_records=_ROWS)
                if not table.num_rows and consumer.position(part.place) == before:
                    raise DeadlineError(waiting_for=f"offset {before} of {part.place.topic}-{part.place.partition}")
                yield from (maker.rows(each) for batch in table.to_batches() if (each := wanted.rows(batch)).num_rows)

    def _consumer(self) -> Consumer:
        return Consumer(
            ClientConfig.from_properties(self.properties),
            isolation_level=READ_COMMITTED if self.committed else "read_uncommitted",
            auto_offset_reset="none" if self.fails_on_data_loss else "earliest",
            **self.consumer,
        )


def _reading(options: Options) -> RowOptions:
    headers = options.flag("includeHeaders", True)
    if options.text("columns") is not None and options.text("includeHeaders") is not None:
        options.refuse("includeHeaders", "it has no effect with columns, which may contain headers")
    return decoded_rows(options, without=_NOT_LIVE if headers else (*_NOT_LIVE, "headers"))


class KafkaLiveSource(OptionSource):
    """The data source ``kafka-live``; the documentation of Spark sources describes its options and columns."""

    label = "kafka-live"

    def table(self, options: Options) -> Any:
        """Return the reader of a table."""
        _refuse(options, _OF_STREAMS, "table")
        return LiveReader(options)

    def schema(self) -> StructType:
        """Return the columns."""
        return self._parsed(LiveReader).schema

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return the reader of a stream."""

        def stream(options: Options) -> LiveStreamReader:
            _refuse(options, _OF_TABLES, "stream")
            return LiveStreamReader(options, streaming=True)

        reader: DataSourceStreamReader = self._read(stream, schema)
        return reader

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of a table. Topics are appended to in every mode."""
        return self._parsed(lambda options: LiveWriter(options, schema))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - Spark's name
        """Return the writer of a stream."""
        return self._parsed(lambda options: LiveStreamWriter(options, schema))


def _refuse(options: Options, names: tuple[str, ...], kind: str) -> None:
    for name in names:
        if options.text(name) is not None:
            options.refuse(name, f"it has no effect in a {kind}")


class LiveReader(LiveReading, DataSourceReader):
    """Reads topics up to their current end."""

    def partitions(self) -> Sequence[InputPartition]:
        """Return the ranges."""
        topics = self.connect()
        try:
            start = topics.resolved(self.starting, skips_late=self.skips_late)
            end = topics.resolved(self.ending)
            return self.ranges(start, {place: self._end(place, first, end[place]) for place, first in start.items()})
        finally:
            topics.close()

    def _end(self, place: TopicPartition, start: int, end: int) -> int:
        """Return the end of a range, which may be empty. It is before a given start for which records were lost."""
        is_given = self.starting.offsets.get(place, LATEST) >= 0 and self.ending.at(place) == LATEST
        return end if is_given else max(start, end)


class LiveStreamReader(LiveReading, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads growing topics. Spark's checkpoint stores the offsets, not a consumer group."""

    _target: Offsets | None = None
    _last_batch = -inf

    def __getstate__(self) -> dict[str, Any]:
        """Omit the state of the driver, such as its connection, because tasks open their own."""
        return {name: value for name, value in self.__dict__.items() if name not in _OF_DRIVERS}

    @cached_property
    def topics(self) -> LiveTopics:
        """The driver's connection."""
        return self.connect()

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return the start of a stream without a checkpoint."""
        return to_json(self.topics.resolved(self.starting, skips_late=self.skips_late))

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return the end of the next batch, which is ``start`` for a batch that is delayed."""
        end = self.topics.ends() if self._target is None else self._target
        known = from_json(start)
        begin = known | self.topics.starts(known, end)
        if not isinstance(limit, ReadAllAvailable) and self._delays(begin, end):
            return start
        if isinstance(limit, ReadMaxRows):
            end = limit_offsets(begin, end, limit.max_rows)
        return to_json(end)

    def _delays(self, begin: Offsets, end: Offsets) -> bool:
        """Return whether the next batch is delayed. With ``availableNow`` it is not, because the stream ends then."""
        now, size = time.monotonic(), sum(max(0, stop - begin[place]) for place, stop in end.items())
        if self._target is None and self.triggers.delays(size, now - self._last_batch):
            return True
        self._last_batch = now if size else self._last_batch
        return False

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return the limit of a batch."""
        return self.triggers.read_limit

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Record the current end of the topics as the end of the stream."""
        self._target = self.topics.ends()

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
        """Return the current end of the topics, for the progress of the stream."""
        return to_json(self.topics.ends())

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the ranges of a batch."""
        begin, stop = from_json(start), from_json(end)
        return self.ranges(begin, stop, self.topics.starts(begin, stop))

    def commit(self, end: dict[str, Any]) -> None:
        """Commit the offsets to the group of ``commitOffsets``. The stream itself uses the checkpoint."""
        if self.group is not None:
            self.topics.commit(self.group, from_json(end))

    def stop(self) -> None:
        """Close the driver's connection."""
        if "topics" in self.__dict__:
            self.__dict__.pop("topics").close()
