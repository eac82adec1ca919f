"""The APIs that a client release and a broker release have in common.

A client and a broker understand each other if each API that the client needs has a common version (KIP-35). This may
hold for pairs of releases without documented support: KIP-896 limits the support between 4.0 and releases before 2.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import frozen

from kafka_msgs.upgrade.release_versions import KafkaRelease, api_name, api_versions
from kafka_msgs.versions import NONE, VersionRange

__all__ = ["ApiSupport", "check_client_release", "is_documented"]

_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "producer": ("Produce", "Metadata", "ApiVersions"),
    "transactions": ("InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn", "TxnOffsetCommit"),
    "consumer": (
        "Fetch", "ListOffsets", "Metadata", "ApiVersions", "FindCoordinator", "JoinGroup", "SyncGroup", "Heartbeat",
        "LeaveGroup", "OffsetCommit", "OffsetFetch",
    ),
    "login": ("SaslHandshake", "SaslAuthenticate"),
}  # fmt: skip
"""The APIs that a kind of use needs. All others belong to the admin client, to newer groups or to brokers."""


_STRICT: Final = KafkaRelease((4, 0))
_OLDEST_SUPPORTED: Final = KafkaRelease((2, 1))


@frozen
class ApiSupport:
    """An API of a client release: the versions of both sides, and the highest common one.

    ``common`` is None if no version is common; ``needed_by`` lists the kinds of use that then fail.
    """

    api_key: int
    api: str
    client: VersionRange
    broker: VersionRange
    common: int | None
    needed_by: tuple[str, ...]

    @property
    def blocked(self) -> bool:
        """Whether a kind of use fails."""
        return self.common is None and bool(self.needed_by)


def check_client_release(client: KafkaRelease, broker: KafkaRelease) -> tuple[ApiSupport, ...]:
    """Return the support of each API of a client release by a broker release, by API key."""
    offered = api_versions(broker)
    return tuple(
        _support(key, versions, offered.get(key, NONE)) for key, versions in sorted(api_versions(client).items())
    )


def is_documented(client: KafkaRelease, broker: KafkaRelease) -> bool:
    """Return whether Kafka documents support for the pair: both are older than 4.0, or at least 2.1."""
    older, newer = sorted((client, broker))
    return newer < _STRICT or older >= _OLDEST_SUPPORTED


def _support(key: int, client: VersionRange, broker: VersionRange) -> ApiSupport:
    common, name = client.intersect(broker), api_name(key)
    uses = tuple(use for use, apis in _NEEDED.items() if name in apis)
    return ApiSupport(key, name, client, broker, None if common.empty else common.highest, uses)
