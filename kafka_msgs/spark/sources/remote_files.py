"""The segments of a tiered partition, as files that are read like the files of a log directory.

Defines the locations of a segment's files in the layout of its remote storage. ``remote_options`` finds the segments.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from attrs import field, fields, frozen

from kafka_msgs.errors import RemoteFormatError
from kafka_msgs.filesystems.path_resolution import FileSlice, LogFile, open_file
from kafka_msgs.log.remote_naming import RemoteManifest, RemoteNaming, read_manifest

__all__ = ["RemoteSegmentFile", "checked_manifest", "facts_of"]

_LARGEST_MANIFEST: Final = 2**24
"""The maximum size of a manifest in bytes. Plugins write a few thousand bytes per GB of the segment."""


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

    @property
    def is_whole(self) -> bool:
        """Whether all offsets of the segment are read."""
        return self.first <= (self.base_offset or 0) and self.ends <= self.end

    def sibling_with_suffix(self, ending: str) -> LogFile | None:
        """Return the file of the segment with another suffix, which may not exist; None if it surely does not.

        Raises ``RemoteFormatError`` and ``OSError``.
        """
        if ending == ".txnindex" and self.no_aborted:
            return None
        if self.layout is None or self.layout.indexes is None:
            return self.named(ending)
        place = checked_manifest(self).slices.get(ending)
        if place is None:
            return None
        begins, size = place
        whole = self.named(self.layout.indexes)
        return FileSlice(**(facts_of(whole) | {"size": size, "begins": begins}))

    def named(self, ending: str) -> LogFile:
        """Return the segment's object with a suffix, of unknown size. It may not exist."""
        path = self.path.removesuffix(".log") + ending
        return LogFile(**(facts_of(self) | {"path": path, "size": 0}))


def facts_of(file: LogFile) -> dict[str, Any]:
    """Return the attributes that every file has, by name."""
    return {each.name: getattr(file, each.name) for each in fields(LogFile)}


@lru_cache(maxsize=256)
def checked_manifest(file: RemoteSegmentFile) -> RemoteManifest:
    """Return the manifest of a segment whose layout has one.

    Raises ``RemoteFormatError`` for a segment that is not stored in its original form, and ``OSError``.
    """
    manifest = file.named((file.layout and file.layout.manifest) or "")
    with open_file(manifest) as data:
        if data.size() > _LARGEST_MANIFEST:
            raise RemoteFormatError(file=manifest.name, reason=f"a manifest of {data.size()} bytes")
        return read_manifest(data.read_at(data.size(), 0), manifest.name)
