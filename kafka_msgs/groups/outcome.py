"""What came of a command: answers, records, timers, and work for others."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from attrs import Factory, define, frozen

from kafka_msgs.message import Response
from kafka_msgs.topics.records import NO_PRODUCER, TopicRecord

if TYPE_CHECKING:
    from kafka_msgs.groups.transaction import Transaction

__all__ = ["NO_EPOCH", "Answer", "Batch", "Marker", "Outcome", "Work"]

NO_EPOCH: Final = -1
"""The producer epoch of a batch that is not in a transaction."""


@frozen(kw_only=True)
class Answer:
    """An answer to a request. ``token`` is what the caller gave with the request.

    ``creates`` has the topics that the broker must create for the group: ``CreatableTopic`` of CreateTopics.
    """

    token: Any
    response: Response
    creates: tuple[Any, ...] = ()


@frozen(kw_only=True)
class Batch:
    """Records that are appended to a partition of ``__consumer_offsets`` together.

    A batch of a transaction has the id and epoch of its producer. An ``atomic`` batch must be one record batch. The
    records of another batch may be spread over several record batches.
    """

    partition: int
    records: tuple[TopicRecord, ...]
    producer_id: int = NO_PRODUCER
    producer_epoch: int = NO_EPOCH
    atomic: bool = True


@frozen(kw_only=True)
class Marker:
    """The end of a transaction in a partition of ``__consumer_offsets``, by commit or by abort."""

    partition: int
    producer_id: int
    producer_epoch: int
    committed: bool


@frozen(eq=False, kw_only=True)
class Work:
    """Work that is done beside the requests, such as an assignment: ``run`` needs nothing of the coordinator.

    Whoever does it calls ``run``, in any thread, and gives the result to ``GroupCoordinator.finish``. Then the
    coordinator runs ``then`` as a step.
    """

    partition: int
    key: str
    run: Callable[[], Any]
    then: Callable[[Transaction, Any, Exception | None], None]


@define(kw_only=True)
class Outcome:
    """What happened since the last outcome was taken.

    ``batches`` has what was appended, in order. ``scheduled`` and ``expired`` have timers: the key, and the moment in
    milliseconds. ``plugin`` has the calls of the plugin for topology descriptions.
    """

    answers: list[Answer] = Factory(list)
    batches: list[Batch | Marker] = Factory(list)
    scheduled: list[tuple[str, int]] = Factory(list)
    expired: list[tuple[str, int]] = Factory(list)
    background: list[Work] = Factory(list)
    plugin: list[str] = Factory(list)
