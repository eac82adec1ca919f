"""A request log for test assertions: decoded requests of clients to an embedded cluster, with their responses."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, Self

from attrs import frozen

from kafka_msgs.broker.request_topics import field_values, request_topics
from kafka_msgs.broker.struct_copies import copy_as
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.message import Request, Response
from kafka_msgs.validators import check_int

if TYPE_CHECKING:
    from kafka_msgs.broker.cluster import Cluster
    from kafka_msgs.broker.server_call import ServerCall

__all__ = ["LoggedRequest", "RequestLog"]

_MAX_BYTES: Final = 64 * 2**20
"""The maximum size of logged requests in bytes. The records of a request are views of its bytes."""


@frozen(kw_only=True)
class LoggedRequest:
    """A completed request. ``response`` is None for Produce with ``acks=0``.

    ``api`` is the API name, for example ``Metadata``; ``connection`` is the number of the connection within the
    cluster. ``received_at`` and ``answered_at`` are in milliseconds of the brokers' clock. ``topics`` are the names of
    the topics in the request, including topics given by id. ``errors`` are the error codes in the response other than
    NONE, in order.
    """

    broker_id: int
    connection: int
    client_id: str | None
    api: str
    version: int
    request: Request[Any]
    response: Response | None
    size: int
    received_at: int
    answered_at: int
    topics: tuple[str, ...]
    errors: tuple[ErrorCode, ...]

    @property
    def took_ms(self) -> int:
        """The handling time in milliseconds, including the wait of a long poll."""
        return self.answered_at - self.received_at


class RequestLog:
    """The requests since its creation, in the order of their responses, until ``stop``.

    It stores the latest ``max_requests`` requests, and at most 64 MiB; ``dropped`` counts the discarded requests. As a
    context manager it stops on exit. All methods may be called from any thread, even after the broker was closed.
    """

    def __init__(self, run: Callable[[Callable[[Cluster], object]], object], max_requests: int) -> None:
        check_int("requests", "max_requests", max_requests, 1)
        self._run = run
        self._max_requests = max_requests
        self._bytes = 0
        self._logged: deque[LoggedRequest] = deque()
        self._stopped = False
        self.dropped = 0
        run(lambda cluster: cluster.response_observers.append(self._observe))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def __iter__(self) -> Iterator[LoggedRequest]:
        return iter(tuple(self._logged))

    def __len__(self) -> int:
        return len(self._logged)

    def stop(self) -> None:
        """Stop logging. Logged requests remain available. It is safe to call again."""
        if not self._stopped:
            self._stopped = True
            self._run(lambda cluster: cluster.response_observers.remove(self._observe))

    def clear(self) -> None:
        """Discard the logged requests."""
        self._run(lambda cluster: self._forget())

    def find(
        self,
        *,
        api: str | None = None,
        client_id: str | None = None,
        topic: str | None = None,
        broker_id: int | None = None,
        error: ErrorCode | None = None,
    ) -> list[LoggedRequest]:
        """Return the requests that match all given criteria."""
        return [
            each
            for each in self
            if api in (None, each.api)
            and client_id in (None, each.client_id)
            and broker_id in (None, each.broker_id)
            and (topic is None or topic in each.topics)
            and (error is None or error in each.errors)
        ]

    def _forget(self) -> None:
        self._logged.clear()
        self._bytes = self.dropped = 0

    def _observe(self, call: ServerCall[Any], response: Response | None) -> None:
        logged = copy_as(
            LoggedRequest,
            call,
            broker_id=call.session.broker_id,
            connection=call.session.id,
            api=call.request.INFO.name.removesuffix("Request"),
            response=response,
            answered_at=call.cluster.now,
            topics=request_topics(call),
            errors=() if response is None else tuple(_errors(response)),
        )
        self._logged.append(logged)
        self._bytes += logged.size
        while len(self._logged) > self._max_requests or self._bytes > _MAX_BYTES:
            self._bytes -= self._logged.popleft().size
            self.dropped += 1


def _errors(response: Response) -> Iterator[ErrorCode]:
    for field, value in field_values(response):
        if field.name == "ErrorCode" and value:
            yield ErrorCode(value)
