"""Fault triggers: requests (``Fault``) or times (``At``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import define, field, frozen

from kafka_msgs.broker.faults.cluster_changes import Change
from kafka_msgs.broker.faults.request_effects import Effect
from kafka_msgs.broker.request_topics import request_topics
from kafka_msgs.broker.server_call import ServerCall
from kafka_msgs.validators import int_range

__all__ = ["At", "Fault"]


@define
class Fault:
    """An effect or a cluster change, and the requests that trigger it. Omitted criteria match all requests.

    ``api`` is an API key, ``broker`` a broker id, ``client_id`` the client id of a request, and ``topic`` the name of
    one of its topics. ``matches`` can inspect the whole call. The fault skips the first ``after`` matching requests and
    then affects ``times`` of them, or all if ``times`` is None. ``hits`` counts the affected requests. A cluster change
    happens before the request is handled.
    """

    effect: Effect | Change
    api: int | None = None
    broker: int | None = None
    client_id: str | None = None
    matches: Callable[[ServerCall[Any]], bool] | None = None
    after: int = field(default=0, validator=int_range(0))
    times: int | None = field(default=1, kw_only=True)
    topic: str | None = field(default=None, kw_only=True)
    hits: int = field(default=0, init=False, eq=False)
    _seen: int = field(default=0, init=False, eq=False, repr=False)

    def hit(self, call: ServerCall[Any]) -> bool:
        """Return whether this call is affected, and count it."""
        if self.over or not self._concerns(call):
            return False
        self._seen += 1
        if self._seen <= self.after:
            return False
        self.hits += 1
        return True

    @property
    def over(self) -> bool:
        """Whether the fault has affected all its requests."""
        return self.times is not None and self.hits >= self.times

    def _concerns(self, call: ServerCall[Any]) -> bool:
        return (
            self.api in (None, call.api_key)
            and self.broker in (None, call.session.broker_id)
            and self.client_id in (None, call.client_id)
            and (self.topic is None or self.topic in request_topics(call))
            and (self.matches is None or self.matches(call))
        )


@frozen
class At:
    """A cluster change or the start of a fault, ``ms`` milliseconds after the start of the script."""

    ms: int = field(validator=int_range(0))
    what: Change | Fault
