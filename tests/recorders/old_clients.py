"""Record old clients with an old broker, and their outcomes with a new one: ``python -m tests.recorders.old_clients``.

Writes ``old_clients.jsonl`` to ``tests/recordings``: the recording of ``kafka-msgs tap`` in front of a Kafka 3.9 node,
the last release that supports all versions, without repetitions. Its first line also has the outcome of each client
there and with a node of the current release, which no longer supports the oldest versions (KIP-896). Each client
produces three records to a topic with its client id, reads them in a group, and commits.

Requires Java, Maven, Go and a package index; takes several minutes. The clients are built in a temporary directory.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from attrs import frozen

from kafka_msgs.admin import Admin, NewTopic
from kafka_msgs.capture import Exchange, read_recording, recording_line, recording_start
from tests.recorders.broker import Broker, Jars, java_program, project_classpath
from tests.recorders.client_traffic import python_with_clients
from tests.support.recordings import OLD_CLIENTS
from tests.support.tap_process import TappedCluster

__all__ = ["OLD_RELEASE", "main"]

OLD_RELEASE: Final = "3.9.1"
_CLIENTS: Final = Path(__file__).parent / "clients" / "old"
_JAVA: Final = ("0.10.2.2", "0.11.0.3", "1.0.2", "2.1.1", "3.9.1")
_SARAMA: Final = ("0.10.2.0", "0.11.0.2", "2.0.0")
_LIBRDKAFKA: Final = "0.11.6"
_KAFKA_PYTHON: Final = ("1.4.7", "2.0.2")
_PIP: Final = ("-m", "pip", "--disable-pip-version-check", "-q")
_SECONDS: Final = 60
_RECORDS: Final = 3
_ALIKE: Final = 1
"""The number of exchanges with one API and version that are kept of a connection."""


@frozen
class OldClient:
    """A client: its client id, and its command with the words ``BOOTSTRAP`` and ``NAME``."""

    name: str
    command: Sequence[str]

    def run(self, bootstrap: str) -> str:
        """Run the session; return ``ok`` or the last line of its errors."""
        command = [{"BOOTSTRAP": bootstrap, "NAME": self.name}.get(word, word) for word in self.command]
        try:
            done = subprocess.run(command, timeout=_SECONDS, capture_output=True, text=True, check=False)
        except subprocess.TimeoutExpired:
            return "timeout"
        return "ok" if not done.returncode else (done.stderr.strip().splitlines() or ["failed"])[-1]


def main() -> None:
    """Run all clients with both nodes, and write the recording."""
    with tempfile.TemporaryDirectory(prefix="kafka-msgs-old-") as directory:
        home = Path(directory)
        clients = list(_built(home))
        outcomes = {}
        for release in (OLD_RELEASE, Jars.NODE.release):
            with Broker(release=release, lifetime=1500, heap_mb=384) as broker:
                outcomes[release] = _outcomes(clients, broker, home / f"{release}.jsonl")
        _write(home / f"{OLD_RELEASE}.jsonl", outcomes)
    for client in clients:
        print(client.name, *(f"{release}: {outcomes[release][client.name]}" for release in outcomes), sep="\n    ")


def _outcomes(clients: Sequence[OldClient], broker: Broker, recording: Path) -> Mapping[str, str]:
    with Admin(broker.bootstrap) as admin:
        admin.create_topics([NewTopic(client.name, partitions=1, replication_factor=1) for client in clients])
        with TappedCluster(broker.bootstrap, recording, "--duration", "900") as tap:
            outcomes = {client.name: client.run(tap.bootstrap) for client in clients}
        return {name: _checked(outcome, admin, name) for name, outcome in outcomes.items()}


def _checked(outcome: str, admin: Admin, group: str) -> str:
    """Return an outcome, after a check of the offset: some clients ignore the failure of a commit."""
    if outcome != "ok":
        return outcome
    committed = [each.offset for each in admin.list_group_offsets(group).all().values()]
    return "ok" if committed == [_RECORDS] else f"committed offsets {committed}"


def _write(recording: Path, outcomes: Mapping[str, Mapping[str, str]]) -> None:
    """Write a recording without repetitions on a connection, with the outcomes in its first line."""
    seen: Counter[tuple[int, int, int]] = Counter()
    header = {"outcomes": outcomes, "release": OLD_RELEASE, "script": "tests/recorders/old_clients.py"}
    lines = [recording_start(header)]
    with recording.open("rb") as file:
        for item in read_recording(file):
            if isinstance(item, Exchange):
                alike = item.connection.number, item.api_key, item.version
                seen[alike] += 1
                lines += [recording_line(item)] if seen[alike] <= _ALIKE else []
    OLD_CLIENTS.write_text("".join(f"{line}\n" for line in lines), encoding="ascii")
    print(f"{OLD_CLIENTS.name}: {OLD_CLIENTS.stat().st_size} bytes")


def _built(home: Path) -> Iterator[OldClient]:
    """Build the clients."""
    for version in _JAVA:
        path = project_classpath(_CLIENTS / "clients.xml", version, [f"-Dkafka.version={version}"])
        program = java_program(str(_CLIENTS / "OldClient.java"), ["BOOTSTRAP", "NAME"], path, heap_mb=128)
        yield OldClient(f"java-{version}", program)
    for version in _KAFKA_PYTHON:
        python = python_with_clients(home / f"python-{version}", {"kafka-python": version})
        script = str(_CLIENTS / "old_kafka_python.py")
        yield OldClient(f"kafka-python-{version}", [str(python), script, "BOOTSTRAP", "NAME"])
        yield OldClient(f"kafka-python-{version}-pinned", [str(python), script, "BOOTSTRAP", "NAME", "0.10.0"])
    library = _librdkafka(home / "librdkafka")
    script = str(_CLIENTS / "old_librdkafka.py")
    for name, pinned in ((f"librdkafka-{_LIBRDKAFKA}", ""), (f"librdkafka-{_LIBRDKAFKA}-pinned", "0.9.0.1")):
        yield OldClient(name, [sys.executable, script, str(library), "BOOTSTRAP", "NAME", pinned])
    sarama = _sarama(home / "go")
    for version in _SARAMA:
        yield OldClient(f"sarama-{version}", [str(sarama), "BOOTSTRAP", "NAME", version])


def _librdkafka(folder: Path) -> Path:
    """Unpack the library in a wheel of confluent-kafka."""
    platform = [
        "--python-version",
        "3.7",
        "--implementation",
        "cp",
        "--abi",
        "cp37m",
        "--platform",
        "manylinux1_x86_64",
    ]
    options = ["--no-deps", "--only-binary", ":all:", *platform, "-d", str(folder)]
    subprocess.run([sys.executable, *_PIP, "download", *options, f"confluent-kafka=={_LIBRDKAFKA}"], check=True)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        wheel.extractall(folder)
    return next(folder.glob("confluent_kafka/.libs/librdkafka.so*"))


def _sarama(folder: Path) -> Path:
    shutil.copytree(_CLIENTS / "go", folder)
    for arguments in (["mod", "tidy"], ["build", "-o", "clients", "."]):
        subprocess.run(["go", *arguments], cwd=folder, check=True, timeout=300)
    return folder / "clients"


if __name__ == "__main__":
    main()
