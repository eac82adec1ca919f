"""The judgement of clients and files for an upgrade of a cluster to a target release.

A request version that the target lacks blocks the upgrade for its client (KIP-896 removed most of them). It is unclear
if the current broker offers no later version: the client may support one. A version that is newer than the target is
unclear after a negotiation, which would find an older one. Versions of ApiVersions never block, because
brokers answer unsupported versions with their own. Files block the upgrade if a finalized feature level is outside of
the target's range (KIP-584), or if the target no longer supports ZooKeeper. The target reads message formats v0 and v1
in files, and no longer writes them (KIP-724).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Final

from attrs import frozen

from kafka_msgs.api_keys import ApiKey
from kafka_msgs.upgrade.client_usage import ClientUsage, FormatUse, VersionUse
from kafka_msgs.upgrade.cluster_files import ClusterFiles
from kafka_msgs.upgrade.feature_levels import feature_levels
from kafka_msgs.upgrade.release_versions import KafkaRelease, api_versions, version_span
from kafka_msgs.versions import VersionRange

__all__ = ["FileFinding", "FormatFinding", "UpgradeCheck", "Verdict", "VersionFinding", "check_upgrade"]

_WITHOUT_OLD: Final = KafkaRelease((4, 0))
"""The release without ZooKeeper, without message formats v0 and v1 for writing, and without the oldest versions."""
_MIGRATING: Final = (1, 2)
"""States of the migration to KRaft before its end (``ZkMigrationState``)."""


class Verdict(StrEnum):
    """The verdict on a version, a format or a file."""

    OK = "ok"
    """The target supports it."""
    BLOCKED = "blocked"
    """The target does not support it."""
    UNCLEAR = "unclear"
    """The target does not support it, and the client may have used it only because of the current broker."""
    NOTE = "note"
    """It does not block the upgrade, and deserves attention."""


@frozen
class VersionFinding:
    """The verdict on the requests of a client with one API version; ``reason`` is empty for supported versions."""

    use: VersionUse
    verdict: Verdict
    reason: str


@frozen
class FormatFinding:
    """The verdict on the batches of a client in one message format."""

    use: FormatUse
    verdict: Verdict
    reason: str


@frozen
class FileFinding:
    """The verdict on a fact of the files: a feature, a message format of a topic, or ZooKeeper mode.

    ``value`` is the level, the number of batches or the state. Times are in milliseconds, or None.
    """

    subject: str
    value: str
    verdict: Verdict
    reason: str
    first_ms: int | None = None
    last_ms: int | None = None


@frozen
class UpgradeCheck:
    """All findings for a target release. ``incomplete`` lists the inputs that were not completely examined."""

    target: KafkaRelease
    versions: tuple[VersionFinding, ...]
    formats: tuple[FormatFinding, ...]
    files: tuple[FileFinding, ...]
    incomplete: tuple[str, ...]

    @property
    def blocked(self) -> bool:
        """Whether a client or a file blocks the upgrade."""
        findings: tuple[VersionFinding | FormatFinding | FileFinding, ...]
        findings = (*self.versions, *self.formats, *self.files)
        return any(each.verdict is Verdict.BLOCKED for each in findings)


def check_upgrade(
    target: KafkaRelease, usage: ClientUsage | None = None, files: ClusterFiles | None = None
) -> UpgradeCheck:
    """Return the findings for a target release, incompatible ones first."""
    usage, files = usage or ClientUsage(), files or ClusterFiles()
    supported = api_versions(target)
    versions = [_judge_version(use, supported.get(use.api_key), target) for use in usage.versions]
    return UpgradeCheck(
        target=target,
        versions=tuple(sorted(versions, key=_order)),
        formats=tuple(_judge_format(use, target) for use in usage.formats),
        files=tuple(_judge_files(files, target)),
        incomplete=tuple(_incomplete(usage, files)),
    )


def _order(finding: VersionFinding) -> tuple[object, ...]:
    use = finding.use
    verdict = (Verdict.BLOCKED, Verdict.UNCLEAR, Verdict.OK).index(finding.verdict)
    return (verdict, *(each or "" for each in use.client), use.api_key, use.version)


def _judge_version(use: VersionUse, supported: VersionRange | None, target: KafkaRelease) -> VersionFinding:
    if use.api_key == ApiKey.API_VERSIONS or (supported is not None and use.version in supported):
        return VersionFinding(use, Verdict.OK, "")
    reason = _unsupported(use, supported, target)
    if use.offered is None or supported is None:
        return VersionFinding(use, Verdict.BLOCKED, reason)
    if use.version > supported.highest:
        return VersionFinding(use, Verdict.UNCLEAR, f"{reason}; the client may negotiate an older version")
    if use.version >= use.offered:
        limit = f"the current broker offers no later version than {use.offered}"
        return VersionFinding(use, Verdict.UNCLEAR, f"Kafka {target} supports {supported}; {limit}")
    return VersionFinding(use, Verdict.BLOCKED, reason)


def _unsupported(use: VersionUse, supported: VersionRange | None, target: KafkaRelease) -> str:
    since, removed = version_span(use.api_key, use.version) or (None, None)
    range_ = f"Kafka {target} supports {supported}" if supported else f"Kafka {target} does not have this API"
    if removed is not None and removed <= target:
        return f"removed in {removed}{_kip(removed)}; {range_}"
    return range_ if since is None else f"since {since}; {range_}"


def _kip(removed: KafkaRelease) -> str:
    return " (KIP-896)" if removed == _WITHOUT_OLD else ""


def _judge_format(use: FormatUse, target: KafkaRelease) -> FormatFinding:
    if target < _WITHOUT_OLD:
        return FormatFinding(use, Verdict.OK, "")
    return FormatFinding(use, Verdict.BLOCKED, f"Kafka {target} does not accept message format v{use.magic} (KIP-724)")


def _judge_files(files: ClusterFiles, target: KafkaRelease) -> Iterator[FileFinding]:
    yield from _judge_mode(files, target)
    yield from _judge_features(files, target)
    for old in files.formats.values():
        verdict = Verdict.OK if target < _WITHOUT_OLD else Verdict.NOTE
        reason = "" if verdict is Verdict.OK else f"Kafka {target} reads this format, and does not write it (KIP-724)"
        subject, value = f"topic {old.topic}: message format v{old.magic}", f"{old.batches} batches"
        yield FileFinding(subject, value, verdict, reason, old.first_ms, old.last_ms)


def _judge_mode(files: ClusterFiles, target: KafkaRelease) -> Iterator[FileFinding]:
    without = target >= _WITHOUT_OLD
    for path in files.zookeeper:
        reason = f"Kafka {target} requires KRaft; migrate with Kafka 3.9 first (KIP-866)" if without else ""
        yield FileFinding(path, "ZooKeeper mode", Verdict.BLOCKED if without else Verdict.OK, reason)
    if files.migration_state in _MIGRATING and without:
        reason = f"finish the migration to KRaft before the upgrade to Kafka {target} (KIP-866)"
        yield FileFinding("migration from ZooKeeper", f"state {files.migration_state}", Verdict.BLOCKED, reason)


def _judge_features(files: ClusterFiles, target: KafkaRelease) -> Iterator[FileFinding]:
    supported = feature_levels(target)
    for name, level in sorted(files.features.items()):
        levels = supported.get(name)
        if levels is not None and level in levels:
            yield FileFinding(f"feature {name}", f"level {level}", Verdict.OK, "")
        elif levels is None:
            yield FileFinding(f"feature {name}", f"level {level}", Verdict.BLOCKED, f"unknown to Kafka {target}")
        else:
            advice = "; raise the level before the upgrade" if level < levels.lowest else ""
            reason = f"Kafka {target} supports the levels {levels}{advice}"
            yield FileFinding(f"feature {name}", f"level {level}", Verdict.BLOCKED, reason)


def _incomplete(usage: ClientUsage, files: ClusterFiles) -> Iterable[str]:
    if usage.faults:
        yield f"{usage.faults} faults in captures: bytes are missing or damaged"
    if usage.undecoded:
        yield f"{usage.undecoded} Produce requests could not be decoded"
    if usage.uncounted:
        yield f"{usage.uncounted} requests beyond the limit of distinct clients and versions"
    yield from files.problems
