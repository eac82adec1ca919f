"""Broker addresses in responses: the table includes all that clients use, and each is replaced."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafka_msgs import (
    DescribeClusterResponse,
    FetchResponse,
    FindCoordinatorResponse,
    MetadataResponse,
    ProduceResponse,
    Response,
)
from kafka_msgs.api_keys import ApiKey
from kafka_msgs.catalog import iter_message_classes
from kafka_msgs.messages.describe_cluster_response import DescribeClusterBroker
from kafka_msgs.messages.fetch_response import NodeEndpoint
from kafka_msgs.messages.find_coordinator_response import Coordinator
from kafka_msgs.messages.metadata_response import MetadataResponseBroker
from kafka_msgs.schema import fields
from kafka_msgs.tap.address_rewriting import ADDRESS_FIELDS, address_fields, rewrite_addresses

NOT_FOR_CLIENTS = {
    # Used among brokers and controllers.
    "BeginQuorumEpochResponse.node_endpoints",
    "EndQuorumEpochResponse.node_endpoints",
    "FetchSnapshotResponse.node_endpoints",
    "VoteResponse.node_endpoints",
    "UpdateRaftVoterResponse.current_leader",
    # Controller addresses; tools display them and do not connect to them.
    "DescribeQuorumResponse.nodes.listeners",
    # Client addresses, for interactive queries of Kafka Streams or in access control lists.
    "StreamsGroupDescribeResponse.groups.members.user_endpoint",
    "StreamsGroupHeartbeatResponse.partitions_by_user_endpoint.user_endpoint",
    "DescribeAclsResponse.resources.acls",
    "DeleteAclsResponse.filter_results.matching_acls",
}


def _with_host(cls: type[Any], path: str) -> Iterator[str]:
    if any(each.attribute == "host" for each in fields(cls)):
        yield path
    for each in fields(cls):
        if each.struct is not None:
            yield from _with_host(each.struct, f"{path}.{each.attribute}")


def test_every_host_of_a_response_is_in_the_table_or_not_for_clients() -> None:
    """A response added by a new release must be reviewed."""
    found = {
        path for cls in iter_message_classes() if issubclass(cls, Response) for path in _with_host(cls, cls.__name__)
    }
    table = set()
    for api_key, names in ADDRESS_FIELDS.items():
        (cls,) = (
            each for each in iter_message_classes() if issubclass(each, Response) and each.INFO.api_key == api_key
        )
        table |= {cls.__name__ if name == "host" else f"{cls.__name__}.{name}" for name in names}
    assert found - NOT_FOR_CLIENTS == table
    assert found >= NOT_FOR_CLIENTS


def _behind(host: str, port: int) -> tuple[str, int]:
    return f"proxy-of-{host}", port + 1


@pytest.mark.parametrize(
    ("response", "version"),
    [
        (MetadataResponse(brokers=(MetadataResponseBroker(node_id=4, host="b", port=9),)), 12),
        (FindCoordinatorResponse(node_id=4, host="b", port=9), 2),
        (FindCoordinatorResponse(coordinators=(Coordinator(key="g", node_id=4, host="b", port=9),)), 4),
        (DescribeClusterResponse(brokers=(DescribeClusterBroker(broker_id=4, host="b", port=9),)), 1),
        (FetchResponse(node_endpoints=(NodeEndpoint(node_id=4, host="b", port=9),)), 16),
    ],
)
def test_addresses_are_replaced_and_nothing_else(response: Response, version: int) -> None:
    """The broker id stays, the address changes; the response keeps its version."""
    changed = rewrite_addresses(response, address_fields(type(response), version), _behind)
    text = repr(changed)
    assert "host='proxy-of-b'" in text
    assert "port=10" in text
    assert text.replace("proxy-of-b", "b").replace("port=10", "port=9") == repr(response)
    assert type(response).decode(changed.encode(version), version) == changed


def test_errors_without_an_address_stay_as_they_are() -> None:
    """With an error code, brokers send an empty host and the port -1."""
    response = FindCoordinatorResponse(coordinators=(Coordinator(key="g", error_code=15, node_id=-1, port=-1),))
    assert rewrite_addresses(response, ("host", "coordinators"), _behind) == response


def test_versions_without_addresses_are_not_opened() -> None:
    """Fetch and Produce contain new leaders since versions 16 and 10 (KIP-951)."""
    assert [address_fields(FetchResponse, version) for version in (15, 16)] == [(), ("node_endpoints",)]
    assert [address_fields(ProduceResponse, version) for version in (9, 10)] == [(), ("node_endpoints",)]
    assert ApiKey.HEARTBEAT not in ADDRESS_FIELDS
