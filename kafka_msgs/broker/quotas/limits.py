"""Which quota is for a client: the entities that have one, and which of them goes first.

Users and client ids have quotas alone and together, by name and by default. The order is that of KIP-55, as in Kafka's
``ClientQuotaManager``. Clients that share a quota share what is measured.
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
"""The limit of a client that no quota is for."""


class _Default(Enum):
    DEFAULT = "<default>"


DEFAULT: Final = _Default.DEFAULT
ABSENT: Final = ""

_Name: TypeAlias = str | Literal[_Default.DEFAULT]
_Entity: TypeAlias = tuple[_Name, _Name]
QuotaKey: TypeAlias = tuple[str, str | None]
"""What is measured together: a user and a client id. Either is empty if it does not matter."""


class QuotaLimits:
    """The limits of one quota, by entity. ``active`` tells whether there are any."""

    def __init__(self) -> None:
        self._limits: dict[_Entity, float] = {}
        self._kinds: Counter[tuple[bool, bool]] = Counter()

    @property
    def active(self) -> bool:
        """Whether any entity has this quota. If none has, nothing is measured."""
        return bool(self._limits)

    def apply(self, record: ClientQuotaRecord) -> None:
        """Take over what a record says. Entities of other types than users and client ids are ignored."""
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
        """Return the place at which the use of a client is counted."""
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
        """Return the limit of a place, per second."""
        user, client_id = place
        if client_id is None:
            return UNLIMITED
        users = (user, DEFAULT) if user else (ABSENT,)
        clients = (client_id, DEFAULT) if client_id else (ABSENT,)
        found = (self._limits.get((each, other)) for each in users for other in clients)
        return next((limit for limit in found if limit is not None), UNLIMITED)


class AddressLimits(QuotaLimits):
    """The limits of the quota of addresses: each address is measured by itself (KIP-612)."""

    def apply(self, record: ClientQuotaRecord) -> None:
        """Take over what a record says. Entities of other types than addresses are ignored."""
        names = [each.entity_name for each in record.entity if each.entity_type == "ip"]
        if not names:
            return
        entity = DEFAULT if names[0] is None else _address(names[0]), ABSENT
        self._limits.pop(entity, None)
        if not record.remove:
            self._limits[entity] = record.value

    def quota_key(self, user: str, client_id: str | None) -> QuotaKey:
        """Return the place at which the use of an address is counted. ``client_id`` does not matter."""
        return _address(user), ABSENT


def _address(text: str) -> str:
    """Return one form for all forms of an address. Names other than ``localhost`` are not looked up."""
    try:
        return str(ip_address("127.0.0.1" if text == "localhost" else text))
    except ValueError:
        return text
