"""The logs of all partitions of a cluster, and the watches on their changes.

The logs follow the image: a new partition gets a log, the log of a deleted partition is removed, and config changes of
a topic or of the brokers reach its logs. A partition has one log, whichever broker leads it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator

from kafka_msgs.broker.cluster_services import ClusterServices
from kafka_msgs.broker.controller.config_entries import effective_topic_configs
from kafka_msgs.broker.controller.image import NO_LEADER, MetadataDelta, PartitionKey, PartitionRegistration
from kafka_msgs.broker.storage import PartitionLog, TopicConfig
from kafka_msgs.broker.storage.log_cleanup import clean
from kafka_msgs.broker.storage.store import PartitionStore
from kafka_msgs.enums import ConfigResourceType

__all__ = ["LogManager", "OpenStore", "PartitionWatch"]

OpenStore = Callable[[str, PartitionRegistration], "PartitionStore"]
"""A factory for the store of a partition, from its topic name and its registration."""


class PartitionWatch:
    """A watch on changes of several partitions. ``cancel`` ends it."""

    __slots__ = ("_changed", "_table", "callback", "cancelled", "keys")

    def __init__(self, table: LogManager, keys: tuple[PartitionKey, ...], callback: Callable[[], None]) -> None:
        self.keys = keys
        self.callback = callback
        self.cancelled = False
        self._table = table
        self._changed: dict[PartitionKey, None] = {}

    def note(self, key: PartitionKey) -> None:
        """Record a change of a partition."""
        self._changed[key] = None

    def take_changed(self) -> Iterable[PartitionKey]:
        """Return the partitions that changed since the last call."""
        changed, self._changed = self._changed, {}
        return changed

    def cancel(self) -> None:
        """End the watch, and discard pending changes. It is safe to call again."""
        self.cancelled = True
        for key in self.keys:
            watches = self._table.watches.get(key)
            if watches is not None:
                watches.pop(self, None)
                if not watches:
                    del self._table.watches[key]


class LogManager:
    """The logs by topic id and partition number. While ``disk_full`` is True, all writes fail."""

    def __init__(self, cluster: ClusterServices, open_store: OpenStore) -> None:
        self._cluster = cluster
        self._open_store = open_store
        self._logs: dict[PartitionKey, PartitionLog] = {}
        self._configs: dict[str, tuple[TopicConfig, dict[str, str]]] = {}
        self._woken: dict[PartitionWatch, None] = {}
        self.watches: dict[PartitionKey, dict[PartitionWatch, None]] = {}
        self.disk_full = False
        cluster.image_listeners.append(self._follow)

    def get(self, key: PartitionKey) -> PartitionLog | None:
        """Return the log of a partition, or None if the partition does not exist."""
        return self._logs.get(key)

    def __iter__(self) -> Iterator[PartitionLog]:
        return iter(self._logs.values())

    def __len__(self) -> int:
        return len(self._logs)

    def config(self, topic: str) -> TopicConfig:
        """Return the topic configs that its logs use."""
        return self._read_config(topic)[0]

    def config_number(self, topic: str, setting: str) -> int:
        """Return an integer config of a topic."""
        return int(self._read_config(topic)[1][setting])

    def _read_config(self, topic: str) -> tuple[TopicConfig, dict[str, str]]:
        known = self._configs.get(topic)
        if known is None:
            texts = {
                name: value
                for name, value in effective_topic_configs(self._cluster.image, self._cluster.configs, topic).items()
                if value is not None
            }
            known = self._configs[topic] = TopicConfig.of(texts), texts
        return known

    def watch(self, keys: Iterable[PartitionKey], callback: Callable[[], None]) -> PartitionWatch:
        """Call ``callback`` after each change of one of the partitions: its offsets, its leader, or its deletion."""
        watch = PartitionWatch(self, tuple(keys), callback)
        for key in watch.keys:
            self.watches.setdefault(key, {})[watch] = None
        return watch

    def start_cleaning(self, after_each: Callable[[], None]) -> None:
        """Clean the logs at two intervals, as in Kafka: compacted topics, and all others. Then call ``after_each``."""
        number = self._cluster.configs.number
        self._clean_later(number("log.initial.task.delay.ms"), "log.retention.check.interval.ms", False, after_each)
        self._clean_later(number("log.cleaner.backoff.ms"), "log.cleaner.backoff.ms", True, after_each)

    def _clean_later(self, delay: int, interval: str, compacted: bool, after_each: Callable[[], None]) -> None:
        def run() -> None:
            self._clean_later(max(1, self._cluster.configs.number(interval)), interval, compacted, after_each)
            self._clean(compacted)
            after_each()

        self._cluster.call_later(delay, run)

    def _clean(self, compacted: bool) -> None:
        """Apply retention or compaction, and store the offsets for the checkpoint files."""
        for log in tuple(self._logs.values()):
            if log.config.compacts == compacted:
                clean(log, self._cluster.now)
            log.checkpoint()

    def close(self) -> None:
        """Close all logs."""
        for log in self._logs.values():
            log.close()
        self._logs.clear()

    def _follow(self, delta: MetadataDelta) -> None:
        """Apply the changes of a commit."""
        self._reconfigure(delta)
        for key, change in delta.partitions.items():
            if change.after is None:
                log = self._logs.pop(key, None)
                if log is not None:
                    log.delete()
                    self._configs.pop(change.topic, None)
            else:
                if key not in self._logs:
                    self._logs[key] = self._open(change.topic, change.after)
                if change.after.leader != NO_LEADER:
                    _begin_epoch(self._logs[key], change.after.leader_epoch)
            self._changed(key)

    def _open(self, topic: str, state: PartitionRegistration) -> PartitionLog:
        settings = self._cluster.configs
        return PartitionLog(
            topic,
            *state.key,
            self.config(topic),
            self._open_store(topic, state),
            now=self._cluster.now,
            producer_expiration_ms=settings.number("producer.id.expiration.ms"),
            verify_transactions=settings.flag("transaction.partition.verification.enable"),
            on_change=lambda log: self._changed((log.topic_id, log.partition)),
            before_write=self._check_space,
        )

    def _check_space(self) -> None:
        if self.disk_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _reconfigure(self, delta: MetadataDelta) -> None:
        kinds = {kind for kind, _ in delta.configs}
        if ConfigResourceType.BROKER in kinds:
            changed = set(self._configs)
        else:
            changed = {
                name for kind, name in delta.configs if kind == ConfigResourceType.TOPIC and name in self._configs
            }
        for name in changed:
            del self._configs[name]
        for log in self._logs.values() if changed else ():
            if log.topic in changed:
                log.reconfigure(self.config(log.topic))

    def _changed(self, key: PartitionKey) -> None:
        """Wake up the watches on a partition after the current step."""
        watches = self.watches.get(key)
        if watches:
            if not self._woken:
                self._cluster.call_soon(self._wake)
            self._woken.update(watches)
            for watch in watches:
                watch.note(key)

    def _wake(self) -> None:
        woken, self._woken = self._woken, {}
        for watch in woken:
            if not watch.cancelled:
                watch.callback()


def _begin_epoch(log: PartitionLog, epoch: int) -> None:
    """Record the end offset at the start of a leader epoch, before the leader writes, as Kafka does."""
    if log.epochs.assign(epoch, log.log_end_offset):
        log.segments.store.save_epochs(log.epochs.entries)
