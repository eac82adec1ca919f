"""Running the command line, and reading what it printed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from click.testing import Result

__all__ = ["Run", "squeezed"]

Run: TypeAlias = Callable[..., Result]
"""The type of the fixture ``run``: arguments of the command to its result."""


def squeezed(text: str) -> list[str]:
    return [re.sub(r"\s+", " ", line).strip() for line in text.splitlines()]
