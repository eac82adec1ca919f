"""The options of a data source: parses the texts that Spark passes, or refuses them by name.

Defines the keywords and units of options, the error for a wrong one, and the base of the sources. The sources define
the effect of options.

Spark passes the options of a table in its catalog (``CREATE TABLE t USING `kafka-log` OPTIONS (path 'DIR')``) to Python
only when it creates the table, and later only the stored columns. So the metadata of the first column contains the
options. Filesystem options, which may be secret, come from the session.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, NoReturn, TypeVar

from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructField, StructType

from kafka_msgs.columns.log_table import select_columns
from kafka_msgs.errors import OptionError
from kafka_msgs.filesystems.location import mask_uri
from kafka_msgs.filesystems.options import NO_OPTIONS, PREFIXES, FilesystemOptions, may_be_secret
from kafka_msgs.suggestions import no_such

__all__ = ["DROPMALFORMED", "FAILFAST", "PERMISSIVE", "READ_COMMITTED", "OptionSource", "Options", "option_texts"]

PERMISSIVE: Final = "PERMISSIVE"
FAILFAST: Final = "FAILFAST"
DROPMALFORMED: Final = "DROPMALFORMED"
READ_COMMITTED: Final = "read_committed"
_MODES: Final = (PERMISSIVE, FAILFAST, DROPMALFORMED)
"""The handling of unreadable data: a row with the reason, an error that ends the job, or dropping it."""

_NO_PATH: Final = (
    "a file or a directory is needed. For a table in Spark's catalog, write CREATE TABLE t USING `kafka-log` OPTIONS "
    "(path 'DIR') without columns, or SELECT * FROM t WITH (path = 'DIR')"
)
_OWN_SCHEMA: Final = (
    "the source defines the columns and their types; select them with the option columns, or in the query"
)
_COUNT: Final = re.compile(r"[1-9][0-9]{0,8}")
_SIZE: Final = re.compile(r"([0-9]{1,18})\s*(?:([kmg])(?:i?b)?|b)?", re.IGNORECASE)
_UNITS: Final = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}
_NUMBER: Final = re.compile(r"[0-9]{1,10}")
_DURATION: Final = re.compile(r"([0-9]{1,12})\s*(us|ms|s|min|m|h|d|)", re.IGNORECASE)
_SECONDS: Final = {"us": 1e-6, "ms": 1e-3, "": 1e-3, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}
"""The units of a duration in seconds. As in Spark, a number without a unit is in milliseconds."""
_FLAGS: Final = {"true": True, "false": False}
_OF_CATALOG: Final = frozenset(
    ["collation", "comment", "external", "is_managed_location", "location", "owner", "provider", "serialization.format",
     "table_type"]
)  # fmt: skip
"""The properties of a table in Spark's catalog, which it passes with the options (``TableCatalog``)."""
_COPY: Final = "option."
"""The prefix of the copies of options that Spark passes with them."""
_NOTE: Final = "kafka_msgs.options"
T = TypeVar("T")
D = TypeVar("D")


class Options:
    """The options of one read, requested one by one; ``done`` refuses options that were not requested.

    Names are case-insensitive. Every method raises ``OptionError``. ``session`` contains the filesystem options of the
    Spark session; filesystem options of the read take precedence.
    """

    def __init__(self, source: str, given: Mapping[str, str], session: FilesystemOptions = NO_OPTIONS) -> None:
        self.source: Final = source
        self._session = session
        self._given = _own_options(given)
        self._asked: list[str] = []

    def text(self, name: str, default: str | None = None) -> str | None:
        """Return the unparsed value of an option."""
        self._asked.append(name)
        return self._given.get(name.lower(), default)

    def _parsed(self, name: str, parse: Callable[[str], T | None], reason: str, default: D) -> T | D:
        """Return the parsed value of an option, or the default without it. Refuses a value that parses to None."""
        given = self.text(name)
        if given is None:
            return default
        found = parse(given)
        if found is None:
            self.refuse(name, reason)
        return found

    def properties(self, prefix: str) -> dict[str, str]:
        """Return the options whose names start with ``prefix``, without it."""
        found = {name: value for name, value in self._given.items() if name.startswith(prefix)}
        self._asked += found
        return {name.removeprefix(prefix): value for name, value in found.items()}

    def settings(self) -> FilesystemOptions:
        """Return the filesystem options."""
        given = {name: value for name, value in self._given.items() if name.startswith(PREFIXES)}
        self._asked += given
        return FilesystemOptions.from_mapping(given, self.source).over(self._session)

    def paths(self) -> tuple[str, ...]:
        """Return the paths of ``load``: a single path, with any characters, or the list that Spark passes."""
        single = self.text("path")
        several = self._parsed("paths", _json_texts, 'a JSON list of texts is needed, such as ["a", "b"]', [])
        found = several if single is None else [single, *several]
        if not found or not all(found):
            self.refuse("path", _NO_PATH)
        return tuple(found)

    def names(self, name: str) -> tuple[str, ...] | None:
        """Return the names in a comma-separated text, or None without the option."""
        return self._parsed(name, _names, "at least one name is needed", None)

    def columns(self, own: Sequence[str], usual: Iterable[str]) -> tuple[str, ...]:
        """Return the columns among a table's ``own`` that ``columns`` requests, or the ``usual`` ones, in order.

        The error column is always included. Raises ``UnknownColumnError``.
        """
        return select_columns(self.source, own, self.names("columns"), frozenset(usual))

    def numbers(self, name: str) -> tuple[int, ...] | None:
        """Return the numbers in a comma-separated text, or None without the option."""
        return self._parsed(name, _numbers, "numbers with commas between them are needed, such as 0,1,5", None)

    def flag(self, name: str, default: bool) -> bool:
        """Return whether an option is ``true`` or ``false``."""
        return self._parsed(name, lambda text: _FLAGS.get(text.lower()), "it is true or false", default)

    def choice(self, name: str, choices: tuple[str, ...], default: D) -> str | D:
        """Return the chosen one of ``choices``, ignoring case."""
        known = {each.lower(): each for each in choices}
        return self._parsed(name, lambda text: known.get(text.lower()), f"it is one of {', '.join(choices)}", default)

    def mode(self) -> str:
        """Return the handling of unreadable data."""
        return self.choice("mode", _MODES, PERMISSIVE)

    def isolation(self) -> str | None:
        """Return the isolation level, or None without the option."""
        return self.choice("isolation", ("read_uncommitted", READ_COMMITTED), None)

    def size(self, name: str, default: int) -> int:
        """Return a number of bytes, at least 1; ``32m`` and ``32 MB`` are 32 times 2 to the 20th."""
        return self._parsed(name, _bytes, "a number of bytes such as 32m is needed", default)

    def count(self, name: str) -> int | None:
        """Return a number from 1 to 999999999, or None without the option."""
        return self._parsed(name, _count, "a number from 1 to 999999999 is needed", None)

    def duration(self, name: str) -> float | None:
        """Return a duration in seconds, or None without the option."""
        return self._parsed(name, _duration, "a duration such as 30s or 15m is needed", None)

    def version(self, name: str) -> int | None:
        """Return the version of a message, or None without the option."""
        return self._parsed(name, lambda text: int(text) if text.isdecimal() else None, "a version is needed", None)

    def done(self) -> None:
        """Refuse options that were not requested, so that misspelt options are noticed."""
        known = {name.lower(): name for name in self._asked}
        for name in self._given:
            if name not in known:
                self.refuse(name, no_such("option", name, known.values()))

    def refuse(self, name: str, reason: str) -> NoReturn:
        """Raise the error for an invalid option value."""
        given = self._given.get(name.lower())
        # A value intended as an option of a filesystem or of a client may be a secret.
        hidden = name.lower().startswith(PREFIXES) or may_be_secret(name)
        value = None if given is None or hidden else mask_uri(given)
        raise OptionError(source=self.source, option=name, value=value, reason=reason)


def _json_texts(text: str) -> list[str] | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, list) and all(isinstance(each, str) for each in found) else None


def _names(text: str) -> tuple[str, ...] | None:
    return tuple(part.strip() for part in text.split(",") if part.strip()) or None


def _numbers(text: str) -> tuple[int, ...] | None:
    names = _names(text)
    return tuple(map(int, names)) if names and all(map(_NUMBER.fullmatch, names)) else None


def _bytes(text: str) -> int | None:
    match = _SIZE.fullmatch(text.strip())
    return int(match[1]) * _UNITS[(match[2] or "").lower()] or None if match else None


def _duration(text: str) -> float | None:
    match = _DURATION.fullmatch(text.strip())
    return int(match[1]) * _SECONDS[match[2].lower()] if match else None


def _count(text: str) -> int | None:
    return int(text) if _COUNT.fullmatch(text.strip()) else None


def option_texts(options: Mapping[str, Any]) -> dict[str, str]:
    """Return options as the texts that Spark passes for them."""
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}


class OptionSource(DataSource):
    """A data source that parses its options when Spark needs its columns, a reader or a writer."""

    label: ClassVar[str]
    """The name of the source in Spark."""
    reader_type: ClassVar[type[Any]]
    """The reader of a table, made from its options."""
    fs_options: ClassVar[FilesystemOptions] = NO_OPTIONS
    """The filesystem options of the session."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._given = dict(options)

    @classmethod
    def name(cls) -> str:
        """Return the name of the source."""
        return cls.label

    def table(self, options: Options) -> Any:
        """Return the reader of a table, which has a ``schema``. Raises ``OptionError``."""
        return self.reader_type(options)

    def schema(self) -> StructType:
        """Return the columns. For ``CREATE TABLE``, they contain the options."""
        found: StructType = self._read(self.table, StructType()).schema
        if not found.fields or _OF_CATALOG.isdisjoint(name.lower() for name in self._given):
            return found
        kept = {name: value for name, value in _own_options(self._given).items() if not name.startswith(PREFIXES)}
        first, *others = found.fields
        note: dict[str, Any] = {**first.metadata, _NOTE: json.dumps(kept)}
        return StructType([StructField(first.name, first.dataType, first.nullable, note), *others])

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a table."""
        reader: DataSourceReader = self._read(self.table, schema)
        return reader

    def _read(self, make: Callable[[Options], Any], schema: StructType) -> Any:
        """Return the reader that ``make`` makes. Raises ``OptionError`` for a given schema that is not its schema.

        Spark accepts the schema otherwise, and its tasks fail on the first row. Options from ``CREATE TABLE`` come
        second.
        """
        stored = schema.fields[0].metadata.get(_NOTE) if schema.fields else None
        own = {name.lower(): value for name, value in self._given.items()}
        found = self._parsed(make, own if stored is None else json.loads(stored) | own)
        if schema.fields and _types(schema) != _types(found.schema):
            text = schema.simpleString()
            raise OptionError(source=self.label, option="schema", value=text, reason=_OWN_SCHEMA)
        return found

    def _parsed(self, make: Callable[[Options], T], given: Mapping[str, str] | None = None) -> T:
        """Return an object made from all options. Raises ``OptionError`` for options that ``make`` does not request."""
        options = Options(self.label, self._given if given is None else given, self.fs_options)
        found = make(options)
        options.done()
        return found


def _types(schema: StructType) -> list[tuple[str, str]]:
    return [(each.name, each.dataType.simpleString()) for each in schema.fields]


def _own_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return options by lower-case name, without the properties and copies that Spark passes for ``CREATE TABLE``."""
    named = {name.lower(): value for name, value in options.items() if name.lower() not in _OF_CATALOG}
    return {
        name: value
        for name, value in named.items()
        if not (name.startswith(_COPY) and named.get(name.removeprefix(_COPY)) == value) and name != f"{_COPY}path"
    }
