"""What tshark says of a capture: Wireshark's own reassembly and dissector, as a table of the frames of Kafka.

A line is a packet that made frames whole. Its columns have one value for each frame, with commas between them: sizes,
correlation ids, the api keys and versions of requests, and the packets of the other side of the exchange.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ["COLUMNS", "dissected", "rows", "tshark_version"]

COLUMNS: Final = (
    "frame.number",
    "frame.time_epoch",
    "tcp.srcport",
    "tcp.dstport",
    "kafka.len",
    "kafka.correlation_id",
    "kafka.api_key",
    "kafka.api_version",
    "kafka.response_frame",
    "kafka.request_frame",
)


def dissected(path: Path, port: int) -> str:
    """Run tshark over a capture, taking ``port`` for Kafka's; return its table."""
    command = ["tshark", "-n", "-r", str(path), "-d", f"tcp.port=={port},kafka", "-Y", "kafka", "-T", "fields"]
    fields = [part for column in COLUMNS for part in ("-e", column)]
    return subprocess.run([*command, *fields], check=True, capture_output=True, text=True, timeout=60).stdout


def rows(table: str) -> Iterator[dict[str, list[str]]]:
    """Yield the lines of a table as lists of values by column."""
    for line in table.splitlines():
        yield {name: value.split(",") for name, value in zip(COLUMNS, line.split("\t"), strict=True)}


def tshark_version() -> str | None:
    """Return the version of the tshark that is installed, such as ``"4.0.17"``, or None without one."""
    if shutil.which("tshark") is None:
        return None
    said = subprocess.run(["tshark", "--version"], check=True, capture_output=True, text=True, timeout=60).stdout
    return said.split()[2]
