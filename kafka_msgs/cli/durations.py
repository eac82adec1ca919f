"""Times in options: a number with a unit, such as ``5s``, ``200ms``, ``1.5m``, ``2h`` or ``7d``."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import click

__all__ = ["duration"]

_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_TEXT: Final = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)\s?(ms|s|m|h|d)?", re.ASCII)


def duration(unit: str, *, min_seconds: float = 0.0) -> Callable[[str | float], float]:
    """Return a click type of times in seconds. ``unit`` is for numbers without a unit."""

    def parse(value: str | float) -> float:
        match = _TEXT.fullmatch(str(value).strip())
        if match is None:
            raise click.BadParameter(f"{value!r} is not a time such as 5s, 200ms or 1.5m")
        seconds = float(match[1]) * _SECONDS[match[2] or unit]
        if seconds < min_seconds:
            raise click.BadParameter(f"{value!r} is less than {min_seconds:g} seconds")
        return seconds

    return parse
