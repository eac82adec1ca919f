"""Copies of log directories in an earlier state: only the first batches of each partition."""

from __future__ import annotations

import shutil
from pathlib import Path

from kafka_msgs.errors import LogFileError
from kafka_msgs.log.log_directory import LogDirectory, Partition

__all__ = ["copy_of_earlier"]


def copy_of_earlier(source: Path, target: Path, share: float) -> Path:
    """Copy a log directory with a share of each partition's batches, replacing an existing copy."""
    shutil.rmtree(target, ignore_errors=True)
    for partition in LogDirectory(source).partitions:
        _copy(partition, target / partition.path.name, share)
    return target


def _copy(partition: Partition, target: Path, share: float) -> None:
    target.mkdir(parents=True)
    if (partition.path / "partition.metadata").exists():
        shutil.copy(partition.path / "partition.metadata", target)
    ends = [
        (segment.path, item.position + (item.skipped if isinstance(item, LogFileError) else item.size))
        for segment in partition.segments
        for item in segment.walk_batches()
    ]
    last, end = ends[: max(1, round(len(ends) * share))][-1] if ends else (partition.segments[0].path, 0)
    for segment in partition.segments:
        if segment.path <= last:
            data = segment.path.read_bytes()
            (target / segment.path.name).write_bytes(data[:end] if segment.path == last else data)
