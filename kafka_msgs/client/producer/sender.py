"""Sends batches to the leaders of their partitions, and learns from the answers what became of them.

``Sender.run`` is one piece of logic that runs by itself as long as the producer is open. A turn of it does whatever
can be done now, and never waits. ``accumulator`` has the batches, ``idempotence`` and ``transactions`` say which of
them may leave. In Kafka this is the class ``org.apache.kafka.clients.producer.internals.Sender``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from kafka_msgs.client.cluster import TopicPartition
from kafka_msgs.client.failures import broker_error
from kafka_msgs.client.producer import exchange
from kafka_msgs.client.producer.accumulator import Accumulator, PartitionQueue
from kafka_msgs.client.producer.batch import ProducerBatch
from kafka_msgs.client.producer.config import ProducerConfig
from kafka_msgs.client.producer.idempotence import Idempotence
from kafka_msgs.client.producer.transactions import Transactions, TransactionState
from kafka_msgs.client.schedule import Task
from kafka_msgs.client.waiting import Pending, Steps, Wait
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import AuthenticationError, DeadlineError, KafkaMsgsError
from kafka_msgs.messages.produce_request import ProduceRequest
from kafka_msgs.messages.produce_response import PartitionProduceResponse, ProduceResponse

if TYPE_CHECKING:
    from kafka_msgs.client.core import ClientCore
    from kafka_msgs.client.link import Link

__all__ = ["Sender"]

_E: Final = ErrorCode
_MOVED: Final = frozenset(
    {
        _E.UNKNOWN_TOPIC_OR_PARTITION, _E.LEADER_NOT_AVAILABLE, _E.NOT_LEADER_OR_FOLLOWER, _E.REPLICA_NOT_AVAILABLE,
        _E.KAFKA_STORAGE_ERROR, _E.FENCED_LEADER_EPOCH, _E.UNKNOWN_LEADER_EPOCH, _E.UNKNOWN_TOPIC_ID,
    }
)  # fmt: skip
"""Errors after which the producer asks for the leaders again."""
_STOPPED: Final = (TransactionState.ABORTABLE, TransactionState.FATAL)
_PURPOSE: Final = "produce"


class _Exchange(NamedTuple):
    """A request that is on its way."""

    answer: Pending[ProduceResponse]
    batches: list[ProducerBatch]
    ids: dict[str, UUID] | None
    deadline: float


class _Node:
    """A broker: the connection to it, and what is on its way."""

    __slots__ = ("exchanges", "failures", "link", "node", "opening", "resume_at")

    def __init__(self, node: int) -> None:
        self.node = node
        self.link: Link | None = None
        self.opening: Task[Link] | None = None
        self.exchanges: deque[_Exchange] = deque()
        self.failures = 0
        self.resume_at = 0.0
        """When the broker may get a request again: after a failure, or because it asked for time (KIP-219)."""

    def is_full(self, limit: int) -> bool:
        """Whether as many requests are on their way as may be, of the producer or on the connection."""
        return len(self.exchanges) >= limit or (self.link is not None and self.link.full)


class Sender:
    """Moves batches from the accumulator to the brokers."""

    def __init__(
        self,
        core: ClientCore,
        config: ProducerConfig,
        accumulator: Accumulator,
        identity: Idempotence | None,
        transactions: Transactions | None,
    ) -> None:
        self._core = core
        self._config = config
        self._accumulator = accumulator
        self._identity = identity
        self._transactions = transactions
        self._settings = exchange.Settings(config.transactional_id, config.acks, int(config.request_timeout * 1000))
        self._nodes: dict[int, _Node] = {}
        self._woken: Pending[None] = Pending()
        self._refreshing: Task[Any] | None = None
        self._to_refresh: set[str] = set()
        self._refresh_at = 0.0
        self._renew_at = core.network.now() + core.config.metadata_age
        self._identifying: Task[None] | None = None
        self._due: float | None = None
        self.fatal: Exception | None = None
        """The error after which nothing is sent any more."""

    def run(self) -> Steps[None]:
        """Send whatever there is to send, until the producer is closed."""
        while True:
            self._turn(self._core.network.now())
            if self._woken.done:
                self._woken = Pending()
            yield Wait(list(self._pending()), self._due)

    def wake(self) -> None:
        """Say that there is something new to do."""
        self._woken.resolve(None)

    def close(self) -> None:
        """Stop what runs by itself."""
        for task in (self._refreshing, self._identifying, *(node.opening for node in self._nodes.values())):
            if task is not None:
                task.cancel()

    def _pending(self) -> Iterator[Pending[Any]]:
        yield self._woken
        for task in (self._refreshing, self._identifying):
            if task is not None:
                yield task
        if self._transactions is not None and self._transactions.adding is not None:
            yield self._transactions.adding
        for node in self._nodes.values():
            if node.opening is not None:
                yield node.opening
            if node.exchanges:
                yield node.exchanges[0].answer

    def _turn(self, now: float) -> None:
        """Do what can be done now."""
        self._due = None
        if self._transactions is not None:
            self._transactions.add_waiting()
        for node in self._nodes.values():
            self._connected(node, now)
            self._collect(node, now)
        self._expire(now)
        transactions = self._transactions
        if transactions is not None and transactions.state in _STOPPED and self._accumulator.busy:
            self.drop_unsent(transactions.reason)
        if self.fatal is not None:
            self.give_up(self.fatal)
        elif self._ready(now):
            while self._drain(now):
                pass
        self._refresh(now)

    def _remind(self, moment: float) -> None:
        """Have another turn at this moment, at the latest."""
        if self._due is None or moment < self._due:
            self._due = moment

    # What comes back

    def _connected(self, node: _Node, now: float) -> None:
        """Take over a connection that was made, or learn why it was not."""
        opening = node.opening
        if opening is None or not opening.done:
            return
        node.opening = None
        try:
            node.link = opening.result()
            node.failures = 0
        except AuthenticationError as error:
            self.fatal = error
        except KafkaMsgsError:
            self._broken(node, now)

    def _broken(self, node: _Node, now: float) -> None:
        """Wait before the next connection to a broker, and ask where its partitions are now."""
        node.link = None
        node.failures += 1
        node.resume_at = now + self._config.backoff(node.failures)
        self._to_refresh.update(queue.topic for queue in self._accumulator.busy)

    def _collect(self, node: _Node, now: float) -> None:
        """Take the answers of a broker, in order."""
        exchanges = node.exchanges
        if exchanges and not exchanges[0].answer.done and exchanges[0].deadline <= now and node.link is not None:
            node.link.close()
        while exchanges and exchanges[0].answer.done:
            self._answered(node, exchanges.popleft(), now)
        if exchanges:
            self._remind(exchanges[0].deadline)
        if node.link is not None and not node.link.alive:
            self._broken(node, now)

    def _answered(self, node: _Node, done: _Exchange, now: float) -> None:
        try:
            response = done.answer.result()
        except KafkaMsgsError as error:
            for batch in done.batches:
                self._unanswered(batch, error, now)
            return
        node.failures = 0
        node.resume_at = max(node.resume_at, now + response.throttle_time_ms / 1000)
        if not self._config.acks:
            for batch in done.batches:
                self._complete(batch, -1)
            return
        for batch, answer in exchange.answers(response, done.batches, done.ids):
            if answer is not None:
                self._learn(batch, answer, now)
            else:
                self._unanswered(batch, DeadlineError(waiting_for="the answer for a partition"), now)

    def _learn(self, batch: ProducerBatch, answer: PartitionProduceResponse, now: float) -> None:
        """Do what the answer for one batch asks for."""
        error = ErrorCode(answer.error_code)
        if batch.done:
            return
        if error in (_E.NONE, _E.DUPLICATE_SEQUENCE_NUMBER):
            self._complete(batch, answer.base_offset, answer.log_append_time_ms)
            return
        if error == _E.MESSAGE_TOO_LARGE and batch.count > 1:
            self._split(batch)
            return
        self._refused(batch, error, answer, now)

    def _complete(self, batch: ProducerBatch, base_offset: int, log_append_time: int = -1) -> None:
        queue = self._accumulator.incomplete.get(batch)
        if queue is None:
            return
        batch.base_offset = base_offset
        if self._identity is not None:
            self._identity.completed(queue.sequences, batch)
        batch.complete(base_offset, log_append_time)
        self._accumulator.finished(batch)

    def _refused(self, batch: ProducerBatch, error: ErrorCode, answer: PartitionProduceResponse, now: float) -> None:
        queue = self._accumulator.incomplete[batch]
        if error in _MOVED:
            self._moved(batch, answer)
        if self._identity is None:
            again = error.retriable
        else:
            again = self._identity.retries(queue.sequences, batch, error, answer.log_start_offset)
        if again:
            self._again(batch, now)
            return
        subject = TopicPartition(batch.topic, batch.partition)
        failure = broker_error(error, api="Produce", subject=subject, message=answer.error_message)
        because = {each.batch_index: each.batch_index_error_message for each in answer.record_errors}
        self._fail(batch, failure, known=True, because=because)

    def _moved(self, batch: ProducerBatch, answer: PartitionProduceResponse) -> None:
        """Take over the new leader that an answer names (KIP-951), or ask for it."""
        leader = answer.current_leader
        if leader.leader_id >= 0 and leader.leader_id in self._core.cluster.brokers:
            self._core.cluster.lead(batch.topic, batch.partition, leader.leader_id, leader.leader_epoch)
        else:
            self._to_refresh.add(batch.topic)

    def _unanswered(self, batch: ProducerBatch, error: Exception, now: float) -> None:
        """Nobody knows whether the broker has a batch. Sending it again is the way to find out."""
        if batch.done:
            return
        self._to_refresh.add(batch.topic)
        if self._config.acks:
            self._again(batch, now)
        else:
            self._fail(batch, error, known=False)

    def _again(self, batch: ProducerBatch, now: float) -> None:
        if self._transactions is not None and self._transactions.state in _STOPPED:
            self._fail(batch, self._transactions.reason, known=False)
            return
        batch.attempts += 1
        batch.retry_at = now + self._config.backoff(batch.attempts)
        self._accumulator.requeue(batch)

    def _split(self, batch: ProducerBatch) -> None:
        queue = self._accumulator.incomplete[batch]
        parts = self._accumulator.split(batch, max(1, batch.reserved // 2))
        queue.sequences.replace(batch, parts)

    def _fail(
        self, batch: ProducerBatch, error: Exception, *, known: bool, because: dict[int, str | None] | None = None
    ) -> None:
        """Give up a batch. ``known`` says that the broker does not have it."""
        queue = self._accumulator.incomplete[batch]
        if self._identity is not None:
            self._identity.failed(queue.sequences, batch, known=known)
        if self._transactions is not None:
            self._transactions.batch_failed(error)
        batch.fail(error, because)
        self._accumulator.finished(batch)

    # What is given up

    def _expire(self, now: float) -> None:
        """Give up the batches whose time is over. They are in the order in which they were opened."""
        incomplete = self._accumulator.incomplete
        while incomplete:
            batch = next(iter(incomplete))
            end = batch.created + self._config.delivery_timeout
            if end > now:
                self._remind(end)
                return
            self._abandon(batch, _late(batch))

    def _abandon(self, batch: ProducerBatch, error: Exception) -> None:
        """Give up a batch wherever it is. If it was sent, nobody knows whether the broker has it."""
        queue = self._accumulator.incomplete[batch]
        sent = batch.attempts > 0
        if not self._accumulator.take_out(queue, batch):
            sent = True
        self._fail(batch, error, known=not sent)

    def give_up(self, error: Exception) -> None:
        """Give up all records that are not delivered."""
        for batch in tuple(self._accumulator.incomplete):
            self._abandon(batch, error)

    def drop_unsent(self, error: Exception) -> None:
        """Give up what waits to be sent: the transaction that it belongs to is aborted."""
        for _, batch in self._accumulator.waiting():
            self._abandon(batch, error)

    # What leaves

    def _ready(self, now: float) -> bool:
        """Whether the producer has its id, if it needs one."""
        identity = self._identity
        if identity is None:
            return True
        if self._transactions is not None:
            return self._transactions.may_send
        identity.settle()
        self._identified()
        if self._identifying is None and (identity.needs_new_id or identity.producer.id < 0):
            if not self._accumulator.busy:
                return False
            self._identifying = self._core.network.spawn(identity.ask_for_id(self._core, self._config))
        return self._identifying is None

    def _identified(self) -> None:
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
            size = sizes.get(node.node, 0) + batch.size
            if node.node in sizes and size > self._config.max_request_size:
                continue
            self._take(queue, batch)
            sizes[node.node] = size
            loads.setdefault(node.node, []).append(batch)
        for number, batches in loads.items():
            self._send(self._nodes[number], batches, now)
        return bool(loads)

    def _node_for(self, queue: PartitionQueue, now: float) -> _Node | None:
        """Return the broker that the first batch of a partition can go to now. The batch is then closed."""
        due = self._due_at(queue)
        if due > now:
            self._remind(due)
            return None
        leader = self._core.cluster.leader(queue.topic, queue.partition)
        if leader is None:
            self._to_refresh.add(queue.topic)
            return None
        node = self._nodes.get(leader) or self._nodes.setdefault(leader, _Node(leader))
        if not self._reaches(node, now) or node.is_full(self._config.max_in_flight):
            return None
        if self._transactions is not None and not self._transactions.has(queue.topic, queue.partition):
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

    def _reaches(self, node: _Node, now: float) -> bool:
        """Whether there is a connection to a broker. Begins to make one, or to authenticate again (KIP-368)."""
        if node.resume_at > now:
            self._remind(node.resume_at)
            return False
        ends = None if node.link is None else node.link.renew_at
        if node.opening is None and (node.link is None or (ends is not None and ends <= now)):
            deadline = now + self._config.request_timeout
            node.opening = self._core.network.spawn(self._core.link(node.node, purpose=_PURPOSE, deadline=deadline))
            self._connected(node, now)
        return node.link is not None and node.opening is None

    def _take(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        """Take the first batch out of a queue. The partition goes behind the others."""
        queue.closed.popleft()
        del self._accumulator.busy[queue]
        if not queue.is_empty:
            self._accumulator.busy[queue] = None
        if self._identity is not None:
            self._identity.assign(queue.sequences, batch)

    def _send(self, node: _Node, batches: list[ProducerBatch], now: float) -> None:
        assert node.link is not None
        version = node.link.version_of(ProduceRequest)
        if self._transactions is not None and not self._transactions.is_v2:
            version = min(version, exchange.BEFORE_TRANSACTIONS_V2)
        ids = self._topic_ids(batches) if version > exchange.BEFORE_TOPIC_IDS else None
        if ids is None:
            version = min(version, exchange.BEFORE_TOPIC_IDS)
        request = exchange.produce_request(self._settings, batches, ids)
        answer = node.link.send(request, version)
        node.exchanges.append(_Exchange(answer, batches, ids, now + self._config.request_timeout))
        self._remind(now + self._config.request_timeout)

    def _topic_ids(self, batches: list[ProducerBatch]) -> dict[str, UUID] | None:
        """Return the ids of the topics, or None if one of them has none."""
        found = {batch.topic: self._core.cluster.topic_id(batch.topic) for batch in batches}
        known = {topic: topic_id for topic, topic_id in found.items() if topic_id is not None}
        return known if len(known) == len(found) else None

    # Where it goes

    def _refresh(self, now: float) -> None:
        """Ask for the leaders again, one question at a time."""
        if self._refreshing is not None and self._refreshing.done:
            if isinstance(self._refreshing.error, AuthenticationError):
                self.fatal = self._refreshing.error
            self._refreshing = None
            self._remind(now)
        if now >= self._renew_at:
            self._renew_at = now + self._core.config.metadata_age
            self._to_refresh.update(self._accumulator.topics)
        if not self._to_refresh or self._refreshing is not None:
            return
        if self._refresh_at > now:
            self._remind(self._refresh_at)
            return
        topics, self._to_refresh = self._to_refresh, set()
        self._refresh_at = now + self._config.retry_backoff
        deadline = now + self._config.request_timeout
        self._refreshing = self._core.network.spawn(self._core.refresh(topics, deadline=deadline))


def _late(batch: ProducerBatch) -> DeadlineError:
    return DeadlineError(waiting_for=f"the delivery of {batch.count} records to {batch.topic}-{batch.partition}")
