"""The scales of plots, which map values to positions, with the marks on their axes and the labels of the marks.

Chooses round marks. ``plots`` positions the axes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from attrs import frozen

__all__ = ["AxisScale", "AxisTick", "linear", "logarithmic", "number_text", "time_text", "times"]

_WHOLE_FROM: Final = 1000
"""Numbers from this one on are shown without fractions."""
_MARKS: Final = 6
_TIMES: Final = 8
"""The approximate number of marks on axes of numbers and of times."""
_ROUND: Final = (1, 2, 5, 10)
_SMALLEST: Final = 1e-9
"""The minimum distance between two marks."""
_DAY: Final = 86_400
_MINUTE: Final = 60
_SECONDS: Final = (
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200,
    *(days * _DAY for days in (1, 2, 7, 14, 28, 91, 182, 365)),
)  # fmt: skip
"""The possible distances between two marks on a time axis, in seconds."""
_MILLIS: Final = 1000


@frozen
class AxisTick:
    """A mark of an axis: its value, its label, and the second line of the label."""

    value: float
    text: str
    below: str = ""


@frozen
class AxisScale:
    """The scale of an axis: a range of values from ``low`` to ``high``, and its marks."""

    low: float
    high: float
    marks: tuple[AxisTick, ...]
    log: bool = False

    def share(self, value: float) -> float:
        """Return the relative position of a value, from 0 for ``low`` to 1 for ``high``, clamped to the range."""
        low, high, value = map(_exponent, (self.low, self.high, value)) if self.log else (self.low, self.high, value)
        return min(max((value - low) / (high - low), 0.0), 1.0)


def linear(values: Iterable[float]) -> AxisScale:
    """Return a scale from 0 or the lowest negative value, with integer marks if all values are integers."""
    known = list(values)
    low, high = min(0.0, *known, 0.0), max(0.0, *known, 0.0)
    whole = all(float(value).is_integer() for value in known)
    step = _round_step((high - low) / _MARKS, least=1.0 if whole or high == low else _SMALLEST)
    first, last = math.floor(low / step), math.floor(high / step)
    digits = max(-math.floor(math.log10(step)), 0)
    marks = (number * step for number in range(first, max(last, first + 1) + 1))
    shown = tuple(AxisTick(value, f"{value:,.{digits}f}") for value in marks)
    return AxisScale(shown[0].value, max(shown[-1].value, high), shown)


def _round_step(step: float, least: float) -> float:
    """Return the smallest round number that is not below a step."""
    power: float = 10.0 ** math.floor(math.log10(max(step, least)))
    return next(each * power for each in _ROUND if each * power >= max(step, least) * (1 - 1e-9))


def logarithmic(values: Iterable[float]) -> AxisScale:
    """Return a logarithmic scale of positive values with marks at powers of ten; other values are at its low end."""
    above = [value for value in values if value > 0] or [1.0]
    first = math.floor(math.log10(min(above)))
    last = max(math.ceil(math.log10(max(above))), first + 1)
    every = -(-(last - first) // _MARKS)
    marks = (10.0**power for power in range(first, last + 1, every))
    return AxisScale(
        10.0**first / 2, 10.0**last, tuple(AxisTick(value, number_text(value)) for value in marks), log=True
    )


def _exponent(value: float) -> float:
    return math.log10(value) if value > 0 else -math.inf


def times(values: Sequence[int]) -> AxisScale:
    """Return the scale of times, in milliseconds since the epoch. If all times are equal, they are at its start."""
    low, high = min(values, default=0), max(values, default=0)
    if low == high:
        return AxisScale(low, low + 1, ())
    return AxisScale(low, high, tuple(_time_marks(low, high)))


def _time_marks(low: int, high: int) -> Iterator[AxisTick]:
    """Yield marks at round times, with the day below the first mark and below each change of day."""
    least = (high - low) / _MILLIS / _TIMES
    longest = _SECONDS[-1]
    step = next((each for each in _SECONDS if each >= least), -(-int(least) // longest) * longest)
    day = ""
    for seconds in range(-(-low // (step * _MILLIS)) * step, high // _MILLIS + 1, step):
        text = time_text(seconds * _MILLIS)
        date, _, clock = text.partition(" ")
        if step >= _DAY or not clock:
            yield AxisTick(seconds * _MILLIS, date)
            continue
        shown = clock if step < _MINUTE else clock[:5]
        yield AxisTick(seconds * _MILLIS, shown, date if date != day else "")
        day = date


def time_text(value: float) -> str:
    """Return a time in milliseconds since the epoch as UTC text, to the second, or the number if out of range."""
    try:
        return datetime.fromtimestamp(value / _MILLIS, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return str(value)


def number_text(value: float) -> str:
    """Return a number as tables show it: integers without fraction, with thousands separators, without exponent."""
    if float(value).is_integer() or abs(value) >= _WHOLE_FROM:
        return f"{value:,.0f}"
    return f"{value:,.2f}"
