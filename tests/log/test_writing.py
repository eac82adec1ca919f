"""The small files of a log directory, written as a real broker wrote them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_msgs.log import (
    read_clean_shutdown,
    read_leader_epochs,
    read_meta_properties,
    read_offset_checkpoint,
    read_partition_metadata,
    read_producer_snapshot,
    read_quorum_state,
)
from kafka_msgs.log.writing.files import (
    format_clean_shutdown,
    format_leader_epochs,
    format_meta_properties,
    format_offset_checkpoint,
    format_partition_metadata,
    format_producer_snapshot,
    format_quorum_state,
)

RECORDINGS = Path(__file__).parents[1] / "recordings"


def recorded(pattern: str) -> list[Path]:
    found = sorted(RECORDINGS.rglob(pattern))
    assert found
    return found


def rewritten(path: Path) -> bytes:
    """Read a file and write what it says."""
    match path.name:
        case "leader-epoch-checkpoint":
            return format_leader_epochs(read_leader_epochs(path))
        case "partition.metadata":
            return format_partition_metadata(read_partition_metadata(path).topic_id)
        case ".kafka_cleanshutdown":
            return format_clean_shutdown(read_clean_shutdown(path))
        case "quorum-state":
            version, state = read_quorum_state(path)
            return format_quorum_state(state, version)
        case "meta.properties":
            return format_meta_properties(read_meta_properties(path).properties, 1_763_746_718_000)
    if path.suffix == ".snapshot":
        return format_producer_snapshot(read_producer_snapshot(path))
    return format_offset_checkpoint(read_offset_checkpoint(path))


@pytest.mark.parametrize(
    "name",
    [
        "*.snapshot",
        "*-offset-checkpoint",
        ".kafka_cleanshutdown",
        "leader-epoch-checkpoint",
        "partition.metadata",
        "quorum-state",
    ],
)
def test_a_file_is_written_as_kafka_wrote_it(name: str) -> None:
    for path in recorded(name):
        assert rewritten(path) == path.read_bytes(), path


def test_the_properties_differ_in_the_date_only() -> None:
    for path in recorded("meta.properties"):
        kafka, ours = (content.splitlines(keepends=True) for content in (path.read_bytes(), rewritten(path)))
        assert ours[0] == kafka[0]
        assert ours[1] == b"#Fri Nov 21 17:38:38 UTC 2025\n"
        assert ours[2:] == kafka[2:]
