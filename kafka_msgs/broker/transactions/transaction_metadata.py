"""A transactional id as an immutable value, its states, their transitions, its record, and the configuration.

A transition returns the next ``TransactionMetadata``. ``coordinator`` and ``end_checks`` decide which requests may make
it. The source is ``org.apache.kafka.coordinator.transaction.TransactionMetadata``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from itertools import groupby
from typing import Any, Final, NamedTuple

from attrs import evolve, field, frozen
from attrs.validators import ge

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import InternalError, RequestRefusedError
from kafka_msgs.groups.runtime.output import NO_EPOCH, ProducerIdAndEpoch
from kafka_msgs.internal_topics.records import NO_PRODUCER
from kafka_msgs.messages.transaction_log_key import TransactionLogKey
from kafka_msgs.messages.transaction_log_value import PartitionsSchema, TransactionLogValue

__all__ = [
    "LAST_EPOCH",
    "TOPIC",
    "TopicPartition",
    "TransactionConfig",
    "TransactionMetadata",
    "TransactionState",
    "from_value",
    "group_by_topic",
]


@frozen(kw_only=True)
class TransactionConfig:
    """Configuration of the coordinator. Attribute names are Kafka's names with ``_`` for ``.``; times are in ms.

    ``transaction_version`` is the level of the feature ``transaction.version``: 2 is KIP-890, 0 is a release before it.
    """

    transaction_state_log_num_partitions: int = field(default=50, validator=ge(1))
    transaction_max_timeout_ms: int = field(default=900_000, validator=ge(1))
    transactional_id_expiration_ms: int = field(default=7 * 24 * 3_600_000, validator=ge(1))
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = field(default=10_000, validator=ge(1))
    transaction_remove_expired_transaction_cleanup_interval_ms: int = field(default=3_600_000, validator=ge(1))
    transaction_version: int = field(default=2, validator=ge(0))


class TransactionState(IntEnum):
    """The state of a transactional id, by its number in ``__transaction_state``."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def label(self) -> str:
        """The name in DescribeTransactions responses, for example ``PrepareCommit``."""
        return self.name.title().replace("_", "")

    @property
    def at_rest(self) -> bool:
        """Whether no transaction is open. Only such a transactional id may expire."""
        return self in _AT_REST

    @property
    def ending(self) -> bool:
        """Whether the end is decided and markers are pending."""
        return self in _ENDING


_STATUS = TransactionState
_AT_REST: Final = frozenset({_STATUS.EMPTY, _STATUS.COMPLETE_COMMIT, _STATUS.COMPLETE_ABORT})
_ENDING: Final = frozenset({_STATUS.PREPARE_COMMIT, _STATUS.PREPARE_ABORT})

VALID_PREVIOUS_STATES: Final[Mapping[TransactionState, frozenset[TransactionState]]] = {
    _STATUS.EMPTY: _AT_REST,
    _STATUS.ONGOING: _AT_REST | {_STATUS.ONGOING},
    _STATUS.PREPARE_COMMIT: frozenset({_STATUS.ONGOING}),
    _STATUS.PREPARE_ABORT: _AT_REST | {_STATUS.ONGOING},
    _STATUS.COMPLETE_COMMIT: frozenset({_STATUS.PREPARE_COMMIT}),
    _STATUS.COMPLETE_ABORT: frozenset({_STATUS.PREPARE_ABORT}),
}
"""The valid previous states of each recorded state.

From transaction version 2 on (KIP-890), a producer may abort even if no transaction is open.
"""


TOPIC: Final = "__transaction_state"
"""The topic that holds the records."""

LAST_EPOCH: Final = 2**15 - 2
"""The last epoch for clients. The next one is reserved, so that a producer can always be fenced."""

_MAX_EPOCH: Final = LAST_EPOCH + 1
_NO_TIMEOUT: Final = 2**31 - 1
_EPOCH_BUMP: Final = 2
"""The transaction version from which on each end bumps the epoch (KIP-890)."""


class TopicPartition(NamedTuple):
    """A topic name and a partition number."""

    topic: str
    partition: int


@frozen(kw_only=True)
class TransactionMetadata:
    """The state of a transactional id.

    ``timeout_ms`` is the timeout of an open transaction in milliseconds. ``started_ms`` and ``updated_ms`` are times in
    milliseconds since the epoch, -1 for none. ``client_version`` is the client's transaction version: 2 for a client
    that gets a new epoch at each end (KIP-890). ``previous_producer_id`` and ``next_producer_id`` bridge the change of
    the producer id when its epochs are exhausted. ``last_producer_epoch`` is the previous epoch, which is not recorded.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int = NO_EPOCH
    last_producer_epoch: int = NO_EPOCH
    previous_producer_id: int = NO_PRODUCER
    next_producer_id: int = NO_PRODUCER
    timeout_ms: int
    status: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    started_ms: int = -1
    updated_ms: int
    client_version: int = 0

    @property
    def producer(self) -> ProducerIdAndEpoch:
        """The producer id with its epoch."""
        return ProducerIdAndEpoch(self.producer_id, self.producer_epoch)

    @property
    def bumps_epoch(self) -> bool:
        """Whether each end of a transaction bumps the epoch (KIP-890)."""
        return self.client_version >= _EPOCH_BUMP

    @property
    def exhausted(self) -> bool:
        """Whether the epochs of the producer id are exhausted."""
        return self.producer_epoch >= LAST_EPOCH

    @property
    def two_phase(self) -> bool:
        """Whether an external coordinator decides the end (KIP-939). Such a transaction has no timeout."""
        return self.timeout_ms == _NO_TIMEOUT

    def timed_out(self, now: int) -> bool:
        """Return whether an open transaction has exceeded its timeout."""
        late = self.started_ms + self.timeout_ms < now
        return self.status is TransactionState.ONGOING and late and not self.two_phase

    # Transitions

    def renewed(self, timeout_ms: int, expected: ProducerIdAndEpoch | None, now: int) -> TransactionMetadata:
        """Return the next epoch of the same producer id, for InitProducerId. ``expected`` is from the request.

        A producer that retries gets the same epoch again. Raises ``RequestRefusedError`` for an older epoch.
        """
        last = NO_EPOCH
        epoch = self.producer_epoch + 1
        if expected is not None:
            if self.producer_epoch in (NO_EPOCH, expected.epoch):
                last = self.producer_epoch
            elif expected.epoch == self.last_producer_epoch:
                epoch, last = self.producer_epoch, self.last_producer_epoch
            else:
                raise RequestRefusedError(ErrorCode.PRODUCER_FENCED)
        return self._emptied(timeout_ms, now, producer_epoch=epoch, last_producer_epoch=last)

    def with_new_producer_id(
        self, producer_id: int, timeout_ms: int, now: int, *, keep_last: bool
    ) -> TransactionMetadata:
        """Return a new producer id with epoch 0, for InitProducerId after the epochs are exhausted."""
        last = self.producer_epoch if keep_last else NO_EPOCH
        return self._emptied(timeout_ms, now, producer_id=producer_id, producer_epoch=0, last_producer_epoch=last)

    def _emptied(self, timeout_ms: int, now: int, **producer: int) -> TransactionMetadata:
        return self._to(
            TransactionState.EMPTY,
            partitions=frozenset(),
            started_ms=-1,
            updated_ms=now,
            timeout_ms=timeout_ms,
            **producer,
        )

    def with_partitions(
        self, partitions: frozenset[TopicPartition], client_version: int, now: int
    ) -> TransactionMetadata:
        """Return the open transaction with more partitions. The first ones open it."""
        return self._to(
            TransactionState.ONGOING,
            partitions=self.partitions | partitions,
            started_ms=now if self.status.at_rest else self.started_ms,
            updated_ms=now,
            client_version=client_version,
        )

    def ended(self, *, committed: bool, client_version: int, next_producer_id: int, now: int) -> TransactionMetadata:
        """Return the decision to commit or abort. From transaction version 2 on, the epoch is bumped.

        ``next_producer_id`` is for the next transaction, if the epochs are exhausted.
        """
        producer: dict[str, int] = {}
        if client_version >= _EPOCH_BUMP:
            producer = {
                "producer_epoch": min(self.producer_epoch + 1, _MAX_EPOCH),
                "last_producer_epoch": self.producer_epoch,
            }
        return self._to(
            TransactionState.PREPARE_COMMIT if committed else TransactionState.PREPARE_ABORT,
            started_ms=now if self.status.at_rest else self.started_ms,
            updated_ms=now,
            next_producer_id=next_producer_id,
            client_version=client_version,
            **producer,
        )

    def completed(self, now: int) -> TransactionMetadata:
        """Return the completed transaction, after all markers are written. An exhausted producer id is replaced."""
        committed = self.status is TransactionState.PREPARE_COMMIT
        rotates = self.bumps_epoch and self.next_producer_id != NO_PRODUCER
        producer = {"producer_id": self.next_producer_id, "producer_epoch": 0} if rotates else {}
        return self._to(
            TransactionState.COMPLETE_COMMIT if committed else TransactionState.COMPLETE_ABORT,
            partitions=frozenset(),
            next_producer_id=NO_PRODUCER,
            updated_ms=now,
            **producer,
        )

    def _to(self, status: TransactionState, **changes: Any) -> TransactionMetadata:
        if self.status not in VALID_PREVIOUS_STATES[status]:
            raise InternalError(reason=f"{status.label} cannot follow {self.status.label}")
        return evolve(self, status=status, previous_producer_id=self.producer_id, **changes)

    # Record conversion

    @property
    def key(self) -> TransactionLogKey:
        """The key of its records."""
        return TransactionLogKey(transactional_id=self.transactional_id)

    def to_value(self, version: int) -> TransactionLogValue:
        """Return the value of the record of this state, with this version."""
        empty = self.status is TransactionState.EMPTY
        modern = version >= 1
        listed = (PartitionsSchema(topic=name, partition_ids=ids) for name, ids in group_by_topic(self.partitions))
        return TransactionLogValue(
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            previous_producer_id=self.previous_producer_id if modern else NO_PRODUCER,
            next_producer_id=self.next_producer_id if modern else NO_PRODUCER,
            client_transaction_version=self.client_version if modern else 0,
            transaction_timeout_ms=self.timeout_ms,
            transaction_status=self.status,
            transaction_partitions=None if empty else tuple(listed),
            transaction_last_update_timestamp_ms=self.updated_ms,
            transaction_start_timestamp_ms=self.started_ms,
        )


def group_by_topic(partitions: Iterable[TopicPartition]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield topics and their partition numbers, both in order."""
    for topic, group in groupby(sorted(partitions), key=lambda each: each.topic):
        yield topic, tuple(each.partition for each in group)


def from_value(transactional_id: str, value: TransactionLogValue) -> TransactionMetadata:
    """Return the state from a record. The previous epoch is not recorded."""
    return TransactionMetadata(
        transactional_id=transactional_id,
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        timeout_ms=value.transaction_timeout_ms,
        status=TransactionState(value.transaction_status),
        partitions=frozenset(
            TopicPartition(each.topic, partition)
            for each in value.transaction_partitions or ()
            for partition in each.partition_ids
        ),
        started_ms=value.transaction_start_timestamp_ms,
        updated_ms=value.transaction_last_update_timestamp_ms,
        client_version=value.client_transaction_version,
    )
