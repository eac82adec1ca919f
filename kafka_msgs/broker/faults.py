"""Faults on request: what an embedded broker does wrong, to which requests, and how often.

    >>> from kafka_msgs import ApiKey, ErrorCode
    >>> from kafka_msgs.broker import EmbeddedBroker
    >>> from kafka_msgs.broker.faults import Fail, Fault
    >>> with EmbeddedBroker() as broker:
    ...     fault = broker.faults.add(Fault(Fail(ErrorCode.NOT_LEADER_OR_FOLLOWER), api=ApiKey.PRODUCE, times=2))

A ``Fault`` says which requests it is for, and its ``effect`` what happens to them. Effects on a request come before its
handler: ``Fail``, ``Delay``, ``Ignore``, ``Disconnect``. Effects on the answer come after it, so the request is done,
but the client does not learn of it as it should: ``Lose``, ``Cut``, ``Resize``, ``Renumber``, ``Drip``.

``Faults.random`` chooses effects by chance, from a seed. ``Faults.disk_full`` refuses everything that is written.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, Final

from attrs import define, field, frozen

from kafka_msgs.broker.call import Call, Damage
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.option_checks import whole

if TYPE_CHECKING:
    from kafka_msgs.broker.cluster import Cluster

__all__ = [
    "Cut",
    "Delay",
    "Disconnect",
    "Drip",
    "Effect",
    "Fail",
    "Fault",
    "Faults",
    "Ignore",
    "Lose",
    "Renumber",
    "Resize",
]

_SIZE: Final = 4
_NUMBER: Final = 8
"""The bytes of a frame before its correlation id, and with it."""


@frozen
class Fail:
    """Answer with an error code, without doing what is asked."""

    error: ErrorCode
    message: str | None = None

    def begin(self, call: Call[Any]) -> bool:
        """Answer a call. Return True: nobody else handles it."""
        call.fail(self.error, self.message)
        return True


@frozen
class Delay:
    """Handle the request ``ms`` milliseconds later."""

    ms: int = field(validator=whole(0))

    def begin(self, call: Call[Any]) -> bool:
        """Put a call off. Return True: nobody else handles it now."""
        call.cluster.after(self.ms, lambda: call.cluster.dispatch.run(call.cluster, call))
        return True


@frozen
class Ignore:
    """Never answer. The connection stays open."""

    def begin(self, call: Call[Any]) -> bool:
        """Drop a call. Return True: nobody else handles it."""
        return True


@frozen
class Disconnect:
    """Close the connection without doing what is asked: in order, or with a reset."""

    reset: bool = True

    def begin(self, call: Call[Any]) -> bool:
        """Close the connection of a call. Return True: nobody else handles it."""
        call.disconnect(reset=self.reset)
        return True


class _OnAnswer(ABC):
    """An effect on the bytes of the answer."""

    def begin(self, call: Call[Any]) -> bool:
        """Damage the answer of a call later. Return False: its handler is next."""
        call.damage = self.damage
        return False

    @abstractmethod
    def damage(self, frame: bytes) -> Damage:
        """Return what is sent instead of the frame of an answer."""


@frozen
class Lose(_OnAnswer):
    """Do what is asked, then close the connection instead of answering."""

    def damage(self, frame: bytes) -> Damage:
        """Return nothing, and the end of the connection."""
        return Damage(pieces=(), closes=True)


@frozen
class Cut(_OnAnswer):
    """Send only the first ``size`` bytes of the frame, its four bytes of length included, and close the connection."""

    size: int = field(validator=whole(0))

    def damage(self, frame: bytes) -> Damage:
        """Return the first bytes of a frame."""
        return Damage(pieces=(frame[: self.size],), closes=True)


@frozen
class Resize(_OnAnswer):
    """State a length of the frame that is wrong by ``difference`` bytes."""

    difference: int

    def damage(self, frame: bytes) -> Damage:
        """Return a frame with another length."""
        size = max(0, int.from_bytes(frame[:_SIZE], "big") + self.difference)
        return Damage(pieces=(size.to_bytes(_SIZE, "big") + frame[_SIZE:],))


@frozen
class Renumber(_OnAnswer):
    """Answer with the correlation id of another request: the right one plus ``difference``."""

    difference: int = 1

    def damage(self, frame: bytes) -> Damage:
        """Return a frame with another correlation id."""
        number = (int.from_bytes(frame[_SIZE:_NUMBER], "big") + self.difference) % 2**32
        return Damage(pieces=(frame[:_SIZE] + number.to_bytes(_NUMBER - _SIZE, "big") + frame[_NUMBER:],))


@frozen
class Drip(_OnAnswer):
    """Send the answer slowly: ``size`` bytes every ``every_ms`` milliseconds."""

    size: int = field(validator=whole(1))
    every_ms: int = field(validator=whole(1))

    def damage(self, frame: bytes) -> Damage:
        """Return the pieces of a frame."""
        pieces = tuple(frame[start : start + self.size] for start in range(0, len(frame), self.size))
        return Damage(pieces=pieces, every_ms=self.every_ms)


Effect = Fail | Delay | Ignore | Disconnect | Lose | Cut | Resize | Renumber | Drip
"""What a fault does."""


@define(eq=False)
class Fault:
    """An effect, and the requests that it is for. What is not given is for all.

    ``api`` is an api key, ``broker`` the id of a broker, ``client_id`` the name that a client gives. ``matches`` may
    look at the whole call. The first ``after`` requests pass; then ``times`` of them are hit, or all if it is None.
    ``hits`` counts them.
    """

    effect: Effect
    api: int | None = None
    broker: int | None = None
    client_id: str | None = None
    matches: Callable[[Call[Any]], bool] | None = None
    after: int = field(default=0, validator=whole(0))
    times: int | None = field(default=1, kw_only=True)
    hits: int = field(default=0, init=False)
    _seen: int = field(default=0, init=False)

    def hit(self, call: Call[Any]) -> bool:
        """Return whether this call is hit, and count it."""
        if self.over or not self._concerns(call):
            return False
        self._seen += 1
        if self._seen <= self.after:
            return False
        self.hits += 1
        return True

    @property
    def over(self) -> bool:
        """Whether the fault has hit as often as it should."""
        return self.times is not None and self.hits >= self.times

    def _concerns(self, call: Call[Any]) -> bool:
        return (
            self.api in (None, call.api_key)
            and self.broker in (None, call.session.broker_id)
            and self.client_id in (None, call.client_id)
            and (self.matches is None or self.matches(call))
        )


class Faults:
    """The faults of a cluster. They may be changed from any thread."""

    def __init__(self, cluster: Cluster) -> None:
        self._faults: list[Fault] = []
        self._random: _RandomFaults | None = None
        self._cluster = cluster
        cluster.intercept.append(self._begin)

    def add(self, fault: Fault) -> Fault:
        """Begin a fault. Of several that hit a request the first one counts."""
        self._faults.append(fault)
        return fault

    def remove(self, fault: Fault) -> None:
        """End a fault. It may be over already."""
        if fault in self._faults:
            self._faults.remove(fault)

    def random(
        self, seed: int, effects: Sequence[Effect], share: float, *, apis: Collection[int] | None = None
    ) -> None:
        """Hit a share of the requests (0 to 1) with one of the effects, by chance. The seed decides which.

        ``apis`` are the api keys of the requests that are meant; None is for all.
        """
        chosen = None if apis is None else frozenset(apis)
        self._random = _RandomFaults(Random(seed), tuple(effects), share, chosen)

    @property
    def disk_full(self) -> bool:
        """Whether everything that is to be written fails with KAFKA_STORAGE_ERROR, as on a disk without space."""
        return self._cluster.partitions.disk_full

    @disk_full.setter
    def disk_full(self, full: bool) -> None:
        self._cluster.partitions.disk_full = full

    def clear(self) -> None:
        """End all faults."""
        self._faults.clear()
        self._random = None
        self.disk_full = False

    def _begin(self, call: Call[Any]) -> bool:
        effect = self._effect(call)
        for fault in tuple(self._faults):
            if fault.over:
                self.remove(fault)
        return effect is not None and effect.begin(call)

    def _effect(self, call: Call[Any]) -> Effect | None:
        for fault in self._faults:
            if fault.hit(call):
                return fault.effect
        return None if self._random is None else self._random.effect(call.api_key)


@frozen
class _RandomFaults:
    """Effects by chance."""

    dice: Random
    effects: tuple[Effect, ...]
    share: float
    apis: frozenset[int] | None

    def effect(self, api_key: int) -> Effect | None:
        if self.apis is not None and api_key not in self.apis:
            return None
        return self.dice.choice(self.effects) if self.dice.random() < self.share else None
