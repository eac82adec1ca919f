"""Groups deleted between the listing and the description: commands omit them without failing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import pytest
from attrs import evolve

from kafka_msgs.admin import Admin
from kafka_msgs.admin.groups import GroupListing
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.cli.group_commands.broker_groups import BrokerGroups
from kafka_msgs.client import ClientConfig, TopicPartition
from kafka_msgs.enums import GroupType
from kafka_msgs.testing import new_topic
from tests.support.command_line import Run

GONE = [GroupType.CLASSIC, GroupType.CONSUMER, GroupType.SHARE, GroupType.STREAMS]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Start a broker with the group ``kept``, whose listing also has a deleted group of each type."""
    listed = BrokerGroups.list_groups

    def with_others(source: BrokerGroups) -> Sequence[GroupListing]:
        found = listed(source)
        return [*found, *(evolve(found[0], group_id=f"gone-{kind}", type=kind) for kind in GONE)]

    with EmbeddedBroker() as broker:
        topic = new_topic(broker, "orders")
        with Admin(ClientConfig(bootstrap_servers=broker.bootstrap_servers)) as admin:
            admin.alter_group_offsets("kept", {TopicPartition(topic, 0): 0})
        monkeypatch.setattr(BrokerGroups, "list_groups", with_others)
        yield broker.bootstrap_servers


@pytest.mark.parametrize(
    "command",
    [
        ("groups",),
        ("consumer-groups", "--describe", "--all-groups"),
        ("consumer-groups", "--describe", "--all-groups", "--state"),
        ("lag",),
    ],
    ids=" ".join,
)
def test_a_group_that_vanished_is_left_out(run: Run, server: str, command: Sequence[str]) -> None:
    result = run(*command, "--bootstrap-server", server, "--output", "json")
    assert result.exit_code == 0, result.output
    assert [row["group"] for row in json.loads(result.stdout)] == ["kept"]


@pytest.mark.parametrize("command", ["share-groups", "streams-groups"])
@pytest.mark.parametrize("view", ["--offsets", "--members", "--state"])
def test_no_group_is_left(run: Run, server: str, command: str, view: str) -> None:
    result = run(command, "--describe", "--all-groups", view, "--bootstrap-server", server, "--output", "json")
    assert (result.exit_code, json.loads(result.stdout)) == (0, [])


def test_no_member_is_left(run: Run, server: str) -> None:
    result = run("groups", "--members", "--bootstrap-server", server, "--output", "json")
    assert (result.exit_code, json.loads(result.stdout)) == (0, [])


def test_a_group_that_was_named_must_exist(run: Run, server: str) -> None:
    result = run("consumer-groups", "--describe", "--group", "absent", "--bootstrap-server", server)
    assert result.exit_code == 1
    assert "absent" in result.output
