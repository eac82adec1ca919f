"""Quota lookup for clients: quota entities and their precedence.

Users and client ids have quotas separately and together, by name and by default. The precedence is defined in KIP-55
and implemented as in Kafka's ``ClientQuotaManager``. Clients that share a quota share one meter.
"""

from __future__ import annotations

from collections import Counter
from enum import Enum
from ipaddress import ip_address
from typing import Final, Literal, TypeAlias

from kafka_msgs.messages.client_quota_record import ClientQuotaRecord

__all__ = ["CONNECTIONS", "QUOTAS", "UNLIMITED", "AddressLimits", "QuotaKey", "QuotaLimits"]

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
