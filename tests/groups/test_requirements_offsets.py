"""Requirements for committed offsets and for group coordinators, each by number.

A8 to A15 are KIP-88's rules for OffsetFetch. D7 to D12 cover coordinators and their state. Authorization (parts of A12
and A13) belongs to the broker, which authorizes requests before it passes them to a coordinator.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.groups.config import CoordinatorConfig
from kafka_msgs.groups.coordinator import PROTOCOLS, GroupCoordinator
from kafka_msgs.groups.group_protocol import GroupProtocol, TopicChange
from kafka_msgs.groups.operation import subscribe
from kafka_msgs.groups.request_context import RequestContext
from kafka_msgs.groups.runtime.memory_log import MemoryLog
from kafka_msgs.groups.runtime.output import ProducerIdAndEpoch
from kafka_msgs.groups.runtime.timeline_map import java_hash_code
from kafka_msgs.groups.runtime.undo_log import WITHOUT_UNDO
from kafka_msgs.groups.topics_image import EMPTY_IMAGE, CoordinatorTopicImage
from kafka_msgs.internal_topics.records import TopicRecord
from kafka_msgs.message import Request
from kafka_msgs.messages.group_metadata_value import GroupMetadataValue
from kafka_msgs.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kafka_msgs.messages.join_group_response import JoinGroupResponse
from kafka_msgs.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafka_msgs.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kafka_msgs.messages.offset_fetch_response import OffsetFetchResponse
from kafka_msgs.messages.sync_group_request import SyncGroupRequest
from kafka_msgs.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

_GROUP = "billing"
_STORED = (("t1", 0), ("t1", 1), ("t2", 0))


class _Broker:
    """A coordinator of all partitions of ``__consumer_offsets``, and its log."""

    def __init__(self, partitions: int = 1) -> None:
        self.log = MemoryLog()
        self.coordinator = GroupCoordinator(
            self.log.append, config=CoordinatorConfig(offsets_topic_num_partitions=partitions)
        )
        self.log.on_commit = self.coordinator.committed
        self.now = 1000
        for partition in range(partitions):
            self.coordinator.elect(partition, 1, now=self.now)
            self.coordinator.loaded(partition, now=self.now)

    def ask(self, request: Request[Any], version: int) -> Any:
        """Return the response to a request, as decoded by a client with that version."""
        context = RequestContext(version=version, client_id="c")
        outcome = self.coordinator.handle(request, context, now=self.now, opaque="it")
        [answer] = outcome.answers
        response = answer.response
        return response.decode(response.encode(version), version)

    def commit(self, *stored: tuple[str, int], group: str = _GROUP) -> None:
        topics = tuple(
            OffsetCommitRequestTopic(
                name=topic, partitions=(OffsetCommitRequestPartition(partition_index=index, committed_offset=42),)
            )
            for topic, index in stored
        )
        response = self.ask(OffsetCommitRequest(group_id=group, topics=topics), 2)
        assert {each.error_code for topic in response.topics for each in topic.partitions} <= {0}


def _fetch(*asked: tuple[str, int], group: str = _GROUP) -> OffsetFetchRequest:
    topics = tuple(OffsetFetchRequestTopic(name=topic, partition_indexes=(index,)) for topic, index in asked)
    return OffsetFetchRequest(group_id=group, topics=topics)


def _offsets(response: OffsetFetchResponse) -> dict[tuple[str, int], tuple[int, int]]:
    return {
        (topic.name, each.partition_index): (each.committed_offset, each.error_code)
        for topic in response.topics
        for each in topic.partitions
    }


@pytest.fixture
def broker() -> _Broker:
    return _Broker()


def test_a8_null_topics_give_every_partition_with_a_stored_offset(broker: _Broker) -> None:
    broker.commit(*_STORED)

    response = broker.ask(OffsetFetchRequest(group_id=_GROUP, topics=None), 2)

    assert _offsets(response) == dict.fromkeys(_STORED, (42, 0))
    assert response.error_code == ErrorCode.NONE


def test_a9_a_stable_group_shows_offsets_that_it_does_not_consume_any_more(broker: _Broker) -> None:
    broker.commit(*_STORED)
    _join(broker)

    response = broker.ask(OffsetFetchRequest(group_id=_GROUP, topics=None), 2)

    assert broker.coordinator.shards[0].state.groups[_GROUP].state_name() == "Stable"
    assert set(_offsets(response)) == set(_STORED)


def _join(broker: _Broker) -> str:
    """Join and sync one member; return its id."""
    protocols = (JoinGroupRequestProtocol(name="range", metadata=b""),)
    request = JoinGroupRequest(
        group_id=_GROUP,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=protocols,
    )
    coordinator = broker.coordinator
    coordinator.handle(request, RequestContext(version=2, client_id="c"), now=broker.now, opaque="join")
    broker.now += 3000
    joined = coordinator.tick(broker.now).answers[0].response
    assert isinstance(joined, JoinGroupResponse)
    sync = SyncGroupRequest(group_id=_GROUP, generation_id=joined.generation_id, member_id=joined.member_id)
    assert broker.ask(sync, 2).error_code == ErrorCode.NONE
    return joined.member_id


@pytest.mark.parametrize("version", [1, 2, 5, 7])
def test_a10_the_answer_has_the_partitions_that_were_asked_for(broker: _Broker, version: int) -> None:
    broker.commit(("t", 0))

    response = broker.ask(_fetch(("t", 0), ("t", 5)), version)

    assert _offsets(response) == {("t", 0): (42, 0), ("t", 5): (-1, 0)}


@pytest.mark.parametrize("version", [1, 2])
def test_a11_no_topics_give_an_empty_list_and_an_error_only_from_version_2(broker: _Broker, version: int) -> None:
    assert broker.ask(_fetch(), version).topics == ()

    broker.coordinator.resign(0, None, now=broker.now)
    response = broker.ask(_fetch(), version)

    assert response.topics == ()
    assert response.error_code == (ErrorCode.NOT_COORDINATOR if version >= 2 else ErrorCode.NONE)


@pytest.mark.parametrize("version", range(2, 11))
def test_a12_errors_of_the_group_stand_at_the_top(broker: _Broker, version: int) -> None:
    coordinator = broker.coordinator
    coordinator.resign(0, None, now=broker.now)
    assert _error_of(broker, version) == ErrorCode.NOT_COORDINATOR

    coordinator.elect(0, 2, now=broker.now)
    assert _error_of(broker, version) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    coordinator.loaded(0, now=broker.now)
    assert _error_of(broker, version) == ErrorCode.NONE


def _error_of(broker: _Broker, version: int) -> int:
    if version < 8:
        response = broker.ask(_fetch(("t", 0)), version)
        assert all(error == 0 for _, error in _offsets(response).values())
        return int(response.error_code)
    topics = (OffsetFetchRequestTopics(name="t" if version < 10 else "", partition_indexes=(0,)),)
    group = OffsetFetchRequestGroup(group_id=_GROUP, topics=topics)
    response = broker.ask(OffsetFetchRequest(groups=(group,)), version)
    return int(response.groups[0].error_code)


def test_a13_errors_of_a_partition_stay_with_the_partition(broker: _Broker) -> None:
    broker.commit(("t", 1))
    _commit_in_transaction(broker, "t", 0)

    request = OffsetFetchRequest(group_id=_GROUP, require_stable=True, topics=_fetch(("t", 0), ("t", 1)).topics)
    response = broker.ask(request, 7)

    assert _offsets(response) == {("t", 0): (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT), ("t", 1): (42, 0)}
    assert response.error_code == ErrorCode.NONE


def _commit_in_transaction(broker: _Broker, topic: str, partition: int) -> None:
    partitions = (TxnOffsetCommitRequestPartition(partition_index=partition, committed_offset=7),)
    request = TxnOffsetCommitRequest(
        transactional_id="x",
        group_id=_GROUP,
        producer_id=9,
        producer_epoch=0,
        topics=(TxnOffsetCommitRequestTopic(name=topic, partitions=partitions),),
    )
    assert broker.ask(request, 3).topics[0].partitions[0].error_code == ErrorCode.NONE


@pytest.mark.parametrize(("committed", "offset"), [(True, 7), (False, -1)])
def test_an_offset_in_a_transaction_counts_when_the_transaction_is_committed(
    broker: _Broker, committed: bool, offset: int
) -> None:
    _commit_in_transaction(broker, "t", 0)
    assert _offsets(broker.ask(_fetch(("t", 0)), 5)) == {("t", 0): (-1, 0)}

    outcome = broker.coordinator.end_transaction(0, ProducerIdAndEpoch(9, 0), committed, now=broker.now, opaque="end")

    assert [answer.response for answer in outcome.answers] == [ErrorCode.NONE]
    assert _offsets(broker.ask(_fetch(("t", 0)), 5)) == {("t", 0): (offset, 0)}


def test_a14_before_version_2_each_partition_carries_the_error_of_the_group(broker: _Broker) -> None:
    broker.coordinator.resign(0, None, now=broker.now)
    broker.coordinator.elect(0, 2, now=broker.now)

    response = broker.ask(_fetch(("t", 0), ("u", 3)), 1)

    error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert _offsets(response) == {("t", 0): (-1, error), ("u", 3): (-1, error)}


def test_a15_a_group_without_offsets_is_not_an_error_but_a_moved_coordinator_is(broker: _Broker) -> None:
    everything = OffsetFetchRequest(group_id="nobody", topics=None)
    nothing = broker.ask(everything, 2)
    assert (nothing.topics, nothing.error_code) == ((), ErrorCode.NONE)

    broker.coordinator.resign(0, None, now=broker.now)

    moved = broker.ask(everything, 2)
    assert (moved.topics, moved.error_code) == ((), ErrorCode.NOT_COORDINATOR)


@pytest.mark.parametrize(
    ("name", "code"),
    [("", 0), ("billing", -109829509), ("Aa", 2112), ("BB", 2112), ("äöü", 226986), ("polygenelubricants", -(2**31))],
)
def test_d7_y3_the_partition_of_a_group_follows_from_its_name_by_javas_hash(name: str, code: int) -> None:
    coordinator = GroupCoordinator(MemoryLog().append)

    assert java_hash_code(name) == code
    assert coordinator.partition_for(name) == (0 if code == -(2**31) else abs(code) % 50)


def test_d7_a_group_moves_with_the_leader_of_its_partition() -> None:
    old, new = _Broker(partitions=50), _Broker(partitions=50)
    old.commit(("t", 0))
    partition = old.coordinator.partition_for(_GROUP)
    for each in range(50):
        new.coordinator.resign(each, None, now=new.now)

    old.coordinator.resign(partition, 2, now=old.now)
    assert new.coordinator.elect(partition, 2, now=new.now)
    new.coordinator.load(partition, old.log.records(partition))
    new.coordinator.loaded(partition, now=new.now)

    assert old.ask(_fetch(("t", 0)), 2).error_code == ErrorCode.NOT_COORDINATOR
    assert _offsets(new.ask(_fetch(("t", 0)), 2)) == {("t", 0): (42, 0)}


def test_d8_all_brokers_name_the_same_partition() -> None:
    brokers = [_Broker(partitions=50) for _ in range(3)]

    for group in ("a", _GROUP, "x" * 200):
        assert len({broker.coordinator.partition_for(group) for broker in brokers}) == 1


def test_d9_a_coordinator_refuses_groups_that_are_not_its_own() -> None:
    broker = _Broker(partitions=2)
    mine = next(name for name in "abc" if broker.coordinator.partition_for(name) == 0)
    other = next(name for name in "abc" if broker.coordinator.partition_for(name) == 1)
    broker.coordinator.resign(1, None, now=broker.now)

    assert broker.ask(_fetch(group=mine), 2).error_code == ErrorCode.NONE
    assert broker.ask(_fetch(group=other), 2).error_code == ErrorCode.NOT_COORDINATOR


def test_d10_a_group_knows_its_members_their_timeouts_its_offsets_and_its_generation(broker: _Broker) -> None:
    broker.commit(*_STORED)
    member_id = _join(broker)
    state = broker.coordinator.shards[0].state

    group: Any = state.groups[_GROUP]

    [member] = group.record.members
    assert (member.member_id, member.session_timeout, member.rebalance_timeout) == (member_id, 10_000, 10_000)
    assert group.record.generation == 1
    assert {(topic, index) for topic, found in state.offsets[_GROUP].items() for index in found} == set(_STORED)


def test_d11_a_change_of_a_topic_reaches_exactly_the_groups_that_subscribe_to_it() -> None:
    told: list[str] = []
    probe = GroupProtocol(on_topics_changed={"classic": lambda tx, group: told.append(group.group_id)})
    log = MemoryLog()
    coordinator = GroupCoordinator(
        log.append, config=CoordinatorConfig(offsets_topic_num_partitions=1), protocols=(*PROTOCOLS, probe)
    )
    coordinator.elect(0, 1, now=0)
    coordinator.loaded(0, now=0)
    state = coordinator.shards[0].state
    for name in ("a", "b"):
        state.groups[name] = state.new_simple_group(name)
    subscribe(state, WITHOUT_UNDO, "a", (), ("t", "u"))
    subscribe(state, WITHOUT_UNDO, "b", (), ("u",))
    subscribe(state, WITHOUT_UNDO, "a", ("t", "u"), ("t",))
    assert state.subscribers == {"t": {"a": None}, "u": {"b": None}}

    topics = [
        CoordinatorTopicImage(name=name, id=UUID(int=number), racks=((),)) for number, name in enumerate("tuv", 1)
    ]
    image = EMPTY_IMAGE.changed(put=topics)
    coordinator.change_image(TopicChange(EMPTY_IMAGE, image, ("t", "v"), (), ()), now=0)
    assert told == ["a"]
    coordinator.set_image(image.changed(delete=["u"]), now=0)
    assert told == ["a", "b"]
    subscribe(state, WITHOUT_UNDO, "b", ("u",), ())
    assert state.subscribers == {"t": {"a": None}}


def test_d12_what_a_group_owns_is_written_when_a_rebalance_completes_and_read_after_a_move(broker: _Broker) -> None:
    member_id = _join(broker)
    values = [each.value for each in broker.log.records(0) if isinstance(each, TopicRecord)]
    generations = [value.generation for value in values if isinstance(value, GroupMetadataValue) and value.members]
    assert generations == [1]

    broker.coordinator.resign(0, None, now=broker.now)
    broker.coordinator.elect(0, 2, now=broker.now)
    broker.coordinator.load(0, broker.log.records(0))
    broker.coordinator.loaded(0, now=broker.now)

    group: Any = broker.coordinator.shards[0].state.groups[_GROUP]
    assert [member.member_id for member in group.record.members] == [member_id]
    assert group.record.generation == 1
