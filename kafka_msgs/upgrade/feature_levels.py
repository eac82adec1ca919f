"""The feature levels that each Kafka release supports (KIP-584).

The facts come from ``MetadataVersion`` and ``Feature`` in Kafka's jars. A level that only tests enable is not listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafka_msgs.upgrade.release_versions import KafkaRelease
from kafka_msgs.versions import VersionRange

__all__ = ["FEATURE_LEVELS", "feature_levels"]

FEATURE_LEVELS: Final[Mapping[str, Mapping[str, str]]] = {
    "3.3": {"metadata.version": "1-7"},
    "3.4": {"metadata.version": "1-8"},
    "3.5": {"metadata.version": "1-11"},
    "3.6": {"metadata.version": "1-14"},
    "3.7": {"metadata.version": "1-19"},
    "3.8": {"metadata.version": "1-20"},
    "3.9": {"metadata.version": "1-21", "kraft.version": "0-1"},
    "4.0": {
        "metadata.version": "7-25",
        "kraft.version": "0-1",
        "transaction.version": "0-2",
        "group.version": "0-1",
        "eligible.leader.replicas.version": "0-1",
    },
    "4.1": {"metadata.version": "7-27", "share.version": "0-1"},
    "4.2": {"metadata.version": "7-29", "streams.version": "0-1"},
    "4.3": {"metadata.version": "7-30"},
    "4.4": {"metadata.version": "7-33", "share.version": "0-2"},
}
"""The supported levels by the first release with them. A release inherits the features of the previous one."""


def feature_levels(release: KafkaRelease) -> Mapping[str, VersionRange]:
    """Return the supported levels of each feature at a release; none before 3.3."""
    found: dict[str, VersionRange] = {}
    for since, levels in FEATURE_LEVELS.items():
        if KafkaRelease(tuple(map(int, since.split(".")))) <= release:
            found |= {name: VersionRange.parse(text) for name, text in levels.items()}
    return found
