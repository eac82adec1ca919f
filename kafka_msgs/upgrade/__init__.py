"""Upgrade checks: clients and files that prevent an upgrade of a cluster, and brokers that a client release supports.

``release_versions`` contains the API versions of each release, and ``feature_levels`` the features. ``client_usage``
counts the versions that clients send, and ``cluster_files`` reads log directories. ``upgrade_check`` judges both for a
target release, and ``client_check`` compares a client release with a broker release. ``reports`` builds the tables. The
facts come from Kafka's definitions; the sources of the rules are KIP-896, KIP-724 and KIP-584.
"""

from kafka_msgs.upgrade.client_check import ApiSupport, check_client_release
from kafka_msgs.upgrade.client_usage import ClientUsage, FormatUse, VersionUse
from kafka_msgs.upgrade.cluster_files import ClusterFiles, read_cluster_files
from kafka_msgs.upgrade.release_versions import KafkaRelease, api_versions, known_releases, parse_release
from kafka_msgs.upgrade.upgrade_check import (
    FileFinding,
    FormatFinding,
    UpgradeCheck,
    Verdict,
    VersionFinding,
    check_upgrade,
)

__all__ = [
    "ApiSupport",
    "ClientUsage",
    "ClusterFiles",
    "FileFinding",
    "FormatFinding",
    "FormatUse",
    "KafkaRelease",
    "UpgradeCheck",
    "Verdict",
    "VersionFinding",
    "VersionUse",
    "api_versions",
    "check_client_release",
    "check_upgrade",
    "known_releases",
    "parse_release",
    "read_cluster_files",
]
