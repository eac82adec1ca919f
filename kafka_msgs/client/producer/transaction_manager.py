"""Producer transactions: their state, and the requests to the coordinator (KIP-98, KIP-360, KIP-890).

With transactions version 2 (the cluster feature ``transaction.version``), brokers add partitions to a transaction
themselves, and each end of a transaction returns a new producer epoch. In earlier versions, the producer adds
partitions, and requests a new epoch after an error. In Kafka this is the class
``org.apache.kafka.clients.producer.internals.TransactionManager``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kafka_msgs.client.broker_errors import broker_error, raise_for
from kafka_msgs.client.cluster_metadata import TopicPartition
from kafka_msgs.client.flow import Flow, Wait, sleep_until
from kafka_msgs.client.group_metadata import ConsumerGroupMetadata
from kafka_msgs.client.offset_and_metadata import OffsetAndMetadata
from kafka_msgs.client.producer.config import ProducerConfig
from kafka_msgs.client.producer.producer_batch import NO_PRODUCER, ProducerIdAndEpoch
from kafka_msgs.client.producer.sequences import SequenceManager
from kafka_msgs.client.producer.transactional_offsets import commit_errors, commit_request, has_topic_ids
from kafka_msgs.client.retry_log import RetryLog
from kafka_msgs.client.routing import CoordinatorKind
from kafka_msgs.client.scheduler import Task
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import BrokerError, DeadlineError, KafkaMsgsError, ProducerFencedError, TransactionStateError
from kafka_msgs.message import Request, Response
from kafka_msgs.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from kafka_msgs.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kafka_msgs.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from kafka_msgs.messages.end_txn_request import EndTxnRequest
from kafka_msgs.messages.init_producer_id_request import InitProducerIdRequest
from kafka_msgs.messages.txn_offset_commit_request import TxnOffsetCommitRequest

if TYPE_CHECKING:
    from kafka_msgs.client.broker_connection import BrokerConnection
    from kafka_msgs.client.core import ClientCore

__all__ = ["TransactionManager", "TransactionManagerState"]

R = TypeVar("R", bound=Response)
_LOG: Final = logging.getLogger("kafka_msgs.client.producer")
_E: Final = ErrorCode

_FENCED: Final = frozenset({_E.PRODUCER_FENCED, _E.INVALID_PRODUCER_EPOCH, _E.FENCED_INSTANCE_ID})
_FATAL: Final = frozenset(
    {
        _E.CLUSTER_AUTHORIZATION_FAILED, _E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, _E.UNSUPPORTED_VERSION,
        _E.UNSUPPORTED_FOR_MESSAGE_FORMAT, _E.INVALID_PRODUCER_ID_MAPPING, _E.INVALID_TXN_STATE,
        _E.INVALID_TRANSACTION_TIMEOUT, _E.PRODUCER_FENCED,
    }
)  # fmt: skip
"""Errors after which this producer cannot use transactions any more."""
_WAITED_FOR: Final = frozenset({_E.CONCURRENT_TRANSACTIONS, _E.UNKNOWN_TOPIC_OR_PARTITION})
"""Transient errors that Kafka does not mark as retriable: an earlier transaction is still ending."""
_FINAL: Final = frozenset({_E.UNKNOWN_TOPIC_ID})
"""Errors that Kafka marks as retriable, but a retry cannot help: the topic of the offsets was deleted."""

_FEATURE: Final = "transaction.version"
_ADD_PARTITIONS: Final = 3
_COMMIT_OFFSETS: Final = 4
_END: Final = 4
"""The last request versions before transactions version 2."""
_COMMIT_OFFSETS_BY_NAME: Final = 5
"""The last version of TxnOffsetCommit with topic names (KIP-1319)."""
_ANY: Final = 2**15 - 1


class TransactionManagerState(Enum):
    """The state of a transactional producer."""

    NEW = "is not initialized"
    READY = "has no transaction"
    OPEN = "has a transaction"
    ABORTABLE = "has a transaction that can only be aborted"
    ENDING = "is ending a transaction"
    FATAL = "cannot have transactions any more"


class TransactionManager:
    """The consecutive transactions of one producer."""

    def __init__(self, core: ClientCore, config: ProducerConfig, identity: SequenceManager) -> None:
        assert config.transactional_id is not None
        self._core = core
        self._config = config
        self._identity = identity
        self._retries = RetryLog(_LOG, core.network.now)
        self._name: str = config.transactional_id
        self.state = TransactionManagerState.NEW
        self.error: Exception | None = None
        """The error that requires an abort or disables transactions."""
        self.is_v2 = False
        """Whether the cluster uses transactions version 2 (KIP-890)."""
        self.adding: Task[None] | None = None
        """The task that is adding partitions."""
        self._added: set[TopicPartition] = set()
        self._to_add: set[TopicPartition] = set()
        self._has_offsets = False

    # Called by the sender

    @property
    def may_send(self) -> bool:
        """Whether batches may be sent now."""
        return self.state in (TransactionManagerState.OPEN, TransactionManagerState.ENDING)

    @property
    def can_abort(self) -> bool:
        """Whether a transaction can be aborted."""
        return self.state in (TransactionManagerState.OPEN, TransactionManagerState.ABORTABLE)

    def has_partition(self, topic: str, partition: int) -> bool:
        """Return whether a partition is in the transaction; start to add it otherwise."""
        place = TopicPartition(topic, partition)
        if self.is_v2:
            self._added.add(place)
        elif place not in self._added:
            self._to_add.add(place)
            self.add_pending_partitions()
        return place in self._added

    def add_pending_partitions(self) -> None:
        """Start to add pending partitions unless a request is already adding some."""
        if self.adding is not None and self.adding.done:
            self.adding = None
        if self.adding is None and self._to_add:
            self.adding = self._core.network.spawn(self._add_partitions())

    @property
    def reason(self) -> Exception:
        """Return the error of records that fail with the transaction."""
        return self.error or TransactionStateError(action="send records", state="aborts its transaction")

    def batch_failed(self, error: Exception) -> None:
        """Record that records of the transaction failed: it cannot be committed any more."""
        if isinstance(error, BrokerError) and error.error in _FATAL:
            self._end_forever(error)
        elif self.state in (TransactionManagerState.OPEN, TransactionManagerState.ENDING):
            self.state, self.error = TransactionManagerState.ABORTABLE, error

    # Called for the user

    def initialize(self, deadline: float) -> Flow[None]:
        """Request the producer id of the transactional id. This fences off earlier producers with that id."""
        self._require("initialize transactions", TransactionManagerState.NEW)
        yield from self._take_identity(NO_PRODUCER, deadline)
        self.state = TransactionManagerState.READY

    def begin(self) -> None:
        """Begin a transaction, without a request."""
        self._require("begin a transaction", TransactionManagerState.READY)
        self._added.clear()
        self._to_add.clear()
        self._has_offsets = False
        self.state = TransactionManagerState.OPEN

    def require_open(self, action: str) -> None:
        """Raise unless a transaction can be committed."""
        self._require(action, TransactionManagerState.OPEN)

    def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: ConsumerGroupMetadata
    ) -> Flow[None]:
        """Commit offsets of a consumer group with the transaction (KIP-447)."""
        self._require("send offsets", TransactionManagerState.OPEN)
        deadline = self._core.deadline(self._config.max_block)
        try:
            if not self.is_v2:
                add = AddOffsetsToTxnRequest(
                    transactional_id=self._name,
                    group_id=group.group_id,
                    producer_id=self._identity.producer.id,
                    producer_epoch=self._identity.producer.epoch,
                )
                yield from self._ask(add, deadline, lambda response: response.error_code)
            self._has_offsets = True
            yield from self._commit_offsets(offsets, group, deadline)
        except KafkaMsgsError as error:
            self.batch_failed(error)
            raise

    def begin_commit(self) -> None:
        """Accept no more records; added records are still delivered. Raises if the transaction cannot be committed."""
        self._require("commit a transaction", TransactionManagerState.OPEN, TransactionManagerState.ENDING)
        self.state = TransactionManagerState.ENDING

    def begin_abort(self) -> None:
        """Accept no more records. Unsent records fail."""
        if self.state is not TransactionManagerState.ABORTABLE:
            self._require("abort a transaction", TransactionManagerState.OPEN)
        self.state = TransactionManagerState.ABORTABLE

    def end(self, *, commit: bool, deadline: float) -> Flow[None]:
        """Request a commit or an abort from the coordinator, after all records are delivered or have failed."""
        if commit and self.state is TransactionManagerState.ABORTABLE and self.error is not None:
            raise self.error
        while self.adding is not None and not self.adding.done:
            yield from _settled(self.adding, deadline)
        failed = self.error is not None
        if self._added or self._has_offsets:
            yield from self._end(commit, deadline)
        if failed and not self.is_v2:
            yield from self._take_identity(self._identity.producer, deadline)
        self.error = None
        self.state = TransactionManagerState.READY

    # Requests

    def _end(self, commit: bool, deadline: float) -> Flow[None]:
        producer_id, epoch = self._identity.producer
        request = EndTxnRequest(
            transactional_id=self._name, committed=commit, producer_id=producer_id, producer_epoch=epoch
        )
        response = yield from self._ask(
            request, deadline, lambda response: response.error_code, highest=_ANY if self.is_v2 else _END
        )
        if response.producer_id >= 0:
            self._identity.begin(ProducerIdAndEpoch(response.producer_id, response.producer_epoch))

    def _take_identity(self, present: ProducerIdAndEpoch, deadline: float) -> Flow[None]:
        request = InitProducerIdRequest(
            transactional_id=self._name,
            transaction_timeout_ms=int(self._config.transaction_timeout * 1000),
            producer_id=present.id,
            producer_epoch=present.epoch,
        )
        response = yield from self._ask(request, deadline, lambda response: response.error_code)
        self._identity.begin(ProducerIdAndEpoch(response.producer_id, response.producer_epoch))

    def _add_partitions(self) -> Flow[None]:
        """Add pending partitions (before version 2)."""
        places, self._to_add = self._to_add, set()
        topics: dict[str, list[int]] = {}
        for topic, partition in sorted(places):
            topics.setdefault(topic, []).append(partition)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._name,
            v3_and_below_producer_id=self._identity.producer.id,
            v3_and_below_producer_epoch=self._identity.producer.epoch,
            v3_and_below_topics=tuple(
                AddPartitionsToTxnTopic(name=topic, partitions=tuple(found)) for topic, found in topics.items()
            ),
        )
        deadline = self._core.deadline(self._config.delivery_timeout)
        try:
            yield from self._ask(request, deadline, partial(_first_error, places), highest=_ADD_PARTITIONS)
            self._added |= places
        except KafkaMsgsError as error:
            self.batch_failed(error)

    def _commit_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: ConsumerGroupMetadata, deadline: float
    ) -> Flow[None]:
        connection = yield from self._core.coordinator_link(group.group_id, CoordinatorKind.GROUP, deadline=deadline)
        highest = _ANY if has_topic_ids(offsets, group) else _COMMIT_OFFSETS_BY_NAME
        highest = highest if self.is_v2 else _COMMIT_OFFSETS
        version = self._version(connection, TxnOffsetCommitRequest, highest)
        by_id = version > _COMMIT_OFFSETS_BY_NAME
        request = commit_request(self._name, self._identity.producer, offsets, group, by_id=by_id)
        yield from self._repeat(request, version, deadline, lambda response: next(commit_errors(request, response), 0))

    def _ask(self, request: Request[R], deadline: float, error_of: Callable[[R], int], highest: int = _ANY) -> Flow[R]:
        """Send a request to the transaction coordinator, with retries. Raises the final error."""
        connection = yield from self._core.coordinator_link(self._name, CoordinatorKind.TRANSACTION, deadline=deadline)
        version = self._version(connection, type(request), highest)
        return (yield from self._repeat(request, version, deadline, error_of))

    def _version(self, connection: BrokerConnection, cls: type[Request[Any]], highest: int) -> int:
        """Return the request version to use, and record the transactions version of the cluster."""
        features = () if connection.api_versions is None else connection.api_versions.finalized_features
        self.is_v2 = any(each.name == _FEATURE and each.max_version_level >= 2 for each in features)
        return min(connection.highest_version(cls), highest)

    def _repeat(self, request: Request[R], version: int, deadline: float, error_of: Callable[[R], int]) -> Flow[R]:
        attempts, api = 0, request.INFO.name.removesuffix("Request")
        last: Exception | None = None
        while True:
            try:
                response = yield from self._core.call(request, version=version, deadline=deadline)
            except DeadlineError as late:
                raise DeadlineError(waiting_for=late.waiting_for, cause=late.cause or last) from None
            error = ErrorCode(error_of(response))
            passing = (error.retriable and error not in _FINAL) or error in _WAITED_FOR
            if not passing or self._core.network.now() >= deadline:
                break
            attempts += 1
            last = broker_error(error, api=api, subject=self._name)
            self._retries.failed(api, last, expected=True)
            yield from sleep_until(min(deadline, self._core.network.now() + self._config.backoff(attempts)))
        self._raise(error, api)
        self._retries.passed(api)
        return response

    def _raise(self, error: ErrorCode, api: str) -> None:
        """Raise the error of a response, and store it if it is fatal."""
        if error in _FENCED:
            fenced = ProducerFencedError(error=error, retriable=False, api=api, subject=self._name)
            self._end_forever(fenced)
            raise fenced
        try:
            raise_for(error, api=api, subject=self._name)
        except BrokerError as failure:
            if error in _FATAL:
                self._end_forever(failure)
            raise

    def _end_forever(self, error: Exception) -> None:
        self.state, self.error = TransactionManagerState.FATAL, error

    def _require(self, action: str, *states: TransactionManagerState) -> None:
        """Raise unless the producer is in one of these states."""
        if self.state in states:
            return
        if self.error is not None and self.state in (TransactionManagerState.ABORTABLE, TransactionManagerState.FATAL):
            raise self.error
        raise TransactionStateError(action=action, state=self.state.value)


def _first_error(places: Collection[TopicPartition], response: AddPartitionsToTxnResponse) -> int:
    """Return the decisive error of a request to add partitions: non-transient errors come first.

    A partition that the response does not mention was not added.
    """
    found = {
        TopicPartition(topic.name, partition.partition_index): partition.partition_error_code
        for topic in response.results_by_topic_v3_and_below
        for partition in topic.results_by_partition
    }
    codes = [found.get(each, _E.UNKNOWN_SERVER_ERROR) for each in places]
    failed = [code for code in codes if code and code != _E.OPERATION_NOT_ATTEMPTED]
    final = [code for code in failed if not ErrorCode(code).retriable and code not in _WAITED_FOR]
    return next(iter(final or failed), 0)


def _settled(task: Task[None], deadline: float) -> Flow[None]:
    """Wait until a task has ended, whether it succeeds or fails."""
    yield Wait((task,), deadline)
