"""ACL authorization, with the rules of Kafka's ``StandardAuthorizer``.

Super users may do everything. For other users, a DENY rule overrides ALLOW rules. Without a rule for the resource,
everything is denied, unless ``allow.everyone.if.no.acl.found`` is set.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final, TypeAlias
from uuid import UUID

from kafka_msgs.broker.client_session import ClientSession
from kafka_msgs.broker.cluster_services import ClusterServices
from kafka_msgs.broker.controller.image import MetadataDelta
from kafka_msgs.enums import AclOperation, AclPermissionType, PatternType, ResourceType
from kafka_msgs.messages.access_control_entry_record import AccessControlEntryRecord
from kafka_msgs.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord

__all__ = ["AclAuthorizer", "AclIndex", "matches_resource"]

_Operation = AclOperation
_ANY: Final = "*"
_Pattern: TypeAlias = tuple[int, bool, str]
"""The resource pattern of ACLs: the resource type, whether the name is a prefix, and the name."""

_IMPLIED: Final[Mapping[AclOperation, frozenset[AclOperation]]] = {
    _Operation.DESCRIBE: frozenset({_Operation.READ, _Operation.WRITE, _Operation.DELETE, _Operation.ALTER}),
    _Operation.DESCRIBE_CONFIGS: frozenset({_Operation.ALTER_CONFIGS}),
}
"""Operations that other allowed operations imply."""


class AclIndex:
    """ACLs by resource pattern. The lookup time is independent of the number of ACLs for other resources."""

    def __init__(self) -> None:
        self._by_id: dict[UUID, AccessControlEntryRecord] = {}
        self._by_pattern: dict[_Pattern, dict[UUID, AccessControlEntryRecord]] = {}
        self._prefix_lengths: Counter[int] = Counter()

    def add(self, acl: AccessControlEntryRecord) -> None:
        """Add an ACL."""
        self.remove(acl.id)
        self._by_id[acl.id] = acl
        self._by_pattern.setdefault(_pattern(acl), {})[acl.id] = acl
        if acl.pattern_type == PatternType.PREFIXED:
            self._prefix_lengths[len(acl.resource_name)] += 1

    def remove(self, acl_id: UUID) -> None:
        """Remove an ACL, if it exists."""
        acl = self._by_id.pop(acl_id, None)
        if acl is None:
            return
        pattern = _pattern(acl)
        del self._by_pattern[pattern][acl_id]
        if not self._by_pattern[pattern]:
            del self._by_pattern[pattern]
        if acl.pattern_type == PatternType.PREFIXED:
            length = len(acl.resource_name)
            self._prefix_lengths[length] -= 1
            if not self._prefix_lengths[length]:
                del self._prefix_lengths[length]

    def about(self, kind: int, name: str) -> list[AccessControlEntryRecord]:
        """Return the ACLs for a resource: with its name, with a prefix of it, or with the wildcard."""
        patterns: list[_Pattern] = [(kind, False, each) for each in {name, _ANY}]
        patterns += [(kind, True, name[:length]) for length in self._prefix_lengths if length <= len(name)]
        return [acl for each in patterns for acl in self._by_pattern.get(each, {}).values()]


def _pattern(acl: AccessControlEntryRecord) -> _Pattern:
    return acl.resource_type, acl.pattern_type == PatternType.PREFIXED, acl.resource_name


class AclAuthorizer:
    """The authorizer that follows the ACLs of the image. It is called as ``Cluster.authorizer``."""

    def __init__(self, cluster: ClusterServices) -> None:
        self._config = cluster.config
        self._acls = AclIndex()
        cluster.image_listeners.append(self._follow)

    def _follow(self, delta: MetadataDelta) -> None:
        for record in delta.records:
            if isinstance(record, AccessControlEntryRecord):
                self._acls.add(record)
            elif isinstance(record, RemoveAccessControlEntryRecord):
                self._acls.remove(record.id)

    def __call__(self, session: ClientSession, operation: AclOperation, kind: ResourceType, name: str) -> bool:
        """Return whether the client of a session may perform an operation on a resource."""
        principal, config = str(session.principal), self._config
        if principal in config.super_users:
            return True
        rules = self._acls.about(kind, name)
        if not rules:
            return config.allow_everyone
        mine = [acl for acl in rules if _concerns(acl, principal, session.client_host.lstrip("/"))]
        denied, allowed = _split(mine)
        if any(each in (operation, _Operation.ALL) for each in denied):
            return False
        return not {operation, _Operation.ALL, *_IMPLIED.get(operation, ())}.isdisjoint(allowed)


def matches_resource(acl: AccessControlEntryRecord, name: str) -> bool:
    """Return whether an ACL matches the resource with this name."""
    if acl.pattern_type == PatternType.PREFIXED:
        return name.startswith(acl.resource_name)
    return acl.resource_name in (_ANY, name)


def _concerns(acl: AccessControlEntryRecord, principal: str, host: str) -> bool:
    return acl.principal in (principal, "User:*") and acl.host in (_ANY, host)


def _split(acls: list[AccessControlEntryRecord]) -> tuple[set[int], set[int]]:
    """Return the denied operations and the allowed operations."""
    denied = {acl.operation for acl in acls if acl.permission_type == AclPermissionType.DENY}
    return denied, {acl.operation for acl in acls if acl.permission_type == AclPermissionType.ALLOW}
