"""The hash of the metadata of topics, by which a group sees that a topic changed: ``Utils`` of Kafka's coordinator.

It is XXH3 of the topics' ids, names, numbers of partitions and racks. Groups write it to their records, so it has
to be Kafka's to the bit. The package ``xxhash`` computes it (the extra ``groups``).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from struct import Struct
from typing import Final

import xxhash

from kafka_msgs.groups.image import Image, Topic

__all__ = ["group_hash", "topic_hash"]

_INT: Final = Struct("<i")
_HASH: Final = Struct("<Q")
_MAGIC: Final = b"\x00"
_CACHED: Final = 65536


@lru_cache(maxsize=_CACHED)
def topic_hash(topic: Topic) -> int:
    """Return the hash of a topic, as an unsigned int64."""
    parts = [_MAGIC, topic.id.bytes[7::-1], topic.id.bytes[:7:-1], _text(topic.name), _INT.pack(topic.partitions)]
    for partition, racks in enumerate(topic.racks):
        parts.append(_INT.pack(partition))
        for rack in sorted(racks):
            parts += (_INT.pack(len(rack.encode("utf-16-le")) // 2), _text(rack))
    return xxhash.xxh3_64_intdigest(b"".join(parts))


def group_hash(image: Image, names: Iterable[str]) -> int:
    """Return the hash of the topics of a group, as an int64: 0 for no topics. Topics that do not exist are left out."""
    known = sorted(name for name in set(names) if name in image.topics)
    if not known:
        return 0
    digest = xxhash.xxh3_64_digest(b"".join(_HASH.pack(topic_hash(image.topics[name])) for name in known))
    return int.from_bytes(digest, "big", signed=True)


def _text(text: str) -> bytes:
    encoded = text.encode("utf-16-le", "surrogatepass")
    return encoded + _INT.pack(len(encoded) // 2)
