"""Quota usage at one broker: the limits, the samples and the usage of each client, and its throttle time.

Each broker measures separately, because quotas are per broker, as in Kafka. The controller measures mutations.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from enum import Enum
from ipaddress import ip_address
from math import floor, isnan
from typing import Final, Literal, Protocol, TypeAlias

from attrs import define, frozen

from kafka_msgs.message import MetadataRecord
from kafka_msgs.messages.client_quota_record import ClientQuotaRecord

__all__ = ["LONGEST", "ClientQuotaManager", "QuotaMeter", "QuotaMeters", "Rate", "Stat", "TokenBucket", "Window"]

_SECOND: Final = 1000
LONGEST: Final = 2**31 - 1
"""The maximum throttle time in milliseconds that a response can contain."""


@frozen
class Window:
    """A sampling window: ``samples`` samples of ``ms`` milliseconds each."""

    samples: int
    ms: int


class Stat(Protocol):
    """A usage statistic of a resource."""

    def record(self, value: float, now: int, window: Window, limit: float) -> None:
        """Record usage."""

    def delay(self, now: int, window: Window, limit: float) -> float:
        """Return the milliseconds until the usage is within the limit (per second); 0 if it is."""


@define
class _Sample:
    started_at: int
    last_at: int
    value: float = 0.0

    def reset(self, now: int) -> None:
        self.started_at = self.last_at = now
        self.value = 0.0


class Rate:
    """The usage per second, over all unexpired samples."""

    __slots__ = ("_current", "_samples")

    def __init__(self) -> None:
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, value: float, now: int, window: Window, limit: float) -> None:
        """Add to the current sample, or to a new one after its end. A negative value subtracts."""
        if not self._samples:
            self._samples.append(_Sample(now, now))
        elif now - self._samples[self._current].started_at >= window.ms:
            self._advance(now, window)
        sample = self._samples[self._current]
        sample.value += value
        sample.last_at = now

    def _advance(self, now: int, window: Window) -> None:
        # One more sample than the window has, because it may overlap the start of the window.
        self._current = (self._current + 1) % (window.samples + 1)
        if self._current == len(self._samples):
            self._samples.append(_Sample(now, now))
        else:
            self._samples[self._current].reset(now)

    def delay(self, now: int, window: Window, limit: float) -> float:
        """Return the milliseconds without usage until the rate falls to the limit."""
        span = self._span(now, window)
        value = sum(sample.value for sample in self._samples) / (span / _SECOND)
        return 0.0 if value <= limit else (value - limit) / limit * span

    def _span(self, now: int, window: Window) -> int:
        """Return the time span of the samples in milliseconds: at least all windows except the current one."""
        for sample in self._samples:
            if now - sample.last_at >= window.samples * window.ms:
                sample.reset(now)
        elapsed = now - min((sample.started_at for sample in self._samples), default=now)
        missing = window.samples - 1 - int(elapsed / window.ms)
        return max(elapsed + max(missing, 0) * window.ms, 1)


class TokenBucket:
    """A bucket whose tokens are refilled at the rate of the limit. It may be overdrawn."""

    __slots__ = ("_tokens", "_updated_at")

    def __init__(self) -> None:
        self._tokens = 0.0
        self._updated_at = 0

    def record(self, value: float, now: int, window: Window, limit: float) -> None:
        """Take tokens."""
        full = self._refill(now, window, limit)
        self._tokens = min(full, self._tokens - value)

    def delay(self, now: int, window: Window, limit: float) -> float:
        """Return the milliseconds until the bucket is no longer overdrawn."""
        self._refill(now, window, limit)
        return -self._tokens / limit * _SECOND if self._tokens < 0 else 0.0

    def _refill(self, now: int, window: Window, limit: float) -> float:
        full = window.samples * (window.ms / _SECOND) * limit
        self._tokens = min(full, self._tokens + limit * ((now - self._updated_at) / _SECOND))
        self._updated_at = now
        return full


QUOTAS: Final = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
"""The quotas of users and client ids."""

CONNECTIONS: Final = "connection_creation_rate"
"""The quota of addresses."""

UNLIMITED: Final = float(2**63 - 1)
"""The limit of a client without a quota."""


class _Default(Enum):
    DEFAULT = "<default>"


DEFAULT: Final = _Default.DEFAULT
ABSENT: Final = ""

_Name: TypeAlias = str | Literal[_Default.DEFAULT]
_Entity: TypeAlias = tuple[_Name, _Name]
QuotaKey: TypeAlias = tuple[str, str | None]
"""The key for measuring usage: a user and a client id. Either is empty if it is irrelevant."""


class QuotaLimits:
    """The limits of one quota type, by entity. ``active`` is True if any limit exists."""

    def __init__(self) -> None:
        self._limits: dict[_Entity, float] = {}
        self._kinds: Counter[tuple[bool, bool]] = Counter()

    @property
    def active(self) -> bool:
        """Whether any entity has this quota. Otherwise usage is not measured."""
        return bool(self._limits)

    def apply(self, record: ClientQuotaRecord) -> None:
        """Apply a quota record. Entity types other than users and client ids are ignored."""
        parts: dict[str, _Name] = {each.entity_type: each.entity_name or DEFAULT for each in record.entity}
        entity = parts.get("user", ABSENT), parts.get("client-id", ABSENT)
        if entity == (ABSENT, ABSENT):
            return
        kind = entity[0] != ABSENT, entity[1] != ABSENT
        if self._limits.pop(entity, None) is not None:
            self._kinds[kind] -= 1
        if not record.remove:
            self._limits[entity] = record.value
            self._kinds[kind] += 1

    def quota_key(self, user: str, client_id: str | None) -> QuotaKey:
        """Return the key under which a client's usage is measured."""
        kinds = set(+self._kinds)
        if kinds <= {(False, True)}:
            return ABSENT, client_id
        if kinds == {(True, False)}:
            return user, ABSENT
        if kinds == {(True, True)}:
            return user, client_id
        order: tuple[tuple[_Name, _Name | None], ...] = (
            (user, client_id),
            (user, DEFAULT),
            (user, ABSENT),
            (DEFAULT, client_id),
            (DEFAULT, DEFAULT),
            (DEFAULT, ABSENT),
        )
        for entity in order:
            if entity in self._limits:
                return user, ABSENT if entity[1] == ABSENT else client_id
        return ABSENT, client_id

    def limit(self, place: QuotaKey) -> float:
        """Return the limit of a key, per second."""
        user, client_id = place
        if client_id is None:
            return UNLIMITED
        users = (user, DEFAULT) if user else (ABSENT,)
        clients = (client_id, DEFAULT) if client_id else (ABSENT,)
        found = (self._limits.get((each, other)) for each in users for other in clients)
        return next((limit for limit in found if limit is not None), UNLIMITED)


class AddressLimits(QuotaLimits):
    """The limits of the address quota. Each address is measured separately (KIP-612)."""

    def apply(self, record: ClientQuotaRecord) -> None:
        """Apply a quota record. Entity types other than addresses are ignored."""
        names = [each.entity_name for each in record.entity if each.entity_type == "ip"]
        if not names:
            return
        entity = DEFAULT if names[0] is None else _address(names[0]), ABSENT
        self._limits.pop(entity, None)
        if not record.remove:
            self._limits[entity] = record.value

    def quota_key(self, user: str, client_id: str | None) -> QuotaKey:
        """Return the key under which an address is measured. ``client_id`` is ignored."""
        return _address(user), ABSENT


def _address(text: str) -> str:
    """Return the canonical form of an address. Host names other than ``localhost`` are not resolved."""
    try:
        return str(ip_address("127.0.0.1" if text == "localhost" else text))
    except ValueError:
        return text


_IDLE_MS: Final = 3_600_000
_MOST_PLACES: Final = 10_000


@define
class _Measured:
    stat: Stat
    used_at: int


class QuotaMeter:
    """The usage of one quota.

    Entries expire after an hour without use, and the oldest are evicted above 10,000 entries. ``longest`` is the
    maximum throttle time in milliseconds.
    """

    def __init__(
        self, limits: QuotaLimits, window: Window, new_stat: Callable[[], Stat] = Rate, *, longest: int = LONGEST
    ) -> None:
        self.limits = limits
        self._window = window
        self._new_stat = new_stat
        self._longest = longest
        self._measured: OrderedDict[QuotaKey, _Measured] = OrderedDict()

    def charge(self, user: str, client_id: str | None, value: float, now: int) -> int:
        """Add to a client's usage. Return its throttle time in ms, or 0 within its quota."""
        if not self.limits.active:
            return 0
        stat, limit = self._find(user, client_id, now)
        stat.record(value, now, self._window, limit)
        return self._delay(stat, limit, now)

    def admit(self, user: str, client_id: str | None, value: float, now: int) -> int:
        """Add to a client's usage unless it is throttled already. Return its throttle time in ms."""
        if not self.limits.active:
            return 0
        stat, limit = self._find(user, client_id, now)
        delay = self._delay(stat, limit, now)
        if not delay:
            stat.record(value, now, self._window, limit)
        return delay

    def open(self, address: str, now: int) -> int:
        """Record a new connection. If it is refused, return the delay in ms before it is closed."""
        if self.limits.limit(self.limits.quota_key(address, None)) == UNLIMITED:
            return 0
        delay = self.charge(address, None, 1, now)
        if delay:
            self.refund(address, None, 1, now)
        return delay

    def refund(self, user: str, client_id: str | None, value: float, now: int) -> None:
        """Subtract usage that a client was charged for but did not receive."""
        if self.limits.active:
            stat, limit = self._find(user, client_id, now)
            stat.record(-value, now, self._window, limit)

    def most_in_window(self, user: str, client_id: str | None) -> int:
        """Return the maximum usage of a client in one request without throttling."""
        limit = self.limits.limit(self.limits.quota_key(user, client_id)) if self.limits.active else UNLIMITED
        most = limit * (self._window.samples - 1) * (self._window.ms / 1000)
        return int(min(most, LONGEST))

    def _delay(self, stat: Stat, limit: float, now: int) -> int:
        """Return the throttle time, rounded."""
        delay = stat.delay(now, self._window, limit)
        return 0 if isnan(delay) else floor(min(delay, self._longest) + 0.5)

    def _find(self, user: str, client_id: str | None, now: int) -> tuple[Stat, float]:
        place = self.limits.quota_key(user, client_id)
        found = self._measured.get(place)
        if found is None:
            self._forget(now)
            found = self._measured[place] = _Measured(self._new_stat(), now)
        found.used_at = now
        self._measured.move_to_end(place)
        return found.stat, self.limits.limit(place)

    def _forget(self, now: int) -> None:
        while self._measured:
            oldest = next(iter(self._measured))
            if len(self._measured) < _MOST_PLACES and now - self._measured[oldest].used_at < _IDLE_MS:
                return
            del self._measured[oldest]


@frozen
class QuotaMeters:
    """The meters of one broker.

    The controller uses ``mutation``, and ``connection`` measures addresses.
    """

    produce: QuotaMeter
    fetch: QuotaMeter
    request: QuotaMeter
    mutation: QuotaMeter
    connection: QuotaMeter


class ClientQuotaManager:
    """The quotas of a cluster, with the sampling windows of the brokers and of the controller."""

    def __init__(self, broker: Window, controller: Window) -> None:
        self._windows = broker, controller
        self._limits = {name: QuotaLimits() for name in QUOTAS} | {CONNECTIONS: AddressLimits()}

    def follow(self, records: Iterable[MetadataRecord]) -> None:
        """Apply quota records."""
        for record in records:
            if isinstance(record, ClientQuotaRecord) and record.key in self._limits:
                self._limits[record.key].apply(record)

    def new_meters(self) -> QuotaMeters:
        """Return the meters of a starting broker."""
        produce, fetch, request, mutation = (self._limits[name] for name in QUOTAS)
        broker, controller = self._windows
        return QuotaMeters(
            produce=QuotaMeter(produce, broker),
            fetch=QuotaMeter(fetch, broker),
            request=QuotaMeter(request, broker, longest=broker.ms),
            mutation=QuotaMeter(mutation, controller, TokenBucket),
            connection=QuotaMeter(self._limits[CONNECTIONS], broker, longest=broker.ms),
        )
