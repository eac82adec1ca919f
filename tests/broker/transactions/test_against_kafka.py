"""Random scripts of producers: our transaction coordinator responds like a real broker.

Clusters assign producer ids, so ids are compared by the order in which they appear.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

import pytest
from attrs import Factory, define

from kafka_msgs.broker.transactions import TopicPartition, TransactionCoordinator
from kafka_msgs.client import Client
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors.api import ApiError
from kafka_msgs.groups.runtime.output import MarkerAppend, ProducerIdAndEpoch, RecordAppend
from kafka_msgs.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kafka_msgs.messages.describe_transactions_request import DescribeTransactionsRequest
from kafka_msgs.messages.end_txn_request import EndTxnRequest
from kafka_msgs.messages.find_coordinator_request import FindCoordinatorRequest
from kafka_msgs.messages.init_producer_id_request import InitProducerIdRequest
from tests.support.cluster_topics import new_name, new_topic
from tests.support.eventually import until
from tests.support.kafka_cluster import ClusterAddresses

PARTITIONS: Final = 3
STEPS: Final = 60
TIMEOUT_MS: Final = 60_000

Answer: TypeAlias = tuple[Any, ...]
"""The error name and the other values of a response: ids and epochs, or the state of a transaction."""


@define
class Names:
    """Numbers the producer ids of one side in order of appearance, so that two sides are comparable."""

    numbers: dict[int, int] = Factory(dict)
    ids: list[int] = Factory(list)

    def number(self, producer_id: int) -> int:
        """Return the number of an id: 0 for the first. -1 stays -1."""
        if producer_id < 0:
            return producer_id
        if producer_id not in self.numbers:
            self.numbers[producer_id] = len(self.ids)
            self.ids.append(producer_id)
        return self.numbers[producer_id]


class Model:
    """Our coordinator, with markers written immediately."""

    def __init__(self, transactional_id: str, topic: str) -> None:
        self.transactional_id = transactional_id
        self.topic = topic
        self.names = Names()
        self.now = 1_000
        self.coordinator = TransactionCoordinator(self._append, self._new_id)
        self._given = 1_000
        self._end = 0
        partition = self.coordinator.partition_for(transactional_id)
        self.coordinator.elect(partition, 1, now=self.now)
        self.coordinator.loaded(partition, now=self.now)

    def _append(self, batch: RecordAppend | MarkerAppend) -> int:
        assert isinstance(batch, RecordAppend)
        self._end += len(batch.records)
        self.coordinator.committed(batch.partition, self._end)
        return self._end

    def _new_id(self) -> int:
        self._given += 1
        return self._given

    def settle(self) -> None:
        """Write all markers."""
        while self.coordinator.endings:
            ending = self.coordinator.endings.popleft()
            self.coordinator.markers_written(ending, ending.partitions, now=self.now)

    def init(self, expected: ProducerIdAndEpoch | None) -> Answer:
        """Apply InitProducerId."""
        try:
            given = self.coordinator.init_producer_id(
                self.transactional_id, TIMEOUT_MS, expected, now=self.now
            ).result()
        except ApiError as error:
            return error.error.name, -1, -1
        return "NONE", self.names.number(given.id), given.epoch

    def add(self, producer: ProducerIdAndEpoch, partitions: Sequence[int], verify: bool, version: int) -> Answer:
        """Apply AddPartitionsToTxn."""
        places = [TopicPartition(self.topic, partition) for partition in partitions]
        level = 2 if version > 3 else 0
        try:
            if verify:
                found = self.coordinator.verify_partitions(self.transactional_id, producer, places)
                return tuple(sorted((place.partition, error.name) for place, error in found.items()))
            self.coordinator.add_partitions(
                self.transactional_id, producer, places, client_version=level, now=self.now
            ).result()
        except ApiError as error:
            return tuple((partition, error.error.name) for partition in sorted(partitions))
        return tuple((partition, "NONE") for partition in sorted(partitions))

    def end(self, producer: ProducerIdAndEpoch, committed: bool, version: int) -> Answer:
        """Apply EndTxn."""
        level = 2 if version > 4 else 0
        try:
            given = self.coordinator.end(
                self.transactional_id, producer, committed=committed, client_version=level, now=self.now
            ).result()
        except ApiError as error:
            return error.error.name, -1, -1
        return "NONE", self.names.number(given.id), given.epoch

    def describe(self) -> Answer:
        """Apply DescribeTransactions."""
        try:
            found = self.coordinator.describe(self.transactional_id)
        except ApiError as error:
            return (error.error.name,)
        places = tuple(sorted(each.partition for each in found.partitions))
        return "NONE", self.names.number(found.producer_id), found.producer_epoch, found.status.label, places


class Broker:
    """A real broker, accessed with a client and the coordinator of one transactional id."""

    def __init__(self, client: Client, transactional_id: str, topic: str) -> None:
        self.client = client
        self.transactional_id = transactional_id
        self.topic = topic
        self.names = Names()
        self.node: int | None = None
        until(self._find_coordinator)

    def _find_coordinator(self) -> bool:
        request = FindCoordinatorRequest(key_type=1, coordinator_keys=(self.transactional_id,))
        (found,) = self.client.call(request).coordinators
        self.node = found.node_id
        return found.error_code == 0 and self.describe() == ("TRANSACTIONAL_ID_NOT_FOUND",)

    def _call(self, request: Any, version: int) -> Any:
        return self.client.call(request, version=version, broker_id=self.node, retry=False)

    def settle(self) -> None:
        """Wait until the markers are written."""
        until(lambda: not any("Prepare" in str(part) for part in self.describe()))

    def init(self, expected: ProducerIdAndEpoch | None) -> Answer:
        """Send InitProducerId."""
        given = expected or ProducerIdAndEpoch()
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=TIMEOUT_MS,
            producer_id=given.id,
            producer_epoch=given.epoch,
        )
        answer = self._call(request, 5)
        while answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            # The broker waits for a block of producer ids.
            answer = self._call(request, 5)
        if answer.error_code:
            return ErrorCode(answer.error_code).name, -1, -1
        return "NONE", self.names.number(answer.producer_id), answer.producer_epoch

    def add(self, producer: ProducerIdAndEpoch, partitions: Sequence[int], verify: bool, version: int) -> Answer:
        """Send AddPartitionsToTxn."""
        topics = (AddPartitionsToTxnTopic(name=self.topic, partitions=tuple(partitions)),)
        if version < 4:
            request = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.transactional_id,
                v3_and_below_producer_id=producer.id,
                v3_and_below_producer_epoch=producer.epoch,
                v3_and_below_topics=topics,
            )
            results = self._call(request, version).results_by_topic_v3_and_below
        else:
            transaction = AddPartitionsToTxnTransaction(
                transactional_id=self.transactional_id,
                producer_id=producer.id,
                producer_epoch=producer.epoch,
                verify_only=verify,
                topics=topics,
            )
            answer = self._call(AddPartitionsToTxnRequest(transactions=(transaction,)), version)
            results = answer.results_by_transaction[0].topic_results
        found = [each for result in results for each in result.results_by_partition]
        return tuple(sorted((each.partition_index, ErrorCode(each.partition_error_code).name) for each in found))

    def end(self, producer: ProducerIdAndEpoch, committed: bool, version: int) -> Answer:
        """Send EndTxn."""
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            committed=committed,
        )
        answer = self._call(request, version)
        if answer.error_code:
            return ErrorCode(answer.error_code).name, -1, -1
        return "NONE", self.names.number(answer.producer_id), answer.producer_epoch

    def describe(self) -> Answer:
        """Send DescribeTransactions."""
        (found,) = self._call(
            DescribeTransactionsRequest(transactional_ids=(self.transactional_id,)), 0
        ).transaction_states
        if found.error_code:
            return (ErrorCode(found.error_code).name,)
        places = tuple(sorted(partition for topic in found.topics for partition in topic.partitions))
        return (
            "NONE",
            self.names.number(found.producer_id),
            found.producer_epoch,
            found.transaction_state,
            places,
        )


def steps(dice: random.Random) -> Iterator[tuple[str, tuple[int, int] | None, tuple[Any, ...]]]:
    """Yield random steps: the operation, how the producer differs from the latest one, and the other arguments.

    The first number of a difference counts producer ids backwards; the second one is added to the epoch.
    """
    differences = [(0, 0)] * 8 + [(0, -1), (0, -1), (0, 1), (1, 0), (1, -1)]
    for _ in range(STEPS):
        difference = dice.choice(differences)
        match dice.choice(("init", "known", "add", "add", "add", "verify", "end", "end", "end")):
            case "init":
                yield "init", None, ()
            case "known":
                yield "init", difference, ()
            case "add":
                yield "add", difference, (dice.sample(range(PARTITIONS), 2), False, dice.choice((0, 2, 3, 4, 5)))
            case "verify":
                yield "add", difference, (dice.sample(range(PARTITIONS), 2), True, 5)
            case "end":
                yield "end", difference, (dice.random() < 0.5, dice.choice((1, 3, 4, 5, 5, 5)))


def older(answer: Answer, version: int) -> Answer:
    """Return an answer with the error of a fenced producer of versions 0 and 1, before KIP-588."""
    if version > 1:
        return answer
    return tuple(
        tuple("INVALID_PRODUCER_EPOCH" if part == "PRODUCER_FENCED" else part for part in each)
        if isinstance(each, tuple)
        else ("INVALID_PRODUCER_EPOCH" if each == "PRODUCER_FENCED" else each)
        for each in answer
    )


def named(names: Names, last: tuple[int, int], difference: tuple[int, int] | None) -> ProducerIdAndEpoch | None:
    """Return the producer that differs from the last one, with the ids of one side; None without a difference."""
    if difference is None:
        return None
    place = max(0, last[0] - difference[0])
    return ProducerIdAndEpoch(names.ids[place] if place < len(names.ids) else 7, max(0, last[1] + difference[1]))


@pytest.fixture
def topic(kafka_cluster: ClusterAddresses) -> str:
    """Return a new topic whose partitions join transactions."""
    return new_topic(kafka_cluster, PARTITIONS)


@pytest.mark.parametrize("seed", range(4))
def test_random_producers_get_the_same_answers(kafka_cluster: ClusterAddresses, topic: str, seed: int) -> None:
    transactional_id = new_name("transactions")
    with Client(kafka_cluster.bootstrap_servers) as client:
        broker = Broker(client, transactional_id, topic)
        model = Model(transactional_id, topic)
        last = (0, 0)
        for number, (api, difference, arguments) in enumerate(steps(random.Random(seed))):
            theirs = getattr(broker, api)(named(broker.names, last, difference), *arguments)
            ours = getattr(model, api)(named(model.names, last, difference), *arguments)
            broker.settle()
            model.settle()
            assert theirs == older(ours, arguments[-1] if arguments else 5), (number, api, difference, arguments)
            assert broker.describe() == model.describe(), (number, api, difference, arguments)
            state = model.describe()
            if state[0] == "NONE":
                last = (state[1], state[2])
