"""The transaction coordinator over time: timeouts, expiration, moves, failed appends, and exhausted epochs.

``test_against_kafka`` compares its responses with a real broker. These tests cover events that a broker does not
produce on request.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import pytest
from attrs import Factory, define, evolve
from hypothesis import given
from hypothesis import strategies as st

from kafka_msgs.broker.transactions import (
    TopicPartition,
    TransactionConfig,
    TransactionCoordinator,
    TransactionMetadata,
    TransactionState,
)
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.errors.api import ApiError
from kafka_msgs.groups.runtime.output import MarkerAppend, ProducerIdAndEpoch, RecordAppend
from kafka_msgs.internal_topics.records import TopicRecord, decode_record, encode_record

NAME: Final = "payments"
PLACE: Final = TopicPartition("orders", 0)
OTHER: Final = TopicPartition("orders", 1)
TIMEOUT_MS: Final = 60_000
LAST_EPOCH: Final = 32_766


@define
class World:
    """A coordinator with one partition of the state topic, whose log can refuse appends."""

    config: TransactionConfig = Factory(lambda: TransactionConfig(transaction_state_log_num_partitions=1))
    log: list[TopicRecord] = Factory(list)
    refuses: bool = False
    holds: bool = False
    ids: int = 0
    now: int = 1_000_000

    def new_coordinator(self) -> TransactionCoordinator:
        """Return a coordinator that leads no partition."""
        made = TransactionCoordinator(lambda batch: self.append(batch, made), self.new_id, config=self.config)
        return made

    def coordinator(self, records: list[TopicRecord] | None = None, epoch: int = 1) -> TransactionCoordinator:
        """Return a coordinator that has loaded records, by default those in the log."""
        made = self.new_coordinator()
        made.elect(0, epoch, now=self.now)
        made.load(0, [self.stored(record) for record in (self.log if records is None else records)])
        made.loaded(0, now=self.now)
        return made

    def stored(self, record: TopicRecord) -> TopicRecord:
        """Encode and decode a record."""
        found = decode_record(record.topic, *encode_record(record))
        assert isinstance(found, TopicRecord)
        return found

    def append(self, batch: RecordAppend | MarkerAppend, coordinator: TransactionCoordinator) -> int:
        if self.refuses:
            raise RequestRefusedError(error=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        assert isinstance(batch, RecordAppend)
        self.log.extend(batch.records)
        if not self.holds:
            coordinator.committed(batch.partition, len(self.log))
        return len(self.log)

    def new_id(self) -> int:
        self.ids += 1
        return self.ids


@pytest.fixture
def world() -> World:
    return World()


def begun(world: World, coordinator: TransactionCoordinator, client_version: int = 2) -> ProducerIdAndEpoch:
    """Return a producer with an open transaction on one partition."""
    producer = coordinator.init_producer_id(NAME, TIMEOUT_MS, None, now=world.now).result()
    coordinator.add_partitions(NAME, producer, [PLACE], client_version=client_version, now=world.now).result()
    return producer


def mark(world: World, coordinator: TransactionCoordinator) -> None:
    """Write the markers of all ending transactions."""
    while coordinator.endings:
        ending = coordinator.endings.popleft()
        coordinator.markers_written(ending, ending.partitions, now=world.now)


def refusal(error: pytest.ExceptionInfo[ApiError]) -> str:
    return error.value.error.name


@pytest.mark.parametrize("version", [0, 2])
def test_a_transaction_that_lasts_too_long_is_aborted_and_its_producer_fenced(version: int) -> None:
    config = TransactionConfig(transaction_state_log_num_partitions=1, transaction_version=version)
    world = World(config=config)
    coordinator = world.coordinator()
    producer = begun(world, coordinator, version)
    coordinator.tick(world.now + TIMEOUT_MS)
    assert coordinator.describe(NAME).status is TransactionState.ONGOING
    world.now += TIMEOUT_MS + config.transaction_abort_timed_out_transaction_cleanup_interval_ms + 1
    coordinator.tick(world.now)
    (ending,) = coordinator.endings
    assert not ending.committed
    assert ending.producer == ProducerIdAndEpoch(producer.id, producer.epoch + 1)
    mark(world, coordinator)
    assert coordinator.describe(NAME).status is TransactionState.COMPLETE_ABORT
    with pytest.raises(ApiError) as error:
        coordinator.add_partitions(NAME, producer, [PLACE], client_version=version, now=world.now).result()
    assert refusal(error) == "PRODUCER_FENCED"


def test_a_transactional_id_that_nobody_uses_expires_with_a_tombstone(world: World) -> None:
    coordinator = world.coordinator()
    coordinator.init_producer_id(NAME, TIMEOUT_MS, None, now=world.now).result()
    moment = coordinator.next_timer
    assert moment is not None
    world.now += world.config.transactional_id_expiration_ms
    coordinator.tick(world.now)
    assert world.log[-1].value is None
    with pytest.raises(ApiError) as error:
        coordinator.describe(NAME)
    assert refusal(error) == "TRANSACTIONAL_ID_NOT_FOUND"
    assert list(world.coordinator().transactions()) == []


def test_an_open_transaction_does_not_expire() -> None:
    config = TransactionConfig(
        transaction_state_log_num_partitions=1,
        transactional_id_expiration_ms=1_000,
        transaction_remove_expired_transaction_cleanup_interval_ms=500,
    )
    world = World(config=config)
    coordinator = world.coordinator()
    begun(world, coordinator)
    coordinator.init_producer_id("at rest", TIMEOUT_MS, None, now=world.now).result()
    coordinator.tick(world.now + 2_000)
    assert [each.transactional_id for each in coordinator.transactions()] == [NAME]


def test_the_next_leader_writes_the_markers_that_are_missing(world: World) -> None:
    coordinator = world.coordinator()
    producer = begun(world, coordinator)
    coordinator.end(NAME, producer, committed=True, client_version=2, now=world.now).result()
    (lost,) = coordinator.endings
    after = world.coordinator(epoch=2)
    (ending,) = after.endings
    assert (ending.producer, ending.committed, ending.partitions) == (lost.producer, True, lost.partitions)
    after.markers_written(lost, lost.partitions, now=world.now)
    assert after.describe(NAME).status is TransactionState.PREPARE_COMMIT, "a marker of an earlier leadership"
    mark(world, after)
    assert after.describe(NAME).status is TransactionState.COMPLETE_COMMIT


def test_a_transaction_is_complete_after_the_last_marker(world: World) -> None:
    coordinator = world.coordinator()
    producer = begun(world, coordinator)
    coordinator.add_partitions(NAME, producer, [OTHER], client_version=2, now=world.now).result()
    coordinator.end(NAME, producer, committed=True, client_version=2, now=world.now).result()
    ending = coordinator.endings.popleft()
    coordinator.markers_written(ending, [PLACE], now=world.now)
    assert coordinator.describe(NAME).status is TransactionState.PREPARE_COMMIT
    coordinator.markers_written(ending, [OTHER], now=world.now)
    assert coordinator.describe(NAME).status is TransactionState.COMPLETE_COMMIT


def test_a_last_record_that_cannot_be_written_is_written_later(world: World) -> None:
    coordinator = world.coordinator()
    producer = begun(world, coordinator)
    coordinator.end(NAME, producer, committed=True, client_version=2, now=world.now).result()
    world.refuses = True
    mark(world, coordinator)
    assert coordinator.describe(NAME).status is TransactionState.PREPARE_COMMIT
    world.refuses = False
    moment = coordinator.next_timer
    assert moment is not None
    coordinator.tick(moment)
    assert coordinator.describe(NAME).status is TransactionState.COMPLETE_COMMIT


def test_nothing_happens_before_a_record_is_committed(world: World) -> None:
    """The response and the markers wait for the commit, and later requests see the new state."""
    coordinator = world.coordinator()
    producer = begun(world, coordinator)
    world.holds = True
    ended = coordinator.end(NAME, producer, committed=True, client_version=2, now=world.now)
    again = coordinator.end(NAME, producer, committed=True, client_version=2, now=world.now)
    assert not ended.done
    assert not coordinator.endings
    assert coordinator.describe(NAME).status is TransactionState.ONGOING, "readers see committed records alone"
    coordinator.committed(0, len(world.log), now=world.now)
    assert ended.result() == ProducerIdAndEpoch(producer.id, producer.epoch + 1)
    assert len(coordinator.endings) == 1
    with pytest.raises(ApiError) as error:
        again.result()
    assert refusal(error) == "CONCURRENT_TRANSACTIONS"


def test_a_record_that_is_never_committed_fails_its_request(world: World) -> None:
    coordinator = world.coordinator()
    world.holds = True
    future = coordinator.init_producer_id(NAME, TIMEOUT_MS, None, now=world.now)
    coordinator.tick(world.now + 5_000)
    with pytest.raises(ApiError) as error:
        future.result()
    assert refusal(error) == "REQUEST_TIMED_OUT"


def test_requests_while_loading_and_after_resigning(world: World) -> None:
    coordinator = world.new_coordinator()
    with pytest.raises(ApiError) as error:
        coordinator.init_producer_id(NAME, TIMEOUT_MS, None, now=world.now).result()
    assert refusal(error) == "NOT_COORDINATOR"
    coordinator.elect(0, 5, now=world.now)
    with pytest.raises(ApiError) as error:
        list(coordinator.transactions())
    assert refusal(error) == "COORDINATOR_LOAD_IN_PROGRESS"
    coordinator.loaded(0, now=world.now)
    coordinator.resign(0, 5, now=world.now)
    assert coordinator.init_producer_id(NAME, TIMEOUT_MS, None, now=world.now).result() == ProducerIdAndEpoch(1, 0), (
        "an old resignation"
    )
    coordinator.resign(0, 6, now=world.now)
    with pytest.raises(ApiError) as error:
        coordinator.describe(NAME)
    assert refusal(error) == "NOT_COORDINATOR"


def used_up(world: World, epoch: int = LAST_EPOCH) -> tuple[TransactionCoordinator, ProducerIdAndEpoch]:
    """Return a coordinator and a producer with the last epoch and an open transaction."""
    producer = begun(world, world.coordinator())
    (state,) = world.coordinator().transactions()
    state = evolve(state, producer_epoch=epoch)
    record = TopicRecord(topic="__transaction_state", key=state.key, value=state.to_value(1), version=1)
    return world.coordinator([record]), ProducerIdAndEpoch(producer.id, epoch)


def test_the_producer_id_changes_when_the_epochs_are_used_up(world: World) -> None:
    coordinator, producer = used_up(world)
    following = coordinator.end(NAME, producer, committed=True, client_version=2, now=world.now).result()
    assert following == ProducerIdAndEpoch(producer.id + 1, 0)
    (ending,) = coordinator.endings
    assert ending.producer == ProducerIdAndEpoch(producer.id, LAST_EPOCH + 1), (
        "the markers are of the producer id that ends"
    )
    mark(world, coordinator)
    again = coordinator.end(NAME, producer, committed=True, client_version=2, now=world.now).result()
    assert again == following, "a client that got no answer asks again"
    coordinator.add_partitions(NAME, following, [PLACE], client_version=2, now=world.now).result()
    assert coordinator.init_producer_id("another", TIMEOUT_MS, None, now=world.now).result().id == following.id + 1


def test_init_producer_id_gives_a_new_id_when_the_epochs_are_used_up(world: World) -> None:
    coordinator, producer = used_up(world, LAST_EPOCH - 1)
    coordinator.end(NAME, producer, committed=False, client_version=2, now=world.now).result()
    mark(world, coordinator)
    last = ProducerIdAndEpoch(producer.id, LAST_EPOCH)
    assert coordinator.describe(NAME).producer == last
    assert coordinator.init_producer_id(NAME, TIMEOUT_MS, last, now=world.now).result() == ProducerIdAndEpoch(
        producer.id + 1, 0
    )


Command = tuple[str, int, bool]
COMMANDS: Final = st.lists(
    st.tuples(
        st.sampled_from(["init", "add", "end", "mark", "refuse", "wait", "reload"]),
        st.integers(-1, 1),
        st.booleans(),
    ),
    max_size=40,
)


class Player:
    """Runs commands, and keeps the producer's state."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.coordinator = world.coordinator()
        self.producer = ProducerIdAndEpoch(1, 0)

    def play(self, command: str, difference: int, flag: bool) -> None:
        """Run a command. ``difference`` is added to the epoch of the producer."""
        now = self.world.now
        coordinator = self.coordinator
        asked = ProducerIdAndEpoch(self.producer.id, self.producer.epoch + difference)
        match command:
            case "init":
                expected = asked if flag else None
                self.producer = coordinator.init_producer_id(NAME, TIMEOUT_MS, expected, now=now).result()
            case "add":
                coordinator.add_partitions(NAME, asked, [PLACE if flag else OTHER], client_version=2, now=now).result()
            case "end":
                self.producer = coordinator.end(NAME, asked, committed=flag, client_version=2, now=now).result()
            case "mark":
                mark(self.world, coordinator)
            case "refuse":
                self.world.refuses = flag
            case "wait":
                self.world.now += TIMEOUT_MS * 2
                coordinator.tick(self.world.now)
            case "reload":
                self.coordinator = self.world.coordinator()


@given(COMMANDS)
def test_the_state_is_what_the_records_say(commands: list[Command]) -> None:
    """After any history, including failed writes, a new leader has the same state."""
    world = World()
    player = Player(world)
    for command in commands:
        world.now += 1
        with suppress(ApiError):
            player.play(*command)
        assert recorded(player.coordinator) == recorded(world.coordinator())


def recorded(coordinator: TransactionCoordinator) -> list[TransactionMetadata]:
    """Return the states of a coordinator, without values that records do not contain."""
    return [evolve(each, last_producer_epoch=-1) for each in coordinator.transactions()]
