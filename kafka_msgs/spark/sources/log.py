"""The data source ``kafka-log``: the segments of partitions as a table, one row per record.

Defines the options that choose the content of rows, which the sources of internal topics share. ``read_plan`` selects
the data, ``log_rows`` converts parts to rows, ``log_stream`` implements streams, and ``log_writing`` writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from attrs import evolve
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, DataSourceWriter
from pyspark.sql.types import StructType

from kafka_msgs.filesystems.options import NO_OPTIONS, FilesystemOptions
from kafka_msgs.records import DEFAULT_READ_OPTIONS, ReadOptions
from kafka_msgs.spark.sources.catalog_tables import restore_options, store_options
from kafka_msgs.spark.sources.log_rows import DecodedColumnSpec, RowOptions, log_columns
from kafka_msgs.spark.sources.log_stream import LogStreamReader, StreamOptions
from kafka_msgs.spark.sources.log_writing import LogSinkOptions, LogWriter
from kafka_msgs.spark.sources.options import MODES, PERMISSIVE, Options, check_schema
from kafka_msgs.spark.sources.read_plan import FilterObserver, LogReader, ReadPlan
from kafka_msgs.spark.spark_types import resolve_message

__all__ = ["KafkaLogSource", "decoded_columns", "log_reading", "reading_of", "selected_columns"]


def log_reading(options: Options) -> RowOptions:
    """Return the row options from the options of ``kafka-log``. Also raises ``UnknownNameError``."""
    columns, decoded = selected_columns(options.names("columns"), list(decoded_columns(options)))
    return reading_of(options, columns, decoded)


def reading_of(
    options: Options, columns: Sequence[str] | None, decoded: Sequence[DecodedColumnSpec] = ()
) -> RowOptions:
    """Return the row options from the options of a source. Raises ``OptionError`` and ``UnknownColumnError``."""
    mode = options.choice("mode", MODES, PERMISSIVE)
    return RowOptions(
        columns=log_columns(columns, decoded, mode),
        decoded=tuple(decoded),
        mode=mode,
        control=options.flag("control", False),
        options=ReadOptions(
            check_crc=options.flag("checkCrc", DEFAULT_READ_OPTIONS.check_crc),
            max_decompressed_bytes=options.size("maxDecompressed", DEFAULT_READ_OPTIONS.max_decompressed_bytes),
            max_elements=options.count("maxElements", DEFAULT_READ_OPTIONS.max_elements),
        ),
    )


class KafkaLogSource(DataSource):
    """The data source ``kafka-log``; the documentation of Spark sources describes its options and columns."""

    fs_options: ClassVar[FilesystemOptions] = NO_OPTIONS
    """The filesystem options of the session."""
    pushes_filters: ClassVar[bool] = False
    """Whether the session passes filters to sources. Spark refuses readers with ``pushFilters`` if it does not."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = dict(options)

    @classmethod
    def name(cls) -> str:
        """Return the name of the source."""
        return "kafka-log"

    def schema(self) -> StructType:
        """Return the columns."""
        reader, _ = self._read(StructType())
        return store_options(reader.reading.schema, self._options)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a table."""
        reader, _ = self._read(schema)
        return FilterObserver(reader.plan, reader.reading) if self.pushes_filters else reader

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return the reader of a stream."""
        return LogStreamReader(*self._read(schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of a table. The mode append adds partitions; the mode overwrite also replaces them."""
        options = Options(self.name(), self._options)
        writing = LogSinkOptions.of(options, schema, overwrite=overwrite)
        options.done()
        return LogWriter(writing)

    def _read(self, schema: StructType) -> tuple[LogReader, StreamOptions]:
        options = Options(self.name(), restore_options(schema, self._options), self.fs_options)
        found = LogReader(ReadPlan.of(self.name(), options), log_reading(options)), StreamOptions.of(options)
        options.done()
        check_schema(self.name(), schema, found[0].reading.schema)
        return found


def decoded_columns(options: Options) -> Iterator[DecodedColumnSpec]:
    """Yield the columns decoded from keys and values that the options of a source request."""
    for name, message, version in (
        ("decodedKey", options.text("keyMessage"), options.version("keyVersion")),
        ("decodedValue", options.text("valueMessage", options.text("message")), options.version("valueVersion")),
    ):
        if message is not None:
            yield DecodedColumnSpec(name, resolve_message(message), version)


def selected_columns(
    columns: tuple[str, ...] | None, decoded: Sequence[DecodedColumnSpec]
) -> tuple[tuple[str, ...] | None, list[DecodedColumnSpec]]:
    """Return the columns and their decoded fields. Requested columns may be nested (``decodedValue.offset``)."""
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
