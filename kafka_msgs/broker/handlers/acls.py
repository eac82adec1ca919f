"""Create, describe and delete ACLs (KIP-140, KIP-290)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any, Final

from kafka_msgs.broker.call import CLUSTER_NAME, Call, Handler
from kafka_msgs.broker.security.acls import covers
from kafka_msgs.enums import AclOperation, AclPermission, PatternType, ResourceType
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RefusedError
from kafka_msgs.messages.access_control_entry_record import AccessControlEntryRecord
from kafka_msgs.messages.create_acls_request import AclCreation, CreateAclsRequest
from kafka_msgs.messages.create_acls_response import AclCreationResult, CreateAclsResponse
from kafka_msgs.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from kafka_msgs.messages.delete_acls_response import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsResponse,
)
from kafka_msgs.messages.describe_acls_request import DescribeAclsRequest
from kafka_msgs.messages.describe_acls_response import AclDescription, DescribeAclsResource, DescribeAclsResponse
from kafka_msgs.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord

__all__ = ["HANDLERS"]

_NAMED: Final = (PatternType.LITERAL, PatternType.PREFIXED)
_FACTS: Final = (
    "resource_type",
    "resource_name",
    "pattern_type",
    "principal",
    "host",
    "operation",
    "permission_type",
)


def _check(call: Call[Any], operation: AclOperation) -> None:
    if call.cluster.authorizer is None:
        message = "No Authorizer is configured on the broker"
        raise RefusedError(error=ErrorCode.SECURITY_DISABLED, message=message)
    call.require_cluster(operation)


def _create(call: Call[CreateAclsRequest]) -> None:
    _check(call, AclOperation.ALTER)
    call.answer(CreateAclsResponse(results=tuple(_created(call, each) for each in call.request.creations)))


def _created(call: Call[CreateAclsRequest], asked: AclCreation) -> AclCreationResult:
    reason = _reason(asked)
    if reason is not None:
        return AclCreationResult(error_code=ErrorCode.INVALID_REQUEST, error_message=reason)
    facts: dict[str, Any] = {
        "resource_type": asked.resource_type,
        "resource_name": asked.resource_name,
        "pattern_type": asked.resource_pattern_type,
        "principal": asked.principal,
        "host": asked.host,
        "operation": asked.operation,
        "permission_type": asked.permission_type,
    }
    image = call.cluster.image
    if not any(all(getattr(acl, name) == value for name, value in facts.items()) for acl in image.acls.values()):
        call.cluster.commit([AccessControlEntryRecord(id=call.cluster.new_id(), **facts)])
    return AclCreationResult(error_message=None)


def _reason(asked: AclCreation) -> str | None:
    """Why an ACL cannot be made, or None."""
    if asked.resource_type == ResourceType.CLUSTER and asked.resource_name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    if not asked.resource_name:
        return "Resource name should not be empty"
    if asked.resource_type not in list(ResourceType)[1:]:
        return "Invalid resourceType"
    if asked.resource_pattern_type not in _NAMED:
        return "Invalid patternType"
    if asked.operation not in list(AclOperation) or asked.operation <= AclOperation.ANY:
        return "Invalid operation"
    if asked.permission_type not in (AclPermission.ALLOW, AclPermission.DENY):
        return "Invalid permissionType"
    if ":" not in asked.principal:
        return f"Could not parse principal from `{asked.principal}` (no colon is present separating the principal type)"
    return None


def _matching(call: Call[Any], asked: DescribeAclsRequest | DeleteAclsFilter) -> Iterator[AccessControlEntryRecord]:
    """The ACLs that a filter finds. None and ``ANY`` find everything."""
    for acl in call.cluster.image.acls.values():
        if (
            asked.resource_type_filter in (ResourceType.ANY, acl.resource_type)
            and asked.principal_filter in (None, acl.principal)
            and asked.host_filter in (None, acl.host)
            and asked.operation in (AclOperation.ANY, acl.operation)
            and asked.permission_type in (AclPermission.ANY, acl.permission_type)
            and _names(asked, acl)
        ):
            yield acl


def _names(asked: DescribeAclsRequest | DeleteAclsFilter, acl: AccessControlEntryRecord) -> bool:
    name, kind = asked.resource_name_filter, asked.pattern_type_filter
    if kind in _NAMED and kind != acl.pattern_type:
        return False
    if name is None:
        return True
    return covers(acl, name) if kind == PatternType.MATCH else acl.resource_name == name


def _describe(call: Call[DescribeAclsRequest]) -> None:
    _check(call, AclOperation.DESCRIBE)
    found = sorted(_matching(call, call.request), key=_resource)
    resources = tuple(
        DescribeAclsResource(
            resource_type=kind,
            resource_name=name,
            pattern_type=pattern,
            acls=tuple(
                AclDescription(
                    principal=acl.principal,
                    host=acl.host,
                    operation=acl.operation,
                    permission_type=acl.permission_type,
                )
                for acl in acls
            ),
        )
        for (kind, name, pattern), acls in groupby(found, key=_resource)
    )
    call.answer(DescribeAclsResponse(error_message=None, resources=resources))


def _resource(acl: AccessControlEntryRecord) -> tuple[int, str, int]:
    return acl.resource_type, acl.resource_name, acl.pattern_type


def _delete(call: Call[DeleteAclsRequest]) -> None:
    _check(call, AclOperation.ALTER)
    found = [list(_matching(call, each)) for each in call.request.filters]
    ids = dict.fromkeys(acl.id for acls in found for acl in acls)
    call.cluster.commit(RemoveAccessControlEntryRecord(id=each) for each in ids)
    results = tuple(
        DeleteAclsFilterResult(error_message=None, matching_acls=tuple(_deleted(acl) for acl in acls)) for acls in found
    )
    call.answer(DeleteAclsResponse(filter_results=results))


def _deleted(acl: AccessControlEntryRecord) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(error_message=None, **{name: getattr(acl, name) for name in _FACTS})


HANDLERS: Final = (
    Handler(CreateAclsRequest, _create),
    Handler(DescribeAclsRequest, _describe),
    Handler(DeleteAclsRequest, _delete),
)
