"""The data source ``kafka-capture``: captured network traffic as a table, one row per exchange.

Defines the columns, and the handling of faults in each mode. Each file is one split, because the meaning of a packet
depends on earlier packets. ``kafka_msgs.capture`` reads the files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

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

from kafka_msgs.capture import DEFAULT_PORTS, CaptureFault, Exchange, FaultKind, read_exchanges
from kafka_msgs.errors import CaptureError
from kafka_msgs.filesystems.path_resolution import CAPTURES, GONE, LogFile, local_copy, log_files
from kafka_msgs.spark.message_json import compact_json
from kafka_msgs.spark.sources.options import FAILFAST, PERMISSIVE, Options, OptionSource
from kafka_msgs.spark.spark_types import ERROR, arrow_schema

__all__ = ["KafkaCaptureSource"]

_ROWS: Final = 4096
_BYTES: Final = 2**24
"""The number of rows, or bytes of payloads, passed to Spark at a time."""
_ANY_PORT: Final = "any"
_INT, _LONG, _TEXT, _TIME, _DATA = IntegerType(), LongType(), StringType(), TimestampType(), BinaryType()
_ERRORS: Final = ArrayType(
    StructType([StructField("path", _TEXT), StructField("code", _INT), StructField("name", _TEXT)])
)

_Columns: TypeAlias = Mapping[str, tuple[DataType, str | Callable[[Any], Any]]]
"""Columns: the type, and the value of an item, as a path of attributes or as a function."""
_BOTH: Final[_Columns] = {
    "connection": (_LONG, "connection.number"),
    "clientHost": (_TEXT, "connection.client.host"),
    "clientPort": (_INT, "connection.client.port"),
    "serverHost": (_TEXT, "connection.server.host"),
    "serverPort": (_INT, "connection.server.port"),
}
_EXCHANGE: Final[_Columns] = {
    "apiKey": (_INT, "api_key"),
    "api": (_TEXT, "api"),
    "version": (_INT, "version"),
    "correlationId": (_INT, "correlation_id"),
    "clientId": (_TEXT, "client_id"),
    "requestAt": (_TIME, "request.time_us"),
    "requestAtUs": (_LONG, "request.time_us"),
    "responseAt": (_TIME, "response.time_us"),
    "responseAtUs": (_LONG, "response.time_us"),
    "latencyUs": (_LONG, "latency_us"),
    "requestSize": (_INT, "request.size"),
    "responseSize": (_INT, "response.size"),
    "errors": (_ERRORS, lambda each: [(error.path, error.code, error.name) for error in each.errors]),
    "throttleMs": (_INT, "throttle_ms"),
    "clientSoftware": (_TEXT, "client_software"),
    "problem": (_TEXT, lambda each: "; ".join(problem.reason for problem in each.problems) or None),
    "requestJson": (_TEXT, lambda each: compact_json(each.request_json)),
    "responseJson": (_TEXT, lambda each: compact_json(each.response_json)),
    "request": (_DATA, "request.payload"),
    "response": (_DATA, "response.payload"),
}
_FAULT: Final[_Columns] = {
    ERROR: (_TEXT, str),
    f"{ERROR}Kind": (_TEXT, "kind.value"),
    f"{ERROR}Bytes": (_LONG, "size"),
}
_FILE: Final = "file"
_COLUMNS: Final[_Columns] = {_FILE: (_TEXT, str), **_BOTH, **_EXCHANGE, **_FAULT}
"""All columns in order."""
_ON_REQUEST: Final = frozenset({"requestAtUs", "responseAtUs", "throttleMs", "clientSoftware"})
"""Columns that are read only if requested: numeric times, and values that only some exchanges have."""


class CaptureReader(DataSourceReader):
    """Reads captures, one task per file. Raises ``OptionError`` and ``UnknownColumnError``."""

    def __init__(self, options: Options) -> None:
        self._source = options.source
        self._paths, self._fs_options = options.paths(), options.settings()
        self._mode = options.mode()
        self._ports = _ports(options)
        known = [name for name in _COLUMNS if self._mode == PERMISSIVE or name not in _FAULT]
        chosen = options.columns(known, set(known) - _ON_REQUEST)
        self.schema = StructType([StructField(name, _COLUMNS[name][0]) for name in chosen])

    def partitions(self) -> Sequence[InputPartition]:
        """Return the files."""
        return [InputPartition(file) for file in log_files(self._source, self._paths, CAPTURES, self._fs_options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file. Without files, Spark passes None as the partition."""
        file: LogFile | None = partition.value
        if file is None:
            return
        schema = arrow_schema(self.schema)
        values = [_value_of(name, file.name) for name in schema.names]
        for some in _portions(self._kept(_items(file, self._ports), file.name)):
            arrays = [pa.array(map(value, some), each.type) for value, each in zip(values, schema, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

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


def _value_of(name: str, file: str) -> Callable[[Any], Any]:
    """Return the value of a column for an exchange or a fault."""
    if name == _FILE:
        return lambda item: file
    value, other = _COLUMNS[name][1], Exchange if name in _FAULT else CaptureFault if name in _EXCHANGE else ()
    get = _path(value.split(".")) if isinstance(value, str) else value
    return lambda item: None if isinstance(item, other) else get(item)


def _path(names: Sequence[str]) -> Callable[[Any], Any]:
    """Return a function for the value at a path of attributes, or None if one of them is None."""

    def value(item: Any) -> Any:
        for name in names:
            item = getattr(item, name)
            if item is None:
                return None
        return item

    return value
