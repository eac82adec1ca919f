"""Requirements G7 and G8: assignments, their timing, and reconciliation."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from kafka_msgs.groups.page import KIP_1071_PAGE
from kafka_msgs.groups.profiles import SHIPPED, Profile
from kafka_msgs.groups.streams.current_assignment import reconcile
from kafka_msgs.groups.streams.member import MemberState, StreamsGroupMember
from kafka_msgs.groups.streams.tasks import TaskId, TasksTuple, TasksTupleWithEpochs
from kafka_msgs.messages.streams_group_heartbeat_request import Endpoint, KeyValue, TaskOffset, Topology
from kafka_msgs.messages.streams_group_member_metadata_value import StreamsGroupMemberMetadataValue
from tests.groups.streams.broker import Broker, changelog, page, subtopology, tasks, topology

BOTH = pytest.mark.parametrize("profile", [SHIPPED, KIP_1071_PAGE], ids=["shipped", "page"])
STATEFUL = topology(subtopology("0", "in", state_changelog_topics=(changelog("c"),)))


@BOTH
def test_g7_1_each_group_epoch_has_a_target(profile: Profile) -> None:
    broker = Broker(profile)
    for name in "ABC":
        broker.heartbeat(name)
        assert broker.group().assignment_epoch == broker.group().epoch


@BOTH
@pytest.mark.parametrize(
    ("change", "bumps"),
    [
        ({"rack_id": "r2"}, True),
        ({"client_tags": (KeyValue(key="z", value="2"),)}, True),
        ({"process_id": "other"}, True),
        ({"user_endpoint": Endpoint(host="h", port=1)}, None),
        ({"task_offsets": (TaskOffset(subtopology_id="0", partition=0, offset=3),)}, False),
        ({}, False),
    ],
)
def test_g7_2_what_calls_for_a_new_assignment(profile: Profile, change: dict[str, Any], bumps: bool | None) -> None:
    broker = Broker(profile)
    epoch = broker.heartbeat(rack_id="r1").member_epoch
    before = broker.group().epoch
    broker.heartbeat("A", epoch, **change)
    expected = profile is SHIPPED if bumps is None else bumps
    assert (broker.group().epoch > before) is expected


@BOTH
def test_g7_2_members_that_come_and_go_call_for_a_new_assignment(profile: Profile) -> None:
    broker = Broker(profile)
    broker.heartbeat("A")
    epochs = [broker.group().epoch]
    broker.heartbeat("B")
    epochs.append(broker.group().epoch)
    broker.heartbeat("B", -1)
    epochs.append(broker.group().epoch)
    broker.topics(**{"in": 3})
    broker.heartbeat("A", broker.group().members["A"].epoch)
    epochs.append(broker.group().epoch)
    assert epochs == sorted(set(epochs))


def test_g7_3_the_document_watches_topics_that_are_read() -> None:
    sent = topology(
        subtopology("0", "in", repartition_sink_topics=("r",)),
        subtopology("1", repartition_source_topics=(changelog("r", 2),), state_changelog_topics=(changelog("c"),)),
    )
    broker = page(topics={"in": 2, "r": 2, "c": 2, "sink": 1})
    epoch = broker.heartbeat(topology=sent).member_epoch
    before = broker.group().epoch
    broker.topics(sink=2)
    broker.heartbeat("A", epoch)
    assert broker.group().epoch == before
    broker.topics(r=3)
    broker.heartbeat("A", epoch)
    assert broker.group().epoch > before


def _shares(broker: Broker, *members: str) -> list[int]:
    return sorted(len(broker.target(name)) for name in members)


@BOTH
def test_g7_8_each_task_has_one_owner(profile: Profile) -> None:
    random = Random(8)
    broker = Broker(profile, topics={"in": 12, "c": 12}, config={"group_streams_num_standby_replicas": 1})
    members: list[str] = []
    for step in range(25):
        if members and random.random() < 0.4:
            broker.heartbeat(members.pop(random.randrange(len(members))), -1)
        else:
            members.append(f"m{step}")
            broker.heartbeat(members[-1], topology=STATEFUL, process_id=f"p{step % 4}")
        for name in members:
            broker.heartbeat(name, broker.group().members[name].epoch)
        owners = Counter(task for name in members for task in broker.target(name))
        if members and broker.group().assignment_epoch == broker.group().epoch:
            assert owners == {("0", partition): 1 for partition in range(12)}


@BOTH
def test_g7_9_a_process_has_a_task_once(profile: Profile) -> None:
    broker = Broker(profile, topics={"in": 6, "c": 6}, config={"group_streams_num_standby_replicas": 2})
    processes = {"A": "p", "B": "p", "C": "q", "D": "r"}
    for name, process in processes.items():
        broker.heartbeat(name, topology=STATEFUL, process_id=process)
    targets = broker.group().targets
    seen = Counter(
        (processes[name], task)
        for name, target in targets.items()
        for task in (*target.active, *target.standby, *target.warmup)
    )
    assert set(seen.values()) == {1}


@BOTH
def test_g7_11_there_are_standbys_on_other_processes_only(profile: Profile) -> None:
    broker = Broker(profile, topics={"in": 4, "c": 4}, config={"group_streams_num_standby_replicas": 2})
    for count, name in enumerate("ABCD"):
        broker.heartbeat(name, topology=STATEFUL)
        standbys = Counter(task for target in broker.group().targets.values() for task in target.standby)
        expected = min(2, count)
        assert standbys == ({("0", partition): expected for partition in range(4)} if expected else {})


@BOTH
def test_g7_13_few_tasks_move(profile: Profile) -> None:
    broker = Broker(profile, topics={"in": 12})
    for name in "ABC":
        broker.heartbeat(name)
    broker.settle("A", "B", "C")
    before = {name: broker.target(name) for name in "ABC"}
    broker.heartbeat("D")
    moved = sum(len(before[name] - broker.target(name)) for name in "ABC")
    assert (moved, _shares(broker, "A", "B", "C", "D")) == (3, [3, 3, 3, 3])
    broker.settle("A", "B", "C", "D")
    before = {name: broker.target(name) for name in "ABD"}
    broker.heartbeat("C", -1)
    broker.heartbeat("A", broker.group().members["A"].epoch)
    assert all(before[name] <= broker.target(name) for name in "ABD")
    assert _shares(broker, "A", "B", "D") == [4, 4, 4]


def test_g7_16_members_with_an_older_topology_get_no_task() -> None:
    broker = page(topics={"in": 6})
    broker.heartbeat("A")
    broker.heartbeat("B")
    broker.settle("A", "B")
    before = broker.target("A")
    broker.heartbeat("C", topology=topology(epoch=1))
    broker.heartbeat("B", -1)
    broker.heartbeat("C", broker.group().members["C"].epoch)
    assert broker.target("A") <= before
    assert broker.target("A") | broker.target("C") == {("0", partition) for partition in range(6)}


@BOTH
def test_g7_17_the_same_input_gives_the_same_assignment(profile: Profile) -> None:
    def play() -> object:
        broker = Broker(profile, topics={"in": 7})
        for name in ("b", "a", "c"):
            broker.heartbeat(name)
        return dict(broker.group().targets)

    assert play() == play()


@BOTH
def test_g7_18_client_tags_are_kept_and_shown(profile: Profile) -> None:
    broker = Broker(profile)
    broker.heartbeat(client_tags=(KeyValue(key="zone", value="a"),))
    assert [(tag.key, tag.value) for tag in broker.describe().members[0].client_tags] == [("zone", "a")]


@BOTH
def test_g7_5_the_assignor_of_the_group_comes_first(profile: Profile) -> None:
    broker = Broker(profile, config={"group_streams_assignors": ("sticky", "mock")})
    broker.heartbeat()
    assert broker.describe().assignor_name == "sticky"
    broker.coordinator.update_group_config("g", {"streams.assignor.name": "mock"})
    assert broker.describe().assignor_name == "mock"


@pytest.mark.parametrize(("sent", "name"), [(STATEFUL, "highly_available"), (topology(), "sticky")])
def test_g7_6_the_document_chooses_by_state(sent: Topology, name: str) -> None:
    broker = page(topics={"in": 2, "c": 2})
    broker.heartbeat(topology=sent)
    assert broker.describe().assignor_name == name


@pytest.mark.parametrize("name", ["sticky", "highly_available"])
def test_g7_4_the_document_has_two_assignors(name: str) -> None:
    broker = page(topics={"in": 2, "c": 2})
    broker.coordinator.update_group_config("g", {"streams.assignor.name": name})
    broker.heartbeat(topology=STATEFUL)
    assert broker.describe().assignor_name == name
    assert broker.target("A") == {("0", 0), ("0", 1)}


# Reconciliation


@BOTH
def test_g8_1_there_are_three_epochs(profile: Profile) -> None:
    broker = Broker(profile)
    first = broker.heartbeat().member_epoch
    broker.heartbeat("B")
    described = broker.describe()
    assert described.group_epoch == described.assignment_epoch == first + 1
    assert {member.member_id: member.member_epoch for member in described.members} == {"A": first, "B": first + 1}


def _two(profile: Profile) -> tuple[Broker, int]:
    """Return a broker on which A has both tasks and B has joined, and the epoch of A."""
    broker = Broker(profile)
    epoch = broker.heartbeat().member_epoch
    broker.heartbeat("B")
    return broker, epoch


def _owned(*partitions: int) -> dict[str, Any]:
    return {"active_tasks": tasks(_0=partitions) if partitions else (), "standby_tasks": (), "warmup_tasks": ()}


@BOTH
def test_g8_2_tasks_to_give_up_leave_the_assignment_first(profile: Profile) -> None:
    broker, epoch = _two(profile)
    answer = broker.heartbeat("A", epoch, **_owned(0, 1))
    kept = {("0", partition) for each in answer.active_tasks for partition in each.partitions}
    assert kept == {("0", 0), ("0", 1)} & broker.target("A")
    assert len(kept) == 1


@BOTH
def test_y14_g8_3_the_member_epoch_stays_until_tasks_are_given_up(profile: Profile) -> None:
    broker, epoch = _two(profile)
    assert broker.heartbeat("A", epoch, **_owned(0, 1)).member_epoch == epoch
    assert broker.heartbeat("A", epoch).member_epoch == epoch
    kept = [partition for _, partition in broker.active("A")]
    assert broker.heartbeat("A", epoch, **_owned(*kept)).member_epoch == epoch + 1


@BOTH
def test_g8_4_a_task_is_handed_out_when_it_is_free(profile: Profile) -> None:
    broker, epoch = _two(profile)
    joined = epoch + 1
    broker.heartbeat("A", epoch, **_owned(0, 1))
    assert not broker.heartbeat("B", joined).active_tasks
    kept = [partition for _, partition in broker.active("A")]
    broker.heartbeat("A", epoch, **_owned(*kept))
    assert broker.heartbeat("B", joined).active_tasks
    assert broker.active("B") == broker.target("B")


@BOTH
def test_g8_5_a_member_that_waits_is_at_the_new_epoch(profile: Profile) -> None:
    broker = Broker(profile)
    epoch = broker.heartbeat().member_epoch
    joined = broker.heartbeat("B")
    assert (joined.member_epoch, joined.active_tasks) == (epoch + 1, ())
    assert broker.group().members["B"].state is MemberState.UNRELEASED_TASKS


class _Holders:
    def __init__(self, **held: dict[TaskId, str]) -> None:
        self.held = held

    def active_process(self, task: TaskId) -> str | None:
        return self.held.get("active", {}).get(task)

    def has_standby(self, task: TaskId, process_id: str) -> bool:
        return self.held.get("standby", {}).get(task) == process_id

    def has_warmup(self, task: TaskId, process_id: str) -> bool:
        return self.held.get("warmup", {}).get(task) == process_id


T: TaskId = ("0", 0)


def _member(**assigned: Any) -> StreamsGroupMember:
    metadata = StreamsGroupMemberMetadataValue(process_id="p")
    return StreamsGroupMember(member_id="A", metadata=metadata, epoch=1, assigned=TasksTupleWithEpochs(**assigned))


def test_g8_6_standby_tasks_are_given_up_like_active_ones() -> None:
    own = {"standby": {T: "p"}}
    member = _member(standby=frozenset({T}))
    told = reconcile(member, 2, TasksTuple(), None, _Holders(**own))
    assert (told.epoch, told.assigned.standby, told.revoking.standby) == (1, frozenset(), frozenset({T}))
    done = reconcile(told, 2, TasksTuple(), TasksTuple(), _Holders(**own))
    assert (done.epoch, bool(done.revoking)) == (2, False)


@pytest.mark.parametrize("role", ["active", "standby"])
def test_g8_7_a_standby_task_waits_for_its_own_process_only(role: str) -> None:
    target = TasksTuple(standby=frozenset({T}))
    for process, waits in (("p", True), ("q", False)):
        moved = reconcile(_member(), 2, target, TasksTuple(), _Holders(**{role: {T: process}}))
        assert (moved.state is MemberState.UNRELEASED_TASKS) is waits
        assert (moved.assigned.standby == {T}) is not waits


@BOTH
@pytest.mark.parametrize("seed", range(6))
def test_g8_8_members_converge(profile: Profile, seed: int) -> None:
    random = Random(seed)
    broker = Broker(profile, topics={"in": 9, "c": 9}, config={"group_streams_num_standby_replicas": seed % 3})
    members: list[str] = []
    for step in range(12):
        if members and random.random() < 0.35:
            broker.heartbeat(members.pop(random.randrange(len(members))), -1)
        else:
            members.append(f"m{step}")
            broker.heartbeat(members[-1], topology=STATEFUL, process_id=f"p{random.randrange(3)}")
    members = members or ["last"]
    if members == ["last"]:
        broker.heartbeat("last", topology=STATEFUL)
    broker.settle(*members, rounds=2 * (len(members) + 1))
    group = broker.group()
    assert group.state_name() == "Stable"
    assert all(group.targets[name].same_as(group.members[name].assigned) for name in members)


@BOTH
def test_g8_9_an_assignment_is_recorded_when_it_changes(profile: Profile) -> None:
    broker, epoch = _two(profile)
    broker.heartbeat("A", epoch, **_owned(0, 1))
    assert "CurrentMemberAssignment" in broker.kinds
    broker.heartbeat("A", epoch, **_owned(0, 1))
    assert broker.kinds == []


def test_g8_10_tasks_to_give_up_are_kept_by_role() -> None:
    other: TaskId = ("0", 1)
    member = _member(active={T: 1}, standby=frozenset({other}))
    moved = reconcile(member, 2, TasksTuple(), None, _Holders(active={T: "p"}, standby={other: "p"}))
    assert (moved.revoking.active, moved.revoking.standby) == ({T: 1}, frozenset({other}))


def test_g8_11_a_task_twice_on_a_process_is_never_handed_out() -> None:
    target = TasksTuple(active=frozenset({T}), standby=frozenset({T}))
    moved = reconcile(_member(), 2, target, TasksTuple(), _Holders(active={T: "p"}))
    assert not moved.assigned.active
    assert not moved.assigned.standby
