"""The topics of the cluster for a coordinator: the parts of ``org.apache.kafka.image.MetadataImage`` that it uses.

An image is immutable. Groups store a hash of their topics. A change of the cluster creates a new image.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from struct import Struct
from typing import Final
from uuid import UUID

from attrs import field, frozen

from kafka_msgs.errors import MissingExtraError
from kafka_msgs.groups.runtime.timeline_map import string_key

__all__ = ["EMPTY_IMAGE", "CoordinatorTopicImage", "TopicsImage"]


@frozen(kw_only=True)
class CoordinatorTopicImage:
    """A topic. ``racks`` has the racks of each partition's replicas, without replicas that have no rack."""

    name: str
    id: UUID
    racks: tuple[tuple[str, ...], ...]

    @property
    def partitions(self) -> int:
        """The number of partitions."""
        return len(self.racks)


@frozen(kw_only=True)
class TopicsImage:
    """The topics of a cluster, by name. ``version`` increases with each change.

    ``features`` are the cluster's feature levels by name, such as ``streams.version``. A missing feature has the
    highest level.
    """

    version: int = 0
    topics: Mapping[str, CoordinatorTopicImage] = field(factory=dict)
    features: Mapping[str, int] = field(factory=dict)
    by_id: Mapping[UUID, CoordinatorTopicImage] = field(repr=False, eq=False)

    @by_id.default
    def _index(self) -> Mapping[UUID, CoordinatorTopicImage]:
        return {topic.id: topic for topic in self.topics.values()}

    def changed(self, *, put: Iterable[CoordinatorTopicImage] = (), delete: Iterable[str] = ()) -> TopicsImage:
        """Return the next image, with the topics of ``put`` added or replaced, and the topics of ``delete`` removed."""
        topics, by_id = dict(self.topics), dict(self.by_id)
        for name in delete:
            if (gone := topics.pop(name, None)) is not None:
                del by_id[gone.id]
        for topic in put:
            if (replaced := topics.get(topic.name)) is not None:
                del by_id[replaced.id]
            topics[topic.name] = by_id[topic.id] = topic
        return TopicsImage(version=self.version + 1, topics=topics, features=self.features, by_id=by_id)


EMPTY_IMAGE: Final = TopicsImage()
"""An image without topics."""


_INT: Final = Struct("<i")
_HASH: Final = Struct("<Q")
_MAGIC: Final = b"\x00"
_CACHED: Final = 65536


@lru_cache(maxsize=_CACHED)
def topic_hash(topic: CoordinatorTopicImage) -> int:
    """Return the hash of a topic, as an unsigned int64. Raises ``MissingExtraError``."""
    parts = [_MAGIC, topic.id.bytes[7::-1], topic.id.bytes[:7:-1], _text(topic.name), _INT.pack(topic.partitions)]
    for partition, racks in enumerate(topic.racks):
        parts.append(_INT.pack(partition))
        for rack in map(_text, sorted(racks, key=string_key)):
            parts += (rack[-_INT.size :], rack)
    return _xxh3(b"".join(parts))


def group_hash(image: TopicsImage, names: Iterable[str]) -> int:
    """Return the hash of a group's topics, as an int64: 0 for no topics. Missing topics are omitted."""
    known = sorted((name for name in set(names) if name in image.topics), key=string_key)
    if not known:
        return 0
    code = _xxh3(b"".join(_HASH.pack(topic_hash(image.topics[name])) for name in known))
    return code - 2**64 if code >= 2**63 else code


def _text(text: str) -> bytes:
    encoded = text.encode("utf-16-le", "surrogatepass")
    return encoded + _INT.pack(len(encoded) // 2)


def _xxh3(data: bytes) -> int:
    try:
        from xxhash import xxh3_64_intdigest
    except ImportError:
        raise MissingExtraError(feature="a group coordinator", extra="groups", package="xxhash") from None
    return xxh3_64_intdigest(data)
