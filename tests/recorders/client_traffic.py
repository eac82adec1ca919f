"""Record the traffic between real clients and a real broker: ``python -m tests.recorders.client_traffic``.

Writes three files to ``tests/recordings``, in the format of :mod:`tests.support.recorded_frames`:

* ``client_traffic.jsonl``: frames between the clients and the broker, with idle repetition thinned out;
* ``kip88.jsonl``: OffsetFetch version 2 with null topics, over a plain socket, and the broker's response;
* ``consumer_offsets.jsonl``: the session's records in ``__consumer_offsets``.

Requires Java, Maven and a package index; takes about two minutes. The Python clients are installed into a temporary
environment, at the versions below.
"""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from kafka_msgs import OffsetFetchRequest
from tests.recorders.broker import Broker, Jars
from tests.recorders.proxy import RecordingProxy
from tests.recorders.raw_client import Conversation
from tests.recorders.scenario import BILLING_GROUP, ShopTools
from tests.support.recorded_frames import Frame, exchanges, write_lines
from tests.support.recordings import RECORDINGS

__all__ = ["main", "python_with_clients", "thinned", "write_recording"]

_HERE: Final = Path(__file__).parent
_CLIENTS: Final = {"kafka-python": "3.0.12", "confluent-kafka": "2.16.1"}
_ALIKE_PER_CONNECTION: Final = 2
_ALIKE_IN_ALL: Final = 4


def main() -> None:
    """Run the complete session and write the recordings."""
    with tempfile.TemporaryDirectory(prefix="kafka-msgs-clients-") as directory:
        python = python_with_clients(Path(directory), _CLIENTS)
        proxy = RecordingProxy()
        with Broker(advertised_port=proxy.port) as broker:
            proxy.upstream_port = broker.proxied_port
            with proxy:
                offsets = _session(broker, proxy, python)
            kip88 = _fetch_all_offsets(broker, BILLING_GROUP)
    _write("client_traffic", "frames", (frame.to_json() for frame in thinned(proxy.frames)))
    _write("kip88", "frames", (frame.to_json() for frame in kip88))
    _write("consumer_offsets", "records", offsets)


def _session(broker: Broker, proxy: RecordingProxy, python: Path) -> list[dict[str, Any]]:
    """Run all clients in turn; return the final contents of ``__consumer_offsets``."""
    tools = ShopTools(broker, proxy)
    tools.run()
    _run_client(python, "kafka_python.py", "orders", proxy.bootstrap)
    _run_client(python, "librdkafka.py", proxy.bootstrap)
    tools.clean_up()
    records = _run_client(python, "kafka_python.py", "offsets", proxy.bootstrap)
    return [json.loads(line) for line in records.splitlines()]


def python_with_clients(directory: Path, clients: Mapping[str, str]) -> Path:
    """Create an environment at ``directory`` with Python clients at the given versions; return its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", str(directory)], check=True, timeout=120)
    python = directory / "bin" / "python"
    packages = [f"{name}=={version}" for name, version in clients.items()]
    pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages]
    subprocess.run(pip, check=True, timeout=300)
    return python


def _run_client(python: Path, script: str, *arguments: str) -> str:
    command = [str(python), str(_HERE / "clients" / script), *arguments]
    return subprocess.run(command, check=True, timeout=120, stdout=subprocess.PIPE, text=True).stdout


def _fetch_all_offsets(broker: Broker, group: str) -> list[Frame]:
    """Request every offset of ``group`` as in KIP-88: version 2, null topics."""
    with Conversation(broker.port, client_id="kip88") as conversation:
        conversation.ask(OffsetFetchRequest(group_id=group, topics=None), 2)
        return conversation.frames


def thinned(frames: list[Frame]) -> Iterator[Frame]:
    """Yield the frames of complete exchanges, without repeats in API, version and sizes beyond the first few."""
    seen: Counter[tuple[int, ...]] = Counter()
    kept: set[int] = set()
    for pair in exchanges(frames):
        alike = pair.api_key, pair.api_version, len(pair.request.data), len(pair.response.data)
        alike_here = pair.request.connection, *alike
        seen.update((alike, alike_here))
        if seen[alike] <= _ALIKE_IN_ALL and seen[alike_here] <= _ALIKE_PER_CONNECTION:
            kept |= {id(pair.request), id(pair.response)}
    return (frame for frame in frames if id(frame) in kept)


def write_recording(
    path: Path, content: str, lines: Iterable[dict[str, Any]], *, clients: Mapping[str, str], script: str
) -> None:
    """Write a recording with a header that describes its contents and origin."""
    header = {
        "format": f"kafka-msgs {content} 1",
        "kafka": Jars.NODE.release,
        "clients": clients,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "script": script,
    }
    write_lines(path, header, lines)
    print(f"{path.name}: {path.stat().st_size} bytes")


def _write(name: str, content: str, lines: Iterable[dict[str, Any]]) -> None:
    clients = {"kafka-tools": Jars.TOOLS.release, "kafka-streams": Jars.TOOLS.release, **_CLIENTS}
    write_recording(
        RECORDINGS / f"{name}.jsonl", content, lines, clients=clients, script="tests/recorders/client_traffic.py"
    )


if __name__ == "__main__":
    main()
