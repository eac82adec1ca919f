"""Requirements G5 and G6: the topics that a topology needs, and the status that members receive about them."""

from __future__ import annotations

from itertools import pairwise

import pytest

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.page import KIP_1071_PAGE
from kafka_msgs.groups.profiles import SHIPPED, Profile
from kafka_msgs.groups.streams.configured_topology import ConfiguredTopology, StatusCode, configure
from kafka_msgs.groups.streams.topology import StreamsTopology, topology_value
from kafka_msgs.groups.topics_image import CoordinatorTopicImage
from kafka_msgs.messages.streams_group_heartbeat_request import CopartitionGroup, KeyValue, Subtopology
from kafka_msgs.schema import ZERO_UUID
from tests.groups.streams.broker import Broker, changelog, page, subtopology, topology

BOTH = pytest.mark.parametrize("profile", [SHIPPED, KIP_1071_PAGE], ids=["shipped", "page"])
STATEFUL = topology(subtopology("0", "in", state_changelog_topics=(changelog("c"),)))


def configured(*subtopologies: Subtopology, **partitions: int) -> ConfiguredTopology:
    topics = {
        name: CoordinatorTopicImage(name=name, id=ZERO_UUID, racks=((),) * count)
        for name, count in partitions.items()
        if count > 0
    }
    return configure(StreamsTopology(topology_value(topology(*subtopologies))), topics, 0)


def problem(*subtopologies: Subtopology, **partitions: int) -> tuple[StatusCode, str]:
    found = configured(*subtopologies, **partitions).problem
    assert found is not None
    return found.status, found.detail


def created(found: ConfiguredTopology) -> dict[str, int]:
    return {topic.name: topic.num_partitions for topic in found.to_create}


JOIN = (CopartitionGroup(source_topics=(0, 1)),)


def test_g5_1_topics_are_looked_at_in_order() -> None:
    both = subtopology("0", "a", "b", copartition_groups=JOIN, state_changelog_topics=(changelog("c"),))
    assert problem(both, a=3)[0] is StatusCode.MISSING_SOURCE_TOPICS
    assert problem(both, a=3, b=4)[0] is StatusCode.INCORRECTLY_PARTITIONED_TOPICS
    assert problem(both, a=3, b=3)[0] is StatusCode.MISSING_INTERNAL_TOPICS
    assert configured(both, a=3, b=3, c=3).ready


@BOTH
def test_g5_2_missing_sources_are_named(profile: Profile) -> None:
    broker = Broker(profile, topics={})
    sent = topology(subtopology("0", "x", "a", source_topic_regex=("n.*",) if profile is KIP_1071_PAGE else ()))
    status = broker.heartbeat(topology=sent).status
    assert [each.status_code for each in status] == [1]
    assert all(
        name in status[0].status_detail for name in ("x", "a", "n.*") if profile is KIP_1071_PAGE or name != "n.*"
    )
    assert broker.group().state_name() == "NotReady"


def test_g5_3_copartitioned_topics_have_the_same_number() -> None:
    status, detail = problem(subtopology("0", "a", "b", copartition_groups=JOIN), a=3, b=4)
    assert (status, "a=3, b=4" in detail) == (StatusCode.INCORRECTLY_PARTITIONED_TOPICS, True)


def test_g5_3_a_changelog_has_as_many_partitions_as_sources() -> None:
    status, detail = problem(subtopology("0", "a", state_changelog_topics=(changelog("c"),)), a=3, c=2)
    assert status is StatusCode.INCORRECTLY_PARTITIONED_TOPICS
    assert "c has" in detail


@BOTH
def test_g5_4_missing_internal_topics_are_asked_for(profile: Profile) -> None:
    broker = Broker(profile)
    status = broker.heartbeat(topology=STATEFUL).status
    assert [each.status_code for each in status] == [3]
    assert [(topic.name, topic.num_partitions) for topic in broker.creates] == [("c", 2)]
    assert broker.group().state_name() == "NotReady"


@BOTH
def test_g5_5_missing_sources_come_before_missing_internal_topics(profile: Profile) -> None:
    broker = Broker(profile, topics={})
    assert [each.status_code for each in broker.heartbeat(topology=STATEFUL).status] == [1]
    assert broker.creates == ()


@BOTH
def test_g5_6_other_settings_of_an_internal_topic_do_not_matter(profile: Profile) -> None:
    broker = Broker(profile, topics={"in": 2, "c": 2})
    stored = changelog("c", replication_factor=3, topic_configs=(KeyValue(key="retention.ms", value="1"),))
    sent = topology(subtopology("0", "in", state_changelog_topics=(stored,)))
    assert broker.heartbeat(topology=sent).status == ()
    assert broker.group().state_name() == "Stable"


@BOTH
def test_g5_7_without_topics_members_have_no_tasks(profile: Profile) -> None:
    broker = Broker(profile, topics={})
    answer = broker.heartbeat()
    assert (answer.error_code, answer.active_tasks, answer.standby_tasks) == (0, (), ())
    assert broker.error("A", answer.member_epoch) is ErrorCode.NONE


@BOTH
def test_g5_7_tasks_are_taken_back_when_a_source_is_deleted(profile: Profile) -> None:
    broker = Broker(profile)
    epoch = broker.heartbeat().member_epoch
    broker.delete_topic("in")
    answer = broker.heartbeat("A", epoch, active_tasks=(), standby_tasks=(), warmup_tasks=())
    assert (answer.error_code, answer.active_tasks) == (0, ())


@BOTH
def test_g5_8_several_statuses_at_once(profile: Profile) -> None:
    broker = Broker(profile, topics={})
    epoch = broker.heartbeat().member_epoch
    if profile is KIP_1071_PAGE:
        broker.heartbeat("B", topology=topology(epoch=1))
        assert [each.status_code for each in broker.heartbeat("A", epoch).status] == [0, 1]
    else:
        broker.heartbeat("B", -1, shutdown_application=True)
        assert [each.status_code for each in broker.heartbeat("A", epoch).status] == [1, 4]


def test_g5_9_a_status_that_did_not_change_is_null_in_the_document() -> None:
    for broker, second in ((page(topics={}), None), (Broker(topics={}), [1])):
        first = broker.heartbeat()
        assert [each.status_code for each in first.status] == [1]
        again = broker.heartbeat("A", first.member_epoch).status
        assert (None if again is None else [each.status_code for each in again]) == second
        broker.topics(**{"in": 2})
        assert broker.heartbeat("A", broker.group().members["A"].epoch).status == ()


@BOTH
def test_g5_10_a_new_topic_makes_the_group_ready(profile: Profile) -> None:
    broker = Broker(profile, topics={})
    epoch = broker.heartbeat().member_epoch
    before = broker.group().epoch
    broker.topics(**{"in": 2})
    broker.heartbeat("A", epoch)
    assert broker.group().epoch == before + 1
    assert broker.group().state_name() == "Stable"


def test_g5_11_patterns_find_new_topics() -> None:
    broker = page(topics={"in-1": 1})
    epoch = broker.heartbeat(topology=topology(subtopology("0", source_topic_regex=("in-.*",)))).member_epoch
    assert broker.target("A") == {("0", 0)}
    broker.topics(**{"other": 9})
    assert broker.heartbeat("A", epoch).member_epoch == epoch
    broker.topics(**{"in-2": 3})
    broker.heartbeat("A", epoch)
    assert broker.target("A") == {("0", 0), ("0", 1), ("0", 2)}


def test_g6_1_a_changelog_has_the_most_partitions_of_the_sources() -> None:
    found = configured(subtopology("0", "a", "b", state_changelog_topics=(changelog("c"),)), a=3, b=5)
    assert created(found) == {"c": 5}


def _chain(count: int, first: int = 0) -> tuple[Subtopology, ...]:
    links = [subtopology("0", "a", repartition_sink_topics=("r1",))]
    for at in range(1, count):
        links.append(
            subtopology(
                str(at),
                repartition_source_topics=(changelog(f"r{at}", first if at == 1 else 0),),
                repartition_sink_topics=(f"r{at + 1}",) if at + 1 < count else (),
            )
        )
    return tuple(links)


def test_g6_2_a_repartition_topic_has_the_number_that_is_given() -> None:
    assert created(configured(*_chain(2, 4), a=3)) == {"r1": 4}
    assert created(configured(*_chain(2), a=3)) == {"r1": 3}


def test_y13_g6_3_numbers_are_inferred_along_a_chain() -> None:
    assert created(configured(*_chain(3), a=6)) == {"r1": 6, "r2": 6}


def test_y13_g6_3_a_cycle_without_a_number_is_refused() -> None:
    def loop(partitions: int) -> tuple[Subtopology, ...]:
        return (
            subtopology("0", repartition_source_topics=(changelog("x"),), repartition_sink_topics=("y",)),
            subtopology("1", repartition_source_topics=(changelog("y", partitions),), repartition_sink_topics=("x",)),
        )

    with pytest.raises(GroupError, match="loops") as refused:
        configured(*loop(0))
    assert refused.value.error is ErrorCode.STREAMS_INVALID_TOPOLOGY
    assert created(configured(*loop(2))) == {"x": 2, "y": 2}


def test_g6_4_copartitioned_repartition_topics_take_the_common_number() -> None:
    joined = subtopology(
        "1",
        "u",
        repartition_source_topics=(changelog("r"),),
        copartition_groups=(CopartitionGroup(source_topics=(0,), repartition_source_topics=(0,)),),
    )
    found = configured(subtopology("0", "a", repartition_sink_topics=("r",)), joined, a=3, u=6)
    assert created(found) == {"r": 6}


@BOTH
def test_g6_5_there_is_a_task_for_each_partition_of_the_widest_source(profile: Profile) -> None:
    broker = Broker(profile, topics={"a": 3, "b": 5})
    broker.heartbeat(topology=topology(subtopology("0", "a", "b")))
    assert broker.target("A") == {("0", partition) for partition in range(5)}


@BOTH
def test_g6_6_a_source_may_grow(profile: Profile) -> None:
    broker = Broker(profile)
    epoch = broker.heartbeat().member_epoch
    before = broker.group().epoch
    broker.topics(**{"in": 4})
    broker.heartbeat("A", epoch)
    assert broker.group().epoch == before + 1
    assert broker.target("A") == {("0", partition) for partition in range(4)}
    assert broker.group().topology_epoch == 0


@BOTH
def test_g6_7_a_source_that_grows_beyond_its_changelog_is_a_problem(profile: Profile) -> None:
    broker = Broker(profile, topics={"in": 2, "c": 2})
    epoch = broker.heartbeat(topology=STATEFUL).member_epoch
    broker.topics(**{"in": 4})
    assert [each.status_code for each in broker.heartbeat("A", epoch).status] == [2]


def test_g6_8_settings_of_internal_topics_pass_through() -> None:
    stored = (
        changelog("c", topic_configs=(KeyValue(key="cleanup.policy", value="compact"),)),
        changelog("d", replication_factor=3),
    )
    c, d = sorted(configured(subtopology("0", "a", state_changelog_topics=stored), a=1).to_create, key=lambda t: t.name)
    assert (c.replication_factor, d.replication_factor) == (-1, 3)
    assert [(each.name, each.value) for each in c.configs] == [("cleanup.policy", "compact")]


def test_g6_9_there_is_one_attempt_at_a_time() -> None:
    broker = page()
    epoch = broker.heartbeat(topology=STATEFUL).member_epoch
    asked = [broker.creates]
    for _ in range(9):
        broker.heartbeat("A", epoch)
        asked.append(broker.creates)
    assert [bool(each) for each in asked] == [True] + [False] * 9


def test_g6_10_attempts_become_rarer() -> None:
    broker = page()
    epoch = broker.heartbeat(topology=STATEFUL).member_epoch
    attempts = [broker.now]
    while len(attempts) < 4:
        broker.advance(500)
        broker.heartbeat("A", epoch)
        if broker.creates:
            attempts.append(broker.now)
    waits = [after - before for before, after in pairwise(attempts)]
    assert waits == sorted(set(waits))


def test_g6_12_the_detail_tells_about_attempts() -> None:
    broker = page()
    first = broker.heartbeat(topology=STATEFUL)
    assert "attempt to create them was made" in first.status[0].status_detail
    later = broker.heartbeat("A", first.member_epoch).status[0].status_detail
    assert "later" in later
    broker.coordinator.creation_failed("g", "no space", now=broker.now)
    failed = broker.heartbeat("A", broker.group().members["A"].epoch).status[0].status_detail
    assert "no space" in failed


@BOTH
def test_g6_13_tasks_are_assigned_when_all_topics_are_there(profile: Profile) -> None:
    broker = Broker(profile)
    first = broker.heartbeat(topology=STATEFUL)
    assert first.active_tasks == ()
    broker.topics(c=2)
    broker.heartbeat("A", first.member_epoch)
    assert broker.active("A") == {("0", 0), ("0", 1)}
