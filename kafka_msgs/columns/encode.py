"""``encode_column``: encode a struct array to message bytes, with an error for each row that cannot be encoded.

This module first checks the column names against the message. Without this check, a misspelt column would result in
the default in every row. ``native`` encodes the rows that it supports. The codec encodes the remaining rows one by one,
or finds their errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_msgs._backend import backend_module
from kafka_msgs.codec import codec_for
from kafka_msgs.columns.decode import (
    DecodedColumn,
    OnBadRow,
    check_on_error,
    error_column,
    error_entry,
    iter_bad_rows,
)
from kafka_msgs.columns.interface import MAX_ARRAY, ColumnEncoder
from kafka_msgs.columns.objects import bounded_slices, to_objects
from kafka_msgs.columns.types import ERROR_TYPE, check_columns
from kafka_msgs.errors import ColumnSizeError, ColumnTypeError, EncodeError, UnsupportedVersionError
from kafka_msgs.message import Message
from kafka_msgs.versioned import encode_versioned

__all__ = ["encode_column"]

_IMPLEMENTATION: Final = backend_module("kafka_msgs.columns")


def encode_column(
    column: Any,
    message: type[Message],
    version: int | pa.Array | pa.ChunkedArray,
    *,
    prefix: bool = False,
    on_error: OnBadRow = "null",
) -> DecodedColumn:
    """Encode a struct array (or a chunked one) to binary, one message per row, at ``version``.

    To set the version of each row, pass an Arrow array of integers as ``version``. The column may have any fields of
    ``arrow_type(message)``, in any order. Fields of the message without a column get their defaults. Integers may have
    any width. Strings and bytes may be of Arrow's large types. Null stays null. A null in a field that does not allow
    null is an error of its row. With ``prefix`` each row starts with its version, as for ``encode_versioned``.

    A row that cannot be written is null and has an entry in ``errors``, whose ``offset`` is null; with
    ``on_error="raise"`` its ``EncodeError`` is raised, or the ``UnsupportedVersionError`` of a version by row. Raises
    ``UnsupportedVersionError``, ``UnknownColumnError``, ``ColumnTypeError``, ``ColumnSizeError`` for bytes that need
    more than one array and, for another ``on_error``, ``OptionError``.
    """
    check_on_error("encode_column", on_error)
    if not isinstance(column, pa.Array | pa.ChunkedArray):
        raise ColumnTypeError(column="", expected="an Arrow array of structs", found=type(column).__name__)
    if not pa.types.is_struct(column.type):
        raise ColumnTypeError(column="", expected="struct", found=str(column.type))
    check_columns(column.type, message)
    versions = _versions(version, len(column))
    if versions is None:
        codec_for(message, version)
    work = _ArrayEncoder(column.type, message, None if versions is not None else version, prefix, on_error)
    if not isinstance(column, pa.ChunkedArray):
        return work.array(column, versions)
    done = []
    start = 0
    for chunk in column.chunks:
        done.append(work.array(chunk, None if versions is None else versions.slice(start, len(chunk))))
        start += len(chunk)
    return DecodedColumn(
        pa.chunked_array([each.values for each in done], pa.binary()),
        pa.chunked_array([each.errors for each in done], ERROR_TYPE),
    )


def _versions(version: Any, count: int) -> Any:
    """Return the versions of the rows as one array, or None for a single version."""
    if not isinstance(version, pa.Array | pa.ChunkedArray):
        return None
    if not pa.types.is_integer(version.type) or len(version) != count:
        found = f"{len(version)} of {version.type}"
        raise ColumnTypeError(column="version", expected=f"{count} integers", found=found)
    return version.combine_chunks() if isinstance(version, pa.ChunkedArray) else version


class _ArrayEncoder:
    """Encodes arrays of one type, one at a time."""

    def __init__(
        self, type_: pa.StructType, message: type[Message], version: int | None, prefix: bool, on_error: OnBadRow
    ) -> None:
        self._by_row = _RowEncoder(message, version, prefix, on_error)
        self._encode: ColumnEncoder | None = _IMPLEMENTATION.encoder(message, version, type_, prefix)

    def array(self, array: pa.StructArray, versions: pa.Array | None) -> DecodedColumn:
        if self._encode is None:
            values, errors = self._by_row.encode(array, versions)
            return DecodedColumn(_joined(values, array), error_column(errors, len(array)))
        parts = list(self._encode(array, versions))
        refused = [number for number, _ in iter_bad_rows(parts)]
        values, errors = [part.values for part in parts], {}
        if refused:
            rows = pa.array(refused, pa.int32())
            rest, found = self._by_row.encode(array.take(rows), None if versions is None else versions.take(rows))
            errors = {refused[number]: error for number, error in found.items()}
            if len(found) < len(refused):
                values = [_filled(_joined(values, array), refused, _joined(rest, array))]
        return DecodedColumn(_joined(values, array), error_column(errors, len(array)))


def _joined(parts: Sequence[pa.Array], array: pa.Array) -> pa.Array:
    """Combine the encoded parts of an array."""
    if sum(each.nbytes for each in parts) > MAX_ARRAY:
        raise ColumnSizeError(rows=len(array), size=int(array.nbytes))
    return parts[0] if len(parts) == 1 else pa.chunked_array(parts, pa.binary()).combine_chunks()


def _filled(values: pa.Array, rows: Iterable[int], rest: pa.Array) -> pa.Array:
    """Return ``values`` with the values at the row numbers ``rows`` replaced by ``rest``."""
    flags = bytearray(len(values))
    for row in rows:
        flags[row] = 1
    mask = pa.Array.from_buffers(pa.uint8(), len(values), [None, pa.py_buffer(flags)]).cast(pa.bool_())
    return pc.replace_with_mask(values, mask, rest)


class _RowEncoder:
    """Encodes rows one by one as message objects, or finds their errors."""

    def __init__(self, message: type[Message], version: int | None, prefix: bool, on_error: OnBadRow) -> None:
        self._message = message
        self._version = version
        self._write = encode_versioned if prefix else message.encode
        self._raise = on_error == "raise"

    def encode(
        self, array: pa.StructArray, versions: pa.Array | None
    ) -> tuple[list[pa.Array], dict[int, dict[str, Any]]]:
        """Return the encoded rows in parts, with null for rows with an error, and the errors by row number."""
        parts: list[pa.Array] = []
        errors: dict[int, dict[str, Any]] = {}
        start = 0
        for piece in bounded_slices(array):
            at = repeat(self._version) if versions is None else versions.slice(start, len(piece)).to_pylist()
            values = [
                None if row is None else self._row(row, version, number, errors)
                for number, (row, version) in enumerate(zip(to_objects(piece, self._message), at, strict=False), start)
            ]
            parts.append(pa.array(values, pa.binary()))
            start += len(piece)
        return parts, errors

    def _row(self, row: Message, version: Any, number: int, errors: dict[int, dict[str, Any]]) -> bytes | None:
        try:
            return self._write(row, version)
        except (EncodeError, UnsupportedVersionError) as error:
            if self._raise:
                raise
            errors[number] = error_entry(error)
            return None
