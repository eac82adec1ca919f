"""Durations and points in time for the options ``--by-duration`` and ``--to-datetime``."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

import click

__all__ = ["milliseconds_of", "read_datetime", "read_duration"]

_DURATION: Final = re.compile(
    r"P(?=.)(?:(?P<days>\d{1,7})D)?"
    r"(?:T(?=.)(?:(?P<hours>\d{1,9})H)?(?:(?P<minutes>\d{1,9})M)?(?:(?P<seconds>\d{1,9}(?:\.\d{1,9})?)S)?)?",
    re.ASCII | re.IGNORECASE,
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def read_duration(ctx: click.Context, param: click.Parameter, value: str | None) -> timedelta | None:
    """Parse ``PnDTnHnMnS``, ISO 8601: ``P1D``, ``PT6H30M``, ``PT0.5S``."""
    if value is None:
        return None
    match = _DURATION.fullmatch(value)
    if match is None:
        raise click.BadParameter(f"{value!r} is not PnDTnHnMnS, such as P1D or PT6H30M", ctx, param)
    return timedelta(**{unit: float(number) for unit, number in match.groupdict().items() if number})


def read_datetime(ctx: click.Context, param: click.Parameter, value: str | None) -> datetime | None:
    """Parse ``YYYY-MM-DDTHH:mm:SS.sss``, in UTC unless it has a UTC offset."""
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        reason = f"{value!r} is not YYYY-MM-DDTHH:mm:SS.sss, such as 1999-12-31T23:57:00.000"
        raise click.BadParameter(reason, ctx, param) from None
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    if moment < _EPOCH:
        reason = f"{value!r} is before 1970-01-01T00:00:00.000, where Kafka's timestamps begin"
        raise click.BadParameter(reason, ctx, param)
    return moment


def milliseconds_of(moment: datetime) -> int:
    """Return the milliseconds since the epoch, at least 0: negative numbers have special meanings in Kafka."""
    return max(0, (moment - _EPOCH) // timedelta(milliseconds=1))
