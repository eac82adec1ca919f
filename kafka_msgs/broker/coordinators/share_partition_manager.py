"""The share partitions and share sessions of each broker: Kafka's ``SharePartitionManager``.

A share partition lives on the broker that leads its partition and is created by the first fetch of a member. It is
dropped when another broker becomes the leader, when the share coordinator has a newer state, or when the last member of
the group disconnects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

from kafka_msgs.broker.broker_interface import BrokerInterface
from kafka_msgs.broker.client_session import ClientSession
from kafka_msgs.broker.controller.image import MetadataDelta
from kafka_msgs.broker.coordinators.group_service import GroupCoordinatorService
from kafka_msgs.broker.coordinators.share_service import call_share_coordinator
from kafka_msgs.broker.share import (
    UNSET,
    AcknowledgementBatch,
    MemberKey,
    PersisterStateBatch,
    RecordState,
    SharePartition,
    SharePartitionKey,
    ShareSession,
    ShareSessionCache,
    StateChange,
    TopicIdPartition,
)
from kafka_msgs.broker.storage import PartitionLog
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.errors.api import ApiError
from kafka_msgs.groups.config import GroupConfig
from kafka_msgs.messages.share_snapshot_value import ShareSnapshotValue
from kafka_msgs.messages.share_snapshot_value import StateBatch as StoredBatch

__all__ = ["SharePartitionManager"]

_COORDINATOR_GONE: Final = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)
_ERRORS: Final[Mapping[int, ErrorCode]] = {
    **dict.fromkeys(_COORDINATOR_GONE, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
"""Share coordinator errors as members see them. All other errors become UNKNOWN_SERVER_ERROR."""

_OUTDATED: Final = frozenset(
    {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
)
"""Errors that drop the share partition."""

_STATES: Final[Mapping[int, RecordState]] = {**{int(each): each for each in RecordState}, 3: RecordState.ARCHIVED}
"""The record states of the share coordinator. 3 is the transition to archived (KIP-1191)."""


class SharePartitionManager:
    """The share partitions and share sessions of one broker."""

    def __init__(self, cluster: BrokerInterface, broker_id: int) -> None:
        self._cluster = cluster
        self._broker_id = broker_id
        self._partitions: dict[SharePartitionKey, SharePartition] = {}
        self._connections: dict[int, ShareSession] = {}
        self._watches: dict[SharePartitionKey, dict[Callable[[], None], None]] = {}
        self._woken: dict[Callable[[], None], None] = {}
        self.sessions = ShareSessionCache(cluster.configs.number("group.share.max.share.sessions"))

    @staticmethod
    def attach(cluster: BrokerInterface) -> None:
        """Make the share partitions of a cluster follow the leaders of their partitions."""
        cluster.image_listeners.append(partial(_changed, cluster))

    @staticmethod
    def on(cluster: BrokerInterface, broker_id: int) -> SharePartitionManager:
        """Return the share partitions and share sessions of a broker."""
        return cluster.brokers[broker_id].component(
            SharePartitionManager, lambda: SharePartitionManager(cluster, broker_id)
        )

    def config(self, group_id: str) -> GroupConfig:
        """Return the configs of a group."""
        return GroupCoordinatorService.of_broker(self._cluster, self._broker_id).coordinator.group_config(group_id)

    # Share partitions

    def find(self, key: SharePartitionKey) -> SharePartition | None:
        """Return a share partition that is already open, or None."""
        return self._partitions.get(key)

    def open(self, key: SharePartitionKey) -> SharePartition:
        """Return a share partition with its state from the share coordinator.

        Raises ``RequestRefusedError`` with NOT_LEADER_OR_FOLLOWER if another broker leads the partition, with
        OFFSET_NOT_AVAILABLE if the start offset is unknown, and with the errors of the share coordinator.
        """
        share = self._partitions.get(key)
        if share is None:
            share = self._partitions[key] = self._load(key)
        return share

    def _load(self, key: SharePartitionKey) -> SharePartition:
        cluster = self._cluster
        state = cluster.image.partition(key.topic_id, key.partition)
        log = cluster.log_manager.get((key.topic_id, key.partition))
        if state is None or log is None or state.leader != self._broker_id:
            raise RequestRefusedError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        try:
            known = call_share_coordinator(
                cluster, key, lambda each: each.read_state(key, leader_epoch=state.leader_epoch, now=cluster.now)
            )
        except ApiError as error:
            raise _translated(error, "read") from error
        start = self._first_offset(log, key.group_id) if known.start_offset == UNSET else known.start_offset
        return SharePartition(
            start,
            _states(known),
            timers=cluster.timers,
            config=partial(self.config, key.group_id),
            persist=partial(self._persist, key, known.state_epoch, state.leader_epoch),
            on_change=partial(self._wake, key),
        )

    def _first_offset(self, log: PartitionLog, group_id: str) -> int:
        """Return the offset at which a group starts to read a partition, from ``share.auto.offset.reset``."""
        config = self.config(group_id)
        back_ms = config.share_reset_duration_ms
        if back_ms is None:
            earliest = config.share_auto_offset_reset.lower() == "earliest"
            return log.log_start_offset if earliest else log.high_watermark
        found = log.offset_for_timestamp(self._cluster.now - back_ms, "read_uncommitted")
        if found is None:
            raise RequestRefusedError(ErrorCode.OFFSET_NOT_AVAILABLE)
        return found.offset

    def _persist(
        self,
        key: SharePartitionKey,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        complete: int,
        states: list[PersisterStateBatch],
    ) -> None:
        try:
            call_share_coordinator(
                self._cluster,
                key,
                lambda each: each.write_state(
                    key,
                    map(_stored, states),
                    state_epoch=state_epoch,
                    leader_epoch=leader_epoch,
                    start_offset=start_offset,
                    complete=complete,
                    now=self._cluster.now,
                ),
            )
        except ApiError as error:
            raise _translated(error, "write") from error

    def drop(self, keys: Iterable[SharePartitionKey]) -> None:
        """Drop share partitions and wake up the fetches that wait for them."""
        for key in keys:
            share = self._partitions.pop(key, None)
            if share is not None:
                share.close()
                self._wake(key)

    def drop_places(self, places: set[TopicIdPartition]) -> None:
        """Drop the share partitions of partitions that this broker no longer leads."""
        self.drop([key for key in self._partitions if (key.topic_id, key.partition) in places])

    # Acknowledgements and sessions

    def begin(
        self, member: MemberKey, place: TopicIdPartition, said: Iterable[AcknowledgementBatch]
    ) -> Callable[[], None]:
        """Check a member's acknowledgements for a partition. Return a function that applies them.

        Both raise ``RequestRefusedError``.
        """
        key = SharePartitionKey(member.group_id, *place)
        share = self._partitions.get(key)
        if share is None:
            message = "This server does not host this topic-partition."
            raise RequestRefusedError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
        changes = share.begin(member.member_id, said, self._cluster.now)
        return partial(self._finish, key, share, changes)

    def _finish(self, key: SharePartitionKey, share: SharePartition, changes: list[StateChange]) -> None:
        try:
            share.complete_write(changes)
        except RequestRefusedError as error:
            self._drop_outdated(key, error)
            raise

    def begin_session(
        self, member: MemberKey, places: Iterable[TopicIdPartition], connection: ClientSession
    ) -> ShareSession:
        """Begin a session on a connection. It ends with the connection. Raises ``RequestRefusedError``."""
        session = self.sessions.begin(member, places, connection.id)
        if connection.id not in self._connections:
            connection.on_close(partial(self._disconnected, connection.id))
        self._connections[connection.id] = session
        return session

    def end_session(self, member: MemberKey) -> None:
        """End a session and release the member's records. Raises ``RequestRefusedError``."""
        session = self.sessions.get(member)
        self.sessions.end(member)
        for place in session.partitions:
            key = SharePartitionKey(member.group_id, *place)
            share = self._partitions.get(key)
            if share is not None:
                try:
                    share.release(member.member_id)
                except RequestRefusedError as error:
                    self._drop_outdated(key, error)

    def _disconnected(self, connection: int) -> None:
        session = self._connections.pop(connection)
        if not self._cluster.brokers[self._broker_id].running:
            return
        if self.sessions.has(session):
            self.end_session(session.key)
        group_id = session.key.group_id
        if not self.sessions.has_members(group_id):
            self.drop([key for key in self._partitions if key.group_id == group_id])

    def _drop_outdated(self, key: SharePartitionKey, error: RequestRefusedError) -> None:
        if error.error in _OUTDATED:
            self.drop([key])

    # Waiting fetches

    def watch(self, keys: Iterable[SharePartitionKey], callback: Callable[[], None]) -> Callable[[], None]:
        """Call ``callback`` when records of one of the share partitions may be available.

        Return a function that cancels this.
        """
        watched = tuple(keys)
        for key in watched:
            self._watches.setdefault(key, {})[callback] = None
        return partial(self._forget, watched, callback)

    def _forget(self, keys: tuple[SharePartitionKey, ...], callback: Callable[[], None]) -> None:
        self._woken.pop(callback, None)
        for key in keys:
            watches = self._watches.get(key, {})
            watches.pop(callback, None)
            if not watches:
                self._watches.pop(key, None)

    def _wake(self, key: SharePartitionKey) -> None:
        """Wake up the fetches that wait for a share partition, after the current step."""
        watches = self._watches.get(key)
        if watches:
            if not self._woken:
                self._cluster.call_soon(self._call)
            self._woken.update(watches)

    def _call(self) -> None:
        woken, self._woken = self._woken, {}
        for callback in woken:
            callback()


def _changed(cluster: BrokerInterface, delta: MetadataDelta) -> None:
    left: dict[int, set[TopicIdPartition]] = {}
    for change in delta.leader_changes():
        before, after = change.before, change.after
        if before is not None and (after is None or after.leader != before.leader):
            left.setdefault(before.leader, set()).add(before.key)
    for broker_id, places in left.items():
        broker = cluster.brokers.get(broker_id)
        host = None if broker is None else broker.components.get(SharePartitionManager)
        if host is not None:
            host.drop_places(places)


def _stored(batch: PersisterStateBatch) -> StoredBatch:
    return StoredBatch(
        first_offset=batch.first,
        last_offset=batch.last,
        delivery_state=batch.state,
        delivery_count=batch.delivery_count,
    )


def _states(known: ShareSnapshotValue) -> Iterable[PersisterStateBatch]:
    for each in known.state_batches:
        state = _STATES.get(each.delivery_state)
        if state is None:
            raise RequestRefusedError(ErrorCode.UNKNOWN_SERVER_ERROR)
        yield PersisterStateBatch(each.first_offset, each.last_offset, state, each.delivery_count)


def _translated(error: ApiError, doing: str) -> RequestRefusedError:
    """Return the member error for a share coordinator error that occurred while ``doing`` something."""
    code = _ERRORS.get(error.error)
    if code is None:
        return RequestRefusedError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return RequestRefusedError(code, error.message and f"Error in {doing} state RPC. {error.message}")
