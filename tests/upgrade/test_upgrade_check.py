"""Verdicts on clients and files for a target release."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import evolve

from kafka_msgs import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FeatureLevelRecord,
    HeartbeatRequest,
    ProduceRequest,
    ZkMigrationStateRecord,
)
from kafka_msgs.api_keys import ApiKey
from kafka_msgs.capture import CapturedPayload, CaptureFault, Exchange, FaultKind
from kafka_msgs.errors import JobPathError
from kafka_msgs.message import Message
from kafka_msgs.messages.api_versions_response import ApiVersion
from kafka_msgs.messages.produce_request import PartitionProduceData, TopicProduceData
from kafka_msgs.records import BatchBuilder, BatchHeader, MessageSetBuilder
from kafka_msgs.report import Table
from kafka_msgs.upgrade import ClientUsage, Verdict, check_client_release, check_upgrade, parse_release
from kafka_msgs.upgrade import client_usage as client_usage_module
from kafka_msgs.upgrade.client_check import is_documented
from kafka_msgs.upgrade.cluster_files import read_cluster_files
from kafka_msgs.upgrade.reports import FINDING_COLUMNS, finding_rows, upgrade_report
from tests.upgrade.exchanges import START_US, exchange, old_version

V4_4 = parse_release("4.4")


def usage_of(*items: Exchange | CaptureFault) -> ClientUsage:
    usage = ClientUsage()
    usage.add_all(items)
    return usage


def test_a_removed_version_blocks_its_client() -> None:
    fetches = [old_version(ApiKey.FETCH, 3, second=second) for second in (5, 2, 9)]
    (finding,) = check_upgrade(V4_4, usage_of(*fetches)).versions
    assert finding.verdict is Verdict.BLOCKED
    assert finding.reason == "removed in 4.0 (KIP-896); Kafka 4.4 supports 4-18"
    assert (finding.use.client.client_id, finding.use.client.host, finding.use.count) == ("app", "192.0.2.7", 3)
    assert (finding.use.first_us, finding.use.last_us) == (START_US + 2_000_000, START_US + 9_000_000)
    assert check_upgrade(V4_4, usage_of(*fetches)).blocked
    assert not check_upgrade(parse_release("3.9"), usage_of(*fetches)).blocked


def test_a_version_that_is_newer_than_the_target_blocks_too() -> None:
    (finding,) = check_upgrade(parse_release("3.9"), usage_of(old_version(ApiKey.FETCH, 18))).versions
    assert (finding.verdict, finding.reason) == (Verdict.BLOCKED, "since 4.1; Kafka 3.9 supports 0-17")
    (finding,) = check_upgrade(parse_release("3.9"), usage_of(old_version(ApiKey.SHARE_FETCH, 1))).versions
    assert finding.reason == "since 4.1; Kafka 3.9 supports 0"
    (finding,) = check_upgrade(parse_release("2.8"), usage_of(old_version(ApiKey.SHARE_FETCH, 1))).versions
    assert finding.reason == "since 4.1; Kafka 2.8 does not have this API"


def test_a_newer_version_is_unclear_after_a_negotiation() -> None:
    check = check_upgrade(parse_release("3.9"), usage_of(negotiation(18), old_version(ApiKey.FETCH, 18)))
    (finding,) = [each for each in check.versions if each.reason]
    assert finding.verdict is Verdict.UNCLEAR
    assert finding.reason == "since 4.1; Kafka 3.9 supports 0-17; the client may negotiate an older version"


def test_an_unknown_api_blocks() -> None:
    unknown = evolve(exchange(HeartbeatRequest(), 0), api_key=4321)
    (finding,) = check_upgrade(V4_4, usage_of(unknown)).versions
    assert (finding.verdict, finding.reason) == (Verdict.BLOCKED, "Kafka 4.4 does not have this API")


def negotiation(max_fetch: int, software: str = "") -> Exchange:
    keys = (ApiVersion(api_key=int(ApiKey.FETCH), min_version=0, max_version=max_fetch),)
    request = ApiVersionsRequest(client_software_name=software, client_software_version="1.2" if software else "")
    return exchange(request, 3, response=ApiVersionsResponse(api_keys=keys))


def test_a_version_that_an_old_broker_forced_is_unclear() -> None:
    fetch = old_version(ApiKey.FETCH, 3)
    (finding,) = [each for each in check_upgrade(V4_4, usage_of(negotiation(3), fetch)).versions if each.reason]
    assert finding.verdict is Verdict.UNCLEAR
    assert finding.reason == "Kafka 4.4 supports 4-18; the current broker offers no later version than 3"
    (finding,) = [each for each in check_upgrade(V4_4, usage_of(negotiation(11), fetch)).versions if each.reason]
    assert finding.verdict is Verdict.BLOCKED


def test_the_software_of_a_connection_is_known_after_its_negotiation() -> None:
    usage = usage_of(
        negotiation(18, "sarama"),
        exchange(HeartbeatRequest(), 4),
        exchange(HeartbeatRequest(), 4, number=2),
    )
    found = {each.client.software: each.count for each in usage.versions if each.api_key == ApiKey.HEARTBEAT}
    assert found == {"sarama 1.2": 1, None: 1}


def test_versions_of_the_negotiation_never_block() -> None:
    unsupported = evolve(exchange(ApiVersionsRequest(), 0), version=77)
    assert not check_upgrade(V4_4, usage_of(unsupported)).blocked


def produce(magic: int, version: int) -> Exchange:
    """Return a Produce request in the layout of version 0 to 2, which is version 3 without its first field."""
    builder = MessageSetBuilder(magic=magic)
    builder.append(b"k", b"v")
    topic = TopicProduceData(name="t", partition_data=(PartitionProduceData(index=0, records=builder.build()),))
    body = ProduceRequest(acks=1, timeout_ms=1000, topic_data=(topic,)).encode(3)[2:]
    head = (0).to_bytes(2, "big") + version.to_bytes(2, "big") + (1).to_bytes(4, "big") + b"\0\3app"
    return evolve(exchange(HeartbeatRequest(), 0, payload=head + body), api_key=0, version=version)


def test_old_message_formats_block_since_kafka_4() -> None:
    usage = usage_of(produce(0, 1), produce(1, 2), produce(1, 2))
    check = check_upgrade(V4_4, usage)
    assert [(each.use.magic, each.use.count, each.verdict) for each in check.formats] == [
        (0, 1, Verdict.BLOCKED),
        (1, 2, Verdict.BLOCKED),
    ]
    assert check.formats[0].reason == "Kafka 4.4 does not accept message format v0 (KIP-724)"
    assert all(each.verdict is Verdict.OK for each in check_upgrade(parse_release("3.9"), usage).formats)


def test_damaged_input_is_reported() -> None:
    damaged = evolve(produce(0, 1), request=CapturedPayload(b"\0\0\0\1\0\0\0\1\0\3ap", 12, 0, START_US, 1))
    fault = CaptureFault(kind=FaultKind.GAP, reason="a gap", size=3)
    check = check_upgrade(V4_4, usage_of(damaged, fault))
    assert len(check.incomplete) == 2


def test_the_number_of_counts_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_usage_module, "_MAX_COUNTS", 3)
    usage = usage_of(*(exchange(HeartbeatRequest(), 0, client_id=f"app-{n}") for n in range(5)))
    assert (len(usage.versions), usage.uncounted) == (3, 2)
    assert check_upgrade(V4_4, usage).incomplete == ("2 requests beyond the limit of distinct clients and versions",)


# Files


def records_of(*messages: Message) -> bytes:
    """Return a batch of the metadata log: each value starts with a frame version, the record type and the version."""
    builder = BatchBuilder(BatchHeader(base_offset=0))
    for message in messages:
        builder.append(None, bytes([1, type(message).INFO.api_key or 0, 0]) + message.encode(0), timestamp=1)
    return builder.build()


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / f"{0:020}.log").write_bytes(b"")
    return tmp_path


def add_metadata(log_dir: Path, *messages: Message) -> None:
    (log_dir / "__cluster_metadata-0").mkdir()
    (log_dir / "__cluster_metadata-0" / f"{0:020}.log").write_bytes(records_of(*messages))


def judged(log_dir: Path, release: str) -> Iterator[tuple[str, str, str]]:
    check = check_upgrade(parse_release(release), files=read_cluster_files([log_dir]))
    assert check.incomplete == ()
    return ((each.subject, each.value, each.verdict.value) for each in check.files)


def test_features_outside_of_the_levels_of_the_target_block(log_dir: Path) -> None:
    level = FeatureLevelRecord(name="metadata.version", feature_level=5)
    gone = FeatureLevelRecord(name="group.version", feature_level=0)
    add_metadata(log_dir, level, FeatureLevelRecord(name="group.version", feature_level=1), gone)
    assert list(judged(log_dir, "4.0")) == [("feature metadata.version", "level 5", "blocked")]
    assert list(judged(log_dir, "3.9")) == [("feature metadata.version", "level 5", "ok")]
    (finding,) = check_upgrade(V4_4, files=read_cluster_files([log_dir])).files
    assert finding.reason == "Kafka 4.4 supports the levels 7-33; raise the level before the upgrade"


def test_zookeeper_and_an_unfinished_migration_block(log_dir: Path) -> None:
    (log_dir / "meta.properties").write_text("version=0\nbroker.id=1\n")
    add_metadata(log_dir, ZkMigrationStateRecord(zk_migration_state=2))
    verdicts = [(str(log_dir), "ZooKeeper mode", "blocked"), ("migration from ZooKeeper", "state 2", "blocked")]
    assert list(judged(log_dir, "4.0")) == verdicts
    assert list(judged(log_dir, "3.9")) == [(str(log_dir), "ZooKeeper mode", "ok")]


@pytest.mark.parametrize("magic", [0, 1])
def test_old_message_formats_in_files_are_a_note(log_dir: Path, magic: int) -> None:
    builder = MessageSetBuilder(magic=magic)
    for timestamp in (1000, 2000):
        builder.append(b"k", b"v", timestamp=timestamp if magic else -1)
    new = BatchBuilder(BatchHeader(base_offset=2))
    new.append(b"k", b"v", timestamp=1)
    (log_dir / "orders-0" / f"{0:020}.log").write_bytes(builder.build() + new.build())
    check = check_upgrade(V4_4, files=read_cluster_files([log_dir]))
    (finding,) = check.files
    assert not check.blocked
    assert (finding.subject, finding.value) == (f"topic orders: message format v{magic}", "2 batches")
    assert (finding.verdict, finding.first_ms, finding.last_ms) == (
        (Verdict.NOTE, 1000, 2000) if magic else (Verdict.NOTE, None, None)
    )


def test_damaged_files_are_reported(log_dir: Path) -> None:
    (log_dir / "orders-0" / f"{0:020}.log").write_bytes(b"\1" * 100)
    (log_dir / "meta.properties").write_text("version=x\n")
    assert len(check_upgrade(V4_4, files=read_cluster_files([log_dir])).incomplete) == 2
    with pytest.raises(JobPathError):
        read_cluster_files([log_dir / "nowhere"])


# Reports


def test_rows_and_the_report_have_the_same_findings() -> None:
    check = check_upgrade(V4_4, usage_of(old_version(ApiKey.FETCH, 3), produce(0, 1), exchange(HeartbeatRequest(), 4)))
    rows = list(finding_rows(check))
    assert [(row["verdict"], row["subject"], row["version"]) for row in rows] == [
        ("blocked", "Produce", 1),
        ("blocked", "Fetch", 3),
        ("blocked", "message format", 0),
    ]
    assert tuple(rows[0]) == FINDING_COLUMNS
    assert len(list(finding_rows(check, everything=True))) == 4
    report = upgrade_report(check)
    assert report.title == "Upgrade to Kafka 4.4"
    assert isinstance(report.sections[0], Table)
    assert len(report.sections[0].rows) == 3


# Clients and brokers


def test_a_client_release_and_a_broker_release_have_common_versions_or_not() -> None:
    supports = {each.api: each for each in check_client_release(parse_release("4.4"), parse_release("0.10.2"))}
    assert supports["Fetch"].blocked
    assert supports["Fetch"].needed_by == ("consumer",)
    assert (supports["Produce"].common, supports["Metadata"].common) == (None, 2)
    assert not supports["ShareFetch"].blocked
    assert not any(each.blocked for each in check_client_release(parse_release("4.4"), parse_release("2.1")))
    assert not any(each.blocked for each in check_client_release(parse_release("1.0"), parse_release("3.9")))
    pairs = {("4.4", "2.0"): False, ("4.4", "2.1"): True, ("2.0", "4.0"): False, ("3.9", "0.10.2"): True}
    assert {pair: is_documented(*map(parse_release, pair)) for pair in pairs} == pairs
    same = check_client_release(V4_4, V4_4)
    assert all(each.common == each.client.highest for each in same)
