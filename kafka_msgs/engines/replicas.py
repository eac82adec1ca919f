"""The replicas of partitions in log directories, on any filesystem, and the choice of one replica per partition.

Tasks list directories, each with a row for every replica. The choice needs only these rows. Replicas of a partition may
have been compacted at different times, so exactly one of them is read.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve, field, frozen
from pyarrow import fs

from kafka_msgs.errors import JobPathError, KafkaMsgsError, OptionError
from kafka_msgs.filesystems.listing import list_directory
from kafka_msgs.filesystems.location import mask_uri
from kafka_msgs.filesystems.options import NO_OPTIONS, FilesystemOptions
from kafka_msgs.filesystems.path_resolution import (
    SEGMENTS,
    LogFile,
    directories_at,
    local_copy,
    log_file,
    partition_of,
    read_small,
)
from kafka_msgs.filesystems.resolver import filesystem_of
from kafka_msgs.filesystems.segment_lookup import lookup_in
from kafka_msgs.log.partition_discovery import end_of_segment
from kafka_msgs.log.segment import LARGEST, Segment
from kafka_msgs.log.small_files import (
    LEADER_EPOCHS,
    PARTITION_METADATA,
    read_leader_epochs,
    read_meta_properties,
    read_partition_metadata,
)
from kafka_msgs.records import RecordBatch

__all__ = ["REPLICAS", "InputDirectory", "JobInputs", "Root", "choose_replicas", "list_replicas", "segments_in"]

_META_PROPERTIES: Final = "meta.properties"
_LONG, _INT, _TEXT = pa.int64(), pa.int32(), pa.string()
_PLACE: Final = pa.struct([("segment", _LONG), ("position", _LONG), ("offset", _LONG)])

REPLICAS: Final = pa.schema(
    [
        ("root", _INT),
        ("directory", _TEXT),
        ("broker", _INT),
        ("topic", _TEXT),
        ("partition", _INT),
        ("topicId", _TEXT),
        ("leaderEpoch", _INT),
        ("endOffset", _LONG),
        ("segments", pa.list_(pa.struct([("base", _LONG), ("size", _LONG)]))),
        ("marks", pa.list_(_PLACE)),
    ]
)
"""A replica: its filesystem as an index into ``JobInputs.roots``, its directory there, and its broker, -1 if unknown.

``leaderEpoch`` is the latest leader epoch, -1 if unknown, and ``endOffset`` the log end offset, null if unknown.
``marks`` are the starts of batches at which large segments may be cut.
"""

_ORDER: Final = [
    ("topic", "ascending"),
    ("partition", "ascending"),
    *((name, "descending") for name in ("leads", "copies", "leaderEpoch", "endOffset")),
    *((name, "ascending") for name in ("broker", "root", "directory")),
]
"""The order of preference. It does not depend on the order in which a filesystem lists directories."""


@frozen
class Root:
    """A filesystem: its URI without a path, empty for this machine, and its options."""

    uri: str = field(repr=mask_uri)
    fs_options: FilesystemOptions = NO_OPTIONS

    @property
    def filesystem(self) -> fs.FileSystem:
        """The filesystem of this process."""
        return filesystem_of(self.uri, self.fs_options).filesystem

    def file(self, path: str, size: int = 0) -> LogFile:
        """Return a file of this filesystem, which may not exist."""
        return log_file(self.uri, path, size, self.fs_options)


@frozen
class InputDirectory:
    """A directory to list: the numbers of the input paths that denote it, its filesystem, and its path there."""

    given: tuple[int, ...]
    root: int
    path: str


@frozen
class JobInputs:
    """The input paths of a job, and the directories that they denote: log directories or partition directories."""

    paths: tuple[str, ...]
    roots: tuple[Root, ...]
    directories: tuple[InputDirectory, ...]

    @classmethod
    def at(cls, paths: Sequence[str | os.PathLike[str]], fs_options: FilesystemOptions = NO_OPTIONS) -> JobInputs:
        """Return the inputs at paths, URIs and patterns with wildcards.

        Raises ``JobPathError`` for a path that is no directory, ``MissingExtraError`` and ``OSError``.
        """
        texts, roots, found = tuple(os.fspath(each) for each in paths), dict[Root, int](), dict[Any, InputDirectory]()
        for given, text in enumerate(texts):
            try:
                place, directories = directories_at("kafka-msgs", text, fs_options)
            except OptionError as error:
                raise JobPathError(path=str(error.value), reason=error.reason) from None
            if not directories:
                raise JobPathError(path=mask_uri(text), reason="is not a directory")
            root = roots.setdefault(Root(place.root, place.fs_options), len(roots))
            for path in directories:
                real = path if place.root else os.path.realpath(path)
                earlier = found.get((root, real), InputDirectory((), root, path))
                found[root, real] = evolve(earlier, given=(*earlier.given, given))
        return cls(texts, tuple(roots), tuple(found.values()))

    def check(self, topics: Collection[str] | None) -> None:
        """Raise ``JobPathError`` for a path without partitions, or if there are no partitions of the topics.

        Lists directories until it finds a partition. Raises ``OSError``.
        """
        for given, path in enumerate(self.paths):
            if not any(self._topics(each) for each in self.directories if given in each.given):
                raise JobPathError(path=mask_uri(path), reason="there is no partition in it")
        if topics is not None and not any(self._topics(each) & set(topics) for each in self.directories):
            shown = ", ".join(map(mask_uri, self.paths))
            raise JobPathError(path=shown, reason=f"there is no partition of {', '.join(topics)} in it")

    def _topics(self, directory: InputDirectory) -> set[str]:
        found = _partition_directories(self.roots[directory.root], directory.path)
        return {topic for topic, _ in filter(None, map(partition_of, found))}


def list_replicas(
    root: Root, number: int, directory: str, topics: Collection[str] | None, split_bytes: int
) -> Iterator[dict[str, Any]]:
    """Yield the replicas in a directory, of some topics or of all, with the columns of ``REPLICAS``.

    Raises ``OSError``.
    """
    found = _partition_directories(root, directory)
    broker = _broker(root, directory.rpartition("/")[0] if directory in found else directory)
    for path, segments in sorted(found.items()):
        topic, partition = partition_of(path) or ("", 0)
        if topics is not None and topic not in topics:
            continue
        if files := segments_in(root, path, segments):
            yield _replica(root, files, split_bytes) | {
                "root": number, "directory": path, "broker": broker, "topic": topic, "partition": partition,
            }  # fmt: skip


def _partition_directories(root: Root, directory: str) -> dict[str, list[fs.FileInfo]]:
    """Return the directories of partitions at a directory: itself with its listed segments, or else those inside."""
    found = list_directory(root.filesystem, directory)
    own = [info for info in found if _is_segment(info)]
    if own and partition_of(directory) is not None:
        return {directory: own}
    return {info.path: [] for info in found if info.type == fs.FileType.Directory and partition_of(info.path)}


def segments_in(root: Root, directory: str, listed: Sequence[fs.FileInfo] = ()) -> list[LogFile]:
    """Return the segments in a partition directory by offset. Raises ``OSError``."""
    infos = listed or [info for info in list_directory(root.filesystem, directory) if _is_segment(info)]
    return [root.file(info.path, info.size or 0) for info in sorted(infos, key=lambda info: str(info.base_name))]


def _is_segment(info: fs.FileInfo) -> bool:
    """Return whether an entry has the name of a segment. If it is no file, reading it is an error."""
    return SEGMENTS.pattern.fullmatch(info.base_name) is not None


def _replica(root: Root, files: Sequence[LogFile], split_bytes: int) -> dict[str, Any]:
    epochs = _read(files[0].sibling(LEADER_EPOCHS), read_leader_epochs)
    metadata = _read(files[0].sibling(PARTITION_METADATA), read_partition_metadata)
    return {
        "topicId": None if metadata is None else str(metadata.topic_id),
        "leaderEpoch": epochs[-1].epoch if epochs else -1,
        "endOffset": _end_of(files[-1]),
        "segments": [{"base": file.first, "size": file.size} for file in files],
        "marks": [mark for file in files for mark in _marks(file, split_bytes)],
    }


def _read(file: LogFile, read: Any) -> Any:
    """Return the content of a small file, or None if it is missing or damaged."""
    with suppress(KafkaMsgsError, OSError):
        return read_small(file, read)
    return None


def _broker(root: Root, home: str) -> int:
    properties = _read(root.file(f"{home}/{_META_PROPERTIES}"), read_meta_properties)
    return -1 if properties is None or properties.node_id is None else int(properties.node_id)


def _end_of(last: LogFile) -> int | None:
    """Return the log end offset, or None if the segment was deleted after the listing.

    On a remote filesystem, only the batches after the last entry of the offset index are fetched.
    """
    start = 0
    try:
        if last.root:
            start = lookup_in(last).position_of(LARGEST)
        with local_copy(last, start) as (path, _):
            return end_of_segment(Segment(path))
    except FileNotFoundError:
        return None


def _marks(file: LogFile, split_bytes: int) -> Iterator[dict[str, int]]:
    """Yield the starts of valid batches at about every ``split_bytes`` of a segment."""
    for position, batch in lookup_in(file).marks(0, file.size, split_bytes):
        if isinstance(batch, RecordBatch):
            yield {"segment": file.first, "position": position, "offset": batch.base_offset}


def offset_at(file: LogFile, position: int) -> int | None:
    """Return the base offset of the valid batch at a position, or None if no valid batch starts there."""
    return getattr(lookup_in(file).batch_starting_at(position), "base_offset", None)


def choose_replicas(
    replicas: pa.Table, leaders: Mapping[tuple[str, int], int] | None = None
) -> tuple[pa.Table, list[str]]:
    """Return one replica per partition, sorted by topic and partition, and notes about logs that were left out.

    ``leaders`` maps partitions to the leaders that the cluster metadata names. The replica of the leader is chosen,
    otherwise the one with the highest leader epoch, and among these the longest: a longer log with an older epoch may
    have been truncated by the leader since. A replica with another topic id is another log of the same name. The id
    with the most replicas is chosen.
    """
    names = ["topic", "partition", "topicId", "leaderEpoch", "endOffset", "broker", "root", "directory"]
    rows = replicas.select(names).append_column("row", pa.array(range(replicas.num_rows), _LONG))
    # Numbers instead of texts, and no threads: both limit the memory of joins and sorts.
    texts = {name: _distinct(replicas[name]) for name in ("topic", "topicId", "directory")}
    for name, known in texts.items():
        rows = rows.set_column(names.index(name), name, pc.index_in(rows[name], value_set=known))
    copies = rows.group_by(names[:3], use_threads=False).aggregate([("row", "count")])
    copies = copies.rename_columns({"row_count": "copies"})
    places = leaders or {}
    topics = pc.index_in(pa.array([topic for topic, _ in places], pa.string()), value_set=texts["topic"])
    numbers = pa.array([number for _, number in places], _INT)
    named = pa.table({"topic": topics, "partition": numbers, "leader": pa.array(places.values(), _INT)})
    rows = rows.join(copies, names[:3], join_type="inner", use_threads=False)
    rows = rows.join(named, names[:2], use_threads=False)
    leads = pc.and_(pc.equal(rows["broker"], rows["leader"]), pc.greater_equal(rows["broker"], 0))
    rows = rows.append_column("leads", pc.fill_null(leads, False).cast(_INT)).sort_by(_ORDER)
    first = [("row", "first"), ("copies", "first"), ("row", "count")]
    chosen = rows.group_by(names[:2], use_threads=False).aggregate(first)
    others = pc.subtract(chosen["row_count"], chosen["copies_first"])
    left_out = chosen.append_column("others", others).filter(pc.greater(others, 0)).to_pylist()
    notes = [
        f"{texts['topic'][row['topic']]}-{row['partition']}: replicas with another topic id were left out: "
        f"{row['others']}"
        for row in left_out
    ]
    return replicas.take(chosen["row_first"]), notes


def _distinct(values: pa.ChunkedArray) -> pa.Array:
    """Return the distinct values in order."""
    found = pc.unique(values)
    return found.take(pc.sort_indices(found))
