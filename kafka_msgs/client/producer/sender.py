"""Sends batches to the leaders of their partitions.

``Sender.run`` is one piece of logic that runs by itself as long as the producer is open. A turn of it does whatever can
be done now, and never waits. ``accumulator`` has the batches, ``sequences`` and ``transactions`` say which of them may
leave, ``batch_completion`` decides what becomes of them, ``broker_channels`` and ``metadata_refresh`` know the brokers.
In Kafka this is the class ``org.apache.kafka.clients.producer.internals.Sender``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from uuid import UUID

from kafka_msgs.client.flow import Flow, Future, Wait
from kafka_msgs.client.producer import produce_request
from kafka_msgs.client.producer.batch_completion import STOPPED, BatchCompletion, Undelivered
from kafka_msgs.client.producer.broker_channels import BrokerChannel, InFlightRequest
from kafka_msgs.client.producer.config import ProducerConfig
from kafka_msgs.client.producer.metadata_refresh import MetadataRefresher
from kafka_msgs.client.producer.producer_batch import ProducerBatch
from kafka_msgs.client.producer.record_accumulator import PartitionQueue, RecordAccumulator
from kafka_msgs.client.producer.sequences import SequenceManager
from kafka_msgs.client.producer.transaction_manager import TransactionManager
from kafka_msgs.client.scheduler import Task
from kafka_msgs.errors import AuthenticationError, KafkaMsgsError
from kafka_msgs.messages.produce_request import ProduceRequest

if TYPE_CHECKING:
    from kafka_msgs.client.core import ClientCore

__all__ = ["Sender"]


class Sender:
    """Moves batches from the accumulator to the brokers."""

    def __init__(
        self,
        core: ClientCore,
        config: ProducerConfig,
        accumulator: RecordAccumulator,
        identity: SequenceManager | None,
        transactions: TransactionManager | None,
        undelivered: Undelivered,
    ) -> None:
        self._core = core
        self._config = config
        self._accumulator = accumulator
        self._identity = identity
        self._transactions = transactions
        self._settings = produce_request.ProduceParams(
            config.transactional_id, config.acks, int(config.request_timeout * 1000)
        )
        self._nodes: dict[int, BrokerChannel] = {}
        self._leaders = MetadataRefresher(core, config)
        self._outcomes = BatchCompletion(core, config, accumulator, identity, transactions, self._leaders, undelivered)
        self._woken: Future[None] = Future()
        self._identifying: Task[None] | None = None
        self._due: float | None = None
        self.fatal: Exception | None = None
        """The error after which nothing is sent any more."""

    def run(self) -> Flow[None]:
        """Send whatever there is to send, until the producer is closed."""
        while True:
            self._turn(self._core.network.now())
            if self._woken.done:
                self._woken = Future()
            yield Wait(list(self._pending()), self._due)

    def wake(self) -> None:
        """Say that there is something new to do."""
        self._woken.resolve(None)

    def give_up(self, error: Exception) -> None:
        """Give up all records that are not delivered."""
        self._outcomes.give_up(error)

    def cause_of(self, batch: ProducerBatch) -> Exception | None:
        """Return the last failure that a batch has met, if there was one."""
        return self._outcomes.cause_of(batch)

    def drop_unsent(self, error: Exception) -> None:
        """Give up what waits to be sent: the transaction that it belongs to is aborted."""
        self._outcomes.drop_unsent(error)

    def purge(self) -> int:
        """Drop what waits to be sent for the first time; return the number of records."""
        return self._outcomes.purge()

    def close(self) -> None:
        """Stop what runs by itself."""
        self._leaders.close()
        for task in (self._identifying, *(node.opening for node in self._nodes.values())):
            if task is not None:
                task.cancel()

    def _pending(self) -> Iterator[Future[Any]]:
        yield self._woken
        adding = None if self._transactions is None else self._transactions.adding
        yield from (task for task in (self._leaders.asking, self._identifying, adding) if task is not None)
        for node in self._nodes.values():
            yield from node.pending()

    def _turn(self, now: float) -> None:
        """Do what can be done now."""
        self._due = None
        self._has_producer_id()
        if self._transactions is not None:
            self._transactions.add_pending_partitions()
        for node in self._nodes.values():
            self._connect(node, now)
            self._collect(node, now)
        self._schedule_wakeup(self._outcomes.expire(now))
        transactions = self._transactions
        if transactions is not None and transactions.state in STOPPED and self._accumulator.busy:
            self.drop_unsent(transactions.reason)
        if self.fatal is not None:
            self.give_up(self.fatal)
        elif self._ready(now):
            while self._drain(now):
                pass
        try:
            self._schedule_wakeup(self._leaders.turn(now, self._accumulator.topics))
        except AuthenticationError as error:
            self.fatal = error
            self._schedule_wakeup(now)

    def _schedule_wakeup(self, moment: float | None) -> None:
        """Have another turn at this moment, at the latest."""
        if moment is not None and (self._due is None or moment < self._due):
            self._due = moment

    # What comes back

    def _connect(self, node: BrokerChannel, now: float) -> None:
        """Take over a connection that was made, or learn why it was not."""
        try:
            node.connected()
        except AuthenticationError as error:
            self.fatal = error
        except KafkaMsgsError as error:
            self._broken(node, now, error)

    def _broken(self, node: BrokerChannel, now: float, error: Exception | None) -> None:
        """Wait before the next connection to a broker, and ask where its partitions are now."""
        if error is not None:
            self._outcomes.troubles[node.broker_id] = error
        node.broken(now)
        self._leaders.invalidate(queue.topic for queue in self._accumulator.busy)

    def _collect(self, node: BrokerChannel, now: float) -> None:
        """Take the answers of a broker, in order."""
        exchanges = node.exchanges
        node.check(now)
        while exchanges and exchanges[0].answer.done:
            self._answered(node, exchanges.popleft(), now)
        if exchanges:
            self._schedule_wakeup(node.late_at())
        if node.connection is not None and not node.connection.alive:
            self._broken(node, now, node.connection.failure)

    def _answered(self, node: BrokerChannel, done: InFlightRequest, now: float) -> None:
        try:
            response = done.answer.result()
        except KafkaMsgsError as error:
            self._outcomes.handle_disconnect(done.batches, error, now)
            return
        node.failures = 0
        node.resume_at = max(node.resume_at, now + response.throttle_time_ms / 1000)
        self._outcomes.handle_response(response, done, now)

    # What leaves

    def _ready(self, now: float) -> bool:
        """Whether the producer has its id, if it needs one."""
        identity = self._identity
        if identity is None:
            return True
        if self._transactions is not None:
            return self._transactions.may_send
        identity.resolve_unresolved()
        if self._identifying is None and (identity.needs_new_id or identity.producer.id < 0):
            if not self._accumulator.busy:
                return False
            self._identifying = self._core.network.spawn(identity.init_producer_id(self._core, self._config))
        return self._identifying is None

    def _has_producer_id(self) -> None:
        """Learn how asking for a producer id ended."""
        task = self._identifying
        if task is not None and task.done:
            self._identifying = None
            try:
                task.result()
            except KafkaMsgsError as error:
                self.fatal = error

    def _drain(self, now: float) -> bool:
        """Send one request to each broker that can take one; return whether anything was sent."""
        loads: dict[int, list[ProducerBatch]] = {}
        sizes: dict[int, int] = {}
        for queue in tuple(self._accumulator.busy):
            if queue.is_empty:
                del self._accumulator.busy[queue]
                continue
            node = self._node_for(queue, now)
            if node is None:
                continue
            batch = queue.closed[0]
            size = sizes.get(node.broker_id, 0) + batch.size
            if node.broker_id in sizes and size > self._config.max_request_size:
                continue
            self._take(queue, batch)
            sizes[node.broker_id] = size
            loads.setdefault(node.broker_id, []).append(batch)
        for number, batches in loads.items():
            self._send(self._nodes[number], batches, now)
        return bool(loads)

    def _node_for(self, queue: PartitionQueue, now: float) -> BrokerChannel | None:
        """Return the broker that the first batch of a partition can go to now. The batch is then closed."""
        due = self._due_at(queue)
        if due > now:
            self._schedule_wakeup(due)
            return None
        leader = self._core.cluster.leader(queue.topic, queue.partition)
        if leader is None:
            self._leaders.invalidate((queue.topic,))
            return None
        node = self._nodes.get(leader) or self._nodes.setdefault(
            leader, BrokerChannel(self._core, self._config, leader)
        )
        if not self._reaches(node, now) or node.is_full:
            return None
        if self._transactions is not None and not self._transactions.has_partition(queue.topic, queue.partition):
            return None
        if self._identity is not None and not self._identity.may_send(queue.sequences, queue.first):
            return None
        if not queue.closed:
            self._accumulator.close(queue)
        return node

    def _due_at(self, queue: PartitionQueue) -> float:
        """Return when the first batch of a partition may leave."""
        batch = queue.first
        return batch.retry_at if queue.closed else batch.created + self._config.linger

    def _reaches(self, node: BrokerChannel, now: float) -> bool:
        """Whether a request can be sent to a broker now."""
        if node.resume_at > now:
            self._schedule_wakeup(node.resume_at)
            return False
        try:
            return node.ensure_connected(now)
        except AuthenticationError as error:
            self.fatal = error
        except KafkaMsgsError as error:
            self._broken(node, now, error)
        return False

    def _take(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        """Take the first batch out of a queue. The partition goes behind the others."""
        queue.closed.popleft()
        del self._accumulator.busy[queue]
        if not queue.is_empty:
            self._accumulator.busy[queue] = None
        if self._identity is not None:
            self._identity.assign(queue.sequences, batch)

    def _send(self, node: BrokerChannel, batches: list[ProducerBatch], now: float) -> None:
        assert node.connection is not None
        version = node.connection.highest_version(ProduceRequest)
        if self._transactions is not None and not self._transactions.is_v2:
            version = min(version, produce_request.BEFORE_TRANSACTIONS_V2)
        ids = self._topic_ids(batches) if version > produce_request.BEFORE_TOPIC_IDS else None
        if ids is None:
            version = min(version, produce_request.BEFORE_TOPIC_IDS)
        request = produce_request.produce_request(self._settings, batches, ids)
        answer = node.connection.send(request, version)
        node.exchanges.append(InFlightRequest(answer, batches, ids, now + self._config.request_timeout))
        self._schedule_wakeup(now + self._config.request_timeout)

    def _topic_ids(self, batches: list[ProducerBatch]) -> dict[str, UUID] | None:
        """Return the ids of the topics, or None if one of them has none."""
        found = {batch.topic: self._core.cluster.topic_id(batch.topic) for batch in batches}
        known = {topic: topic_id for topic, topic_id in found.items() if topic_id is not None}
        return known if len(known) == len(found) else None
