"""Requirements G11.1 to G11.5, G13.8 and G13.9: a Streams client, and its interaction with the coordinator."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_msgs.client.streams import (
    DEPRECATED,
    Changelog,
    LocalTask,
    StreamsConfig,
    StreamsMember,
    TaskPhase,
    task_sums,
)
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import OptionError
from kafka_msgs.groups.page import KIP_1071_PAGE
from kafka_msgs.groups.profiles import SHIPPED, Profile
from tests.groups.streams.broker import Broker, changelog, subtopology, topology

BOTH = pytest.mark.parametrize("profile", [SHIPPED, KIP_1071_PAGE], ids=["shipped", "page"])
STATEFUL = topology(subtopology("0", "in", state_changelog_topics=(changelog("c"),)))
TASK = ("0", 0)


def _restoring(position: int, end: int | None = None) -> LocalTask:
    return LocalTask(TaskPhase.RESTORING, [Changelog(position=position, end=end)])


def _joined(profile: Profile = KIP_1071_PAGE) -> tuple[Broker, StreamsMember]:
    broker = Broker(profile, topics={"in": 2, "c": 2})
    member = StreamsMember("g", "A", STATEFUL, process_id="p")
    assert _send(broker, member) is ErrorCode.NONE
    member.reconcile()
    return broker, member


def _send(broker: Broker, member: StreamsMember, state: dict[Any, LocalTask] | None = None) -> ErrorCode:
    return member.handle_response(broker.ask(member.heartbeat(broker.now, state)))


def test_g11_1_offsets_are_reported_when_tasks_change_a_warm_up_catches_up_and_in_intervals() -> None:
    broker, member = _joined()
    state = {TASK: _restoring(0, 100_000)}

    def reports() -> bool:
        request = member.heartbeat(broker.now, state)
        assert member.handle_response(broker.ask(request)) is ErrorCode.NONE
        return request.task_offsets is not None

    assert [reports(), reports()] == [True, False]
    state["0", 1] = _restoring(0)
    assert [reports(), reports()] == [True, False]
    del state["0", 1]
    assert [reports(), reports()] == [True, False]
    broker.now += 59_999
    assert not reports()
    broker.now += 1
    assert [reports(), reports()] == [True, False]

    member.owned = type(member.owned)(warmup=frozenset({TASK}))
    state[TASK] = _restoring(89_999, 100_000)
    assert member.heartbeat(broker.now, state).task_offsets is None
    state[TASK] = _restoring(90_000, 100_000)
    assert member.heartbeat(broker.now, state).task_offsets is not None


def test_g11_1_a_report_that_may_be_lost_is_repeated() -> None:
    broker, member = _joined()
    state = {TASK: _restoring(5)}
    assert member.heartbeat(broker.now, state).task_offsets is not None
    member.handle_no_response()
    request = member.heartbeat(broker.now, state)
    assert request.task_offsets is not None
    assert request.process_id == "p"
    assert broker.ask(request).error_code == ErrorCode.NONE


@given(st.lists(st.integers(0, 2**40), max_size=5))
def test_g11_2_the_sum_is_over_all_changelog_partitions(positions: list[int]) -> None:
    local = LocalTask(TaskPhase.RESTORING, [Changelog(position=each, end=each + 1) for each in positions])
    sums = task_sums({TASK: local})
    assert sums.offsets[TASK] == sum(positions)
    assert sums.end_offsets[TASK] == sum(positions) + len(positions)


@pytest.mark.parametrize(("exactly_once", "reached"), [(False, 30), (True, 20)])
def test_g11_3_a_processing_task_has_no_lag(exactly_once: bool, reached: int) -> None:
    changelogs = [Changelog(position=1, high_watermark=15, last_stable_offset=10, end=99)] * 2
    sums = task_sums({TASK: LocalTask(TaskPhase.PROCESSING, changelogs)}, exactly_once=exactly_once)
    assert sums == ({TASK: reached}, {TASK: reached})


def test_g11_4_a_restoring_task_has_an_end_offset_if_all_its_ends_are_known() -> None:
    known = LocalTask(TaskPhase.RESTORING, [Changelog(position=3, end=10), Changelog(position=4, end=20)])
    assert task_sums({TASK: known}) == ({TASK: 7}, {TASK: 30})
    unknown = LocalTask(TaskPhase.RESTORING, [Changelog(position=3, end=10), Changelog(position=4)])
    assert task_sums({TASK: unknown}) == ({TASK: 7}, {})


def test_g11_5_a_dormant_task_counts_if_its_directory_is_locked() -> None:
    changelogs = [Changelog(position=3, end=10)]
    mine, others = LocalTask(TaskPhase.DORMANT, changelogs), LocalTask(TaskPhase.DORMANT, changelogs, locked=False)
    assert task_sums({TASK: mine, ("0", 1): others}) == ({TASK: 3}, {})


def test_g13_8_the_classic_protocol_is_the_default() -> None:
    assert StreamsConfig.parse({}) == StreamsConfig(group_protocol="classic", topology_epoch=0)
    assert StreamsConfig.parse({"topology.epoch": "3"}).topology_epoch == 0
    found = StreamsConfig.parse({"group.protocol": "STREAMS", "topology.epoch": "3", "application.id": "a"})
    assert found == StreamsConfig(group_protocol="streams", topology_epoch=3)


@pytest.mark.parametrize(
    "wrong", [{"group.protocol": "consumer"}, {"topology.epoch": "-1"}, {"topology.epoch": "x"}, {"topology.epoch": ""}]
)
def test_g13_8_other_values_are_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(OptionError):
        StreamsConfig.parse(wrong)


def test_g13_9_nine_settings_have_no_effect_in_the_streams_protocol() -> None:
    assert len(DEPRECATED) == 9
    for name in DEPRECATED:
        with pytest.warns(UserWarning, match=name):
            found = StreamsConfig.parse({"group.protocol": "streams", name: "1"})
        assert found == StreamsConfig(group_protocol="streams")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        StreamsConfig.parse(dict.fromkeys(DEPRECATED, "1"))


@BOTH
def test_members_share_the_tasks_of_a_coordinator(profile: Profile) -> None:
    broker = Broker(profile, topics={"in": 4})
    members = [StreamsMember("g", name, topology(), process_id=name) for name in "ABC"]
    for _ in range(8):
        for member in members:
            assert _send(broker, member) is ErrorCode.NONE
            member.reconcile()
            owned = [task for each in members for task in each.owned.active]
            assert len(owned) == len(set(owned))
    assert sorted(len(member.owned.active) for member in members) == [1, 1, 2]
    assert broker.group().state_name() == "Stable"


@BOTH
def test_a_member_that_is_fenced_joins_anew(profile: Profile) -> None:
    broker, member = _joined(profile)
    member.epoch += 5
    assert _send(broker, member) is ErrorCode.FENCED_MEMBER_EPOCH
    assert (member.epoch, member.owned.active) == (0, frozenset())
    assert _send(broker, member) is ErrorCode.NONE
    assert member.reconcile().active == {("0", 0), ("0", 1)}


@BOTH
def test_a_member_leaves_for_good_or_for_a_while(profile: Profile) -> None:
    broker = Broker(profile)
    static = StreamsMember("g", "A", topology(), process_id="A", instance_id="i")
    dynamic = StreamsMember("g", "B", topology(), process_id="B")
    for member in (static, dynamic):
        _send(broker, member)
        assert member.handle_response(broker.ask(member.leave())) is ErrorCode.NONE
        assert member.epoch == 0
    assert set(broker.group().members) == {"A"}
    other = StreamsMember("g", "C", topology(), process_id="C")
    _send(broker, other)
    broker.ask(static.leave(shutdown=True))
    assert _send(broker, other) is ErrorCode.NONE
    assert [status.status_code for status in other.status] == [4]
