"""``DumpLogSegments`` of the release reads the files of a cluster and prints exactly the written contents."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pytest

from kafka_msgs import (
    AddPartitionsToTxnRequest,
    AlterClientQuotasRequest,
    AlterUserScramCredentialsRequest,
    ConsumerGroupHeartbeatRequest,
    CreateAclsRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    OffsetCommitRequest,
    ShareGroupHeartbeatRequest,
)
from kafka_msgs.broker.controller.image_writer import image_records
from kafka_msgs.broker.faults.cluster_changes import move_coordinator
from kafka_msgs.enums import AclOperation, AclPermissionType, PatternType, ResourceType
from kafka_msgs.log import LogDirectory
from kafka_msgs.messages.add_partitions_to_txn_request import AddPartitionsToTxnTopic
from kafka_msgs.messages.alter_client_quotas_request import EntityData, EntryData, OpData
from kafka_msgs.messages.alter_user_scram_credentials_request import ScramCredentialUpsertion
from kafka_msgs.messages.create_acls_request import AclCreation
from kafka_msgs.messages.offset_commit_request import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from tests.broker.storage.lockstep import Ours
from tests.broker.storage.scripts import Script
from tests.recorders.broker import run_kafka_class
from tests.support.kafka_dump import dumped_file, sections_of
from tests.support.virtual_brokers import START, VirtualCluster, batch

DECODERS: Final = {
    "__cluster_metadata": "--cluster-metadata-decoder",
    "__consumer_offsets": "--offsets-decoder",
    "__share_group_state": "--share-group-state-decoder",
    "__transaction_state": "--transaction-log-decoder",
}
RECORDS: Final = "--print-data-log"
DUMPED: Final = (".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint")
PAYLOAD: Final = re.compile(r"(headerKeys: \[[^]]*])(?! endTxnMarker).*")
LINES: Final = ("baseOffset: ", "| ", "offset: ", "timestamp: ", "version: ", "producerId: ")


@pytest.fixture
def kafka_node() -> None:
    """Require the environment of Kafka's tools; otherwise the test is reported as not run."""


def dump(files: Iterable[Path], decoder: str) -> dict[str, list[str]]:
    """Return the tool's lines about the batches and entries of each file.

    Record contents of clients are omitted, because they may not be text.
    """
    arguments = ["--files", ",".join(map(str, files)), decoder]
    said = run_kafka_class("org.apache.kafka.tools.DumpLogSegments", arguments, timeout=240)
    said = PAYLOAD.sub(r"\1", said) if decoder == RECORDS else said
    return {name: [line for line in lines if line.startswith(LINES)] for name, lines in sections_of(said).items()}


def files_of(partition: Path) -> list[Path]:
    return sorted(path for path in partition.iterdir() if path.suffix in DUMPED and path.stat().st_size)


@pytest.mark.usefixtures("kafka_node")
def test_random_histories_of_partitions(tmp_path: Path) -> None:
    for seed in range(6):
        home = tmp_path / str(seed)
        home.mkdir()
        ours, script = Ours(home), Script(seed, length=120, compacts=seed % 2 == 0)
        for command in script.commands():
            script.learn(ours.run(**command))
    files = [path for partition in tmp_path.glob("*/orders-0") for path in files_of(partition)]
    assert {path.suffix for path in files} == {".log", ".index", ".timeindex", ".txnindex", ".snapshot"}
    found = dump(files, RECORDS)
    for path in files:
        assert found[str(path)] == [PAYLOAD.sub(r"\1", line) for line in dumped_file(path)], path


def fill(cluster: VirtualCluster) -> None:
    """Write records of every kind that a cluster can write."""
    cluster.create("t", partitions=2, replication_factor=2, retention_ms="-1")
    for number, leader in enumerate(state.leader for state in cluster.cluster.image.topics["t"].partitions):
        cluster.produce("t", number, batch(b"a", b"b"), broker=leader)

    def coordinated(topic: str, key: str, request: Any, version: int) -> Any:
        move_coordinator(cluster.cluster, topic, key, 0)
        cluster.cluster.settle()
        return cluster.call(request, version)

    def grouped(request: Any, version: int) -> None:
        response = coordinated("__consumer_offsets", request.group_id, request, version)
        assert getattr(response, "error_code", 0) == 0, response

    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="note")
    topics = (OffsetCommitRequestTopic(name="t", partitions=(partition,)),)
    grouped(OffsetCommitRequest(group_id="offsets", generation_id_or_member_epoch=-1, topics=topics), 9)
    joining: dict[str, Any] = {"member_id": "7b2YJm5XQK-2fJHDGkS1rg", "member_epoch": 0, "rebalance_timeout_ms": 1000}
    subscribed: dict[str, Any] = {"subscribed_topic_names": ("t",)}
    grouped(ConsumerGroupHeartbeatRequest(group_id="consumers", topic_partitions=(), **joining, **subscribed), 1)
    grouped(ShareGroupHeartbeatRequest(group_id="sharers", member_id="m", member_epoch=0, **subscribed), 1)
    ids = InitProducerIdRequest(transactional_id="ledger", transaction_timeout_ms=1000, producer_epoch=-1)
    producer = coordinated("__transaction_state", "ledger", ids, 5)
    known = {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}
    names = {"v3_and_below_" + name: value for name, value in {"transactional_id": "ledger", **known}.items()}
    added = AddPartitionsToTxnTopic(name="t", partitions=(0, 1))
    cluster.call(AddPartitionsToTxnRequest(**names, v3_and_below_topics=(added,)), 3)
    cluster.call(EndTxnRequest(transactional_id="ledger", committed=True, **known), 3)
    describe(cluster)


def describe(cluster: VirtualCluster) -> None:
    """Write metadata records of all kinds: ACLs, quotas and SCRAM credentials."""
    acl = AclCreation(
        resource_type=ResourceType.TOPIC,
        resource_name="t",
        resource_pattern_type=PatternType.LITERAL,
        principal="User:alice",
        host="*",
        operation=AclOperation.READ,
        permission_type=AclPermissionType.ALLOW,
    )
    cluster.call(CreateAclsRequest(creations=(acl,)), 3)
    entity = (EntityData(entity_type="user", entity_name=None), EntityData(entity_type="client-id", entity_name="c"))
    limits = (OpData(key="producer_byte_rate", value=1024.5, remove=False),)
    cluster.call(AlterClientQuotasRequest(entries=(EntryData(entity=entity, ops=limits),)), 1)
    upserted = ScramCredentialUpsertion(name="alice", mechanism=1, iterations=4096, salt=b"salt", salted_password=b"x")
    cluster.call(AlterUserScramCredentialsRequest(upsertions=(upserted,)), 0)


@pytest.mark.usefixtures("kafka_node")
def test_the_directories_of_a_cluster(tmp_path: Path) -> None:
    """The metadata log contains a snapshot, and records after it."""
    cluster = VirtualCluster.start(directory=tmp_path, brokers=2, authorizer=True, allow_everyone=True)
    fill(cluster)
    directory = cluster.cluster.storage
    assert directory is not None
    directory.snapshot(lambda: image_records(cluster.cluster.image), START, after_bytes=0)
    cluster.create("later")
    assert cluster.cluster.errors == []
    cluster.cluster.close()
    # The directories of both brokers are equal.
    by_decoder: dict[str, list[Path]] = defaultdict(list)
    for partition in LogDirectory(tmp_path / "broker-0").partitions:
        by_decoder[DECODERS.get(partition.topic, RECORDS)] += files_of(partition.path)
    by_decoder[DECODERS["__cluster_metadata"]].append(tmp_path / "broker-0" / "bootstrap.checkpoint")
    assert {RECORDS, *DECODERS.values()} - set(by_decoder) <= {DECODERS["__share_group_state"]}
    for decoder, files in by_decoder.items():
        found = dump(files, decoder)
        for path in files:
            lines = dumped_file(path)
            assert lines or path.suffix == ".snapshot"
            assert found[str(path)] == ([PAYLOAD.sub(r"\1", line) for line in lines] if decoder == RECORDS else lines)
