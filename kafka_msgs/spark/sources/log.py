"""The data source ``kafka-log``: the segments of partitions as a table, one row per record.

Owns the options that choose the content of rows, which the sources of internal topics share. What is read is left to
``plans``, how a part becomes rows to ``rows``, and streams to ``log_stream``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import evolve
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from kafka_msgs.records import DEFAULT_READ_OPTIONS, ReadOptions
from kafka_msgs.spark.sources.log_stream import Following, LogStreamReader
from kafka_msgs.spark.sources.options import MODES, PERMISSIVE, Options
from kafka_msgs.spark.sources.plans import LogReader, Plan
from kafka_msgs.spark.sources.rows import Decoded, Reading, log_columns
from kafka_msgs.spark.types import message_of

__all__ = ["KafkaLogSource", "decoded_columns", "log_reading", "reading_of", "selected_columns"]


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
        self._following = Following.of(given)
        given.done()

    @classmethod
    def name(cls) -> str:
        """Return the name of the source."""
        return "kafka-log"

    def schema(self) -> StructType:
        """Return the columns."""
        return self._reading.schema

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a table."""
        return LogReader(self._plan, self._reading)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return the reader of a stream."""
        return LogStreamReader(LogReader(self._plan, self._reading), self._following)


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
