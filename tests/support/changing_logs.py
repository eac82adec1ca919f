"""A random log directory that changes: records, compaction, retention, truncation, and recreated topics."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random
from typing import Any, Final, TypeAlias
from uuid import UUID

from attrs import define, field

from kafka_msgs.internal_topics.coordinator_partition import partition_for_key
from tests.support.offsets_topic import OffsetsTopic
from tests.support.random_topic import RandomTopic
from tests.support.share_topic import ShareTopic, write_share_inputs

__all__ = ["ChangingLogs"]

_Topic: TypeAlias = OffsetsTopic | RandomTopic
_CHANGES: Final = ("delete_first", "truncate", "recreate", "compact")
_EVENTS_ID: Final = UUID(int=500)
_SHARE_GROUPS_IN: Final = 3
"""The partition of ``__consumer_offsets`` that describes share groups. It does not change."""


@define
class ChangingLogs:
    """Partitions of ``__consumer_offsets``, ``__share_group_state`` and a topic, which change step by step."""

    home: Path
    dice: Random
    topics: list[_Topic] = field(init=False)

    def __attrs_post_init__(self) -> None:
        dice = self.dice
        facts: dict[str, Any] = {"problems": dice.random() < 0.5}
        if dice.random() < 0.2:
            facts["id"] = None
        self.topics = [
            OffsetsTopic(self.home, dice, number, **facts, groups=self._groups_in(number))
            for number in range(dice.randrange(1, _SHARE_GROUPS_IN + 1))
        ]
        write_share_inputs(self.home, _SHARE_GROUPS_IN)
        self.topics += [ShareTopic(self.home, dice, number, facts["problems"]) for number in range(dice.randrange(3))]
        for number in range(dice.randrange(3)):
            damage, far = dice.random() < 0.3, dice.random() < 0.3
            self.topics.append(RandomTopic(self.home, dice, "events", number, damage, far, _EVENTS_ID))

    def _groups_in(self, number: int) -> tuple[str, ...]:
        """Return groups in a partition: of its coordinator, or of any."""
        names = [f"g{each}" for each in range(20)]
        own = [name for name in names if partition_for_key(name, _SHARE_GROUPS_IN + 1) == number]
        return tuple(self.dice.choice((own, own, own, names))[each] for each in range(4))

    def step(self, records: int = 40) -> Path:
        """Change all partitions, write the files, and return the log directory."""
        for number, topic in enumerate(self.topics):
            self._change(topic, records)
            topic.write()
            # One partition always remains: inputs without any are refused.
            if number and self.dice.random() < 0.1:
                shutil.rmtree(_directory(topic))
            elif self.dice.random() < 0.1:
                self._cut_off(topic)
        return self.home

    def _change(self, topic: _Topic, records: int) -> None:
        topic.grow(self.dice.randrange(records))
        for _ in range(self.dice.choice((0, 0, 1, 1, 2))):
            # Kafka does not compact the states of share groups.
            changes = _CHANGES[:-1] if isinstance(topic, ShareTopic) else _CHANGES
            getattr(topic, self.dice.choice(changes))()
            topic.grow(self.dice.choice((0, 1, records // 2)))

    def _cut_off(self, topic: _Topic) -> None:
        """Remove the last bytes of the last segment, as if a broker were still writing them."""
        last = max(_directory(topic).glob("*.log"))
        last.write_bytes(last.read_bytes()[: -self.dice.randrange(1, 70)])


def _directory(topic: _Topic) -> Path:
    return topic.directory if isinstance(topic, RandomTopic) else topic.home / f"{topic.topic}-{topic.number}"
