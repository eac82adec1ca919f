"""ACLs: which client may do what, as Kafka's ``StandardAuthorizer`` decides.

A super user may do everything. Otherwise a rule that denies wins over those that allow, and without a rule for the
resource nothing is allowed, or everything if the cluster says so (``allow.everyone.if.no.acl.found``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from kafka_msgs.enums import AclOperation, AclPermission, PatternType, ResourceType
from kafka_msgs.messages.access_control_entry_record import AccessControlEntryRecord

if TYPE_CHECKING:
    from kafka_msgs.broker.call import Session
    from kafka_msgs.broker.cluster import Cluster

__all__ = ["AclAuthorizer", "covers"]

_Operation = AclOperation
_ANY: Final = "*"
_IMPLIED: Final[Mapping[AclOperation, frozenset[AclOperation]]] = {
    _Operation.DESCRIBE: frozenset({_Operation.READ, _Operation.WRITE, _Operation.DELETE, _Operation.ALTER}),
    _Operation.DESCRIBE_CONFIGS: frozenset({_Operation.ALTER_CONFIGS}),
}
"""Operations that are also allowed where one of others is."""


class AclAuthorizer:
    """Decides by the ACLs of the image. ``Cluster.authorizer`` is called as this is."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def __call__(self, session: Session, operation: AclOperation, kind: ResourceType, name: str) -> bool:
        """Return whether the client of a connection may do an operation on a resource."""
        principal, config = str(session.principal), self._cluster.config
        if principal in config.super_users:
            return True
        rules = [acl for acl in self._cluster.image.acls.values() if acl.resource_type == kind and covers(acl, name)]
        if not rules:
            return config.allow_everyone
        mine = [acl for acl in rules if _concerns(acl, principal, session.client_host.lstrip("/"))]
        denied, allowed = _split(mine)
        if any(each in (operation, _Operation.ALL) for each in denied):
            return False
        return not {operation, _Operation.ALL, *_IMPLIED.get(operation, ())}.isdisjoint(allowed)


def covers(acl: AccessControlEntryRecord, name: str) -> bool:
    """Return whether an ACL is about the resource of that name."""
    if acl.pattern_type == PatternType.PREFIXED:
        return name.startswith(acl.resource_name)
    return acl.resource_name in (_ANY, name)


def _concerns(acl: AccessControlEntryRecord, principal: str, host: str) -> bool:
    return acl.principal in (principal, "User:*") and acl.host in (_ANY, host)


def _split(acls: list[AccessControlEntryRecord]) -> tuple[set[int], set[int]]:
    """The operations that rules deny, and those that they allow."""
    denied = {acl.operation for acl in acls if acl.permission_type == AclPermission.DENY}
    return denied, {acl.operation for acl in acls if acl.permission_type == AclPermission.ALLOW}
