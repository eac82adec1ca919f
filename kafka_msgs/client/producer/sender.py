"""Sends batches to the leaders of their partitions.

``Sender.run`` is a flow that runs as a task while the producer is open. Each turn does all the work that is possible
now, and never waits. ``accumulator`` holds the batches, ``sequences`` and ``transactions`` decide which batches to
send, ``batch_completion`` completes or retries them, and ``broker_channels`` and ``metadata_refresh`` track the
brokers.
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
        """The error that stopped sending for good."""

    def run(self) -> Flow[None]:
        """Send batches until the producer is closed."""
        while True:
            self._turn(self._core.network.now())
            if self._woken.done:
                self._woken = Future()
            yield Wait(list(self._pending()), self._due)

    def wake(self) -> None:
        """Wake the sender for new work."""
        self._woken.resolve(None)

    def give_up(self, error: Exception) -> None:
        """Fail all undelivered records."""
        self._outcomes.give_up(error)

    def cause_of(self, batch: ProducerBatch) -> Exception | None:
        """Return the last error of a batch, or None."""
        return self._outcomes.cause_of(batch)

    def drop_unsent(self, error: Exception) -> None:
        """Fail the unsent batches of a transaction that is being aborted."""
        self._outcomes.drop_unsent(error)

    def purge(self) -> int:
        """Drop batches that were never sent, and return the number of their records."""
        return self._outcomes.purge()

    def close(self) -> None:
        """Stop the background tasks."""
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
        """Do all work that is possible now."""
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
        """Run the next turn at this time at the latest."""
        if moment is not None and (self._due is None or moment < self._due):
            self._due = moment

    # Responses

    def _connect(self, node: BrokerChannel, now: float) -> None:
        """Use a new connection, or handle the failure to connect."""
        try:
            node.connected()
        except AuthenticationError as error:
            self.fatal = error
        except KafkaMsgsError as error:
            self._broken(node, now, error)

    def _broken(self, node: BrokerChannel, now: float, error: Exception | None) -> None:
        """Back off before reconnecting to a broker, and refresh the leaders of its partitions."""
        if error is not None:
            self._outcomes.troubles[node.broker_id] = error
        node.broken(now)
        self._leaders.invalidate(queue.topic for queue in self._accumulator.busy)

    def _collect(self, node: BrokerChannel, now: float) -> None:
        """Handle the responses of a broker, in order."""
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

    # Requests

    def _ready(self, now: float) -> bool:
        """Whether the producer has a producer id or does not need one."""
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
        """Handle the result of the request for a producer id."""
        task = self._identifying
        if task is not None and task.done:
            self._identifying = None
            try:
                task.result()
            except KafkaMsgsError as error:
                self.fatal = error

    def _drain(self, now: float) -> bool:
        """Send one request to each available broker; return whether anything was sent."""
        loads: dict[int, list[ProducerBatch]] = {}
        sizes: dict[int, int] = {}
        for queue in tuple(self._accumulator.busy):
            if queue.is_empty:
                del self._accumulator.busy[queue]
                continue
            node = self._node_for(queue, now)
            if node is None:
                continue
            batch = queue.first
            size = sizes.get(node.broker_id, 0) + batch.size
            if node.broker_id in sizes and size > self._config.max_request_size:
                continue
            self._take(queue)
            sizes[node.broker_id] = size
            loads.setdefault(node.broker_id, []).append(batch)
        for number, batches in loads.items():
            self._send(self._nodes[number], batches, now)
        return bool(loads)

    def _node_for(self, queue: PartitionQueue, now: float) -> BrokerChannel | None:
        """Return the broker that can receive the first batch of a partition now, or None. Closes the batch."""
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
        return node if queue.closed else None

    def _due_at(self, queue: PartitionQueue) -> float:
        """Return when the first batch of a partition may be sent."""
        batch = queue.first
        return batch.retry_at if queue.closed else batch.created + self._config.linger

    def _reaches(self, node: BrokerChannel, now: float) -> bool:
        """Whether the broker can receive a request now."""
        if node.resume_at > now:
            self._schedule_wakeup(node.resume_at)
            return False
        try:
            if node.ensure_connected(now):
                return True
            self._doubt_leader(node, now)
        except AuthenticationError as error:
            self.fatal = error
        except KafkaMsgsError as error:
            self._broken(node, now, error)
        return False

    def _doubt_leader(self, node: BrokerChannel, now: float) -> None:
        """Refresh the leaders while a connection attempt hangs: other brokers may lead the partitions meanwhile."""
        if node.doubts(now):
            self._leaders.invalidate(queue.topic for queue in self._accumulator.busy)
        if node.opening is not None:
            self._schedule_wakeup(node.doubt_at)

    def _take(self, queue: PartitionQueue) -> None:
        """Take the first batch out of a queue, and give it a sequence."""
        batch = self._accumulator.take_first(queue)
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
        """Return the topic ids, or None if a topic has none."""
        found = {batch.topic: self._core.cluster.topic_id(batch.topic) for batch in batches}
        known = {topic: topic_id for topic, topic_id in found.items() if topic_id is not None}
        return known if len(known) == len(found) else None
