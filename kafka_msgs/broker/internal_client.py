"""Requests of the embedded cluster to itself. They need no connection and no permissions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from kafka_msgs.broker.server_call import ServerCall
from kafka_msgs.errors import InternalError
from kafka_msgs.message import Request, Response

if TYPE_CHECKING:
    from kafka_msgs.broker.cluster import Cluster

__all__ = ["InternalClient"]

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
