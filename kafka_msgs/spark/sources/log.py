"""The data source ``kafka-log``: the segments of partitions as a table, one row per record.

Defines the options that choose the content of rows, which the sources of internal topics share. ``read_plan`` selects
the data, ``log_rows`` converts parts to rows, ``log_stream`` implements streams, and ``log_writing`` writes.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Final

from attrs import evolve
from pyspark.sql.datasource import DataSourceStreamReader, DataSourceWriter, Filter, Not
from pyspark.sql.types import StructType

from kafka_msgs.columns.log_table import DEFAULT_COLUMNS, FROM_RECORDS, select_columns
from kafka_msgs.records import DEFAULT_READ_OPTIONS, ReadOptions
from kafka_msgs.spark.sources.log_rows import DecodedColumnSpec, RowOptions
from kafka_msgs.spark.sources.log_stream import LogStreamReader, stream_options
from kafka_msgs.spark.sources.log_writing import LogWriter
from kafka_msgs.spark.sources.options import PERMISSIVE, Options, OptionSource
from kafka_msgs.spark.sources.read_plan import LogReader, ReadPlan
from kafka_msgs.spark.spark_types import ERROR, resolve_message

__all__ = ["FileSource", "KafkaLogSource", "ObservedLogSource", "decoded_rows", "log_reading"]

_LOG: Final = logging.getLogger("kafka_msgs.spark")


def log_reading(options: Options, columns: Sequence[str] | None = None) -> RowOptions:
    """Return the row options from the options of ``kafka-log``. Raises the errors of ``decoded_rows``."""
    usual = DEFAULT_READ_OPTIONS
    return evolve(
        decoded_rows(options, columns),
        control=options.flag("control", False),
        options=ReadOptions(
            check_crc=options.flag("checkCrc", usual.check_crc),
            max_decompressed_bytes=options.size("maxDecompressed", usual.max_decompressed_bytes),
            max_elements=options.count("maxElements") or usual.max_elements,
        ),
    )


def decoded_rows(
    options: Options, columns: Sequence[str] | None = None, *, without: Collection[str] = ()
) -> RowOptions:
    """Return the columns, their decoding and the mode from the options of a source, or with given ``columns``.

    Requested columns may be nested (``decodedValue.offset``); given ones are not decoded. ``without`` contains columns
    that the source does not support. Raises ``OptionError``, ``UnknownNameError`` and ``UnknownColumnError``.
    """
    mode, asked = options.mode(), columns or options.names("columns")
    decoded = [_with_paths(each, asked or ()) for each in (_decoded_columns(options) if columns is None else ())]
    names = [each.name for each in decoded]
    if asked is not None:
        asked = [head if (head := name.partition(".")[0]) in names else name for name in asked]
    own = ["topic", "partition", *FROM_RECORDS, *names, "file", *([ERROR] if mode == PERMISSIVE else [])]
    own = [name for name in own if name not in without]
    chosen = select_columns(options.source, own, asked, DEFAULT_COLUMNS.union(names))
    return RowOptions(columns=chosen, decoded=tuple(decoded), mode=mode)


def _decoded_columns(options: Options) -> Iterator[DecodedColumnSpec]:
    """Yield the columns decoded from keys and values that the options of a source request."""
    for part, message in (("key", None), ("value", options.text("message"))):
        name, version = options.text(f"{part}Message", message), options.version(f"{part}Version")
        if name is not None:
            yield DecodedColumnSpec(f"decoded{part.title()}", part, resolve_message(name), version)


def _with_paths(decoded: DecodedColumnSpec, asked: Sequence[str]) -> DecodedColumnSpec:
    """Return a decoded column with only the requested fields, or with all if the column itself is requested."""
    start = f"{decoded.name}."
    paths = tuple(name.removeprefix(start) for name in asked if name.startswith(start))
    return evolve(decoded, columns=paths) if paths and decoded.name not in asked else decoded


class KafkaLogReader(LogReader):
    """Reads the rows of ``kafka-log``. Raises the errors of wrong options."""

    def __init__(self, options: Options) -> None:
        super().__init__(ReadPlan.of(options), log_reading(options))


class FilterObserver(KafkaLogReader):
    """Reads the parts of a plan, and logs a warning for filters that options could apply before reading.

    It leaves all filters to Spark, whose plan of a DataFrame has the files for one set of filters: another use of the
    DataFrame in the same query would get the rows of the wrong filter.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Return all filters."""
        columns = {name for each in filters for name in _columns_of(each)}
        for column, option in (("topic", "topics"), ("partition", "partitions")):
            if column in columns and getattr(self.plan, option) is None:
                text = "%s reads all files for a filter on %s; select them with the option %s"
                _LOG.warning(text, self.plan.source, column, option)
        return filters


def _columns_of(given: Filter) -> tuple[str, ...]:
    child = given.child if isinstance(given, Not) else given
    return tuple(getattr(child, "attribute", ()))[:1]


class FileSource(OptionSource):
    """A data source over log files, as a table and as a stream."""

    def table(self, options: Options) -> Any:
        """Return the reader of a table, which accepts the options of streams."""
        stream_options(options)
        return super().table(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return the reader of a stream."""
        found: DataSourceStreamReader = self._read(
            lambda options: LogStreamReader(self.reader_type(options), *stream_options(options)), schema
        )
        return found


class KafkaLogSource(FileSource):
    """The data source ``kafka-log``; the documentation of Spark sources describes its options and columns."""

    label = "kafka-log"
    reader_type: ClassVar = KafkaLogReader

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of a table. The mode append adds partitions; the mode overwrite also replaces them."""
        return self._parsed(lambda options: LogWriter(options, schema, overwrite=overwrite)).begin()


class ObservedLogSource(KafkaLogSource):
    """The same source for a session that passes filters. Without this, Spark refuses readers with ``pushFilters``."""

    reader_type = FilterObserver
