"""``decode_payloads``: decodes schema registry payloads to an Arrow array, with an error for each bad row.

``serializers`` defines the header. The formats read the remaining bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, Final

from kafka_msgs.columns import DecodedColumn
from kafka_msgs.columns.decode import Column, OnBadRow, binary_column, check_on_error
from kafka_msgs.columns.types import ERROR_TYPE
from kafka_msgs.errors import ColumnSizeError, MissingExtraError, PayloadError, RegistryError
from kafka_msgs.registry.schemas import RegisteredSchema, SchemaResolver
from kafka_msgs.registry.serializers import check_kind, check_message, error_text, schema_id, split_payload

try:
    import pyarrow as pa
except ImportError as error:
    raise MissingExtraError(feature="kafka_msgs.registry", extra="registry", package="pyarrow") from error

__all__ = ["PayloadReader", "decode_payloads"]

_FORMATS: Final = {"AVRO": "avro", "PROTOBUF": "protobuf", "JSON": "json_schema"}


def decode_payloads(
    column: Column,
    target: RegisteredSchema,
    schemas: SchemaResolver,
    *,
    message: str | None = None,
    on_error: OnBadRow = "null",
) -> DecodedColumn:
    """Decode schema registry payloads to an array of the type that ``target`` describes.

    Each row contains the id of its writer's schema. ``schemas`` resolves the id, and the rules of the format resolve
    that schema to ``target``. For Protobuf, ``message`` is the full name of a message in ``target``, by default the
    first one. Null stays null. A bad row becomes null and has an entry with a null offset in ``errors``; so does a row
    with an unknown schema. With ``on_error="raise"``, a bad row raises ``PayloadError``.

    Arrays return arrays, and chunked arrays return chunked arrays. Raises ``RegisteredSchemaError`` if ``target``
    cannot become a column, ``RegistryError`` if the registry does not respond, and ``ColumnTypeError``,
    ``ColumnSizeError`` and ``OptionError`` like ``decode_column``.
    """
    return PayloadReader(target, schemas, message=message).decode(column, on_error=on_error)


class PayloadReader:
    """Decodes several columns like ``decode_payloads``. Each schema is requested and prepared only once."""

    def __init__(self, target: RegisteredSchema, schemas: SchemaResolver, *, message: str | None = None) -> None:
        """See ``decode_payloads``."""
        check_message(target, message)
        module: Any = import_module(f"kafka_msgs.registry.{_FORMATS[target.kind]}")
        self._target = target
        self._schemas = schemas
        self._shape, self._decoder_of = module.columns(target, schemas, message)
        self._decoders: dict[int, Callable[[bytes], Any]] = {}

    @property
    def type(self) -> pa.DataType:
        """The type of the arrays."""
        return self._shape.type

    def decode(self, column: Column, *, on_error: OnBadRow = "null") -> DecodedColumn:
        """Decode a column; see ``decode_payloads``."""
        check_on_error("decode_payloads", on_error)
        source = binary_column(column)
        if not isinstance(source, pa.ChunkedArray):
            return self._array(source, on_error)
        parts = [self._array(chunk, on_error) for chunk in source.chunks]
        return DecodedColumn(
            pa.chunked_array([each.values for each in parts], self.type),
            pa.chunked_array([each.errors for each in parts], ERROR_TYPE),
        )

    def _array(self, column: pa.Array, on_error: OnBadRow) -> DecodedColumn:
        payloads = column.to_pylist()
        values, reasons, unreadable = list[object](), dict[int, str](), dict[int, str]()
        read = partial(self._value, unreadable=unreadable)
        for row, payload in enumerate(payloads):
            values.append(None if payload is None else _tried(read, payload, row, reasons))
        made = _tried(self._shape.array, values, -1, {})
        if made is None:
            made = pa.concat_arrays([self._row(value, row, reasons) for row, value in enumerate(values)])
        if isinstance(made, pa.ChunkedArray):
            raise ColumnSizeError(rows=len(column), size=column.nbytes)
        if reasons and on_error == "raise":
            row = min(reasons)
            raise PayloadError(row=row, schema_id=schema_id(payloads[row]), reason=reasons[row])
        errors = [
            {"path": "", "offset": None, "reason": reasons[row]} if row in reasons else None
            for row in range(len(payloads))
        ]
        return DecodedColumn(made, pa.array(errors, ERROR_TYPE))

    def _row(self, value: object, row: int, reasons: dict[int, str]) -> pa.Array:
        """Return one value as an array, or null and a reason if the value does not fit the type."""
        made = _tried(self._shape.array, [value], row, reasons)
        return pa.nulls(1, self.type) if made is None else made

    def _value(self, payload: bytes, unreadable: dict[int, str]) -> object:
        """Return the value of a payload. ``unreadable`` maps the unusable schemas of the column to reasons."""
        number, data = split_payload(payload)
        if number not in self._decoders and number not in unreadable:
            decode = _tried(self._decoder, number, number, unreadable)
            if decode is not None:
                self._decoders[number] = decode
        if number not in self._decoders:
            raise ValueError(unreadable[number])
        return self._decoders[number](data)

    def _decoder(self, number: int) -> Any:
        writer = self._schemas.by_id(number)
        check_kind(writer, self._target)
        return self._decoder_of(writer)


def _tried(work: Callable[[Any], Any], given: Any, number: int, reasons: dict[int, str]) -> Any:
    """Return the result of ``work`` for ``given``, or record the failure in ``reasons`` by ``number`` and return None.

    The libraries of the formats raise many kinds of exceptions for invalid bytes.
    """
    try:
        return work(given)
    except (RegistryError, MemoryError):
        raise
    except Exception as error:
        reasons[number] = error_text(error)
        return None
