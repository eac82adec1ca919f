"""``decode_column``: decode an Arrow array of encoded messages to a struct array, with an error for each bad row.

This module owns the interface: input types, chunks, threads, and the errors of bad rows. ``native`` or ``python``
decodes. The reference then finds the errors at the locations that ``native`` records; the codec finds them for
``python``.
"""

from __future__ import annotations

from array import array as numbers
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Literal, TypeAlias, get_args

import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from kafka_msgs._backend import backend_module
from kafka_msgs.codec import DEFAULT_OPTIONS, Buffer, CodecOptions, codec_for
from kafka_msgs.codec.error_explanation import trailing_data
from kafka_msgs.codec.options import buffer_bytes
from kafka_msgs.codec.plan import Plan
from kafka_msgs.columns import python
from kafka_msgs.columns.interface import MAX_ARRAY, ColumnDecoder, RowLocation, RowSlice
from kafka_msgs.columns.python import ROW_FAULTS, row_decoder
from kafka_msgs.columns.types import ERROR_TYPE, arrow_type
from kafka_msgs.errors import ColumnSizeError, ColumnTypeError, InternalError, KafkaMsgsError, OptionError
from kafka_msgs.schema import MessageStruct
from kafka_msgs.validators import check_choice, check_int
from kafka_msgs.versioned import version_prefix

__all__ = [
    "Column",
    "DecodedColumn",
    "OnBadRow",
    "binary_column",
    "check_on_error",
    "decode_column",
    "error_column",
    "error_entry",
    "error_texts",
    "iter_bad_rows",
]

Column: TypeAlias = "pa.Array | pa.ChunkedArray | Sequence[Buffer | None]"
"""A decodable column: binary or large binary, or a sequence of buffers."""

OnBadRow: TypeAlias = Literal["null", "raise"]
"""The handling of a bad row: null with an entry in the errors, or an exception."""

_IMPLEMENTATION: Final = backend_module("kafka_msgs.columns")


@frozen
class DecodedColumn:
    """The decoded or encoded rows of a column, and the errors of bad rows.

    ``values`` and ``errors`` have the same length and the same chunks as the input. ``errors`` is null for a good row,
    and for a row that was null in the input. For a bad row it is a struct of ``path``, ``offset`` and ``reason``, with
    the values of the codec's exception.
    """

    values: Any
    errors: Any

    @property
    def error_count(self) -> int:
        """Return the number of bad rows."""
        return len(self.errors) - int(self.errors.null_count)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the rows as a table through Arrow's PyCapsule interface: one column per field, null in null rows."""
        chunks = self.values.chunks if isinstance(self.values, pa.ChunkedArray) else [self.values]
        tables = map(pa.RecordBatch.from_struct_array, chunks)
        reader = pa.RecordBatchReader.from_batches(pa.schema(list(self.values.type)), tables)
        return reader.__arrow_c_stream__(requested_schema)


def decode_column(
    column: Column,
    message: type[MessageStruct],
    version: int | None = None,
    *,
    columns: Iterable[str] | None = None,
    options: CodecOptions = DEFAULT_OPTIONS,
    on_error: OnBadRow = "null",
    workers: int = 1,
) -> DecodedColumn:
    """Decode a column of messages to a struct array of ``arrow_type(message, version, columns=columns)``.

    Every row is one complete message at ``version``. Without a version every row starts with its own version, as for
    ``decode_versioned``. Fields that its version does not have get their defaults. Null stays null. A row that is not
    such a message becomes null and has an entry in ``errors``. With ``on_error="raise"`` its exception is raised. The
    budget of ``options`` applies to each row.

    An array gives arrays; a chunked array gives chunked ones, chunk by chunk, with up to ``workers`` chunks at a time
    in threads of their own. Raises ``UnsupportedVersionError``, ``UnknownColumnError``, ``ColumnTypeError`` for what
    holds no bytes, ``ColumnSizeError`` for an array whose values need more than one, and ``OptionError`` for another
    ``on_error``, for ``workers`` below 1, and for options that keep what is not UTF-8, since Arrow's strings cannot.
    """
    check_on_error("decode_column", on_error)
    check_int("decode_column", "workers", workers, 1)
    if options.utf8_errors == "surrogateescape":
        reason = "it is one of strict, replace: Arrow strings are UTF-8"
        raise OptionError(source="decode_column", option="utf8_errors", value=options.utf8_errors, reason=reason)
    source = binary_column(column)
    type_ = arrow_type(message, version, columns=columns)
    # Only CPython replaces bytes that are not UTF-8.
    used = _IMPLEMENTATION if options.utf8_errors == "strict" else python
    work = _ArrayDecoder(
        used.decoder(message, version, type_, options), _Explainer(message, version, options, on_error)
    )
    if not isinstance(source, pa.ChunkedArray):
        return work.array(source)
    return _over_chunks(work, source, type_, workers)


def binary_column(column: Any) -> Any:
    """Convert a ``Column`` to an array or a chunked array; raises ``ColumnTypeError`` for any other object."""
    if isinstance(column, pa.Array | pa.ChunkedArray):
        if not (pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)):
            raise ColumnTypeError(column="", expected="binary or large_binary", found=str(column.type))
        return column
    if isinstance(column, Buffer) or not isinstance(column, Sequence):
        raise ColumnTypeError(column="", expected="a sequence of bytes", found=type(column).__name__)
    for data in column:
        if data is not None and not isinstance(data, Buffer):
            raise ColumnTypeError(column="", expected="of bytes", found=f"of {type(data).__name__}")
    return pa.array([None if data is None else buffer_bytes(data) for data in column], pa.binary())


def check_on_error(source: str, on_error: object) -> None:
    """Raise ``OptionError``, which names the function ``source``, unless ``on_error`` is an ``OnBadRow``."""
    check_choice(source, "on_error", on_error, get_args(OnBadRow))


class _Explainer:
    """Finds the errors of single bad rows."""

    def __init__(
        self, message: type[MessageStruct], version: int | None, options: CodecOptions, on_error: OnBadRow
    ) -> None:
        self._message = message
        self._version = version
        self._options = options
        self._decode = row_decoder(message, version, options)
        self._raise = on_error == "raise"

    def errors(self, array: pa.Array, bad: Iterable[tuple[int, RowLocation]]) -> pa.StructArray:
        """Return the error column of an array; ``bad`` yields the refused rows with their locations."""
        return error_column({number: self._entry(array[number].as_py(), number, at) for number, at in bad}, len(array))

    def _entry(self, data: bytes, number: int, location: RowLocation) -> dict[str, Any]:
        try:
            if location is not None:
                self._resume(data, location)
            self._decode(data)
        except ROW_FAULTS as error:
            if self._raise:
                raise
            return error_entry(error)
        name = self._message.INFO.name
        raise InternalError(reason=f"row {number} of a column of {name} was refused and has no fault")

    def _resume(self, data: bytes, location: tuple[Any, ...]) -> None:
        """Raise the error at a location; return if there is none."""
        trail, position, *_ = location
        if trail:
            from kafka_msgs.codec import reference

            reference.resume_decode(self._plan(data), data, self._options, reference.FaultLocation(*location))
        elif position >= 0:
            raise trailing_data(self._plan(data), position, len(data))

    def _plan(self, data: bytes) -> Plan:
        """Return the plan of a row. Without a fixed version, the version prefix of the row, a valid one, selects it."""
        cls, version = self._message, self._version
        if version is None:
            number = int.from_bytes(data[:2], "big", signed=True)
            version = next(each for each in cls.INFO.versions if version_prefix(cls, each) == number)
        return codec_for(cls, version, self._options).plan


def error_entry(error: KafkaMsgsError) -> dict[str, Any]:
    """Convert an exception to an entry of the error column."""
    facts = vars(error)
    return {"path": facts.get("path", ""), "offset": facts.get("offset"), "reason": facts.get("reason", str(error))}


def error_column(errors: Mapping[int, dict[str, Any]], count: int) -> pa.StructArray:
    """Return an error column of ``count`` rows: the given errors by row number, and null in all remaining rows."""
    if not errors:
        return pa.nulls(count, ERROR_TYPE)
    places = numbers("i", bytes(4 * count))
    for place, row in enumerate(errors, 1):
        places[row] = place
    indexes = pa.Array.from_buffers(pa.int32(), count, [None, pa.py_buffer(places)])
    return pa.array([None, *errors.values()], ERROR_TYPE).take(indexes)


def error_texts(errors: pa.StructArray, message: str) -> pa.StringArray:
    """Return the errors of a decoded column as texts, with null for rows without an error."""
    if errors.null_count == len(errors):
        return pa.nulls(len(errors), pa.string())
    texts: list[str | None] = [None] * len(errors)
    for row in pc.indices_nonzero(errors.is_valid()).to_pylist():
        error = errors[row].as_py()
        path = f" {error['path']}" if error["path"] else ""
        place = "" if error["offset"] is None else f"{path} at byte {error['offset']}:"
        texts[row] = f"{message}:{place} {error['reason']}"
    return pa.array(texts, pa.string())


class _ArrayDecoder:
    """Decodes arrays one at a time, and finds the errors of bad rows."""

    def __init__(self, decode: ColumnDecoder, explainer: _Explainer) -> None:
        self._decode = decode
        self._explainer = explainer

    def array(self, array: pa.Array) -> DecodedColumn:
        found = list(self.arrays(array))
        if len(found) > 1:
            raise ColumnSizeError(rows=len(array), size=int(array.nbytes))
        return found[0]

    def arrays(self, array: pa.Array) -> Iterator[DecodedColumn]:
        """Yield the decoded values, in several parts if they do not fit into one array."""
        start = 0
        for parts in _groups(self._decode(array)):
            values = parts[0].values if len(parts) == 1 else pa.concat_arrays([part.values for part in parts])
            rows = array.slice(start, len(values))
            yield DecodedColumn(values, self._explainer.errors(rows, iter_bad_rows(parts)))
            start += len(values)


def _groups(parts: Iterable[RowSlice]) -> Iterator[list[RowSlice]]:
    """Join parts that fit into one array."""
    group: list[RowSlice] = []
    size = 0
    for part in parts:
        if group and size + part.values.nbytes > MAX_ARRAY:
            yield group
            group, size = [], 0
        group.append(part)
        size += part.values.nbytes
    yield group


def iter_bad_rows(parts: Iterable[RowSlice]) -> Iterator[tuple[int, RowLocation]]:
    """Yield the numbers of refused rows, from 0 in the first part, and their locations."""
    start = 0
    for part in parts:
        yield from ((start + number, location) for number, location in zip(part.bad_rows, part.locations, strict=False))
        start += len(part.values)


def _over_chunks(work: _ArrayDecoder, source: pa.ChunkedArray, type_: pa.StructType, workers: int) -> DecodedColumn:
    chunks = source.chunks
    if workers > 1 and len(chunks) > 1:
        with ThreadPoolExecutor(min(workers, len(chunks))) as pool:
            done = list(pool.map(lambda chunk: list(work.arrays(chunk)), chunks))
    else:
        done = [list(work.arrays(chunk)) for chunk in chunks]
    found = [each for chunk in done for each in chunk]
    return DecodedColumn(
        pa.chunked_array([each.values for each in found], type_),
        pa.chunked_array([each.errors for each in found], ERROR_TYPE),
    )
