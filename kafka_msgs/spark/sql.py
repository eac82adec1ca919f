"""Functions of SQL: messages out of binary columns, by one function a message or by a name in the query.

Owns the names under which functions are registered. One scalar function cannot return a type that depends on what it is
given, so there are several kinds: typed functions, one a message; the table function ``from_kafka``, which takes any
message's name; and variants, for what is not known before the query runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
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
"""The messages that travel with their version in front; each has a typed function."""

_WORDS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_VARIANTS: Final = (
    """CREATE OR REPLACE TEMPORARY FUNCTION from_kafka_variant(value BINARY, message STRING, version INT DEFAULT NULL)
    RETURNS VARIANT RETURN parse_json(kafka_json(value, message, version))""",
    """CREATE OR REPLACE TEMPORARY FUNCTION kafka_record_variant(topic STRING, key BINARY, value BINARY)
    RETURNS VARIANT RETURN parse_json(kafka_record_json(topic, key, value))""",
)


def function_name(message: str) -> str:
    """Return the name of a message's typed function, such as ``from_kafka_offset_commit_value``."""
    return f"from_kafka_{_WORDS.sub('_', message).lower()}"


def register_functions(spark: SparkSession) -> None:
    """Register all functions with a session."""
    for name in VERSIONED_MESSAGES:
        spark.udf.register(function_name(name), decoder(name))
    spark.udf.register("kafka_json", column_function(_message_texts, StringType()))
    spark.udf.register("kafka_record_json", column_function(_record_texts, StringType()))
    table_function: Any = udtf(FromKafka)
    spark.udtf.register("from_kafka", table_function)
    for statement in _VARIANTS:
        spark.sql(statement)


def _message_texts(data: pa.Array, messages: pa.Array, versions: pa.Array) -> pa.Array:
    rows = zip(data.to_pylist(), messages.to_pylist(), versions.to_pylist(), strict=True)
    return pa.array([message_json(*row) for row in rows], pa.string())


def _record_texts(topics: pa.Array, keys: pa.Array, values: pa.Array) -> pa.Array:
    rows = zip(topics.to_pylist(), keys.to_pylist(), values.to_pylist(), strict=True)
    return pa.array([record_json(*row) for row in rows], pa.string())


class FromKafka:
    """The table function: a value, the name of a message, and a version; one row with the fields of the message."""

    def __init__(self, analyzed: AnalyzeResult) -> None:
        self._schema = analyzed.schema

    @staticmethod
    def analyze(
        value: AnalyzeArgument, message: AnalyzeArgument, version: AnalyzeArgument | None = None
    ) -> AnalyzeResult:
        """Return the columns: the fields, and ``_error``; a name that no message has fails here, before the query."""
        if not isinstance(message.value, str):
            raise OptionError(source="from_kafka", option="message", value=None, reason="a constant name is needed")
        schema = schema_of(message.value, version.value if version else None)
        return AnalyzeResult(without_notes(with_error(schema)))

    def eval(self, value: bytes | None, message: str, version: int | None = None) -> Iterator[Any]:
        """Yield the one row of a value; all nulls for null."""
        structs = decode(pa.array([value], pa.binary()), resolve_message(message), version)
        table = pa.Table.from_arrays(structs.flatten(), names=self._schema.names)
        yield from ArrowTableToRowsConversion.convert(table, self._schema)
