"""The scope of a change: topics and partitions from options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import click
from attrs import frozen

if TYPE_CHECKING:
    from kafka_msgs.client.cluster_metadata import TopicPartition


__all__ = ["TopicSelection", "read_topics"]

_PARTITIONS: Final = re.compile(r"(?P<topic>[^:,\s]+):(?P<partitions>\d{1,9}(?:,\d{1,9})*)", re.ASCII)
_NAMES: Final = re.compile(r"[^:,\s]+(?:,[^:,\s]+)*")


@frozen(kw_only=True)
class TopicSelection:
    """Topics, each with its selected partitions, or with None for all partitions."""

    partitions: Mapping[str, tuple[int, ...] | None]

    def has(self, partition: TopicPartition) -> bool:
        """Whether a partition is selected."""
        requested = self.partitions.get(partition.topic, ())
        return requested is None or partition.partition in requested

    def __or__(self, other: TopicSelection) -> TopicSelection:
        return TopicSelection(partitions={**self.partitions, **other.partitions})


def read_topics(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[TopicSelection, ...]:
    """Parse ``orders``, ``orders,payments``, or partitions of one topic: ``orders:0,1``."""
    return tuple(_topics(value, ctx, param) for value in values)


def _topics(value: str, ctx: click.Context, param: click.Parameter) -> TopicSelection:
    if match := _PARTITIONS.fullmatch(value):
        return TopicSelection(partitions={match["topic"]: tuple(map(int, match["partitions"].split(",")))})
    if _NAMES.fullmatch(value):
        return TopicSelection(partitions=dict.fromkeys(value.split(",")))
    raise click.BadParameter(f"{value!r} is not TOPIC,TOPIC or TOPIC:PARTITION,PARTITION", ctx, param)
