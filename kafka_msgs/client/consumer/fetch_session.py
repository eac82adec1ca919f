"""Fetch sessions (KIP-227): the broker stores the fetched partitions, and requests contain only changes.

A session is a value without a connection. ``build`` returns the next request; ``handle_response`` and ``handle_error``
process its result. Kafka's class is ``org.apache.kafka.clients.FetchSessionHandler``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from attrs import define, field

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.messages.fetch_request import FetchPartition, FetchTopic, ForgottenTopic

__all__ = ["FetchSession", "FetchTarget", "SessionRequest", "TopicKey"]

TopicKey: TypeAlias = "str | UUID"
"""The key of a topic in a request: its name up to Fetch version 12, its id in later versions (KIP-516)."""

FetchTarget: TypeAlias = tuple[TopicKey, int]
"""A topic key and a partition number."""

_NO_SESSION: Final = 0
_FIRST_EPOCH: Final = 0
_FINAL_EPOCH: Final = -1
_HIGHEST_EPOCH: Final = 2**31 - 1


class SessionRequest(NamedTuple):
    """The part of a Fetch request that depends on the session."""

    session_id: int
    session_epoch: int
    topics: tuple[FetchTopic, ...]
    forgotten: tuple[ForgottenTopic, ...]


@define
class FetchSession:
    """The session of a consumer with one broker."""

    session_id: int = _NO_SESSION
    epoch: int = _FIRST_EPOCH
    _known: dict[FetchTarget, FetchPartition] = field(factory=dict)

    def build(self, wanted: Mapping[FetchTarget, FetchPartition]) -> SessionRequest:
        """Return the next request for the ``wanted`` partitions: a full request, or only the changes."""
        if self.epoch == _FIRST_EPOCH:
            changed, gone = dict(wanted), []
        else:
            changed = {target: each for target, each in wanted.items() if self._known.get(target) != each}
            gone = [target for target in self._known if target not in wanted]
        self._known = dict(wanted)
        return SessionRequest(self.session_id, self.epoch, _topics(changed), _forgotten(gone))

    def includes(self, target: FetchTarget) -> FetchPartition | None:
        """Return the fetch parameters of a partition in the last request, or None if the partition was not included."""
        return self._known.get(target)

    def handle_response(self, session_id: int) -> None:
        """Process a response without an error. Its session id is 0 if the broker stores no session."""
        if session_id == _NO_SESSION:
            self.session_id, self.epoch = _NO_SESSION, _FIRST_EPOCH
        else:
            self.session_id = session_id
            self.epoch = 1 if self.epoch == _HIGHEST_EPOCH else self.epoch + 1

    def handle_error(self, error: ErrorCode | int | None = None) -> None:
        """Process a response error, or a missing response (None). The next request is a full request.

        If the broker no longer has the session, the next request has no session id. Otherwise it replaces the session.
        """
        if error == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self.session_id = _NO_SESSION
        self.epoch = _FIRST_EPOCH

    def close(self) -> SessionRequest | None:
        """Return the request that closes the session at the broker, or None without a session."""
        session_id, self.session_id, self.epoch = self.session_id, _NO_SESSION, _FIRST_EPOCH
        self._known = {}
        return None if session_id == _NO_SESSION else SessionRequest(session_id, _FINAL_EPOCH, (), ())


def _topics(partitions: Mapping[FetchTarget, FetchPartition]) -> tuple[FetchTopic, ...]:
    topics: dict[TopicKey, list[FetchPartition]] = {}
    for (topic, _), partition in partitions.items():
        topics.setdefault(topic, []).append(partition)
    return tuple(
        FetchTopic(topic_id=topic, partitions=tuple(found))
        if isinstance(topic, UUID)
        else FetchTopic(topic=topic, partitions=tuple(found))
        for topic, found in topics.items()
    )


def _forgotten(gone: Iterable[FetchTarget]) -> tuple[ForgottenTopic, ...]:
    topics: dict[TopicKey, list[int]] = {}
    for topic, number in gone:
        topics.setdefault(topic, []).append(number)
    return tuple(
        ForgottenTopic(topic_id=topic, partitions=tuple(numbers))
        if isinstance(topic, UUID)
        else ForgottenTopic(topic=topic, partitions=tuple(numbers))
        for topic, numbers in topics.items()
    )
