"""A batch that a reader returns in parts has the same batch rows as the whole batch."""

from __future__ import annotations

from functools import reduce
from pathlib import Path

import pyarrow as pa
import pytest

from kafka_msgs.analysis.batch_rows import BATCH_COLUMNS, batch_rows, same_batch
from kafka_msgs.columns.record_tables import walk_record_table
from kafka_msgs.engines.partition_reader import RECORD_COLUMNS
from kafka_msgs.records import BatchBuilder, BatchHeader

HOUR = 3_600_000


def joined(one: pa.Table, other: pa.Table) -> pa.Table:
    found = same_batch(one, other)
    assert found is not None
    return found


@pytest.mark.parametrize("newest", range(4))
@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_batch_in_parts_has_the_row_of_the_whole_batch(tmp_path: Path, newest: int, size: int) -> None:
    builder = BatchBuilder(BatchHeader(base_offset=7))
    for number in range(4):
        builder.append(b"k" * number, b"value", timestamp=10 * HOUR + HOUR * (number == newest) - 7 * number)
    path = tmp_path / f"{7:020}.log"
    path.write_bytes(builder.build())
    columns = (*RECORD_COLUMNS, "batch_position", *BATCH_COLUMNS)
    (whole,) = walk_record_table(path, columns=columns)
    expected = batch_rows(whole, 7, path.name)
    assert expected["maxTimestampMs"].to_pylist() == [11 * HOUR - 7 * newest]
    parts = [batch_rows(each, 7, path.name) for each in walk_record_table(path, columns=columns, max_rows=size)]
    assert len(parts) > 1
    assert reduce(joined, parts).to_pylist() == expected.to_pylist()
