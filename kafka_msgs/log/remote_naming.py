"""File names of remote segments in tiered storage: object name templates, and the manifest of Aiven's plugin.

A plugin (Kafka's ``RemoteStorageManager``, KIP-405) chooses the names. ``REMOTE_NAMINGS`` contains the names of Kafka's
``LocalTieredStorage`` and of Aiven's plugin; ``parse_remote_naming`` accepts a template for other plugins.
``kafka_msgs.internal_topics.remote_log`` determines which segments exist.
"""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from string import Formatter
from types import MappingProxyType
from typing import Any, Final, NamedTuple, NoReturn
from uuid import UUID

from attrs import frozen

from kafka_msgs.errors import OptionError, RemoteFormatError
from kafka_msgs.log.writers.small_files import uuid_text

__all__ = [
    "INDEX_SUFFIXES",
    "REMOTE_NAMINGS",
    "RemoteManifest",
    "RemoteNaming",
    "SegmentName",
    "parse_remote_naming",
    "read_manifest",
]

INDEX_SUFFIXES: Final = (".index", ".timeindex", ".txnindex", ".snapshot", ".leader_epoch_checkpoint")
"""The suffixes of the files of a remote segment. ``.snapshot`` contains the producers at the end of the segment."""

_TOPIC: Final = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,249}")
_ID: Final = "[A-Za-z0-9_-]{22}"
_FIELDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "topic": "[A-Za-z0-9._-]{1,249}",
        "topic_id": _ID,
        "partition": "[0-9]{1,10}",
        "offset": "[0-9]{1,20}",
        "segment_id": _ID,
    }
)
"""The fields of a template, and the patterns of their texts."""
_NEEDED: Final = frozenset({"topic", "partition", "offset", "segment_id"})
_PADDING: Final = re.compile(r"(?:0[0-9]{1,2})?")
_LONGEST_TEMPLATE: Final = 1000


class SegmentName(NamedTuple):
    """The parts of a segment's file names. ``topic_id`` is None for names without a topic id."""

    topic: str
    topic_id: UUID | None
    partition: int
    offset: int
    segment_id: UUID


@frozen(kw_only=True)
class RemoteNaming:
    """A naming scheme for the files of a remote segment, below the remote log's path.

    ``segment`` is a template with the fields ``{topic}``, ``{topic_id}``, ``{partition}``, ``{offset}`` (the first
    offset of the segment; ``{offset:020}`` has 20 digits) and ``{segment_id}``. Ids have Kafka's format of 22
    characters. The index files have the segment's name with another suffix, unless ``indexes`` is the suffix of a
    single object with all indexes: the object with the suffix ``manifest`` then contains their byte ranges, and the
    storage format of the segment.
    """

    segment: str
    manifest: str | None = None
    indexes: str | None = None

    def path(self, name: SegmentName, ending: str = ".log") -> str:
        """Return the path of a segment file with this suffix. Raises ``RemoteFormatError`` for an invalid topic."""
        if not _TOPIC.fullmatch(name.topic):
            raise RemoteFormatError(file="__remote_log_metadata", reason=f"{name.topic!r} is not the name of a topic")
        texts = name._asdict() | {
            "topic_id": "" if name.topic_id is None else uuid_text(name.topic_id),
            "segment_id": uuid_text(name.segment_id),
        }
        path = self.segment.format_map(texts)
        return path if ending == ".log" else path.removesuffix(".log") + ending

    def name_of(self, path: str) -> SegmentName | None:
        """Return the parts of a segment's path below the remote log's path, or None for another file."""
        match = re.fullmatch(_pattern(self.segment), path)
        if match is None:
            return None
        found = match.groupdict()
        if int(found["offset"]) >= 2**63:
            return None
        topic_id = found.get("topic_id")
        return SegmentName(
            found["topic"],
            None if topic_id is None else _id_of(topic_id),
            int(found["partition"]),
            int(found["offset"]),
            _id_of(found["segment_id"]),
        )


REMOTE_NAMINGS: Final[Mapping[str, RemoteNaming]] = MappingProxyType(
    {
        "kafka": RemoteNaming(segment="{topic}-{partition}-{topic_id}/{offset:020}-{segment_id}.log"),
        "aiven": RemoteNaming(
            segment="{topic}-{topic_id}/{partition}/{offset:020}-{segment_id}.log",
            manifest=".rsm-manifest",
            indexes=".indexes",
        ),
    }
)
"""The predefined naming schemes: Kafka's ``LocalTieredStorage``, and Aiven's plugin.

The key prefix of Aiven's plugin is part of the path.
"""


def parse_remote_naming(text: str) -> RemoteNaming:
    """Return the predefined naming scheme, or a scheme with this segment template. Raises ``OptionError``."""
    if text in REMOTE_NAMINGS:
        return REMOTE_NAMINGS[text]
    try:
        fields = list(Formatter().parse(text)) if len(text) <= _LONGEST_TEMPLATE else []
    except ValueError:
        fields = []
    names = [name for _, name, _, _ in fields if name is not None]
    known = all(name in _FIELDS for name in names) and _NEEDED.issubset(names) and len(set(names)) == len(names)
    plain = all(
        not conversion and _PADDING.fullmatch(padding or "") and (not padding or name in ("offset", "partition"))
        for _, name, padding, conversion in fields
    )
    if not known or not plain:
        there = ", ".join(f"{{{name}}}" for name in _FIELDS)
        reason = f"it is one of {', '.join(REMOTE_NAMINGS)}, or a template in which each of {there} is once at most; "
        reason += "it needs the topic, the partition, the offset and the id of the segment"
        raise OptionError(source="a tier", option="layout", value=text, reason=reason)
    return RemoteNaming(segment=text)


class RemoteManifest(NamedTuple):
    """A manifest of Aiven's plugin: the size of the segment, and the byte range of each index, by suffix.

    A byte range is the start position and the number of bytes in the object with all indexes.
    """

    size: int
    slices: Mapping[str, tuple[int, int]]


_INDEXES: Final = {
    "offset": ".index",
    "timestamp": ".timeindex",
    "transaction": ".txnindex",
    "producerSnapshot": ".snapshot",
    "leaderEpoch": ".leader_epoch_checkpoint",
}


def read_manifest(data: bytes, file: str) -> RemoteManifest:
    """Return the content of a manifest. ``file`` is its name in error messages.

    Raises ``RemoteFormatError`` if the manifest is damaged, or if the segment is compressed or encrypted: only the
    plugin, with its keys, can read such a segment.
    """
    try:
        found = json.loads(data)
        stored = {"compressed": found["compression"], "encrypted": found.get("encryption") is not None}
        size = _whole(found["chunkIndex"]["originalFileSize"])
        places = {_INDEXES[name]: each for name, each in found["segmentIndexes"].items() if each is not None}
        slices = {ending: (_whole(each["position"]), _whole(each["size"])) for ending, each in places.items()}
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        _fail(file, f"it is not the manifest of a segment: {type(error).__name__} {error}")
    if found.get("version") != "1":
        _fail(file, f"the version {found.get('version')!r} of the manifest is not known")
    if any(stored.values()):
        ways = " and ".join(way for way, is_so in stored.items() if is_so)
        _fail(file, f"the segment is {ways} by its plugin; only segments that are stored as they are can be read")
    return RemoteManifest(size, slices)


def _whole(number: Any) -> int:
    if type(number) is not int or not 0 <= number < 2**63:
        raise ValueError(f"{number!r} is not a size")
    return number


def _fail(file: str, reason: str) -> NoReturn:
    raise RemoteFormatError(file=file, reason=reason) from None


def _pattern(template: str) -> str:
    parts = ((text, name) for text, name, _, _ in Formatter().parse(template))
    return "".join(re.escape(text) + (f"(?P<{name}>{_FIELDS[name]})" if name else "") for text, name in parts)


def _id_of(text: str) -> UUID:
    """Return the id in 22 characters that match ``_ID``, which are 16 bytes."""
    return UUID(bytes=urlsafe_b64decode(text + "=="))
