"""Configs, topics and users: outcomes of operations that fail for some items. The brokers are in memory."""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode

import pytest

from kafka_msgs.admin import (
    ConfigChange,
    ConfigResource,
    ConfigResourceType,
    ScramMechanism,
    ScramUpsertion,
)
from kafka_msgs.admin.configs import alter_configs, describe_configs
from kafka_msgs.admin.topics import describe_topic_partitions
from kafka_msgs.admin.users import alter_user_scram_credentials
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import BrokerError
from kafka_msgs.messages import describe_configs_response as configs
from kafka_msgs.messages import describe_topic_partitions_response as pages
from kafka_msgs.messages import incremental_alter_configs_response as altered
from kafka_msgs.messages.alter_user_scram_credentials_request import AlterUserScramCredentialsRequest
from kafka_msgs.messages.alter_user_scram_credentials_response import AlterUserScramCredentialsResponse
from kafka_msgs.messages.describe_configs_request import DescribeConfigsRequest
from kafka_msgs.messages.describe_topic_partitions_request import DescribeTopicPartitionsRequest
from kafka_msgs.messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest
from tests.support.simulated_cluster import SimulatedCluster


def test_configurations_of_a_broker_are_asked_of_that_broker() -> None:
    def describe(node: int, request: DescribeConfigsRequest) -> configs.DescribeConfigsResponse:
        entry = configs.DescribeConfigsResourceResult(name="node", value=str(node))
        return configs.DescribeConfigsResponse(
            results=tuple(
                configs.DescribeConfigsResult(
                    resource_type=each.resource_type, resource_name=each.resource_name, configs=(entry,)
                )
                for each in request.resources
            )
        )

    cluster = SimulatedCluster({DescribeConfigsRequest: describe})
    brokers = [ConfigResource(ConfigResourceType.BROKER, str(node)) for node in (3, 2)]
    found = cluster.network.run(describe_configs(cluster.core, brokers)).all()
    assert [each["node"].value for each in found.values()] == ["3", "2"]


def test_a_resource_that_fails_takes_no_other_with_it() -> None:
    def alter(node: int, request: IncrementalAlterConfigsRequest) -> altered.IncrementalAlterConfigsResponse:
        return altered.IncrementalAlterConfigsResponse(
            responses=tuple(
                altered.AlterConfigsResourceResponse(
                    resource_type=each.resource_type,
                    resource_name=each.resource_name,
                    error_code=ErrorCode.INVALID_CONFIG if each.resource_name == "b" else 0,
                    error_message="not so",
                )
                for each in request.resources
            )
        )

    cluster = SimulatedCluster({IncrementalAlterConfigsRequest: alter})
    topics = [ConfigResource(ConfigResourceType.TOPIC, name) for name in "ab"]
    result = cluster.network.run(alter_configs(cluster.core, {each: [ConfigChange("x", "1")] for each in topics}))
    assert result[topics[0]] is None
    with pytest.raises(BrokerError, match=r"INVALID_CONFIG.*not so"):
        _ = result[topics[1]]


def test_pages_of_partitions_are_joined() -> None:
    def page(node: int, request: DescribeTopicPartitionsRequest) -> pages.DescribeTopicPartitionsResponse:
        first = request.cursor.partition_index if request.cursor else 0
        numbers = range(first, min(first + 2, 5))
        partitions = tuple(pages.DescribeTopicPartitionsResponsePartition(partition_index=each) for each in numbers)
        topic = pages.DescribeTopicPartitionsResponseTopic(name="t", partitions=partitions)
        following = pages.Cursor(topic_name="t", partition_index=first + 2) if first + 2 < 5 else None
        return pages.DescribeTopicPartitionsResponse(topics=(topic,), next_cursor=following)

    cluster = SimulatedCluster({DescribeTopicPartitionsRequest: page})
    topics = cluster.network.run(describe_topic_partitions(cluster.core, ["t"], partitions_per_request=2))
    assert [each.partition_index for each in topics["t"].partitions] == [0, 1, 2, 3, 4]
    assert len(cluster.asked(DescribeTopicPartitionsRequest)) == 3


def test_a_password_leaves_salted_and_is_shown_nowhere() -> None:
    """The salt, the messages and the signature are from the example in RFC 7677, section 3."""
    cluster = SimulatedCluster(
        {AlterUserScramCredentialsRequest: lambda node, request: AlterUserScramCredentialsResponse()}
    )
    salt = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    upsertion = ScramUpsertion("user", ScramMechanism.SCRAM_SHA_256, "pencil", salt=salt)
    assert "pencil" not in repr(upsertion)
    cluster.network.run(alter_user_scram_credentials(cluster.core, [upsertion]))
    ((_, request),) = cluster.asked(AlterUserScramCredentialsRequest)
    assert b"pencil" not in request.encode(0)
    nonce = "rOprNGfwEbeRWgbNEkqO"
    both = nonce + "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    exchange = f"n=user,r={nonce},r={both},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r={both}"
    server_key = hmac.digest(request.upsertions[0].salted_password, b"Server Key", "sha256")
    signature = hmac.digest(server_key, exchange.encode(), "sha256")
    assert b64encode(signature) == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
