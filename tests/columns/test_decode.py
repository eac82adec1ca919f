"""Columns of messages equal the codec's results row by row, for every message and version, decoded and encoded."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from kafka_msgs import MetadataResponse, OffsetCommitKey, OffsetCommitValue, OffsetFetchRequest, decode_versioned
from kafka_msgs.codec import CodecOptions
from kafka_msgs.columns import arrow_type, decode, decode_column, encode_column
from kafka_msgs.columns.interface import RowSlice
from kafka_msgs.columns.types import KAFKA_TYPE
from kafka_msgs.errors import ColumnSizeError, ColumnTypeError, InvalidUtf8Error, OptionError, UnknownColumnError
from tests.support.columns import CLASSES, NAMES, plain, prefixed_rows, random_rows, sliced

ROWS = 12

pytestmark = pytest.mark.usefixtures("implementation")


@pytest.mark.parametrize("cls", CLASSES, ids=NAMES)
def test_every_version_holds_what_the_codec_decodes_and_is_written_back(cls: Any) -> None:
    for version in cls.INFO.versions:
        rows = [cls.decode(row.encode(version), version) for row in random_rows(cls, version, ROWS)]
        data: list[bytes | None] = [None, *(row.encode(version) for row in rows)]
        column = decode_column(data, cls, version)
        type_ = arrow_type(cls, version)
        column.values.validate(full=True)
        assert column.values.type.equals(type_, check_metadata=True)
        assert column.values.to_pylist() == [None, *(plain(row, type_) for row in rows)]
        assert column.errors.null_count == len(data)
        back = encode_column(column.values, cls, version)
        assert back.values.to_pylist() == data
        assert back.error_count == 0


@pytest.mark.parametrize("cls", CLASSES, ids=NAMES)
def test_rows_that_say_their_versions_have_defaults_where_those_lack_fields(cls: Any) -> None:
    rows = list(prefixed_rows(cls, 3))
    data = [data for _, data in rows]
    column = decode_column(pa.array(data), cls)
    type_ = arrow_type(cls)
    column.values.validate(full=True)
    assert column.values.to_pylist() == [plain(decode_versioned(cls, row).message, type_) for row in data]
    assert column.error_count == 0
    versions = pa.array([version for version in cls.INFO.versions for _ in range(3)])
    back = encode_column(column.values.slice(1), cls, versions.slice(1), prefix=True)
    assert back.values.to_pylist() == data[1:]
    assert back.error_count == 0


@pytest.mark.parametrize("cls", CLASSES, ids=NAMES)
def test_selected_columns_are_those_of_the_whole(cls: Any) -> None:
    version = cls.INFO.versions.highest
    data = pa.array([row.encode(version) for row in random_rows(cls, version, 5)])
    whole = decode_column(data, cls, version).values
    for path in paths(whole.type):
        found = decode_column(data, cls, version, columns=[path]).values
        found.validate(full=True)
        assert found.to_pylist() == [only(row, path.split(".")) for row in whole.to_pylist()]


def paths(type_: pa.DataType, above: str = "") -> list[str]:
    found = []
    for field in type_:
        inner = field.type.value_type if pa.types.is_list(field.type) else field.type
        found.append(above + field.name)
        if pa.types.is_struct(inner):
            found += paths(inner, f"{above}{field.name}.")
    return found


def only(value: Any, path: list[str]) -> Any:
    """Return the value reduced to the fields on the path."""
    if value is None or not path:
        return value
    if isinstance(value, list):
        return [only(each, path) for each in value]
    return {path[0]: only(value[path[0]], path[1:])}


def test_parquet_keeps_values_and_what_kafka_calls_their_types(tmp_path: Path) -> None:
    data = [row.encode(13) for row in random_rows(MetadataResponse, 13, 50)]
    values = decode_column([*data, None], MetadataResponse, 13).values
    parquet.write_table(pa.table({"answer": values}), tmp_path / "answers.parquet")
    found = parquet.read_table(tmp_path / "answers.parquet")["answer"].combine_chunks()
    assert found.to_pylist() == values.to_pylist()
    assert found.type.field("topics").type.value_type.field("topic_id").metadata[KAFKA_TYPE] == b"uuid"
    assert encode_column(found, MetadataResponse, 13).values.to_pylist() == [*data, None]


# Kinds of input


def commits(count: int = 20) -> list[bytes | None]:
    data: list[bytes | None] = [row.encode(4) for row in random_rows(OffsetCommitValue, 4, count)]
    data[3] = None
    return data


@pytest.mark.parametrize("type_", [pa.binary(), pa.large_binary()])
@pytest.mark.parametrize("change", [lambda array: array, sliced], ids=["whole", "sliced"])
def test_binary_and_large_binary_whole_and_sliced_are_the_same(type_: pa.DataType, change: Any) -> None:
    expected = decode_column(commits(), OffsetCommitValue, 4)
    found = decode_column(change(pa.array(commits(), type_)), OffsetCommitValue, 4)
    found.values.validate(full=True)
    assert found.values.equals(expected.values)
    assert found.values.null_count == 1
    assert found.errors.null_count == len(found.errors) == 20


def test_buffers_of_every_kind_may_be_rows() -> None:
    row = commits()[0]
    assert row is not None
    found = decode_column([row, bytearray(row), memoryview(row), None], OffsetCommitValue, 4)
    assert found.values.to_pylist() == [found.values[0].as_py()] * 3 + [None]


@pytest.mark.parametrize("empty", [[], pa.array([], pa.binary()), pa.array([], pa.large_binary())])
def test_empty_input_gives_empty_output(empty: Any) -> None:
    found = decode_column(empty, OffsetFetchRequest, 8)
    assert len(found.values) == len(found.errors) == 0
    assert found.values.type == arrow_type(OffsetFetchRequest, 8)


def test_a_column_of_nulls_is_one_of_nulls() -> None:
    found = decode_column([None] * 9, OffsetFetchRequest, 8)
    assert found.values.null_count == 9
    assert found.error_count == 0


@pytest.mark.parametrize("workers", [1, 3])
def test_chunks_stay_chunks_with_any_number_of_workers(workers: int) -> None:
    data = commits(50)
    chunks = pa.chunked_array([data[:7], [], data[7:30], data[30:]], pa.binary())
    found = decode_column(chunks, OffsetCommitValue, 4, workers=workers)
    assert (
        [len(chunk) for chunk in found.values.chunks] == [len(chunk) for chunk in found.errors.chunks] == [7, 0, 23, 20]
    )
    assert found.values.combine_chunks().equals(decode_column(data, OffsetCommitValue, 4).values)
    nothing = decode_column(pa.chunked_array([], pa.binary()), OffsetCommitValue, 4, workers=workers)
    assert nothing.values.num_chunks == 0
    assert nothing.values.type == arrow_type(OffsetCommitValue, 4)


@pytest.mark.parametrize("wrong", [pa.array(["a"]), pa.array([1]), pa.array([b"a"], pa.binary(1))])
def test_a_column_that_holds_no_bytes_is_refused(wrong: pa.Array) -> None:
    with pytest.raises(ColumnTypeError, match=f"the column is '{wrong.type}'".replace("[", r"\[")):
        decode_column(wrong, OffsetCommitValue)


def test_an_unknown_column_is_refused_before_anything_is_decoded() -> None:
    with pytest.raises(UnknownColumnError, match="OffsetCommitValue v4 has no column 'ofset'; similar: offset"):
        decode_column([b"what is no message"], OffsetCommitValue, 4, columns=["ofset"])


def test_values_for_which_one_array_is_too_small_are_given_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    data = [row.encode(4) for row in random_rows(OffsetCommitValue, 4, 20_000)]
    whole = decode_column(data, OffsetCommitValue, 4)
    parts = [part for lot in (data[:9000], data[9000:]) for part in [decode_column(lot, OffsetCommitValue, 4).values]]
    split = [RowSlice(parts[0], []), RowSlice(parts[1], [])]
    monkeypatch.setattr(decode, "MAX_ARRAY", parts[0].nbytes)
    monkeypatch.setattr(decode, "_IMPLEMENTATION", SimpleNamespace(decoder=lambda *_: lambda array: split))
    found = decode_column(pa.chunked_array([data], pa.binary()), OffsetCommitValue, 4)
    assert [len(chunk) for chunk in found.values.chunks] == [9000, 11_000]
    assert found.values.combine_chunks().equals(whole.values)
    with pytest.raises(ColumnSizeError, match="20000 rows"):
        decode_column(data, OffsetCommitValue, 4)


# Options and versions


def test_text_that_is_not_utf8_is_refused_or_replaced_and_never_kept() -> None:
    data = OffsetCommitValue(metadata="ab").encode(0).replace(b"ab", b"a\xff")
    strict = decode_column([data], OffsetCommitValue, 0)
    assert strict.errors.to_pylist() == [{"path": "metadata", "offset": 11, "reason": "not UTF-8: invalid start byte"}]
    replaced = decode_column([data], OffsetCommitValue, 0, options=CodecOptions(utf8_errors="replace"))
    assert replaced.values[0]["metadata"].as_py() == "a\ufffd"
    with pytest.raises(OptionError, match="Arrow strings are UTF-8"):
        decode_column([data], OffsetCommitValue, 0, options=CodecOptions(utf8_errors="surrogateescape"))


def test_a_bad_row_is_raised_where_that_is_wanted() -> None:
    data = OffsetCommitValue(metadata="ab").encode(0).replace(b"ab", b"a\xff")
    with pytest.raises(InvalidUtf8Error, match="OffsetCommitValue v0: metadata at byte 11: not UTF-8"):
        decode_column([None, data], OffsetCommitValue, 0, on_error="raise")


def test_prefixes_are_those_of_versioned_data() -> None:
    key = OffsetCommitKey(group="tea", topic="orders", partition=3)
    rows = [b"\0\1" + key.encode(0), b"\0\0" + key.encode(0), b"\0", b"\0\x63" + key.encode(0)]
    found = decode_column(rows, OffsetCommitKey)
    assert found.values.to_pylist() == [{"group": "tea", "topic": "orders", "partition": 3}, None, None, None]
    assert [error and error["reason"] for error in found.errors.to_pylist()] == [
        None,
        "OffsetCommitKey has the record type 1, this key has 0",
        "a version needs 2 bytes, 1 left",
        "OffsetCommitKey has the record type 1, this key has 99",
    ]
