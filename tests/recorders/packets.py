"""Record the packets of real clients and a real broker on loopback: ``python -m tests.recorders.packets``.

Fills ``packets/``:

* ``shop.pcapng``: dumpcap on the loopback interface (Ethernet headers); librdkafka and kafka-python write, read, commit
  and send queries, including one producer without acknowledgements and requests for missing topics and groups. Small
  buffers split frames into many segments.
* ``sasl.pcap``: tcpdump on all interfaces (cooked headers); librdkafka logs in, and so does a plain socket with a
  handshake of version 0, whose tokens have no headers.
* ``shop.tshark.tsv`` and ``sasl.tshark.tsv``: the output of tshark's own dissector, see
  ``tests/support/tshark.py``.
* ``about.json``: the broker's port in each file, and the programs that were run.

Requires Java, Maven, a package index, tcpdump and tshark, and permission to capture; takes about a minute.
"""

from __future__ import annotations

import datetime
import json
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from dpkt import pcapng

from kafka_msgs import ApiVersionsRequest, SaslHandshakeRequest
from kafka_msgs.wire import encode_request
from tests.recorders.broker import LOOPBACK, Broker, Jars
from tests.recorders.client_traffic import python_with_clients
from tests.support.recordings import PACKETS
from tests.support.tshark import dissected, tshark_version

__all__ = ["main"]

_CLIENTS: Final = {"kafka-python": "3.0.12", "confluent-kafka": "2.16.1"}
_SCRIPTS: Final = Path(__file__).parent / "clients"
_PLAIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_SETTINGS: Final = {"socket.receive.buffer.bytes": "4096", "socket.send.buffer.bytes": "4096"}
_SASL_SETTINGS: Final = {
    "listener.security.protocol.map": "LOCAL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.local.plain.sasl.jaas.config": f'{_PLAIN} username="node" password="node" user_node="node" '
    'user_shop="open";',
}
_TOOLS: Final = {
    "shop.pcapng": ["dumpcap", "-q", "-i", "lo"],
    "sasl.pcap": ["tcpdump", "-q", "-i", "any"],
}
_WARM_UP_SECONDS: Final = 1.5


def main() -> None:
    """Run both sessions and write their recordings."""
    PACKETS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="kafka-msgs-clients-") as directory:
        python = python_with_clients(Path(directory), _CLIENTS)
        ports = {"shop.pcapng": _shop(python), "sasl.pcap": _sasl(python)}
    for name, port in ports.items():
        table = (PACKETS / name).with_suffix(".tshark.tsv")
        table.write_text(dissected(PACKETS / name, port))
    facts = {
        "kafka": Jars.NODE.release,
        "tshark": tshark_version(),
        "clients": _CLIENTS,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "script": "tests/recorders/packets.py",
        "ports": ports,
    }
    (PACKETS / "about.json").write_text(json.dumps(facts, indent=2) + "\n")


def _shop(python: Path) -> int:
    with Broker(settings=_SETTINGS) as broker, _captured("shop.pcapng", broker.port):
        _run(python, "packets.py", "shop", broker.bootstrap)
        _run(python, "kafka_python.py", "orders", broker.bootstrap)
    return broker.port


def _sasl(python: Path) -> int:
    with Broker(settings=_SASL_SETTINGS) as broker, _captured("sasl.pcap", broker.port):
        _run(python, "packets.py", "sasl", broker.bootstrap)
        _log_in_without_headers(broker.port)
    return broker.port


@contextmanager
def _captured(name: str, port: int) -> Iterator[None]:
    """Capture a port's traffic into a file while the block runs."""
    with tempfile.TemporaryDirectory(prefix="kafka-msgs-packets-") as directory:
        # The tools may drop their permission to write elsewhere.
        path = Path(directory) / name
        Path(directory).chmod(0o777)
        command = [*_TOOLS[name], "-w", str(path), *(["-f"] if "dumpcap" in _TOOLS[name] else []), f"tcp port {port}"]
        tool = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        try:
            time.sleep(_WARM_UP_SECONDS)
            yield
            time.sleep(_WARM_UP_SECONDS)
        finally:
            tool.terminate()
            tool.wait(timeout=10)
        data = path.read_bytes()
        (PACKETS / name).write_bytes(_without_machine(data) if name.endswith("ng") else data)


def _without_machine(data: bytes) -> bytes:
    """Remove the description of machine and capture from a pcapng file, except the clock's resolution."""
    kept, at = [], 0
    while at < len(data):
        kind, size = struct.unpack_from("<II", data, at)
        block = data[at : at + size]
        if kind == pcapng.PCAPNG_BT_SHB:
            kept.append(bytes(pcapng.SectionHeaderBlockLE()))
        elif kind == pcapng.PCAPNG_BT_IDB:
            found = pcapng.InterfaceDescriptionBlockLE(block)
            clock = [each for each in found.opts if each.code in (pcapng.PCAPNG_OPT_IF_TSRESOL, 0)]
            kept.append(bytes(pcapng.InterfaceDescriptionBlockLE(snaplen=found.snaplen, opts=clock)))
        elif kind == pcapng.PCAPNG_BT_EPB:
            kept.append(block)
        at += size
    return b"".join(kept)


def _run(python: Path, script: str, *arguments: str) -> None:
    subprocess.run([python, _SCRIPTS / script, *arguments], check=True, timeout=120)


def _log_in_without_headers(port: int) -> None:
    """Send a handshake of version 0, a bare token, and then a request."""
    handshake = encode_request(SaslHandshakeRequest(mechanism="PLAIN"), 0, correlation_id=1, client_id="bare")
    token = b"\0shop\0open"
    question = encode_request(ApiVersionsRequest(), 0, correlation_id=2, client_id="bare")
    with socket.create_connection((LOOPBACK, port), timeout=10) as connection, connection.makefile("rb") as stream:
        for payload in (handshake, token, question):
            connection.sendall(len(payload).to_bytes(4, "big") + payload)
            stream.read(int.from_bytes(stream.read(4), "big"))


if __name__ == "__main__":
    main()
