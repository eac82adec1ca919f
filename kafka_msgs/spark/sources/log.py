"""The data source ``kafka-log``: the segments of partitions as a table, one row per record.

Owns the options and the plan of a read, which the sources of internal topics share. How a part becomes rows is left to
``rows``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa
from attrs import evolve, field, frozen
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from kafka_msgs.errors import OptionError
from kafka_msgs.records import DEFAULT_READ_OPTIONS, ReadOptions
from kafka_msgs.spark.sources.files import LogFile, log_files
from kafka_msgs.spark.sources.options import MODES, PERMISSIVE, Options
from kafka_msgs.spark.sources.pruning import Bounds
from kafka_msgs.spark.sources.rows import Decoded, Reading, log_columns, rows_of
from kafka_msgs.spark.sources.splits import Part, cut_tails, last_files, parts_of, splits_of, with_transactions
from kafka_msgs.spark.types import message_of

__all__ = [
    "KafkaLogSource",
    "LogReader",
    "Plan",
    "decoded_columns",
    "log_reading",
    "reading_of",
    "selected_columns",
]

_SPLIT_BYTES: Final = 32 * 2**20
_UNCOMMITTED: Final = "read_uncommitted"
_COMMITTED: Final = "read_committed"
_LOG: Final = logging.getLogger("kafka_msgs.spark")


@frozen(kw_only=True)
class Plan:
    """Which files are read, and in what portions."""

    source: str
    paths: tuple[str, ...]
    split_bytes: int
    committed: bool
    reports_cut_tails: bool
    """Whether a last batch that is not whole becomes a row; if not, the driver warns of it."""
    topic: str | None = None
    """The one topic that is read, and files whose directory is not named after a topic; None for all topics."""
    topics: tuple[str, ...] | None = None
    partitions: tuple[int, ...] | None = None
    """What is read of the paths; None for everything."""
    bounds: Bounds = field(factory=Bounds)

    @classmethod
    def of(cls, source: str, options: Options, topic: str | None = None) -> Plan:
        """Return the plan that the options of a source ask for; raises ``OptionError``."""
        return cls(
            source=source,
            paths=options.paths(),
            split_bytes=options.size("splitBytes", _SPLIT_BYTES),
            committed=options.choice("isolation", (_UNCOMMITTED, _COMMITTED), _UNCOMMITTED) == _COMMITTED,
            reports_cut_tails=options.choice("mode", MODES, PERMISSIVE) == PERMISSIVE,
            topic=topic,
            topics=None if topic else options.names("topics"),
            partitions=options.numbers("partitions"),
            bounds=Bounds.of(options),
        )

    def splits(self) -> list[tuple[Part, ...]]:
        """Return the parts of the files; raises ``OptionError`` and ``OSError``."""
        files = [file for file in self._files() if file.size]
        parts = [part for each in self.bounds.stretches(files) for part in parts_of(each, self.split_bytes)]
        if not self.reports_cut_tails:
            last = last_files(files)
            parts = [evolve(part, may_be_cut=part.file in last) for part in parts]
            for error in cut_tails(part for part in parts if part.may_be_cut):
                _LOG.warning("%s", error)
        return splits_of(with_transactions(parts) if self.committed else parts, self.split_bytes)

    def _files(self) -> list[LogFile]:
        files = log_files(self.source, self.paths)
        own = [file for file in files if self.topic is None or file.topic in (None, self.topic)]
        if not own:
            raise self._missing(f"segment of {self.topic}")
        for attribute, wanted in (("topic", self.topics), ("partition", self.partitions)):
            if wanted is not None:
                own = [file for file in own if getattr(file, attribute) in wanted]
                absent = set(wanted) - {getattr(file, attribute) for file in own}
                if absent:
                    raise self._missing(f"{attribute} {sorted(absent, key=str)[0]}")
        there = {(file.topic, file.partition) for file in own}
        for option, topic, number in self.bounds.places():
            if (topic, number) not in there:
                reason = f"there is no partition {topic}-{number}"
                raise OptionError(source=self.source, option=option, value=None, reason=reason)
        return own

    def _missing(self, what: str) -> OptionError:
        reason = f"there is no {what}"
        return OptionError(source=self.source, option="path", value=", ".join(self.paths), reason=reason)


def log_reading(options: Options) -> Reading:
    """Return how parts are read by the options of ``kafka-log``; raises ``UnknownNameError``, too."""
    columns, decoded = selected_columns(options.names("columns"), list(decoded_columns(options)))
    return reading_of(options, columns, decoded)


def reading_of(options: Options, columns: Sequence[str] | None, decoded: Sequence[Decoded] = ()) -> Reading:
    """Return how parts are read by the options of a source; raises ``OptionError`` and ``UnknownColumnError``."""
    mode = options.choice("mode", MODES, PERMISSIVE)
    return Reading(
        columns=log_columns(columns, decoded, mode),
        decoded=tuple(decoded),
        mode=mode,
        control=options.flag("control", False),
        options=ReadOptions(
            check_crc=options.flag("checkCrc", DEFAULT_READ_OPTIONS.check_crc),
            max_decompressed=options.size("maxDecompressed", DEFAULT_READ_OPTIONS.max_decompressed),
            max_elements=options.count("maxElements", DEFAULT_READ_OPTIONS.max_elements),
        ),
    )


class KafkaLogSource(DataSource):
    """The data source ``kafka-log``; the documentation of Spark sources describes its options and columns."""

    def __init__(self, options: Mapping[str, str]) -> None:
        given = Options(self.name(), options)
        self._plan = Plan.of(self.name(), given)
        self._reading = log_reading(given)
        given.done()

    @classmethod
    def name(cls) -> str:
        """Return the name of the source."""
        return "kafka-log"

    def schema(self) -> StructType:
        """Return the columns."""
        return self._reading.schema

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader."""
        return LogReader(self._plan, self._reading)


class LogReader(DataSourceReader):
    """Reads the parts of a plan."""

    def __init__(self, plan: Plan, reading: Reading) -> None:
        self.plan = plan
        self.reading = reading

    def partitions(self) -> Sequence[InputPartition]:
        """Return the splits."""
        return [InputPartition(split) for split in self.plan.splits()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split; without files Spark asks for one that is None."""
        for part in partition.value or ():
            yield from self.rows(part)

    def rows(self, part: Part) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part."""
        return rows_of(part, self.reading)


def decoded_columns(options: Options) -> Iterator[Decoded]:
    """Yield the columns that are made of keys and values, as the options of a source ask for them."""
    for name, message, version in (
        ("decodedKey", options.text("keyMessage"), options.version("keyVersion")),
        ("decodedValue", options.text("valueMessage", options.text("message")), options.version("valueVersion")),
    ):
        if message is not None:
            yield Decoded(name, message_of(message), version)


def selected_columns(
    columns: tuple[str, ...] | None, decoded: Sequence[Decoded]
) -> tuple[tuple[str, ...] | None, list[Decoded]]:
    """Return the columns and what is decoded, given columns that may lie inside (``decodedValue.offset``)."""
    if columns is None:
        return None, list(decoded)
    own, inside = list(columns), []
    for each in decoded:
        start = f"{each.name}."
        paths = tuple(name.removeprefix(start) for name in columns if name.startswith(start))
        if paths:
            own = [name for name in own if not name.startswith(start)] + [each.name]
        inside.append(evolve(each, columns=paths) if paths and each.name not in columns else each)
    return tuple(own), inside
