"""The plan of a read: its files, offset bounds and splits, and the reader of these.

Defines the options that select data. ``log_rows`` converts parts to rows, and ``log_stream`` reads growing logs.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
from attrs import evolve, frozen
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from kafka_msgs.errors import OptionError
from kafka_msgs.filesystems.location import mask_uri
from kafka_msgs.filesystems.options import FilesystemOptions
from kafka_msgs.filesystems.path_resolution import LogFile, log_files
from kafka_msgs.spark.sources.log_rows import RowOptions, rows_of
from kafka_msgs.spark.sources.offset_options import OffsetBounds, Place
from kafka_msgs.spark.sources.options import PERMISSIVE, READ_COMMITTED, Options
from kafka_msgs.spark.sources.remote_storage import RemoteStorageOptions
from kafka_msgs.spark.sources.splits import (
    FilePart,
    last_files,
    selected_parts,
    splits_of,
    truncated_tails,
    with_transactions,
)

__all__ = ["LogReader", "ReadPlan"]

_SPLIT_BYTES: Final = 32 * 2**20
_LOG: Final = logging.getLogger("kafka_msgs.spark")


@frozen(kw_only=True)
class ReadPlan:
    """The files to read, and their splits."""

    source: str
    paths: tuple[str, ...]
    split_bytes: int
    committed: bool
    reports_truncated_tails: bool
    """Whether a truncated last batch becomes a row. If not, the driver logs a warning."""
    topic: str | None
    """The topic to read, in addition to files whose directory is not named after a topic; None for all topics."""
    topics: tuple[str, ...] | None
    partitions: tuple[int, ...] | None
    """The topics and partition numbers to read from the paths; None for all."""
    bounds: OffsetBounds
    fs_options: FilesystemOptions
    """The filesystem options."""
    tier: RemoteStorageOptions | None
    """The options of remote storage; None for broker files."""

    @classmethod
    def of(cls, options: Options, topic: str | None = None) -> ReadPlan:
        """Return the plan from the options of a source. Raises ``OptionError``."""
        return cls(
            source=options.source,
            paths=options.paths(),
            split_bytes=options.size("splitBytes", _SPLIT_BYTES),
            committed=options.isolation() == READ_COMMITTED,
            reports_truncated_tails=options.mode() == PERMISSIVE,
            topic=topic,
            topics=None if topic else options.names("topics"),
            partitions=options.numbers("partitions"),
            bounds=OffsetBounds.of(options),
            fs_options=options.settings(),
            tier=RemoteStorageOptions.of(options),
        )

    def splits(self) -> list[tuple[FilePart, ...]]:
        """Return the parts of a table; raises ``OptionError`` and ``OSError``."""
        self.bounds.check_table(self.source)
        files = self.files()
        self.check_places(files)
        return self.splits_in(files)

    def splits_in(self, listed: Iterable[LogFile]) -> list[tuple[FilePart, ...]]:
        """Return the parts of listed files. Raises ``OSError``."""
        files = [file for file in listed if file.size]
        parts = list(selected_parts(files, self.bounds, self.split_bytes))
        if not self.reports_truncated_tails:
            last = last_files(files)
            parts = [evolve(part, may_be_cut=part.file in last) for part in parts]
            for error in truncated_tails(part for part in parts if part.may_be_cut):
                _LOG.warning("%s", error)
        return splits_of(with_transactions(parts, files) if self.committed else parts, self.split_bytes)

    def files(self) -> list[LogFile]:
        """Return the existing files. Raises ``OptionError`` and ``OSError``."""
        own = [file for file in self._listed() if self.topic is None or file.topic in (None, self.topic)]
        if not own:
            raise self._missing(f"segment of {self.topic}")
        for attribute, wanted in (("topic", self.topics), ("partition", self.partitions)):
            if wanted is not None:
                own = [file for file in own if getattr(file, attribute) in wanted]
                absent = set(wanted) - {getattr(file, attribute) for file in own}
                if absent:
                    raise self._missing(f"{attribute} {sorted(absent, key=str)[0]}")
        return own

    def _listed(self) -> list[LogFile]:
        if self.tier is None:
            return log_files(self.source, self.paths, fs_options=self.fs_options)
        return self.tier.files(self.paths, self._selects)

    def _selects(self, place: Place) -> bool:
        topics = (self.topic,) if self.topic else self.topics
        return (topics is None or place[0] in topics) and (self.partitions is None or place[1] in self.partitions)

    def check_places(self, files: Iterable[LogFile]) -> None:
        """Raise ``OptionError`` for a partition in the options without a file."""
        self.bounds.check_places(self.source, {(file.topic, file.partition) for file in files})

    def _missing(self, what: str) -> OptionError:
        reason = f"there is no {what}"
        return OptionError(source=self.source, option="path", value=", ".join(map(mask_uri, self.paths)), reason=reason)


class LogReader(DataSourceReader):
    """Reads the parts of a plan."""

    def __init__(self, plan: ReadPlan, reading: RowOptions, schema: StructType | None = None) -> None:
        self.plan = plan
        self.reading = reading
        self.schema = schema or reading.schema

    def __getstate__(self) -> dict[str, Any]:
        """Omit the plan, because its paths may be a list of all logs, and tasks have their own parts."""
        return self.__dict__ | {"plan": None}

    def partitions(self) -> Sequence[InputPartition]:
        """Return the splits."""
        return [InputPartition(split) for split in self.plan.splits()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split. Without files, Spark passes None as the partition."""
        for part in partition.value or ():
            yield from self.rows(part)

    def rows(self, part: FilePart) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part."""
        return rows_of(part, self.reading)
