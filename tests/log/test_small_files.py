"""The small files of a log directory, valid and damaged."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from attrs import evolve
from crc32c import crc32c

from kafka_msgs.errors import LogFileError
from kafka_msgs.log.indexes import OFFSET_LAYOUT, OffsetEntry, read_offset_index
from kafka_msgs.log.small_files import (
    CleanShutdown,
    LeaderEpoch,
    PartitionMetadata,
    read_clean_shutdown,
    read_leader_epochs,
    read_meta_properties,
    read_offset_checkpoint,
    read_partition_metadata,
    read_producer_snapshot,
    read_quorum_state,
)
from kafka_msgs.messages.producer_snapshot import ProducerEntry, ProducerSnapshot
from kafka_msgs.messages.quorum_state_data import QuorumStateData, Voter
from kafka_msgs.versioned import encode_versioned

Write = Callable[[bytes], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(data: bytes) -> Path:
        path = tmp_path / "file"
        path.write_bytes(data)
        return path

    return write


def refused(read: Callable[[Path], Any], path: Path) -> tuple[int, str]:
    with pytest.raises(LogFileError) as raised:
        read(path)
    assert raised.value.file == str(path)
    return raised.value.position, raised.value.reason


PRODUCERS = ProducerSnapshot(producer_entries=(ProducerEntry(producer_id=7, epoch=1, last_offset=41),))


def sealed(snapshot: ProducerSnapshot) -> bytes:
    covered = encode_versioned(snapshot, 1)[6:]
    return encode_versioned(evolve(snapshot, crc=crc32c(covered)), 1)


def test_a_producer_snapshot(write: Write) -> None:
    snapshot = read_producer_snapshot(write(sealed(PRODUCERS)))
    assert snapshot.producer_entries == PRODUCERS.producer_entries


def test_a_producer_snapshot_that_was_changed(write: Write) -> None:
    data = sealed(PRODUCERS)
    position, reason = refused(read_producer_snapshot, write(data[:-1] + b"?"))
    assert position == 2
    assert reason.startswith(f"the checksum is {data[2:6].hex()}, the bytes have ")


@pytest.mark.parametrize("size", range(len(sealed(PRODUCERS))))
def test_a_producer_snapshot_that_was_cut_off(write: Write, size: int) -> None:
    position, _ = refused(read_producer_snapshot, write(sealed(PRODUCERS)[:size]))
    assert 0 <= position <= size


def test_a_producer_snapshot_of_an_unknown_version(write: Write) -> None:
    data = b"\0\2" + sealed(PRODUCERS)[2:]
    assert refused(read_producer_snapshot, write(data)) == (0, "ProducerSnapshot has no version 2; it has 1")


def test_leader_epochs(write: Write) -> None:
    assert read_leader_epochs(write(b"0\n2\n0 0\n5 1000\n")) == (LeaderEpoch(0, 0), LeaderEpoch(5, 1000))
    assert read_leader_epochs(write(b"0\n0\n")) == ()


def test_a_checkpoint_of_offsets(write: Write) -> None:
    path = write(b"0\n2\norders 0 1000\n__consumer_offsets 49 7\n")
    assert read_offset_checkpoint(path) == {("orders", 0): 1000, ("__consumer_offsets", 49): 7}


@pytest.mark.parametrize(
    ("data", "position", "reason"),
    [
        (b"", 0, "a version and a number of entries were expected"),
        (b"0\n", 0, "a version and a number of entries were expected"),
        (b"1\n0\n", 0, "'1': the version is not known"),
        (b"0\n2\n0 0\n", 2, "'2': there are 1 entries"),
        (b"0\n1\n0 0\n1 5\n", 2, "'1': there are more entries"),
        (b"0\n1\n0\n", 4, "'0': 2 numbers were expected"),
        (b"0\n2\n0 0\n5 x\n", 8, "'5 x': 2 numbers were expected"),
        (b"\xff\n1\n0 0\n", 0, r"'\\xff': a number was expected"),
        (b"0\n1\n0 \xd9\xa1\n", 4, "'0 \u0661': 2 numbers were expected"),
    ],
)
def test_a_damaged_checkpoint(write: Write, data: bytes, position: int, reason: str) -> None:
    assert refused(read_leader_epochs, write(data)) == (position, reason)


def test_partition_metadata(write: Write) -> None:
    path = write(b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ")
    assert read_partition_metadata(path) == PartitionMetadata(0, UUID(int=1))


@pytest.mark.parametrize(
    ("data", "position", "reason"),
    [
        (b"", 0, "version is missing"),
        (b"version: 0\n", 0, "topic_id is missing"),
        (b"version: 0\ntopic_id AAAA", 11, "'topic_id AAAA': a name and a value were expected"),
        (b"version: 0\ntopic_id: AAAA", 11, "'AAAA': an id of 22 characters was expected"),
        (b"version: one\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ", 0, "'one': a number was expected"),
    ],
)
def test_damaged_partition_metadata(write: Write, data: bytes, position: int, reason: str) -> None:
    assert refused(read_partition_metadata, write(data)) == (position, reason)


def test_meta_properties_of_kraft(write: Write) -> None:
    lines = [
        b"#",
        b"# a comment",
        b"node.id=3",
        b"version=1",
        b"cluster.id=MkU3\\=",
        b"directory.id=AAAAAAAAAAAAAAAAAAAAZA",
    ]
    meta = read_meta_properties(write(b"\r\n".join(lines)))
    assert (meta.version, meta.cluster_id, meta.node_id, meta.directory_id) == (1, "MkU3=", 3, UUID(int=100))
    assert meta.properties["directory.id"] == "AAAAAAAAAAAAAAAAAAAAZA"


def test_meta_properties_of_zookeeper_times(write: Write) -> None:
    meta = read_meta_properties(write(b"version=0\nbroker.id=3\n"))
    assert (meta.version, meta.cluster_id, meta.node_id, meta.directory_id) == (0, None, 3, None)


def test_damaged_meta_properties(write: Write) -> None:
    assert refused(read_meta_properties, write(b"version=1\nnode.id")) == (
        10, "'node.id': a name and a value were expected",
    )  # fmt: skip
    assert refused(read_meta_properties, write(b"version=1\nnode.id=x"))[0] == 10


def test_a_quorum_with_voters_that_are_configured(write: Write) -> None:
    version, state = read_quorum_state(
        write(
            b'{"clusterId":"","leaderId":1,"leaderEpoch":4,"votedId":-1,"appliedOffset":0,'
            b'"currentVoters":[{"voterId":1},{"voterId":2}],"data_version":0}'
        )
    )
    assert version == 0
    assert state == QuorumStateData(leader_id=1, leader_epoch=4, current_voters=(Voter(voter_id=1), Voter(voter_id=2)))


def test_a_quorum_with_voters_in_its_log(write: Write) -> None:
    version, state = read_quorum_state(
        write(
            b'{"leaderId":-1,"leaderEpoch":7,"votedId":3,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAZA","data_version":1}\n'
        )
    )
    assert version == 1
    assert state == QuorumStateData(leader_epoch=7, voted_id=3, voted_directory_id=UUID(int=100))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not JSON: Expecting value: line 1 column 1 (char 0)"),
        (b"[" * 100_000, "not JSON: "),
        (b"\xff\xfe\xfd", "not JSON: "),
        (b"7" * 5000, "not JSON: "),
        (b"[]", "a JSON object was expected"),
        (b"{}", "data_version is missing or is not a number"),
        (b'{"data_version":true}', "data_version is missing or is not a number"),
        (b'{"data_version":2}', "QuorumStateData has no version 2; it has 0-1"),
        (b'{"data_version":1}', "QuorumStateData v1: QuorumStateData.leaderId: missing"),
        (b'{"data_version":1,"leaderId":"1"}', "QuorumStateData v1: QuorumStateData.leaderId: expected int32"),
    ],
)
def test_a_damaged_quorum_state(write: Write, data: bytes, reason: str) -> None:
    position, printed = refused(read_quorum_state, write(data))
    assert position == 0
    assert printed.startswith(reason)


def test_a_clean_shutdown(write: Write) -> None:
    assert read_clean_shutdown(write(b'{"version":0,"brokerEpoch":13}')) == CleanShutdown(0, 13)
    assert refused(read_clean_shutdown, write(b'{"version":0}')) == (0, "brokerEpoch is missing or is not a number")
    assert refused(read_clean_shutdown, write(b"13")) == (0, "a JSON object was expected")


@pytest.mark.parametrize(
    "read",
    [
        read_meta_properties,
        read_partition_metadata,
        read_producer_snapshot,
        read_quorum_state,
        read_clean_shutdown,
        read_leader_epochs,
        read_offset_checkpoint,
    ],
)
def test_a_file_that_is_not_small_is_not_read(tmp_path: Path, read: Callable[[Path], object]) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(3 << 30)
    assert refused(read, path) == (0, "the file has 3,221,225,472 bytes, at most 67,108,864 were expected")


def test_the_zeros_of_a_sparse_index_take_no_memory(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.index"
    with path.open("wb") as file:
        file.write(OFFSET_LAYOUT.pack(5, 100))
        file.truncate(1 << 28)
    tracemalloc.start()
    try:
        assert list(read_offset_index(path)) == [OffsetEntry(5, 100)]
        assert tracemalloc.get_traced_memory()[1] < 1 << 23
    finally:
        tracemalloc.stop()
