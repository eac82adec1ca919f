"""The named numbers and words of the protocol: types and states of groups, resources, operations, sources.

A broker of a later release may send unknown words and numbers. Unknown words become ``UNKNOWN``; unknown numbers stay
plain integers, which can be compared with the members here.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Self

__all__ = [
    "AclOperation",
    "AclPermissionType",
    "AlterConfigOp",
    "ConfigResourceType",
    "ConfigSource",
    "ConfigType",
    "ElectionType",
    "GroupState",
    "GroupType",
    "PatternType",
    "QuotaMatchType",
    "ResourceType",
    "ScramMechanism",
    "UpgradeType",
    "decode_authorized_operations",
]


class _Word(StrEnum):
    """A word of the protocol. Parsing ignores case, spaces, hyphens and underscores."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the member with a name, or ``UNKNOWN``."""
        wanted = _plain(text)
        return next((member for member in cls if _plain(member) == wanted), cls("Unknown"))


def _plain(text: str) -> str:
    return text.translate({ord(" "): None, ord("_"): None, ord("-"): None}).lower()


class GroupType(_Word):
    """The type of a group (KIP-848, KIP-932, KIP-1071). ``str`` returns Kafka's spelling, such as ``Streams``."""

    UNKNOWN = "Unknown"
    CLASSIC = "Classic"
    CONSUMER = "Consumer"
    SHARE = "Share"
    STREAMS = "Streams"


class GroupState(_Word):
    """The state of a group. ``PREPARING_REBALANCE`` and ``COMPLETING_REBALANCE`` are states of classic groups only.

    ``ASSIGNING`` and ``RECONCILING`` are states of consumer and streams groups, ``NOT_READY`` of streams groups only.
    """

    UNKNOWN = "Unknown"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"
    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    NOT_READY = "NotReady"


class ConfigResourceType(IntEnum):
    """The resource types with configurations. ``CLIENT_METRICS`` is a client metrics subscription (KIP-714)."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigSource(IntEnum):
    """The source of a configuration value."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


class ConfigType(IntEnum):
    """The type of a configuration value."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class AlterConfigOp(IntEnum):
    """The operation on a configuration. ``APPEND`` and ``SUBTRACT`` are for lists."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ResourceType(IntEnum):
    """The resource type of an ACL. ``ANY`` is for filters only."""

    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """The interpretation of an ACL's resource name. ``ANY`` and ``MATCH`` are for filters only."""

    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(IntEnum):
    """The operation that an ACL allows or denies. ``ANY`` is for filters only."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclPermissionType(IntEnum):
    """Whether an ACL denies or allows. ``ANY`` is for filters only."""

    ANY = 1
    DENY = 2
    ALLOW = 3


class ElectionType(IntEnum):
    """The type of a leader election: the preferred replica, or any replica, with a possible loss of records."""

    PREFERRED = 0
    UNCLEAN = 1


class ScramMechanism(IntEnum):
    """The mechanism of SCRAM credentials."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2


class UpgradeType(IntEnum):
    """The allowed change of a feature level. An unsafe downgrade may lose metadata."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class QuotaMatchType(IntEnum):
    """The comparison of entity names in a quota filter."""

    EXACT = 0
    DEFAULT = 1
    ANY = 2


_NOT_ASKED = -(2**31)
_OPERATIONS = {operation.value for operation in AclOperation}


def decode_authorized_operations(bits: int) -> frozenset[AclOperation] | None:
    """Return the operations in the bits of a response, or None if they were not requested."""
    if bits == _NOT_ASKED:
        return None
    numbers = [number for number in range(32) if bits >> number & 1]
    return frozenset(AclOperation(each if each in _OPERATIONS else AclOperation.UNKNOWN) for each in numbers)
