"""Random commands for logs, guided so that most appends succeed.

A script is a function of its seed. ``lockstep`` runs the commands.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator
from typing import Any, Final

from attrs import define, field
from crc32c import crc32c

from kafka_msgs.binary_layouts import CRC_START, HEADER
from kafka_msgs.messages import EndTxnMarker
from kafka_msgs.records import BatchBuilder, BatchHeader, CompressionType, ControlType
from tests.broker.storage.making import NOW, batch

__all__ = ["Script"]

_CODECS: Final = (0, 0, 0, CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4, CompressionType.ZSTD)


@define
class _Producer:
    """The state of a simulated producer."""

    producer_id: int
    epoch: int = 0
    sequence: int = 0
    in_transaction: bool = False
    last: bytes = b""
    guards: int = 0


@define(eq=False)
class Script:
    """The commands of one seed. Pass Kafka's responses to ``learn``.

    With ``compacts``, records are uncompressed, because recompressed bytes differ from Kafka's.
    """

    seed: int
    length: int = 60
    reopens: bool = True
    compacts: bool = False
    _random: random.Random = field(init=False)
    _now: int = NOW
    _start: int = 0
    _clean: int | None = None
    _end: int = 0
    _epoch: int = 0
    _open: dict[str, Any] = field(factory=dict)
    _producers: list[_Producer] = field(factory=lambda: [_Producer(pid) for pid in (7, 8, 4000)])
    _guard: int = 0

    def __attrs_post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def learn(self, answer: dict[str, Any]) -> None:
        """Update the script's state after a command."""
        self._end = answer.get("state", {}).get("end", self._end)
        self._start = answer.get("state", {}).get("start", 0)
        self._clean = answer.get("clean_offset", self._clean)

    def commands(self) -> Iterator[dict[str, Any]]:
        """Yield the commands, beginning with ``open`` and ending with ``close``."""
        pick = self._random
        self._open = {"do": "open", "config": self._config(), "now": self._now, "expiration": 3_600_000}
        yield dict(self._open)
        steps = {
            self._plain: 12,
            self._idempotent: 12,
            self._transactional: 12,
            self._marker: 6,
            self._broken: 5,
            self._read: 10,
            self._time: 4,
            self._epochs: 3,
            self._delete: 1,
            self._roll: 1,
            self._flush: 1,
            self._retain: 2,
            self._reopen: 1 if self.reopens else 0,
            self._compact: 6 if self.compacts else 0,
        }
        for _ in range(self.length):
            self._now += pick.choice((0, 1, 10, 1000, 60_000))
            for command in pick.choices(list(steps), list(steps.values()))[0]():
                yield {**command, "now": self._now}
        yield {"do": "close", "state": False}

    def _config(self) -> dict[str, str]:
        pick = self._random
        return {
            "internal.segment.bytes": str(pick.choice((2000, 20_000, 1 << 20))),
            "index.interval.bytes": str(pick.choice((0, 300, 4096))),
            "segment.index.bytes": str(pick.choice((64, 1 << 16))),
            "segment.ms": str(pick.choice((30_000, 10_000_000))),
            "max.message.bytes": str(pick.choice((1500, 1 << 20))),
            "retention.ms": str(pick.choice((-1, 100_000, 1_000_000))),
            "retention.bytes": str(pick.choice((-1, 5000))),
            "message.timestamp.type": pick.choice(("CreateTime", "CreateTime", "LogAppendTime")),
            "message.timestamp.before.max.ms": pick.choice(("9223372036854775807", "50000")),
            "compression.type": pick.choice(("producer", "producer", "producer", "uncompressed")),
            "cleanup.policy": pick.choice(("delete", "delete", "compact", "compact,delete")),
            **(self._compact_config() if self.compacts else {}),
        }

    def _compact_config(self) -> dict[str, str]:
        pick = self._random
        return {
            # With a small index, Kafka's cleaner fails because it writes more index entries than before.
            "segment.index.bytes": str(1 << 16),
            "cleanup.policy": pick.choice(("compact", "compact", "compact,delete")),
            "delete.retention.ms": str(pick.choice((0, 50_000, 500_000))),
            "min.compaction.lag.ms": str(pick.choice((0, 0, 60_000))),
            "max.compaction.lag.ms": str(pick.choice((2**63 - 1, 100_000))),
        }

    def _compact(self) -> Iterator[dict[str, Any]]:
        if self._random.random() < 0.7:
            yield {"do": "roll"}
        yield {"do": "compact", "clean_offset": self._clean}

    def _contents(self) -> tuple[list[bytes | None], tuple[bytes | None, ...]]:
        pick = self._random
        values: list[bytes | None] = []
        for _ in range(pick.choice((1, 1, 2, 5))):
            tombstone = self.compacts and pick.random() < 0.3
            values.append(None if tombstone else pick.randbytes(1) * pick.choice((0, 5, 50, 400)))
        keys = tuple(None if pick.random() < 0.03 else b"k%d" % pick.randrange(20) for _ in values)
        return values, keys

    def _batch(self, **header: Any) -> bytes:
        values, keys = self._contents()
        time = self._now + self._random.choice((0, 0, 0, 0, -1000, -30_000, -100_000, 500_000, 10_000_000))
        return batch(
            *values, keys=keys, timestamp=time, codec=0 if self.compacts else self._random.choice(_CODECS), **header
        )

    def _appending(self, data: bytes, **more: Any) -> dict[str, Any]:
        if self._random.random() < 0.05:
            self._epoch += self._random.choice((1, 2))
        return {"do": "append", "data": base64.b64encode(data).decode(), "leader_epoch": self._epoch, **more}

    def _plain(self) -> Iterator[dict[str, Any]]:
        yield self._appending(self._batch(), produce_version=self._random.choice((6, 7, 12)))

    def _numbered(self, producer: _Producer, *, transactional: bool) -> bytes:
        pick, odd = self._random, self._random.random()
        if odd < 0.1 and producer.last:
            return producer.last
        if odd < 0.15:
            producer.epoch, producer.sequence = producer.epoch + 1, pick.choice((0, 0, 3))
        epoch = producer.epoch - 1 if odd > 0.97 and producer.epoch else producer.epoch
        sequence = producer.sequence + (pick.choice((1, 7)) if 0.93 < odd <= 0.97 else 0)
        data = self._batch(
            producer_id=producer.producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=transactional,
        )
        if odd < 0.93:
            producer.sequence += HEADER.unpack_from(data)[-1]
            producer.last = data
        return data

    def _idempotent(self) -> Iterator[dict[str, Any]]:
        yield self._appending(self._numbered(self._random.choice(self._producers), transactional=False))

    def _transactional(self) -> Iterator[dict[str, Any]]:
        producer, odd = self._random.choice(self._producers), self._random.random()
        data = self._numbered(producer, transactional=True)
        _, epoch, sequence = HEADER.unpack_from(data)[-4:-1]
        if odd < 0.9:
            self._guard += 1
            yield {
                "do": "verify",
                "producer_id": producer.producer_id,
                "producer_epoch": epoch,
                "sequence": sequence,
                "bumps_epoch": self._random.random() < 0.5,
                "guard": self._guard,
            }
        yield self._appending(data, guard=self._guard)

    def _marker(self) -> Iterator[dict[str, Any]]:
        pick, producer = self._random, self._random.choice(self._producers)
        version = pick.choice((0, 1, 2))
        if version == 2 or pick.random() < 0.1:
            producer.epoch, producer.sequence = producer.epoch + 1, 0
        yield {
            "do": "marker",
            "producer_id": producer.producer_id,
            "producer_epoch": producer.epoch,
            "committed": pick.random() < 0.5,
            "coordinator_epoch": pick.choice((0, 0, 0, 1)),
            "leader_epoch": self._epoch,
            "transaction_version": version,
        }

    def _broken(self) -> Iterator[dict[str, Any]]:
        pick = self._random
        data = pick.choice(
            (
                lambda: self._batch(base_offset=3),
                lambda: self._batch()[:-1],
                lambda: self._batch()[:40],
                lambda: self._batch() + self._batch(),
                lambda: _damaged(self._batch()),
                lambda: _patched(self._batch(), records=pick.choice((0, -1, 9))),
                lambda: _patched(self._batch(), last_offset_delta=pick.choice((-1, 30))),
                lambda: _patched(batch(b"a", timestamp=self._now), attributes=8),
                lambda: self._batch(log_append_timestamp=self._now),
                lambda: _control(),
                lambda: _patched(self._batch(producer_id=5, producer_epoch=0, base_sequence=0), base_sequence=-1),
            )
        )()
        yield self._appending(data, **pick.choice(({}, {"produce_version": pick.choice((3, 7, 12))})))

    def _read(self) -> Iterator[dict[str, Any]]:
        pick = self._random
        yield {
            "do": "read",
            "offset": pick.randint(max(0, self._start - 1), self._end + 1),
            "max_bytes": pick.choice((0, 1, 100, 700, 5000, 1 << 20)),
            "committed": pick.random() < 0.5,
            "min_one": pick.random() < 0.7,
        }

    def _time(self) -> Iterator[dict[str, Any]]:
        back = self._random.choice((0, 1000, 50_000, 500_000, 5_000_000, -500_001))
        wanted = self._random.choice((-1, -2, -3, -4, -5, self._now - back, self._now - back))
        yield {"do": "time", "timestamp": wanted}

    def _epochs(self) -> Iterator[dict[str, Any]]:
        yield {"do": "epoch", "epoch": self._random.randint(-1, self._epoch + 1)}

    def _delete(self) -> Iterator[dict[str, Any]]:
        yield {"do": "delete_records", "offset": self._random.randint(0, self._end + 1)}

    def _roll(self) -> Iterator[dict[str, Any]]:
        yield {"do": "roll"}

    def _flush(self) -> Iterator[dict[str, Any]]:
        yield {"do": "flush"}

    def _retain(self) -> Iterator[dict[str, Any]]:
        yield {"do": "retain"}
        self._now += 60_000
        yield {"do": "tasks"}

    def _reopen(self) -> Iterator[dict[str, Any]]:
        yield {"do": "close", "state": False}
        yield {**self._open, "log_start": self._start, "recovery_point": self._end}


def _damaged(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


def _patched(data: bytes, **changes: int) -> bytes:
    """Return a batch with changed header values and a valid checksum."""
    names = ["base_offset", "size", "leader_epoch", "magic", "crc", "attributes", "last_offset_delta"]
    names += ["base_timestamp", "max_timestamp", "producer_id", "producer_epoch", "base_sequence", "records"]
    values = dict(zip(names, HEADER.unpack_from(data), strict=True)) | changes
    changed = bytearray(HEADER.pack(*values.values()) + data[HEADER.size :])
    changed[CRC_START - 4 : CRC_START] = crc32c(bytes(changed[CRC_START:])).to_bytes(4, "big")
    return bytes(changed)


def _control() -> bytes:
    builder = BatchBuilder(BatchHeader(producer_id=7, producer_epoch=0, transactional=True, control=True))
    builder.append_control(ControlType.COMMIT, EndTxnMarker(coordinator_epoch=0), timestamp=NOW)
    return builder.build()
