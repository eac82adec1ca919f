"""Kafka's bytes as Arrow tables: whole columns of messages and of records, decoded and encoded (extra ``arrow``)."""

from kafka_msgs.errors import MissingExtraError

try:
    import pyarrow  # noqa: F401
except ImportError as error:
    raise MissingExtraError(feature="kafka_msgs.columns", extra="arrow", package="pyarrow") from error

from kafka_msgs.columns.decode import DecodedColumn, decode_column
from kafka_msgs.columns.encode import encode_column
from kafka_msgs.columns.record_tables import read_record_table, walk_record_table
from kafka_msgs.columns.types import ERROR_TYPE, RECORD_SCHEMA, arrow_type, record_schema

__all__ = [
    "ERROR_TYPE",
    "RECORD_SCHEMA",
    "DecodedColumn",
    "arrow_type",
    "decode_column",
    "encode_column",
    "read_record_table",
    "record_schema",
    "walk_record_table",
]
