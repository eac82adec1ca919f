"""Record a remote tier, and the records that consumers read from it: ``python -m tests.recorders.remote_tier``.

Fills ``remote_tier/``: ``tier`` contains the segments that a broker copied to remote storage, ``log`` its log
directory, with the metadata topic and the segments still on its disk, some of which are also in the tier. The broker
was started three times, so there are several leader epochs. Some transactions committed, some aborted, and one is open.
The first records of one partition were deleted, along with their segments in the tier. ``consumed.jsonl`` contains the
records that consumers of both isolation levels then received from that broker, from its tier and its disk.

Requires Java (with its compiler), Maven and a package index; takes about two minutes.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from tests.recorders.broker import Broker, BrokerError, Jars, classpath
from tests.recorders.client_traffic import python_with_clients
from tests.support.recordings import REMOTE_TIER

__all__ = ["main"]

_CLIENTS: Final = {"confluent-kafka": "2.16.1"}
_HERE: Final = Path(__file__).parent / "clients"
_STORAGE: Final = _HERE / "KeptInFiles.java"
_SETTINGS: Final = {
    "remote.log.storage.system.enable": "true",
    "remote.log.storage.manager.class.name": _STORAGE.stem,
    "remote.log.metadata.manager.listener.name": "LOCAL",
    "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
    "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
    "remote.log.manager.task.interval.ms": "500",
    "log.initial.task.delay.ms": "500",
    "log.retention.check.interval.ms": "500",
    "log.segment.delete.delay.ms": "100",
}
_PARTITIONS: Final = ("__remote_log_metadata-0", "orders-0", "orders-1")
_PARTS: Final = 3
_CUT: Final = 20
_SECONDS: Final = 60


def main() -> None:
    """Run the session and copy the files."""
    with tempfile.TemporaryDirectory(prefix="kafka-msgs-tier-") as home:
        python = python_with_clients(Path(home, "clients"), _CLIENTS)
        command = ["javac", "-proc:none", "-cp", classpath(Jars.NODE), "-d", home, str(_STORAGE)]
        subprocess.run(command, check=True, timeout=120)
        tier = Path(home, "tier")
        settings = {"remote.log.storage.manager.class.path": f"{home}/", "rsm.config.dir": str(tier)}
        with Broker(settings=_SETTINGS | settings) as broker:
            consumed = _session(broker, python, tier)
            broker.stop()
            _take(broker, tier, consumed)


def _session(broker: Broker, python: Path, tier: Path) -> str:
    def client(*arguments: str) -> str:
        script = [str(python), str(_HERE / "remote_tier.py"), broker.bootstrap, *arguments]
        return subprocess.run(script, check=True, timeout=120, stdout=subprocess.PIPE, text=True).stdout

    client("create")
    for part in range(_PARTS):
        if part:
            broker.restart()
        if part == _PARTS - 1:
            client("keep")
        client("write", str(part))
        _wait(partial(_are_copied, broker, tier, kept=part == _PARTS - 1))
    client("cut", "1", str(_CUT))
    _wait(lambda: min(int(path.name[:20]) for path in tier.glob("orders-1-*/*.log")) > 0)
    client("open")
    return client("read")


def _are_copied(broker: Broker, tier: Path, *, kept: bool) -> bool:
    """Return whether all segments except the active one are in the tier and, unless ``kept``, only there."""
    for partition in _PARTITIONS[1:]:
        local = sorted(int(path.stem) for path in (broker.log_dir / partition).glob("*.log"))
        copied = {int(path.name[:20]) for path in tier.glob(f"{partition}-*/*.log")}
        if not copied or not copied.issuperset(local[:-1]) or (len(local) > 1 and not kept):
            return False
    return True


def _wait(done: Callable[[], bool]) -> None:
    """Wait until a condition holds, and a little longer for its metadata."""
    deadline = time.monotonic() + _SECONDS
    while not done():
        if time.monotonic() > deadline:
            raise BrokerError("the broker keeps no segments in remote storage")
        time.sleep(0.5)
    time.sleep(4)


def _take(broker: Broker, tier: Path, consumed: str) -> None:
    shutil.rmtree(REMOTE_TIER, ignore_errors=True)
    shutil.copytree(tier, REMOTE_TIER / "tier")
    ignored = shutil.ignore_patterns("*.deleted", "*.lock")
    for name in _PARTITIONS:
        shutil.copytree(broker.log_dir / name, REMOTE_TIER / "log" / name, ignore=ignored)
    for name in ("log-start-offset-checkpoint", "recovery-point-offset-checkpoint"):
        shutil.copy(broker.log_dir / name, REMOTE_TIER / "log")
    (REMOTE_TIER / "consumed.jsonl").write_text(consumed)


if __name__ == "__main__":
    main()
