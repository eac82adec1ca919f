"""The topics of the cluster for a coordinator: the parts of ``org.apache.kafka.image.MetadataImage`` that it uses.

An image is immutable. A change of the cluster creates a new image.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final
from uuid import UUID

from attrs import field, frozen

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
