"""The group protocol settings of a Streams application (KIP-1071, "Streams Configurations").

The names are Kafka's. As in Kafka, unrelated settings are ignored.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Final, Literal, Self, cast

from attrs import frozen

from kafka_msgs.errors import OptionError

__all__ = ["DEPRECATED", "StreamsConfig"]

_SOURCE: Final = "streams"
_PROTOCOLS: Final = ("classic", "streams")

DEPRECATED: Final = (
    "acceptable.recovery.lag",
    "max.warmup.replicas",
    "num.standby.replicas",
    "probing.rebalance.interval.ms",
    "rack.aware.assignment.tags",
    "rack.aware.assignment.strategy",
    "rack.aware.assignment.traffic_cost",
    "rack.aware.assignment.non_overlap_cost",
    "task.assignor.class",
)
"""Settings of the classic protocol without effect in the streams protocol, which configures them on the broker."""


@frozen(kw_only=True)
class StreamsConfig:
    """The group protocol settings of a Streams application.

    ``topology_epoch`` is always 0 in the classic protocol, which has no topology epoch.
    """

    group_protocol: Literal["classic", "streams"] = "classic"
    topology_epoch: int = 0

    @classmethod
    def parse(cls, texts: Mapping[str, str]) -> Self:
        """Parse the settings from a mapping with Kafka's names. Missing settings have Kafka's defaults.

        Warns about settings without effect. Raises ``OptionError`` for an invalid value.
        """
        protocol = texts.get("group.protocol", "classic").lower()
        if protocol not in _PROTOCOLS:
            raise OptionError(
                source=_SOURCE, option="group.protocol", value=protocol, reason="expected classic or streams"
            )
        epoch = _epoch(texts.get("topology.epoch", "0"))
        if protocol == "classic":
            return cls()
        for name in DEPRECATED:
            if name in texts:
                warnings.warn(f"{name} has no effect with group.protocol=streams", stacklevel=2)
        return cls(group_protocol=cast(Literal["classic", "streams"], protocol), topology_epoch=epoch)


def _epoch(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 10 and int(text) < 2**31):
        reason = "expected a number from 0 to 2147483647"
        raise OptionError(source=_SOURCE, option="topology.epoch", value=text, reason=reason)
    return int(text)
