"""The order in which callers wait for a place among the in-flight requests of a connection."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from kafka_msgs.client.flow import Flow, Future, Wait
from kafka_msgs.errors import DeadlineError

if TYPE_CHECKING:
    from kafka_msgs.client.broker_connection import BrokerConnection

__all__ = ["TurnQueue"]

T = TypeVar("T")


class TurnQueue:
    """The callers that wait until a connection is not full."""

    def __init__(self, connection: BrokerConnection) -> None:
        self._connection = connection
        self._turns: deque[Future[None]] = deque()

    def __bool__(self) -> bool:
        return bool(self._turns)

    def send(self, send: Callable[[], Future[T]], deadline: float | None) -> Flow[Future[T]]:
        """Call a function that sends one request, when the in-flight limit allows it; return the future of the
        response.

        Callers are served in order. Raises ``DeadlineError``.
        """
        if not self._connection.is_full:
            return send()
        turn = self._turn()
        try:
            while self._connection.is_full:
                turn = self._turn() if turn.done else turn
                yield Wait((turn,), deadline)
                if not turn.done:
                    raise DeadlineError(waiting_for=f"room for a request to {self._connection.address}")
            return send()
        finally:
            self._leave(turn)

    def _turn(self) -> Future[None]:
        """Return a future that is done at the caller's turn to send, or when the connection ends. Turns are in order.

        Another caller may have been faster, so check again whether the connection is full. ``_leave`` ends the waiting.
        """
        turn: Future[None] = Future()
        self._turns.append(turn)
        return turn

    def _leave(self, turn: Future[None]) -> None:
        """Leave the queue. A turn that was already granted passes to the next caller."""
        if turn.done:
            self.grant()
        turn.resolve(None)

    def grant(self) -> None:
        """Grant the turn to the first caller in the queue, or to all callers after the end of the connection."""
        while self._turns and not self._connection.is_full:
            turn = self._turns.popleft()
            if not turn.done:
                turn.resolve(None)
                if self._connection.alive:
                    return
