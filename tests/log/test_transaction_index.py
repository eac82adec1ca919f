"""The batches for a read-committed consumer, compared with the broker's own responses and index."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_msgs import EndTxnMarker, ListOffsetsResponse
from kafka_msgs.columns.log_table import LogTable
from kafka_msgs.errors import LogFileError, OptionError
from kafka_msgs.log.faults import skip_faults
from kafka_msgs.log.log_directory import Partition
from kafka_msgs.log.segment import LARGEST
from kafka_msgs.log.tiered_partitions import TieredPartition, TieredSegment
from kafka_msgs.log.transaction_index import IsolationLevel, TransactionIndex
from kafka_msgs.records import BatchBuilder, BatchHeader, ControlType, RecordBatch
from tests.support.recorded_answers import answers
from tests.support.recordings import GROUP_LOGS, LOGS


def offsets(partition: Partition, isolation: IsolationLevel = "read_uncommitted") -> list[int]:
    """Return the offsets of the records in ``batches``, without control records."""
    batches = partition.batches(isolation=isolation)
    return [record.offset for batch in batches if not getattr(batch, "is_control", False) for record in batch]


def visible_by_the_index(partition: Partition, stable: int) -> list[int]:
    """Return the same offsets by the broker's own index of aborted transactions and its last stable offset."""
    aborted = [each for segment in partition.segments for each in segment.aborted_transactions()]
    found = []
    for batch in partition.batches():
        assert isinstance(batch, RecordBatch)
        spans = [
            range(each.first_offset, each.last_offset + 1) for each in aborted if each.producer_id == batch.producer_id
        ]
        for record in () if batch.is_control else batch:
            hidden = batch.is_transactional and any(record.offset in span for span in spans)
            found += [] if hidden or record.offset >= stable else [record.offset]
    return found


def stable_offsets() -> dict[str, int]:
    """Return each partition's last stable offset in the broker's response to a read-committed client."""
    _, committed = answers(ListOffsetsResponse)
    return {
        f"{topic.name}-{each.partition_index}": each.offset for topic in committed.topics for each in topic.partitions
    }


@pytest.mark.parametrize("name", sorted(stable_offsets()))
def test_committed_records_are_those_that_the_broker_shows(name: str) -> None:
    partition = Partition(GROUP_LOGS / name)
    found = offsets(partition, isolation="read_committed")
    assert found == visible_by_the_index(partition, stable_offsets()[name])
    assert name != "payments-0" or 0 < len(found) < len(offsets(partition))


def test_aborted_transactions_are_those_of_the_brokers_index() -> None:
    partition = Partition(LOGS / "codecs-0")
    indexed = [each for segment in partition.segments for each in segment.aborted_transactions()]
    spans = {(each.producer_id, each.first_offset, each.last_offset) for each in indexed}
    found = partition.transactions().aborted
    assert spans == {(producer, *span) for producer, own in found.items() for span in own} != set()


def batch(offset: int, *, producer: int = 7, end: ControlType | None = None, plain: bool = False) -> bytes:
    """Return a transactional record, or (``end``) its end marker, or (``plain``) a record without a transaction."""
    header = BatchHeader(
        base_offset=offset,
        producer_id=producer,
        producer_epoch=0,
        base_sequence=-1 if end is not None else offset,
        transactional=not plain,
        control=end is not None,
    )
    builder = BatchBuilder(header)
    if end is None:
        builder.append(None, b"value", timestamp=1)
    else:
        builder.append_control(end, EndTxnMarker(), timestamp=1)
    return builder.build()


def partition_of(home: Path, *segments: tuple[int, bytes]) -> Partition:
    for first, data in segments:
        (home / f"{first:020}.log").write_bytes(data)
    return Partition(home)


def test_a_transaction_is_followed_across_segments(tmp_path: Path) -> None:
    open_ = partition_of(tmp_path, (0, batch(0, plain=True) + batch(1)), (2, batch(2, plain=True)))
    assert offsets(open_, isolation="read_committed") == [0]
    assert open_.transactions() == TransactionIndex({}, last_stable_offset=1)
    aborted = partition_of(tmp_path, (3, batch(3, end=ControlType.ABORT) + batch(4)))
    assert aborted.transactions() == TransactionIndex({7: [(1, 3)]}, last_stable_offset=4)
    assert offsets(aborted, isolation="read_committed") == [0, 2]
    committed = partition_of(tmp_path, (3, batch(3, end=ControlType.COMMIT)))
    assert offsets(committed, isolation="read_committed") == [0, 1, 2]


def test_an_offset_behind_the_start_of_a_transaction_hides_its_rest_too(tmp_path: Path) -> None:
    partition = partition_of(tmp_path, (0, batch(0) + batch(1)), (2, batch(2) + batch(3, end=ControlType.ABORT)))
    assert [each.last_offset for each in partition.batches(2, isolation="read_committed")] == [3]


def test_a_transaction_whose_control_record_is_damaged_counts_as_open(tmp_path: Path) -> None:
    damaged = bytearray(batch(1, end=ControlType.COMMIT))
    damaged[-1] ^= 1
    partition = partition_of(tmp_path, (0, batch(0) + bytes(damaged) + batch(2, plain=True)))
    assert partition.transactions() == TransactionIndex({}, last_stable_offset=0)
    (fault,) = partition.walk_batches(isolation="read_committed")
    assert isinstance(fault, LogFileError)


def test_an_empty_control_batch_begins_no_transaction(tmp_path: Path) -> None:
    empty = BatchBuilder(BatchHeader(producer_id=9, producer_epoch=0, transactional=True, control=True)).build()
    torn = b"garbage" * 10 + batch(3, plain=True)
    partition = partition_of(tmp_path, (0, empty + batch(1, plain=True)), (2, torn + empty + batch(4, plain=True)))
    assert partition.transactions() == TransactionIndex()
    found = skip_faults(partition.walk_batches(isolation="read_committed"))
    assert [each.last_offset for each in found] == [0, 1, 3, 0, 4]


@pytest.mark.parametrize("rolls", [False, True])
def test_batches_written_after_the_transactions_were_read_are_hidden(tmp_path: Path, *, rolls: bool) -> None:
    home = tmp_path / "orders-0"
    home.mkdir()
    partition = partition_of(home, (0, batch(0, plain=True) + batch(1, plain=True)))
    table = LogTable(home, columns=["offset"], isolation="read_committed")
    (rows,), batches = table.segments(), partition.walk_batches(isolation="read_committed")
    with partition.segments[0].path.open("ab") as growing:
        growing.write(b"" if rolls else batch(2) + batch(3, end=ControlType.ABORT) + batch(4))
    if rolls:
        partition_of(home, (2, batch(2) + batch(3, end=ControlType.ABORT) + batch(4)))
    assert [offset for found in rows.rows for offset in found["offset"].to_pylist()] == [0, 1]
    assert [each.last_offset for each in skip_faults(batches)] == [0, 1]
    assert offsets(partition, isolation="read_committed") == [0, 1]


def test_transactions_behind_damage_are_found(tmp_path: Path) -> None:
    data = batch(0) + b"garbage" * 10 + batch(1, end=ControlType.ABORT)
    assert partition_of(tmp_path, (0, data)).transactions().aborted == {7: [(0, 1)]}


def test_another_isolation_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(
        OptionError, match="option isolation 'committed': it is one of read_uncommitted, read_committed"
    ):
        Partition(tmp_path).batches(isolation="committed")  # type: ignore[arg-type]


def test_a_local_segment_of_a_tier_hides_batches_written_after_the_transactions_were_read(tmp_path: Path) -> None:
    home = tmp_path / "orders-0"
    home.mkdir()
    (segment,) = partition_of(home, (0, batch(0, plain=True) + batch(1, plain=True))).segments
    tiered = TieredPartition("orders", 0, (TieredSegment(segment.path, 0, LARGEST),))
    batches = tiered.walk_batches(isolation="read_committed")
    with segment.path.open("ab") as growing:
        growing.write(batch(2) + batch(3, end=ControlType.ABORT) + batch(4))
    assert [each.last_offset for each in skip_faults(batches)] == [0, 1]


def test_a_tier_without_segments_has_no_transactions() -> None:
    assert TieredPartition("orders", 0, ()).transactions() == TransactionIndex()
