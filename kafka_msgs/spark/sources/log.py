"""The data source ``kafka-log``: the segments of partitions as a table, one row per record.

Defines the options that choose the content of rows, which the sources of internal topics share. ``read_plan`` selects
the data, ``log_rows`` converts parts to rows, ``log_stream`` implements streams, and ``log_writing`` writes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, ClassVar

from attrs import evolve
from pyspark.sql.datasource import DataSourceStreamReader, DataSourceWriter
from pyspark.sql.types import StructType

from kafka_msgs.records import DEFAULT_READ_OPTIONS, ReadOptions
from kafka_msgs.spark.sources.log_rows import DecodedColumnSpec, RowOptions, log_columns
from kafka_msgs.spark.sources.log_stream import LogStreamReader, StreamOptions
from kafka_msgs.spark.sources.log_writing import LogSinkOptions, LogWriter
from kafka_msgs.spark.sources.options import Options, OptionSource
from kafka_msgs.spark.sources.read_plan import FilterObserver, LogReader, ReadPlan
from kafka_msgs.spark.spark_types import resolve_message

__all__ = ["FileSource", "KafkaLogSource", "decoded_rows", "log_reading", "reading_of"]


def log_reading(options: Options) -> RowOptions:
    """Return the row options from the options of ``kafka-log``. Also raises ``UnknownNameError``."""
    return reading_of(options, decoded_rows(options))


def reading_of(options: Options, rows: RowOptions) -> RowOptions:
    """Return row options with the options for reading batches in files. Raises ``OptionError``."""
    usual = DEFAULT_READ_OPTIONS
    return evolve(
        rows,
        control=options.flag("control", False),
        options=ReadOptions(
            check_crc=options.flag("checkCrc", usual.check_crc),
            max_decompressed_bytes=options.size("maxDecompressed", usual.max_decompressed_bytes),
            max_elements=options.count("maxElements") or usual.max_elements,
        ),
    )


def decoded_rows(options: Options, *, without: Collection[str] = ()) -> RowOptions:
    """Return the columns, their decoding and the mode from the options of a source.

    Requested columns may be nested (``decodedValue.offset``). ``without`` contains columns that the source does not
    support. Raises ``OptionError``, ``UnknownNameError`` and ``UnknownColumnError``.
    """
    mode, asked, decoded = options.mode(), options.names("columns"), list(_decoded_columns(options))
    if asked is not None:
        decoded = [_with_paths(each, asked) for each in decoded]
        names = {each.name for each in decoded}
        asked = tuple(own if (own := name.partition(".")[0]) in names else name for name in asked)
    columns = log_columns(asked, mode, decoded, source=options.source, without=without)
    return RowOptions(columns=columns, decoded=tuple(decoded), mode=mode)


def _decoded_columns(options: Options) -> Iterator[DecodedColumnSpec]:
    """Yield the columns decoded from keys and values that the options of a source request."""
    for name, message, version in (
        ("decodedKey", options.text("keyMessage"), options.version("keyVersion")),
        ("decodedValue", options.text("valueMessage", options.text("message")), options.version("valueVersion")),
    ):
        if message is not None:
            yield DecodedColumnSpec(name, resolve_message(message), version)


def _with_paths(decoded: DecodedColumnSpec, asked: Sequence[str]) -> DecodedColumnSpec:
    """Return a decoded column with only the requested fields, or with all if the column itself is requested."""
    start = f"{decoded.name}."
    paths = tuple(name.removeprefix(start) for name in asked if name.startswith(start))
    return evolve(decoded, columns=paths) if paths and decoded.name not in asked else decoded


class FileSource(OptionSource):
    """A data source over log files, as a table and as a stream."""

    def rows(self, options: Options) -> LogReader:
        """Return the reader of the rows. Raises ``OptionError``."""
        return LogReader(ReadPlan.of(options), log_reading(options))

    def table(self, options: Options) -> Any:
        """Return the reader of a table, which accepts the options of streams."""
        StreamOptions.of(options)
        return self.rows(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return the reader of a stream."""
        found: DataSourceStreamReader = self._read(
            lambda options: LogStreamReader(self.rows(options), StreamOptions.of(options)), schema
        )
        return found


class KafkaLogSource(FileSource):
    """The data source ``kafka-log``; the documentation of Spark sources describes its options and columns."""

    label = "kafka-log"
    pushes_filters: ClassVar[bool] = False
    """Whether the session passes filters to sources. Spark refuses readers with ``pushFilters`` if it does not."""

    def table(self, options: Options) -> Any:
        """Return the reader of a table."""
        reader = super().table(options)
        return FilterObserver(reader.plan, reader.reading) if self.pushes_filters else reader

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of a table. The mode append adds partitions; the mode overwrite also replaces them."""
        return LogWriter(self._parsed(lambda options: LogSinkOptions.of(options, schema, overwrite=overwrite)))
