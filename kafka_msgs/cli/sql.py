"""SQL over log directories: the parts of a query, and its result as JSON values.

This module connects DuckDB to the tables of ``kafka_msgs.columns.log_table``. DuckDB itself parses a query, to find the
directories that it names and the words in it that may be columns: only those are read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import click

from kafka_msgs.cli.render.records import text_of
from kafka_msgs.errors import MissingExtraError
from kafka_msgs.log.partition_discovery import Progress
from kafka_msgs.log.transaction_index import IsolationLevel

if TYPE_CHECKING:
    import duckdb

    from kafka_msgs.columns.log_table import LogTable, RowFilter

__all__ = ["SqlQuery"]

_FUNCTION: Final = "log"
_EVERY: Final = frozenset({"star", "positional_reference", "natural", "show_ref"})
"""DuckDB's types of query nodes that refer to columns without naming them."""
_ROWS: Final = 1000
"""The number of rows that are fetched from DuckDB at once."""


class SqlQuery:
    """A query over the rows that ``where`` selects, at an isolation level of a consumer.

    Raises ``click.ClickException`` for anything but a SELECT statement, and ``MissingExtraError``.
    """

    def __init__(
        self, query: str, isolation: IsolationLevel = "read_uncommitted", where: RowFilter | None = None
    ) -> None:
        self._isolation: Final = isolation
        self._query = query
        self._where = where
        self._nodes = list(_nodes(_parsed(query)))
        self.paths = [_path_of(node) for node in self._nodes if _is_log(node)]
        """The paths in the query, in its order."""

    def files(self, path: str) -> list[Path]:
        """Return the segments below a path."""
        return self._table(path, Progress()).files

    def execute(self, progress: Progress) -> tuple[list[str], Iterator[dict[str, Any]]]:
        """Return the names of the columns, and an iterator that reads the rows."""
        tables = {path: self._table(path, progress) for path in self.paths}
        rows = _answered(self._query, tables)
        return next(rows), rows

    def _table(self, path: str, progress: Progress) -> LogTable:
        from kafka_msgs.columns.log_table import LogTable

        return LogTable(path, columns=self.columns, isolation=self._isolation, where=self._where, progress=progress)

    @property
    def columns(self) -> list[str]:
        """Return the columns that the query may use, or all columns if that is uncertain.

        Every text in the query that equals a column name counts, whatever its role.
        """
        from kafka_msgs.columns.log_table import columns_of_logs

        words = {text.lower() for node in self._nodes for text in _texts(node)}
        named = [name for name in columns_of_logs() if name.lower() in words]
        every = words & _EVERY or self._whole_rows() or any(node.get("column_name_alias") for node in self._nodes)
        return ["*", *named] if every else named

    def _whole_rows(self) -> set[str]:
        """Return the names that refer to entire rows: ``SELECT l FROM log('DIR') l``."""
        return {str(node["alias"] or _FUNCTION).lower() for node in self._nodes if _is_log(node)} & {
            str(node["column_names"][-1]).lower() for node in self._nodes if node.get("type") == "COLUMN_REF"
        }


class _Source:
    """A table for DuckDB that keeps the error of its reader. DuckDB returns this error as text with a traceback."""

    def __init__(self, table: LogTable) -> None:
        self.error: Exception | None = None
        self._table: Final = table
        self.__arrow_c_schema__ = table.__arrow_c_schema__

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        import pyarrow as pa

        reader = pa.RecordBatchReader.from_batches(self._table.schema, self._batches())
        return reader.__arrow_c_stream__(requested_schema)

    def _batches(self) -> Iterator[Any]:
        try:
            yield from self._table.batches()
        except Exception as error:
            self.error = error
            raise


def _connection() -> duckdb.DuckDBPyConnection:
    """Return a separate in-memory database, which cannot access files or load extensions."""
    try:
        import duckdb
    except ImportError as error:
        raise MissingExtraError(feature="kafka-msgs sql", extra="sql", package="duckdb") from error
    settings: dict[str, Any] = {"enable_external_access": False, "autoload_known_extensions": False}
    connection = duckdb.connect(config=settings)
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def _parsed(query: str) -> Any:
    with _connection() as connection:
        rows = connection.execute("SELECT json_serialize_sql(?)", [query]).fetchall()
    parsed = json.loads(rows[0][0])
    if parsed["error"]:
        raise click.ClickException(f"the query cannot be read: {parsed['error_message']}")
    if len(parsed["statements"]) != 1:
        raise click.ClickException("a query is one statement")
    return parsed["statements"]


def _nodes(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield all objects in DuckDB's parse tree."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield part
            waiting += reversed(part.values())
        elif isinstance(part, list):
            waiting += reversed(part)


def _texts(node: Mapping[str, Any]) -> Iterator[str]:
    for value in node.values():
        yield from (text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str))


def _is_log(node: Mapping[str, Any]) -> bool:
    return node.get("type") == "TABLE_FUNCTION" and node["function"]["function_name"].lower() == _FUNCTION


def _path_of(node: Mapping[str, Any]) -> str:
    match node["function"]["arguments"]:
        case [{"expression": {"literal": {"kind": "STRING", "text": str(path)}}}]:
            return path
    raise click.ClickException("log() takes one text, the path of a log directory or of a partition's directory")


def _answered(query: str, tables: Mapping[str, LogTable]) -> Iterator[Any]:
    """Yield the names of the columns, and then the rows."""
    import duckdb

    sources = {path: _Source(table) for path, table in tables.items()}
    with _connection() as connection:
        for path, source in sources.items():
            connection.register(_view_of(path), source)
        connection.execute(f"CREATE MACRO {_FUNCTION}(path) AS TABLE FROM query_table(hex(path))")
        try:
            result = connection.execute(query)
            names = _distinct([column[0] for column in result.description])
            yield names
            while rows := result.fetchmany(_ROWS):
                yield from (dict(zip(names, map(_value, row), strict=True)) for row in rows)
        except duckdb.Error as error:
            unreadable = next((each.error for each in sources.values() if each.error), None)
            raise unreadable or click.ClickException(str(error).partition("\n")[0]) from None


def _view_of(path: str) -> str:
    """Return the view name of a path, in SQL's form: view names have dots and no case."""
    return path.encode().hex().upper()


def _distinct(names: Sequence[str]) -> list[str]:
    """Return column names; a duplicate gets its number as a suffix."""
    distinct: dict[str, None] = {}
    for number, name in enumerate(names, 1):
        distinct[name if name not in distinct else f"{name}:{number}"] = None
    return list(distinct)


def _value(value: Any) -> Any:
    """Return a DuckDB value as JSON."""
    if isinstance(value, dict):
        return {str(name): _value(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_value(item) for item in value]
    return next((shown(value) for kind, shown in _SHOWN.items() if isinstance(value, kind)), value)


def _time(value: datetime) -> str:
    return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _decimal(value: Decimal) -> int | float | str:
    """Return a number, or its text if no number of JSON's readers has this value."""
    number = int(value) if value == value.to_integral_value() else float(value)
    return number if Decimal(str(number)) == value else str(value)


_SHOWN: Final[Mapping[type, Callable[[Any], Any]]] = {
    bytes: text_of,
    datetime: _time,
    date: str,
    time: str,
    timedelta: str,
    Decimal: _decimal,
    UUID: str,
    float: lambda number: number if isfinite(number) else str(number),
}
"""The formatting of values without a JSON type. ``datetime`` comes before its base class ``date``."""
