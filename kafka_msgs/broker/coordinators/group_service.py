"""The group coordinator of each broker, connected to its log, the topics of the cluster and the clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from attrs import fields_dict

from kafka_msgs.broker.controller.config_defs import BROKER, config_keys
from kafka_msgs.broker.controller.image import MetadataDelta, TopicImage
from kafka_msgs.broker.controller.internal_topic_configs import CONSUMER_OFFSETS
from kafka_msgs.broker.coordinators.leadership import check_in_sync, follow_leaders, iter_records
from kafka_msgs.broker.coordinators.share_service import ClusterSharePersister
from kafka_msgs.broker.storage import AppendOrigin, PartitionLog, VerificationGuard
from kafka_msgs.enums import ConfigResourceType
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError, RecordWriteError, RequestRefusedError
from kafka_msgs.groups.config import CoordinatorConfig
from kafka_msgs.groups.coordinator import GroupCoordinator
from kafka_msgs.groups.group_protocol import ProducerIdAndEpoch
from kafka_msgs.groups.output import CoordinatorOutput, MarkerAppend, RecordAppend
from kafka_msgs.groups.output import Reply as Answer
from kafka_msgs.groups.record_batches import encode_batch
from kafka_msgs.groups.request_context import RequestContext
from kafka_msgs.groups.share.group import ShareGroup
from kafka_msgs.groups.share.initialization import initialized_partitions
from kafka_msgs.groups.streams.description_plugin import InMemoryDescriptions
from kafka_msgs.groups.topics_image import CoordinatorTopicImage
from kafka_msgs.message import Request

if TYPE_CHECKING:
    from kafka_msgs.broker.cluster import Cluster
    from kafka_msgs.broker.server_call import ServerCall
    from kafka_msgs.broker.timer_queue import TimerHandle

__all__ = ["GroupCoordinatorService", "Reply"]

Reply = Callable[[Any], None]
"""A callback for the response of a group coordinator."""


class GroupCoordinatorService:
    """The group coordinator of one broker."""

    def __init__(self, cluster: Cluster, broker_id: int) -> None:
        self._cluster = cluster
        self._logs: dict[int, tuple[PartitionLog, int]] = {}
        self._guards: dict[ProducerIdAndEpoch, VerificationGuard] = {}
        self._changed_topics: set[str] = set()
        self._coordinator_epoch = 0
        self._timer: TimerHandle | None = None
        self.coordinator = GroupCoordinator(
            self._append,
            config=_config(cluster),
            profile=cluster.config.profile,
            new_id=lambda: str(cluster.new_id()),
            plugin=InMemoryDescriptions(),
            share_states=ClusterSharePersister(cluster),
            forced_targets=cluster.forced_targets,
        )
        self._show_topics(list(cluster.image.topics.values()), [])
        for resource, name in cluster.image.configs:
            self._configure(resource, name)

    @staticmethod
    def attach(cluster: Cluster) -> None:
        """Make the group coordinators of a cluster follow its topics and the leaders of ``__consumer_offsets``."""
        cluster.image_listeners.append(partial(_changed, cluster))
        cluster.clock_jump_listeners.append(partial(_jump, cluster))
        follow_leaders(cluster, CONSUMER_OFFSETS, partial(GroupCoordinatorService.of_broker, cluster))

    @staticmethod
    def of_broker(cluster: Cluster, broker_id: int) -> GroupCoordinatorService:
        """Return the group coordinator of a broker."""
        return cluster.brokers[broker_id].component(
            GroupCoordinatorService, lambda: GroupCoordinatorService(cluster, broker_id)
        )

    # Leadership

    def elect(self, partition: int, epoch: int, log: PartitionLog) -> None:
        """Load a partition that this broker leads."""
        self._logs[partition] = (log, epoch)
        if self.coordinator.elect(partition, epoch, now=self._cluster.now):
            self._cluster.long_work.begin(self._load(partition, log, epoch))

    def _load(self, partition: int, log: PartitionLog, epoch: int) -> Iterator[None]:
        """Load a partition one record at a time. Stop when another broker becomes the leader."""
        for record in iter_records(log):
            if self._logs.get(partition) != (log, epoch):
                return
            self.coordinator.load(partition, (record,))
            yield
        if self._logs.get(partition) == (log, epoch):
            self._settle(self.coordinator.loaded(partition, log.log_end_offset, now=self._cluster.now))

    def resign(self, partition: int, epoch: int | None) -> None:
        """Unload a partition that another broker leads."""
        self._settle(self.coordinator.resign(partition, epoch, now=self._cluster.now))
        self._logs.pop(partition, None)

    # Requests

    def handle(self, call: ServerCall[Any], request: Request[Any] | None = None, reply: Reply | None = None) -> None:
        """Pass a call to the coordinator.

        ``request`` replaces the call's request, and ``reply`` receives the response instead of the call.
        """
        send = reply or call.respond
        self.handle_then(call, call.request if request is None else request, lambda answer: send(answer.response))

    def handle_then(self, call: ServerCall[Any], request: Request[Any], take: Callable[[Answer], None]) -> None:
        """Pass a request of a call to the coordinator. ``take`` receives the response, immediately or later."""
        context = RequestContext(
            version=call.version,
            client_id=call.client_id or "",
            client_host=call.session.client_host,
            principal=str(call.session.principal),
        )
        self._settle(self.coordinator.handle(request, context, now=self._cluster.now, opaque=take))

    def handle_in_transaction(
        self,
        call: ServerCall[Any],
        request: Request[Any],
        reply: Reply,
        producer: ProducerIdAndEpoch,
        guard: VerificationGuard | None,
    ) -> None:
        """Like ``handle``, for a request whose records are part of a transaction. ``guard`` is for the append."""
        if guard is not None:
            self._guards[producer] = guard
        self.handle(call, request, reply)
        self._guards.pop(producer, None)

    def end_transaction(
        self, partition: int, producer: tuple[int, int], *, committed: bool, coordinator_epoch: int
    ) -> ErrorCode:
        """End a transaction in a partition that this broker leads. Return the error, which may be NONE.

        ``coordinator_epoch`` is the epoch of the transaction coordinator.
        """
        self._coordinator_epoch = coordinator_epoch
        answers: list[Answer] = []
        self._settle(
            self.coordinator.end_transaction(
                partition, ProducerIdAndEpoch(*producer), committed, now=self._cluster.now, opaque=answers.append
            )
        )
        error: Any = answers[0].response
        return ErrorCode(error)

    def leads(self, partition: int) -> bool:
        """Return whether this broker leads a partition."""
        return partition in self._logs

    def share_partitions(self, group_id: str) -> Mapping[UUID, Iterable[int]]:
        """Return the partitions with state in a share group, by topic id. Raises ``GroupError``."""
        shard = self.coordinator.shards.get(self.coordinator.partition_for(group_id))
        if shard is None:
            raise GroupError(error=ErrorCode.NOT_COORDINATOR)
        shard.require_active()
        group = shard.state.groups.get(group_id)
        return initialized_partitions(group) if isinstance(group, ShareGroup) else {}

    # Interface for the coordinator

    def _append(self, batch: RecordAppend | MarkerAppend) -> int:
        log, epoch = self._logs[batch.partition]
        now = self._cluster.now
        try:
            check_in_sync(self._cluster, log)
            guard = self._guards.get(ProducerIdAndEpoch(batch.producer_id, batch.producer_epoch))
            data = encode_batch(batch, timestamp=now, coordinator_epoch=self._coordinator_epoch)
            log.append(data, leader_epoch=epoch, now=now, origin=AppendOrigin.COORDINATOR, guard=guard)
        except RequestRefusedError as error:
            raise GroupError(error=error.error, message=error.message) from error
        except RecordWriteError as error:  # a marker with a producer id or epoch that no log accepts
            raise GroupError(error=ErrorCode.UNKNOWN_SERVER_ERROR, message=str(error)) from error
        self.coordinator.committed(batch.partition, log.high_watermark)
        return log.log_end_offset

    def apply_delta(self, delta: MetadataDelta) -> None:
        """Follow changes of the cluster: topics at the end of the current step, and group configs."""
        changed = {change.topic for change in delta.partitions.values()}
        if changed and not self._changed_topics:
            self._cluster.call_soon(self._publish_changed_topics)
        self._changed_topics |= changed
        for resource, name in delta.configs:
            self._configure(resource, name)

    def _publish_changed_topics(self) -> None:
        """Publish all topic changes of a step at once: every change builds a new image."""
        changed, self._changed_topics = self._changed_topics, set()
        topics = self._cluster.image.topics
        self._show_topics([topics[name] for name in changed if name in topics], list(changed - topics.keys()))

    def _show_topics(self, put: list[TopicImage], deleted: list[str]) -> None:
        image = self.coordinator.image.changed(put=map(self._topic, put), delete=deleted)
        names = (*deleted, *(topic.name for topic in put))
        self._settle(self.coordinator.set_image(image, now=self._cluster.now, names=names))

    def creation_failed(self, group_id: str, reason: str) -> None:
        """Notify the coordinator that internal topics of a group could not be created."""
        self._settle(self.coordinator.creation_failed(group_id, reason, now=self._cluster.now))

    def _topic(self, topic: TopicImage) -> CoordinatorTopicImage:
        brokers = self._cluster.image.brokers
        racks = (
            tuple(rack for each in state.replicas if each in brokers and (rack := brokers[each].rack) is not None)
            for state in topic.partitions
        )
        return CoordinatorTopicImage(name=topic.name, id=topic.id, racks=tuple(racks))

    def _configure(self, resource: int, name: str) -> None:
        if resource == ConfigResourceType.GROUP:
            self.coordinator.update_group_config(name, self._cluster.image.configs.get((resource, name), {}))

    # Coordinator output

    def _settle(self, outcome: CoordinatorOutput) -> None:
        """Send the responses, run the background tasks, and schedule the next timer."""
        while True:
            for answer in outcome.answers:
                answer.opaque(answer)
            if not outcome.background:
                break
            outcome = self._work(outcome)
        due = self.coordinator.next_timer
        if self._timer is not None and self._timer.waiting and self._timer.at != due:
            self._timer.cancel()
        if due is not None and (self._timer is None or not self._timer.waiting):
            self._timer = self._cluster.timers.schedule(due, self._tick)

    def _work(self, outcome: CoordinatorOutput) -> CoordinatorOutput:
        """Run all background tasks of an output. Return their combined output."""
        merged = CoordinatorOutput()
        for work in outcome.background:
            value, error = None, None
            try:
                value = work.run()
            except Exception as failure:
                error = failure
            after = self.coordinator.complete_background_task(work, value, error, now=self._cluster.now)
            merged.answers += after.answers
            merged.background += after.background
        return merged

    def _tick(self) -> None:
        self._settle(self.coordinator.tick(self._cluster.now))


def _changed(cluster: Cluster, delta: MetadataDelta) -> None:
    for broker in cluster.brokers.values():
        host = broker.components.get(GroupCoordinatorService)
        if host is not None:
            host.apply_delta(delta)


def _jump(cluster: Cluster, ms: int) -> None:
    for broker in cluster.brokers.values():
        host = broker.components.get(GroupCoordinatorService)
        if host is not None:
            host.coordinator.shift_timers(ms)


def _config(cluster: Cluster) -> CoordinatorConfig:
    names = (name.replace("_", ".") for name in fields_dict(CoordinatorConfig))
    known = config_keys(BROKER)
    texts = {name: cluster.configs.text(name) for name in names if name in known and known[name].effect != "none"}
    return CoordinatorConfig.parse({name: text for name, text in texts.items() if text is not None})
