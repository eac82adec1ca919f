"""A cluster in memory for admin tests: its brokers respond to metadata and coordinator requests by themselves.

The test provides functions that handle all other requests, by request class. Every request is recorded with the broker
that received it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from kafka_msgs.client.core import ClientCore
from kafka_msgs.message import Request, Response
from kafka_msgs.messages.find_coordinator_request import FindCoordinatorRequest
from kafka_msgs.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from kafka_msgs.messages.metadata_request import MetadataRequest
from kafka_msgs.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.support.simulated_network import SimulatedNetwork

__all__ = ["SimulatedCluster"]

Answer: TypeAlias = Callable[[int, Any], Response]
"""Handles a request received by the broker with this id."""

_PORT: Final = 9092
_UNKNOWN_TOPIC: Final = 3


class SimulatedCluster:
    """Several brokers, numbered from 1, and a client of them.

    ``coordinators`` maps a group or a transaction to its broker; the default is the first broker. ``topics`` gives the
    number of partitions; broker 1 leads partition 0, broker 2 leads partition 1, and so on.
    """

    def __init__(
        self,
        answers: Mapping[type[Request[Any]], Answer],
        *,
        brokers: int = 3,
        coordinators: Mapping[str, int] | None = None,
        topics: Mapping[str, int] | None = None,
        limits: Mapping[int, tuple[int, int] | None] | None = None,
    ) -> None:
        self.network = SimulatedNetwork()
        self.requests: list[tuple[int, Request[Any]]] = []
        self.versions: list[int] = []
        self.coordinators = dict(coordinators or {})
        self.topics = dict(topics or {})
        self.answers: dict[type[Request[Any]], Answer] = {
            MetadataRequest: self._metadata,
            FindCoordinatorRequest: self._find_coordinator,
            **answers,
        }
        self.brokers = {
            node: self.network.add(f"broker-{node}:{_PORT}", self._handler(node), limits)
            for node in range(1, brokers + 1)
        }
        self.core: ClientCore = self.network.core(f"broker-1:{_PORT}")

    def apis(self) -> list[str]:
        """The API names of all requests except metadata requests, in order."""
        return [
            request.INFO.name.removesuffix("Request")
            for _, request in self.requests
            if not isinstance(request, MetadataRequest)
        ]

    def asked(self, cls: type[Request[Any]]) -> list[tuple[int, Any]]:
        """Return the requests of a class, each with the broker that received it."""
        return [(node, request) for node, request in self.requests if isinstance(request, cls)]

    def version_of(self, cls: type[Request[Any]]) -> int:
        """Return the version of the last request of a class."""
        return [
            frame.header.request_api_version
            for broker in self.brokers.values()
            for frame in broker.frames
            if isinstance(frame.message, cls)
        ][-1]

    def _handler(self, node: int) -> Callable[[Request[Any]], Response]:
        def handle(request: Request[Any]) -> Response:
            self.requests.append((node, request))
            return self.answers[type(request)](node, request)

        return handle

    def _metadata(self, node: int, request: MetadataRequest) -> MetadataResponse:
        wanted = self.topics if request.topics is None else [each.name or "" for each in request.topics]
        return MetadataResponse(
            brokers=tuple(
                MetadataResponseBroker(node_id=each, host=f"broker-{each}", port=_PORT) for each in self.brokers
            ),
            cluster_id="in memory",
            controller_id=1,
            topics=tuple(map(self._topic, wanted)),
        )

    def _topic(self, name: str) -> MetadataResponseTopic:
        partitions = self.topics.get(name)
        if partitions is None:
            return MetadataResponseTopic(name=name, error_code=_UNKNOWN_TOPIC)
        return MetadataResponseTopic(
            name=name,
            partitions=tuple(
                MetadataResponsePartition(partition_index=each, leader_id=each % len(self.brokers) + 1)
                for each in range(partitions)
            ),
        )

    def _find_coordinator(self, node: int, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        if request.coordinator_keys:
            return FindCoordinatorResponse(coordinators=tuple(map(self._coordinator, request.coordinator_keys)))
        found = self._coordinator(request.key)
        return FindCoordinatorResponse(node_id=found.node_id, host=found.host, port=found.port)

    def _coordinator(self, key: str) -> Coordinator:
        node = self.coordinators.get(key, 1)
        return Coordinator(key=key, node_id=node, host=f"broker-{node}", port=_PORT)
