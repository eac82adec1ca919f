"""The interface of the cluster for its logs and its security, which depend on no broker."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import Protocol
from uuid import UUID

from kafka_msgs.broker.config import BrokerConfig
from kafka_msgs.broker.controller.config_defs import BrokerConfigs
from kafka_msgs.broker.controller.image import MetadataDelta, MetadataImage
from kafka_msgs.broker.sliced_work import SlicedWork
from kafka_msgs.groups.runtime.timer_queue import TimerHandle, TimerQueue
from kafka_msgs.message import MetadataRecord

__all__ = ["ClusterServices"]


class ClusterServices(Protocol):
    """The metadata of a cluster, its configuration, its time and its deferred work. ``Cluster`` documents them."""

    config: BrokerConfig
    configs: BrokerConfigs
    image: MetadataImage
    now: int
    random: Random
    timers: TimerQueue
    long_work: SlicedWork
    image_listeners: list[Callable[[MetadataDelta], None]]
    clock_jump_listeners: list[Callable[[int], None]]

    def new_id(self) -> UUID: ...

    def commit(self, records: Iterable[MetadataRecord]) -> MetadataDelta: ...

    def call_soon(self, callback: Callable[[], None]) -> None: ...

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> TimerHandle: ...

    def wait(self, ms: int, callback: Callable[[], None]) -> None: ...
