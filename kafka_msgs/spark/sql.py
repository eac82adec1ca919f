"""SQL functions that decode messages from binary columns, with one function per message or a message name argument.

Defines the names of the registered functions. The return type of a scalar function cannot depend on its arguments, so
there are several kinds: a typed function per message; the table function ``from_kafka``, which takes any message name;
and functions that return variants, for types that are unknown until the query runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.conversion import ArrowTableToRowsConversion
from pyspark.sql.functions import udtf
from pyspark.sql.types import StringType
from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult

from kafka_msgs.errors import OptionError
from kafka_msgs.messages import API_KEYS
from kafka_msgs.spark.functions import column_function, decode, decoder
from kafka_msgs.spark.message_json import message_json, record_json
from kafka_msgs.spark.spark_types import resolve_message, schema_of, with_error, without_notes

__all__ = ["VERSIONED_MESSAGES", "FromKafka", "function_name", "register_functions"]

_KINDS: Final = frozenset({"coordinator-key", "coordinator-value"})
VERSIONED_MESSAGES: Final = (
    *sorted(name for (_, kind, _), name in API_KEYS.items() if kind in _KINDS),
    "ConsumerProtocolAssignment",
    "ConsumerProtocolSubscription",
)
"""The messages that are prefixed with their version; each has a typed function."""

_WORDS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_VARIANTS: Final = (
    """CREATE OR REPLACE TEMPORARY FUNCTION from_kafka_variant(value BINARY, message STRING, version INT DEFAULT NULL)
    RETURNS VARIANT RETURN parse_json(kafka_json(value, message, version))""",
    """CREATE OR REPLACE TEMPORARY FUNCTION kafka_record_variant(topic STRING, key BINARY, value BINARY)
    RETURNS VARIANT RETURN parse_json(kafka_record_json(topic, key, value))""",
)


def function_name(message: str) -> str:
    """Return the name of the typed function of a message, such as ``from_kafka_offset_commit_value``."""
    return f"from_kafka_{_WORDS.sub('_', message).lower()}"


def register_functions(spark: SparkSession) -> None:
    """Register all functions with a session."""
    for name in VERSIONED_MESSAGES:
        spark.udf.register(function_name(name), decoder(name)[0])
    spark.udf.register("kafka_json", _texts(message_json))
    spark.udf.register("kafka_record_json", _texts(record_json))
    table_function: Any = udtf(FromKafka)
    spark.udtf.register("from_kafka", table_function)
    for statement in _VARIANTS:
        spark.sql(statement)


def _texts(of_row: Callable[..., str | None]) -> Any:
    """Return a function of rows with three columns as a Spark function."""

    def texts(first: pa.Array, second: pa.Array, third: pa.Array) -> pa.Array:
        rows = zip(first.to_pylist(), second.to_pylist(), third.to_pylist(), strict=True)
        return pa.array([of_row(*row) for row in rows], pa.string())

    return column_function(texts, StringType())


class FromKafka:
    """The table function: it takes a value, a message name and a version, and returns the fields as one row."""

    def __init__(self, analyzed: AnalyzeResult) -> None:
        self._schema = analyzed.schema

    @staticmethod
    def analyze(
        value: AnalyzeArgument, message: AnalyzeArgument, version: AnalyzeArgument | None = None
    ) -> AnalyzeResult:
        """Return the columns: the fields, and ``_error``. An unknown message name fails here, before the query runs."""
        if not isinstance(message.value, str):
            raise OptionError(source="from_kafka", option="message", value=None, reason="a constant name is needed")
        schema = schema_of(message.value, version.value if version else None)
        return AnalyzeResult(without_notes(with_error(schema)))

    def eval(self, value: bytes | None, message: str, version: int | None = None) -> Iterator[Any]:
        """Yield the single row of a value, with only nulls for a null value."""
        structs = decode(pa.array([value], pa.binary()), resolve_message(message), version)
        table = pa.Table.from_arrays(structs.flatten(), names=self._schema.names)
        yield from ArrowTableToRowsConversion.convert(table, self._schema)
