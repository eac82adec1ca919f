"""Requirements G7.10 to G7.15 and G11: warm-up tasks, and effects of reported offsets. The release has no warm-ups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kafka_msgs.groups.page import KIP_1071_PAGE
from kafka_msgs.groups.profiles import SHIPPED, Profile
from tests.groups.streams.broker import Broker, changelog, page, subtopology, topology
from tests.groups.streams.classic_app import sums

STATEFUL = topology(subtopology("0", "in", state_changelog_topics=(changelog("c"),)))
END = 100_000
LAG = 10_000
"""The default of ``acceptable.recovery.lag``."""


def _broker(tasks: int = 2, profile: Profile = KIP_1071_PAGE, **config: Any) -> Broker:
    return Broker(profile, topics={"in": tasks, "c": tasks}, config=config)


def _start(tasks: int = 2, **config: Any) -> Broker:
    """Return a broker on which A runs all tasks and has reported their end offsets, and B has just joined."""
    broker = _broker(tasks, **config)
    broker.heartbeat("A", topology=STATEFUL)
    broker.settle("A", rounds=1)
    ends = dict.fromkeys(range(tasks), END)
    report(broker, "A", ends, ends)
    broker.heartbeat("B", topology=STATEFUL)
    broker.settle("A", "B")
    return broker


def report(broker: Broker, member: str, offsets: Mapping[int, int], ends: Mapping[int, int] | None = None) -> None:
    """Report offsets of a member."""
    fields: dict[str, Any] = {"task_offsets": sums(offsets)}
    if ends is not None:
        fields["task_end_offsets"] = sums(ends)
    broker.heartbeat(member, broker.group().members[member].epoch, **fields)


def warmups(broker: Broker, member: str) -> set[int]:
    return {number for _, number in broker.group().targets[member].warmup}


def test_g7_10_a_warm_up_task_that_has_caught_up_gets_another_role() -> None:
    broker = _start()
    [task] = warmups(broker, "B")
    report(broker, "B", {task: END})
    assert ("0", task) in broker.target("B")
    assert warmups(broker, "B") == set()
    broker.settle("A", "B")
    assert broker.active("B") == {("0", task)}
    assert broker.group().state_name() == "Stable"


def test_g7_12_warm_up_tasks_are_limited_for_the_whole_group() -> None:
    """B and C could take 10 of A's 15 tasks."""
    broker = _start(15, group_streams_num_warmup_replicas=2)
    broker.heartbeat("C", topology=STATEFUL)
    assert len(warmups(broker, "A") | warmups(broker, "B") | warmups(broker, "C")) == 2
    broker.settle("A", "B", "C")
    assert len(broker.active("A")) == 15


def test_g7_14_a_task_stays_with_a_client_that_has_its_state_while_another_warms_up() -> None:
    """The tests of G15.7 cover the example of the KIP."""
    broker = _start()
    [task] = warmups(broker, "B")
    assert broker.active("A") == broker.target("A") == {("0", 0), ("0", 1)}
    report(broker, "B", {task: END - LAG - 1})
    assert broker.target("A") == {("0", 0), ("0", 1)}
    report(broker, "B", {task: END - LAG})
    assert broker.target("A") == {("0", 1 - task)}


def test_g7_15_without_an_end_offset_nobody_is_caught_up_and_the_greatest_offset_counts() -> None:
    """A task without an owner has no known end offset. The process with the most state gets the task."""
    broker = page(topics={"c": 1})
    for member, offset in (("A", 9), ("B", 5)):
        broker.heartbeat(member, topology=STATEFUL, task_offsets=sums({0: offset}))
    broker.topics(**{"in": 1})
    report(broker, "B", {0: 10})
    assert broker.target("B") == {("0", 0)}
    assert warmups(broker, "A") == {0}
    broker.settle("A", "B")
    report(broker, "A", {0: 10**9})
    assert broker.target("B") == {("0", 0)}


@pytest.mark.parametrize("last", ["B", "C"])
def test_g11_6_the_last_report_of_a_process_counts(last: str) -> None:
    """B and C share a process, and therefore its state on disk."""
    broker = _broker(1)
    broker.heartbeat("A", topology=STATEFUL)
    report(broker, "A", {0: END}, {0: END})
    reports = {"B": END, "C": 0}
    for member in "BC":
        broker.heartbeat(member, topology=STATEFUL, process_id="shared")
    for member in sorted(reports, key=lambda each: each == last):
        report(broker, member, {0: reports[member]})
    broker.heartbeat("A", -1)
    broker.heartbeat("D", topology=STATEFUL, process_id="zz", task_offsets=sums({0: END // 2}))
    owner = next(name for name in "BCD" if broker.target(name))
    assert (owner in "BC") is (last == "B")


def test_g11_6_the_release_keeps_what_each_member_reported() -> None:
    broker = _broker(1, SHIPPED)
    for member, offset in (("A", 1), ("B", 2)):
        broker.heartbeat(member, topology=STATEFUL, process_id="shared")
        report(broker, member, {0: offset})
    members = broker.describe().members
    assert {member.member_id: member.task_offsets[0].offset for member in members} == {"A": 1, "B": 2}


def test_g11_7_an_end_offset_that_one_member_knows_serves_for_all() -> None:
    broker = _start()
    [task] = warmups(broker, "B")
    member = broker.group().soft.offsets
    report(broker, "B", {task: END})
    assert not member["B"].end_offsets
    assert ("0", task) in broker.target("B")


@pytest.mark.parametrize(("lag", "bumps"), [(LAG + 1, False), (LAG, True), (LAG - 1, True)])
def test_g11_9_a_lag_that_becomes_acceptable_increases_the_group_epoch(lag: int, bumps: bool) -> None:
    """The KIP contains both "less than" and "reached". A lag equal to the limit is acceptable."""
    broker = _start()
    [task] = warmups(broker, "B")
    before = broker.group().epoch
    report(broker, "B", {task: END - lag})
    assert (broker.group().epoch > before) is bumps
    epoch = broker.group().epoch
    report(broker, "B", {task: END - lag})
    assert broker.group().epoch == epoch


def test_g11_9_the_release_has_no_warm_up_tasks() -> None:
    broker = _broker(2, SHIPPED)
    for member in "AB":
        broker.heartbeat(member, topology=STATEFUL)
    broker.settle("A", "B")
    assert not any(target.warmup for target in broker.group().targets.values())
    epoch = broker.group().epoch
    report(broker, "B", {0: END}, {0: END})
    assert broker.group().epoch == epoch


def test_a_group_with_warm_up_tasks_and_no_news_stays_as_it_is() -> None:
    broker = page(topics={"in": 4, "c": 4})
    for member in "AB":
        broker.heartbeat(member, topology=STATEFUL)
    broker.settle("A", "B")
    epoch = broker.group().epoch
    broker.settle("A", "B")
    assert broker.group().epoch == epoch
