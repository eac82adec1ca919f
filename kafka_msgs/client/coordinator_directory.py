"""Finds the coordinators of groups and transactions, and remembers them."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from kafka_msgs.client.broker_connection import BrokerConnection
from kafka_msgs.client.broker_errors import broker_error
from kafka_msgs.client.cluster_metadata import Broker
from kafka_msgs.client.flow import Flow
from kafka_msgs.client.network import Address
from kafka_msgs.client.routing import CoordinatorKind
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import ConnectionFailedError, DeadlineError
from kafka_msgs.messages.find_coordinator_request import FindCoordinatorRequest

if TYPE_CHECKING:
    from kafka_msgs.client.pool import ConnectionPool

__all__ = ["CoordinatorDirectory"]

_MANY_KEYS: Final = 4
"""The first version of FindCoordinator with several keys per request (KIP-699)."""
_WAITING: Final = frozenset(
    {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR}
)


class CoordinatorDirectory:
    """The known coordinators of a cluster."""

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool
        self._known: dict[tuple[CoordinatorKind, str], int] = {}

    def find(self, key: str, kind: CoordinatorKind, *, deadline: float) -> Flow[int]:
        """Return the id of the broker that coordinates a group or a transaction.

        Raises ``BrokerError`` if no broker names the coordinator, ``DeadlineError`` and the errors of a connection.
        """
        backoff = self._pool.new_backoff(deadline)
        while True:
            try:
                found = yield from self.find_all((key,), kind, deadline=deadline)
            except ConnectionFailedError as error:
                backoff.record_failure(error, final=not self._pool.repeatable(error))
            except DeadlineError as error:
                raise backoff.timeout_error(error) from None
            else:
                place = found[key]
                if not isinstance(place, ErrorCode):
                    return place
                refusal = broker_error(place, api="FindCoordinator", subject=key)
                backoff.record_failure(refusal, final=place not in _WAITING)
            yield from backoff.wait()

    def find_all(
        self, keys: Collection[str], kind: CoordinatorKind, *, deadline: float
    ) -> Flow[dict[str, int | ErrorCode]]:
        """Return the coordinator of each key, or its error code.

        A single request looks up all unknown keys, if the broker supports it (KIP-699).
        """
        found: dict[str, int | ErrorCode] = {key: self._known[kind, key] for key in keys if (kind, key) in self._known}
        missing = [key for key in dict.fromkeys(keys) if key not in found]
        if missing:
            connection = yield from self._pool.any_connection(deadline=deadline)
            if connection.highest_version(FindCoordinatorRequest) >= _MANY_KEYS:
                found |= yield from self._find(connection, tuple(missing), kind, deadline)
            else:
                for key in missing:
                    found |= yield from self._find_one(connection, key, kind, deadline)
        return found

    def forget(self, key: str, kind: CoordinatorKind) -> None:
        """Forget a coordinator, so that the next use looks it up again."""
        self._known.pop((kind, key), None)

    def _find(
        self, connection: BrokerConnection, keys: tuple[str, ...], kind: CoordinatorKind, deadline: float
    ) -> Flow[dict[str, int | ErrorCode]]:
        """Look up several keys. A key missing from the response has no coordinator yet."""
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=keys)
        response = yield from connection.call(request, deadline=deadline, limit=self._pool.request_deadline())
        found: dict[str, int | ErrorCode] = dict.fromkeys(keys, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        for each in response.coordinators:
            if each.key in found:
                address = Address(each.host, each.port)
                found[each.key] = self._found(each.key, kind, each.error_code, each.node_id, address)
        return found

    def _find_one(
        self, connection: BrokerConnection, key: str, kind: CoordinatorKind, deadline: float
    ) -> Flow[dict[str, int | ErrorCode]]:
        request = FindCoordinatorRequest(key_type=kind, key=key)
        response = yield from connection.call(request, deadline=deadline, limit=self._pool.request_deadline())
        address = Address(response.host, response.port)
        return {key: self._found(key, kind, response.error_code, response.node_id, address)}

    def _found(self, key: str, kind: CoordinatorKind, code: int, broker_id: int, address: Address) -> int | ErrorCode:
        if code:
            return ErrorCode(code)
        known = self._pool.cluster.brokers.get(broker_id)
        if known is None or known.address != address:
            self._pool.cluster.brokers[broker_id] = Broker(broker_id, address, None)
        self._known[kind, key] = broker_id
        return broker_id
