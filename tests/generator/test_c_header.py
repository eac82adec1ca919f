"""The header of the C core says what the codec's table of ops says, and stays the generator's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kafka_msgs.codec.ops import FIXED, MAX_LENGTH, MAX_STRING, MAX_TAG, MAX_TAGS, Op
from kafka_msgs_generator.c_header import ops_header
from kafka_msgs_generator.output import ForeignFileError, apply, plan


def test_every_op_has_its_number() -> None:
    numbers = {name: int(number) for name, number in re.findall(r"^    OP_(\w+) = (\d+),$", ops_header(), re.M)}
    assert numbers == {op.name: op.value for op in Op}


def test_sizes_stand_at_the_numbers_of_their_ops() -> None:
    (sizes,) = re.findall(r"FIXED_SIZE\[\] = \{(.*)\};", ops_header())
    assert dict(enumerate(map(int, sizes.split(", ")))) == {op.value: FIXED.get(op, ("", 0))[1] for op in Op}


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
