"""Record the traffic of clients in several languages to a real broker: ``python -m tests.recorders.other_clients``.

Writes ``other_clients.jsonl`` to ``tests/recordings``, in the format of :mod:`tests.support.recorded_frames`, with idle
repetition thinned out. Requires Java, Maven, Go, npm and Cargo, and their package indexes; takes several minutes. The
clients are built in a temporary directory, at the versions that their projects below ``clients/`` and ``_PYTHON`` pin.
If ``CARGO_TARGET_DIR`` is set, Cargo's build is kept there for the next run.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.recorders.broker import Broker
from tests.recorders.client_traffic import python_with_clients, thinned, write_recording
from tests.recorders.proxy import RecordingProxy
from tests.support.recordings import RECORDINGS

__all__ = ["GO", "build_go", "main", "run_client", "versions"]

_CLIENTS: Final = Path(__file__).parent / "clients"
GO: Final = ("franz-go", "sarama", "kafka-go")
"""The Go clients, by their names in the program."""
_PYTHON: Final = {"confluent-kafka": "2.16.1"}
_RUST: Final = "rskafka"


def main() -> None:
    """Build the clients, run them one after another, and write the recording."""
    with tempfile.TemporaryDirectory(prefix="kafka-msgs-clients-") as directory:
        commands = _built(Path(directory))
        proxy = RecordingProxy()
        with Broker(advertised_port=proxy.port) as broker:
            proxy.upstream_port = broker.proxied_port
            with proxy:
                for command in commands:
                    run_client([*command, proxy.bootstrap], Path(directory, "node"))
    lines = (frame.to_json() for frame in thinned(proxy.frames))
    path = RECORDINGS / "other_clients.jsonl"
    write_recording(path, "frames", lines, clients=versions(), script="tests/recorders/other_clients.py")


def versions() -> dict[str, str]:
    """Return the clients' names and versions, as their projects pin them."""
    go = re.findall(r"^\t\S+/(\S+) v(\S+)$", (_CLIENTS / "go" / "go.mod").read_text(), re.MULTILINE)
    node = json.loads((_CLIENTS / "node" / "package.json").read_text())["dependencies"]
    rust = tomllib.loads((_CLIENTS / "rust" / "Cargo.toml").read_text())["dependencies"][_RUST]["version"]
    return {**{name: version for name, version in go if name in GO}, **node, _RUST: rust.lstrip("="), **_PYTHON}


def _built(directory: Path) -> list[list[str]]:
    """Build every client; return the command for each, without the broker argument."""
    go_clients = build_go(directory)
    for language in ("node", "rust"):
        shutil.copytree(_CLIENTS / language, directory / language)
    _run(["npm", "install", "--no-audit", "--no-fund"], directory / "node", seconds=300)
    _run(["cargo", "build", "--quiet"], directory / "rust", seconds=1200)
    python = python_with_clients(directory / "python", _PYTHON)
    go = [[str(go_clients), name] for name in GO]
    node = ["node", str(directory / "node" / "kafkajs.js")]
    rust = ["cargo", "run", "--quiet", "--manifest-path", str(directory / "rust" / "Cargo.toml"), "--"]
    return [*go, node, rust, [str(python), str(_CLIENTS / "users.py")]]


def build_go(directory: Path) -> Path:
    """Build the Go clients below a directory; return the path of their program, which takes a client and a broker."""
    project = directory / "go"
    shutil.copytree(_CLIENTS / "go", project)
    _run(["go", "mod", "tidy"], project, seconds=300)
    _run(["go", "build", "-o", "clients", "."], project, seconds=300)
    return project / "clients"


def run_client(command: Sequence[str], directory: Path) -> None:
    """Run a client's recorded session to completion."""
    _run(command, directory, seconds=120)


def _run(command: Sequence[str], directory: Path, *, seconds: float) -> None:
    subprocess.run(command, cwd=directory, check=True, timeout=seconds, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
