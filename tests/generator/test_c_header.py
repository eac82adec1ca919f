"""The generated headers of the C core match the Python tables, and the generator rewrites only its own headers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kafka_msgs.binary_layouts import ATTRIBUTES, HEADER, RECORD_COLUMNS, ColumnKind, RecordField, header_struct
from kafka_msgs.codec.ops import MAX_LENGTH, MAX_STRING, MAX_TAG, MAX_TAGS, LengthFlag
from kafka_msgs.primitive_types import Kind, Op
from kafka_msgs_generator.c_header import layouts_header, ops_header
from kafka_msgs_generator.output import ForeignFileError, apply, plan


def test_every_op_has_its_number() -> None:
    numbers = {name: int(number) for name, number in re.findall(r"^    OP_(\w+) = (\d+),$", ops_header(), re.M)}
    assert numbers == {op.name: op.value for op in Op}


def facts(name: str) -> dict[Op, str]:
    """Return the facts of a C table, by op."""
    (values,) = re.findall(rf" {name}\[\] = \{{(.*)\}};", ops_header())
    return dict(zip(Op, values.split(", "), strict=True))


def test_facts_stand_at_the_numbers_of_their_ops() -> None:
    assert facts("FIXED_SIZE") == {op: str(op.size) for op in Op}
    assert facts("LENGTH_SIZE") == {
        op: {"STRING": "2", "BYTES": "4", "RECORDS": "4", "ARRAY": "4", "STRUCT": "1"}.get(op.name, "0") for op in Op
    }
    widths = {"INT8": 1, "INT16": 2, "INT32": 4, "INT64": 8, "UINT16": 4, "UINT32": 8, "FLOAT64": 8, "UUID": 36}
    assert facts("COLUMN_WIDTH") == {op: str(widths.get(op.name, 0)) for op in Op}


def test_numbers_have_their_bounds() -> None:
    found = {op.name: (facts("LOWEST")[op], facts("HIGHEST")[op]) for op in Op if op.kind is Kind.INTEGER}
    assert found == {
        **{f"INT{bits}": (f"INT{bits}_MIN", f"INT{bits}_MAX") for bits in (8, 16, 32, 64)},
        **{f"UINT{bits}": ("0", f"UINT{bits}_MAX") for bits in (16, 32)},
    }


def test_ops_of_fixed_size_come_first() -> None:
    (count,) = re.findall(r"#define FIXED_OPS (\d+)", ops_header())
    assert [op.size > 0 for op in Op] == [True] * int(count) + [False] * (len(Op) - int(count))


def test_the_limits_are_those_of_the_codec() -> None:
    limits = {name: int(value) for name, value in re.findall(r"#define (MAX_\w+) +(\d+)", ops_header())}
    assert limits == {"MAX_STRING": MAX_STRING, "MAX_LENGTH": MAX_LENGTH, "MAX_TAG": MAX_TAG, "MAX_TAGS": MAX_TAGS}


def test_a_header_that_is_out_of_date_is_written_anew_and_a_foreign_one_is_not(tmp_path: Path) -> None:
    header = tmp_path / "ops.h"
    header.write_text(ops_header().replace("OP_BOOL = 0", "OP_BOOL = 7"))
    apply(plan(tmp_path, {"ops.h": ops_header()}))
    assert header.read_text() == ops_header()
    header.write_text("/* mine */\n")
    with pytest.raises(ForeignFileError):
        plan(tmp_path, {"ops.h": ops_header()})


def layout_constants() -> dict[str, int]:
    return {name: int(number) for name, number in re.findall(r"^    (\w+) = (-?\d+),$", layouts_header(), re.M)}


def test_the_header_of_a_batch_is_laid_out_as_in_kafka() -> None:
    """The offsets equal the constants in Kafka's ``DefaultRecordBatch``."""
    kafka = {
        "BASE_OFFSET": 0, "SIZE": 8, "LEADER_EPOCH": 12, "MAGIC": 16, "CRC": 17, "ATTRIBUTES": 21,
        "LAST_OFFSET_DELTA": 23, "BASE_TIMESTAMP": 27, "MAX_TIMESTAMP": 35, "PRODUCER_ID": 43, "PRODUCER_EPOCH": 51,
        "BASE_SEQUENCE": 53, "COUNT": 57,
    }  # fmt: skip
    constants = layout_constants()
    assert {name.removesuffix("_AT"): place for name, place in constants.items() if name.endswith("_AT")} == kafka
    assert (constants["HEADER_SIZE"], HEADER.size) == (61, 61)
    assert header_struct("magic", "count").unpack_from(bytes(16) + b"\2" + bytes(43) + b"\7") == (2, 7)


def test_flags_and_kinds_are_those_of_python() -> None:
    constants = layout_constants()
    expected = {name.upper(): value for name, value in ATTRIBUTES.items()}
    for prefix, members in (("", LengthFlag), ("PART_", RecordField), ("COLUMN_", ColumnKind)):
        expected |= {f"{prefix}{member.name}": int(member) for member in members}
    assert {name: constants[name] for name in expected} == expected
    names = [name.lower().removeprefix("record_column_") for name in constants if name.startswith("RECORD_COLUMN_")]
    assert names == [*RECORD_COLUMNS, "count"]
