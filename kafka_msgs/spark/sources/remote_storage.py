"""The segments of tiered partitions, as files that are read like the files of a log directory (KIP-405).

Defines the options of remote storage: the storage, its metadata topic, and a broker's log directory; and the locations
of a segment's files in the layout of the storage. ``kafka_msgs.log.remote_ranges`` finds the segments and assigns
offsets to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import groupby
from pathlib import Path
from typing import Any, Final, TypeAlias

from attrs import evolve, field, fields, frozen

from kafka_msgs.errors import JobPathError, OptionError, RemoteFormatError
from kafka_msgs.filesystems.location import mask_uri
from kafka_msgs.filesystems.options import NO_OPTIONS, FilesystemOptions
from kafka_msgs.filesystems.path_resolution import (
    FileSlice,
    LogFile,
    directory_of,
    list_recursively,
    local_copy,
    log_files,
    open_file,
    read_small,
    stat_files,
)
from kafka_msgs.log.remote_naming import (
    REMOTE_NAMINGS,
    RemoteManifest,
    RemoteNaming,
    parse_remote_naming,
    read_manifest,
)
from kafka_msgs.log.remote_ranges import (
    METADATA_TOPIC,
    LocalLogBounds,
    RemoteOffsetRange,
    TopicPlace,
    ranges_by_metadata,
    ranges_by_names,
    read_remote_log,
)
from kafka_msgs.log.segment import LARGEST, next_offsets
from kafka_msgs.log.small_files import LOG_STARTS, read_offset_checkpoint
from kafka_msgs.spark.sources.options import Options

__all__ = ["RemoteSegmentFile", "RemoteStorageOptions"]

_LARGEST_MANIFEST: Final = 2**24
"""The maximum size of a manifest in bytes. Plugins write a few thousand bytes per GB of the segment."""
_Bounds: TypeAlias = Mapping[TopicPlace, LocalLogBounds]


@frozen(kw_only=True)
class RemoteSegmentFile(LogFile):
    """A segment in remote storage, and the offsets to read from it: from ``first`` to before ``end``.

    ``base_offset`` is the segment's base offset, and ``ends`` the offset after its last one, if known. ``layout`` is
    None for a segment in the log directory of a broker.
    """

    first: int
    end: int
    ends: int
    of_tier: str
    """The path of the remote storage."""
    layout: RemoteNaming | None = field(default=None, eq=False)
    no_aborted: bool = False
    """Whether the segment is known to contain no aborted transaction."""

    @property
    def log(self) -> tuple[str, ...]:
        """A key shared by the files of one partition's log."""
        return self.of_tier, self.topic or "", str(self.partition)

    @property
    def topic_partition(self) -> tuple[Any, ...]:
        """The sort key of the file."""
        return self.topic or "", self.partition or 0, self.first, self.path

    def sibling_with_suffix(self, ending: str) -> LogFile | None:
        """Return the file of the segment with another suffix, which may not exist; None if it surely does not.

        Raises ``RemoteFormatError`` and ``OSError``.
        """
        if ending == ".txnindex" and self.no_aborted:
            return None
        if self.layout is None or self.layout.indexes is None:
            return self.named(ending)
        place = _manifest(self).slices.get(ending)
        if place is None:
            return None
        begins, size = place
        return FileSlice(**(_facts(self.named(self.layout.indexes)) | {"size": size, "begins": begins}))

    def named(self, ending: str) -> LogFile:
        """Return the segment's object with a suffix, of unknown size. It may not exist."""
        return LogFile(**(_facts(self) | {"path": self.path.removesuffix(".log") + ending, "size": 0}))


def _facts(file: LogFile) -> dict[str, Any]:
    """Return the attributes that every file has, by name."""
    return {each.name: getattr(file, each.name) for each in fields(LogFile)}


@lru_cache(maxsize=256)
def _manifest(file: RemoteSegmentFile) -> RemoteManifest:
    """Return the manifest of a segment whose layout has one.

    Raises ``RemoteFormatError`` for a segment that is not stored in its original form, and ``OSError``.
    """
    manifest = file.named((file.layout and file.layout.manifest) or "")
    with open_file(manifest) as data:
        if data.size() > _LARGEST_MANIFEST:
            raise RemoteFormatError(file=manifest.name, reason=f"a manifest of {data.size()} bytes")
        return read_manifest(data.read_at(data.size(), 0), manifest.name)


@frozen(kw_only=True)
class RemoteStorageOptions:
    """The options of remote storage: its naming layout, and the locations of the metadata topic and the local log."""

    source: str
    layout: RemoteNaming
    metadata: str | None
    local: str | None
    fs_options: FilesystemOptions = NO_OPTIONS

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
        settings = options.settings()
        return cls(source=options.source, layout=found, metadata=metadata, local=local, fs_options=settings)

    def files(self, paths: Sequence[str], selects: Callable[[TopicPlace], bool]) -> list[LogFile]:
        """Return the remote and local segments of selected partitions, sorted by topic, partition and offset.

        Raises ``OptionError``, ``JobPathError``, ``RemoteFormatError``, ``LogFileError`` and ``OSError``.
        """
        if len(paths) != 1:
            raise self._error("path", None, "one tier is read at a time")
        home = directory_of(self.source, paths[0], self.fs_options)
        listed = [] if self.local is None else log_files(self.source, [self.local], fs_options=self.fs_options)
        named = [file for file in listed if file.is_segment and file.topic is not None]
        groups = groupby(named, key=lambda file: (file.topic or "", file.partition or 0))
        local = {place: list(group) for place, group in groups if selects(place)}
        logs = _local_logs(local)
        remote = [each for place, found in self._ranges(home, logs).items() if selects(place) for each in found]
        files = [*self._remote_files(home, remote), *_local_files(home, local, logs)]
        if not files:
            raise self._error("path", paths[0], "there is no segment in the tier")
        return sorted(files, key=lambda file: file.topic_partition)

    def _error(self, option: str, value: str | None, reason: str) -> OptionError:
        shown = None if value is None else mask_uri(value)
        return OptionError(source=self.source, option=option, value=shown, reason=reason)

    def _ranges(self, home: LogFile, logs: _Bounds) -> Mapping[TopicPlace, Sequence[RemoteOffsetRange]]:
        if self.metadata is None:
            start = home.path.strip("/") + "/"
            below = {file.path.lstrip("/").removeprefix(start): file.size for file in list_recursively(home)}
            named = {name: size for path, size in below.items() if (name := self.layout.name_of(path)) is not None}
            try:
                return ranges_by_names(named, logs)
            except JobPathError as error:
                raise self._error("path", error.path, error.reason) from None
        listed = log_files(self.source, [self.metadata], fs_options=self.fs_options)
        files = [file for file in listed if file.topic == METADATA_TOPIC]
        if not files:
            raise self._error("remoteMetadata", self.metadata, f"there is no segment of {METADATA_TOPIC}")
        return ranges_by_metadata(read_remote_log(_copies(files)), logs)

    def _remote_files(self, home: LogFile, ranges: Sequence[RemoteOffsetRange]) -> Iterator[RemoteSegmentFile]:
        files = [self._file(home, each) for each in ranges]
        for file, each, found in zip(files, ranges, stat_files(files), strict=True):
            manifest = partial(_manifest, file) if self.layout.manifest is not None else None
            each.check_object(file.name, None if found is None else found.size, manifest, self.metadata is None)
            yield file

    def _file(self, home: LogFile, each: RemoteOffsetRange) -> RemoteSegmentFile:
        return RemoteSegmentFile(
            root=home.root,
            fs_options=home.fs_options,
            path=f"{home.path}/{self.layout.path(each.name)}",
            size=each.size or 0,
            topic=each.name.topic,
            partition=each.name.partition,
            base_offset=each.name.offset,
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
    for place, (first, *_) in local.items():
        home = first.root, first.directory.rpartition("/")[0]
        if home not in starts:
            starts[home] = read_small(evolve(first, path=f"{home[1]}/{LOG_STARTS}"), read_offset_checkpoint) or {}
        found[place] = LocalLogBounds.of(first.first, starts[home].get(place, 0), first.read_sibling)
    return found


def _local_files(
    home: LogFile, local: Mapping[TopicPlace, Sequence[LogFile]], logs: _Bounds
) -> Iterator[RemoteSegmentFile]:
    for place, files in local.items():
        for file, end in zip(files, next_offsets(file.first for file in files), strict=True):
            first = max(file.first, logs[place].log_start)
            if first < end:
                yield RemoteSegmentFile(**_facts(file), first=first, end=end, ends=end, of_tier=home.name)
