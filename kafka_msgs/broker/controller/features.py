"""The features of the release (KIP-584): their levels, and those that a new cluster starts at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafka_msgs.versions import VersionRange

__all__ = ["METADATA_VERSION", "STARTING_FEATURES", "SUPPORTED_FEATURES"]

METADATA_VERSION: Final = "metadata.version"
"""The feature that says which records the metadata log may have."""

SUPPORTED_FEATURES: Final[Mapping[str, VersionRange]] = {
    METADATA_VERSION: VersionRange(7, 33),
    "kraft.version": VersionRange(0, 1),
    "transaction.version": VersionRange(0, 2),
    "group.version": VersionRange(0, 1),
    "eligible.leader.replicas.version": VersionRange(0, 1),
    "share.version": VersionRange(0, 2),
    "streams.version": VersionRange(0, 1),
}
"""The levels that brokers of Kafka 4.4.0 have."""

STARTING_FEATURES: Final[Mapping[str, int]] = {name: levels.highest for name, levels in SUPPORTED_FEATURES.items()}
"""The levels of a cluster that was formatted by Kafka 4.4.0."""
