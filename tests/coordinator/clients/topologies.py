"""Topologies of Streams applications, in the form of heartbeats and topology descriptions."""

from __future__ import annotations

from random import Random
from typing import Any, Final

__all__ = ["DESCRIPTION", "TOPOLOGIES", "copartitioned", "other_topology", "subtopology", "topic_info"]

Topology = list[dict[str, Any]]


def topic_info(name: str, partitions: int = 0) -> dict[str, Any]:
    """Return an internal topic. With 0 partitions, the topology determines the partition count."""
    return {"name": name, "partitions": partitions, "replicationFactor": 0, "topicConfigs": []}


def subtopology(name: str, sources: tuple[str, ...], **further: Any) -> dict[str, Any]:
    """Return a subtopology that reads some topics; ``further`` contains fields by JSON name."""
    lists = ("sourceTopicRegex", "stateChangelogTopics", "repartitionSinkTopics", "repartitionSourceTopics")
    empty: dict[str, Any] = {field: [] for field in (*lists, "copartitionGroups")}
    return {"subtopologyId": name, "sourceTopics": list(sources), **empty, **further}


def copartitioned(*sources: int) -> list[dict[str, Any]]:
    """Return one group of source topics, by index, that need the same partition count."""
    return [{"sourceTopics": list(sources), "sourceTopicRegex": [], "repartitionSourceTopics": []}]


TOPOLOGIES: Final[tuple[Topology, ...]] = (
    [subtopology("0", ("in",))],
    [subtopology("0", ("in",), stateChangelogTopics=[topic_info("g-cl")])],
    [
        subtopology("0", ("in",), repartitionSinkTopics=["g-rep"]),
        subtopology(
            "1",
            (),
            repartitionSourceTopics=[topic_info("g-rep")],
            stateChangelogTopics=[topic_info("g-store-changelog")],
        ),
    ],
    [subtopology("0", ("in", "u"), copartitionGroups=copartitioned(0, 1))],
    [subtopology("0", ("in",)), subtopology("1", ("x3",)), subtopology("2", ("y4", "u"))],
    [subtopology("0", ("in", "t"), stateChangelogTopics=[topic_info("g-cl")])],
)
"""Valid topologies. Their topics may be missing."""

DESCRIPTION: Final = {
    "subtopologies": [
        {
            "subtopologyId": "0",
            "nodes": [
                {
                    "name": "S",
                    "nodeType": 1,
                    "sourceTopics": ["in"],
                    "sinkTopic": None,
                    "stores": [],
                    "successors": ["P"],
                },
                {"name": "P", "nodeType": 2, "sourceTopics": [], "sinkTopic": None, "stores": ["s"], "successors": []},
            ],
        }
    ],
    "globalStores": [],
}
"""An example of a topology description (KIP-1331)."""


def other_topology(topology: dict[str, Any], random: Random) -> dict[str, Any]:
    """Return a topology that differs in its epoch, its content, or both."""
    epoch = topology["epoch"] + random.choice((0, 1, 1))
    return {"epoch": epoch, "subtopologies": random.choice((topology["subtopologies"], *TOPOLOGIES))}
