"""Brokers and members that violate the protocol: the client raises a clear error or behaves like Kafka's client."""

from __future__ import annotations

import base64
import logging
import threading
import time
from typing import Any

import pytest

from kafka_msgs.admin.topics import describe_topic_partitions, describe_topics, list_topics
from kafka_msgs.client import Client
from kafka_msgs.client.auth import PlainCredentials, ScramCredentials, Tokens, _next_token
from kafka_msgs.client.cluster_metadata import TopicPartition
from kafka_msgs.client.consumer.consumer_protocol import (
    UserData,
    decode_assignment,
    decode_member,
    encode_assignment,
    encode_subscription,
    encode_user_data,
    read_joined_member,
)
from kafka_msgs.client.consumer.offsets import commit_offsets, fetch_committed_offsets, list_offsets
from kafka_msgs.client.group_metadata import ConsumerGroupMetadata
from kafka_msgs.client.offset_and_metadata import OffsetAndMetadata
from kafka_msgs.errors import AuthenticationError, BrokerError, DeadlineError
from kafka_msgs.message import Request, Response
from kafka_msgs.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kafka_msgs.messages.consumer_protocol_assignment import TopicPartition as AssignedTopic
from kafka_msgs.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafka_msgs.messages.describe_topic_partitions_response import (
    Cursor,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseTopic,
)
from kafka_msgs.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from kafka_msgs.messages.list_offsets_response import ListOffsetsResponse
from kafka_msgs.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafka_msgs.messages.offset_commit_response import OffsetCommitResponse
from kafka_msgs.messages.offset_fetch_response import OffsetFetchResponse, OffsetFetchResponseGroup
from kafka_msgs.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kafka_msgs.messages.sasl_handshake_response import SaslHandshakeResponse
from kafka_msgs.versioned import encode_versioned
from tests.support.simulated_network import SimulatedNetwork

T0 = TopicPartition("t", 0)


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_bytes_after_a_subscription_or_an_assignment_are_ignored(version: int) -> None:
    """Other clients append custom fields, which Kafka's ``ConsumerProtocol`` ignores."""
    subscription = encode_versioned(ConsumerProtocolSubscription(topics=("a", "b")), version) + b"more"
    assert decode_member("m", None, subscription).topics == {"a", "b"}
    assigned = (AssignedTopic(topic="t", partitions=(0,)),)
    assignment = encode_versioned(ConsumerProtocolAssignment(assigned_partitions=assigned), version) + b"\0"
    assert decode_assignment(assignment) == [T0]


def test_bytes_after_the_user_data_of_a_sticky_member_are_ignored() -> None:
    data = encode_user_data(UserData.PARTITIONS, [T0], 4)
    assert data is not None
    member = decode_member("m", None, encode_subscription(["t"], user_data=data + b"more"), UserData.PARTITIONS)
    assert (member.owned, member.generation) == ((T0,), 4)


@pytest.mark.parametrize("data", [b"", b"\0", b"\xff\xff", b"\0\0\xff\xff\xff\xff", b"\0\1" + b"\x7f" * 4])
def test_a_member_that_sends_nonsense_gets_nothing_and_does_not_stop_its_group(
    data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    member = read_joined_member("foreign", "i", data)
    assert (member.member_id, member.topics, member.instance_id) == ("foreign", frozenset(), "i")
    assert "the subscription of member foreign cannot be read" in caplog.text


def test_assignments_are_written_as_before() -> None:
    assert decode_assignment(encode_assignment([T0])) == [T0]


class Silent(SimulatedNetwork):
    """A broker whose responses omit all requested items. ``special`` maps request names to responses."""

    def __init__(self) -> None:
        super().__init__()
        self.special: dict[str, Response] = {
            "OffsetFetchRequest": OffsetFetchResponse(),
            "OffsetCommitRequest": OffsetCommitResponse(),
            "ListOffsetsRequest": ListOffsetsResponse(),
        }
        self.broker = self.add("b:9092", self.handle)

    def handle(self, request: Request[Any]) -> Response:
        name = request.INFO.name
        if name in self.special:
            return self.special[name]
        if name == "FindCoordinatorRequest":
            return FindCoordinatorResponse(coordinators=(Coordinator(key="g", node_id=1, host="b", port=9092),))
        partition = MetadataResponsePartition(partition_index=0, leader_id=1)
        topic = MetadataResponseTopic(name="t", partitions=(partition,))
        return MetadataResponse(
            brokers=(MetadataResponseBroker(node_id=1, host="b", port=9092),), topics=(topic,), controller_id=1
        )


NOT_MENTIONED = "UNKNOWN_SERVER_ERROR .* the response of the broker does not mention it"


@pytest.mark.parametrize(
    "response",
    [
        OffsetFetchResponse(),
        OffsetFetchResponse(groups=(OffsetFetchResponseGroup(group_id="other"),)),
        OffsetFetchResponse(groups=(OffsetFetchResponseGroup(group_id="g"),)),
    ],
)
def test_committed_offsets_that_are_not_in_the_response_are_an_error(response: OffsetFetchResponse) -> None:
    """A client that treats them as offsets without a commit would skip or repeat records."""
    network = Silent()
    network.special["OffsetFetchRequest"] = response
    core = network.core("b:9092")
    with pytest.raises(BrokerError, match=f"OffsetFetch: {NOT_MENTIONED}"):
        network.run(
            fetch_committed_offsets(core, ConsumerGroupMetadata("g"), [T0], stable=False, deadline=core.deadline(5))
        )


def test_a_commit_that_is_not_in_the_response_is_an_error() -> None:
    network = Silent()
    core = network.core("b:9092")
    offsets = {T0: OffsetAndMetadata(1)}
    with pytest.raises(BrokerError, match=f"OffsetCommit: {NOT_MENTIONED}"):
        network.run(commit_offsets(core, ConsumerGroupMetadata("g"), offsets, deadline=core.deadline(5)))


def test_an_offset_that_is_not_in_the_response_is_an_error() -> None:
    network = Silent()
    core = network.core("b:9092")
    with pytest.raises(BrokerError, match=f"ListOffsets: {NOT_MENTIONED}"):
        network.run(list_offsets(core, {T0: -1}, committed=False, deadline=core.deadline(5)))


def test_topics_without_a_name_are_not_listed() -> None:
    network = Silent()
    topics = (MetadataResponseTopic(name=None, error_code=100), MetadataResponseTopic(name="t"))
    brokers = (MetadataResponseBroker(node_id=1, host="b", port=9092),)
    network.special["MetadataRequest"] = MetadataResponse(topics=topics, brokers=brokers, controller_id=1)
    core = network.core("b:9092")
    assert set(network.run(list_topics(core, include_internal=True))) == {"t"}
    assert set(network.run(describe_topics(core, ["t"])).outcomes) == {"t"}


def test_a_page_of_topics_that_comes_again_ends_with_an_error() -> None:
    network = Silent()
    topics = (DescribeTopicPartitionsResponseTopic(name="t"), DescribeTopicPartitionsResponseTopic(name=None))
    network.special["DescribeTopicPartitionsRequest"] = DescribeTopicPartitionsResponse(
        topics=topics, next_cursor=Cursor(topic_name="t", partition_index=0)
    )
    with pytest.raises(BrokerError, match="the same page again"):
        network.run(describe_topic_partitions(network.core("b:9092"), ["t"]))
    network.special["DescribeTopicPartitionsRequest"] = DescribeTopicPartitionsResponse(topics=topics)
    assert set(network.run(describe_topic_partitions(network.core("b:9092"), ["t"])).outcomes) == {"t"}


class ScramBroker(Silent):
    """A broker with SCRAM-SHA-256 and arbitrary challenges. ``challenge`` follows the nonce."""

    def __init__(self, challenge: str) -> None:
        super().__init__()
        self.challenge = challenge

    def handle(self, request: Request[Any]) -> Response:
        if request.INFO.name == "SaslHandshakeRequest":
            return SaslHandshakeResponse(mechanisms=("SCRAM-SHA-256",))
        if request.INFO.name == "SaslAuthenticateRequest":
            nonce = bytes(request.auth_bytes).decode().partition("r=")[2]  # type: ignore[attr-defined]
            return SaslAuthenticateResponse(auth_bytes=f"r={nonce}x,{self.challenge}".encode())
        return super().handle(request)


SALT = base64.b64encode(b"salt" * 4).decode()


@pytest.mark.parametrize(
    ("challenge", "reason"),
    [
        (f"s={SALT},i=4095", "asks for 4095 iterations; expected 4096 to 1000000"),
        (f"s={SALT},i=1", "asks for 1 iterations"),
        (f"s={SALT},i=0", "asks for 0 iterations"),
        (f"s={SALT},i=-5", "does not ask for a number of iterations"),
        (f"s={SALT},i=1000001", "asks for 1000001 iterations"),
        (f"s={SALT},i={'9' * 5000}", "does not ask for a number of iterations"),
        (f"s={SALT}", "does not ask for a number of iterations"),
        ("s=,i=4096", "sends no salt"),
        ("i=4096", "sends no salt"),
    ],
)
def test_scram_needs_a_salt_and_a_fair_number_of_iterations(challenge: str, reason: str) -> None:
    network = ScramBroker(challenge)
    core = network.core("b:9092", credentials=ScramCredentials("alice", "s3cret", "SCRAM-SHA-256"))
    with pytest.raises(AuthenticationError, match=reason) as caught:
        network.run(core.refresh((), deadline=core.deadline(5)))
    assert "s3cret" not in f"{caught.value!r} {vars(caught.value)}"


def test_a_proof_that_takes_long_does_not_hold_up_the_deadline() -> None:
    """A helper thread computes it while the thread of the client logic continues."""
    release = threading.Event()

    def tokens() -> Tokens:
        release.wait(20)
        yield b""

    with Client("127.0.0.1:1") as client:
        network = client.network
        begin = time.monotonic()
        with pytest.raises(DeadlineError, match="the proof of the credentials"):
            client.run(_next_token(tokens(), None, network, network.now() + 0.2))
        assert time.monotonic() - begin < 10
        release.set()


def test_credentials_without_tls_to_another_machine_are_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    for host, warned in (("b", True), ("127.0.0.1", False), ("localhost", False), ("[::1]", False), ("10.0.0.1", True)):
        caplog.clear()
        network = Silent()
        network.add(f"{host}:9092", network.handle)
        core = network.core(f"{host}:9092", credentials=PlainCredentials("alice", "s3cret"))
        for _ in range(2):
            with pytest.raises(Exception, match=r"."):
                network.run(core.refresh((), deadline=core.deadline(2)))
        warnings = [each for each in caplog.records if "credentials without TLS" in each.getMessage()]
        assert len(warnings) == warned
        assert all(each.levelno == logging.WARNING and each.name == "kafka_msgs.client.connection" for each in warnings)
        assert "s3cret" not in caplog.text
