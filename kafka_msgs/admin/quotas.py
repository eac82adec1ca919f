"""Client quotas (KIP-546)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from attrs import frozen

from kafka_msgs.admin.results import Results, api_name, no_value, outcomes, raise_top_level
from kafka_msgs.client.core import ClientCore
from kafka_msgs.client.flow import Flow
from kafka_msgs.enums import QuotaMatchType
from kafka_msgs.messages import alter_client_quotas_request as alter
from kafka_msgs.messages import describe_client_quotas_request as describe

__all__ = ["ANY_NAME", "QuotaEntity", "alter_client_quotas", "describe_client_quotas"]

QuotaEntity: TypeAlias = frozenset[tuple[str, str | None]]
"""The entity of a quota: pairs of type (``user``, ``client-id``, ``ip``) and name. None is the type's default."""


@frozen
class _AnyName:
    """Every name of a type of entity."""


ANY_NAME = _AnyName()
"""In a filter: every name of the type, and its default."""


def describe_client_quotas(
    client: ClientCore,
    entity: Mapping[str, str | _AnyName | None] | None = None,
    *,
    strict: bool = False,
    timeout: float | None = None,
) -> Flow[dict[QuotaEntity, dict[str, float]]]:
    """Return the quotas of the entities that match a filter, or all quotas.

    The filter has the name of each type, None for the default of the type, or ``ANY_NAME``. ``strict`` excludes
    entities with additional types.
    """
    request = describe.DescribeClientQuotasRequest(
        components=tuple(_component(kind, name) for kind, name in (entity or {}).items()), strict=strict
    )
    response = yield from client.call(request, deadline=client.deadline(timeout))
    raise_top_level(response, api_name(request))
    return {
        frozenset((part.entity_type, part.entity_name) for part in entry.entity): {
            value.key: value.value for value in entry.values
        }
        for entry in response.entries or ()
    }


def _component(kind: str, name: str | _AnyName | None) -> describe.ComponentData:
    if isinstance(name, str):
        return describe.ComponentData(entity_type=kind, match_type=QuotaMatchType.EXACT, match=name)
    match = QuotaMatchType.DEFAULT if name is None else QuotaMatchType.ANY
    return describe.ComponentData(entity_type=kind, match_type=match, match=None)


def alter_client_quotas(
    client: ClientCore,
    quotas: Mapping[QuotaEntity, Mapping[str, float | None]],
    *,
    validate_only: bool = False,
    timeout: float | None = None,
) -> Flow[Results[QuotaEntity, None]]:
    """Set quotas of entities by name, such as ``consumer_byte_rate`` (bytes per second); None removes a quota."""
    request = alter.AlterClientQuotasRequest(
        entries=tuple(
            alter.EntryData(
                entity=tuple(alter.EntityData(entity_type=kind, entity_name=name) for kind, name in entity),
                ops=tuple(
                    alter.OpData(key=key, value=value or 0.0, remove=value is None) for key, value in values.items()
                ),
            )
            for entity, values in quotas.items()
        ),
        validate_only=validate_only,
    )
    response = yield from client.call(request, deadline=client.deadline(timeout))
    items = (
        (frozenset((part.entity_type, part.entity_name) for part in entry.entity), entry) for entry in response.entries
    )
    return outcomes(api_name(request), items, no_value, quotas)
