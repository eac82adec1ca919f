"""``encode_column``: a struct array to the bytes of messages, with an error for each row that cannot be written.

This module first checks that the columns are those of the message. Without this check, a misspelt column would give the
default in every row. The codec checks the values of a row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from kafka_msgs.codec import codec_for
from kafka_msgs.columns.decode import MAX_ARRAY, DecodedColumn, OnBadRow, check_on_error, error_column, error_entry
from kafka_msgs.columns.types import ERROR_TYPE, check_columns
from kafka_msgs.columns.values import bounded_slices, structs
from kafka_msgs.errors import ColumnSizeError, ColumnTypeError, EncodeError
from kafka_msgs.message import Message
from kafka_msgs.prefixed import encode_versioned

__all__ = ["encode_column"]


def encode_column(
    column: Any, message: type[Message], version: int, *, prefix: bool = False, on_error: OnBadRow = "null"
) -> DecodedColumn:
    """Encode a struct array (or a chunked one) to binary, one message at ``version`` per row.

    The fields are those of ``arrow_type(message)``, in any order. Fields of the message without a column get their
    defaults. Integers may have any width. Strings and bytes may be of Arrow's large types. Null stays null. A null in a
    field that does not allow null is an error of its row. With ``prefix`` each row starts with its version, as for
    ``encode_versioned``.

    A row that cannot be written is null and has an entry in ``errors``, whose ``offset`` is null; with
    ``on_error="raise"`` its ``EncodeError`` is raised. Raises ``UnsupportedVersionError``, ``UnknownColumnError``,
    ``ColumnTypeError`` and, for another ``on_error``, ``OptionError``.
    """
    check_on_error("encode_column", on_error)
    if not isinstance(column, pa.Array | pa.ChunkedArray):
        raise ColumnTypeError(column="", expected="an Arrow array of structs", found=type(column).__name__)
    if not pa.types.is_struct(column.type):
        raise ColumnTypeError(column="", expected="struct", found=str(column.type))
    check_columns(column.type, message)
    codec_for(message, version)
    if not isinstance(column, pa.ChunkedArray):
        return _array(column, message, version, prefix, on_error)
    done = [_array(chunk, message, version, prefix, on_error) for chunk in column.chunks]
    return DecodedColumn(
        pa.chunked_array([each.values for each in done], pa.binary()),
        pa.chunked_array([each.errors for each in done], ERROR_TYPE),
    )


def _array(
    array: pa.StructArray, message: type[Message], version: int, prefix: bool, on_error: OnBadRow
) -> DecodedColumn:
    encode = (lambda row: encode_versioned(row, version)) if prefix else codec_for(message, version).encode
    parts = [_part(piece, message, encode, on_error) for piece in bounded_slices(array)]
    values = pa.chunked_array([part.values for part in parts], pa.binary())
    if values.nbytes > MAX_ARRAY:
        raise ColumnSizeError(rows=len(array), size=int(array.nbytes))
    return DecodedColumn(values.combine_chunks(), pa.concat_arrays([part.errors for part in parts]))


def _part(
    array: pa.StructArray, message: type[Message], encode: Callable[[Any], bytes], on_error: OnBadRow
) -> DecodedColumn:
    values: list[bytes | None] = []
    errors: dict[int, dict[str, Any]] = {}
    for number, row in enumerate(structs(array, message)):
        data = None
        if row is not None:
            try:
                data = encode(row)
            except EncodeError as error:
                if on_error == "raise":
                    raise
                errors[number] = error_entry(error)
        values.append(data)
    return DecodedColumn(pa.array(values, pa.binary()), error_column(errors, len(values)))
