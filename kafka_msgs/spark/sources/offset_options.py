"""Start and end positions in the options of a source: keywords, times, or partition offsets. Also the JSON format of
offsets, and the share of each partition in a stream batch.

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


@frozen
class StartingOffsets:
    """A start or end position: ``EARLIEST``, ``LATEST``, a time in ms since the epoch, or partition offsets.

    Partitions that are not in ``offsets`` start or end at ``time``. Values of ``offsets`` may also be ``EARLIEST`` and
    ``LATEST``.
    """

    time: int
    offsets: Mapping[Place, int] = field(factory=dict)

    @classmethod
    def of(cls, options: Options, name: str, timestamp: str, default: int) -> StartingOffsets:
        """Return the position from two options: one with a keyword or JSON offsets, one with a time.

        The time takes precedence. Raises ``OptionError``.
        """
        time, text = options.text(timestamp), options.text(name)
        if time is not None:
            if _TIME.fullmatch(time) is None or int(time) > LARGEST:
                options.refuse(timestamp, "a number of milliseconds since the epoch is needed")
            return cls(int(time))
        if text is None or text.lower() in _NAMES:
            return cls(default if text is None else _NAMES[text.lower()])
        try:
            return cls(default, offsets_in(json.loads(text)))
        except (ValueError, AttributeError, TypeError, RecursionError):
            options.refuse(name, 'it is earliest, latest, or offsets such as {"topic": {"0": 23, "1": -1}}')


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
