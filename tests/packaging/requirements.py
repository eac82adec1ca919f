"""The install commands on the documentation pages."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from attrs import frozen

from tests.support.markdown_pages import pages

__all__ = ["Requirement", "page_requirements"]

_COMMAND: Final = re.compile(r"pip install ([^`\n|&]*)")
_REQUIREMENT: Final = re.compile(r"(?P<name>[\w.-]+)(?:\[(?P<extras>[\w,-]+)\])?(?P<bounds>[^\w\[].*)?")
_PACKAGE: Final = "kafka-msgs"


@frozen(order=True)
class Requirement:
    """A package on an install command, with its extras, and the bounds of its version as text."""

    name: str
    extras: tuple[str, ...] = ()
    bounds: str = ""

    def __str__(self) -> str:
        extras = f"[{','.join(self.extras)}]" if self.extras else ""
        return f"{self.name}{extras}{self.bounds}"


def page_requirements(files: Iterable[Path] | None = None) -> set[tuple[Requirement, ...]]:
    """Return the distinct install commands for this package on the pages, without options such as ``--quiet``."""
    texts = (page.read_text(encoding="utf-8") for page in (pages() if files is None else files))
    found = {_requirements(command) for text in texts for command in _COMMAND.findall(text)}
    return {command for command in found if any(requirement.name == _PACKAGE for requirement in command)}


def _requirements(command: str) -> tuple[Requirement, ...]:
    words = shlex.split(command) if command.count("'") % 2 == 0 else []
    matches = (_REQUIREMENT.fullmatch(word) for word in words if not word.startswith("-"))
    return tuple(_requirement(match) for match in matches if match is not None)


def _requirement(match: re.Match[str]) -> Requirement:
    return Requirement(match["name"], tuple(filter(None, (match["extras"] or "").split(","))), match["bounds"] or "")
