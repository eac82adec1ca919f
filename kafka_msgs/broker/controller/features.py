"""The features of the release (KIP-584): supported levels, and initial levels of a new cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafka_msgs.versions import VersionRange

__all__ = ["METADATA_VERSION", "STARTING_FEATURES", "SUPPORTED_FEATURES"]

METADATA_VERSION: Final = "metadata.version"
"""The feature that determines the record versions of the metadata log."""

SUPPORTED_FEATURES: Final[Mapping[str, VersionRange]] = {
    METADATA_VERSION: VersionRange(7, 33),
    "kraft.version": VersionRange(0, 1),
    "transaction.version": VersionRange(0, 2),
    "group.version": VersionRange(0, 1),
    "eligible.leader.replicas.version": VersionRange(0, 1),
    "share.version": VersionRange(0, 2),
    "streams.version": VersionRange(0, 1),
}
"""The feature levels that Kafka 4.4.0 supports."""

STARTING_FEATURES: Final[Mapping[str, int]] = {
    name: levels.highest for name, levels in SUPPORTED_FEATURES.items() if name != "kraft.version"
}
"""The feature levels of a cluster formatted by Kafka 4.4.0. Its voters are static, so ``kraft.version`` is 0."""
