"""Group members on an in-memory cluster: joins, leaves, crashes, fencing, moves."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kafka_msgs.client import TopicPartition
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import BrokerError
from kafka_msgs.message import Request
from kafka_msgs.messages import heartbeat_response, join_group_response
from tests.support.simulated_groups import GroupCluster, User
from tests.support.simulated_modern_group import SimulatedModernGroup
from tests.support.simulated_network import Reply, apis

NAMES = [TopicPartition("t", number) for number in range(6)]


PROTOCOLS: list[dict[str, Any]] = [
    {"assignors": "range"},
    {"assignors": "roundrobin"},
    {"assignors": "sticky"},
    {"assignors": "cooperative-sticky"},
    {"group_protocol": "consumer"},
]


def turn(users: list[User], rounds: int = 25) -> list[bytes]:
    """Poll consumers in turn and commit the records; return the record values."""
    values = []
    for _ in range(rounds):
        for user in users:
            records = user.poll(0.3)
            if records:
                user.commit()
                values += [bytes(record.value or b"") for record in records]
    return values


def shares(users: list[User]) -> list[frozenset[TopicPartition]]:
    """Return the assignments, checked to be disjoint and complete."""
    found = [user.core.partitions.names for user in users]
    assert sorted(name for each in found for name in each) == NAMES
    return found


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=str)
def test_members_come_and_go_and_every_record_is_read_once(cluster: GroupCluster, protocol: dict[str, Any]) -> None:
    quick = {"session_timeout": 6.0, "heartbeat_frequency": 6, **protocol}
    users = [User(cluster, **quick)]
    users[0].core.subscribe(["t"])
    values = turn(users)
    assert len(shares(users)[0]) == 6
    for _ in range(2):
        users.append(User(cluster, **quick))
        users[-1].core.subscribe(["t"])
        values += turn(users)
    assert [len(each) for each in shares(users)] == [2, 2, 2]
    for number in range(6):
        cluster.produce("t", number, [b"%d-%d" % (number, each) for each in range(10, 20)])
    values += turn(users)
    users.pop(1).close()
    values += turn(users)
    assert sorted(len(each) for each in shares(users)) == [3, 3]
    users.pop(0).crash()
    values += turn(users, rounds=60)
    assert len(shares(users)[0]) == 6
    users[0].close()
    assert sorted(values) == sorted(b"%d-%d" % (number, each) for number in range(6) for each in range(20))
    assert cluster.committed == {("g", "t", number): 20 for number in range(6)}


def test_with_the_sticky_assignor_a_member_gets_its_partitions_back(cluster: GroupCluster) -> None:
    users = [User(cluster, assignors="sticky") for _ in range(3)]
    for user in users[:2]:
        user.core.subscribe(["t"])
    turn(users[:2])
    before = shares(users[:2])
    users[2].core.subscribe(["t"])
    turn(users)
    after = shares(users)
    assert [len(each) for each in after] == [2, 2, 2]
    assert all(mine < earlier for mine, earlier in zip(after, before, strict=False))
    for user in users:
        user.close()


@pytest.mark.parametrize("assignor", ["range", "sticky", "cooperative-sticky"])
def test_members_read_from_their_racks(cluster: GroupCluster, assignor: str) -> None:
    """Odd partitions have their replicas in one rack, even partitions in another."""
    cluster.racks = {1: "odd", 2: "even", 3: "odd"}
    cluster.leaders = {("t", number): 2 if number % 2 == 0 else 1 for number in range(6)}
    cluster.replicas = {("t", number): (2,) if number % 2 == 0 else (1, 3) for number in range(6)}
    users = [User(cluster, assignors=assignor, client_rack=rack) for rack in ("even", "odd")]
    for user in users:
        user.core.subscribe(["t"])
    turn(users, rounds=60)
    assert [{each.partition % 2 for each in mine} for mine in shares(users)] == [{0}, {1}]
    cluster.replicas = {("t", number): (2,) if number < 3 else (3,) for number in range(6)}
    for user in users:
        user.poll(user.core.client.config.metadata_max_age + 20)
    turn(users, rounds=60)
    assert [sorted(each.partition for each in mine) for mine in shares(users)] == [[0, 1, 2], [3, 4, 5]]
    for user in users:
        user.close()


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=str)
def test_a_fenced_member_is_told_joins_again_and_cannot_commit_before(
    cluster: GroupCluster, protocol: dict[str, Any]
) -> None:
    user = User(cluster, session_timeout=6.0, heartbeat_frequency=6, **protocol)
    events: list[str] = []

    def on_lost(partitions: list[TopicPartition]) -> None:
        with pytest.raises(BrokerError, match="UNKNOWN_MEMBER_ID"):
            user.commit({NAMES[0]: 5})
        with pytest.raises(BrokerError, match="UNKNOWN_MEMBER_ID"):
            user.core.positions.member()
        events.append(f"lost {len(partitions)}")

    user.core.subscribe(
        ["t"],
        on_assigned=lambda names: events.append(f"assigned {len(names)}"),
        on_revoked=lambda names: events.append(f"revoked {len(names)}"),
        on_lost=on_lost,
    )
    user.values(60)
    group = cluster.groups["g"]
    if isinstance(group, SimulatedModernGroup):
        group.fence.add(user.core.state.identity.member_id)
    else:
        group.remove(user.core.state.identity.member_id)
    assert len(user.values(60)) == 60, "nothing was committed, so it is read again"
    user.commit()
    assert events == ["assigned 6", "lost 6", "assigned 6"]
    user.close()
    assert events[3:] == ["revoked 6"]


@pytest.mark.parametrize("protocol", PROTOCOLS[3:], ids=str)
def test_between_two_polls_nothing_changes_and_heartbeats_go_on(
    cluster: GroupCluster, protocol: dict[str, Any]
) -> None:
    first, second = (User(cluster, background=True, session_timeout=6.0, **protocol) for _ in range(2))
    first.core.subscribe(["t"])
    first.values(60)
    second.core.subscribe(["t"])
    second.poll(1.0)
    cluster.network.pass_time(20.0)
    assert first.core.partitions.names == set(NAMES), "20 s without a poll: in the group, and nothing is given up"
    first.commit()
    assert turn([first, second]) == []
    assert [len(each) for each in shares([first, second])] == [3, 3]
    first.close()
    second.close()


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=str)
def test_who_does_not_poll_leaves_the_group_and_comes_back_with_the_next_poll(
    cluster: GroupCluster, protocol: dict[str, Any]
) -> None:
    user = User(cluster, background=True, max_poll_interval=30.0, **protocol)
    user.core.subscribe(["t"])
    user.values(60)
    user.commit()
    member = user.core.state.identity.member_id
    cluster.network.pass_time(25.0)
    assert cluster.groups["g"].members.keys() == {member}
    cluster.network.pass_time(10.0)
    assert cluster.groups["g"].members == {}
    assert turn([user]) == []
    assert len(shares([user])[0]) == 6
    user.close()


def test_a_pattern_takes_topics_that_are_made_later(cluster: GroupCluster) -> None:
    user = User(cluster)
    user.core.subscribe(pattern=re.compile("^(t|new.*)$"))
    user.values(60)
    assert {name.topic for name in user.core.partitions.names} == {"t"}
    cluster.counts["new-1"] = 1
    user.poll(user.core.client.config.metadata_max_age + 20)
    assert {name.topic for name in user.core.partitions.names} == {"t", "new-1"}
    user.close()


def test_a_static_member_says_nothing_when_it_goes(cluster: GroupCluster) -> None:
    user = User(cluster, group_instance_id="i1")
    user.core.subscribe(["t"])
    user.values(60)
    user.close()
    assert "LeaveGroup" not in apis(cluster.requests)
    joins = [each for each in cluster.requests if each.INFO.name == "JoinGroupRequest"]
    assert {each.group_instance_id for each in joins} == {"i1"}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "code", [ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ErrorCode.FENCED_INSTANCE_ID]
)
def test_what_no_trial_can_mend_is_raised_by_the_poll_and_the_next_poll_tries_again(
    cluster: GroupCluster, code: ErrorCode
) -> None:
    def refuse(node: int, request: Request[Any]) -> Reply:
        wrong = request.INFO.name == "JoinGroupRequest"
        return join_group_response.JoinGroupResponse(error_code=code) if wrong else None

    cluster.override = refuse
    user = User(cluster)
    user.core.subscribe(["t"])
    for _ in range(2):
        with pytest.raises(BrokerError) as caught:
            user.poll()
        assert caught.value.error is code
    cluster.override = None
    assert len(user.values(60)) == 60
    user.close()


def test_a_coordinator_that_loads_is_waited_for(cluster: GroupCluster) -> None:
    refused = iter([ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 3 + [ErrorCode.NOT_COORDINATOR] * 2)

    def refuse(node: int, request: Request[Any]) -> Reply:
        code = next(refused, None) if request.INFO.name == "HeartbeatRequest" else None
        return None if code is None else heartbeat_response.HeartbeatResponse(error_code=code)

    cluster.override = refuse
    user = User(cluster)
    user.core.subscribe(["t"])
    user.values(60)
    user.poll(30.0)
    assert apis(cluster.requests).count("JoinGroup") == 2, "it stays a member"
    assert user.core.partitions.names == set(NAMES)
    user.close()


def test_an_exception_of_a_function_is_raised_by_the_poll_and_the_assignment_holds(cluster: GroupCluster) -> None:
    def on_assigned(partitions: list[TopicPartition]) -> None:
        raise LookupError("no stored positions")

    user = User(cluster)
    user.core.subscribe(["t"], on_assigned=on_assigned)
    with pytest.raises(LookupError, match="no stored positions"):
        user.poll()
    assert len(user.values(60)) == 60
    user.close()
