"""Record metadata logs of old feature levels: ``python -m tests.recorders.old_features``.

Writes a log directory for each level to ``tests/recordings/old_features``, with the metadata log of a Kafka 3.9 node.
``outcomes.json`` contains whether a node of the current release then started with these files. Requires Java and Maven;
takes two minutes.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Final

from tests.recorders.broker import Broker, BrokerError, Jars
from tests.support.recordings import OLD_FEATURES

__all__ = ["main"]

_RELEASE: Final = "3.9.1"
_METADATA: Final = ("3.3-IV0", "3.3-IV3", "3.9-IV0")
"""Metadata versions with the levels 4, 7 and 21."""
_LOG: Final = "__cluster_metadata-0"


def main() -> None:
    """Run the nodes one after another."""
    shutil.rmtree(OLD_FEATURES, ignore_errors=True)
    outcomes = {version: _outcome(version) for version in _METADATA}
    (OLD_FEATURES / "outcomes.json").write_text(json.dumps(outcomes, indent=1) + "\n", encoding="ascii")
    print(outcomes)


def _outcome(version: str) -> str:
    """Return whether the new node started, and print its reason otherwise."""
    options = ("--release-version", version)
    with Broker(release=_RELEASE, format_options=options, lifetime=200) as broker:
        broker.stop()
        _copy(broker.log_dir, OLD_FEATURES / version)
        try:
            broker.restart(Jars.NODE.release)
        except BrokerError as error:
            print(error)
            return "not started"
    return "started"


def _copy(log_dir: Path, target: Path) -> None:
    """Copy the metadata log, without its preallocated indexes."""
    (target / _LOG).mkdir(parents=True)
    shutil.copy(log_dir / "meta.properties", target)
    for path in (log_dir / _LOG).glob("*"):
        if path.suffix in (".log", ".checkpoint"):
            shutil.copy(path, target / _LOG)


if __name__ == "__main__":
    main()
