"""Invalid calls: each raises one clear error instead of returning a table without its rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from kafka_msgs import OffsetFetchRequest
from kafka_msgs.columns import arrow_type, decode_column, encode_column, record_schema
from kafka_msgs.errors import ColumnTypeError, OptionError, UnknownColumnError, UnsupportedVersionError

ROWS = pa.array([{"group_id": "g"}])


@pytest.mark.parametrize(
    "select",
    [
        record_schema,
        lambda columns: arrow_type(OffsetFetchRequest, columns=columns),
        lambda columns: decode_column([b""], OffsetFetchRequest, 2, columns=columns),
    ],
    ids=["records", "type", "decode"],
)
@pytest.mark.parametrize(
    ("columns", "error", "reason"),
    [
        (["\ud800"], UnknownColumnError, r"has no column '\\ud800'"),
        (["größe"], UnknownColumnError, "has no column 'größe'"),
        ([None], ColumnTypeError, "'?NoneType'?, expected '?named by a text"),
        ("offset", ColumnTypeError, "'?str'?, expected '?a sequence of names"),
        (5, ColumnTypeError, "'?int'?, expected '?a sequence of names"),
    ],
)
def test_columns_that_cannot_be_are_named(
    select: Callable[[Any], Any], columns: Any, error: type[Exception], reason: str
) -> None:
    with pytest.raises(error, match=reason):
        select(columns)


@pytest.mark.parametrize(
    ("source", "call"),
    [
        ("decode_column", lambda on_error: decode_column([b"\1"], OffsetFetchRequest, 2, on_error=on_error)),
        ("encode_column", lambda on_error: encode_column(ROWS, OffsetFetchRequest, 2, on_error=on_error)),
    ],
)
@pytest.mark.parametrize("on_error", ["rase", "", None])
def test_a_misspelt_on_error_is_refused(source: str, call: Callable[[Any], Any], on_error: Any) -> None:
    with pytest.raises(OptionError, match=f"^{source}: option on_error.*: it is one of null, raise$") as raised:
        call(on_error)
    assert (raised.value.option, raised.value.value) == ("on_error", on_error)


@pytest.mark.parametrize(
    ("column", "found"), [(None, "NoneType"), (["\ud800"], "of str"), (b"ab", "bytes"), ([1], "of int")]
)
def test_what_holds_no_bytes_is_refused(column: Any, found: str) -> None:
    with pytest.raises(ColumnTypeError, match=f"{found}'?, expected"):
        decode_column(column, OffsetFetchRequest, 2)


def test_what_holds_no_structs_is_refused() -> None:
    with pytest.raises(ColumnTypeError, match=r"expected '?an Arrow array of structs"):
        encode_column(None, OffsetFetchRequest, 2)


@pytest.mark.parametrize("workers", [0, -1, True, 1.5, "2"])
def test_workers_are_a_whole_number_from_one(workers: Any) -> None:
    with pytest.raises(OptionError, match=r"^decode_column: option workers .*a whole number from 1 is needed"):
        decode_column([b"\1"], OffsetFetchRequest, 2, workers=workers)


@pytest.mark.parametrize("version", [2.0, 2.5, True, "2", 99])
def test_the_columns_of_a_version_that_is_not_one_are_refused(version: Any) -> None:
    arrow_type(OffsetFetchRequest, 2)
    with pytest.raises(UnsupportedVersionError):
        arrow_type(OffsetFetchRequest, version)
