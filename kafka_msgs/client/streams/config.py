"""The settings of a Streams application that belong to the protocol of its group (KIP-1071, "Streams Configurations").

The names are Kafka's. Settings that belong to something else are ignored, as Kafka ignores them.
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
"""Settings of the classic protocol that have no effect in the streams protocol: there the broker has them."""


@frozen(kw_only=True)
class StreamsConfig:
    """How a Streams application takes part in its group.

    ``topology_epoch`` is 0 in the classic protocol, which has no such number.
    """

    group_protocol: Literal["classic", "streams"] = "classic"
    topology_epoch: int = 0

    @classmethod
    def parse(cls, texts: Mapping[str, str]) -> Self:
        """Return the settings in texts by Kafka's names. What is not given has Kafka's default.

        Warns of settings that have no effect. Raises ``OptionError`` for a wrong value.
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
