"""Requirements for groups with the new protocols, and open points of the documents, each by number.

E, F, J and W are requirements of KIP-1071 and of the 0.9 design. Y lists points that the documents contradict or omit;
``docs/reference/profiles.md`` contains the decisions. Tests of other requirements cover some of them.
"""

from __future__ import annotations

from typing import Any

import pytest
from attrs import fields_dict

from kafka_msgs import OffsetCommitRequest, OffsetFetchRequest
from kafka_msgs.catalog import message_class
from kafka_msgs.drafts.kip_1071 import StreamsGroupHeartbeatRequest as DocumentHeartbeatRequest
from kafka_msgs.drafts.kip_1071 import StreamsGroupMemberMetadataValue as DocumentMemberMetadataValue
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import SchemaError
from kafka_msgs.groups.page import KIP_1071_PAGE
from kafka_msgs.groups.profiles import SHIPPED, Profile
from kafka_msgs.groups.runtime.memory_log import MemoryLog
from kafka_msgs.internal_topics.records import TopicRecord, decode_record, encode_record
from kafka_msgs.internal_topics.replay import TransactionEnd
from kafka_msgs.messages.list_groups_request import ListGroupsRequest
from kafka_msgs.messages.offset_commit_request import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from kafka_msgs.messages.streams_group_describe_response import StreamsGroupDescribeResponse
from kafka_msgs.messages.streams_group_heartbeat_request import Endpoint, StreamsGroupHeartbeatRequest
from kafka_msgs.messages.streams_group_heartbeat_response import StreamsGroupHeartbeatResponse
from kafka_msgs.schema_compiler import compile_schema
from tests.groups.streams.broker import Broker, join_classic, page, subtopology, tasks, topology

BOTH = pytest.mark.parametrize("profile", [SHIPPED, KIP_1071_PAGE], ids=["shipped", "page"])
ROLES = ("active_tasks", "standby_tasks", "warmup_tasks")
OFFSETS = "__consumer_offsets"


def _roles(response: StreamsGroupHeartbeatResponse) -> list[bool]:
    return [getattr(response, role) is not None for role in ROLES]


@BOTH
def test_e12_tasks_are_in_an_answer_until_the_member_has_them(profile: Profile) -> None:
    broker = Broker(profile)
    first = broker.heartbeat()
    assert _roles(first) == [True, True, True]
    owned: dict[str, Any] = {"active_tasks": tasks(_0=[0, 1]), "standby_tasks": (), "warmup_tasks": ()}
    broker.heartbeat("A", first.member_epoch, **owned)
    assert _roles(broker.heartbeat("A", first.member_epoch)) == [False, False, False]

    broker.heartbeat("B")
    assert _roles(broker.heartbeat("A", first.member_epoch)) == [True, True, True]


@BOTH
def test_e19_streams_groups_are_listed_with_their_type(profile: Profile) -> None:
    broker = Broker(profile)
    broker.heartbeat()

    [listed] = broker.ask(ListGroupsRequest(), version=5).groups

    assert (listed.group_id, listed.group_type, listed.protocol_type) == ("g", "streams", "streams")


@BOTH
def test_e20_a_streams_group_has_committed_offsets(profile: Profile) -> None:
    broker = Broker(profile)
    epoch = broker.heartbeat().member_epoch
    reached = OffsetCommitRequestPartition(partition_index=0, committed_offset=42)
    commit = OffsetCommitRequest(
        group_id="g",
        member_id="A",
        generation_id_or_member_epoch=epoch,
        topics=(OffsetCommitRequestTopic(name="in", partitions=(reached,)),),
    )
    assert broker.ask(commit, version=9).topics[0].partitions[0].error_code == ErrorCode.NONE

    [topic] = broker.ask(OffsetFetchRequest(group_id="g", topics=None), version=7).topics

    assert [each.committed_offset for each in topic.partitions] == [42]


@pytest.mark.parametrize(
    ("name", "code"),
    [("STREAMS_INVALID_TOPOLOGY", 130), ("STREAMS_INVALID_TOPOLOGY_EPOCH", 131), ("STREAMS_TOPOLOGY_FENCED", 132)],
)
def test_e21_there_are_three_errors_for_topologies(name: str, code: int) -> None:
    assert ErrorCode[name] == code


def test_e22_the_api_keys_are_known_and_must_be_bound_in_a_definition() -> None:
    assert message_class(88, "request") is StreamsGroupHeartbeatRequest
    assert message_class(88, "response") is StreamsGroupHeartbeatResponse
    assert message_class(89, "response") is StreamsGroupDescribeResponse

    definition = '{"apiKey": TBD, "type": "request", "name": "PingRequest", "validVersions": "0", "fields": []}'
    with pytest.raises(SchemaError, match="TBD is not bound"):
        compile_schema(definition, lenient=True)


def test_f14_a_record_of_an_unknown_type_is_left_out() -> None:
    broker = Broker()
    broker.heartbeat()
    unknown = decode_record(OFFSETS, b"\x7f\xff\x00", b"\x00\x00")
    log = [unknown, *broker.log.records(0), unknown]

    broker.coordinator.resign(0, None, now=broker.now)
    broker.coordinator.elect(0, 9, now=broker.now)
    broker.coordinator.load(0, log)
    broker.coordinator.loaded(0, now=broker.now)

    assert set(broker.group().members) == {"A"}


def _compacted(log: MemoryLog) -> list[TopicRecord | TransactionEnd]:
    """Return a compacted log without transactions: the last record of each key, without tombstones."""
    last: dict[bytes | None, TopicRecord] = {}
    for record in log.records(0):
        assert isinstance(record, TopicRecord)
        key = encode_record(record).key
        last.pop(key, None)
        last[key] = record
    return [record for record in last.values() if record.value is not None]


@BOTH
def test_j2_the_last_value_of_a_key_counts_and_none_is_a_tombstone(profile: Profile) -> None:
    broker = Broker(profile)
    for member in "ABC":
        broker.heartbeat(member)
    broker.settle("A", "B", "C")
    broker.heartbeat("B", -1)
    before = {name: broker.group().members[name] for name in broker.group().members}
    rest = _compacted(broker.log)
    assert len(rest) < len(broker.log.records(0))

    broker.coordinator.resign(0, None, now=broker.now)
    broker.coordinator.elect(0, 9, now=broker.now)
    broker.coordinator.load(0, rest)
    broker.coordinator.loaded(0, now=broker.now)

    assert {name: broker.group().members[name] for name in broker.group().members} == before
    assert set(before) == {"A", "C"}


def test_j3_a_snapshot_of_a_classic_group_is_its_last_record() -> None:
    broker = Broker()
    join_classic(broker, "c")
    broker.advance(3000)

    written = [record for record in broker.log.records(0) if isinstance(record, TopicRecord)]

    assert [str(record.key.INFO.name) for record in written if record.key is not None] == ["GroupMetadataKey"]


ERRORS = {
    "GROUP_AUTHORIZATION_FAILED": 30,
    "GROUP_ID_NOT_FOUND": 69,
    "NOT_COORDINATOR": 16,
    "COORDINATOR_NOT_AVAILABLE": 15,
    "COORDINATOR_LOAD_IN_PROGRESS": 14,
    "INVALID_REQUEST": 42,
    "UNKNOWN_MEMBER_ID": 25,
    "FENCED_MEMBER_EPOCH": 110,
    "UNRELEASED_INSTANCE_ID": 111,
    "GROUP_MAX_SIZE_REACHED": 81,
    "TOPIC_AUTHORIZATION_FAILED": 29,
    "CLUSTER_AUTHORIZATION_FAILED": 31,
    "STREAMS_INVALID_TOPOLOGY": 130,
    "STREAMS_INVALID_TOPOLOGY_EPOCH": 131,
    "STREAMS_TOPOLOGY_FENCED": 132,
    "INVALID_GROUP_ID": 24,
    "REBALANCE_IN_PROGRESS": 27,
}


@pytest.mark.parametrize(("name", "code"), ERRORS.items())
def test_w_all_errors_that_the_documents_name_have_their_numbers(name: str, code: int) -> None:
    assert ErrorCode[name] == code


def test_y4_a_nullable_text_without_a_default_is_empty() -> None:
    value = DocumentMemberMetadataValue()
    assert (value.instance_id, value.rack_id) == ("", "")


@BOTH
def test_y17_all_settings_of_the_coordinator_have_one_prefix(profile: Profile) -> None:
    config = Broker(profile).coordinator.config

    assert config.text("group.streams.num.standby.replicas") == "0"
    assert config.validate_group({"streams.num.standby.replicas": "1"}).text("streams.num.standby.replicas") == "1"


@BOTH
def test_y25_the_acceptable_lag_has_64_bits_from_version_1_on(profile: Profile) -> None:
    broker = Broker(profile, config={"group_streams_acceptable_recovery_lag": 2**40})

    answer = broker.heartbeat()

    assert answer.acceptable_recovery_lag == 2**40
    first, second = (answer.decode(answer.encode(version), version) for version in (0, 1))
    assert (first.acceptable_recovery_lag_legacy, second.acceptable_recovery_lag) == (0, 2**40)


@BOTH
def test_y27_an_endpoint_has_the_partitions_that_its_tasks_read(profile: Profile) -> None:
    broker = Broker(profile, topics={"in": 2, "side": 1})
    sent = topology(subtopology("0", "in", "side"))

    answer = broker.heartbeat(topology=sent, user_endpoint=Endpoint(host="here", port=80))

    [endpoint] = answer.partitions_by_user_endpoint
    assert (endpoint.user_endpoint.host, endpoint.user_endpoint.port) == ("here", 80)
    assert {each.topic: each.partitions for each in endpoint.active_partitions} == {"in": (0, 1), "side": (0,)}


def test_y28_tasks_of_an_older_topology_are_not_compared_with_the_new_one() -> None:
    broker = page(topics={"in": 2, "more": 2})
    broker.heartbeat("A", topology=topology(subtopology("0", "in"), subtopology("1", "more")))
    broker.settle("A")
    broker.heartbeat("B", topology=topology(subtopology("0", "in"), epoch=1))

    epoch = broker.group().members["A"].epoch
    owned: dict[str, Any] = {"active_tasks": tasks(_1=[0]), "standby_tasks": (), "warmup_tasks": ()}

    assert broker.error("A", epoch, **owned) is ErrorCode.NONE
    assert broker.error("B", broker.group().members["B"].epoch, **owned) is ErrorCode.INVALID_REQUEST


@BOTH
def test_y31_a_member_that_is_known_may_join_again(profile: Profile) -> None:
    """The response to its first heartbeat was lost."""
    broker = Broker(profile)
    first = broker.heartbeat()

    again = broker.heartbeat()

    assert (again.error_code, again.member_epoch) == (ErrorCode.NONE, first.member_epoch)
    assert set(broker.group().members) == {"A"}


def test_y32_the_messages_of_the_document_and_of_the_release_are_never_mixed() -> None:
    assert message_class(88, "request") is not DocumentHeartbeatRequest
    assert DocumentHeartbeatRequest.INFO.name == StreamsGroupHeartbeatRequest.INFO.name
    document, release = fields_dict(DocumentHeartbeatRequest), fields_dict(StreamsGroupHeartbeatRequest)
    assert release.keys() - document.keys() == {"endpoint_information_epoch"}
