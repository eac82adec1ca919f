"""DescribeClientQuotas and AlterClientQuotas (KIP-546)."""

from __future__ import annotations

from typing import Final

from kafka_msgs.broker.controller.client_quotas import alter_quotas, find_quotas
from kafka_msgs.broker.server_call import ApiHandler, ServerCall
from kafka_msgs.enums import AclOperation
from kafka_msgs.messages import alter_client_quotas_response as altered
from kafka_msgs.messages import describe_client_quotas_response as described
from kafka_msgs.messages.alter_client_quotas_request import AlterClientQuotasRequest
from kafka_msgs.messages.describe_client_quotas_request import DescribeClientQuotasRequest

__all__ = ["HANDLERS"]


def _describe(call: ServerCall[DescribeClientQuotasRequest]) -> None:
    call.require_cluster(AclOperation.DESCRIBE_CONFIGS)
    components = [(each.entity_type, each.match_type, each.match) for each in call.request.components]
    found = find_quotas(call.cluster.image, components, strict=call.request.strict)
    entries = tuple(
        described.EntryData(
            entity=tuple(described.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()),
            values=tuple(described.ValueData(key=key, value=value) for key, value in quotas.items()),
        )
        for entity, quotas in found
    )
    call.respond(described.DescribeClientQuotasResponse(entries=entries))


def _alter(call: ServerCall[AlterClientQuotasRequest]) -> None:
    call.require_cluster(AclOperation.ALTER_CONFIGS)
    asked = [
        (
            {part.entity_type: part.entity_name for part in entry.entity},
            [(op.key, None if op.remove else op.value) for op in entry.ops],
        )
        for entry in call.request.entries
    ]
    records, results = alter_quotas(call.cluster.image, asked)
    if records and not call.request.validate_only:
        call.cluster.commit(records)
    entries = tuple(
        altered.EntryData(
            error_code=refused.error if refused else 0,
            error_message=refused.message if refused else None,
            entity=tuple(altered.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()),
        )
        for entity, refused in results
    )
    call.respond(altered.AlterClientQuotasResponse(entries=entries))


HANDLERS: Final = (
    ApiHandler(DescribeClientQuotasRequest, _describe),
    ApiHandler(AlterClientQuotasRequest, _alter),
)
