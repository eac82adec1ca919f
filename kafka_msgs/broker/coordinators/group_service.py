"""The group coordinator of each broker, connected to its log, the topics of the cluster and the clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from attrs import fields_dict

from kafka_msgs.broker.broker_interface import BrokerInterface
from kafka_msgs.broker.controller.config_defs import BROKER, config_keys
from kafka_msgs.broker.controller.image import MetadataDelta, TopicImage
from kafka_msgs.broker.controller.internal_topic_configs import CONSUMER_OFFSETS
from kafka_msgs.broker.coordinators.coordinator_service import CoordinatorService
from kafka_msgs.broker.coordinators.share_service import ClusterSharePersister
from kafka_msgs.broker.server_call import ServerCall
from kafka_msgs.broker.storage import VerificationGuard
from kafka_msgs.enums import ConfigResourceType
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.groups.config import CoordinatorConfig
from kafka_msgs.groups.coordinator import GroupCoordinator
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.request_context import RequestContext
from kafka_msgs.groups.runtime.output import MarkerAppend, ProducerIdAndEpoch, RecordAppend
from kafka_msgs.groups.runtime.output import Reply as Answer
from kafka_msgs.groups.share.group import ShareGroup
from kafka_msgs.groups.share.initialization import initialized_partitions
from kafka_msgs.groups.streams.description_plugin import InMemoryDescriptions
from kafka_msgs.groups.topics_image import CoordinatorTopicImage
from kafka_msgs.message import Request

__all__ = ["GroupCoordinatorService", "Reply"]

Reply = Callable[[Any], None]
"""A callback for the response of a group coordinator."""


class GroupCoordinatorService(CoordinatorService[GroupCoordinator]):
    """The group coordinator of one broker."""

    topic = CONSUMER_OFFSETS

    def __init__(self, cluster: BrokerInterface, broker_id: int) -> None:
        super().__init__(cluster, broker_id)
        self._guards: dict[ProducerIdAndEpoch, VerificationGuard] = {}
        self._changed_topics: set[str] = set()
        self.coordinator = GroupCoordinator(
            self.append,
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
        self.settle(self.coordinator.handle(request, context, now=self.cluster.now, opaque=take))

    @contextmanager
    def guarding(self, producer: ProducerIdAndEpoch, guard: VerificationGuard | None) -> Iterator[None]:
        """Use a guard for the appends of a producer while a request of its transaction is handled."""
        if guard is not None:
            self._guards[producer] = guard
        yield
        self._guards.pop(producer, None)

    def end_transaction(
        self, partition: int, producer: tuple[int, int], *, committed: bool, coordinator_epoch: int
    ) -> ErrorCode:
        """End a transaction in a partition that this broker leads. Return the error, which may be NONE.

        ``coordinator_epoch`` is the epoch of the transaction coordinator.
        """
        self.coordinator_epoch = coordinator_epoch
        answers: list[Answer] = []
        self.settle(
            self.coordinator.end_transaction(
                partition, ProducerIdAndEpoch(*producer), committed, now=self.cluster.now, opaque=answers.append
            )
        )
        error: Any = answers[0].response
        return ErrorCode(error)

    def share_partitions(self, group_id: str) -> Mapping[UUID, Iterable[int]]:
        """Return the partitions with state in a share group, by topic id. Raises ``ApiError``."""

        def read(op: OperationContext) -> Mapping[UUID, Iterable[int]]:
            group = op.state.groups.get(group_id)
            return initialized_partitions(group) if isinstance(group, ShareGroup) else {}

        return self.coordinator.read(self.coordinator.partition_for(group_id), read)

    # Interface for the coordinator

    def guard(self, batch: RecordAppend | MarkerAppend) -> VerificationGuard | None:
        """Return the guard of a batch in a transaction, or None."""
        return self._guards.get(ProducerIdAndEpoch(batch.producer_id, batch.producer_epoch))

    def apply_delta(self, delta: MetadataDelta) -> None:
        """Follow changes of the cluster: topics at the end of the current step, and group configs."""
        changed = {change.topic for change in delta.partitions.values()}
        if changed and not self._changed_topics:
            self.cluster.call_soon(self._publish_changed_topics)
        self._changed_topics |= changed
        for resource, name in delta.configs:
            self._configure(resource, name)

    def _publish_changed_topics(self) -> None:
        """Publish all topic changes of a step at once: every change builds a new image."""
        changed, self._changed_topics = self._changed_topics, set()
        topics = self.cluster.image.topics
        self._show_topics([topics[name] for name in changed if name in topics], list(changed - topics.keys()))

    def _show_topics(self, put: list[TopicImage], deleted: list[str]) -> None:
        image = self.coordinator.image.changed(put=map(self._topic, put), delete=deleted)
        names = (*deleted, *(topic.name for topic in put))
        self.settle(self.coordinator.set_image(image, now=self.cluster.now, names=names))

    def creation_failed(self, group_id: str, reason: str) -> None:
        """Notify the coordinator that internal topics of a group could not be created."""
        self.settle(self.coordinator.creation_failed(group_id, reason, now=self.cluster.now))

    def _topic(self, topic: TopicImage) -> CoordinatorTopicImage:
        brokers = self.cluster.image.brokers
        racks = (
            tuple(rack for each in state.replicas if each in brokers and (rack := brokers[each].rack) is not None)
            for state in topic.partitions
        )
        return CoordinatorTopicImage(name=topic.name, id=topic.id, racks=tuple(racks))

    def _configure(self, resource: int, name: str) -> None:
        if resource == ConfigResourceType.GROUP:
            self.coordinator.update_group_config(name, self.cluster.image.configs.get((resource, name), {}))


def _config(cluster: BrokerInterface) -> CoordinatorConfig:
    names = (name.replace("_", ".") for name in fields_dict(CoordinatorConfig))
    known = config_keys(BROKER)
    texts = {name: cluster.configs.text(name) for name in names if name in known and known[name].effect != "none"}
    return CoordinatorConfig.parse({name: text for name, text in texts.items() if text is not None})
