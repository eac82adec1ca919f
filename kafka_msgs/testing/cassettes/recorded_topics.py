"""Metadata from a cassette, because the topics that a client requests together depend on timing.

A request without an exact match is answered from all recorded responses, if they contain its topics.
"""

from __future__ import annotations

from uuid import UUID

from attrs import evolve

from kafka_msgs.message import Message
from kafka_msgs.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kafka_msgs.messages.metadata_response import MetadataResponse, MetadataResponseTopic
from kafka_msgs.schema import ZERO_UUID

__all__ = ["RecordedTopics"]


class RecordedTopics:
    """The topics of all recorded Metadata responses, in their latest state."""

    def __init__(self) -> None:
        self._last: MetadataResponse | None = None
        self._by_name: dict[str | None, MetadataResponseTopic] = {}
        self._by_id: dict[UUID, MetadataResponseTopic] = {}

    def note(self, message: Message | None) -> None:
        """Add the topics of a recorded response."""
        if isinstance(message, MetadataResponse):
            self._last = message
            self._by_name |= {topic.name: topic for topic in message.topics if topic.name}
            self._by_id |= {topic.topic_id: topic for topic in message.topics if topic.topic_id != ZERO_UUID}

    def answer(self, request: MetadataRequest) -> MetadataResponse | None:
        """Return the response to a request, or None if it contains an unknown topic.

        A request without topics means all topics.
        """
        if self._last is None:
            return None
        if request.topics is None:
            return evolve(self._last, topics=tuple(self._by_name.values()))
        found = [self._find(each) for each in request.topics]
        return evolve(self._last, topics=tuple(each for each in found if each)) if all(found) else None

    def _find(self, wanted: MetadataRequestTopic) -> MetadataResponseTopic | None:
        return self._by_name.get(wanted.name) if wanted.topic_id == ZERO_UUID else self._by_id.get(wanted.topic_id)
