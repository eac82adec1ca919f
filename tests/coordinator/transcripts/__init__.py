"""Recorded exchanges with Kafka's group coordinator: lines ``> command``, each followed by ``< result``.

``python -m tests.coordinator.transcripts`` runs all commands on Kafka again and rewrites the results. To record another
script, first put its commands into a file in this directory.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from tests.coordinator.oracle import Command, Result

__all__ = ["NAMES", "read", "write"]

HERE: Final = Path(__file__).resolve().parent

NAMES: Final = tuple(sorted(path.stem for path in HERE.glob("*.txt")))


def read(name: str) -> tuple[list[Command], list[Result]]:
    """Return the commands of a transcript and Kafka's results, which are missing before the recording."""
    lines = (HERE / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    commands = [json.loads(line[2:]) for line in lines if line.startswith("> ")]
    results = [json.loads(line[2:]) for line in lines if line.startswith("< ")]
    return commands, results


def write(name: str, commands: list[Command], results: list[Result]) -> None:
    """Write a transcript."""
    lines = [
        f"> {json.dumps(command, separators=(',', ':'))}\n< {json.dumps(result, separators=(',', ':'))}\n"
        for command, result in zip(commands, results, strict=True)
    ]
    (HERE / f"{name}.txt").write_text("".join(lines), encoding="utf-8")
