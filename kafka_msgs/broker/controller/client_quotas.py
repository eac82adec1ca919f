"""Client quota changes as metadata records, and quota lookup by filter.

Checks, error codes and error messages match Kafka's ``ClientQuotaControlManager`` and ``ClientQuotasImage``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from ipaddress import ip_address
from typing import Final, TypeAlias

from kafka_msgs.broker.controller.image import MetadataImage
from kafka_msgs.enums import QuotaMatchType
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.messages.client_quota_record import ClientQuotaRecord, EntityData

__all__ = ["alter_quotas", "find_quotas"]

_invalid: Final = partial(RequestRefusedError, ErrorCode.INVALID_REQUEST)

Entity: TypeAlias = Mapping[str, str | None]
"""A quota entity: names by entity type. The name None is the default entity of its type."""
Change: TypeAlias = tuple[str, float | None]
"""A quota name and its new value; None removes the quota."""

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

_LARGEST: Final[Mapping[str, tuple[str, float]]] = {"LONG": ("LONG", 2**63 - 1), "INT": ("INT", 2**31 - 1)}
_OF_CLIENTS: Final = {
    "producer_byte_rate": "LONG",
    "consumer_byte_rate": "LONG",
    "request_percentage": "DOUBLE",
    "controller_mutation_rate": "DOUBLE",
}
_OF_ADDRESSES: Final = {"connection_creation_rate": "INT"}
"""The supported quotas of each entity kind, with their value types."""

_FRACTION: Final = 1e-6
_MOST_RECORDS: Final = 10_000


def alter_quotas(
    image: MetadataImage, asked: Iterable[tuple[Entity, Sequence[Change]]]
) -> tuple[list[ClientQuotaRecord], list[tuple[Entity, RequestRefusedError | None]]]:
    """Return the records that change quotas, and one result per entity: None, or the reason for its refusal.

    Raises ``RequestRefusedError`` with POLICY_VIOLATION for a request with too many changes.
    """
    records: list[ClientQuotaRecord] = []
    results: dict[frozenset[tuple[str, str | None]], tuple[Entity, RequestRefusedError | None]] = {}
    for entity, changes in asked:
        key, refused = frozenset(entity.items()), None
        try:
            if key in results or len({name for name, _ in changes}) < len(changes):
                raise _invalid(f"Ignoring duplicate entity {_text(entity)}")
            records += _changed(image, entity, changes)
        except RequestRefusedError as error:
            refused = error
        results[key] = entity, refused
        if len(records) > _MOST_RECORDS:
            message = "Unable to perform excessively large batch operation."
            raise RequestRefusedError(ErrorCode.POLICY_VIOLATION, message)
    return records, list(results.values())


def _changed(image: MetadataImage, entity: Entity, changes: Sequence[Change]) -> list[ClientQuotaRecord]:
    _check_entity(entity)
    allowed = _allowed(entity)
    present = image.quotas.get(frozenset(entity.items()), {})
    named = tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items())
    records = []
    for key, value in changes:
        if value is None:
            if key in present:
                records.append(ClientQuotaRecord(entity=named, key=key, remove=True))
            continue
        _check_value(allowed, key, value)
        if present.get(key) != value:
            records.append(ClientQuotaRecord(entity=named, key=key, value=value))
    return records


def _check_entity(entity: Entity) -> None:
    if not entity:
        raise _invalid("Invalid empty client quota entity")
    for kind, name in entity.items():
        if kind not in (USER, CLIENT_ID, IP):
            raise _invalid(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise _invalid(f"Empty {kind} not supported")


def _allowed(entity: Entity) -> Mapping[str, str]:
    """Return the quotas that an entity supports, with their value types."""
    if IP not in entity:
        return _OF_CLIENTS
    if len(entity) > 1:
        raise _invalid("Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId")
    address = entity[IP]
    if address is not None and not _is_address(address):
        raise _invalid(f"{address} is not a valid IP or resolvable host.")
    return _OF_ADDRESSES


def _is_address(text: str) -> bool:
    """Return whether a text is an address. Host names are not resolved, except this machine's own names."""
    try:
        ip_address(text)
    except ValueError:
        return text == "localhost"
    return True


def _check_value(allowed: Mapping[str, str], key: str, value: float) -> None:
    kind = allowed.get(key)
    if kind is None:
        raise _invalid(f"Invalid configuration key {key}")
    if value <= 0:
        raise _invalid(f"Quota {key} must be greater than 0")
    if kind in _LARGEST:
        name, largest = _LARGEST[kind]
        if value > largest:
            article = "an" if name == "INT" else "a"
            raise _invalid(f"Proposed value for {key} is too large for {article} {name}.")
        if math.fmod(value, 1.0) > _FRACTION:
            raise _invalid(f"{key} cannot be a fractional value.")


def find_quotas(
    image: MetadataImage, components: Iterable[tuple[str, int, str | None]], *, strict: bool
) -> Iterator[tuple[Entity, Mapping[str, float]]]:
    """Yield the entities that match all components (type, ``QuotaMatchType``, name), and their quotas.

    ``strict`` excludes entities that also have other types. Raises ``RequestRefusedError`` for an invalid filter.
    """
    names, kinds = _filter(components)
    for key, quotas in image.quotas.items():
        entity = dict(key)
        if strict and len(entity) != len(names) + len(kinds):
            continue
        if kinds <= entity.keys() and names.items() <= entity.items():
            yield entity, quotas


def _filter(components: Iterable[tuple[str, int, str | None]]) -> tuple[dict[str, str | None], set[str]]:
    """Return the names that a filter requires by type, and the types that match any name."""
    names: dict[str, str | None] = {}
    kinds: set[str] = set()
    for kind, match, name in components:
        if not kind:
            raise _invalid("Invalid empty entity type.")
        if kind in names or kind in kinds:
            raise _invalid(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in (USER, CLIENT_ID, IP):
            raise RequestRefusedError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        _check_match(match, name)
        if match == QuotaMatchType.ANY:
            kinds.add(kind)
        else:
            names[kind] = name
    found = names.keys() | kinds
    if IP in found and len(found) > 1:
        raise _invalid(
            "Invalid entity filter component combination. IP filter component should not be used with user or clientId "
            "filter component."
        )
    return names, kinds


def _check_match(match: int, name: str | None) -> None:
    if match == QuotaMatchType.EXACT:
        if name is None:
            raise _invalid("Request specified MATCH_TYPE_EXACT, but set match string to null.")
    elif match in (QuotaMatchType.DEFAULT, QuotaMatchType.ANY):
        if name is not None:
            word = "DEFAULT" if match == QuotaMatchType.DEFAULT else "SPECIFIED"
            raise _invalid(f"Request specified MATCH_TYPE_{word}, but also specified a match string.")
    else:
        raise _invalid(f"Unknown match type {match}")


def _text(entity: Entity) -> str:
    """Return an entity in Kafka's text format."""
    entries = ", ".join(f"{kind}={'null' if name is None else name}" for kind, name in sorted(entity.items()))
    return f"ClientQuotaEntity(entries={{{entries}}})"
