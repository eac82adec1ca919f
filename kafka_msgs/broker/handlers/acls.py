"""CreateAcls, DescribeAcls and DeleteAcls (KIP-140, KIP-290)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from itertools import groupby
from typing import Any, Final

from attrs import evolve

from kafka_msgs.broker.security.acls import matches_resource
from kafka_msgs.broker.server_call import CLUSTER_NAME, ApiHandler, ServerCall
from kafka_msgs.broker.struct_copies import copy_as
from kafka_msgs.enums import AclOperation, AclPermissionType, PatternType, ResourceType
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
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
from kafka_msgs.schema import ZERO_UUID

__all__ = ["HANDLERS"]

_NAMED: Final = (PatternType.LITERAL, PatternType.PREFIXED)
_UNKNOWN: Final = 0
"""The number of an unknown resource type, pattern type, operation or permission."""


def _is_unknown(asked: AclCreation | DescribeAclsRequest | DeleteAclsFilter) -> bool:
    """Return whether one of the numbers is UNKNOWN. Kafka cannot parse such a request and closes the connection."""
    if isinstance(asked, AclCreation):
        kinds = asked.resource_type, asked.resource_pattern_type
    else:
        kinds = asked.resource_type_filter, asked.pattern_type_filter
    return _UNKNOWN in (*kinds, asked.operation, asked.permission_type)


def _is_filter(asked: AclCreation) -> bool:
    """Return whether an ACL to create has a value that is only valid in filters. Kafka fails to create such an ACL."""
    kinds = asked.resource_type, asked.operation, asked.permission_type
    return ResourceType.ANY in kinds or asked.resource_pattern_type in (PatternType.ANY, PatternType.MATCH)


def _begin(call: ServerCall[Any], asked: Iterable[Any], operation: AclOperation) -> bool:
    """Check the values and the permission of a request. Return False if the connection is closed instead."""
    if any(map(_is_unknown, asked)):
        call.disconnect()
        return False
    if call.cluster.authorizer is None:
        raise RequestRefusedError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured on the broker")
    call.require_cluster(operation)
    return True


def _create(call: ServerCall[CreateAclsRequest]) -> None:
    if not _begin(call, call.request.creations, AclOperation.ALTER):
        return
    if any(map(_is_filter, call.request.creations)):
        raise RequestRefusedError(ErrorCode.UNKNOWN_SERVER_ERROR)
    known = {evolve(acl, id=ZERO_UUID) for acl in call.cluster.image.acls.values()}
    call.respond(CreateAclsResponse(results=tuple(_created(call, each, known) for each in call.request.creations)))


def _created(
    call: ServerCall[CreateAclsRequest], asked: AclCreation, known: set[AccessControlEntryRecord]
) -> AclCreationResult:
    """Create an ACL, unless ``known`` contains an identical one."""
    reason = _reason(asked)
    if reason is not None:
        return AclCreationResult(error_code=ErrorCode.INVALID_REQUEST, error_message=reason)
    pattern = asked.resource_pattern_type
    acl = copy_as(AccessControlEntryRecord, asked, id=call.cluster.new_id(), pattern_type=pattern)
    if evolve(acl, id=ZERO_UUID) not in known:
        known.add(evolve(acl, id=ZERO_UUID))
        call.cluster.commit([acl])
    return AclCreationResult()


def _reason(asked: AclCreation) -> str | None:
    """Return the reason why an ACL cannot be created, or None."""
    if asked.resource_type == ResourceType.CLUSTER and asked.resource_name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    if not asked.resource_name:
        return "Invalid empty resource name"
    if asked.resource_type not in list(ResourceType)[1:]:
        return f"Invalid resourceType {_name(ResourceType, asked.resource_type)}"
    if asked.resource_pattern_type not in _NAMED:
        return f"Invalid patternType {_name(PatternType, asked.resource_pattern_type)}"
    if asked.operation not in list(AclOperation) or asked.operation <= AclOperation.ANY:
        return f"Invalid operation {_name(AclOperation, asked.operation)}"
    if asked.permission_type not in (AclPermissionType.ALLOW, AclPermissionType.DENY):
        return f"Invalid permissionType {_name(AclPermissionType, asked.permission_type)}"
    if ":" not in asked.principal:
        reason = "no colon is present separating the principal type from the principal name"
        return f"Could not parse principal from `{asked.principal}` ({reason})"
    if not asked.host:
        return "Host pattern cannot be null or empty"
    return None


def _name(numbers: type[IntEnum], value: int) -> str:
    return numbers(value).name if value in list(numbers) else "UNKNOWN"


def _matching(
    call: ServerCall[Any], asked: DescribeAclsRequest | DeleteAclsFilter
) -> Iterator[AccessControlEntryRecord]:
    """Return the ACLs that match a filter. None and ``ANY`` match everything."""
    for acl in call.cluster.image.acls.values():
        if (
            asked.resource_type_filter in (ResourceType.ANY, acl.resource_type)
            and asked.principal_filter in (None, acl.principal)
            and asked.host_filter in (None, acl.host)
            and asked.operation in (AclOperation.ANY, acl.operation)
            and asked.permission_type in (AclPermissionType.ANY, acl.permission_type)
            and _names(asked, acl)
        ):
            yield acl


def _names(asked: DescribeAclsRequest | DeleteAclsFilter, acl: AccessControlEntryRecord) -> bool:
    name, kind = asked.resource_name_filter, asked.pattern_type_filter
    if kind in _NAMED and kind != acl.pattern_type:
        return False
    if name is None:
        return True
    return matches_resource(acl, name) if kind == PatternType.MATCH else acl.resource_name == name


def _describe(call: ServerCall[DescribeAclsRequest]) -> None:
    if not _begin(call, (call.request,), AclOperation.DESCRIBE):
        return
    found = sorted(_matching(call, call.request), key=_resource)
    resources = tuple(
        DescribeAclsResource(
            resource_type=kind,
            resource_name=name,
            pattern_type=pattern,
            acls=tuple(copy_as(AclDescription, acl) for acl in acls),
        )
        for (kind, name, pattern), acls in groupby(found, key=_resource)
    )
    call.respond(DescribeAclsResponse(resources=resources))


def _resource(acl: AccessControlEntryRecord) -> tuple[int, str, int]:
    return acl.resource_type, acl.resource_name, acl.pattern_type


def _delete(call: ServerCall[DeleteAclsRequest]) -> None:
    if not _begin(call, call.request.filters, AclOperation.ALTER):
        return
    found = [(_wrong_filter(each), list(_matching(call, each))) for each in call.request.filters]
    ids = dict.fromkeys(acl.id for reason, acls in found if reason is None for acl in acls)
    call.cluster.commit(RemoveAccessControlEntryRecord(id=each) for each in ids)
    call.respond(DeleteAclsResponse(filter_results=tuple(_filter_result(*each) for each in found)))


def _wrong_filter(asked: DeleteAclsFilter) -> str | None:
    """Return the reason why a filter is invalid for deletion, or None."""
    if asked.resource_type_filter not in list(ResourceType) or asked.pattern_type_filter not in list(PatternType):
        return "Unknown patternFilter."
    if asked.operation not in list(AclOperation) or asked.permission_type not in list(AclPermissionType):
        return "Unknown entryFilter."
    return None


def _filter_result(reason: str | None, acls: list[AccessControlEntryRecord]) -> DeleteAclsFilterResult:
    if reason is not None:
        return DeleteAclsFilterResult(error_code=ErrorCode.INVALID_REQUEST, error_message=reason)
    matching = tuple(copy_as(DeleteAclsMatchingAcl, acl, error_message=None) for acl in acls)
    return DeleteAclsFilterResult(error_message=None, matching_acls=matching)


HANDLERS: Final = (
    ApiHandler(CreateAclsRequest, _create),
    ApiHandler(DescribeAclsRequest, _describe),
    ApiHandler(DeleteAclsRequest, _delete),
)
