"""The files of a real broker, read as by Kafka's own ``DumpLogSegments``."""

from __future__ import annotations

import shutil
from pathlib import Path
from uuid import UUID

import pytest

from kafka_msgs.errors import LogFileError
from kafka_msgs.log.file_scan import FileScan, read_log
from kafka_msgs.log.log_directory import LogDirectory, Partition
from kafka_msgs.log.small_files import LeaderEpoch, read_clean_shutdown, read_offset_checkpoint
from kafka_msgs.log.transaction_index import IsolationLevel
from kafka_msgs.messages.quorum_state_data import Voter
from kafka_msgs.records import CompressionType, ControlType, RecordBatch
from tests.support.dump_fixtures import BATCHES, DUMPED, RECORDED, files, named
from tests.support.kafka_dump import dumped, dumped_file, sections
from tests.support.recordings import ACTIVE_LOGS, LOGS, TIERED_LOGS


@pytest.mark.parametrize("path", BATCHES, ids=named(BATCHES))
def test_every_batch_and_record_is_what_kafka_reads(path: Path) -> None:
    printed = [line for line in DUMPED[path] if line.startswith(("baseOffset", "| "))]
    assert list(dumped(path)) == printed
    assert printed


SMALL_FILES = [path for suffix in (".index", ".timeindex", ".txnindex", ".snapshot") for path in files(suffix)]


@pytest.mark.parametrize("path", SMALL_FILES, ids=named(SMALL_FILES))
def test_every_entry_of_an_index_and_every_producer_is_what_kafka_reads(path: Path) -> None:
    assert dumped_file(path) == [line for line in DUMPED[path] if not line.endswith("is empty.")]


def test_the_recording_has_what_it_should_show() -> None:
    codecs = [batch for batch in Partition(LOGS / "codecs-0").batches() if isinstance(batch, RecordBatch)]
    assert {batch.codec for batch in codecs} == set(CompressionType)
    ends = [record.type for batch in codecs for record in batch.control_records()]
    assert ends == [ControlType.COMMIT, ControlType.ABORT, ControlType.COMMIT]
    (compacted, _) = Partition(LOGS / "prices-0").batches()
    assert isinstance(compacted, RecordBatch)
    assert compacted.delete_horizon is not None
    assert None in compacted.values()
    assert all(files(suffix) for suffix in (".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint"))


def test_a_log_directory_lists_its_partitions(tmp_path: Path) -> None:
    for name in (
        "orders-10",
        "orders-9",
        "a-b-0",
        "orders-3.0f33a5e4-delete",
        "orders-4.0f33a5e4-future",
        "lost+found",
    ):
        (tmp_path / name).mkdir()
    (tmp_path / "meta.properties").write_text("")
    partitions = LogDirectory(tmp_path).partitions
    assert [(each.topic, each.partition) for each in partitions] == [("a-b", 0), ("orders", 9), ("orders", 10)]


def test_a_log_directory_says_whose_it_is() -> None:
    meta = LogDirectory(LOGS).meta()
    assert (meta.version, meta.cluster_id, meta.node_id) == (1, "a2Fma2EtbXNncy1jYXB0dQ", 1)
    assert isinstance(meta.directory_id, UUID)


def test_a_partition_lists_its_files_in_order() -> None:
    partition = Partition(LOGS / "codecs-0")
    assert (partition.topic, partition.partition) == ("codecs", 0)
    assert [segment.base_offset for segment in partition.segments] == [0, 35]
    assert [path.name for path in partition.producer_snapshots] == [f"{35:020}.snapshot", f"{44:020}.snapshot"]
    assert partition.leader_epochs() == (LeaderEpoch(0, 0),)
    assert partition.metadata().version == 0
    assert partition.snapshots == ()


def test_the_metadata_log_has_a_snapshot() -> None:
    partition = Partition(LOGS / "__cluster_metadata-0")
    assert partition.metadata().topic_id == UUID(int=1)
    (snapshot,) = partition.snapshots
    assert snapshot.path.stem == f"{snapshot.end_offset:020}-{snapshot.epoch:010}"
    control = [
        record.type
        for batch in snapshot.batches()
        if isinstance(batch, RecordBatch)
        for record in batch.control_records()
    ]
    assert control == [ControlType.SNAPSHOT_HEADER, ControlType.SNAPSHOT_FOOTER]


def test_a_partition_that_is_written_to_reads_as_it_does_once_its_broker_has_stopped() -> None:
    partition = Partition(ACTIVE_LOGS / "drafts-0")
    printed = sections(partition.path)
    closed, active = partition.segments
    assert (closed.closed, active.closed) == (True, False)
    for segment, preallocated in ((closed, False), (active, True)):
        lines = [line for line in printed[segment.path.name] if line.startswith(("baseOffset", "| "))]
        assert list(dumped(segment.path)) == lines
        scan = FileScan(segment.path, closed=segment.closed)
        assert not any(isinstance(item, LogFileError) for item in scan)
        assert (scan.preallocated > 0) == preallocated
        entries = [f"offset: {each.offset} position: {each.position}" for each in segment.offset_index()]
        assert entries == [line for line in printed[f"{segment.path.stem}.index"] if not line.endswith("is empty.")]
        times = [f"timestamp: {each.timestamp} offset: {each.offset}" for each in segment.time_index()]
        # The broker adds the latest time when it stops.
        assert times == printed[f"{segment.path.stem}.timeindex"][: len(times)]
    assert [record.offset for batch in partition.batches() for record in batch] == list(range(48))


def test_every_kind_of_control_record_was_recorded() -> None:
    files = (item for path in BATCHES for item in read_log(path) if isinstance(item, RecordBatch))
    assert {record.type for batch in files for record in batch.control_records()} == set(ControlType)


def test_the_metadata_log_says_what_its_quorum_is() -> None:
    version, configured = Partition(LOGS / "__cluster_metadata-0").quorum_state()
    assert (version, configured.leader_id, configured.leader_epoch) == (0, 1, 1)
    assert configured.current_voters == (Voter(voter_id=1),)
    version, grown = Partition(TIERED_LOGS / "__cluster_metadata-0").quorum_state()
    assert (version, grown.leader_id, grown.leader_epoch, grown.current_voters) == (1, 1, 1, ())


def test_the_checkpoints_of_a_whole_directory() -> None:
    (last,) = LogDirectory(TIERED_LOGS).partitions[-1].segments[-1:]
    end = max(batch.last_offset for batch in last.batches()) + 1
    found = {path.name: read_offset_checkpoint(path) for path in TIERED_LOGS.glob("*-offset-checkpoint")}
    everything = {("__remote_log_metadata", 0): 24, ("invoices", 0): end}
    assert found == {
        "recovery-point-offset-checkpoint": everything,
        "replication-offset-checkpoint": everything,
        "log-start-offset-checkpoint": {("invoices", 0): 18},
        "cleaner-offset-checkpoint": {},
    }
    assert read_clean_shutdown(TIERED_LOGS / ".kafka_cleanshutdown").broker_epoch > 0


def test_a_cluster_starts_from_records_without_a_place_in_a_log() -> None:
    records = [record for batch in read_log(TIERED_LOGS / "bootstrap.checkpoint") for record in batch]
    assert len(records) > 2


@pytest.mark.parametrize("indexes", ["present", "absent"])
@pytest.mark.parametrize("recorded", RECORDED, ids=named(RECORDED))
def test_reading_starts_at_the_batch_that_holds_an_offset(recorded: Path, indexes: str, tmp_path: Path) -> None:
    partition = copied(recorded, tmp_path, indexes)
    batches = list(partition.batches())
    for offset in range(batches[-1].last_offset + 2):
        expected = [batch.position for batch in batches if batch.last_offset >= offset]
        assert [batch.position for batch in partition.batches(offset)] == expected


@pytest.mark.parametrize("indexes", ["present", "absent"])
@pytest.mark.parametrize("recorded", RECORDED, ids=named(RECORDED))
def test_the_first_record_at_a_time_is_the_one_that_reading_everything_finds(
    recorded: Path, indexes: str, tmp_path: Path
) -> None:
    partition = copied(recorded, tmp_path, indexes)
    records = [record for batch in partition.batches() for record in batch]
    times = {record.timestamp for record in records}
    for time in sorted(times | {time + 1 for time in times} | {0}):
        assert partition.first_record_at(time) == next((each for each in records if each.timestamp >= time), None)


def copied(source: Path, target: Path, indexes: str) -> Partition:
    ignored = shutil.ignore_patterns("*index") if indexes == "absent" else None
    return Partition(Path(shutil.copytree(source, target / source.name, ignore=ignored)))


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_a_partition_without_segments_has_no_batches(tmp_path: Path, isolation: IsolationLevel) -> None:
    assert list(Partition(tmp_path).batches(isolation=isolation)) == []
