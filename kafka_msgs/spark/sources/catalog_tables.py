"""Options of tables in Spark's catalog: ``CREATE TABLE t USING `kafka-log` OPTIONS (path 'DIR')``.

Spark passes the options of such a table to Python only when it creates the table, and later only the stored columns. So
the metadata of the first column contains the options. Filesystem options, which may be secret, come from the session.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql.types import StructField, StructType

from kafka_msgs.filesystems.arrow_arguments import is_known

__all__ = ["OF_CATALOG", "own_options", "restore_options", "store_options"]

OF_CATALOG: Final = frozenset(
    ["collation", "comment", "external", "is_managed_location", "location", "owner", "provider", "serialization.format",
     "table_type"]
)  # fmt: skip
"""The properties of a table in Spark's catalog, which it passes with the options (``TableCatalog``)."""
_COPY: Final = "option."
"""The prefix of the copies of options that Spark passes with them."""
_NOTE: Final = "kafka_msgs.options"


def store_options(schema: StructType, options: Mapping[str, str]) -> StructType:
    """Return a schema with the options of ``CREATE TABLE``; the same schema for other options."""
    if not schema.fields or not any(name.lower() in OF_CATALOG for name in options):
        return schema
    own = own_options({name.lower(): value for name, value in options.items()})
    kept = {name: value for name, value in own.items() if name not in OF_CATALOG and not is_known(name)}
    first, *others = schema.fields
    note: dict[str, Any] = {**first.metadata, _NOTE: json.dumps(kept)}
    return StructType([StructField(first.name, first.dataType, first.nullable, note), *others])


def restore_options(schema: StructType, options: Mapping[str, str]) -> dict[str, str]:
    """Return options together with those that a schema has from ``CREATE TABLE``, which come second."""
    stored = schema.fields[0].metadata.get(_NOTE) if schema.fields else None
    found: dict[str, str] = {} if stored is None else json.loads(stored)
    return found | {name.lower(): value for name, value in options.items()}


def own_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return options without the copies that Spark passes for ``CREATE TABLE``."""
    return {
        name: value
        for name, value in options.items()
        if not (name.startswith(_COPY) and options.get(name.removeprefix(_COPY)) == value) and name != f"{_COPY}path"
    }
