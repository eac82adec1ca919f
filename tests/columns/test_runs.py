"""Batch runs give the same rows and faults as the same batches one by one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka_msgs.binary_layouts import CONTROL, TRANSACTIONAL
from kafka_msgs.columns import walk_record_table
from kafka_msgs.columns.record_tables import BATCH_COLUMNS, walk_batch_table
from kafka_msgs.log import batch_runs
from kafka_msgs.log.batch_runs import EVERYTHING, RunLimits, walk_runs
from kafka_msgs.log.file_scan import FileScan, walk_log
from kafka_msgs.records import (
    DEFAULT_READ_OPTIONS,
    BatchBuilder,
    BatchHeader,
    CompressionType,
    ReadOptions,
    RecordBatch,
    read_batches,
)
from kafka_msgs.records.batch import BatchRun
from tests.support.batches import described, sealed
from tests.support.dump_fixtures import BATCHES, named
from tests.support.implementations import implementations, name_of
from tests.support.log_fragments import PIECES, PRODUCER, batch

pytestmark = pytest.mark.usefixtures("implementation", "counting")


@pytest.fixture(params=implementations("kafka_msgs.log"), ids=name_of)
def counting(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Find batch runs with the implementation under test."""
    monkeypatch.setattr(batch_runs, "_IMPLEMENTATION", request.param)


def outcome(items: Iterator[Any]) -> list[Any]:
    """Return the rows, with the types and texts of the faults in their places."""
    found: list[Any] = []
    for item in items:
        if isinstance(item, pa.RecordBatch):
            item.validate(full=True)
            at = item.schema.get_field_index("timestamp")
            numbers = item if at < 0 else item.set_column(at, "timestamp", item.column(at).cast(pa.int64()))
            found += numbers.to_pylist()
        else:
            found.append((type(item).__name__, str(item)))
    return found


def both(path: Path, options: ReadOptions = DEFAULT_READ_OPTIONS, **asked: Any) -> tuple[list[Any], list[Any]]:
    """Return the outcome for a file read in batch runs, and read batch by batch as an iterable of batches."""
    one_by_one = ReadOptions(check_crc=options.check_crc, max_elements=options.max_elements, zero_copy=True)
    return (
        outcome(walk_record_table(path, options, **asked)),
        outcome(walk_record_table(walk_log(path, one_by_one), options, **asked)),
    )


@pytest.mark.parametrize("path", BATCHES, ids=named(BATCHES))
def test_a_real_file_gives_the_same_rows(path: Path) -> None:
    in_runs, one_by_one = both(path)
    assert in_runs == one_by_one


SMALL = st.lists(st.sampled_from(PIECES) | described(2).map(lambda each: each.written()), max_size=7)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pieces=SMALL, data=st.data())
def test_any_file_gives_the_same_rows_and_faults(pieces: list[bytes], data: st.DataObject, tmp_path: Path) -> None:
    content = bytearray(b"".join(pieces))
    for _ in range(data.draw(st.integers(0, 2)) if content else 0):
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(content)
    options = ReadOptions(check_crc=data.draw(st.booleans()), max_elements=data.draw(st.sampled_from((3, 10**6))))
    bounds = {
        "max_rows": data.draw(st.sampled_from((1, 3, 10**6))),
        "max_bytes": data.draw(st.sampled_from((9, 10**6))),
    }
    in_runs, one_by_one = both(path, options, **bounds)
    assert in_runs == one_by_one


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(written=described(2).map(lambda each: bytearray(each.written())), data=st.data())
def test_damaged_records_with_a_right_checksum_give_their_fault(
    written: bytearray, data: st.DataObject, tmp_path: Path
) -> None:
    good = batch(1, 2, 3)
    place = data.draw(st.integers(43, len(written) - 1))
    written[place] = data.draw(st.integers(0, 255))
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(good + sealed(written) + good)
    in_runs, one_by_one = both(path)
    assert in_runs == one_by_one
    assert len(in_runs) >= 6


@pytest.mark.parametrize("codec", CompressionType)
def test_compressed_batches_stand_between_others(codec: CompressionType, tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes((batch(1, 2) + batch(3, 4, 5, codec=codec, **PRODUCER)) * 3)
    in_runs, one_by_one = both(path)
    assert in_runs == one_by_one
    assert [row["timestamp_ms"] for row in in_runs] == [1, 2, 3, 4, 5] * 3
    assert [row["codec"] for row in in_runs[:3]] == ["none", "none", codec.name.lower()]
    counted = outcome(walk_batch_table(path, columns=sorted(BATCH_COLUMNS)))
    assert counted == [{name: row[name] for name in sorted(BATCH_COLUMNS)} for row in in_runs]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=7))
def test_headers_alone_give_the_rows_that_records_give(pieces: list[bytes], tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(b"".join(pieces))
    columns = sorted(BATCH_COLUMNS)
    assert outcome(walk_batch_table(path, columns=columns)) == outcome(walk_record_table(path, columns=columns))


@pytest.mark.parametrize(
    "limits",
    [
        EVERYTHING,
        RunLimits(without=CONTROL | TRANSACTIONAL),
        RunLimits(first=4, last=9),
        RunLimits(stop=700, last=3),
        RunLimits(stop=0),
    ],
)
def test_runs_and_what_is_between_them_are_the_batches_of_the_file(limits: RunLimits, tmp_path: Path) -> None:
    made = [batch(1, 2, base_offset=2 * number, **PRODUCER, transactional=number % 3 == 1) for number in range(9)]
    made.insert(5, b"\xff" * 70)
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(b"".join(made))
    expected = [item.position for item in walk_log(path) if item.position < limits.stop]
    found = list(walk_runs(FileScan(path), limits))
    alone = [each for item in found if isinstance(item, BatchRun) for each in item.batches()]
    assert (
        sorted(each.position for each in [*alone, *(item for item in found if not isinstance(item, BatchRun))])
        == expected
    )
    assert not any(each.attributes & limits.without for each in alone)
    assert all(limits.first <= each.base_offset <= each.last_offset <= limits.last for each in alone)
    assert all(isinstance(item, BatchRun) for item in found) == (limits.stop == 0)


def test_a_batch_that_was_read_is_a_run_of_one() -> None:
    _, made = read_batches(batch(1, 2, 3) * 2)
    assert isinstance(made, RecordBatch)
    run = made.detach
    assert (run.position, run.end - run.start, run.last_offset) == (made.position, made.size, made.last_offset)
    (again,) = run.batches()
    assert again.records() == made.records()


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    builder = BatchBuilder(BatchHeader())
    for _ in range(8):
        builder.append(None, bytes(1000))
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(builder.build() * 4000)
    before = pa.total_allocated_bytes()
    most = max(
        pa.total_allocated_bytes() - before for _ in walk_record_table(path, columns=["value"], max_bytes=1 << 20)
    )
    assert most < 8 << 20 < path.stat().st_size
