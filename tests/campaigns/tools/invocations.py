"""Reads ``invocations.txt``."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from attrs import frozen

__all__ = ["Invocation", "read_invocations"]

_TABLE: Final = Path(__file__).with_name("invocations.txt")


@frozen
class Invocation:
    """One line of the table: a command line with its standard input, or an action."""

    line: str
    stdin: str = ""

    @property
    def is_action(self) -> bool:
        """Whether the line is an action of the campaign, not a tool."""
        return self.line.startswith("@")


def read_invocations() -> list[Invocation]:
    """Return all lines in order."""
    lines = _TABLE.read_text(encoding="utf-8").splitlines()
    return [_parsed(line) for line in lines if line and not line.startswith("#")]


def _parsed(line: str) -> Invocation:
    command, _, records = line.partition(" < ")
    return Invocation(command, "".join(f"{each}\n" for each in records.split("|")) if records else "")
