"""Record Go clients of a real cluster through ``kafka-msgs tap``: ``python -m tests.recorders.go_clients``.

Writes ``tapped_go.jsonl`` to ``tests/recordings``: the proxy's own recording. The cluster has three nodes, so that
requests are redirected between brokers. Requires Java, Maven and Go, and their package indexes; takes several minutes.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.recorders.other_clients import GO, build_go, run_client
from tests.support.kafka_cluster import KafkaCluster
from tests.support.recordings import TAPPED_GO
from tests.support.tap_process import TappedCluster


def main() -> None:
    """Build the clients and run them one after another."""
    with tempfile.TemporaryDirectory(prefix="kafka-msgs-tapped-") as directory, KafkaCluster() as cluster:
        home = Path(directory)
        clients = build_go(home)
        with TappedCluster(cluster.bootstrap_servers, home / "tap.jsonl") as proxy:
            for name in GO:
                run_client([str(clients), name, proxy.bootstrap], home)
        TAPPED_GO.write_bytes(proxy.recording.read_bytes())
    print(proxy.report)


if __name__ == "__main__":
    main()
