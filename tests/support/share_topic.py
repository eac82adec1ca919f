"""A randomly generated partition of ``__share_group_state``, with the groups and topics that its records name."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from attrs import define

from kafka_msgs.analysis.share_offsets import SHARE_STATE_TOPIC
from kafka_msgs.internal_topics.records import TopicRecord
from kafka_msgs.log.writers.small_files import format_partition_metadata
from kafka_msgs.messages.share_group_metadata_key import ShareGroupMetadataKey
from kafka_msgs.messages.share_group_metadata_value import ShareGroupMetadataValue
from kafka_msgs.messages.share_snapshot_key import ShareSnapshotKey
from kafka_msgs.messages.share_snapshot_value import ShareSnapshotValue
from kafka_msgs.messages.share_update_key import ShareUpdateKey
from kafka_msgs.messages.share_update_value import ShareUpdateValue
from tests.support.offsets_topic import TOPIC, Item, OffsetsTopic, write_items

__all__ = ["SHARE_GROUPS", "ShareTopic", "write_share_inputs"]

SHARE_GROUPS: Final = ("crates", "labels")
"""The described groups. The records also name a deleted group."""
_ID: Final = UUID(int=900)
_NAMED: Final = {"parcels": UUID(int=901), "pallets": UUID(int=902)}
_DELETED_TOPIC: Final = UUID(int=903)
_END: Final = 90
_UNREADABLE: Final = ((None, b"?"), (b"\0", b""), (b"\0\x63", b"?"), (b"\0\0\x07crates", b"\0\0"))


@define
class ShareTopic(OffsetsTopic):
    """A growing partition: snapshots, updates, deletions, and records that cannot be read."""

    id: UUID | None = _ID
    topic: str = SHARE_STATE_TOPIC

    def _item(self) -> Item | tuple[bytes | None, bytes | None]:
        dice, number = self.dice, self._next
        if self.problems and dice.random() < 0.05:
            return dice.choice(_UNREADABLE)
        place: dict[str, Any] = {
            "group_id": dice.choice((*SHARE_GROUPS, "deleted")),
            "topic_id": dice.choice((*_NAMED.values(), _DELETED_TOPIC)),
            "partition": dice.randrange(2),
        }
        start: dict[str, Any] = {
            "start_offset": dice.choice((-1, number)),
            "leader_epoch": dice.choice((-1, 3)),
            "delivery_complete_count": dice.choice((-1, 0, 5)),
        }
        kind = dice.random()
        if kind < 0.1:
            return TopicRecord(topic=self.topic, key=ShareSnapshotKey(**place))
        if kind < 0.4:
            snapshot = ShareSnapshotValue(snapshot_epoch=number, **start)
            return TopicRecord(topic=self.topic, key=ShareSnapshotKey(**place), value=snapshot, version=0)
        update = ShareUpdateValue(snapshot_epoch=number, **start)
        return TopicRecord(topic=self.topic, key=ShareUpdateKey(**place), value=update, version=0)


def write_share_inputs(home: Path, number: int = 0, groups: Iterable[str] = SHARE_GROUPS) -> None:
    """Write groups to a partition of ``__consumer_offsets``, and partition 0 of the topics, with 90 offsets each."""
    keys = [ShareGroupMetadataKey(group_id=name) for name in groups]
    value = ShareGroupMetadataValue(epoch=4)
    write_items(home, number, [TopicRecord(topic=TOPIC, key=key, value=value, version=0) for key in keys])
    for name, topic_id in _NAMED.items():
        directory = home / f"{name}-0"
        directory.mkdir(parents=True)
        (directory / f"{_END:020}.log").write_bytes(b"")
        (directory / "partition.metadata").write_bytes(format_partition_metadata(topic_id))
