"""The files selected by the remote storage options: the storage, its metadata topic, and a broker's log directory.

Defines these options, and the conversion of segment ranges to files. ``kafka_msgs.log.remote_ranges`` finds the
segments and assigns offsets to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TypeAlias, TypeVar

from attrs import evolve, frozen

from kafka_msgs.errors import JobPathError, OptionError, RemoteFormatError
from kafka_msgs.filesystems.location import mask_uri
from kafka_msgs.filesystems.options import NO_OPTIONS, FilesystemOptions
from kafka_msgs.filesystems.path_resolution import (
    LogFile,
    directory_of,
    list_recursively,
    local_copy,
    log_files,
    small_copy,
    stat_files,
)
from kafka_msgs.log.remote_naming import REMOTE_NAMINGS, RemoteNaming, parse_remote_naming
from kafka_msgs.log.remote_ranges import (
    METADATA_TOPIC,
    LocalLogBounds,
    RemoteOffsetRange,
    TopicPlace,
    ranges_by_metadata,
    ranges_by_names,
    read_remote_log,
)
from kafka_msgs.log.small_files import (
    LEADER_EPOCHS,
    LOG_STARTS,
    PARTITION_METADATA,
    read_leader_epochs,
    read_offset_checkpoint,
    read_partition_metadata,
)
from kafka_msgs.spark.sources.offset_options import LARGEST
from kafka_msgs.spark.sources.options import Options
from kafka_msgs.spark.sources.remote_files import RemoteSegmentFile, checked_manifest, facts_of

__all__ = ["PartitionFilter", "RemoteStorageOptions"]

T = TypeVar("T")

_Ranges: TypeAlias = Mapping[TopicPlace, Sequence[RemoteOffsetRange]]


@frozen
class PartitionFilter:
    """The partitions to read: topics and partition numbers; None for all."""

    topics: tuple[str, ...] | None = None
    partitions: tuple[int, ...] | None = None

    def has(self, place: TopicPlace) -> bool:
        """Return whether a partition is read."""
        topics, partitions = self.topics, self.partitions
        return (topics is None or place[0] in topics) and (partitions is None or place[1] in partitions)


@frozen(kw_only=True)
class RemoteStorageOptions:
    """The options of remote storage: its naming layout, and the locations of the metadata topic and the local log."""

    layout: RemoteNaming
    metadata: str | None
    local: str | None

    @classmethod
    def of(cls, options: Options) -> RemoteStorageOptions | None:
        """Parse the options. Returns None if they do not select remote storage. Raises ``OptionError``."""
        layout, metadata, local = (options.text(name) for name in ("remoteLayout", "remoteMetadata", "localLog"))
        if layout is None and metadata is None:
            if local is not None:
                options.refuse("localLog", "it is for remote storage, with remoteMetadata or remoteLayout")
            return None
        try:
            found = REMOTE_NAMINGS["kafka"] if layout is None else parse_remote_naming(layout)
        except OptionError as error:
            options.refuse("remoteLayout", error.reason)
        return cls(layout=found, metadata=metadata, local=local)

    def files(
        self, source: str, paths: Sequence[str], wanted: PartitionFilter, fs_options: FilesystemOptions = NO_OPTIONS
    ) -> list[LogFile]:
        """Return the remote and local segments, sorted by topic, partition and offset.

        Raises ``OptionError``, ``JobPathError``, ``RemoteFormatError``, ``LogFileError`` and ``OSError``.
        """
        if len(paths) != 1:
            raise OptionError(source=source, option="path", value=None, reason="one tier is read at a time")
        home = directory_of(source, paths[0], fs_options)
        local = self._local(source, wanted, fs_options)
        logs = _local_logs(local)
        remote = {
            place: ranges for place, ranges in self._ranges(source, home, logs, fs_options).items() if wanted.has(place)
        }
        found = [*self._remote_files(home, remote), *_local_files(home, local, logs)]
        if not found:
            raise OptionError(
                source=source, option="path", value=mask_uri(paths[0]), reason="there is no segment in the tier"
            )
        return sorted(found, key=lambda file: file.topic_partition)

    def _local(
        self, source: str, wanted: PartitionFilter, fs_options: FilesystemOptions
    ) -> dict[TopicPlace, list[LogFile]]:
        files = [] if self.local is None else log_files(source, [self.local], fs_options=fs_options)
        named = [file for file in files if file.is_segment and file.topic is not None]
        groups = groupby(named, key=lambda file: (file.topic or "", file.partition or 0))
        return {place: list(group) for place, group in groups if wanted.has(place)}

    def _ranges(
        self, source: str, home: LogFile, logs: Mapping[TopicPlace, LocalLogBounds], fs_options: FilesystemOptions
    ) -> _Ranges:
        if self.metadata is None:
            start = home.path.strip("/") + "/"
            below = {file.path.lstrip("/").removeprefix(start): file.size for file in list_recursively(home)}
            named = {name: size for path, size in below.items() if (name := self.layout.name_of(path)) is not None}
            try:
                return ranges_by_names(named, logs)
            except JobPathError as error:
                raise OptionError(source=source, option="path", value=error.path, reason=error.reason) from None
        listed = log_files(source, [self.metadata], fs_options=fs_options)
        files = [file for file in listed if file.topic == METADATA_TOPIC]
        if not files:
            reason = f"there is no segment of {METADATA_TOPIC}"
            raise OptionError(source=source, option="remoteMetadata", value=mask_uri(self.metadata), reason=reason)
        return ranges_by_metadata(read_remote_log(_copies(files)), logs)

    def _remote_files(self, home: LogFile, ranges: _Ranges) -> Iterator[RemoteSegmentFile]:
        files = [self._file(home, each) for found in ranges.values() for each in found]
        sizes = [each.size for found in ranges.values() for each in found]
        for file, size, found in zip(files, sizes, stat_files(files), strict=True):
            if found is not None and self.metadata is None and self.layout.manifest is not None:
                checked_manifest(file)
            if found is not None and found.size != size:
                self._refuse(file, found.size)
            yield file

    def _refuse(self, file: RemoteSegmentFile, size: int) -> None:
        """Refuse a segment that is not stored in its original form, with the reason from its manifest if it has one."""
        if self.layout.manifest is not None:
            checked_manifest(file)
        reason = f"the object has {size} bytes, and the segment {file.size}: its plugin stores it in another form"
        raise RemoteFormatError(file=file.name, reason=reason)

    def _file(self, home: LogFile, each: RemoteOffsetRange) -> RemoteSegmentFile:
        facts = facts_of(home) | {
            "path": f"{home.path}/{self.layout.path(each.name)}",
            "size": each.size or 0,
            "topic": each.name.topic,
            "partition": each.name.partition,
            "base_offset": each.name.offset,
        }
        return RemoteSegmentFile(
            **facts,
            first=each.start,
            end=each.end,
            ends=LARGEST if each.segment_end is None else each.segment_end,
            of_tier=home.name,
            layout=self.layout,
            no_aborted=each.no_aborted,
        )


def _copies(files: Iterable[LogFile]) -> Iterator[Path]:
    """Yield local copies of files. Each copy is valid until the next one is requested."""
    for file in files:
        with local_copy(file) as (path, _):
            yield path


def _local_logs(local: Mapping[TopicPlace, Sequence[LogFile]]) -> dict[TopicPlace, LocalLogBounds]:
    """Return the log bounds from the small files in partition directories, as far as these exist."""
    starts: dict[tuple[str, str], Mapping[TopicPlace, int]] = {}
    found = {}
    for place, files in local.items():
        first = files[0]
        home = first.root, first.directory.rpartition("/")[0]
        if home not in starts:
            starts[home] = _read(evolve(first, path=f"{home[1]}/{LOG_STARTS}"), read_offset_checkpoint) or {}
        metadata = _read(first.sibling(PARTITION_METADATA), read_partition_metadata)
        found[place] = LocalLogBounds(
            first=first.first,
            topic_id=metadata.topic_id if metadata else None,
            lineage=_read(first.sibling(LEADER_EPOCHS), read_leader_epochs),
            log_start=starts[home].get(place, 0),
        )
    return found


def _read(file: LogFile, read: Callable[[Path], T]) -> T | None:
    """Return the content of a small file, or None if it does not exist."""
    try:
        with small_copy(file) as (path, _):
            return read(path)
    except FileNotFoundError:
        return None


def _local_files(
    home: LogFile, local: Mapping[TopicPlace, Sequence[LogFile]], logs: Mapping[TopicPlace, LocalLogBounds]
) -> Iterator[RemoteSegmentFile]:
    for place, files in local.items():
        for file, end in zip(files, [*(file.first for file in files[1:]), LARGEST], strict=True):
            first = max(file.first, logs[place].log_start)
            if first < end:
                yield RemoteSegmentFile(**facts_of(file), first=first, end=end, ends=end, of_tier=home.name)
