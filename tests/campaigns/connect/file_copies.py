"""Files copied into topics and back to files by workers of Kafka Connect: a distributed cluster, and standalone."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Final, Self

from kafka_msgs.admin import Admin, NewTopic
from kafka_msgs.client import Consumer
from tests.campaigns.connect.processes import JavaProcess, eventually
from tests.campaigns.connect.workers import CONVERTERS, Worker

__all__ = ["distributed", "standalone"]

_COPIES: Final = 4
_PARTITIONS: Final = 3
_LINES: Final = 5
_STANDALONE_LINES: Final = 500
_PAUSE_SECONDS: Final = 0.1
_WAIT_SECONDS: Final = 30


class GrowingFile:
    """A file that a thread appends numbered lines to, inside a ``with`` block."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: list[str] = []
        self._end = Event()

    def append(self, count: int) -> None:
        """Append lines."""
        new = [f"{self.path.name} {len(self.lines) + each}" for each in range(count)]
        with self.path.open("a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in new)
        self.lines += new

    def _grow(self) -> None:
        while not self._end.wait(_PAUSE_SECONDS):
            self.append(_LINES)

    def __enter__(self) -> Self:
        self._end.clear()
        self._thread = Thread(target=self._grow, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()


class Copies:
    """Sources and sinks: each source copies a growing file into a topic, and its sink copies the topic into a file."""

    def __init__(self, servers: str, home: Path) -> None:
        self.servers, self.home = servers, home
        self.files = {f"copy-{number}": GrowingFile(home / f"in-{number}") for number in range(_COPIES)}
        with Admin(servers) as admin:
            admin.create_topics([NewTopic(topic, _PARTITIONS, -1) for topic in self.files]).all()
        self.append(1)

    def append(self, count: int) -> None:
        """Append lines to all files."""
        for file in self.files.values():
            file.append(count)

    def connectors(self) -> dict[str, dict[str, str]]:
        """Return the configurations of all connectors by name."""
        sources = {f"source-{topic}": source(topic, file.path) for topic, file in self.files.items()}
        return sources | {f"sink-{topic}": sink(topic, self.copy_of(topic)) for topic in self.files}

    def copy_of(self, topic: str) -> Path:
        """Return the file that a topic's sink writes."""
        return self.home / f"out-{topic}"

    def __enter__(self) -> Self:
        for file in self.files.values():
            file.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        for file in self.files.values():
            file.__exit__()

    def assert_files_equal(self) -> None:
        """Check that each sink has written each line of its file once."""
        for topic, file in self.files.items():
            eventually(partial(self._is_copied, topic, len(file.lines)))
            assert_same(read_lines(self.copy_of(topic)), file.lines)

    def _is_copied(self, topic: str, count: int) -> bool:
        return len(read_lines(self.copy_of(topic))) >= count

    def assert_topics_equal(self) -> None:
        """Check that the committed records of each topic are the lines of its file, once, in order by partition."""
        for topic, file in self.files.items():
            found = committed_lines(self.servers, topic, len(file.lines))
            for lines in found:
                assert lines == sorted(lines, key=number_of), f"{topic}: a partition is not in order"
            assert_same([line for lines in found for line in lines], file.lines)

    @property
    def count(self) -> int:
        """The number of lines in all files."""
        return sum(len(file.lines) for file in self.files.values())


def source(topic: str, path: Path) -> dict[str, str]:
    """Return the configuration of a source, whose transactions contain at most a hundred lines: its buffer."""
    connector = {"connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector", "tasks.max": "1"}
    return {**connector, "file": str(path), "topic": topic}


def sink(topic: str, path: Path) -> dict[str, str]:
    """Return the configuration of a sink that reads committed records."""
    connector = {"connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector", "tasks.max": "1"}
    isolation = {"consumer.override.isolation.level": "read_committed"}
    return {**connector, "file": str(path), "topics": topic, **isolation}


def number_of(line: str) -> int:
    """Return the number of a line."""
    return int(line.rsplit(" ", 1)[1])


def read_lines(path: Path) -> list[str]:
    """Return the lines of a file that may not exist yet."""
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def assert_same(found: Iterable[str], expected: Iterable[str]) -> None:
    """Check that the lines are equal, in any order."""
    ordered, wanted = sorted(found, key=number_of), list(expected)
    lost, repeated = set(wanted) - set(ordered), len(ordered) - len(set(ordered))
    assert ordered == wanted, f"{len(wanted)} lines: {len(lost)} lost, {repeated} repeated: {sorted(lost)[:5]}"


def committed_lines(servers: str, topic: str, count: int) -> list[list[str]]:
    """Return the committed values of each partition, up to its end, once there are at least ``count``."""
    found: dict[int, list[str]] = {partition: [] for partition in range(_PARTITIONS)}
    with Consumer(servers, auto_offset_reset="earliest", isolation_level="read_committed") as consumer:
        places = [(topic, partition) for partition in range(_PARTITIONS)]
        consumer.assign(places)

        def is_read() -> bool:
            for record in consumer.poll(1):
                found[record.partition].append(bytes(record.value or b"").decode())
            ends = consumer.end_offsets(places)
            at_end = all(consumer.position(place) >= ends[place] for place in ends)
            return at_end and sum(map(len, found.values())) >= count

        eventually(is_read)
    return list(found.values())


def distributed(servers: str, home: Path) -> str:
    """Run two workers: one joins, leaves, comes back and is killed, and tasks restart and pause while files grow."""
    copies = Copies(servers, home)
    with Worker(servers, home / "first") as first, copies:
        first.request("GET", "/connectors")
        for name, config in copies.connectors().items():
            first.request("PUT", f"/connectors/{name}/config", config)
        await_running(first, 1)
        with Worker(servers, home / "second") as second:
            await_running(first, 2)
            restart_and_pause(first)
            await_running(first, 2)
            second.stop()
        await_running(first, 1)
        copies.__exit__()
        copies.assert_files_equal()
        read_again(first, copies)
        remove_sinks(first, copies)
        copies.__enter__()
        with Worker(servers, home / "third") as third:
            await_running(first, 2)
            third.kill()
        await_running(first, 1)
    with Worker(servers, home / "fourth") as fourth:
        await_running(fourth, 1)
        copies.assert_topics_equal()
        assert_offsets(fourth, copies)
    return f"{copies.count} lines"


def await_running(worker: Worker, workers: int) -> None:
    """Wait until all connectors and tasks run, spread over this many workers."""

    def is_running() -> bool:
        states = worker.states()
        running = bool(states) and all(each == ["RUNNING"] * 2 for each in states.values())
        return running and len(worker.tasks()) == workers

    eventually(is_running)


def restart_and_pause(worker: Worker) -> None:
    """Restart all connectors with their tasks, and pause one source and one sink for a moment."""
    for name in worker.states():
        worker.request("POST", f"/connectors/{name}/restart?includeTasks=true")
    for name in ("source-copy-0", "sink-copy-1"):
        for request, state in (("pause", "PAUSED"), ("resume", "RUNNING")):
            worker.request("PUT", f"/connectors/{name}/{request}")
            eventually(partial(has_states, worker, name, [state] * 2))


def has_states(worker: Worker, name: str, states: list[str]) -> bool:
    """Return whether a connector and its tasks have these states."""
    return worker.states().get(name) == states


def read_again(worker: Worker, copies: Copies) -> None:
    """Reset the offsets of a stopped sink, which then copies its topic once more."""
    name, topic = "sink-copy-2", "copy-2"
    worker.request("PUT", f"/connectors/{name}/stop")
    eventually(partial(has_states, worker, name, ["STOPPED"]))
    copies.copy_of(topic).unlink()
    worker.request("DELETE", f"/connectors/{name}/offsets")
    worker.request("PUT", f"/connectors/{name}/resume")
    copies.assert_files_equal()


def remove_sinks(worker: Worker, copies: Copies) -> None:
    """Delete the sinks: a killed worker may repeat the output of a sink, which is not a fault of a broker."""
    for topic in copies.files:
        worker.request("DELETE", f"/connectors/sink-{topic}")
    eventually(lambda: set(worker.states()) == {f"source-{topic}" for topic in copies.files})


def assert_offsets(worker: Worker, copies: Copies) -> None:
    """Check that the committed offset of each source is the size of its file."""
    for topic, file in copies.files.items():
        found = worker.request("GET", f"/connectors/source-{topic}/offsets")["offsets"]
        assert [each["offset"]["position"] for each in found] == [file.path.stat().st_size], found


def standalone(servers: str, home: Path) -> str:
    """Run a standalone worker twice with the same offsets file: the second run continues where the first one ended."""
    copies = Copies(servers, home)
    settings = {"bootstrap.servers": servers, **CONVERTERS, "offset.storage.file.filename": str(home / "offsets")}
    settings["listeners"] = "http://127.0.0.1:0"
    connectors = [{"name": name, **config} for name, config in copies.connectors().items()]
    for _ in range(2):
        copies.append(_STANDALONE_LINES)
        with JavaProcess("org.apache.kafka.connect.cli.ConnectStandalone", home, settings, *connectors) as worker:
            copies.assert_files_equal()
            copies.append(_STANDALONE_LINES)
            copies.assert_files_equal()
            worker.stop()
    copies.assert_topics_equal()
    return f"{copies.count} lines"
