"""The segments of a partition of which a part is in remote storage, as files that are read like those of a directory.

Owns where the files beside a segment are, in the layout of its tier. Which segments there are is left to
``remote_options``.
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
"""Bytes of a manifest: of a plugin's, it has some thousands for each GB of the segment."""


@frozen(kw_only=True)
class RemoteSegmentFile(LogFile):
    """A segment of a partition in a tier, and the offsets that it is read for: from ``first`` on and before ``end``.

    ``base_offset`` is that of the segment, and ``ends`` is the offset after its last one, as far as these are known.
    ``layout`` is None for a segment in the log directory of a broker.
    """

    first: int
    end: int
    ends: int
    of_tier: str
    """The path of the tier."""
    layout: RemoteNaming | None = field(default=None, eq=False)
    no_aborted: bool = False
    """Whether it is known that no transaction was aborted in the segment."""

    @property
    def log(self) -> tuple[str, ...]:
        """What the files of one partition's log have alike."""
        return self.of_tier, self.topic or "", str(self.partition)

    @property
    def topic_partition(self) -> tuple[Any, ...]:
        """The place of the file in the order of files."""
        return self.topic or "", self.partition or 0, self.first, self.path

    @property
    def is_whole(self) -> bool:
        """Whether all offsets of the segment are read."""
        return self.first <= (self.base_offset or 0) and self.ends <= self.end

    def sibling_with_suffix(self, ending: str) -> LogFile | None:
        """Return the file of the segment with another ending; it may not be there. None: it is not.

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
        """Return the object of the segment with an ending, of unknown size; it may not be there."""
        path = self.path.removesuffix(".log") + ending
        return LogFile(**(facts_of(self) | {"path": path, "size": 0}))


def facts_of(file: LogFile) -> dict[str, Any]:
    """Return what every file has, by name."""
    return {each.name: getattr(file, each.name) for each in fields(LogFile)}


@lru_cache(maxsize=256)
def checked_manifest(file: RemoteSegmentFile) -> RemoteManifest:
    """Return the manifest of a segment whose layout has one.

    Raises ``RemoteFormatError`` for a segment that is not stored as it is, and ``OSError``.
    """
    manifest = file.named((file.layout and file.layout.manifest) or "")
    with open_file(manifest) as data:
        if data.size() > _LARGEST_MANIFEST:
            raise RemoteFormatError(file=manifest.name, reason=f"a manifest of {data.size()} bytes")
        return read_manifest(data.read_at(data.size(), 0), manifest.name)
