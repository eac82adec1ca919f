"""Old clients, recorded with Kafka 3.9: the verdict for the current release is what a node of that release then did."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from kafka_msgs.capture import read_recording
from kafka_msgs.messages import RELEASE
from kafka_msgs.upgrade import ClientUsage, UpgradeCheck, Verdict, check_upgrade, parse_release
from tests.support.recordings import OLD_CLIENTS


@pytest.fixture(scope="module")
def outcomes() -> Mapping[str, Mapping[str, str]]:
    """The outcomes of each client, by release."""
    with OLD_CLIENTS.open(encoding="ascii") as file:
        found: Mapping[str, Mapping[str, str]] = json.loads(next(file))["outcomes"]
    return found


@pytest.fixture(scope="module")
def check() -> UpgradeCheck:
    usage = ClientUsage()
    with OLD_CLIENTS.open("rb") as file:
        usage.add_all(read_recording(file))
    return check_upgrade(parse_release(str(RELEASE)), usage)


def test_all_clients_worked_with_the_old_node(outcomes: Mapping[str, Mapping[str, str]]) -> None:
    old, new = outcomes.values()
    assert set(old.values()) == {"ok"}
    assert len(old) >= 12
    assert old.keys() == new.keys()


def test_blocked_clients_and_only_these_failed_with_the_new_node(
    outcomes: Mapping[str, Mapping[str, str]], check: UpgradeCheck
) -> None:
    _, new = outcomes.values()
    blocked = {each.use.client.client_id for each in check.versions if each.verdict is Verdict.BLOCKED}
    assert blocked == {name for name, outcome in new.items() if outcome != "ok"}
    assert blocked
    assert new.keys() - blocked
    assert not [each for each in check.versions if each.verdict is Verdict.UNCLEAR]
    assert check.incomplete == ()


def test_the_software_of_clients_that_send_it_is_known(check: UpgradeCheck) -> None:
    software = {each.use.client.client_id: each.use.client.software for each in check.versions}
    assert software["java-3.9.1"] == "apache-kafka-java 3.9.1"
    assert software["java-0.11.0.3"] is None


def test_clients_that_are_pinned_to_kafka_0_10_send_old_message_formats(check: UpgradeCheck) -> None:
    formats = {(each.use.client.client_id, each.use.magic) for each in check.formats}
    assert ("java-0.10.2.2", 1) in formats
    assert all(each.verdict is Verdict.BLOCKED for each in check.formats)
