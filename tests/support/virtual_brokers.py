"""A cluster of virtual brokers without sockets or a real clock, for tests that send requests directly."""

from __future__ import annotations

from typing import Any, TypeVar

from attrs import Factory, define

from kafka_msgs.broker.client_session import ClientSession
from kafka_msgs.broker.cluster import Cluster
from kafka_msgs.broker.config import BrokerConfig
from kafka_msgs.broker.server_call import ServerCall
from kafka_msgs.message import Request, Response
from kafka_msgs.messages.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kafka_msgs.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kafka_msgs.records import BatchBuilder

__all__ = ["START", "VirtualCluster", "batch"]

R = TypeVar("R", bound=Response)

START = 1_700_000_000_000
"""The time at which the clusters start, in milliseconds since the epoch."""


def batch(*values: bytes) -> bytes:
    """Return a batch of records with these values."""
    builder = BatchBuilder()
    for value in values:
        builder.append(None, value, timestamp=START)
    return builder.build()


@define(eq=False)
class RecordedCall:
    """A call, and its response once available. A closed call has no response."""

    call: ServerCall[Any]
    answer: Response | None = None
    closed: bool = False


@define(eq=False)
class VirtualCluster:
    """A cluster that receives requests as method calls, and whose time a test advances."""

    cluster: Cluster
    sessions: dict[int, ClientSession] = Factory(dict)
    asked: dict[int, RecordedCall] = Factory(dict)
    time: int = START

    @classmethod
    def start(cls, **settings: Any) -> VirtualCluster:
        """Start a cluster with settings of ``BrokerConfig``."""
        cluster = Cluster(BrokerConfig(**settings), now=START)
        cluster.start(
            {
                each: {listener.name: ("127.0.0.1", 9092 + each) for listener in cluster.config.listeners}
                for each in cluster.broker_ids
            }
        )
        return cls(cluster)

    def reply(self, call: ServerCall[Any], response: Response | None) -> None:
        """Record the response."""
        self.asked[id(call)].answer = response

    def disconnect(self, call: ServerCall[Any], *, reset: bool = False) -> None:
        """Record the end of the connection."""
        self.asked[id(call)].closed = True

    def ask(self, request: Request[Any], version: int, *, broker: int = 0, client_id: str = "test") -> RecordedCall:
        """Send a request; the response may come later. Request and response pass through their encodings."""
        session = self.sessions.get(broker)
        if session is None or session.closed:
            listener = self.cluster.config.listeners[0]
            session = self.sessions[broker] = self.cluster.open_session(broker, listener=listener)
        call = ServerCall(
            cluster=self.cluster,
            session=session,
            request=type(request).decode(request.encode(version), version),
            version=version,
            transport=self,
            client_id=client_id,
            received_at=self.cluster.now,
        )
        asked = self.asked[id(call)] = RecordedCall(call)
        self.cluster.receive(call)
        return asked

    def call(self, request: Request[R], version: int, *, broker: int = 0, client_id: str = "test") -> R:
        """Send a request that gets an immediate response, and return the response as a client decodes it."""
        asked = self.ask(request, version, broker=broker, client_id=client_id)
        assert self.cluster.errors == []
        return self.decoded(asked, request.response_class())

    def decoded(self, asked: RecordedCall, cls: type[R]) -> R:
        """Return the response to a call as a client decodes it."""
        assert asked.answer is not None
        version = asked.call.version
        return cls.decode(asked.answer.encode(version), version)

    def advance(self, ms: int) -> None:
        """Advance the time."""
        self.time += ms
        self.cluster.tick(self.time)

    def create(self, name: str, partitions: int = 1, replication_factor: int = 1, **configs: str) -> None:
        """Create a topic. ``configs`` have ``_`` for ``.``."""
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=replication_factor,
            configs=tuple(
                CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()
            ),
        )
        response = self.call(CreateTopicsRequest(topics=(topic,)), 7)
        assert response.topics[0].error_code == 0, response

    def topic_id(self, name: str) -> Any:
        """Return the id of a topic."""
        return self.cluster.image.topics[name].id

    def produce(self, topic: str, partition: int, data: bytes, *, acks: int = -1, broker: int = 0) -> RecordedCall:
        """Send batches to a partition, at version 12, which uses topic names."""
        part = PartitionProduceData(index=partition, records=data)
        named = TopicProduceData(name=topic, partition_data=(part,))
        return self.ask(ProduceRequest(acks=acks, timeout_ms=1000, topic_data=(named,)), 12, broker=broker)
