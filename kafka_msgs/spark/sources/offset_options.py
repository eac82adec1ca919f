"""Start and end positions in the options of a source: keywords, times, or partition offsets and times.

Also defines the JSON format of offsets, and the share of each partition in a stream batch. Names and formats match
Spark's own source ``kafka``. ``live_topics`` resolves positions in topics of running brokers, and ``splits`` in files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from math import ceil, floor
from typing import Any, Final, TypeAlias, TypeVar

from attrs import evolve, field, frozen

from kafka_msgs.errors import OptionError
from kafka_msgs.filesystems.path_resolution import LogFile
from kafka_msgs.log.segment import LARGEST, Segment
from kafka_msgs.spark.sources.options import Options

__all__ = [
    "EARLIEST",
    "LATEST",
    "OffsetBounds",
    "Place",
    "StartingOffsets",
    "limit_offsets",
    "offsets_in",
    "parse_object",
    "to_json",
]

Place: TypeAlias = tuple[str, int]
"""A partition: its topic and its number."""
P = TypeVar("P", bound=Place)

EARLIEST: Final = -2
LATEST: Final = -1
_TIME: Final = re.compile(r"[0-9]{1,19}")
_NAMES: Final = {"earliest": EARLIEST, "latest": LATEST}
_FORMS: Final = {
    "Offsets": 'it is earliest, latest, or offsets such as {"topic": {"0": 23, "1": -1}}',
    "Timestamp": "a number of milliseconds since the epoch is needed",
    "OffsetsByTimestamp": 'milliseconds since the epoch are needed, such as {"topic": {"0": 1767225600000}}',
}
"""The reasons for refusing the value of an option, by the end of its name."""
_START: Final = "starting"
_END: Final = "ending"
_REFUSED: Final = {
    _START: (LATEST, "reading cannot begin at the latest offset (-1)"),
    _END: (EARLIEST, "reading cannot end at the earliest offset (-2)"),
}


@frozen
class StartingOffsets:
    """A start or end position: ``EARLIEST``, ``LATEST``, a time in ms since the epoch, or offsets or times by place.

    Partitions that are not in ``offsets`` or ``times`` start or end at ``time``. Values of ``offsets`` may also be
    ``EARLIEST`` and ``LATEST``. The names of the options start with ``prefix``, which is ``starting`` or ``ending``.
    """

    time: int
    offsets: Mapping[Place, int] = field(factory=dict)
    times: Mapping[Place, int] = field(factory=dict)
    prefix: str = _START

    @classmethod
    def of(cls, options: Options, prefix: str, default: int) -> StartingOffsets:
        """Return the position from the options with a prefix: ``Offsets``, ``Timestamp`` or ``OffsetsByTimestamp``.

        Raises ``OptionError``, including for two of them.
        """
        given = {kind: text for kind in _FORMS if (text := options.text(prefix + kind)) is not None}
        if len(given) > 1:
            first, second, *_ = given
            options.refuse(prefix + second, f"it excludes {prefix}{first}")
        for kind, text in given.items():
            try:
                found = evolve(_parsed(kind, text, default), prefix=prefix)
            except (ValueError, AttributeError, TypeError, RecursionError):
                options.refuse(prefix + kind, _FORMS[kind])
            if any(offset < EARLIEST for offset in found.offsets.values()):
                options.refuse(prefix + kind, "an offset is not negative")
            return found
        return cls(default, prefix=prefix)

    def error(self, source: str, reason: str) -> OptionError:
        """Return the error that refuses the option with this position."""
        kind = "OffsetsByTimestamp" if self.times else "Timestamp" if self.time >= 0 else "Offsets"
        return OptionError(source=source, option=f"{self.prefix}{kind}", value=None, reason=reason)

    def at(self, place: Place) -> int:
        """Return the offset or the time of a partition, ``EARLIEST`` or ``LATEST``."""
        return self.offsets.get(place, self.times.get(place, self.time))

    def offset_in(self, first: LogFile, segments: Sequence[Segment]) -> int:
        """Return the offset in the partition of ``first``, or ``LARGEST`` for a position after its end."""
        place = first.topic or "", -1 if first.partition is None else first.partition
        known = self.at(place)
        if place in self.offsets or known < 0:
            return {EARLIEST: 0, LATEST: LARGEST}.get(known, known)
        for segment in segments:
            with suppress(FileNotFoundError):
                if (found := segment.first_at(known, skips_unreadable=True)) is not None:
                    return found.offset
        return LARGEST


_NO_END: Final = StartingOffsets(LATEST, prefix=_END)


def _parsed(kind: str, text: str, default: int) -> StartingOffsets:
    if kind == "Timestamp":
        return StartingOffsets(_time(int(text) if _TIME.fullmatch(text) else -1))
    if kind == "Offsets" and text.lower() in _NAMES:
        return StartingOffsets(_NAMES[text.lower()])
    found = offsets_in(parse_object(text))
    if kind == "Offsets":
        return StartingOffsets(default, found)
    return StartingOffsets(default, times={place: _time(number) for place, number in found.items()})


def _time(number: int) -> int:
    if not 0 <= number <= LARGEST:
        raise ValueError(f"{number} is not a time")
    return number


@frozen
class OffsetBounds:
    """The start and end positions of a read in each partition."""

    starting: StartingOffsets = StartingOffsets(EARLIEST)
    ending: StartingOffsets = _NO_END

    @classmethod
    def of(cls, options: Options) -> OffsetBounds:
        """Parse the options. Raises ``OptionError``."""
        return cls(StartingOffsets.of(options, _START, EARLIEST), StartingOffsets.of(options, _END, LATEST))

    def check_table(self, source: str) -> None:
        """Raise ``OptionError`` for bounds that are invalid for a table."""
        for position in (self.starting, self.ending):
            wrong, reason = _REFUSED[position.prefix]
            if wrong in (position.time, *position.offsets.values()):
                raise position.error(source, reason)

    def check_stream(self, source: str) -> None:
        """Raise ``OptionError`` for bounds that are invalid for a stream, which has no end."""
        if self.ending != _NO_END:
            raise self.ending.error(source, "a stream does not end")

    def check_places(self, source: str, there: Container[tuple[str | None, int | None]]) -> None:
        """Raise ``OptionError`` for a partition in the options that is not ``there``."""
        for position in (self.starting, self.ending):
            for topic, number in (*position.offsets, *position.times):
                if (topic, number) not in there:
                    raise position.error(source, f"there is no partition {topic}-{number}")


def parse_object(text: str) -> Any:
    """Return a JSON value. Raises ``ValueError``, including for a name that an object contains twice."""

    def unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise ValueError("a name appears twice")
        return found

    return json.loads(text, object_pairs_hook=unique)


def offsets_in(value: Any) -> dict[Place, int]:
    """Return the offsets in a JSON object. Raises ``ValueError``, ``AttributeError`` or ``TypeError``."""
    found: dict[Place, int] = {}
    for topic, partitions in value.items():
        for partition, offset in partitions.items():
            number = int(partition)
            if type(offset) is not int or str(number) != partition:
                raise TypeError(f"{partition!r} is not a partition, or {offset!r} is not an offset")
            found[topic, number] = offset
    return found


def limit_offsets(start: Mapping[P, int], end: Mapping[P, int], rows: int) -> dict[P, int]:
    """Return ends for reading about ``rows`` offsets, divided in proportion to the unread offsets of each partition.

    Every partition with unread offsets advances.
    """
    sizes = {place: max(0, end[place] - start.get(place, 0)) for place in end}
    total = sum(sizes.values())
    if total <= rows:
        return dict(end)
    shares = {place: rows * size / total for place, size in sizes.items()}
    steps = {place: ceil(share) if share < 1 else floor(share) for place, share in shares.items()}
    return {place: min(end[place], start.get(place, 0) + steps[place]) if sizes[place] else end[place] for place in end}


def to_json(offsets: Mapping[P, int]) -> dict[str, Any]:
    """Return offsets in the checkpoint format."""
    found: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        found.setdefault(topic, {})[str(partition)] = offset
    return found
