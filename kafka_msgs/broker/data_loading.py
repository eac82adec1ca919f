"""Loads initial data into a cluster that has just started, with the requests that a client would send."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from kafka_msgs.broker.initial_data import InitialAcl, InitialData, InitialOffset, InitialRecord, InitialTopic
from kafka_msgs.broker.server_call import ServerCall
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import InternalError, OptionError
from kafka_msgs.message import Request, Response
from kafka_msgs.messages.create_acls_request import AclCreation, CreateAclsRequest
from kafka_msgs.messages.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kafka_msgs.messages.find_coordinator_request import FindCoordinatorRequest
from kafka_msgs.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafka_msgs.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kafka_msgs.records import BatchBuilder

if TYPE_CHECKING:
    from kafka_msgs.broker.cluster import Cluster

__all__ = ["load_initial_data"]

R = TypeVar("R", bound=Response)

_CLIENT_ID: Final = "kafka-msgs-broker"


class InternalClient:
    """A client within the cluster, for requests with immediate responses. Faults and quotas do not affect it."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._response: Response | None = None

    def send(self, request: Request[R], version: int, broker_id: int | None = None) -> R:
        """Return the response of a broker, by default the controller."""
        cluster = self._cluster
        session = cluster.open_session(
            cluster.controller_id if broker_id is None else broker_id, listener=cluster.config.listeners[0]
        )
        session.authenticated = True
        self._response = None
        call = ServerCall(
            cluster=cluster,
            session=session,
            request=request,
            version=version,
            transport=self,
            client_id=_CLIENT_ID,
            received_at=cluster.now,
        )
        with self._all_permissions():
            cluster.dispatch.run(cluster, call)
        session.end()
        if self._response is None:
            raise InternalError(reason=f"{request.INFO.name} has no immediate response")
        return cast("R", self._response)

    @contextmanager
    def _all_permissions(self) -> Iterator[None]:
        authorizer = self._cluster.authorizer
        if authorizer is not None:
            self._cluster.authorizer = lambda *_: True
        try:
            yield
        finally:
            self._cluster.authorizer = authorizer

    def reply(self, call: ServerCall[Any], response: Response | None) -> None:
        """Store the response."""
        self._response = response

    def disconnect(self, call: ServerCall[Any], *, reset: bool = False) -> None:
        """Store nothing: the request fails."""


_CREATE_TOPICS: Final = 7
_CREATE_ACLS: Final = 3
_PRODUCE: Final = 12
_FIND_COORDINATOR: Final = 4
_OFFSET_COMMIT: Final = 9
"""The versions of the requests."""

_RECORDS: Final = 1000
"""The maximum number of records per batch."""


def load_initial_data(cluster: Cluster, data: InitialData) -> None:
    """Create the topics and ACLs that do not exist, and write records and offsets to a new cluster.

    Raises ``OptionError`` for data that the cluster refuses, with Kafka's error.
    """
    client = InternalClient(cluster)
    for topic in data.topics:
        if topic.name not in cluster.image.topics:
            _create_topic(client, topic)
    for acl in data.acls:
        _create_acl(client, acl)
    if cluster.storage is None or cluster.storage.is_new:
        for (name, partition), records in _by_partition(data.records):
            leader = _leader(cluster, name, partition)
            for start in range(0, len(records), _RECORDS):
                _produce(client, leader, cluster.now, records[start : start + _RECORDS])
        for offset in data.offsets:
            _commit(client, offset)


def _by_partition(records: Sequence[InitialRecord]) -> Iterator[tuple[tuple[str, int], list[InitialRecord]]]:
    """Yield the records of each partition, in order."""
    place = attrgetter("topic", "partition")
    return ((key, list(found)) for key, found in groupby(sorted(records, key=place), place))


def _create_topic(client: InternalClient, topic: InitialTopic) -> None:
    configs = tuple(CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items())
    new = CreatableTopic(
        name=topic.name, num_partitions=topic.partitions, replication_factor=topic.replicas, configs=configs
    )
    result = client.send(CreateTopicsRequest(topics=(new,)), _CREATE_TOPICS).topics[0]
    _check("topics", topic.name, result.error_code, result.error_message)


def _create_acl(client: InternalClient, acl: InitialAcl) -> None:
    new = AclCreation(
        resource_type=acl.resource,
        resource_name=acl.name,
        resource_pattern_type=acl.pattern,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )
    result = client.send(CreateAclsRequest(creations=(new,)), _CREATE_ACLS).results[0]
    _check("acls", acl.name, result.error_code, result.error_message)


def _leader(cluster: Cluster, topic: str, partition: int) -> int:
    found = cluster.image.topics.get(topic)
    state = None if found is None else cluster.image.partition(found.id, partition)
    if state is None:
        raise _refused("records", f"{topic}-{partition}", "the partition does not exist")
    return state.leader


def _produce(client: InternalClient, leader: int, now: int, records: Sequence[InitialRecord]) -> None:
    builder = BatchBuilder()
    for each in records:
        timestamp = now if each.timestamp is None else each.timestamp
        builder.append(each.key, each.value, timestamp=timestamp, headers=tuple(each.headers.items()))
    first = records[0]
    part = PartitionProduceData(index=first.partition, records=builder.build())
    topics = (TopicProduceData(name=first.topic, partition_data=(part,)),)
    answer = client.send(ProduceRequest(acks=-1, topic_data=topics), _PRODUCE, leader)
    result = answer.responses[0].partition_responses[0]
    _check("records", f"{first.topic}-{first.partition}", result.error_code, result.error_message)


def _commit(client: InternalClient, offset: InitialOffset) -> None:
    found = client.send(FindCoordinatorRequest(coordinator_keys=(offset.group,)), _FIND_COORDINATOR).coordinators[0]
    _check("offsets", offset.group, found.error_code, found.error_message)
    part = OffsetCommitRequestPartition(
        partition_index=offset.partition, committed_offset=offset.offset, committed_metadata=offset.metadata
    )
    topics = (OffsetCommitRequestTopic(name=offset.topic, partitions=(part,)),)
    answer = client.send(OffsetCommitRequest(group_id=offset.group, topics=topics), _OFFSET_COMMIT, found.node_id)
    _check("offsets", offset.group, answer.topics[0].partitions[0].error_code, None)


def _check(option: str, value: str, error: int, message: str | None) -> None:
    if error:
        name = ErrorCode(error).name
        raise _refused(option, value, name if message is None else f"{name}: {message}")


def _refused(option: str, value: str, reason: str) -> OptionError:
    return OptionError(source="InitialData", option=option, value=value, reason=reason)
