"""Record what clients in Go and JavaScript say to a real broker: ``python -m tests.recorders.other_clients``.

Writes ``other_clients.jsonl`` among the recordings, in the format of :mod:`tests.support.recorded_frames`, thinned of
idle repetition. Needs Java, Maven, Go and npm, and the package indexes of these; takes some minutes. The clients
are built in a temporary directory, at the versions that their projects below ``clients/`` name.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.recorders.broker import Broker
from tests.recorders.client_traffic import thinned, write_recording
from tests.recorders.proxy import RecordingProxy
from tests.support.recordings import RECORDINGS

_CLIENTS: Final = Path(__file__).parent / "clients"
_GO: Final = ("franz-go", "sarama", "kafka-go")


def main() -> None:
    """Build the clients, let one after the other speak, and write the recording."""
    with tempfile.TemporaryDirectory(prefix="kafka-msgs-clients-") as directory:
        commands = _built(Path(directory))
        proxy = RecordingProxy()
        with Broker(advertised_port=proxy.port) as broker:
            proxy.upstream_port = broker.proxied_port
            with proxy:
                for command in commands:
                    _run([*command, proxy.bootstrap], Path(directory, "node"), seconds=120)
    lines = (frame.to_json() for frame in thinned(proxy.frames))
    path = RECORDINGS / "other_clients.jsonl"
    write_recording(path, "frames", lines, clients=versions(), script="tests/recorders/other_clients.py")


def versions() -> dict[str, str]:
    """The clients' names and versions, as their projects pin them."""
    go = re.findall(r"^\t\S+/(\S+) v(\S+)$", (_CLIENTS / "go" / "go.mod").read_text(), re.MULTILINE)
    node = json.loads((_CLIENTS / "node" / "package.json").read_text())["dependencies"]
    return {**{name: version for name, version in go if name in _GO}, **node}


def _built(directory: Path) -> list[list[str]]:
    """Build every client; return the command that runs each, its broker still to be named."""
    for language in ("go", "node"):
        shutil.copytree(_CLIENTS / language, directory / language)
    _run(["go", "mod", "tidy"], directory / "go", seconds=300)
    _run(["go", "build", "-o", "clients", "."], directory / "go", seconds=300)
    _run(["npm", "install", "--no-audit", "--no-fund"], directory / "node", seconds=300)
    go = [[str(directory / "go" / "clients"), name] for name in _GO]
    return [*go, ["node", str(directory / "node" / "kafkajs.js")]]


def _run(command: Sequence[str], directory: Path, *, seconds: float) -> None:
    subprocess.run(command, cwd=directory, check=True, timeout=seconds, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
