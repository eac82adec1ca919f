"""A real Kafka Streams application that uses the streams group protocol, for tests of descriptions of its group."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.recorders.broker import java_command

__all__ = ["streams_application"]

_SOURCE: Final = Path(__file__).parents[1] / "recorders" / "clients" / "ItemTotals.java"
_LIFETIME_SECONDS: Final = 300
_END_SECONDS: Final = 30


@contextmanager
def streams_application(
    bootstrap_servers: str, group: str, directory: Path, topic: str, *, instances: int = 1, protocol: str = "streams"
) -> Iterator[None]:
    """Count the orders of a topic by item until the block ends; then the members leave their group.

    ``protocol`` is the group protocol: ``streams`` or ``classic``. ``directory`` is for its state. The application has
    its own time limit in case the block never ends.
    """
    arguments = [bootstrap_servers, group, str(directory), str(instances), str(_LIFETIME_SECONDS), topic, protocol]
    process = subprocess.Popen(
        java_command(str(_SOURCE), arguments, heap_mb=192),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
