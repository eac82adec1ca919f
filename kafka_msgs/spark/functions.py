"""Column functions that decode messages from binary columns and encode them again.

Implements the functions that Spark calls per batch of rows, and the handling of invalid bytes. ``kafka_msgs.columns``
decodes and encodes the columns. ``sql`` registers the SQL functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeAlias

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import BinaryType, DataType, StructType

from kafka_msgs.columns import decode_column, encode_column
from kafka_msgs.columns.decode import OnBadRow, error_texts
from kafka_msgs.errors import EncodeError
from kafka_msgs.message import Message
from kafka_msgs.spark.spark_types import ERROR, resolve_message, schema_of, with_error, without_notes

__all__ = ["Mode", "column_function", "decode", "decoder", "from_kafka", "to_kafka", "with_errors"]

Mode: TypeAlias = Literal["PERMISSIVE", "FAILFAST", "DROPMALFORMED"]


def from_kafka(
    column: Column | str,
    message: str | type[Message],
    version: int | None = None,
    *,
    columns: Iterable[str] | None = None,
    mode: Mode = "PERMISSIVE",
) -> Column:
    """Return the messages in a binary column as a struct column of the type that ``schema_of`` returns.

    Without a version, each value must start with its version, as in internal topics. ``columns`` selects fields by
    dotted path; only these are built. Null in, null out.

    ``mode`` decides how to handle bytes that are not a message. ``PERMISSIVE`` adds a last field ``_error``: it is null
    for a valid message; otherwise it contains the reason, and the other fields are null. ``DROPMALFORMED`` returns
    null. ``FAILFAST`` ends the job with ``DecodeError``. Raises the errors of ``schema_of``.
    """
    function, returned = decoder(message, version, None if columns is None else tuple(columns), mode)
    made: Column = function(column)
    return made if without_notes(returned) == returned else made.cast(returned)


def decoder(
    message: str | type[Message],
    version: int | None = None,
    columns: tuple[str, ...] | None = None,
    mode: Mode = "PERMISSIVE",
) -> tuple[Any, StructType]:
    """Return the function that ``from_kafka`` applies, and the type of its result with the field metadata."""
    cls = resolve_message(message)
    returned = schema_of(cls, version, columns=columns)
    returned = with_error(returned) if mode == "PERMISSIVE" else returned

    def decoded(data: pa.Array) -> pa.Array:
        return decode(data, cls, version, columns, mode)

    # Spark compares the declared type with the type from Python, which has lost the field metadata.
    return column_function(decoded, without_notes(returned)), returned


def to_kafka(
    column: Column | str, message: str | type[Message], version: int | Column, *, prefix: bool = False
) -> Column:
    """Return the bytes of the messages in a struct column, written at ``version``: a number, or a column of numbers.

    Fields are matched by name. Missing fields get their defaults. With ``prefix`` the bytes start with the version, as
    in the values of internal topics. Null in, null out. A message that cannot be written, or that ``from_kafka`` could
    not read, ends the job with ``EncodeError``, because a null in its place would be a tombstone. So does an
    unsupported version in a version column. Raises ``UnknownNameError`` and ``UnsupportedVersionError``.
    """
    cls = resolve_message(message)
    schema_of(cls, None if isinstance(version, Column) else version)

    def encode_by_row(structs: pa.Array, versions: pa.Array) -> pa.Array:
        return encode_column(_sound(structs, cls), cls, versions, prefix=prefix, on_error="raise").values

    def encode(structs: pa.Array) -> pa.Array:
        return encode_by_row(structs, version)

    by_row = isinstance(version, Column)
    work = column_function(encode_by_row if by_row else encode, BinaryType())
    made: Column = work(column, version) if by_row else work(column)
    return made


def column_function(work: Callable[..., pa.Array], type_: DataType) -> Any:
    """Return a function over Arrow arrays, one for each argument, as a Spark function.

    It is deterministic, but declared otherwise, because Spark would run it again for a filter on its result.
    """
    return arrow_udf(work, type_).asNondeterministic()  # type: ignore[call-overload]


def decode(
    data: pa.Array,
    cls: type[Message],
    version: int | None,
    columns: tuple[str, ...] | None = None,
    mode: Mode = "PERMISSIVE",
) -> pa.StructArray:
    """Return the messages in an array, like ``from_kafka``. Raises ``DecodeError`` in the mode ``FAILFAST``."""
    on_error: OnBadRow = "raise" if mode == "FAILFAST" else "null"
    decoded = decode_column(data, cls, version, columns=columns, on_error=on_error)
    return with_errors(decoded.values, error_texts(decoded.errors, cls.INFO.name), data, mode)


def with_errors(structs: pa.StructArray, errors: pa.StringArray, data: pa.Array, mode: Mode) -> pa.StructArray:
    """Return structs; in the mode ``PERMISSIVE``, with the error column as their last field, null for null data."""
    if mode != "PERMISSIVE":
        return structs
    fields = [*structs.type, pa.field(ERROR, pa.string())]
    return pa.StructArray.from_arrays([*structs.flatten(), errors], fields=fields, mask=data.is_null())


def _sound(structs: pa.StructArray, cls: type[Message]) -> pa.StructArray:
    """Return the structs without their error column. Raises ``EncodeError`` for the first one with an error."""
    at = structs.type.get_field_index(ERROR)
    if at < 0:
        return structs
    errors = structs.field(at).drop_null()
    if len(errors):
        reason = f"it could not be read: {errors[0].as_py()}"
        raise EncodeError(message=cls.INFO.name, version=None, path="", value=None, reason=reason)
    fields = [field for field in structs.type if field.name != ERROR]
    arrays = [structs.field(field.name) for field in fields]
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=structs.is_null())
