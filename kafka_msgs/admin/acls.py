"""Access control lists: create, describe, delete."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from kafka_msgs.admin.results import Results, api_name, no_value, outcomes, raise_top_level
from kafka_msgs.client.core import ClientCore
from kafka_msgs.client.flow import Flow
from kafka_msgs.enums import AclOperation, AclPermissionType, PatternType, ResourceType
from kafka_msgs.messages.create_acls_request import AclCreation, CreateAclsRequest
from kafka_msgs.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from kafka_msgs.messages.delete_acls_response import DeleteAclsFilterResult, DeleteAclsMatchingAcl
from kafka_msgs.messages.describe_acls_request import DescribeAclsRequest

__all__ = ["AclBinding", "AclFilter", "create_acls", "delete_acls", "describe_acls"]


@frozen
class AclBinding:
    """A rule that allows or denies a principal, from a host, an operation on a resource.

    ``principal`` has the form ``User:alice``; ``host`` is an address, or ``*`` for all. The numbers are members of
    ``ResourceType``, ``PatternType``, ``AclOperation`` and ``AclPermissionType``, or numbers of a later release.
    """

    resource_type: int
    resource_name: str
    principal: str
    operation: int
    permission: int = AclPermissionType.ALLOW
    host: str = "*"
    pattern_type: int = PatternType.LITERAL


@frozen
class AclFilter:
    """A filter for rules. A field that is not set matches every rule."""

    resource_type: int = ResourceType.ANY
    resource_name: str | None = None
    principal: str | None = None
    operation: int = AclOperation.ANY
    permission: int = AclPermissionType.ANY
    host: str | None = None
    pattern_type: int = PatternType.ANY


def describe_acls(
    client: ClientCore, acl_filter: AclFilter | None = None, *, timeout: float | None = None
) -> Flow[tuple[AclBinding, ...]]:
    """Return the rules that match a filter, or all rules."""
    wanted = acl_filter or AclFilter()
    request = DescribeAclsRequest(
        resource_type_filter=wanted.resource_type,
        resource_name_filter=wanted.resource_name,
        pattern_type_filter=wanted.pattern_type,
        principal_filter=wanted.principal,
        host_filter=wanted.host,
        operation=wanted.operation,
        permission_type=wanted.permission,
    )
    response = yield from client.call(request, deadline=client.deadline(timeout))
    raise_top_level(response, api_name(request))
    return tuple(
        AclBinding(
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            pattern_type=resource.pattern_type,
            principal=acl.principal,
            host=acl.host,
            operation=acl.operation,
            permission=acl.permission_type,
        )
        for resource in response.resources
        for acl in resource.acls
    )


def create_acls(
    client: ClientCore, acls: Sequence[AclBinding], *, timeout: float | None = None
) -> Flow[Results[AclBinding, None]]:
    """Create rules. A rule that exists already succeeds."""
    request = CreateAclsRequest(
        creations=tuple(
            AclCreation(
                resource_type=acl.resource_type,
                resource_name=acl.resource_name,
                resource_pattern_type=acl.pattern_type,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission,
            )
            for acl in acls
        )
    )
    response = yield from client.call(request, deadline=client.deadline(timeout))
    return outcomes(api_name(request), zip(acls, response.results, strict=False), no_value, acls)


def delete_acls(
    client: ClientCore, filters: Sequence[AclFilter], *, timeout: float | None = None
) -> Flow[Results[AclFilter, Results[AclBinding, None]]]:
    """Delete the rules that match filters. The value of each filter is the outcome of each matching rule."""
    request = DeleteAclsRequest(
        filters=tuple(
            DeleteAclsFilter(
                resource_type_filter=each.resource_type,
                resource_name_filter=each.resource_name,
                pattern_type_filter=each.pattern_type,
                principal_filter=each.principal,
                host_filter=each.host,
                operation=each.operation,
                permission_type=each.permission,
            )
            for each in filters
        )
    )
    response = yield from client.call(request, deadline=client.deadline(timeout))
    return outcomes(api_name(request), zip(filters, response.filter_results, strict=False), _deleted, filters)


def _deleted(result: DeleteAclsFilterResult) -> Results[AclBinding, None]:
    return outcomes("DeleteAcls", ((_matched(acl), acl) for acl in result.matching_acls), no_value)


def _matched(acl: DeleteAclsMatchingAcl) -> AclBinding:
    return AclBinding(
        resource_type=acl.resource_type,
        resource_name=acl.resource_name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission=acl.permission_type,
    )
