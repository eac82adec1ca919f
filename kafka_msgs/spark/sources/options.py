"""The options of a data source: parses the texts that Spark passes, or refuses them by name.

Defines the keywords and units of options, and the error for a wrong one. The sources define the effect of options.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final, NoReturn

from pyspark.sql.types import StructType

from kafka_msgs.errors import OptionError
from kafka_msgs.filesystems.location import mask_uri
from kafka_msgs.filesystems.options import NO_OPTIONS, PREFIXES, FilesystemOptions
from kafka_msgs.spark.sources.catalog_tables import OF_CATALOG, own_options
from kafka_msgs.suggestions import no_such

__all__ = ["DROPMALFORMED", "FAILFAST", "MODES", "PERMISSIVE", "Options", "check_schema"]

PERMISSIVE: Final = "PERMISSIVE"
FAILFAST: Final = "FAILFAST"
DROPMALFORMED: Final = "DROPMALFORMED"
MODES: Final = (PERMISSIVE, FAILFAST, DROPMALFORMED)
"""The handling of unreadable data: a row with the reason, an error that ends the job, or dropping it."""

_NO_PATH: Final = (
    "a file or a directory is needed. For a table in Spark's catalog, write CREATE TABLE t USING `kafka-log` OPTIONS "
    "(path 'DIR') without columns; for other sources SELECT * FROM t WITH (path = 'DIR'), or CREATE TEMPORARY VIEW"
)
_COUNT: Final = re.compile(r"[1-9][0-9]{0,8}")
_SIZE: Final = re.compile(r"([0-9]{1,18})\s*(?:([kmg])(?:i?b)?|b)?", re.IGNORECASE)
_UNITS: Final = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}
_DIGITS: Final = 10
_FLAGS: Final = {"true": True, "false": False}


class Options:
    """The options of one read, requested one by one; ``done`` refuses options that were not requested.

    Names are case-insensitive. Every method raises ``OptionError``. ``session`` contains the filesystem options of the
    Spark session; filesystem options of the read take precedence.
    """

    def __init__(self, source: str, given: Mapping[str, str], session: FilesystemOptions = NO_OPTIONS) -> None:
        self._source = source
        self._session = session
        named = {name.lower(): value for name, value in given.items() if name.lower() not in OF_CATALOG}
        self._given = own_options(named)
        self._asked: list[str] = []

    def text(self, name: str, default: str | None = None) -> str | None:
        """Return the unparsed value of an option."""
        self._asked.append(name)
        return self._given.get(name.lower(), default)

    def properties(self, prefix: str) -> dict[str, str]:
        """Return the options whose names start with ``prefix``, without it."""
        found = {name: value for name, value in self._given.items() if name.startswith(prefix)}
        self._asked += found
        return {name.removeprefix(prefix): value for name, value in found.items()}

    def settings(self) -> FilesystemOptions:
        """Return the filesystem options."""
        given = {name: value for name, value in self._given.items() if name.startswith(PREFIXES)}
        self._asked += given
        return FilesystemOptions.from_mapping(given, self._source).over(self._session)

    def paths(self) -> tuple[str, ...]:
        """Return the paths of ``load``: a single path, with any characters, or the list that Spark passes."""
        single, several = self.text("path"), self.text("paths")
        found = [] if single is None else [single]
        found += [] if several is None else self._list("paths", several)
        if not found or not all(found):
            self.refuse("path", _NO_PATH)
        return tuple(found)

    def names(self, name: str) -> tuple[str, ...] | None:
        """Return the names in a comma-separated text, or None without the option."""
        given = self.text(name)
        found = None if given is None else tuple(part.strip() for part in given.split(",") if part.strip())
        if found == ():
            self.refuse(name, "at least one name is needed")
        return found

    def _list(self, name: str, given: str) -> list[str]:
        try:
            found = json.loads(given)
        except ValueError:
            found = None
        if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
            self.refuse(name, 'a JSON list of texts is needed, such as ["a", "b"]')
        return found

    def numbers(self, name: str) -> tuple[int, ...] | None:
        """Return the numbers in a comma-separated text, or None without the option."""
        given = self.names(name)
        if given is not None and not all(each.isdecimal() and len(each) <= _DIGITS for each in given):
            self.refuse(name, "numbers with commas between them are needed, such as 0,1,5")
        return None if given is None else tuple(map(int, given))

    def flag(self, name: str, default: bool) -> bool:
        """Return whether an option is ``true`` or ``false``."""
        given = self.text(name)
        if given is None:
            return default
        if given.lower() not in _FLAGS:
            self.refuse(name, "it is true or false")
        return _FLAGS[given.lower()]

    def choice(self, name: str, choices: tuple[str, ...], default: str) -> str:
        """Return the chosen one of ``choices``, ignoring case."""
        given = self.text(name, default) or ""
        for choice in choices:
            if choice.lower() == given.lower():
                return choice
        self.refuse(name, f"it is one of {', '.join(choices)}")

    def size(self, name: str, default: int) -> int:
        """Return a number of bytes, at least 1; ``32m`` and ``32 MB`` are 32 times 2 to the 20th."""
        given = self.text(name)
        if given is None:
            return default
        match = _SIZE.fullmatch(given.strip())
        if match is None or not int(match[1]):
            self.refuse(name, "a number of bytes such as 32m is needed")
        return int(match[1]) * _UNITS[(match[2] or "").lower()]

    def count(self, name: str, default: int) -> int:
        """Return a number from 1 to 999999999."""
        given = self.text(name)
        if given is None:
            return default
        if _COUNT.fullmatch(given.strip()) is None:
            self.refuse(name, "a number from 1 to 999999999 is needed")
        return int(given)

    def version(self, name: str) -> int | None:
        """Return the version of a message, or None without the option."""
        given = self.text(name)
        if given is None:
            return None
        if not given.isdecimal():
            self.refuse(name, "a version is needed")
        return int(given)

    def done(self) -> None:
        """Refuse options that were not requested, so that misspelt options are noticed."""
        known = {name.lower(): name for name in self._asked}
        for name in self._given:
            if name not in known:
                self.refuse(name, no_such("option", name, known.values()))

    def refuse(self, name: str, reason: str) -> NoReturn:
        """Raise the error for an invalid option value."""
        given = self._given.get(name.lower())
        # A value intended as a filesystem option may be a secret.
        value = None if given is None or name.lower().startswith(PREFIXES) else mask_uri(given)
        raise OptionError(source=self._source, option=name, value=value, reason=reason)


def check_schema(source: str, given: StructType, own: StructType) -> None:
    """Raise ``OptionError`` for a schema that the user gave and that is not the one of the source.

    Spark accepts it otherwise, and its tasks fail on the first row.
    """
    if given.fields and _types(given) != _types(own):
        reason = "the source defines the columns and their types; select them with the option columns, or in the query"
        raise OptionError(source=source, option="schema", value=given.simpleString(), reason=reason)


def _types(schema: StructType) -> list[tuple[str, str]]:
    return [(each.name, each.dataType.simpleString()) for each in schema.fields]
