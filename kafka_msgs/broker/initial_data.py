"""Initial data of a cluster, as values or in a TOML file: topics, records, users, ACLs and committed offsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, field, frozen

from kafka_msgs.broker.config import BrokerConfig
from kafka_msgs.broker.object_parsing import parse_object
from kafka_msgs.enums import AclOperation, AclPermissionType, PatternType, ResourceType
from kafka_msgs.errors import OptionError
from kafka_msgs.validators import int_range

__all__ = ["InitialAcl", "InitialData", "InitialOffset", "InitialRecord", "InitialTopic", "parse_acl", "parse_topics"]


@frozen
class InitialTopic:
    """A topic. ``replicas`` is the replication factor; -1 selects the cluster default, as for ``partitions``."""

    name: str
    partitions: int = 1
    replicas: int = -1
    configs: Mapping[str, str] = field(factory=dict)


@frozen
class InitialRecord:
    """A record. ``timestamp`` is in milliseconds since the epoch and defaults to the start of the cluster."""

    topic: str
    value: bytes | None = None
    key: bytes | None = None
    partition: int = field(default=0, validator=int_range(0))
    headers: Mapping[str, bytes] = field(factory=dict)
    timestamp: int | None = None


@frozen
class InitialAcl:
    """An ACL. It allows ``principal``, for example ``User:alice``, an operation on a resource, from any host."""

    principal: str
    operation: AclOperation
    resource: ResourceType
    name: str
    pattern: PatternType = PatternType.LITERAL
    permission: AclPermissionType = AclPermissionType.ALLOW
    host: str = "*"


@frozen
class InitialOffset:
    """A committed offset of a group."""

    group: str
    topic: str
    offset: int
    partition: int = field(default=0, validator=int_range(0))
    metadata: str = ""


@frozen(kw_only=True)
class InitialData:
    """The data with which a cluster starts.

    ``users`` maps names to passwords. ACLs enable the authorizer. If a directory already contains a cluster, existing
    topics and ACLs remain unchanged, and records and offsets are not written.
    """

    topics: tuple[InitialTopic, ...] = ()
    records: tuple[InitialRecord, ...] = ()
    users: Mapping[str, str] = field(factory=dict, repr=False)
    acls: tuple[InitialAcl, ...] = ()
    offsets: tuple[InitialOffset, ...] = ()

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], source: str = "InitialData") -> InitialData:
        """Return the data in a dictionary, whose keys are attribute names. Raises ``OptionError``.

        Keys, values and headers of records are text, or ``{"hex": "00ff"}`` or ``{"base64": "AP8="}``.
        """
        return parse_object(cls, data, source)

    @classmethod
    def from_toml(cls, path: str | Path) -> InitialData:
        """Return the data in a TOML file. Raises ``OptionError``, including for a file that cannot be read."""
        import tomllib  # It is slow to import, and few programs need it.

        try:
            data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise OptionError(source="InitialData", option="file", value=str(path), reason=reason) from None
        return cls.from_dict(data, str(path))

    def merge(self, other: InitialData) -> InitialData:
        """Return the data of both."""
        return InitialData(
            topics=self.topics + other.topics,
            records=self.records + other.records,
            users={**self.users, **other.users},
            acls=self.acls + other.acls,
            offsets=self.offsets + other.offsets,
        )

    def configure(self, config: BrokerConfig) -> BrokerConfig:
        """Return a configuration with the users, and with the authorizer if there are ACLs."""
        users = {**config.users, **self.users}
        return evolve(config, users=users, authorizer=config.authorizer or bool(self.acls))


def parse_acl(text: str) -> InitialAcl:
    """Return the ACL in a text such as ``User:alice read topic:orders`` or ``deny User:bob all group:team-*``.

    A name that ends with ``*`` is a prefix, and ``*`` alone means all names. Raises ``OptionError``.
    """
    words = text.split()
    permission = words.pop(0) if words[:1] in (["allow"], ["deny"]) else "allow"
    try:
        principal, operation, resource = words
    except ValueError:
        reason = "the form is [allow|deny] PRINCIPAL OPERATION TYPE:NAME"
        raise OptionError(source="acl", option="acl", value=text, reason=reason) from None
    kind, _, name = resource.partition(":")
    prefixed = name.endswith("*") and name != "*"
    table = {
        "principal": principal,
        "operation": operation.replace("-", "_"),
        "resource": kind.replace("-", "_"),
        "name": name.removesuffix("*") if prefixed else name,
        "pattern": "prefixed" if prefixed else "literal",
        "permission": permission,
    }
    return parse_object(InitialAcl, table, "acl")


def parse_topics(texts: Sequence[str]) -> tuple[InitialTopic, ...]:
    """Return the topics in texts such as ``orders`` or ``orders:3``. Raises ``OptionError``."""
    return tuple(map(_parse_topic, texts))


def _parse_topic(text: str) -> InitialTopic:
    name, sign, partitions = text.partition(":")
    if not name or (sign and not partitions.isdecimal()):
        raise OptionError(source="topic", option="topic", value=text, reason="the form is NAME[:PARTITIONS]")
    return InitialTopic(name, int(partitions or 1))
