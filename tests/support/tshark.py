"""tshark's view of a capture: a table of Kafka frames, from Wireshark's own reassembly and dissector.

Each line is for a packet that completed frames. Its columns contain one value per frame, separated by commas: sizes,
correlation ids, API keys and versions of requests, and the matching packets in the other direction.
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
    """Run tshark over a capture, with ``port`` as Kafka's; return its table."""
    command = ["tshark", "-n", "-r", str(path), "-d", f"tcp.port=={port},kafka", "-Y", "kafka", "-T", "fields"]
    fields = [part for column in COLUMNS for part in ("-e", column)]
    return subprocess.run([*command, *fields], check=True, capture_output=True, text=True, timeout=60).stdout


def rows(table: str) -> Iterator[dict[str, list[str]]]:
    """Yield the lines of a table as lists of values by column."""
    for line in table.splitlines():
        yield {name: value.split(",") for name, value in zip(COLUMNS, line.split("\t"), strict=True)}


def tshark_version() -> str | None:
    """Return the version of the installed tshark, such as ``"4.0.17"``, or None if it is not installed."""
    if shutil.which("tshark") is None:
        return None
    said = subprocess.run(["tshark", "--version"], check=True, capture_output=True, text=True, timeout=60).stdout
    return said.split()[2]
