"""The data source ``kafka-capture``: captured network traffic as a table, one row per exchange.

Defines the columns, and the handling of faults in each mode. Each file is one split, because the meaning of a packet
depends on earlier packets. ``kafka_msgs.capture`` reads the files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple

import pyarrow as pa
from attrs import frozen
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
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

from kafka_msgs.capture import DEFAULT_PORTS, CapturedConnection, CaptureFault, Exchange, FaultKind, read_exchanges
from kafka_msgs.errors import CaptureError, OptionError, UnknownColumnError
from kafka_msgs.filesystems.options import NO_OPTIONS, FilesystemOptions
from kafka_msgs.filesystems.path_resolution import CAPTURES, GONE, LogFile, local_copy, log_files
from kafka_msgs.spark.sources.options import FAILFAST, MODES, PERMISSIVE, Options, check_schema
from kafka_msgs.spark.spark_types import ERROR, arrow_schema
from kafka_msgs.suggestions import similar_names

__all__ = ["KafkaCaptureSource"]

_ROWS: Final = 4096
_BYTES: Final = 2**24
"""The number of rows, or bytes of payloads, passed to Spark at a time."""
_ANY_PORT: Final = "any"
_ERRORS: Final = ArrayType(
    StructType(
        [StructField("path", StringType()), StructField("code", IntegerType()), StructField("name", StringType())]
    )
)


class _Column(NamedTuple):
    """A column: its type, and its value for an exchange."""

    type: DataType
    value: Callable[[Exchange], Any]


class _FaultColumn(NamedTuple):
    """A column with values only for faults."""

    type: DataType
    value: Callable[[CaptureFault], Any]


def _json(message: dict[str, Any] | None) -> str | None:
    return None if message is None else json.dumps(message, separators=(",", ":"))


def _of_connection(read: Callable[[CapturedConnection], Any]) -> Callable[[Exchange | CaptureFault], Any]:
    return lambda item: None if item.connection is None else read(item.connection)


_CONNECTION: Final[Mapping[str, tuple[DataType, Callable[[Exchange | CaptureFault], Any]]]] = {
    "connection": (LongType(), _of_connection(lambda each: each.number)),
    "clientHost": (StringType(), _of_connection(lambda each: each.client.host)),
    "clientPort": (IntegerType(), _of_connection(lambda each: each.client.port)),
    "serverHost": (StringType(), _of_connection(lambda each: each.server.host)),
    "serverPort": (IntegerType(), _of_connection(lambda each: each.server.port)),
}
"""Columns that exchanges and faults share."""

_EXCHANGE: Final[Mapping[str, _Column]] = {
    "apiKey": _Column(IntegerType(), lambda each: each.api_key),
    "api": _Column(StringType(), lambda each: each.api),
    "version": _Column(IntegerType(), lambda each: each.version),
    "correlationId": _Column(IntegerType(), lambda each: each.correlation_id),
    "clientId": _Column(StringType(), lambda each: each.client_id),
    "requestAt": _Column(TimestampType(), lambda each: each.request.time_us),
    "requestAtUs": _Column(LongType(), lambda each: each.request.time_us),
    "responseAt": _Column(TimestampType(), lambda each: each.response and each.response.time_us),
    "responseAtUs": _Column(LongType(), lambda each: each.response and each.response.time_us),
    "latencyUs": _Column(LongType(), lambda each: each.latency_us),
    "requestSize": _Column(IntegerType(), lambda each: each.request.size),
    "responseSize": _Column(IntegerType(), lambda each: each.response and each.response.size),
    "errors": _Column(_ERRORS, lambda each: [(error.path, error.code, error.name) for error in each.errors]),
    "throttleMs": _Column(IntegerType(), lambda each: each.throttle_ms),
    "clientSoftware": _Column(StringType(), lambda each: each.client_software),
    "problem": _Column(StringType(), lambda each: "; ".join(problem.reason for problem in each.problems) or None),
    "requestJson": _Column(StringType(), lambda each: _json(each.request_json)),
    "responseJson": _Column(StringType(), lambda each: _json(each.response_json)),
    "request": _Column(BinaryType(), lambda each: each.request.payload),
    "response": _Column(BinaryType(), lambda each: each.response and each.response.payload),
}

_FAULT: Final[Mapping[str, _FaultColumn]] = {
    ERROR: _FaultColumn(StringType(), str),
    f"{ERROR}Kind": _FaultColumn(StringType(), lambda fault: fault.kind.value),
    f"{ERROR}Bytes": _FaultColumn(LongType(), lambda fault: fault.size),
}

_FILE: Final = "file"
_ON_REQUEST: Final = frozenset({"requestAtUs", "responseAtUs", "throttleMs", "clientSoftware"})
"""Columns that are read only if requested: numeric times, and values that only some exchanges have."""


def _types() -> dict[str, DataType]:
    """Return the types of all columns in order."""
    connection = {name: type_ for name, (type_, _) in _CONNECTION.items()}
    exchange = {name: column.type for name, column in _EXCHANGE.items()}
    fault = {name: column.type for name, column in _FAULT.items()}
    return {_FILE: StringType(), **connection, **exchange, **fault}


@frozen(kw_only=True)
class _Reading:
    """The read settings of captures: ports, columns and fault mode."""

    ports: tuple[int, ...] | None
    columns: tuple[str, ...]
    mode: str

    @property
    def schema(self) -> StructType:
        """The columns of the rows."""
        types = _types()
        return StructType([StructField(name, types[name]) for name in self.columns])


class KafkaCaptureSource(DataSource):
    """The data source ``kafka-capture``; the documentation of captures describes its options and columns."""

    fs_options: ClassVar[FilesystemOptions] = NO_OPTIONS
    """The filesystem options of the session."""

    def __init__(self, options: Mapping[str, str]) -> None:
        given = Options(self.name(), options, self.fs_options)
        mode = given.choice("mode", MODES, PERMISSIVE)
        self._paths, self._fs_options = given.paths(), given.settings()
        self._reading = _Reading(
            ports=_ports(self.name(), given.names("ports")),
            columns=_columns(self.name(), given.names("columns"), mode),
            mode=mode,
        )
        given.done()

    @classmethod
    def name(cls) -> str:
        """Return the name of the source."""
        return "kafka-capture"

    def schema(self) -> StructType:
        """Return the columns."""
        return self._reading.schema

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader."""
        check_schema(self.name(), schema, self.schema())
        return CaptureReader(self.name(), self._paths, self._fs_options, self._reading)


class CaptureReader(DataSourceReader):
    """Reads captures, one task per file."""

    def __init__(self, source: str, paths: Sequence[str], fs_options: FilesystemOptions, reading: _Reading) -> None:
        self._source = source
        self._paths = paths
        self._fs_options = fs_options
        self._reading = reading

    def partitions(self) -> Sequence[InputPartition]:
        """Return the files."""
        return [InputPartition(file) for file in log_files(self._source, self._paths, CAPTURES, self._fs_options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file. Without files, Spark passes None as the partition."""
        if partition.value is not None:
            yield from _rows(partition.value, self._reading)


def _ports(source: str, given: tuple[str, ...] | None) -> tuple[int, ...] | None:
    if given is None:
        return DEFAULT_PORTS
    if given == (_ANY_PORT,):
        return None
    if not given or not all(each.isdecimal() and 0 < int(each) < 2**16 for each in given):
        raise OptionError(
            source=source, option="ports", value=",".join(given), reason=f"ports or {_ANY_PORT} are needed"
        )
    return tuple(map(int, given))


def _columns(source: str, asked: Sequence[str] | None, mode: str) -> tuple[str, ...]:
    """Return the columns to read, in order. Raises ``UnknownColumnError``."""
    known = [name for name in _types() if mode == PERMISSIVE or name not in _FAULT]
    for name in asked or ():
        if name not in known:
            raise UnknownColumnError(source=source, column=name, near=similar_names(name, known))
    wanted = set(known) - _ON_REQUEST if asked is None else {*asked, ERROR}
    return tuple(name for name in known if name in wanted)


def _rows(file: LogFile, reading: _Reading) -> Iterator[pa.RecordBatch]:
    schema = arrow_schema(reading.schema)
    values = [_value_of(name, file.name) for name in reading.columns]
    items = _kept(_items(file, reading.ports), file.name, reading.mode)
    for some in _portions(items):
        columns = [[value(item) for item in some] for value in values]
        arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _items(file: LogFile, ports: tuple[int, ...] | None) -> Iterator[Exchange | CaptureFault]:
    """Yield the exchanges and faults in a file. A file that no longer exists counts as damage."""
    try:
        with local_copy(file) as (path, _):
            yield from read_exchanges(path, ports=ports)
    except FileNotFoundError:
        yield CaptureFault(kind=FaultKind.FILE, reason=GONE, size=file.size)


def _kept(items: Iterable[Exchange | CaptureFault], file: str, mode: str) -> Iterator[Exchange | CaptureFault]:
    """Handle faults according to the mode; raises ``CaptureError`` in the mode ``FAILFAST``."""
    for item in items:
        if mode == PERMISSIVE or isinstance(item, Exchange):
            yield item
        elif mode == FAILFAST and item.kind.is_damage:
            raise CaptureError(file=file, packet=item.packet, reason=str(item))


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


def _value_of(name: str, file: str) -> Callable[[Exchange | CaptureFault], Any]:
    """Return the value of a column for an exchange or a fault."""
    if name == _FILE:
        return lambda item: file
    if name in _CONNECTION:
        return _CONNECTION[name][1]
    if name in _FAULT:
        of_fault = _FAULT[name].value
        return lambda item: of_fault(item) if isinstance(item, CaptureFault) else None
    of_exchange = _EXCHANGE[name].value
    return lambda item: of_exchange(item) if isinstance(item, Exchange) else None
