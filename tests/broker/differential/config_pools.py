"""Configs of topics, groups, client metrics and brokers for random requests: names and values, many of them invalid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

__all__ = ["GROUP_CONFIGS", "METRIC_CONFIGS", "TOPIC_CONFIGS", "WRONG_BROKER_CONFIGS"]

TOPIC_CONFIGS: Final[Sequence[tuple[str, Any]]] = (
    ("retention.ms", "1000000000"), ("retention.ms", "x"), ("retention.ms", "-2"), ("retention.ms", None),
    ("retention.ms", ""), ("retention.ms", "99999999999999999999"), ("cleanup.policy", "compact"),
    ("cleanup.policy", "delete"), ("cleanup.policy", "compact,delete"), ("cleanup.policy", "keep"),
    ("cleanup.policy", ""), ("compression.type", "gzip"), ("compression.type", "producer"), ("compression.type", "x"),
    ("max.message.bytes", "200"), ("max.message.bytes", "1000000"), ("max.message.bytes", "-1"),
    ("segment.bytes", "1048576"), ("segment.bytes", "1"), ("message.timestamp.type", "LogAppendTime"),
    ("message.timestamp.type", "CreateTime"), ("message.timestamp.type", "x"),
    ("message.timestamp.before.max.ms", "1000"), ("message.timestamp.after.max.ms", "1000"),
    ("min.insync.replicas", "1"), ("min.insync.replicas", "0"), ("min.insync.replicas", "2"),
    ("unclean.leader.election.enable", "true"), ("unclean.leader.election.enable", "maybe"),
    ("min.cleanable.dirty.ratio", "0.1"), ("min.cleanable.dirty.ratio", "2"), ("min.cleanable.dirty.ratio", "NaN"),
    ("index.interval.bytes", "0"), ("flush.ms", "1"), ("delete.retention.ms", "0"), ("preallocate", "TRUE"),
    ("compression.gzip.level", "0"), ("compression.lz4.level", "9"), ("compression.zstd.level", "99"),
    ("local.retention.ms", "-2"), ("local.retention.ms", "5"), ("remote.storage.enable", "true"),
    ("leader.replication.throttled.replicas", "*"), ("leader.replication.throttled.replicas", "0:1,x"),
    ("message.format.version", "3.0"), ("no.such", "1"), ("", "1"), ("segment.ms", "0"), ("segment.jitter.ms", "-1"),
    ("max.compaction.lag.ms", "1"), ("min.compaction.lag.ms", "5"), ("file.delete.delay.ms", " 7 "),
    ("compression.type", " gzip"), ("cleanup.policy", " compact , delete"), ("cleanup.policy", "compact,compact"),
    ("cleanup.policy", "compact,,delete"), ("cleanup.policy", ","), ("retention.ms", "+7000000000"),
    ("retention.ms", "1_000"), ("retention.ms", " x"), ("min.cleanable.dirty.ratio", "0.10"),
    ("min.cleanable.dirty.ratio", "1e-4f"), ("message.timestamp.type", "LogAppendTime\n"), ("segment.ms", "007000000"),
    ("unclean.leader.election.enable", " True "), ("follower.replication.throttled.replicas", "0:1, 0:1,"),
)  # fmt: skip
GROUP_CONFIGS: Final[Sequence[tuple[str, Any]]] = (
    ("consumer.session.timeout.ms", "45000"), ("consumer.session.timeout.ms", "1"),
    ("consumer.heartbeat.interval.ms", "5000"), ("consumer.heartbeat.interval.ms", "x"),
    ("consumer.heartbeat.interval.ms", "600000"), ("share.auto.offset.reset", "earliest"),
    ("share.auto.offset.reset", "x"), ("share.auto.offset.reset", "by_duration:PT1H"),
    ("share.isolation.level", "read_committed"), ("share.record.lock.duration.ms", "1"),
    ("streams.num.standby.replicas", "1"), ("streams.num.standby.replicas", "9"),
    ("streams.session.timeout.ms", "5000"),
    ("no.such", "1"), ("share.record.lock.duration.ms", "30000"), ("share.auto.offset.reset", " latest "),
    ("consumer.session.timeout.ms", " +46000"),
)  # fmt: skip
METRIC_CONFIGS: Final[Sequence[tuple[str, Any]]] = (
    ("interval.ms", "1000"), ("interval.ms", "1"), ("interval.ms", "x"), ("metrics", "a.b,c"), ("metrics", ""),
    ("match", "client_id=x.*"), ("match", "nothing=x"), ("match", "client_id=("), ("match", "x"), ("no.such", "1"),
)  # fmt: skip
WRONG_BROKER_CONFIGS: Final[Sequence[tuple[str, Any]]] = (
    ("log.retention.ms", "x"), ("no.such", "1"), ("num.io.threads", "0"), ("log.dirs", "/tmp"), ("broker.id", "7"),
    ("log.cleaner.threads", "-1"), ("message.max.bytes", "-5"), ("listeners", "x"), ("process.roles", "broker"),
)  # fmt: skip
"""Broker configs with invalid values only, because other tests share the brokers."""
