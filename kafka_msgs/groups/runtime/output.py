"""The output of a coordinator call: replies, records, timers, and background tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from attrs import Factory, define, frozen

from kafka_msgs.internal_topics.records import NO_PRODUCER, TopicRecord
from kafka_msgs.message import Response

__all__ = [
    "NO_EPOCH",
    "BackgroundTask",
    "CoordinatorOutput",
    "MarkerAppend",
    "ProducerIdAndEpoch",
    "RecordAppend",
    "Reply",
]

NO_EPOCH: Final = -1
"""The producer epoch of a batch that is not in a transaction."""


class ProducerIdAndEpoch(NamedTuple):
    """A producer id with an epoch. The default is no producer."""

    id: int = NO_PRODUCER
    epoch: int = NO_EPOCH


@frozen(kw_only=True)
class Reply:
    """A reply to a request. ``opaque`` is the value that the caller passed with the request.

    ``topics_to_create`` has the topics that the broker must create for the group: ``CreatableTopic`` of CreateTopics.
    """

    opaque: Any
    response: Response
    topics_to_create: tuple[Any, ...] = ()


@frozen(kw_only=True)
class RecordAppend:
    """Records that are appended to a partition of the coordinator's topic together.

    A batch of a transaction has the id and epoch of its producer. An ``atomic`` batch must be one record batch. The
    records of any other batch may be split into several record batches.
    """

    partition: int
    records: tuple[TopicRecord, ...]
    producer_id: int = NO_PRODUCER
    producer_epoch: int = NO_EPOCH
    atomic: bool = True


@frozen(kw_only=True)
class MarkerAppend:
    """The end of a transaction in a partition of the coordinator's topic, by commit or by abort."""

    partition: int
    producer_id: int
    producer_epoch: int
    committed: bool


@frozen(eq=False, kw_only=True)
class BackgroundTask:
    """A background task, such as an assignment: ``run`` does not access the coordinator.

    The caller runs ``run``, in any thread, and passes the result to ``CoordinatorRuntime.complete_background_task``.
    Then the coordinator runs ``on_done`` as an operation, with the operation context, the result and the error.
    """

    partition: int
    key: str
    run: Callable[[], Any]
    on_done: Callable[[Any, Any, Exception | None], None]


@define(kw_only=True)
class CoordinatorOutput:
    """The events since the previous output.

    ``batches`` has the appended batches and markers, in order. ``scheduled`` and ``expired`` have timers: the key, and
    the time in milliseconds. ``plugin`` has the calls of the plugin for topology descriptions.
    """

    answers: list[Reply] = Factory(list)
    batches: list[RecordAppend | MarkerAppend] = Factory(list)
    scheduled: list[tuple[str, int]] = Factory(list)
    expired: list[tuple[str, int]] = Factory(list)
    background: list[BackgroundTask] = Factory(list)
    plugin: list[str] = Factory(list)
