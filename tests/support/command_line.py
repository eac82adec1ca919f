"""Helper that runs the command line and captures its output."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from click.testing import Result

__all__ = ["Run", "squeezed"]

Run: TypeAlias = Callable[..., Result]
"""Type of the ``run`` fixture: a function from command arguments to the result."""


def squeezed(text: str) -> list[str]:
    return [re.sub(r"\s+", " ", line).strip() for line in text.splitlines()]
