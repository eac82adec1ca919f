"""The same commands on Kafka's log and on this library's log, with comparison of the responses.

``Ours`` accepts the commands of ``StorageOracle.java`` and returns responses in the same form. ``Lockstep`` compares
them. Five differences are allowed:

* Kafka cuts a read at a byte, so its last batch may be partial. Ours returns complete batches.
* The aborted transactions of a read are those that begin before the next entry of the offset index. If an entry is
  exactly at the end of the read, Kafka's binary search finds either that entry or the next one. So the comparison
  includes only aborted transactions that begin before the end of the batches.
* Error texts are compared only if clients see them: for refused records.
* If an open transaction begins below the start of the log, Kafka's last stable offset may differ slightly from the
  start.
* For reads without a complete batch, Kafka reports offsets that no client receives.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from kafka_msgs.broker.storage import (
    AppendOrigin,
    MemoryPartitionStore,
    PartitionLog,
    TopicConfig,
    VerificationGuard,
)
from kafka_msgs.broker.storage.file_store import FilePartitionStore
from kafka_msgs.broker.storage.log_cleanup import compact, delete_old_segments, dirty_part
from kafka_msgs.broker.storage.log_validator import split_batches, validate_produced
from kafka_msgs.broker.storage.open_files import OpenFileCache
from kafka_msgs.broker.storage.partition_files import PartitionFiles
from kafka_msgs.broker.storage.store import PartitionStore
from kafka_msgs.errors import RefusedRecordsError, RequestRefusedError
from kafka_msgs.log.writers.small_files import format_partition_metadata, format_producer_snapshot, uuid_text
from kafka_msgs.messages import ProducerSnapshot
from kafka_msgs.versioned import decode_versioned
from tests.broker.storage.oracle import StorageOracle

__all__ = ["Lockstep", "Ours"]

TOPIC_ID: Final = UUID("12345678-1234-4234-8234-123456789abc")
_ORIGINS: Final = {
    "CLIENT": AppendOrigin.CLIENT,
    "COORDINATOR": AppendOrigin.COORDINATOR,
    "REPLICATION": AppendOrigin.REPLAY,
}
_PARTITION: Final = "orders-0"


class Ours:
    """One of our logs, in memory or, with a ``directory``, in files."""

    def __init__(self, directory: Path | None) -> None:
        self.log: PartitionLog
        self._directory = directory
        self._memory = MemoryPartitionStore()
        self._guards: dict[int, VerificationGuard | None] = {}
        self._now = 0

    def run(self, **command: Any) -> dict[str, Any]:
        """Run one command and return its response."""
        self._now = command.get("now", self._now)
        run: Callable[[Mapping[str, Any]], dict[str, Any]] = getattr(self, f"_{command['do']}")
        try:
            answer = run(command)
        except RefusedRecordsError as refused:
            records = [list(each) for each in refused.record_errors]
            return {"error": int(refused.error), "message": refused.message, "records": records}
        except RequestRefusedError as refused:
            return {"error": int(refused.error)}
        return {**answer, "state": self._state_of(self.log)} if command.get("state", True) else answer

    def _open(self, command: Mapping[str, Any]) -> dict[str, Any]:
        self._guards = {}
        self.log = PartitionLog(
            "orders",
            TOPIC_ID,
            0,
            # The public config has a lower bound of 1 MiB. Kafka's tests use the internal one as well.
            TopicConfig.of({name.removeprefix("internal."): value for name, value in command["config"].items()}),
            self._store(command),
            now=self._now,
            producer_expiration_ms=command.get("expiration", 86_400_000),
        )
        return {}

    def _store(self, command: Mapping[str, Any]) -> PartitionStore:
        if self._directory is None:
            return self._memory
        path = self._directory / _PARTITION
        path.mkdir(exist_ok=True)
        (path / "partition.metadata").write_bytes(format_partition_metadata(TOPIC_ID))
        return FilePartitionStore(
            PartitionFiles(OpenFileCache(4), path),
            clean=command.get("clean", True),
            recovery_point=command.get("recovery_point", 0),
            log_start_offset=command.get("log_start", 0),
        )

    def _append(self, command: Mapping[str, Any]) -> dict[str, Any]:
        data = base64.b64decode(command["data"])
        if "produce_version" in command:
            validate_produced(split_batches(data), command["produce_version"])
        appended = self.log.append(
            data,
            leader_epoch=command["leader_epoch"],
            now=self._now,
            origin=_ORIGINS[command.get("origin", "CLIENT")],
            guard=self._guards.get(command.get("guard", -1)),
            transaction_version=command.get("transaction_version", 0),
        )
        return {"base": appended.base_offset, "last": appended.last_offset, "time": appended.log_append_time}

    def _marker(self, command: Mapping[str, Any]) -> dict[str, Any]:
        offset = self.log.append_marker(
            command["producer_id"],
            command["producer_epoch"],
            committed=command["committed"],
            coordinator_epoch=command["coordinator_epoch"],
            leader_epoch=command["leader_epoch"],
            now=self._now,
            transaction_version=command.get("transaction_version", 0),
        )
        return {"base": offset, "last": offset}

    def _verify(self, command: Mapping[str, Any]) -> dict[str, Any]:
        guard = self.log.verify(
            command["producer_id"],
            command["producer_epoch"],
            command["sequence"],
            bumps_epoch=command["bumps_epoch"],
            now=self._now,
        )
        self._guards[command["guard"]] = guard
        return {"needed": guard is not None}

    def _read(self, command: Mapping[str, Any]) -> dict[str, Any]:
        committed = command.get("committed", False)
        found = self.log.read(
            command["offset"],
            command["max_bytes"],
            isolation="read_committed" if committed else "read_uncommitted",
            min_one_batch=command.get("min_one", True),
        )
        answer: dict[str, Any] = {"data": base64.b64encode(b"".join(found.data)).decode()}
        if found.aborted is not None:
            answer["aborted"] = [[each.producer_id, each.first_offset] for each in found.aborted]
            answer["next"] = found.next_offset
        return answer

    def _time(self, command: Mapping[str, Any]) -> dict[str, Any]:
        found = self.log.offset_for_timestamp(command["timestamp"])
        return {"found": list(found)} if found else {}

    def _epoch(self, command: Mapping[str, Any]) -> dict[str, Any]:
        return {"found": list(self.log.end_offset_for_epoch(command["epoch"]))}

    def _delete_records(self, command: Mapping[str, Any]) -> dict[str, Any]:
        self.log.delete_records(command["offset"])
        return {}

    def _roll(self, command: Mapping[str, Any]) -> dict[str, Any]:
        self.log.roll(self._now)
        return {}

    def _retain(self, command: Mapping[str, Any]) -> dict[str, Any]:
        delete_old_segments(self.log, self._now)
        return {}

    def _compact(self, command: Mapping[str, Any]) -> dict[str, Any]:
        self.log.clean_offset = command.get("clean_offset") or self.log.log_start_offset
        dirty = dirty_part(self.log, self._now)
        compact(self.log, self._now)
        answer = {"ratio": dirty.ratio, "first_dirty": dirty.start, "uncleanable": dirty.end}
        return {**answer, "clean_offset": self.log.clean_offset} if dirty.size else answer

    def _flush(self, command: Mapping[str, Any]) -> dict[str, Any]:
        self.log.flush()
        return {}

    def _tasks(self, command: Mapping[str, Any]) -> dict[str, Any]:
        self.log.segments.store.expire(self._now)
        return {}

    def _close(self, command: Mapping[str, Any]) -> dict[str, Any]:
        self.log.close()
        return {}

    def _state_of(self, log: PartitionLog) -> dict[str, Any]:
        return {
            "start": log.log_start_offset,
            "end": log.log_end_offset,
            "high_watermark": log.high_watermark,
            "stable": log.last_stable_offset,
            "segments": [[each.base_offset, each.size] for each in log.segments],
            "epochs": [list(each) for each in log.epochs.entries],
            "producers": [
                [
                    each.producer_id,
                    each.epoch,
                    each.last_sequence,
                    each.last_timestamp,
                    each.coordinator_epoch,
                    -1 if each.first_offset is None else each.first_offset,
                ]
                for each in sorted(log.producers.states.values(), key=lambda state: state.producer_id)
            ],
        }


class Lockstep:
    """Kafka's log and this library's in two directories, and a third log in memory unless a command reopens it.

    ``run`` returns Kafka's response, and raises ``AssertionError`` if another response differs.
    """

    def __init__(self, oracle: StorageOracle, home: Path, *, memory: bool = True) -> None:
        self._oracle = oracle
        self.kafka_directory, self.our_directory = home / "kafka", home / "ours"
        for each in (self.kafka_directory, self.our_directory):
            each.mkdir()
        self.directory = Ours(self.our_directory)
        self._memory = Ours(None) if memory else None
        self.commands: list[dict[str, Any]] = []

    def run(self, **command: Any) -> dict[str, Any]:
        """Run a command on all logs and compare the responses."""
        self.commands.append(command)
        place = {"dir": str(self.kafka_directory / _PARTITION), "topic_id": uuid_text(TOPIC_ID)}
        expected = self._oracle.run(**command, **(place if command["do"] == "open" else {}))
        for ours in filter(None, (self.directory, self._memory)):
            _compare(command, expected, ours.run(**command))
        return expected

    def compare_files(self) -> None:
        """Compare the files of the closed logs byte for byte. Only the order of producers in a snapshot may differ."""
        kafka, ours = (_files(each / _PARTITION) for each in (self.kafka_directory, self.our_directory))
        assert sorted(ours) == sorted(kafka), (set(ours) - set(kafka), set(kafka) - set(ours))
        for name, content in kafka.items():
            assert _comparable(name, ours[name]) == _comparable(name, content), name


def _comparable(name: str, content: bytes) -> object:
    if not name.endswith(".snapshot"):
        return content
    entries = decode_versioned(ProducerSnapshot, content).message.producer_entries
    assert format_producer_snapshot(ProducerSnapshot(producer_entries=entries)) == content
    return sorted(entries, key=attrgetter("producer_id"))


def _files(directory: Path) -> dict[str, bytes]:
    """Return the content of the files.

    Files that Kafka leaves behind are omitted: files pending deletion when it closes a log, and empty indexes of
    aborted transactions after a truncation.
    """
    found = {path.name: path.read_bytes() for path in directory.iterdir() if path.suffix != ".deleted"}
    return {name: content for name, content in found.items() if content or not name.endswith(".txnindex")}


def _compare(command: Mapping[str, Any], expected: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    if "error" in expected or "error" in found:
        assert found.get("error") == expected.get("error"), (command, expected, found)
        if "records" in expected:
            shown = [{name: side.get(name) for name in ("message", "records")} for side in (expected, found)]
            assert shown[0] == shown[1], (command, expected, found)
        return
    for name in expected:
        if name == "aborted":
            end = found["next"] if found["data"] else 0
            known = [[each for each in side[name] if each[1] < end] for side in (expected, found)]
            assert known[0] == known[1], (command, expected, found)
        elif name == "data":
            _compare_data(base64.b64decode(expected[name]), base64.b64decode(found[name]), command["max_bytes"])
        elif name == "state":
            wanted = dict(expected[name])
            if any(0 <= producer[-1] < wanted["start"] for producer in wanted["producers"]):
                wanted["stable"] = found[name]["stable"]
            assert found[name] == wanted, (command, wanted, found[name])
        elif name in found:
            assert found[name] == expected[name], (name, command, expected[name], found[name])


def _compare_data(kafka: bytes, ours: bytes, max_bytes: int) -> None:
    assert kafka[: len(ours)] == ours
    rest = kafka[len(ours) :]
    if len(rest) >= 12:
        assert int.from_bytes(rest[8:12], "big") + 12 > len(rest), "a complete batch is missing"
    assert not rest or len(kafka) <= max(max_bytes, len(ours))
