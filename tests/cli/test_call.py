"""``kafka-msgs call`` and ``api-versions`` against real brokers."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from kafka_msgs import ApiKey, OffsetFetchRequest, iter_message_classes
from kafka_msgs.cli.broker_options import ClusterOptions
from kafka_msgs.client import Client, ClientConfig
from kafka_msgs.client.config_loading import load_properties
from kafka_msgs.client.routing import ROUTES
from kafka_msgs.messages.api_versions_request import ApiVersionsRequest
from tests.support.command_line import Run
from tests.support.kafka_cluster import ClusterAddresses
from tests.support.kafka_listeners import Listener

Call = Callable[..., dict[str, Any]]


@pytest.fixture
def call(run: Run, kafka_cluster: ClusterAddresses) -> Call:
    """Return a function that sends a request, given as JSON text or as a JSON value, and returns the response."""

    def call(api: str, form: Any = None, *options: str, stdin: str | None = None) -> dict[str, Any]:
        text = form if isinstance(form, str) else json.dumps(form or {})
        servers = ("--bootstrap-server", kafka_cluster.bootstrap_servers)
        result = run("call", api, text, *servers, "--timeout", "30000", *options, stdin=stdin)
        assert result.exit_code == 0, result.output
        response: dict[str, Any] = json.loads(result.stdout)
        return response

    return call


@pytest.fixture
def topic(call: Call) -> str:
    """Create a topic whose three partitions have different leaders; return its name."""
    name = f"called-{uuid4().hex[:8]}"
    assignments = [{"partitionIndex": number, "brokerIds": [node]} for number, node in enumerate(nodes(call))]
    wanted = {"name": name, "numPartitions": -1, "replicationFactor": -1, "assignments": assignments}
    answer = call("create-topics", {"topics": [wanted]})
    assert [each["errorCode"] for each in answer["topics"]] == [0], answer
    while not all(known(call, name, node) for node in nodes(call)):
        time.sleep(0.1)
    return name


def known(call: Call, topic: str, node: int) -> bool:
    """Return whether a broker has learned of a topic."""
    request = {"topics": [{"name": topic}], "allowAutoTopicCreation": False}
    return all(each["errorCode"] == 0 for each in call("Metadata", request, "--node", str(node))["topics"])


def nodes(call: Call) -> list[int]:
    return sorted(each["nodeId"] for each in call("Metadata", {"topics": []})["brokers"])


def test_a_request_about_partitions_of_all_brokers_is_split_and_its_answers_are_merged(call: Call, topic: str) -> None:
    partitions = [{"partitionIndex": number, "timestamp": -1} for number in range(3)]
    answer = call("ListOffsets", {"replicaId": -1, "topics": [{"name": topic, "partitions": partitions}]})
    found = {each["partitionIndex"]: each for topic in answer["topics"] for each in topic["partitions"]}
    assert {number: (each["errorCode"], each["offset"]) for number, each in found.items()} == dict.fromkeys(
        range(3), (0, 0)
    )


def test_groups_are_asked_for_at_their_coordinators(call: Call) -> None:
    groups = [f"called-{uuid4().hex[:8]}-{number}" for number in range(6)]
    answer = call("OffsetFetch", {"groups": [{"groupId": group, "topics": None} for group in groups]})
    assert {each["groupId"]: each["errorCode"] for each in answer["groups"]} == dict.fromkeys(groups, 0)
    found = call("FindCoordinator", {"coordinatorKeys": groups})["coordinators"]
    assert len({each["nodeId"] for each in found}) > 1, "the groups are spread over brokers"


def test_the_version_follows_from_the_fields_and_can_be_given(call: Call, topic: str) -> None:
    group = f"called-{uuid4().hex[:8]}"
    old = call("OffsetFetch", {"groupId": group, "topics": None})
    assert "groups" not in old
    assert old["errorCode"] == 0
    named = {"groupId": group, "topics": [{"name": topic, "partitionIndexes": [0]}]}
    (found,) = call("OffsetFetch", {"groups": [named]})["groups"]
    assert [each["name"] for each in found["topics"]] == [topic]
    assert "errorCode" not in call("OffsetFetch", {"groupId": group, "topics": []}, "--version", "1")


def test_one_broker_can_be_asked(call: Call, kafka_cluster: ClusterAddresses) -> None:
    group = f"called-{uuid4().hex[:8]}"
    (place,) = call("FindCoordinator", {"coordinatorKeys": [group]})["coordinators"]
    wrong = next(node for node in nodes(call) if node != place["nodeId"])
    request = {"groups": [{"groupId": group, "topics": None}]}
    right, other = (call("9", request, "--node", str(node))["groups"][0] for node in (place["nodeId"], wrong))
    assert (right["errorCode"], other["errorCode"]) == (0, 16)


def test_json_comes_from_standard_input_or_a_file(call: Call, topic: str, tmp_path: Path) -> None:
    request = json.dumps({"topics": [{"name": topic}]})
    path = tmp_path / "request.json"
    path.write_text(request)
    answers = [call("Metadata", "-", stdin=request), call("Metadata", f"@{path}"), call("Metadata", request)]
    assert [[each["name"] for each in answer["topics"]] for answer in answers] == [[topic]] * 3


def test_explain_shows_every_byte_of_both_frames(run: Run, kafka_cluster: ClusterAddresses) -> None:
    group = f"called-{uuid4().hex[:8]}"
    request = json.dumps({"groups": [{"groupId": group, "topics": None}]})
    servers = ("--bootstrap-server", kafka_cluster.bootstrap_servers)
    result = run("call", "OffsetFetch", request, *servers, "--version", "9", "--timeout", "30000", "--explain")
    assert result.exit_code == 0
    titles = re.findall(r"^ *(\w+) v(\d+) *$", result.stdout, re.MULTILINE)
    assert titles == [
        ("RequestHeader", "2"),
        ("OffsetFetchRequest", "9"),
        ("ResponseHeader", "1"),
        ("OffsetFetchResponse", "9"),
    ]
    asked, _, answered = result.stdout.partition("ResponseHeader")
    form = {"groupId": group, "memberId": None, "memberEpoch": -1, "topics": None}
    sent = OffsetFetchRequest.from_json({"groups": [form], "requireStable": False}, 9).encode(9)
    assert bytes_column(asked).endswith(sent), "after the header comes the message"
    assert bytes_column(asked)[:4] == bytes([0, 9, 0, 9])
    assert group.encode() in bytes_column(answered_heading(result.stdout) + answered)


def answered_heading(text: str) -> str:
    return next(line for line in text.splitlines() if "bytes" in line) + "\n"


def bytes_column(text: str) -> bytes:
    """Return the bytes column of an annotated dump."""
    heading = next(line for line in text.splitlines() if "bytes" in line)
    start, end = heading.index("bytes"), heading.index("field")
    cells = [line[start:end].strip() for line in text.splitlines()]
    return bytes.fromhex(" ".join(cell for cell in cells if re.fullmatch(r"[0-9a-f]{2}( [0-9a-f]{2})*", cell)))


def test_api_versions_beside_those_of_the_library(run: Run, kafka_cluster: ClusterAddresses) -> None:
    servers = ("--bootstrap-server", kafka_cluster.bootstrap_servers)
    result = run("api-versions", *servers, "--timeout", "30000", "--json")
    assert result.exit_code == 0
    rows = {row["apiKey"]: row for row in json.loads(result.stdout)}
    with Client(kafka_cluster.bootstrap_servers) as client:
        offered = client.call(ApiVersionsRequest(client_software_name="tests", client_software_version="1")).api_keys
    assert {key: row["broker"] for key, row in rows.items() if row["broker"]} == {
        each.api_key: f"{each.min_version}-{each.max_version}"
        if each.min_version != each.max_version
        else str(each.min_version)
        for each in offered
    }
    assert {row["library"] for row in rows.values() if row["apiKey"] == ApiKey.FETCH} == {"4-18"}
    requests = {
        cls.INFO.api_key for cls in iter_message_classes() if cls.INFO.kind == "request" and not cls.INFO.versions.empty
    }
    assert requests <= set(rows)
    assert all(row["both"] for row in rows.values() if row["broker"]), "the library is of the broker's release"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("OffsetFetch", "{"), "not JSON: "),
        (("OffsetFetch", '{"group": 1}'), "not a field of this version, which has groups, requireStable"),
        (("Metadata", '{"topics": 1}'), "topics: expected an array, got int"),
        (("Metadata", "{}", "--version", "99"), "MetadataRequest has no version 99"),
        (("AlterPartition",), "AlterPartitionRequest: the broker has no version, this library has 2-3"),
        (("Metadata", "{}", "--node", "77"), "77"),
    ],
    ids=["not JSON", "unknown field", "wrong type", "unknown version", "not of brokers", "unknown broker"],
)
def test_failures_are_one_line(
    fails: Callable[..., str], kafka_cluster: ClusterAddresses, arguments: tuple[str, ...], text: str
) -> None:
    servers = ("--bootstrap-server", kafka_cluster.bootstrap_servers)
    assert text in fails("call", *arguments, *servers, "--timeout", "3000")


def test_wrong_calls(run: Run) -> None:
    assert run("call", "OffsetFetch").exit_code == 2
    response = run("call", "OffsetFetchResponse", "--bootstrap-server", "localhost:1")
    assert response.exit_code == 2
    assert "OffsetFetchResponse is not a request" in response.stderr
    assert run("call", "nothing", "--bootstrap-server", "localhost:1").exit_code == 2


def test_nobody_listens(fails: Callable[..., str]) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        text = fails("call", "Metadata", "--bootstrap-server", address, "--timeout", "500")
    assert address in text


def test_a_file_of_kafkas_properties_says_how_to_connect(
    run: Run, kafka_cluster: ClusterAddresses, tmp_path: Path
) -> None:
    user, password = next(iter(kafka_cluster.users.items()))
    path = tmp_path / "client.client_properties"
    path.write_text(
        "# how to connect\n"
        "security.protocol = SASL_PLAINTEXT\n"
        "sasl.mechanism: PLAIN\n"
        "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\\n"
        f'    username="{user}" password="{password}";\n'
    )
    servers = ("--bootstrap-server", kafka_cluster.bootstrap(Listener.SASL_PLAINTEXT), "--timeout", "30000")
    result = run("call", "Metadata", '{"topics": []}', *servers, "--command-config", str(path))
    assert result.exit_code == 0, result.output
    assert len(json.loads(result.stdout)["brokers"]) == 3
    path.write_text(path.read_text().replace(password, "wrong"))
    refused = run("call", "Metadata", '{"topics": []}', *servers, "--command-config", str(path))
    assert refused.exit_code == 1
    assert "authenticate (PLAIN)" in refused.stderr
    assert password not in refused.output


def test_i4_properties_reach_the_client(tmp_path: Path) -> None:
    path = tmp_path / "client.client_properties"
    path.write_text("client.id=auditor\nrequest.timeout.ms=1500\nbootstrap.servers=elsewhere:9092\n")
    made = ClusterOptions("localhost:9092", 2.0, load_properties(path)).config
    plain = ClientConfig(bootstrap_servers="localhost:9092")
    assert (made.client_id, made.request_timeout, made.timeout) == ("auditor", 1.5, 2.0)
    assert made.bootstrap_servers == plain.bootstrap_servers


# A broker never answers an empty AddPartitionsToTxn request.
MANY = [
    api for api, route in ROUTES.items() if getattr(route, "many", None) and api is not ApiKey.ADD_PARTITIONS_TO_TXN
]


@pytest.mark.parametrize("api", MANY, ids=lambda api: api.name)
def test_a_request_about_nothing_goes_to_any_broker(call: Call, api: ApiKey) -> None:
    """It has no partition, group or transaction to route it by."""
    assert call(str(int(api)))
