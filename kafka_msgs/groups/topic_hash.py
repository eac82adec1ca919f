"""The hash of topic metadata, with which a group detects topic changes: ``Utils`` of Kafka's coordinator.

It is XXH3 of the topics' ids, names, numbers of partitions and racks. Groups write it to their records, so it must
equal Kafka's hash bit for bit. The package ``xxhash`` computes it (the extra ``groups``).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from struct import Struct
from typing import Final

from kafka_msgs.errors import MissingExtraError
from kafka_msgs.groups.topics_image import CoordinatorTopicImage, TopicsImage

__all__ = ["group_hash", "topic_hash"]

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
        for rack in map(_text, sorted(racks, key=_code_units)):
            parts += (rack[-_INT.size :], rack)
    return _xxh3(b"".join(parts))


def group_hash(image: TopicsImage, names: Iterable[str]) -> int:
    """Return the hash of a group's topics, as an int64: 0 for no topics. Missing topics are omitted."""
    known = sorted((name for name in set(names) if name in image.topics), key=_code_units)
    if not known:
        return 0
    code = _xxh3(b"".join(_HASH.pack(topic_hash(image.topics[name])) for name in known))
    return code - 2**64 if code >= 2**63 else code


def _code_units(text: str) -> bytes:
    """Return a sort key that orders strings as Java does."""
    return text.encode("utf-16-be", "surrogatepass")


def _text(text: str) -> bytes:
    encoded = text.encode("utf-16-le", "surrogatepass")
    return encoded + _INT.pack(len(encoded) // 2)


def _xxh3(data: bytes) -> int:
    try:
        from xxhash import xxh3_64_intdigest
    except ImportError:
        raise MissingExtraError(feature="a group coordinator", extra="groups", package="xxhash") from None
    return xxh3_64_intdigest(data)
