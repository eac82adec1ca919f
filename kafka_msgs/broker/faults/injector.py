"""Faults, and the fault injector of a cluster: active faults, their effect on each request, and scripts."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from random import Random
from typing import Any, Final

from attrs import Factory, define, evolve, field, frozen

from kafka_msgs.broker.faults.cluster_changes import Change, ClusterControl
from kafka_msgs.broker.faults.request_effects import Effect
from kafka_msgs.broker.request_topics import request_topics
from kafka_msgs.broker.server_call import ServerCall
from kafka_msgs.errors import OptionError, RequestRefusedError
from kafka_msgs.validators import int_range

__all__ = ["At", "Fault", "FaultInjector"]


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


_REFUSED: Final = 1000


class FaultInjector:
    """The faults of a cluster. They may be changed from any thread; ``play`` must be called from the cluster's thread.

    ``intercept`` has the hooks that run before the handler of a request. ``refused`` lists recent cluster changes that
    failed, each with its error: for example, a move to a stopped broker.
    """

    def __init__(self, cluster: ClusterControl, intercept: list[Callable[[ServerCall[Any]], bool]]) -> None:
        self.refused: deque[tuple[Change, Exception]] = deque(maxlen=_REFUSED)
        self._faults: list[Fault] = []
        self._random: _RandomFaults | None = None
        self._scripts = 0
        self._cluster = cluster
        intercept.append(self._begin)

    def add(self, fault: Fault) -> Fault:
        """Start a fault. If several faults match a request, the first one applies."""
        self._faults.append(fault)
        return fault

    def remove(self, fault: Fault) -> None:
        """End a fault. It may have ended already."""
        self._faults[:] = [each for each in self._faults if each is not fault]

    def random(
        self, seed: int, effects: Sequence[Effect], share: float, *, apis: Collection[int] | None = None
    ) -> None:
        """Apply one of the effects to a random share of the requests (0 to 1).

        For each API the seed determines which requests are affected, in order of arrival: the first, the seventh, and
        so on. ``apis`` are the API keys of the requests; None selects all.
        """
        chosen = None if apis is None else frozenset(apis)
        self._random = _RandomFaults(seed, tuple(effects), share, chosen)

    def play(self, script: Iterable[At]) -> None:
        """Schedule the changes and faults of a script, relative to now. Several scripts may run at the same time.

        The script itself is not modified: each fault in it is copied before it starts. Changes that fail at their time
        are skipped, see ``refused``.
        """
        for each in script:
            self._cluster.call_later(each.ms, partial(self._happen, each, self._scripts))

    def apply(self, change: Change) -> None:
        """Make a cluster change now, as far as possible."""
        try:
            change.apply(self._cluster)
        except (OptionError, RequestRefusedError) as error:
            self.refused.append((change, error))

    @property
    def disk_full(self) -> bool:
        """Whether all writes fail with KAFKA_STORAGE_ERROR, as on a full disk."""
        return self._cluster.log_manager.disk_full

    @disk_full.setter
    def disk_full(self, full: bool) -> None:
        self._cluster.log_manager.disk_full = full

    def end_faults(self) -> None:
        """End all request faults, free the disk, and let followers have all records. Scripts continue."""
        self._faults.clear()
        self._cluster.follower_views.clear()
        self._random = None
        self.disk_full = False

    def clear(self) -> None:
        """End all faults and scripts. Stopped brokers stay stopped."""
        self._scripts += 1
        self.end_faults()

    def _happen(self, each: At, scripts: int) -> None:
        if scripts != self._scripts:
            return
        if isinstance(each.what, Fault):
            self.add(evolve(each.what))
        else:
            self.apply(each.what)

    def _begin(self, call: ServerCall[Any]) -> bool:
        effect = self._effect(call)
        for fault in tuple(self._faults):
            if fault.over:
                self.remove(fault)
        if isinstance(effect, Change):
            self.apply(effect)
            return call.session.closed
        return effect is not None and effect.begin(call)

    def _effect(self, call: ServerCall[Any]) -> Effect | Change | None:
        for fault in self._faults:
            if fault.hit(call):
                return fault.effect
        return None if self._random is None else self._random.effect(call.api_key)


@define
class _RandomFaults:
    """Random effects. Each API has its own random generator, so other APIs do not influence its sequence."""

    seed: int
    effects: tuple[Effect, ...]
    share: float
    apis: frozenset[int] | None
    dice: dict[int, Random] = Factory(dict)

    def effect(self, api_key: int) -> Effect | None:
        if self.apis is not None and api_key not in self.apis:
            return None
        dice = self.dice.get(api_key)
        if dice is None:
            dice = self.dice[api_key] = Random(f"{self.seed} {api_key}")
        return dice.choice(self.effects) if dice.random() < self.share else None
