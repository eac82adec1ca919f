"""Brokers in memory that append batches as Kafka's do: they check sequences, epochs, leaders and transactions.

``ProduceCluster`` keeps the log of each partition. Like Kafka's class ``ProducerStateManager``, it drops duplicate
batches and rejects batches out of sequence. Tests inject faults into single Produce requests: ``faults`` lists the
outcomes of the next requests.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias
from uuid import UUID

from attrs import define, field, frozen

from kafka_msgs.client.producer.config import ProducerConfig
from kafka_msgs.client.producer.core import ProducerCore
from kafka_msgs.client.producer.producer_batch import ProducerBatch
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.message import Request, Response
from kafka_msgs.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from kafka_msgs.messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse
from kafka_msgs.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest
from kafka_msgs.messages.add_partitions_to_txn_response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from kafka_msgs.messages.end_txn_request import EndTxnRequest
from kafka_msgs.messages.end_txn_response import EndTxnResponse
from kafka_msgs.messages.find_coordinator_request import FindCoordinatorRequest
from kafka_msgs.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from kafka_msgs.messages.init_producer_id_request import InitProducerIdRequest
from kafka_msgs.messages.init_producer_id_response import InitProducerIdResponse
from kafka_msgs.messages.metadata_request import MetadataRequest
from kafka_msgs.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafka_msgs.messages.produce_request import ProduceRequest
from kafka_msgs.messages.produce_response import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from kafka_msgs.messages.txn_offset_commit_request import TxnOffsetCommitRequest
from kafka_msgs.messages.txn_offset_commit_response import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kafka_msgs.records import RecordBatch, read_batches
from tests.support.simulated_network import SimulatedBroker, SimulatedNetwork

__all__ = [
    "SMALL",
    "Fault",
    "Lost",
    "PartitionLog",
    "ProduceCluster",
    "Refused",
    "Unheard",
    "error_of",
    "offsets",
]

SMALL: Final[dict[str, Any]] = {"batch_size": 200, "linger": 0.0}
"""Producer settings for about ten records of four bytes per batch."""

TOPIC_ID = UUID(int=7)


@frozen
class Refused:
    """The broker returns an error and appends no batches. ``partition`` limits the error to one partition."""

    error: ErrorCode
    partition: int | None = None
    message: str | None = None


@frozen
class Unheard:
    """The broker appends the batches, then the connection ends before the response arrives."""


@frozen
class Lost:
    """The connection ends before the request reaches the broker."""


Fault: TypeAlias = "Refused | Unheard | Lost | None"


@define
class PartitionLog:
    """The records of a partition, and the broker's state of its producers."""

    values: list[bytes | None] = field(factory=list)
    timestamps: list[int] = field(factory=list)
    transactional: list[bool] = field(factory=list)
    start: int = 0
    last: dict[int, tuple[int, int]] = field(factory=dict)
    """By producer id: the epoch, and the sequence of the last record."""
    places: dict[tuple[int, int, int], int] = field(factory=dict)
    """By producer id, epoch and base sequence: the base offset."""
    takes_any_first: bool = False
    """Whether an unknown producer may start with any sequence, as in Kafka 4. Older brokers accept only 0."""

    def append(self, batch: RecordBatch) -> tuple[ErrorCode, int]:
        """Append a batch as Kafka's ``ProducerStateManager`` does; return the error and the base offset."""
        identity = batch.producer_id, batch.producer_epoch, batch.base_sequence
        if batch.producer_id >= 0:
            if identity in self.places:
                return ErrorCode.NONE, self.places[identity]
            error = self._check(batch)
            if error:
                return error, -1
            self.last[batch.producer_id] = batch.producer_epoch, batch.last_sequence
        offset = self.places[identity] = len(self.values)
        for record in batch:
            self.values.append(None if record.value is None else bytes(record.value))
            self.timestamps.append(record.timestamp)
            self.transactional.append(batch.is_transactional)
        return ErrorCode.NONE, offset

    def _check(self, batch: RecordBatch) -> ErrorCode:
        known = self.last.get(batch.producer_id)
        if known is None:
            good = self.takes_any_first or batch.base_sequence == 0
            return ErrorCode.NONE if good else ErrorCode.UNKNOWN_PRODUCER_ID
        epoch, sequence = known
        if batch.producer_epoch < epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        follows = 0 if batch.producer_epoch > epoch else (sequence + 1) % 2**31
        return ErrorCode.NONE if batch.base_sequence == follows else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


class ProduceCluster:
    """Three brokers with one topic, ``t``. ``faults`` has one entry for each of the next Produce requests."""

    def __init__(
        self,
        partitions: int = 3,
        *,
        transactions: int = 2,
        produce: tuple[int, int] = (3, 13),
        network: SimulatedNetwork | None = None,
    ) -> None:
        self.network = network or SimulatedNetwork()
        self.leaders: dict[int, int | None] = {number: 1 + number % 3 for number in range(partitions)}
        self.logs = {number: PartitionLog() for number in range(partitions)}
        self.faults: deque[Fault] = deque()
        self.answers: dict[str, deque[Response]] = {}
        """By request name: responses that replace the default ones."""
        self.transactions = transactions
        self.epochs: dict[str | None, tuple[int, int]] = {}
        self.ended: list[bool] = []
        self.in_transaction: set[int] = set()
        self.offsets: dict[tuple[str, int], int] = {}
        self._next_id = 100
        self.brokers = {node: self._add(node, produce) for node in (1, 2, 3)}

    def producer(self, **options: Any) -> ProducerCore:
        """Return a producer of this cluster."""
        core = self.network.core("b1:9092,b2:9092,b3:9092")
        return ProducerCore(core, ProducerConfig(**options))

    def add(self, producer: ProducerCore, values: Iterable[bytes], **record: Any) -> list[tuple[Any, int]]:
        """Add records to a producer; return each record's batch and its index there."""
        return [self.add_one(producer, value, **record) for value in values]

    def add_one(
        self, producer: ProducerCore, value: bytes, *, key: bytes | None = None, partition: int | None = None
    ) -> tuple[Any, int]:
        """Add one record to a producer."""
        batch = producer.add("t", value, key, partition, 1000, ())
        if batch is None:
            return self.network.run(producer.add_when_possible("t", value, key, partition, 1000, ()))
        return batch

    def flush(self, producer: ProducerCore, seconds: float = 600) -> None:
        """Wait until every record is delivered or abandoned."""
        self.network.run(producer.flush(self.network.now() + seconds))

    def values(self) -> list[bytes | None]:
        """Return the values of all partitions."""
        return [value for log in self.logs.values() for value in log.values]

    def requests(self, cls: type[Request[Any]]) -> list[Any]:
        """Return the requests of a class that the brokers received."""
        return [each for broker in self.brokers.values() for each in broker.requests if isinstance(each, cls)]

    def versions(self, cls: type[Request[Any]]) -> set[int]:
        """Return the versions of the requests of a class."""
        frames = [frame for broker in self.brokers.values() for frame in broker.frames]
        return {frame.header.request_api_version for frame in frames if isinstance(frame.message, cls)}

    def _add(self, node: int, produce: tuple[int, int]) -> SimulatedBroker:
        broker = self.network.add(f"b{node}:9092", lambda request: self._answer(node, request), {0: produce})
        broker.features = {"transaction.version": self.transactions}
        return broker

    def _answer(self, node: int, request: Request[Any]) -> Response | None:
        name = request.INFO.name
        if self.answers.get(name):
            return self.answers[name].popleft()
        handle: Callable[[int, Any], Response | None] = getattr(self, f"_{name}")
        return handle(node, request)

    def _MetadataRequest(self, node: int, request: MetadataRequest) -> MetadataResponse:  # noqa: N802
        partitions = tuple(
            MetadataResponsePartition(partition_index=number, leader_id=-1 if leader is None else leader)
            for number, leader in self.leaders.items()
        )
        found = {
            name: MetadataResponseTopic(name="t", topic_id=TOPIC_ID, partitions=partitions)
            if name == "t"
            else MetadataResponseTopic(name=name, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            for name in (topic.name for topic in request.topics or ())
        }
        up = [number for number, broker in self.brokers.items() if broker.up]
        return MetadataResponse(
            brokers=tuple(MetadataResponseBroker(node_id=each, host=f"b{each}", port=9092) for each in up),
            topics=tuple(found.values()),
        )

    def _FindCoordinatorRequest(self, node: int, request: FindCoordinatorRequest) -> FindCoordinatorResponse:  # noqa: N802
        return FindCoordinatorResponse(
            coordinators=tuple(
                Coordinator(key=key, node_id=2, host="b2", port=9092) for key in request.coordinator_keys
            )
        )

    def _InitProducerIdRequest(self, node: int, request: InitProducerIdRequest) -> InitProducerIdResponse:  # noqa: N802
        known = self.epochs.get(request.transactional_id)
        if known is not None and request.producer_id >= 0 and (request.producer_id, request.producer_epoch) != known:
            return InitProducerIdResponse(error_code=ErrorCode.PRODUCER_FENCED)
        if known is None or request.transactional_id is None:
            known = self._next_id, -1
            self._next_id += 1
        self.epochs[request.transactional_id] = known[0], known[1] + 1
        return InitProducerIdResponse(producer_id=known[0], producer_epoch=known[1] + 1)

    def _fenced(self, request: Any) -> bool:
        return self.epochs.get(request.transactional_id) != (request.producer_id, request.producer_epoch)

    def _AddPartitionsToTxnRequest(  # noqa: N802
        self, node: int, request: AddPartitionsToTxnRequest
    ) -> AddPartitionsToTxnResponse:
        topics = request.v3_and_below_topics
        self.in_transaction.update(number for topic in topics for number in topic.partitions)
        results = tuple(
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=tuple(
                    AddPartitionsToTxnPartitionResult(partition_index=number) for number in topic.partitions
                ),
            )
            for topic in topics
        )
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)

    def _AddOffsetsToTxnRequest(self, node: int, request: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse:  # noqa: N802
        return AddOffsetsToTxnResponse(error_code=ErrorCode.INVALID_PRODUCER_EPOCH if self._fenced(request) else 0)

    def _TxnOffsetCommitRequest(self, node: int, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:  # noqa: N802
        return TxnOffsetCommitResponse(topics=tuple(map(self._commit_topic, request.topics)))

    def _commit_topic(self, topic: Any) -> TxnOffsetCommitResponseTopic:
        known = topic.name == "t" or topic.topic_id == TOPIC_ID
        error = ErrorCode.NONE if known else ErrorCode.UNKNOWN_TOPIC_ID
        for each in topic.partitions if known else ():
            self.offsets["t", each.partition_index] = each.committed_offset
        return TxnOffsetCommitResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=tuple(
                TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=error)
                for each in topic.partitions
            ),
        )

    def _EndTxnRequest(self, node: int, request: EndTxnRequest) -> EndTxnResponse:  # noqa: N802
        if self._fenced(request):
            return EndTxnResponse(error_code=ErrorCode.PRODUCER_FENCED)
        self.ended.append(request.committed)
        self.in_transaction.clear()
        if self.transactions < 2:
            return EndTxnResponse()
        producer_id, epoch = self.epochs[request.transactional_id]
        self.epochs[request.transactional_id] = producer_id, epoch + 1
        return EndTxnResponse(producer_id=producer_id, producer_epoch=epoch + 1)

    def _ProduceRequest(self, node: int, request: ProduceRequest) -> ProduceResponse | None:  # noqa: N802
        fault = self.faults.popleft() if self.faults else None
        if isinstance(fault, Lost):
            self._cut(node)
            return None
        responses = []
        for topic in request.topic_data:
            taken = tuple(self._take(node, each, request, fault) for each in topic.partition_data)
            responses.append(TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=taken))
        if isinstance(fault, Unheard):
            self._cut(node)
            return None
        return ProduceResponse(responses=tuple(responses))

    def _take(self, node: int, data: Any, request: ProduceRequest, fault: Fault) -> PartitionProduceResponse:
        if isinstance(fault, Refused) and fault.partition in (None, data.index):
            return PartitionProduceResponse(
                index=data.index, error_code=fault.error, base_offset=-1, error_message=fault.message
            )
        if self.leaders[data.index] != node:
            return PartitionProduceResponse(index=data.index, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if self.transactions < 2 and request.transactional_id is not None and data.index not in self.in_transaction:
            return PartitionProduceResponse(index=data.index, error_code=ErrorCode.INVALID_TXN_STATE)
        (batch,) = read_batches(data.records)
        assert isinstance(batch, RecordBatch)
        log = self.logs[data.index]
        error, offset = log.append(batch)
        return PartitionProduceResponse(
            index=data.index, error_code=error, base_offset=offset, log_start_offset=log.start
        )

    def _cut(self, node: int) -> None:
        """End the connections to a broker, after the other events of this time."""
        broker = self.brokers[node]
        for transport in [each for each in self.network.transports if each.broker is broker]:
            self.network.later(0, transport.cut)


def offsets(records: list[tuple[ProducerBatch, int]]) -> list[int]:
    """Return the offsets of records, all of which must be delivered."""
    found = [batch.delivery_of(index) for batch, index in records]
    return [batch.metadata(index, 0).offset for batch, index in found]


def error_of(record: tuple[ProducerBatch, int]) -> Exception | None:
    """Return the error of an abandoned record."""
    batch, index = record
    return batch.delivery_of(index)[0].error
