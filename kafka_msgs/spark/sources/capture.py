"""The data source ``kafka-capture``: captured network traffic as a table, one row per exchange.

Defines the column types, and the handling of faults in each mode. Each file is one split, because the meaning of a
packet depends on earlier packets. ``kafka_msgs.capture`` reads the files, and ``analysis.capture_stats`` defines the
columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kafka_msgs.analysis.capture_stats import ALL_COLUMNS, FAULT_COLUMNS, capture_row
from kafka_msgs.capture import DEFAULT_PORTS, CaptureFault, Exchange, FaultKind, read_exchanges
from kafka_msgs.errors import CaptureError
from kafka_msgs.filesystems.path_resolution import CAPTURES, GONE, LogFile, local_copy, log_files
from kafka_msgs.spark.sources.options import FAILFAST, PERMISSIVE, Options, OptionSource
from kafka_msgs.spark.spark_types import arrow_schema

__all__ = ["KafkaCaptureSource"]

_ROWS: Final = 4096
_BYTES: Final = 2**24
"""The number of rows, or bytes of payloads, passed to Spark at a time."""
_ANY_PORT: Final = "any"
_TEXT: Final = StringType()
_TYPES: Final[Mapping[str, DataType]] = {
    **dict.fromkeys(("connection", "requestAtUs", "responseAtUs", "latencyUs", "_errorBytes"), LongType()),
    **dict.fromkeys(("clientPort", "serverPort", "apiKey", "version", "correlationId"), IntegerType()),
    **dict.fromkeys(("requestSize", "responseSize", "throttleMs"), IntegerType()),
    **dict.fromkeys(("requestAt", "responseAt"), TimestampType()),
    **dict.fromkeys(("request", "response"), BinaryType()),
    "errors": ArrayType(StructType().add("path", _TEXT).add("code", IntegerType()).add("name", _TEXT)),
}
"""The types of columns other than texts."""
_ON_REQUEST: Final = frozenset({"requestAtUs", "responseAtUs", "throttleMs", "clientSoftware"})
"""Columns that are read only if requested: numeric times, and values that only some exchanges have."""


class CaptureReader(DataSourceReader):
    """Reads captures, one task per file. Raises ``OptionError`` and ``UnknownColumnError``."""

    def __init__(self, options: Options) -> None:
        self._source = options.source
        self._paths, self._fs_options = options.paths(), options.settings()
        self._mode = options.mode()
        self._ports = _ports(options)
        known = [name for name in ALL_COLUMNS if self._mode == PERMISSIVE or name not in FAULT_COLUMNS]
        chosen = options.columns(known, set(known) - _ON_REQUEST)
        self.schema = StructType([StructField(name, _TYPES.get(name, _TEXT)) for name in chosen])

    def partitions(self) -> Sequence[InputPartition]:
        """Return the files."""
        return [InputPartition(file) for file in log_files(self._source, self._paths, CAPTURES, self._fs_options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file. Without files, Spark passes None as the partition."""
        file: LogFile | None = partition.value
        if file is None:
            return
        schema = arrow_schema(self.schema)
        for some in _portions(self._kept(_items(file, self._ports), file.name)):
            yield pa.RecordBatch.from_pylist([capture_row(file.name, item, schema.names) for item in some], schema)

    def _kept(self, items: Iterable[Exchange | CaptureFault], file: str) -> Iterator[Exchange | CaptureFault]:
        """Handle faults according to the mode; raises ``CaptureError`` in the mode ``FAILFAST``."""
        for item in items:
            if self._mode == PERMISSIVE or isinstance(item, Exchange):
                yield item
            elif self._mode == FAILFAST and item.kind.is_damage:
                raise CaptureError(file=file, packet=item.packet, reason=str(item))


class KafkaCaptureSource(OptionSource):
    """The data source ``kafka-capture``; the documentation of captures describes its options and columns."""

    label = "kafka-capture"
    reader_type = CaptureReader


def _ports(options: Options) -> tuple[int, ...] | None:
    given = options.names("ports")
    if given is None or given == (_ANY_PORT,):
        return DEFAULT_PORTS if given is None else None
    if not all(each.isdecimal() and 0 < int(each) < 2**16 for each in given):
        options.refuse("ports", f"ports or {_ANY_PORT} are needed")
    return tuple(map(int, given))


def _items(file: LogFile, ports: tuple[int, ...] | None) -> Iterator[Exchange | CaptureFault]:
    """Yield the exchanges and faults in a file. A file that no longer exists counts as damage."""
    try:
        with local_copy(file) as (path, _):
            yield from read_exchanges(path, ports=ports)
    except FileNotFoundError:
        yield CaptureFault(kind=FaultKind.FILE, reason=GONE, size=file.size)


def _portions(items: Iterable[Exchange | CaptureFault]) -> Iterator[list[Exchange | CaptureFault]]:
    """Yield items in lists that are small enough to pass to Spark."""
    some: list[Exchange | CaptureFault] = []
    held = 0
    for item in items:
        some.append(item)
        if isinstance(item, Exchange):
            held += len(item.request.payload) + (len(item.response.payload) if item.response else 0)
        if len(some) >= _ROWS or held >= _BYTES:
            yield some
            some, held = [], 0
    if some:
        yield some
