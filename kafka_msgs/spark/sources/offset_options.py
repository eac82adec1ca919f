"""Start and end positions in the options of a source: keywords, times, or partition offsets and times. Also the JSON
format of offsets, and the share of each partition in a stream batch.

Names and formats match Spark's own source ``kafka``. ``live_topics`` resolves positions in topics of running brokers,
and ``offset_bounds`` in files. This module uses neither connections nor files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from math import ceil, floor
from typing import Any, Final, TypeAlias, TypeVar

from attrs import field, frozen

from kafka_msgs.spark.sources.options import Options

__all__ = ["EARLIEST", "LARGEST", "LATEST", "Place", "StartingOffsets", "limit_offsets", "offsets_in", "to_json"]

Place: TypeAlias = tuple[str, int]
"""A partition: its topic and its number."""
P = TypeVar("P", bound=Place)

EARLIEST: Final = -2
LATEST: Final = -1
LARGEST: Final = 2**63 - 1
"""The largest offset and the largest time."""
_TIME: Final = re.compile(r"[0-9]{1,19}")
_NAMES: Final = {"earliest": EARLIEST, "latest": LATEST}
_FORMS: Final = {
    "Offsets": 'it is earliest, latest, or offsets such as {"topic": {"0": 23, "1": -1}}',
    "Timestamp": "a number of milliseconds since the epoch is needed",
    "OffsetsByTimestamp": 'milliseconds since the epoch are needed, such as {"topic": {"0": 1767225600000}}',
}
"""The reasons for refusing the value of an option, by the end of its name."""


@frozen
class StartingOffsets:
    """A start or end position: ``EARLIEST``, ``LATEST``, a time in ms since the epoch, or offsets or times by place.

    Partitions that are not in ``offsets`` or ``times`` start or end at ``time``. Values of ``offsets`` may also be
    ``EARLIEST`` and ``LATEST``.
    """

    time: int
    offsets: Mapping[Place, int] = field(factory=dict)
    times: Mapping[Place, int] = field(factory=dict)

    @classmethod
    def of(cls, options: Options, prefix: str, default: int) -> StartingOffsets:
        """Return the position from the options of a ``prefix``, which is ``starting`` or ``ending``.

        The options are ``Offsets``, ``Timestamp`` and ``OffsetsByTimestamp``. Raises ``OptionError``, including for two
        of them.
        """
        readers = {"Offsets": _of_offsets, "Timestamp": _of_time, "OffsetsByTimestamp": _of_times}
        given = {prefix + name: options.text(prefix + name) for name in readers}
        used = [name for name, text in given.items() if text is not None]
        if len(used) > 1:
            options.refuse(used[1], f"it excludes {used[0]}")
        for name in used:
            try:
                return readers[name.removeprefix(prefix)](given[name] or "", default)
            except (ValueError, AttributeError, TypeError, RecursionError):
                options.refuse(name, _FORMS[name.removeprefix(prefix)])
        return cls(default)

    def option(self, prefix: str) -> str:
        """Return the name of the option with this position."""
        kind = "OffsetsByTimestamp" if self.times else "Timestamp" if self.time >= 0 else "Offsets"
        return f"{prefix}{kind}"

    def time_of(self, place: Place) -> int:
        """Return the time of a partition without an offset."""
        return self.times.get(place, self.time)


def _of_offsets(text: str, default: int) -> StartingOffsets:
    name = text.lower()
    return StartingOffsets(_NAMES[name]) if name in _NAMES else StartingOffsets(default, offsets_in(json.loads(text)))


def _of_time(text: str, default: int) -> StartingOffsets:
    if _TIME.fullmatch(text) is None:
        raise ValueError(text)
    return StartingOffsets(_time(int(text)))


def _of_times(text: str, default: int) -> StartingOffsets:
    times = {place: _time(time) for place, time in offsets_in(json.loads(text)).items()}
    return StartingOffsets(default, times=times)


def _time(number: int) -> int:
    if not 0 <= number <= LARGEST:
        raise ValueError(f"{number} is not a time")
    return number


def offsets_in(value: Any) -> dict[Place, int]:
    """Return the offsets in a JSON object. Raises ``ValueError``, ``AttributeError`` or ``TypeError``."""
    found: dict[Place, int] = {}
    for topic, partitions in value.items():
        for partition, offset in partitions.items():
            if type(offset) is not int:
                raise TypeError(f"{offset!r} is not an offset")
            found[topic, int(partition)] = offset
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
