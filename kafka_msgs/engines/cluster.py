"""The cluster that the inputs of a run belong to: the chosen replicas, the metadata log, and timestamp lookups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from attrs import field, frozen

from kafka_msgs.engines.replicas import JobInputs, Root, choose_replicas, segments_in
from kafka_msgs.filesystems.path_resolution import list_siblings, local_copy
from kafka_msgs.filesystems.segment_lookup import lookups_in
from kafka_msgs.log.log_directory import Partition
from kafka_msgs.log.metadata_log_state import METADATA_TOPIC, MetadataLogState, read_metadata_log_state
from kafka_msgs.log.timestamps import LogTimestamps

__all__ = ["Cluster"]

_COUNTED: Final = "__consumer_offsets"


@frozen
class Cluster:
    """The chosen replicas, with the columns of ``REPLICAS``, and the state in the metadata log, empty without one."""

    inputs: JobInputs
    replicas: pa.Table = field(repr=False)
    metadata: MetadataLogState = field(repr=False)

    @classmethod
    def of(
        cls,
        inputs: JobInputs,
        replicas: pa.Table,
        topics: Sequence[str] | None = None,
        say: Callable[[str], None] = lambda _: None,
        metadata: MetadataLogState | None = None,
    ) -> Cluster:
        """Choose one replica for each partition of some topics, None for all, out of all listed replicas.

        ``say`` is called with a sentence about each partition with replicas of another log. Raises ``OSError``.
        """
        if metadata is None:
            metadata = _read_metadata(inputs, replicas)
        wanted = replicas if topics is None else replicas.filter(pc.is_in(replicas["topic"], pa.array(topics)))
        leaders = {place: each.leader for place, each in metadata.placements.items()}
        chosen, notes = choose_replicas(wanted, leaders)
        for note in notes:
            say(note)
        return cls(inputs, chosen, metadata)

    @property
    def counts(self) -> dict[str, int]:
        """The number of partitions of ``__consumer_offsets``: of the metadata, otherwise the highest number plus 1."""
        numbers = [number for topic, number in self.metadata.placements if topic == _COUNTED]
        numbers = numbers or self.replicas.filter(pc.equal(self.replicas["topic"], _COUNTED))["partition"].to_pylist()
        return {_COUNTED: max(numbers) + 1} if numbers else {}

    @property
    def is_placement_known(self) -> bool:
        """Whether the metadata names the partitions of ``__consumer_offsets``."""
        return any(topic == _COUNTED for topic, _ in self.metadata.placements)

    def facts(self, ends: Mapping[tuple[str, int], int] | None) -> pa.Table:
        """Return the topic ids and end offsets of partitions. ``ends`` replace the end offsets of the replicas."""
        found = self.replicas.select(["topic", "partition", "topicId", "endOffset"])
        if ends is None:
            return found
        nothing = pa.nulls(found.num_rows, pa.int64())
        known = {"topic": [topic for topic, _ in ends], "partition": [number for _, number in ends]}
        given = pa.table(known | {"topicId": [None] * len(ends), "endOffset": list(ends.values())}, schema=found.schema)
        return pa.concat_tables([found.set_column(3, found.schema.field(3), nothing), given])

    def times(self) -> Mapping[tuple[str, int], LogTimestamps]:
        """Return the logs of all partitions for timestamp lookups, which read only the logs in question."""
        return _Times(self)

    def log_times(self, number: int) -> LogTimestamps:
        """Return the log of a replica for timestamp lookups."""
        root, directory = self.inputs.roots[self.replicas["root"][number].as_py()], self.replicas["directory"][number]
        return LogTimestamps(lookups_in(segments_in(root, directory.as_py())))


class _Times(Mapping[tuple[str, int], LogTimestamps]):
    """The logs of the chosen replicas by topic and partition."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        places = zip(*(cluster.replicas[name].to_pylist() for name in ("topic", "partition")), strict=True)
        self._numbers = {place: number for number, place in enumerate(places)}

    def __getitem__(self, place: tuple[str, int]) -> LogTimestamps:
        return self._cluster.log_times(self._numbers[place])

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)


def _read_metadata(inputs: JobInputs, replicas: pa.Table) -> MetadataLogState:
    """Return the state in the metadata log among replicas, or an empty state without one."""
    logs = replicas.filter(pc.equal(replicas["topic"], METADATA_TOPIC))
    if not logs.num_rows:
        return MetadataLogState()
    found, _ = choose_replicas(logs)
    root, directory = inputs.roots[found["root"][0].as_py()], found["directory"][0].as_py()
    if not root.uri:
        return read_metadata_log_state([Partition(Path(directory))])
    with TemporaryDirectory(prefix="kafka-msgs-") as home:
        partition = Path(home) / f"{METADATA_TOPIC}-0"
        partition.mkdir()
        _copy_files(root, directory, partition)
        return read_metadata_log_state([Partition(partition)])


def _copy_files(root: Root, directory: str, target: Path) -> None:
    """Copy the segments and snapshots of a partition."""
    for name, file in list_siblings(root.file(f"{directory}/-")).items():
        if name.endswith((".log", ".checkpoint")):
            with local_copy(file) as (path, _):
                copyfile(path, target / name)
